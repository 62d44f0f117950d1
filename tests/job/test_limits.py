"""Every row of ``limits.json``: a field at its bound is taken, and one beyond it is refused by the name of the field.

How a job with a field of some size is written is told here, by field; which sizes are asked comes from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from job_files import VALID, write_job
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.job.limit_rules import LAUNCHER_ARGUMENTS, LAUNCHER_METRICS
from sagefit.job.limits import Limit, limits

Changes = dict[str, Any]
#: A job of the least that a job has: what is at a bound stands alone.
JOB: dict[str, Any] = {
    **{name: VALID[name] for name in ("name", "platform", "code", "image", "resources")},
    "attempts": [{"name": "only", "instance_type": "ml.m5.large"}],
}
_STEP: dict[str, Any] = {
    "name": "prepare",
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "outputs": ["train"],
    "resources": {"instance_type": "ml.m5.large"},
}
_SEARCH: dict[str, Any] = {
    "objective": {"metric": "loss", "type": "Minimize"},
    "max_jobs": 1,
    "ranges": {"rate": {"min": 0.1, "max": 0.2}},
}
#: SageMaker's own algorithm has neither code nor metrics of the launcher.
_OWN_ALGORITHM: Changes = {"code": None, "image": {"algorithm": "kmeans"}}
_DATA, _KEY = "s3://my-data", "arn:aws:kms:us-east-1:123456789012:key/"


def _long(size: int, start: str = "", end: str = "") -> str:
    """A text of ``size`` characters; one that is too short for its ends is cut."""
    return (start + "a" * (size - len(start) - len(end)) + end)[:size]


def _many(size: int, start: str = "k") -> list[str]:
    return [f"{start}{number}" for number in range(size)]


def _metrics(size: int) -> list[dict[str, str]]:
    return [{"name": name, "regex": "a=(.*)"} for name in _many(size)]


def _step(**fields: Any) -> Changes:
    return {"processing": [_STEP | fields]}


def _search(**fields: Any) -> Changes:
    return {"metrics": [{"name": "loss", "regex": "loss=([0-9.]+)"}], "tuning": _SEARCH | fields}


def _input(**fields: Any) -> Changes:
    return {"inputs": {"train": {"uri": f"{_DATA}/a/"} | fields}}


def _augmented(names: list[str]) -> Changes:
    return _input(uri=f"{_DATA}/a.manifest", s3_data_type="AugmentedManifestFile", attribute_names=names) | {
        "resources.input_mode": "Pipe"
    }


def _on_a_file_system(**fields: Any) -> Changes:
    system = {"id": "fs-0a1b2c3d", "type": "EFS", "directory_path": "/data"} | fields
    return {"inputs": {"train": {"file_system": system}}} | _in_a_network()


def _in_a_network(subnets: int = 1, groups: int = 1) -> Changes:
    return {
        "resources.subnet_ids": _many(subnets, "subnet-"),
        "resources.security_group_ids": _many(groups, "sg-"),
    }


def _grouped(*names: str) -> Changes:
    groups = [{"name": name, "instance_type": "ml.m5.large"} for name in names]
    return {"attempts": None, "resources": {"max_runtime": "1h", "instance_groups": groups}}


def _script(size: int) -> str:
    """The path of a script, in a folder where it is longer than a name in a file system may be."""
    return _long(size, end=".py") if size <= 200 else f"{_long(99)}/{_long(size - 100, end='.py')}"


def _under(path: str) -> Callable[[Any], Changes]:
    """A field that takes the value as it is."""
    return lambda value: {path: value}


#: By field: the changes that make it as large as is asked; a number and a time are given as such.
WRITTEN: dict[str, Callable[[Any], Changes]] = {
    "name": lambda n: {"name": _long(n)},
    "description": lambda n: {"description": _long(n)},
    "code.arguments": lambda n: {"code.arguments": _many(n - LAUNCHER_ARGUMENTS)},
    "code.arguments.*": lambda n: {"code.arguments": [_long(n)]},
    "code.entry_point": lambda n: {"code.entry_point": _script(n)},
    "image.uri": lambda n: {
        "image": {"uri": _long(n, "123456789012.dkr.ecr.us-east-1.amazonaws.com/", ":1")},
    },
    "image.tag": lambda n: {"image": {"repository": "", "tag": _long(n)}},
    "image.digest": lambda n: {"image": {"repository": "", "digest": _long(n, "sha256:")}},
    "image.algorithm_arn": lambda n: {
        "code": None,
        "image": {"algorithm_arn": _long(n, "arn:aws:sagemaker:us-east-1:123456789012:algorithm/")},
    },
    "inputs": lambda n: {**_OWN_ALGORITHM, "inputs": {name: f"{_DATA}/{name}/" for name in _many(n)}},
    "inputs.*": lambda n: {"inputs": {_long(n): f"{_DATA}/a/"}},
    "inputs.*.uri": lambda n: _input(uri=_long(n, f"{_DATA}/")),
    "inputs.*.content_type": lambda n: _input(content_type=_long(n, "text/")),
    "inputs.*.shuffle_seed": lambda n: _input(shuffle_seed=n),
    "inputs.*.attribute_names": lambda n: _augmented(_many(n)),
    "inputs.*.attribute_names.*": lambda n: _augmented([_long(n)]),
    "inputs.*.file_system.id": lambda n: _on_a_file_system(id=_long(n, "fs-")),
    "inputs.*.file_system.directory_path": lambda n: _on_a_file_system(directory_path=_long(n, "/")),
    "hyperparameters": lambda n: {"hyperparameters": dict.fromkeys(_many(n), 1)},
    "hyperparameters.*": lambda n: {"hyperparameters": {_long(n): 1}},
    "hyperparameters.*.value": lambda n: {"hyperparameters": {"text": _long(n)}},
    "environment": lambda n: {"environment": dict.fromkeys(_many(n), 1)},
    "environment.*": lambda n: {"environment": {_long(n): 1}},
    "environment.*.value": lambda n: {"environment": {"TEXT": _long(n)}},
    "metrics": lambda n: {
        **_OWN_ALGORITHM,
        "image": {"uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1"},
        "metrics": _metrics(n),
    },
    "metrics.*.name": lambda n: {"metrics": [{"name": _long(n), "regex": "a=(.*)"}]},
    "metrics.*.regex": lambda n: {"metrics": [{"name": "a", "regex": _long(n, end="()")}]},
    "schedule.expression": lambda n: {
        "schedule": "rate(1 day)"[:n] if n < 12 else _long(n, "cron(0 6 * * ? 20", ")").replace("a", "2")
    },
    "tags": lambda n: {"tags": dict.fromkeys(_many(n), "v")},
    "tags.*": lambda n: {"tags": {_long(n): "v"}},
    "tags.*.value": lambda n: {"tags": {"team": _long(n)}},
    "resources.instance_count": _under("resources.instance_count"),
    "resources.instance_quota": _under("resources.instance_quota"),
    "resources.instance_groups": lambda n: _grouped(*_many(n)),
    "resources.instance_groups.*.name": lambda n: _grouped(_long(n)),
    "resources.volume_size_gb": _under("resources.volume_size_gb"),
    "resources.max_runtime": lambda s: {"resources": {"max_runtime": s}},
    "resources.max_wait": lambda s: {"resources": {"max_runtime": "1s", "spot": True, "max_wait": s}},
    "resources.max_pending": lambda s: {"resources": {"max_runtime": "1h", "max_pending": s}},
    "resources.max_keep_alive": _under("resources.max_keep_alive"),
    "resources.checkpoint_local_path": lambda n: {"resources.checkpoint_local_path": _long(n, "/")},
    "resources.subnet_ids": lambda n: _in_a_network(subnets=n),
    "resources.subnet_ids.*": lambda n: _in_a_network() | {"resources.subnet_ids": [_long(n)]},
    "resources.security_group_ids": lambda n: _in_a_network(groups=n),
    "resources.security_group_ids.*": lambda n: _in_a_network() | {"resources.security_group_ids": [_long(n)]},
    "resources.volume_kms_key_arn": lambda n: {"resources.volume_kms_key_arn": _long(n, _KEY)},
    "resources.output_kms_key_arn": lambda n: {"resources.output_kms_key_arn": _long(n, _KEY)},
    "resources.output_s3_uri": lambda n: {"resources.output_s3_uri": _long(n, f"{_DATA}/")},
    "resources.retry_attempts": _under("resources.retry_attempts"),
    "resources.poll_interval": lambda s: {"resources": {"max_runtime": "20m", "poll_interval": s}},
    "attempts": lambda n: {"attempts": [{"name": name, "instance_type": "ml.m5.large"} for name in _many(n)]},
    "attempts.*.name": lambda n: {"attempts": [{"name": _long(n), "instance_type": "ml.m5.large"}]},
    "attempts.*.reason": lambda n: {
        "attempts": [{"name": "only", "instance_type": "ml.m5.large", "reason": _long(n)}],
    },
    "attempts.*.warm_pool": lambda s: {
        "resources.max_keep_alive": "21600s",
        "attempts": [{"name": "only", "instance_type": "ml.m5.large", "warm_pool": s}],
    },
    "processing": lambda n: {"processing": [_STEP | {"name": name} for name in _many(n)]},
    "processing.*.name": lambda n: _step(name=_long(n)),
    "processing.*.code.arguments": lambda n: _step(code=_STEP["code"] | {"arguments": _many(n)}),
    "processing.*.code.arguments.*": lambda n: _step(code=_STEP["code"] | {"arguments": [_long(n)]}),
    "processing.*.code.entry_point": lambda n: _step(code=_STEP["code"] | {"entry_point": _script(n)}),
    "processing.*.environment": lambda n: _step(environment=dict.fromkeys(_many(n), 1)),
    "processing.*.environment.*": lambda n: _step(environment={_long(n): 1}),
    "processing.*.environment.*.value": lambda n: _step(environment={"TEXT": _long(n)}),
    "processing.*.inputs": lambda n: {
        "processing": [
            {key: value for key, value in _STEP.items() if key != "code"}
            | {
                "image": {"uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1"},
                "inputs": {name: f"{_DATA}/{name}/" for name in _many(n)},
            }
        ]
    },
    "processing.*.inputs.*": lambda n: _step(inputs={_long(n): f"{_DATA}/a/"}),
    "processing.*.inputs.*.uri": lambda n: _step(inputs={"a": {"uri": _long(n, f"{_DATA}/")}}),
    "processing.*.outputs": lambda n: _step(outputs=_many(n)),
    "processing.*.outputs.*": lambda n: _step(outputs=[_long(n)]),
    "processing.*.resources.instance_count": lambda n: _step(resources=_STEP["resources"] | {"instance_count": n}),
    "processing.*.resources.volume_size_gb": lambda n: _step(resources=_STEP["resources"] | {"volume_size_gb": n}),
    "processing.*.resources.max_runtime": lambda s: _step(resources=_STEP["resources"] | {"max_runtime": s}),
    "tuning.max_jobs": lambda n: _search(max_jobs=n, strategy="Random"),
    "tuning.trials": lambda n: _search(max_jobs=n),
    "tuning.max_parallel_jobs": lambda n: _search(max_jobs=750, max_parallel_jobs=n, parallel_quota=100),
    "tuning.parallel_quota": lambda n: _search(parallel_quota=n),
    "tuning.max_runtime": lambda s: _search(max_runtime=s) | {"resources": {"max_runtime": "1s"}},
    "tuning.seed": lambda n: _search(seed=n),
    "tuning.ranges": lambda n: _search(ranges={name: [1, 2] for name in _many(n)}),
    "tuning.ranges.*": lambda n: _search(ranges={_long(n): [1, 2]}),
    "tuning.ranges.*.values": lambda n: _search(ranges={"rate": list(range(n))}),
    "tuning.environment": lambda n: _search() | {"environment": dict.fromkeys(_many(n), 1)},
    "tuning.metrics": lambda n: (
        _search() | {"metrics": [{"name": "loss", "regex": "a=(.*)"}, *_metrics(n - 1 - LAUNCHER_METRICS)]}
    ),
    "tuning.ranges.*.values.*": lambda n: _search(ranges={"rate": [_long(n), "b"]}),
}


#: The shortest that other rules let through, where that is longer than the bound.
SHORTEST = {
    "code.entry_point": len("a.py"),
    "image.algorithm_arn": len("arn:aws:sagemaker:us-east-1:123456789012:algorithm/a"),
    "image.uri": len("123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1"),
    "metrics.*.regex": len("()"),
    "processing.*.code.entry_point": len("a.py"),
    "resources.output_kms_key_arn": len(_KEY) + 1,
    "resources.volume_kms_key_arn": len(_KEY) + 1,
    "schedule.expression": len("rate(1 day)"),
}
#: A message names another field where the table has a row for the sake of the bound, or the field a short form.
SAID = {
    "schedule.expression": "schedule",
    "tuning.environment": "environment",
    "tuning.metrics": "metrics",
    "tuning.trials": "tuning.max_jobs",
}


def _sizes(row: Limit) -> Iterator[tuple[int, bool]]:
    """The bounds of a row, and what is one beyond; whether each is taken."""
    if row.least is not None:
        yield SHORTEST.get(row.field, row.least), True
        yield row.least - 1, False
    if row.most is not None:
        yield row.most, True
        yield row.most + 1, False


CASES = [(row, size, taken) for row in limits().values() for size, taken in _sizes(row)]


@pytest.mark.parametrize(("row", "size", "taken"), CASES, ids=[f"{row.field} {size}" for row, size, _ in CASES])
def test_a_field_is_taken_up_to_its_bound(tmp_path: Path, row: Limit, size: int, taken: bool) -> None:
    changes = WRITTEN[row.field](f"{size}s" if row.of == "seconds" else size)
    path = write_job(tmp_path, changes, job=JOB)
    _write_scripts(tmp_path / "src", yaml.safe_load(path.read_text(encoding="utf-8")))
    if taken:
        load_job(str(path))
        return
    with pytest.raises(SagefitError) as refused:
        load_job(str(path))
    assert SAID.get(row.field, row.field).split(".*")[0] in refused.value.message


def _write_scripts(folder: Path, job: dict[str, Any]) -> None:
    for place in [job, *job.get("processing", [])]:
        script = folder / (place.get("code") or {}).get("entry_point", "train.py")
        script.parent.mkdir(parents=True, exist_ok=True)
        if script.name.endswith(".py"):
            script.touch()


def test_every_row_is_asked() -> None:
    assert set(WRITTEN) == set(limits())
