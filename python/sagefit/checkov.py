"""checkov, which judges Terraform files and plans with its own checks and those of ``policies/``.

checkov pins old versions of packages that Sagefit needs in new versions. So it has an environment of its own, from
``requirements-checkov.lock``, which the first use installs. checkov ends with exit code 0 even when it could not read
its input or load a check. So its report is verified here: whatever checkov did not judge is an error.

| variable | means |
|---|---|
| ``SAGEFIT_CHECKOV`` | the checkov to run instead of the pinned one |
| ``SAGEFIT_MEMORY_HEADROOM_PERCENT``, ``SAGEFIT_ALLOWED_INSTANCE_TYPES`` | of our checks: docs/policies.md |
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sagefit import environments
from sagefit.errors import FAILED, SagefitError
from sagefit.paths import ROOT, display, home

POLICIES = ROOT / "policies"
_LOCK = ROOT / "requirements-checkov.lock"
_UNRATED = "MEDIUM"
_SETTINGS = {
    "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true",
    "BC_SKIP_MAPPING": "TRUE",  # with --skip-download: no network at all
    "CKV_PARSE_ERROR_FAIL": "true",
    "EVAL_TF_PLAN_AFTER_UNKNOWN": "1",  # a key that is being made is not a missing key
    "LOG_LEVEL": "WARNING",
}

Status = Literal["failed", "passed", "skipped"]


@dataclass(frozen=True)
class Finding:
    """The result of one check for one resource.

    ``message`` says what is wrong; our own checks say it in detail. ``reason`` is the comment of a skip. ``file`` and
    ``line`` are where the resource is declared. A plan does not contain them, so a plan's findings need ``sources``.
    """

    check: str
    name: str
    severity: str
    status: Status
    address: str
    message: str
    reason: str | None = None
    file: str | None = None
    line: int | None = None


class ScanError(SagefitError):
    """Something was not judged: unreadable input, a check that did not load, or checkov itself."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint=hint, exit_code=FAILED)


def environment() -> Path:
    """The checkov to run; the first call installs it (about 300 MB) and takes a minute."""
    if named := os.environ.get("SAGEFIT_CHECKOV"):
        return Path(named).absolute()
    folder = home() / f"checkov-{environments.digest(_LOCK.read_bytes())}"
    return environments.built(folder, lambda new: environments.create(new, _LOCK)) / "bin" / "checkov"


def severities(policies: Path = POLICIES) -> dict[str, str]:
    """LOW, MEDIUM, HIGH or CRITICAL by check: our own, and those of checkov's that are not MEDIUM."""
    return {row["id"]: row["severity"] for name in ("severities", "checks") for row in _table(policies / f"{name}.csv")}


def scan(source: Path | Mapping[str, Any], *, policies: Path = POLICIES, sources: Sequence[Path] = ()) -> list[Finding]:
    """Judge a plan, as the JSON of ``terraform show -json`` or a file that holds it, or a directory of Terraform files.

    checkov's checks and those of ``policies`` judge a plan; ``sources`` are the directories with its Terraform files,
    which contain the skips. Only checkov's own checks judge a directory: our checks need values, which files seldom
    contain. A skip without a reason counts as a failure. Raises ScanError when something could not be judged.
    """
    with tempfile.TemporaryDirectory(prefix="sagefit-checkov-") as scratch:
        if isinstance(source, Path) and source.is_dir():
            report = _run(Path(scratch), ["--directory", str(source.resolve()), "--framework", "terraform"])
            if unread := report["results"].get("parsing_errors"):
                raise ScanError(
                    f"checkov cannot read {', '.join(unread)}",
                    "write the expression that it names in another way, or scan the plan, which holds values alone",
                )
            records = list(_records(report))
        else:
            plan = source if isinstance(source, Mapping) else _load(source)
            records = _scan_plan(Path(scratch), plan, policies, sources)
    rated, ours = severities(policies), {row["id"]: row for row in _table(policies / "checks.csv")}
    return [_finding(status, record, rated, ours) for status, record in records]


def _scan_plan(
    scratch: Path, plan: Mapping[str, Any], policies: Path, sources: Sequence[Path]
) -> list[tuple[Status, dict[str, Any]]]:
    expected = _resources(plan)
    if not expected:
        return []
    canary = _load(policies / "canary.json")
    files = {scratch / "plan.json": plan, scratch / "canary.json": canary}
    arguments = ["--framework", "terraform_plan", "--external-checks-dir", str(_checks(policies))]
    for path, content in files.items():
        # Not on one line: checkov quotes the lines of a resource, and that would be the whole plan with its secrets.
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        arguments += ["--file", str(path)]
    for folder in sources:
        arguments += ["--repo-root-for-plan-enrichment", str(folder.resolve())]
    report = _run(scratch, arguments)
    if unread := report["results"].get("parsing_errors"):
        raise ScanError(f"checkov cannot read {', '.join(unread)}", "make the plan again: terraform show -json PLAN")
    expected |= _resources(canary)
    if report["summary"]["resource_count"] < len(expected):
        raise ScanError(
            f"checkov saw {report['summary']['resource_count']} of {len(expected)} resources",
            "make the plan again: terraform show -json PLAN",
        )
    records = list(_records(report))
    planted = _resources(canary)
    awake = {record["check_id"] for status, record in records if status == "failed" and record["resource"] in planted}
    if asleep := {row["id"] for row in _table(policies / "checks.csv")} - awake:
        raise ScanError(
            f"{display(policies)}: not loaded or broken, for it passes canary.json: {' '.join(sorted(asleep))}",
            f"read what checkov says of {display(policies / 'checks')} with LOG_LEVEL=INFO",
        )
    return [(status, record) for status, record in records if record["resource"] not in planted]


def _load(path: Path) -> dict[str, Any]:
    """A plan from a file."""
    hint = "write it with: terraform show -json PLAN > FILE"
    try:
        plan = json.loads(path.read_bytes())
    except OSError as error:
        raise ScanError(f"{display(path)}: {error.strerror}", hint) from error
    except ValueError as error:
        raise ScanError(f"{display(path)}: is no JSON: {error}", hint) from error
    if not isinstance(plan, dict):
        raise ScanError(f"{display(path)}: is no plan", hint)
    return plan


def _resources(plan: Mapping[str, Any]) -> set[str]:
    """The addresses that checkov will see: what exists after the plan. None where it only destroys."""
    if "planned_values" not in plan or "format_version" not in plan:
        raise ScanError("the plan has no planned_values", "give the JSON of terraform show -json PLAN")
    if plan.get("errored"):
        raise ScanError("the plan is not complete, because Terraform met an error", "correct the error and plan again")
    changes = plan.get("resource_changes", [])
    forgotten = {change["address"] for change in changes if change["change"]["actions"] == ["forget"]}
    found = set(_addresses(plan["planned_values"].get("root_module", {}))) - forgotten
    if not found and not any(set(change["change"]["actions"]) & {"delete", "forget"} for change in changes):
        raise ScanError("the plan has no resources, so there is nothing to judge", "plan the root module that you mean")
    return found


def _addresses(module: Mapping[str, Any]) -> Iterator[str]:
    for resource in module.get("resources", []):
        if resource["mode"] == "managed":
            yield resource["address"]
    for child in module.get("child_modules", []):
        yield from _addresses(child)


def _checks(policies: Path) -> Path:
    folder = policies / "checks"
    if not (folder / "__init__.py").is_file():
        raise ScanError(f"{display(folder)}: has no __init__.py, so checkov would load no Python check", "add the file")
    return folder


def _table(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise ScanError(
            f"{display(path)}: {error.strerror}", "give the folder policies/ of Sagefit, or a copy of it"
        ) from error


def _run(scratch: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """The report. checkov gets only its own settings from this process, and reads no settings file of the user's."""
    kept = ("PATH", "LANG", "LC_ALL", "SAGEFIT_MEMORY_HEADROOM_PERCENT", "SAGEFIT_ALLOWED_INSTANCE_TYPES")
    inherited = {name: os.environ[name] for name in kept if name in os.environ}
    # It keeps its parser there, and takes what it finds: not from a folder that everybody may write to.
    temporary = home() / "checkov-parser"
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [str(environment()), *arguments, "--skip-download", "--compact", "--output", "json"]
    hint = f"run it yourself: {' '.join(command)}"
    try:
        done = subprocess.run(
            command,
            cwd=scratch,
            env=inherited | _SETTINGS | {"HOME": str(scratch), "TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise ScanError(f"checkov cannot be run: {error}", "correct or unset SAGEFIT_CHECKOV") from error
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = None
    if done.returncode not in (0, 1) or not isinstance(report, dict) or "results" not in report:
        said = done.stderr.strip()[-1000:] or f"exit code {done.returncode}, and no report"
        raise ScanError(f"checkov judged nothing: {said}", hint)
    return report


def _records(report: Mapping[str, Any]) -> Iterator[tuple[Status, dict[str, Any]]]:
    results = report["results"]
    statuses: tuple[Status, ...] = ("failed", "passed", "skipped")
    for status in statuses:
        for record in results.get(f"{status}_checks", []):
            yield status, record


def _finding(
    status: Status, record: Mapping[str, Any], rated: Mapping[str, str], ours: Mapping[str, Mapping[str, str]]
) -> Finding:
    check, name = record["check_id"], record["check_name"]
    why = f"{name}: {ours[check]['reason']}" if check in ours else name
    message = "; ".join(record.get("details") or []) or why
    reason = (record["check_result"].get("suppress_comment") or "").strip() if status == "skipped" else None
    if status == "skipped" and reason in ("", "No comment provided"):
        status, message, reason = "failed", f"skipped without a reason: {message}", None
    path = record["file_path"].lstrip("/")
    known = path != "plan.json"
    return Finding(
        check=check,
        name=name,
        severity=rated.get(check, _UNRATED),
        status=status,
        address=record["resource"],
        message=message,
        reason=reason,
        file=path if known else None,
        line=record["file_line_range"][0] if known else None,
    )
