"""A job with two processing steps, of different types and limits."""

from __future__ import annotations

from typing import Any


def job_with_steps() -> dict[str, Any]:
    """Arguments of modules/training-job: Spark, then an image of the platform's own, then one attempt."""
    code = {"source_dir": "../modules/training-job/tests/example/code", "entry_point": "train.py"}
    return {
        "name": "steps",
        "image": {"framework": "sklearn", "version": "1.2-1"},
        "code": code,
        "processing": [
            {
                "name": "features",
                "image": {"framework": "spark", "version": "3.5"},
                "code": code,
                "inputs": {"raw": {"s3_uri": "s3://my-data/raw/"}},
                "outputs": ["rows"],
                "instance_type": "ml.m5.xlarge",
                "instance_count": 2,
                "max_runtime_seconds": 7200,
            },
            {
                "name": "split",
                "image": {"repository": "", "tag": "1"},
                "inputs": {"rows": {"from": "features/rows"}},
                "outputs": ["train"],
                "instance_type": "ml.c5.xlarge",
                "max_runtime_seconds": 600,
            },
        ],
        "channels": {"train": {"from": "split/train"}},
        "attempts": [{"name": "only", "instance_type": "ml.m5.large", "max_runtime_seconds": 3600}],
    }
