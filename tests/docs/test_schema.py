"""The JSON Schema of the job file says what the loader says: of every job file here, and of every value in a field."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError

from job_files import AUTO, VALID, changed, write_job
from job_strategies import Spec, jobs
from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.job.load import job_files
from sagefit.job.metrics import has_no_group, metric_problems
from sagefit.job.model import Attempt, Resources
from sagefit.job.schema import schema
from sagefit.paths import ROOT

SCHEMA: Any = jsonschema.Draft202012Validator(schema())
FILES = [*job_files(), *sorted(path for folder in (ROOT / "examples").rglob("jobs") for path in job_files(folder))]

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

# A value in every field, each of its own kind.
FULL: Spec = VALID | {
    "description": "Digits",
    "inputs": {
        "train": "data",
        "test": {
            "uri": "s3://bucket/test/",
            "mode": "File",
            "s3_data_type": "S3Prefix",
            "distribution": "FullyReplicated",
            "compression": "None",
            "record_wrapper": "None",
            "content_type": "text/csv",
            "shuffle_seed": 1,
            "attribute_names": ["a"],
        },
        "made": {"from": "features/rows"},
        "shared": {
            "file_system": {
                "id": "fs-0123456789abcdef0",
                "type": "EFS",
                "directory_path": "/data",
                "access_mode": "ro",
            },
        },
    },
    "processing": [
        {
            "name": "features",
            "image": {"framework": "spark", "version": "3.5"},
            "code": {"source_dir": "src", "entry_point": "train.py", "arguments": ["-v"], "exclude": ["data/**"]},
            "inputs": {
                "raw": "data",
                "rest": {"uri": "s3://bucket/x/", "s3_data_type": "S3Prefix", "distribution": "FullyReplicated"},
            },
            "outputs": ["rows"],
            "environment": {"A": "x"},
            "resources": {
                "instance_type": "ml.m5.xlarge",
                "instance_count": 2,
                "volume_size_gb": 30,
                "max_runtime": "1h",
            },
        }
    ],
    "environment": {"A": "x"},
    "metrics": [{"name": "loss", "regex": "loss=(.*)"}],
    "max_price": 5,
    "schedule": {"expression": "rate(1 day)", "timezone": "UTC"},
    "tags": {"team": "vision"},
    "resources": {
        "instance_type": ["ml.m5.large"],
        "instance_count": 1,
        "instance_groups": [{"name": "gpu", "instance_type": "ml.g5.xlarge", "instance_count": 1}],
        "instance_quota": 20,
        "volume_size_gb": 30,
        "spot": False,
        "max_runtime": "1h30m",
        "max_wait": 7200,
        "max_pending": "1h",
        "warm_pool": "small",
        "max_keep_alive": "1h",
        "checkpoints": True,
        "checkpoint_local_path": "/opt/ml/checkpoints",
        "input_mode": "File",
        "network_isolation": True,
        "encrypt_inter_container_traffic": True,
        "subnet_ids": ["subnet-1"],
        "security_group_ids": ["sg-1"],
        "role": "own",
        "volume_kms_key_arn": KEY,
        "output_kms_key_arn": KEY,
        "output_s3_uri": "s3://bucket/",
        "output_compression": "GZIP",
        "retry_attempts": 1,
        "remote_debug": False,
        "profiler": False,
        "poll_interval": "30s",
    },
    "memory": AUTO["memory"]
    | {"method": "lora", "lora_rank": 8, "optimizer": "adamw", "micro_batch": 4, "knobs": {"micro_batch": "bs"}}
    | {
        "gradient_checkpointing": "full",
        "head_room": 0.2,
        "accept_risky": True,
        "dataset": {"size_gib": 1.5, "in_memory": True},
    }
    | {"trace": {"function": "train.py:build", "python": "python3", "timeout": "10m"}},
    "tuning": {
        "strategy": "Random",
        "objective": {"metric": "loss", "type": "Minimize"},
        "max_jobs": 4,
        "max_parallel_jobs": 2,
        "parallel_quota": 10,
        "max_runtime": "1h",
        "early_stopping": True,
        "seed": 1,
        "ranges": {"rate": {"min": 0.5, "max": 1, "scaling": "Linear"}, "depth": [1, "2"]},
    },
    "attempts": [
        {
            "name": "only",
            "reason": "because",
            "instance_type": "ml.m5.large",
            "instance_count": 1,
            "spot": True,
            "hyperparameters": {"a": 1},
            "environment": {"A": "x"},
            "volume_size_gb": 30,
            "warm_pool": 0,
            "max_runtime": "1h",
            "max_wait": 7200,
            "max_pending": "1h",
            "next": {"disk": "only"},
        }
    ],
}
VALUES: list[Any] = ["text", "7", "1h", 0, 1, -1, 10**12, 1.5, True, False, [], ["text"], {}, {"key": 1}]


def loads(job: Spec) -> bool:
    """Whether the types and limits of single fields allow it; rules between fields are none of a schema."""
    try:
        Job.model_validate(job)
    except ValidationError:
        return False
    return True


def fields(value: Any, prefix: str = "") -> Iterator[str]:
    """The dotted path of everything in a job file."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield f"{prefix}{key}"
        yield from fields(inner, f"{prefix}{key}.")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_job_files_match_the_schema(path: Path) -> None:
    SCHEMA.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_the_full_job_is_one_and_fills_every_field() -> None:
    assert loads(FULL)
    SCHEMA.validate(FULL)
    assert FULL.keys() == Job.model_fields.keys()
    assert FULL["resources"].keys() == Resources.model_fields.keys()
    assert FULL["attempts"][0].keys() == Attempt.model_fields.keys()


def around(field: str) -> Spec:
    """The least of the full job that a field needs."""
    top, _, rest = field.partition(".")
    part = FULL[top]
    if top in ("resources", "memory") and rest:
        inner = rest.partition(".")[0]
        part = {inner: part[inner]}
    return {name: FULL[name] for name in ("name", "platform", "image")} | {top: part}


def agree(job: Spec) -> bool:
    return bool(SCHEMA.is_valid(job)) == loads(job)


def test_schema_and_loader_agree_on_every_value_of_every_field() -> None:
    differ = [(f, v) for f in fields(FULL) for v in VALUES if not agree(changed(around(f), {f: v}))]
    # Pydantic compares with the values that a field may have, and 1 == True.
    assert differ == [("memory.gradient_checkpointing", 0), ("memory.gradient_checkpointing", 1)]


def test_schema_and_loader_agree_on_unknown_and_missing_fields() -> None:
    for field in fields(FULL):
        beside = ".".join([*field.split(".")[:-1], "colour"])
        if not field[-1].isdigit():  # no item of a list
            assert agree(changed(around(field), {beside: "red"})), beside
            if field != "name":  # that of the file, where it has none
                assert agree(changed(around(field), {field: None})), field


@settings(suppress_health_check=list(HealthCheck), max_examples=50)
@given(jobs())
def test_the_schema_accepts_any_valid_job_file(job: Spec) -> None:
    SCHEMA.validate(job)
    assert loads(job)


@pytest.mark.parametrize(
    "change",
    [{"colour": "red"}, {"resources.max_runtime": "4 hours"}, {"platform": None}, {"attempts.0.nxt": {}}],
    ids=str,
)
def test_what_the_schema_refuses_is_refused_as_a_file(tmp_path: Path, change: Spec) -> None:
    assert not SCHEMA.is_valid(changed(VALID, change))
    with pytest.raises(SagefitError):
        load_job(str(write_job(tmp_path, change)))


@pytest.mark.parametrize("regex", ["[+--a]", "[!--]", "[[a]", "[a||b] ([0-9]+)", "[a&&b]", "[a~~b]"])
def test_what_a_later_python_may_read_otherwise_is_no_warning(regex: str) -> None:
    """Python's own would name one of its files, and not the job file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job = Job.model_validate(changed(VALID, {"metrics": [{"name": "loss", "regex": regex}]}))
        assert list(metric_problems(job)) == []
        assert has_no_group(regex) is ("(" not in regex)
