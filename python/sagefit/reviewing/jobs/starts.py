"""How often a state machine starts by itself, before and after."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sagefit.documents import as_list
from sagefit.job.schedule_times import times_a_month
from sagefit.reviewing.plan import Change
from sagefit.reviewing.references import References

_MACHINE = re.compile(r":stateMachine:([\w-]+)")


@dataclass(frozen=True)
class Starts:
    """Schedules of a machine on one side of a change, as they are written, and all their times in a month together.

    ``inputs``: what they give to the executions that they start, JSON texts.
    """

    written: tuple[str, ...] = ()
    a_month: float = 0.0
    inputs: tuple[str, ...] = ()

    @property
    def text(self) -> str | None:
        """For a page; None without a schedule."""
        return ", ".join(self.written) or None


class Schedules:
    """The schedules of a plan by what they start: a machine's name in the target, a reference to it, or its module."""

    def __init__(self, changes: list[Change], references: References) -> None:
        self._references = references
        self._by_name: dict[str, list[Change]] = {}
        self._by_block: dict[str, list[Change]] = {}
        self._by_module: dict[str, list[Change]] = {}
        self._targets: dict[tuple[str, str], list[Change]] = {}
        rules: dict[tuple[str, str], list[Change]] = {}
        for change in changes:
            if change.type == "aws_scheduler_schedule":
                self._by_module.setdefault(change.module_address, []).append(change)
                self._add(change, change, "target")
            elif change.type == "aws_cloudwatch_event_rule":
                for name in {references.block(change.address), *_names(change)}:
                    rules.setdefault((change.module_address, name), []).append(change)
        for change in changes:
            if change.type == "aws_cloudwatch_event_target":
                named = {str(values.get("rule")) for values in (change.before, change.after)}
                for name in named.union(references.of(change.address, "rule")):
                    for rule in rules.get((change.module_address, name), ()):
                        self._add(rule, change, "arn")

    def _add(self, schedule: Change, target: Change, attribute: str) -> None:
        for values in (target.before, target.after):
            for name in _MACHINE.findall(str(values.get(attribute))):
                self._by_name.setdefault(name, []).append(schedule)
        self._targets.setdefault(schedule.key, []).append(target)
        for block in self._references.of(target.address, attribute):
            self._by_block.setdefault(block, []).append(schedule)

    def of(self, machine: Change) -> tuple[Starts, Starts]:
        """What starts ``machine``, before and after."""
        mine = [change for name in _names(machine) for change in self._by_name.get(name, ())]
        mine += self._by_block.get(self._references.block(machine.address), [])
        mine += self._by_module.get(machine.module_address, []) if machine.module_address else []
        each = {change.key: change for change in mine}.values()
        return (
            _all([(change.before, self._inputs(change, "before")) for change in each if change.kind != "create"]),
            _all([(change.after, self._inputs(change, "after")) for change in each if change.kind != "delete"]),
        )

    def _inputs(self, schedule: Change, side: str) -> list[str]:
        targets = [getattr(target, side) for target in self._targets.get(schedule.key, ())]
        blocks = [block for values in targets for block in (values, *as_list(values.get("target")))]
        return [block["input"] for block in blocks if isinstance(block, dict) and isinstance(block.get("input"), str)]


def _names(change: Change) -> set[str]:
    return {name for values in (change.before, change.after) if isinstance(name := values.get("name"), str)}


def _all(sides: list[tuple[dict[str, Any], list[str]]]) -> Starts:
    written, inputs, total = [], [], 0.0
    for values, given in sides:
        inputs += given
        expression = values.get("schedule_expression")
        if not expression:
            continue
        off = values.get("state") == "DISABLED" or values.get("is_enabled") is False
        zone = values.get("schedule_expression_timezone") or "UTC"
        written.append(f"{expression} {zone}" + (" (off)" if off else ""))
        total += 0.0 if off else times_a_month(str(expression)) or 0.0
    return Starts(tuple(written), total, tuple(inputs))
