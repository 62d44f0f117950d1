"""Job files for tests: a small valid one in a folder of its own, changed field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

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


def write_job(folder: Path, changes: dict[str, Any] | None = None, *, file: str = "digits.yaml") -> Path:
    """A valid job in ``folder`` with ``changes`` at dotted paths; None removes a field."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "train.py").write_text("print('hello')\n", encoding="utf-8")
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "a.csv").write_text("1,2\n", encoding="utf-8")
    job = yaml.safe_load(yaml.safe_dump(VALID))
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        place = job
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is None:
            place.pop(last, None)
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    path_ = folder / file
    path_.write_text(yaml.safe_dump(job, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path_
