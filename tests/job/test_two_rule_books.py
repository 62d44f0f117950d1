"""The job file and ``modules/training-job`` refuse the same: every run of the module's tests, asked of Sagefit.

What a run gives the module is written as the job file that would render to it. Where the module refuses it, Sagefit
does before Terraform starts, with file, field, rule and knob; where the module plans it, Sagefit does too.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from sagefit import deploy
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.job.limit_rules import LONGEST_SPOT_WAIT
from sagefit.job.limits import Limit, limits
from sagefit.job.model import Job
from sagefit.job.uploads import MOST_FILES
from sagefit.paths import ROOT, TRAINING_JOB_MODULE
from sagefit.planning import limits as limits_of_services
from sagefit.planning import plan
from sagefit.platform import Platform
from terraform.as_job import as_job
from terraform.runs import Run, TestFile, test_files
from terraform_console import evaluate

#: Where the fields of a variable stand in a job file, if not under its own name.
PLACES = {
    "environment": ("environment", "attempts"),
    "hyperparameters": ("hyperparameters", "attempts"),
    "channels": ("inputs", "hyperparameters"),
    "metric_definitions": ("metrics",),
    "resources": ("resources", "attempts", "inputs"),
    "attempts": ("attempts", "resources", "inputs"),
    "code": ("code", "inputs"),
    "tuning": (
        "tuning",
        "hyperparameters",
        "attempts",
        "metrics",
        "environment",
        "name",
        "schedule",
        "code",
        "resources",
    ),
}
_PLATFORM = "it is the platform's document that is wrong, which Sagefit reads when it is fetched"
_PROVIDER = "Sagefit's own root has one provider, which reads the platform's document where it works"
_ARN = "what AWS calls a resource is known when Terraform has made it"
_WARNING = "a warning, which ends no plan"
TERRAFORM_ALONE = {
    "channel_has_one_source": "a job file has one uri for S3 and for local data",
    "platform_schema": _PLATFORM,
    "platform_account_id_pattern": _PLATFORM,
    "platform_role_arn_pattern": _PLATFORM,
    "the_provider_works_in_the_platforms_region": _PROVIDER,
    "the_provider_works_in_the_platforms_account": _PROVIDER,
    "the_provider_works_in_the_platforms_partition": _PROVIDER,
    "policies_name_the_arn_of_the_state_machine": _ARN,
    "policies_name_the_arn_of_the_log_group": _ARN,
    "policies_name_the_arn_of_the_machines_role": _ARN,
    "policies_name_the_arn_of_the_jobs_role": _ARN,
    "policies_name_the_arn_of_the_schedules_role": _ARN,
    "policy_of_the_role_fits_iam": "how long a policy is, is known when Terraform has written it",
    "runtime_above_the_default_quota": _WARNING,
    "pending_limit_on_a_cpu_instance": _WARNING,
    "encryption_with_one_instance": _WARNING,
}
JOB_FILE_ALONE = {
    "a_warm_pool_lends_its_shape": "what is rendered says how large the disk of every attempt is",
    "training_jobs_without_a_launcher_share_no_checkpoints": "a framework's image trains nothing without a script",
}
_VARIABLES = re.compile(r"^( *)variables \{\n(.*?)^\1\}", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """A run of the module's tests, and the values of the variables that it gives."""

    run: Run
    variables: dict[str, Any]


def _body(text: str) -> str:
    found = _VARIABLES.search(text)
    return found[2] if found else ""


def runs() -> list[tuple[TestFile, Run]]:
    """Those of the module itself, not of one that calls it."""
    files = [file for file in test_files(ROOT) if file.root == TRAINING_JOB_MODULE.relative_to(ROOT)]
    return [(file, run) for file in files for run in file.runs if run.source == "."]


RUNS = {f"{file.path.name.split('.')[0]}-{run.name}": (file, run) for file, run in runs()}
#: Variables for whoever uses the module alone.
_NOT_IN_A_JOB_FILE = ("tracing",)
EXCEPTIONS = [key for key, (_, run) in RUNS.items() if run.name in {**TERRAFORM_ALONE, **JOB_FILE_ALONE}]
REFUSED = [key for key, (_, run) in RUNS.items() if run.expects and key not in EXCEPTIONS]
PLANNED = [key for key, (_, run) in RUNS.items() if not run.expects and key not in EXCEPTIONS]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    """All runs; Terraform works out their values, in one process."""
    folder = tmp_path_factory.mktemp("values")
    files = list(dict.fromkeys(file.path for file, _ in RUNS.values()))
    heads = {file.path: _body(file.head) for file, _ in RUNS.values()}
    text = [f"locals {{\n  head_{files.index(path)} = {{\n{body}}}\n}}\n" for path, body in heads.items()]
    for number, (file, run) in enumerate(RUNS.values()):
        head = f"local.head_{files.index(file.path)}"
        body = re.sub(r"\bvar\.", f"{head}.", _body(run.text))
        text.append(f"locals {{\n  run_{number} = merge({head}, {{\n{body}}})\n}}\n")
    (folder / "main.tf").write_text("".join(text), encoding="utf-8")
    # In JSON one by one: a list of objects would have to have one type.
    values = evaluate(folder, f"[{', '.join(f'jsonencode(local.run_{number})' for number in range(len(RUNS)))}]")
    return {key: Asked(RUNS[key][1], json.loads(value)) for key, value in zip(RUNS, values, strict=True)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Beside the files that the runs name."""
    shutil.copytree(TRAINING_JOB_MODULE / "tests", tmp_path / "tests")
    return tmp_path


def answer(folder: Path, variables: dict[str, Any]) -> str:
    """What Sagefit says of the job file of these variables; empty where it takes it."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(as_job(variables), sort_keys=False, allow_unicode=True), encoding="utf-8")
    document = {name: value for name, value in variables["platform"].items() if name in Platform.model_fields}
    try:
        deploy.check(plan(load_job(path)), Platform.model_validate({"schema_": 1} | document))
    except SagefitError as error:
        return str(error)
    return ""


def problems(said: str) -> Iterator[tuple[str, str]]:
    """The lines with a field, each with the line of its knob."""
    return ((rule, knob) for rule, knob in pairwise(said.splitlines()) if re.match(r"\S*job\.yaml(:\d+)?: ", rule))


def test_exceptions_are_of_runs() -> None:
    assert {*TERRAFORM_ALONE, *JOB_FILE_ALONE} == {RUNS[key][1].name for key in EXCEPTIONS}
    assert len(REFUSED) > 200


@pytest.mark.parametrize("run", REFUSED)
def test_what_the_module_refuses_is_refused_before(run: str, folder: Path, asked: dict[str, Asked]) -> None:
    it = asked[run]
    try:
        said = answer(folder, it.variables)
    except KeyError as unknown:
        pytest.fail(f"no job file has {unknown}: give the run a place in TERRAFORM_ALONE")
    told = list(problems(said))
    assert told, said or "Sagefit takes it"
    assert all(knob.startswith("  ") and knob.strip() for _, knob in told), said
    subjects = [subject.removeprefix("var.") for subject in it.run.expects if subject.startswith("var.")]
    places = [place for subject in subjects for place in PLACES.get(subject, (subject,))]
    named = [rule.split(": ")[1].split(".")[0].split("[")[0] for rule, _ in told]
    assert not places or {*places} & {*named}, said


@pytest.mark.parametrize("run", PLANNED)
def test_what_the_module_plans_is_taken(run: str, folder: Path, asked: dict[str, Asked]) -> None:
    variables = {name: value for name, value in asked[run].variables.items() if name not in _NOT_IN_A_JOB_FILE}
    if schedule := variables.get("schedule"):
        variables["schedule"] = {name: value for name, value in schedule.items() if name != "enabled"}
    assert answer(folder, variables) == ""


@pytest.mark.parametrize("run", EXCEPTIONS)
def test_an_exception_is_still_one(run: str, folder: Path, asked: dict[str, Asked]) -> None:
    try:
        refused = answer(folder, asked[run].variables) != ""
    except KeyError:
        refused = False
    assert refused == (RUNS[run][1].name in JOB_FILE_ALONE)


def test_the_module_reads_every_bound_of_the_table() -> None:
    """A bound that only Python has would be no rule for who uses the module alone."""
    text = "".join(file.read_text(encoding="utf-8") for file in sorted(TRAINING_JOB_MODULE.glob("*.tf")))
    read = set(re.findall(r'_limits\["([^"]+)"\]\.most', text)) | set(re.findall(r'_limits\["([^"]+)"\]\]', text))
    patterns = set(re.findall(r'_limits\["([^"]+)"\]\.pattern', text))
    unread = [row for row in limits().values() if row.most is not None and row.field not in read]
    left = [row for row in unread if not (row.field in patterns and _ends(row))]
    assert {row.field: limits()[_SAME_AS[row.field]].most == row.most for row in left} == dict.fromkeys(_SAME_AS, True)


@pytest.mark.parametrize(
    ("file", "written", "value"),
    [
        ("definition.tf", r"_looks += (\d+)", limits_of_services.LOOKS),
        ("definition.tf", r"worst_case_seconds / (\d+)", limits_of_services.LOOKS_PLANNED),
        ("definition.tf", r"max\((\d+), ceil", limits_of_services.LEAST_INTERVAL),
        ("state-machine.tf", r"_deadline_seconds <= (\d+)", limits_of_services.YEAR),
        ("state-machine.tf", r"size <= (\d+)", limits_of_services.REQUEST_BYTES),
        ("state-machine.tf", r"_definition_bytes <= (\d+)", limits_of_services.DEFINITION_BYTES),
        ("state-machine.tf", r"_files(?:\[\w+\], \[\]\))?\) <= (\d+)", MOST_FILES),
        ("variables-attempts.tf", r"max_wait_seconds[^?:&|]* <= (\d+)", LONGEST_SPOT_WAIT),
    ],
    ids=["looks", "looks-planned", "interval", "year", "request", "definition", "files", "spot-wait"],
)
def test_a_number_that_both_have_is_the_same(file: str, written: str, value: int) -> None:
    found = re.findall(written, (TRAINING_JOB_MODULE / file).read_text(encoding="utf-8"))
    assert set(found) == {str(value)}


#: Fields whose bound is that of another one, which the module reads for both.
_SAME_AS = {
    "code.entry_point": "code.arguments.*",
    "resources.security_group_ids.*": "resources.subnet_ids.*",
}


def _ends(row: Limit) -> bool:
    """Whether the pattern itself lets no longer text through than the bound."""
    return re.search(r"\{\d*,?(\d+)\}", row.pattern or "") is not None


def test_rows_of_the_table_are_of_fields_of_a_job_file() -> None:
    assert {row.field.split(".")[0] for row in limits().values()} <= set(Job.model_fields)
    for row in limits().values():
        assert row.source
        assert row.pattern is None or row.words, f"{row.field}: say which texts the pattern lets through"
        assert row.least is not None or row.most is not None
