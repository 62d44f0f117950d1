"""Combinations that SageMaker refuses, or that waste instances: refused by the job file's rules and by the module's.

Each message names the field, the rule and the knob. The module's own runs (``modules/training-job/tests``) fire its
rules; here their words are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from checkout import copy_tree
from job_files import write_job
from sagefit.errors import INVALID, SagefitError
from sagefit.job import load_job
from sagefit.paths import ROOT
from sagefit.planning import plan
from terraform.runs import refusals, test_files

Words = tuple[str, str, str]


@dataclass(frozen=True)
class Mode:
    """What is asked for, and the field, rule and knob that each of the two names; ``run`` asks the module for it."""

    name: str
    changes: dict[str, Any]
    python: Words
    run: str
    terraform: Words
    files: dict[str, str] = field(default_factory=dict)


_MANIFEST = "s3://bucket/train.manifest"
_FILE_SYSTEM = {"id": "fs-0123456789abcdef0", "type": "FSxLustre", "directory_path": "/data"}
_GROUPS = [{"name": "gpu", "instance_type": "ml.g5.xlarge"}, {"name": "cpu", "instance_type": "ml.c5.xlarge"}]

MODES = [
    Mode(
        "pipe with fsx",
        {"inputs.train": {"file_system": _FILE_SYSTEM, "mode": "Pipe"}},
        ("inputs.train", "a file system is read in File mode, not Pipe", "set inputs.train.mode to File"),
        "file_system_works_in_file_mode_only",
        ("channels[*].file_system", "work in File mode only", 'Set channels[*].mode = "File"'),
    ),
    Mode(
        "fast file with a manifest",
        {"inputs.train": {"uri": _MANIFEST, "mode": "FastFile", "s3_data_type": "ManifestFile"}},
        ("inputs.train", "FastFile mode reads an S3Prefix only", "set inputs.train.mode to File"),
        "fast_file_takes_prefixes_only",
        ("channels[*].mode", "FastFile streams S3Prefix data only", "Use File or Pipe"),
    ),
    Mode(
        "augmented manifest without pipe",
        {"inputs.train": {"uri": _MANIFEST, "s3_data_type": "AugmentedManifestFile", "attribute_names": ["source"]}},
        ("inputs.train", "an AugmentedManifestFile is read in Pipe mode only", "set inputs.train.mode to Pipe"),
        "augmented_manifest_needs_pipe_mode",
        ("channels[*].s3_data_type", "works in Pipe mode only", 'Set channels[*].mode = "Pipe"'),
    ),
    Mode(
        "tuning with a warm pool",
        {
            "resources.warm_pool": "10m",
            "metrics": [{"name": "accuracy", "regex": "accuracy=([0-9.]+)"}],
            "tuning": {
                "strategy": "Random",
                "objective": {"metric": "accuracy", "type": "Maximize"},
                "max_jobs": 2,
                "ranges": {"rate": {"min": 0.1, "max": 0.2}},
            },
        },
        ("resources.warm_pool", "keeps no instances warm for training jobs of a tuning job", "remove"),
        "warm_instances",
        ("resources.warm_pool", "keeps no instances warm for training jobs of a tuning job", "Remove the setting"),
    ),
    Mode(
        "groups with keep-alive",
        {"resources.instance_groups": _GROUPS, "resources.warm_pool": "10m", "attempts": None},
        ("resources.warm_pool", "SageMaker keeps no warm pool of instance groups", "remove one of the two"),
        "groups_are_not_kept_warm",
        ("attempts[*].keep_alive_seconds", "instance groups cannot be kept warm", "Set it to 0"),
    ),
    Mode(
        "isolation with pip requirements",
        {"resources.network_isolation": True},
        ("resources.network_isolation", "the container has no network", "code.offline_requirements: true"),
        "isolated_code_has_no_packages_to_install",
        ("resources.network_isolation", "has no network (API)", "set code.offline_requirements"),
        files={"src/requirements.txt": "tabulate==0.9.0\n"},
    ),
    Mode(
        "more instances than shards",
        {"inputs.train": {"uri": "data", "distribution": "ShardedByS3Key"}, "attempts.1.instance_count": 2},
        ("inputs.train.distribution", "deals out 1 file to the 2 instances of attempt large", "split the data"),
        "sharded_data_has_a_file_for_each_instance",
        ("channels[*].distribution", "gives each file to one instance (API)", "Split the data"),
    ),
    Mode(
        "channel named code",
        {"inputs.code": "data"},
        ("inputs.code", "is used by Sagefit itself", "rename it"),
        "channel_name_code_is_taken",
        ("channels", "belong to the training code and the launcher", "Rename the channel"),
    ),
]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_the_job_file_is_refused(tmp_path: Path, mode: Mode) -> None:
    path = write_job(tmp_path, mode.changes)
    for name, text in mode.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SagefitError) as caught:
        plan(load_job(str(path)))
    assert caught.value.exit_code == INVALID
    named, rule, knob = mode.python
    lines = caught.value.message.splitlines()
    told = [said for said in pairwise(lines) if f": {named}: " in said[0]]
    assert any(rule in problem and knob in turn for problem, turn in told), caught.value.message
    assert all("digits.yaml:" in problem for problem, _ in told)


def test_what_the_modes_need_otherwise_is_accepted(tmp_path: Path) -> None:
    """Two refusals go away by their knobs."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "requirements.txt").write_text("tabulate==0.9.0\n", encoding="utf-8")
    offline = write_job(tmp_path, {"resources.network_isolation": True, "code.offline_requirements": True})
    assert "offline_requirements = true" in plan(load_job(str(offline))).text
    (tmp_path / "data" / "b.csv").write_text("3,4\n", encoding="utf-8")
    sharded = {"uri": "data", "distribution": "ShardedByS3Key"}
    shared = write_job(tmp_path, {"inputs.train": sharded, "attempts.1.instance_count": 2})
    assert "ShardedByS3Key" in plan(load_job(str(shared))).text


def test_the_module_refuses_them_too(tmp_path: Path) -> None:
    """One process of Terraform for each file of runs; the words are those of the rule that fired."""
    copy_tree(tmp_path)
    wanted = {mode.run: mode.terraform for mode in MODES}
    said: dict[str, list[str]] = {}
    for file in test_files(ROOT):
        module = file.path.parts[:2] == ("modules", "training-job")
        runs = [run for run in file.runs if run.name in wanted and module]
        said |= {run.name: errors for run, errors in refusals(tmp_path, file, runs)}
    assert said.keys() == wanted.keys()
    for name, (named, rule, knob) in wanted.items():
        (error,) = said[name]
        assert error.startswith(named), error
        assert rule in error, error
        assert knob in error, error
