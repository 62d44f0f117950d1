"""Jobs whose role needs more than the platform gives: a network and keys of their own, a shell in the container."""

from __future__ import annotations

from typing import Any


def job_with_own_network(account: str, region: str) -> dict[str, Any]:
    """Arguments of modules/training-job: a step, then one attempt; all of it in the job's own network."""
    code = {"source_dir": "../modules/training-job/tests/example/code", "entry_point": "train.py"}
    keys = f"arn:aws:kms:{region}:{account}:key"
    return {
        "name": "own-network",
        "image": {"framework": "sklearn", "version": "1.2-1"},
        "code": code,
        "processing": [
            {
                "name": "split",
                "image": {"framework": "sklearn", "version": "1.2-1"},
                "code": code,
                "outputs": ["train"],
                "instance_type": "ml.c5.xlarge",
                "max_runtime_seconds": 600,
            }
        ],
        "channels": {"train": {"from": "split/train"}},
        "attempts": [{"name": "only", "instance_type": "ml.m5.large", "max_runtime_seconds": 3600}],
        "resources": {
            "subnet_ids": ["subnet-0ccccccccccccccccc", "subnet-0ddddddddddddddddd"],
            "security_group_ids": ["sg-0ccccccccccccccccc"],
            "volume_kms_key_arn": f"{keys}/22222222-3333-4444-5555-666666666666",
            "output_kms_key_arn": f"{keys}/33333333-4444-5555-6666-777777777777",
        },
    }


def job_to_debug() -> dict[str, Any]:
    """Arguments of modules/training-job: one attempt with a shell into its container."""
    return {
        "name": "debugged",
        "image": {"framework": "sklearn", "version": "1.2-1"},
        "code": {"source_dir": "../modules/training-job/tests/example/code", "entry_point": "train.py"},
        "attempts": [{"name": "only", "instance_type": "ml.m5.large", "max_runtime_seconds": 3600}],
        "resources": {"remote_debug": True},
    }
