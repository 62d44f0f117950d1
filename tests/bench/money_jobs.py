"""Job files made from measured training runs, and what each truly needs on an instance.

Measured runs on one GPU; twenty of them are taken at even distances from the tables: nobody chose them. The true need
of an attempt is its predicted point times measured over predicted of that run, so that a job whose prediction was
20 % low stays 20 % low on every instance and with every remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from accuracy.runs import Run, transformer_runs, vision_runs
from sagefit.catalog import Instance
from sagefit.job import Job, load_job
from sagefit.memory import Placement, Transformer, Vision, predict
from sagefit.memory.read import read

TRANSFORMERS, VISION = 15, 5
_UNKNOWN_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/training:1"


@dataclass(frozen=True)
class Trial:
    """A job and how far its prediction is off: ``off`` is measured over predicted."""

    run: Run
    job: Job
    off: float
    surprise: float = 1.0
    """True need over measured: above 1 the planner is further off than it was."""

    def need_gib(self, instance: Instance, hyperparameters: Mapping[str, object] | None = None) -> float:
        """True peak per GPU in GiB on an instance, with the job's hyperparameters or an attempt's on top."""
        workload = read(self.job, self.job.hyperparameters | dict(hyperparameters or {}))
        prediction = predict(workload, Placement.on(instance))
        if prediction is None or prediction.gpu is None:
            raise ValueError(f"{self.run.id} has no prediction")
        return prediction.gpu.point * self.off * self.surprise


def picked() -> list[Run]:
    """The twenty runs."""
    return [*_evenly(on_one_gpu(transformer_runs()), TRANSFORMERS), *_evenly(vision_runs(), VISION)]


def on_one_gpu(runs: list[Run]) -> list[Run]:
    """Runs that every instance with a GPU can repeat, if its memory is enough."""
    return [run for run in runs if run.placement.gpus == 1 and not _needs_more_than_a_file(run)]


def transformers(runs: list[Run]) -> list[Run]:
    """Those of ``runs`` that train a transformer."""
    return [run for run in runs if isinstance(run.workload.model, Transformer)]


def trial(run: Run, folder: Path) -> Trial:
    """One run as a job. Raises ValueError when its file says something else than the run was."""
    found = Trial(run, _job(run, folder), run.ratio)
    told, known = (predict(workload, run.placement) for workload in (read(found.job), run.workload))
    if told is None or known is None or told.gpu is None or known.gpu is None or told.gpu.point != known.gpu.point:
        raise ValueError(f"{run.id}: the job file describes another workload")
    return found


def _needs_more_than_a_file(run: Run) -> bool:
    """A bias on attention scores is read from a model's config.json, not from numbers in a job file."""
    return isinstance(run.workload.model, Transformer) and run.workload.model.position_bias


def _evenly(runs: list[Run], count: int) -> list[Run]:
    return [runs[index * len(runs) // count] for index in range(count)]


def _job(run: Run, folder: Path) -> Job:
    """A job file as an engineer writes it: batch and checkpointing are hyperparameters, so that remedies have knobs."""
    workload = run.workload
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "train.py").touch()
    path = folder / f"{run.id.lower()}.yaml"
    job: dict[str, Any] = {
        "name": run.id.lower(),
        "platform": "dev",
        "code": {"source_dir": "src", "entry_point": "train.py"},
        # Of an image that nobody knows, no release of torch is taken for granted.
        "image": {"framework": "pytorch", "version": "2.6"} if workload.torch else {"uri": _UNKNOWN_IMAGE},
        "hyperparameters": {
            "per_device_train_batch_size": workload.micro_batch,
            "gradient_accumulation_steps": workload.accumulation,
            "gradient_checkpointing": workload.gradient_checkpointing,
        },
        "resources": {"instance_type": "auto", "max_runtime": "8h"},
        "memory": _memory(run),
    }
    path.write_text(yaml.safe_dump(job), encoding="utf-8")
    return load_job(str(path))


def _memory(run: Run) -> dict[str, Any]:
    """The memory block of a run, without what its hyperparameters say."""
    workload = run.workload
    if run.memory:
        said = {"micro_batch", "accumulation", "gradient_checkpointing"}
        return {name: value for name, value in run.memory.items() if name not in said} | {"stack": workload.stack}
    names = ("method", "precision", "optimizer", "attention", "sharding", "stack", "loss")
    memory = {name: getattr(workload, name) for name in names} | {"model": _model(workload.model)}
    if workload.method != "full":
        memory["lora_rank"] = workload.lora_rank
    if isinstance(workload.model, Transformer):
        memory |= {"sequence_length": workload.sequence_length, "head": workload.model.head}
    return memory


def _model(model: object) -> dict[str, Any]:
    if isinstance(model, Vision):
        size = {"image_size": model.image_size} if model.image_size else {}
        return {"family": "vision", "name": model.name, **size}
    if not isinstance(model, Transformer):
        raise TypeError(f"no job file for {model}")
    numbers = {
        "params": float(model.params),
        "layers": model.layers,
        "hidden_size": model.hidden,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "ffn_size": model.ffn,
        "vocab_size": model.vocab,
        "architecture": model.architecture,
        "mlp": "gated" if model.gated else "plain",
        "norm": model.norm,
        "dropout": model.dropout,
        "tie_embeddings": model.tied,
    }
    layers = {"encoder_layers": model.encoder_layers} if model.encoder_layers else {}
    return {"family": "transformer", **numbers, **layers}
