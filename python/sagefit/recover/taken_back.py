"""Bring a stack back in order after an apply that was killed: its state file, its lock, and what its state misses."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sagefit.console import command, err
from sagefit.errors import REFUSED, SagefitError
from sagefit.recover.names import Place, identifiers
from sagefit.terraform import Plan, StateLock, Terraform, TerraformError

_IMPORTS = "imports.tf"
_OWNER = ("sagefit:platform", "sagefit:job")  # tags that say whose something is
_TAGGED_LATER = {"aws_s3_bucket"}  # made by one call and tagged by another
_TRIES = 10  # plans; each leaves something out


@dataclass(frozen=True)
class Found:
    """What exists and is not in the state: a plan that takes it in, and what cannot be taken in, with the reason."""

    plan: Plan | None
    refused: dict[str, str] = field(default_factory=dict)


def recover(terraform: Terraform, agreed: Callable[[Plan], bool], *, lock: str | None = None) -> int:
    """Recover a stack; returns how many things were taken into its state.

    Args:
        terraform: The stack.
        agreed: Shows what would be taken into the state, and asks.
        lock: The identifier of a lock to release, whoever holds it: for a holder that is known to be gone.

    Raises SagefitError when somebody holds the state, and (exit code 4) when something exists that is not of this
    stack.
    """
    with terraform.aside() as stack:
        mend_state_file(stack)
        plan = _planned(stack, terraform.root, lock)
        if stack.push_unsaved_state():
            _say(stack, "the state that an apply could not write is written")
            plan = stack.plan()
        found = missing(stack, plan)
        count = 0
        if found.plan and agreed(found.plan):
            stack.apply(found.plan)
            count = found.plan.count("import")
    for address, reason in found.refused.items():
        _say(stack, f"{address} {reason}")
    if found.refused:
        raise SagefitError(
            f"{stack.key}: {len(found.refused)} exist and were not taken into the state",
            hint="rename or remove them, or import them by hand if they are of this stack: terraform import",
            exit_code=REFUSED,
        )
    return count


def missing(stack: Terraform, plan: Plan) -> Found:
    """What a plan would create, and that exists already. ``stack`` has a root aside."""
    wanted = identifiers(json.loads(stack.show_json(plan)), Place.here()) if plan.count("create") else {}
    refused: dict[str, str] = {}
    for _ in range(_TRIES):
        if not wanted:
            return Found(None, refused)
        (stack.root / _IMPORTS).write_text("".join(_blocks(wanted)), encoding="utf-8")
        try:
            plan = stack.plan(targets=list(wanted))
        except TerraformError as error:
            if not error.absent & wanted.keys():
                raise
            gone = error.absent
        else:
            gone = frozenset(foreign := dict(_foreign(json.loads(stack.show_json(plan)))))
            if not foreign:
                return Found(plan, refused)
            refused |= foreign
        wanted = {address: name for address, name in wanted.items() if address not in gone}
    raise SagefitError(f"{stack.key}: what exists changes while it is looked for", hint="try again in a minute")


def mend_state_file(stack: Terraform) -> None:
    """Put back the copy from before the apply, where the file of the state was cut off as it was written."""
    file = stack.state_file
    if file is None or not file.exists() or _is_state(file):
        return
    names = (f"{file.name}.broken{number or ''}" for number in itertools.count())
    broken = next(path for path in map(file.with_name, names) if not path.exists())
    backup = file.with_name(f"{file.name}.backup")
    file.rename(broken)
    if _is_state(backup):
        shutil.copyfile(backup, file)
        _say(stack, f"the file of its state was cut off ({broken}); that of before the apply is in its place")
    else:
        _say(stack, f"the file of its state was cut off ({broken}), and there is none of before; it starts anew")


def _is_state(file: Path) -> bool:
    try:
        return "lineage" in json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _planned(stack: Terraform, root: Path, named: str | None) -> Plan:
    """A plan; for it the lock of the state is released, where whoever made it is gone."""
    begun = stack.begun()
    try:
        return stack.plan()
    except SagefitError as error:
        lock = StateLock.of(error.message)
        if lock is None or "Error acquiring the state lock" not in error.message:
            raise
        reason = None if named == lock.id else lock.why_not_ours(begun, stack.key, root)
        if reason or stack.state_file:  # of a file the system releases it, so somebody has it open now
            raise SagefitError(
                f"{stack.key}: the state is locked by {lock}" + (f"; {reason}" if reason else ""),
                hint="wait for it; if you know that it is gone: " + command("recover", stack.called, "--lock", lock.id),
                exit_code=error.exit_code,
            ) from error
        stack.unlock(lock)
        _say(stack, f"the lock of its state was left behind ({lock}); it is released")
        return stack.plan()


def _blocks(wanted: Mapping[str, str]) -> Iterator[str]:
    for address, name in wanted.items():
        # In a quoted string of Terraform `${` and `%{` begin an expression; the rest is as in JSON.
        text = json.dumps(name).replace("${", "$${").replace("%{", "%%{")
        yield f"import {{\n  to = {address}\n  id = {text}\n}}\n"


def _foreign(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is not to be taken in: it is somebody else's, or would have to be made anew."""
    for each in document["resource_changes"]:
        change = each["change"]
        if not change.get("importing"):
            continue
        there, wanted = ((change[side] or {}).get("tags_all") or {} for side in ("before", "after"))
        owner = {name: wanted[name] for name in _OWNER if name in wanted}
        untagged = not there and each["type"] in _TAGGED_LATER
        if owner and not untagged and any(there.get(name) != value for name, value in owner.items()):
            said = ", ".join(f"{name}={there[name]}" for name in _OWNER if name in there) or "none of them"
            tags = ", ".join(f"{name}={value}" for name, value in owner.items())
            yield each["address"], f"exists and is not of this stack: its tags would be {tags}, and are {said}"
        elif "delete" in change["actions"]:
            yield each["address"], "exists and is another one: Terraform would replace it"


def _say(stack: Terraform, words: str) -> None:
    err.print(f"{stack.key}: {words}", markup=False, soft_wrap=True)
