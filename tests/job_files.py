"""Job files for tests: a small valid one in a folder of its own, changed field by field."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from sagefit.job import Job

VALID: dict[str, Any] = {
    "name": "digits",
    "platform": "dev",
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "inputs": {"train": "data"},
    "hyperparameters": {"epochs": 3, "cache": True},
    "resources": {"max_runtime": "20m", "poll_interval": "1s"},
    "attempts": [
        {"name": "small", "instance_type": "ml.m5.large", "next": {"host_memory": "large"}},
        {"name": "large", "instance_type": "ml.m5.xlarge"},
    ],
}


def write_job(
    folder: Path, changes: dict[str, Any] | None = None, *, file: str = "digits.yaml", job: dict[str, Any] = VALID
) -> Path:
    """A valid job in ``folder`` with ``changes`` at dotted paths; None removes a field."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "train.py").write_text("print('hello')\n", encoding="utf-8")
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "a.csv").write_text("1,2\n", encoding="utf-8")
    path_ = folder / file
    path_.write_text(yaml.safe_dump(changed(job, changes), sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path_


AUTO: dict[str, Any] = {
    "name": "tune",
    "platform": "dev",
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "image": {"framework": "pytorch", "version": "2.6"},
    "hyperparameters": {
        "per_device_train_batch_size": 32,
        "gradient_accumulation_steps": 1,
        "gradient_checkpointing": False,
        "dataloader_num_workers": 4,
    },
    "resources": {"instance_type": "auto", "max_runtime": "4h"},
    "memory": {
        "model": {
            "family": "transformer",
            "params": 3.35e8,
            "layers": 24,
            "hidden_size": 1024,
            "heads": 16,
            "vocab_size": 30522,
            "architecture": "encoder",
            "mlp": "plain",
            "norm": "layer",
            "dropout": True,
        },
        "precision": "fp32",
        "sequence_length": 128,
        "stack": "hf-trainer",
        "loader": {"sample_bytes": 4096},
    },
}
"""A job whose attempts Sagefit makes: every remedy has its knob."""


def changed(job: dict[str, Any], changes: dict[str, Any] | None) -> dict[str, Any]:
    """A copy of ``job`` with ``changes`` at dotted paths; None removes a field."""
    own = copy.deepcopy(job)
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        place: Any = own
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is None:
            place.pop(last, None)
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return own


def auto_job(changes: dict[str, Any] | None = None) -> Job:
    """``AUTO`` with ``changes``, as the planner sees it: its paths are not looked at."""
    job = Job.model_validate(changed(AUTO, changes))
    job._path = Path("tune.yaml").resolve()
    return job
