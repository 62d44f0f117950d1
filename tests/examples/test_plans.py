"""Every job of the examples is valid, freshly rendered, and planned by the real Terraform and the real AWS provider.

The usual level plans those that use, together, every field that an example uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from examples.promises import EXAMPLES, PROMISED
from plans.cases import Case
from plans.terraform import embedded_cloud, plan_all
from sagefit.cloud import faults
from sagefit.errors import SagefitError
from sagefit.examples import faults_files
from sagefit.job import Job, load_job
from sagefit.paths import PLATFORMS
from sagefit.planning import plan
from sagefit.planning.rendered import check_rendered

pytestmark = pytest.mark.xdist_group("plans")  # one at a time: each takes a gigabyte

SCHEDULED = "scheduled"  # what its schedule starts is looked at here
MACHINE = "module.job.aws_sfn_state_machine.this"


@dataclass(frozen=True)
class Given(Case):
    """A case whose values come from elsewhere than the cases' folder."""

    text: str

    @property
    def target(self) -> str:
        """The root for a platform, ``job`` for a job."""
        return "job" if self.name.startswith("job/") else "."

    @property
    def values(self) -> str:
        """Text of its tfvars."""
        return self.text


def fields(value: object, place: str = "") -> Iterator[str]:
    """The fields of a job file that are given, by their place; what the user names is not part of it."""
    if isinstance(value, BaseModel):
        for name in sorted(value.model_fields_set):
            yield f"{place}.{name}"
            yield from fields(getattr(value, name), f"{place}.{name}")
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from fields(each, place)


def chosen() -> set[str]:
    """Few of the examples that use all fields that one of them uses: again and again that with the most new ones."""
    used: dict[str, set[str]] = {}
    for name, example in EXAMPLES.items():
        with suppress(SagefitError):
            used[name] = set(fields(load_job(str(example.path))))
    found, left = {SCHEDULED}, set().union(*used.values()) - used.get(SCHEDULED, set())
    while left:
        best = max(used, key=lambda name: len(used[name] & left))
        found.add(best)
        left -= used[best]
    return found


def cases(names: Collection[str]) -> Iterator[Given]:
    """The platforms that these examples name, and their jobs."""
    jobs: dict[str, tuple[Job, str]] = {}
    for name in names:
        with suppress(SagefitError):  # its own tests say what is wrong with it, and the others go on
            job = load_job(str(EXAMPLES[name].path))
            jobs[name] = job, plan(job).text
    for platform in {job.platform for job, _ in jobs.values()}:
        variables = PLATFORMS / f"{platform}.tfvars"
        yield Given(f"platforms/{platform}", variables.read_text("utf-8") if variables.exists() else 'name = "dev"')
    for name, (_, text) in jobs.items():
        yield Given(f"job/{name}", text)


_CHOSEN = chosen()
_FULL = pytest.mark.full(witness=f"tests/examples/test_plans.py::test_the_job_is_planned[{SCHEDULED}]")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Every job as it is planned: one start of the provider for all that this session looks at."""
    names = list(EXAMPLES) if request.config.option.level == "full" else sorted(_CHOSEN)
    with embedded_cloud(tmp_path_factory.mktemp("cloud")) as environment:
        return plan_all(list(cases(names)), tmp_path_factory.mktemp("tree"), environment)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rendered_file_is_up_to_date(name: str) -> None:
    check_rendered(plan(load_job(str(EXAMPLES[name].path))))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _CHOSEN else _FULL, id=name) for name in EXAMPLES]
)
def test_the_job_is_planned(name: str, plans: dict[str, dict[str, Any]]) -> None:
    planned, job = plans[f"job/{name}"], load_job(str(EXAMPLES[name].path))
    machine = planned["values"][MACHINE]
    assert machine["name"] == f"sagefit-{job.platform}-{job.name}"
    states = machine["definition"]["States"]
    assert [a.name for a in plan(job).attempts if not any(a.name in state for state in states)] == []
    told = [warning.partition(",")[0] for warning in planned["warnings"]]
    assert told == PROMISED.get(name, {}).get("warnings", [])


def test_the_scheduler_starts_the_state_machine(plans: dict[str, dict[str, Any]]) -> None:
    planned = plans[f"job/{SCHEDULED}"]["values"]
    schedule = planned["module.job.aws_scheduler_schedule.this[0]"]
    assert schedule["schedule_expression"] == "cron(0 6 ? * MON *)"
    assert schedule["schedule_expression_timezone"] == "Europe/Berlin"
    (target,) = schedule["target"]
    assert target["arn"].endswith(":scheduler:::aws-sdk:sfn:startExecution")
    assert target["input"]["StateMachineArn"].endswith(f":stateMachine:{planned[MACHINE]['name']}")


def test_every_example_says_what_it_shows() -> None:
    assert [name for name, example in EXAMPLES.items() if not example.shows] == []


def test_jobs_are_named_apart() -> None:
    names = [example.job for example in EXAMPLES.values()]
    assert sorted(names) == sorted(set(names))


def test_faults_are_those_of_one_example() -> None:
    """All examples share a cloud, so each fault has to say whose it is."""
    for path in faults_files(EXAMPLES.values()):
        own = {example.job for example in EXAMPLES.values() if example.path.parent == path.parent}
        assert {fault.match.job for fault in faults.load(path)} <= own, path
