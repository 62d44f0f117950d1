"""Plan and apply: one job on its platform, or a platform."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from sagefit.console import command
from sagefit.errors import REFUSED, SagefitError
from sagefit.job import Job
from sagefit.job.limits import in_job_words
from sagefit.job.upload_rules import check_texts
from sagefit.job.values import NAME_PATTERN
from sagefit.paths import JOB_ROOT, PLATFORMS, ROOT, display
from sagefit.planning import JobPlan, check_max_price, repeats_note
from sagefit.planning.rendered import write
from sagefit.platform import NoPlatformError, Platform, load_platform
from sagefit.platform_rules import platform_problems
from sagefit.removal import applied_jobs
from sagefit.running import Run, running_runs
from sagefit.taken import may_take, taken
from sagefit.target import Target
from sagefit.terraform import Plan, Terraform, TerraformError
from sagefit.tfvars_file import read_variables

_REGIONAL = "regional_names"  # the variable of a platform
_MOST_RUNS = 5  # that are named
# The message of a rule of the module, without the text that Terraform adds about the rule.
_REFUSED = re.compile(
    r"^(?:Invalid value for variable|Resource precondition failed)(?: \([^)]*\))?: (?P<told>.*?)"
    r"(?=\n\nThis was checked by|\n(?:Invalid value for variable|Resource precondition failed)|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class PlannedJob:
    """A job's plan, the platform it goes to, and what Terraform planned and saved."""

    job_plan: JobPlan
    platform: Platform
    terraform: Terraform
    plan: Plan

    @property
    def job(self) -> Job:
        """The job itself."""
        return self.job_plan.job

    @property
    def where(self) -> str:
        """What an apply would change, for the question before it."""
        return f"platform {self.platform.name}, account {self.platform.account_id}, {self.platform.region}"

    @property
    def worst_case(self) -> str:
        """What a run can cost."""
        usd = self.job_plan.worst_case_usd(self.platform.region)
        estimated = " by estimated prices" if self.job_plan.prices_estimated(self.platform.region) else ""
        if usd is None:
            return "what a run costs is not known"
        return f"a run costs at most {usd:.2f} USD{estimated}; {repeats_note(usd)}"


def job_terraform(job: Job, target: Target, platform: Platform | None = None) -> Terraform:
    """The ``job/`` root with this job's variables and state; ``platform`` is the job's, if it was read already."""
    key = f"{job.platform}/jobs/{job.name}"
    return Terraform(
        JOB_ROOT,
        key,
        target,
        variables=job.tfvars,
        called=job.reference,
        suffix=lambda: (platform or load_platform(job.platform)).global_suffix,
    )


def plan_job(job_plan: JobPlan, target: Target, *, destroy: bool = False, saved_at: Path | None = None) -> PlannedJob:
    """Render, check against the platform, and let Terraform plan. Nothing is created.

    With ``saved_at`` the plan is saved there, and the one that `apply_saved` takes stays as it is.
    Raises SagefitError, with exit code 4 for an edited render or a job over its ``max_price``.
    """
    job = job_plan.job
    platform = load_platform(job.platform)
    if not destroy:
        check(job_plan, platform)
    terraform = job_terraform(job, target, platform)
    terraform.plan_path = saved_at or terraform.plan_path
    with terraform.held():
        if not (destroy and job.tfvars.exists()):
            write(job_plan)
        with _in_words_of(job):
            plan = terraform.plan(destroy=destroy)
        takes = may_take((change.address, [change.action]) for change in plan.changes)
        note = {"inputs": _inputs(job_plan, destroy=destroy), "takes": takes, "destroy": destroy}
        _note(plan.path).write_text(json.dumps(note), encoding="utf-8")
    return PlannedJob(job_plan, platform, terraform, plan)


def apply_saved(job_plan: JobPlan, target: Target) -> None:
    """Apply the plan that was saved last, and no other.

    Raises SagefitError: exit code 2 when there is none; 4 when the job changed after it was planned, or when the plan
    takes away what a run in progress may still need.
    """
    terraform = job_terraform(job_plan.job, target)
    with terraform.held():
        _apply_saved(job_plan, terraform)


def _apply_saved(job_plan: JobPlan, terraform: Terraform) -> None:
    job = job_plan.job
    path, note = terraform.plan_path, _note(terraform.plan_path)
    if not path.exists() or not note.exists():
        raise SagefitError(f"no saved plan of {job.name}", hint=f"make one: {command('plan', job.reference)}")
    noted = json.loads(note.read_text(encoding="utf-8"))
    if not noted["destroy"]:  # first, for a new plan of what is not allowed would be refused as well
        check(job_plan, load_platform(job.platform))
    if noted["inputs"] != _inputs(job_plan, destroy=noted["destroy"]):
        raise SagefitError(
            f"stale plan: {display(job.path)}, its code or local data changed after the plan was made",
            hint=f"plan again: {command('plan', job.reference)}",
            exit_code=REFUSED,
        )
    if noted.get("takes", True):  # an earlier version noted something else
        refuse_under_runs(job, terraform, Plan(path))
    terraform.apply(Plan(path))


def check(job_plan: JobPlan, platform: Platform) -> None:
    """Refuse a job that the platform does not allow, may cost more than its own limit, or would upload credentials."""
    job = job_plan.job
    if found := list(platform_problems(job_plan, platform)):
        raise job.refusal(found)
    check_max_price(job_plan, platform.region)
    check_texts(job)


@contextlib.contextmanager
def _in_words_of(job: Job) -> Iterator[None]:
    """Report what only the module can refuse, with the path, the line and the field names of the job file."""
    try:
        yield
    except TerraformError as error:
        told = [match["told"].strip() for match in _REFUSED.finditer(error.message)]
        if not told:
            raise
        rows = [_placed(job, in_job_words(text)) for text in dict.fromkeys(told)]
        raise SagefitError("\n".join(rows), hint=f"correct {display(job.path)}") from error


def _placed(job: Job, told: str) -> str:
    first = re.split(r"[\[:,]", told, maxsplit=1)[0]
    line = job.line(tuple(first.split(".")))
    return f"{display(job.path)}{f':{line}' if line else ''}: {told}"


def refuse_under_runs(job: Job, terraform: Terraform, plan: Plan) -> None:
    """Refuse a saved plan that takes something from a run in progress, if there is one."""
    running = running_runs(job.name, load_platform(job.platform))
    if running and (found := taken(json.loads(terraform.show_json(plan)))):
        raise SagefitError(
            f"{_in_progress(running)} in progress, and this plan takes away what may be needed:\n{_listed(found)}",
            hint=f"wait ({command('watch', running[0].name)}), or end it: {command('stop', running[0].name)}",
            exit_code=REFUSED,
        )


def platform_remark(name: str, terraform: Terraform, plan: Plan) -> str | None:
    """What a saved plan of a platform takes from runs of its jobs, if it does and there are some.

    It is said, not refused: on a platform there may always be a run, and who takes a right away may have to.
    """
    found = taken(json.loads(terraform.show_json(plan)))
    if not found:
        return None
    try:
        platform = load_platform(name)
        running = [run for job in applied_jobs(name) for run in running_runs(job, platform)]
    except NoPlatformError:
        return None
    except (ClientError, BotoCoreError, SagefitError) as error:
        who = f"whether runs are in progress is not known ({' '.join(str(error).split())}), and"
    else:
        if not running:
            return None
        who = f"{_in_progress(running)} in progress, and"
    return (
        f"{who} this plan takes away what jobs of platform {name} may need:\n{_listed(found)}\n"
        "Add first what replaces it, then apply the jobs, and remove it last (docs/platform.md)."
    )


def _in_progress(running: Sequence[Run]) -> str:
    names = ", ".join(run.name for run in running[:_MOST_RUNS])
    if (more := len(running) - _MOST_RUNS) > 0:
        names += f" and {more} more"
    return f"{names} {'is' if len(running) == 1 else 'are'}"


def _listed(found: Sequence[str]) -> str:
    return "\n".join(f"- {each}" for each in found)


def platform_terraform(
    name: str, target: Target, folder: Path = PLATFORMS, *, variables: Path | None = None
) -> Terraform:
    """The platform root. Its variables are in ``variables``, else in ``NAME.tfvars`` of ``folder`` if that exists."""
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > 20:
        raise SagefitError(
            f"platform: {name!r} is no name of a platform",
            hint="use up to 20 lower-case letters, digits, single hyphens",
        )
    variables = variables or folder / f"{name}.tfvars"
    if not variables.exists() and name != "dev":
        raise SagefitError(
            f"platform: no variables for {name!r} ({display(variables)} is missing)",
            hint=f'create it with at least: name = "{name}"',
        )
    return Terraform(
        ROOT,
        f"{name}/platform",
        target,
        variables=variables if variables.exists() else None,
        suffix=lambda: _suffix(variables),
    )


def _suffix(variables: Path) -> str:
    """The root's ``global_suffix``, by the variables and the region of the environment."""
    if not variables.exists() or _REGIONAL not in variables.read_text(encoding="utf-8"):
        return ""
    read = read_variables(variables, {_REGIONAL: ("bool", "false")}, f"write {_REGIONAL} = true, or leave it out")
    return f"_{boto3.Session().region_name}" if read[_REGIONAL] else ""


def _note(plan: Path) -> Path:
    return plan.with_suffix(".json")


def _inputs(job_plan: JobPlan, *, destroy: bool) -> str:
    """A digest of all that Terraform's plan reads from this machine: Terraform opens the files again at apply.

    A destroy depends only on what was applied. The job file of today does not matter, even if the job no longer fits.
    """
    job, digest = job_plan.job, hashlib.sha256(b"" if destroy else job_plan.text.encode("utf-8"))
    for path in [job.tfvars, *(path for upload in job.uploads for path in upload.files())]:
        if path.is_file():
            digest.update(f"{path}\0{path.stat().st_size}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
