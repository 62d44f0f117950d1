"""Ask other tools what the published runs need, and keep the answers in ``rivals.csv``.

fitcheck-llm reads one dense decoder on one GPU, so that is what it is asked. Run it in an environment ENV of its own:

    python3 -m venv ENV && ENV/bin/pip install fitcheck-llm==0.3.1 -e .
    PYTHONPATH=tests ENV/bin/python tests/accuracy/measure_rivals.py
"""

from __future__ import annotations

import csv
import importlib
from typing import Any

from accuracy.runs import HERE, Run, published_runs
from sagefit.memory import Transformer
from sagefit.memory.stacks import PROFILES

COLUMNS = ("id", "fitcheck_gib")
_OPTIMIZERS = {"adamw-8bit": "adamw8bit", "paged-adamw-8bit": "adamw8bit"}
_PRECISIONS = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}
_GPUS = {"L40S-48GB": "l40s", "T4": "t4", "H100-80GB": "h100-80"}
_USUAL = "a100-80"  # what a T4 holds without tensors was measured for it, all other GPUs are alike


def asked(run: Run) -> bool:
    """Whether fitcheck-llm has words for a run."""
    workload, model = run.workload, run.workload.model
    return (
        isinstance(model, Transformer)
        and model.architecture == "decoder"
        and run.placement.gpus == 1
        and not model.tower
        and workload.objective == "supervised"
    )


def answer(run: Run) -> float:
    """GiB that fitcheck-llm says, as a job's author would ask: peak of one GPU with CUDA's context."""
    fitcheck: Any = importlib.import_module("fitcheck")
    lora: Any = importlib.import_module("fitcheck.memory.lora")
    workload, model = run.workload, run.workload.model
    if not isinstance(model, Transformer):
        raise TypeError(f"{run.id} is no transformer")
    targets = workload.lora_targets or PROFILES[workload.stack].lora_targets
    config = fitcheck.ModelConfig(
        name=model.name,
        num_params=model.params,
        hidden_size=model.hidden,
        num_layers=model.layers,
        num_attention_heads=model.heads,
        num_kv_heads=model.kv_heads,
        intermediate_size=model.ffn,
        vocab_size=model.vocab,
        head_dim=model.head_dim,
        tie_word_embeddings=model.tied,
    )
    training = fitcheck.TrainingConfig(
        precision=_PRECISIONS.get(workload.precision, workload.precision),
        quantization="nf4" if workload.method == "qlora" else "none",
        optimizer=_OPTIMIZERS.get(workload.optimizer, workload.optimizer),
        batch_size=workload.micro_batch,
        seq_len=workload.sequence_length,
        lora_rank=None if workload.method == "full" else workload.lora_rank,
        lora_targets=list(lora.LORA_TARGETS_STANDARD if targets == "attention" else lora.LORA_TARGETS_FULL),
        grad_checkpoint=workload.gradient_checkpointing,
        flash_attn=workload.attention != "eager",
        grad_accum_steps=workload.accumulation,
    )
    told = fitcheck.estimate(config, training, fitcheck.get_gpu(_GPUS.get(run.placement.gpu, _USUAL)))
    return float(told.total_mib) / 1024


if __name__ == "__main__":
    answers = [(run.id, f"{answer(run):.2f}") for run in published_runs() if asked(run)]
    with (HERE / "rivals.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(answers)
