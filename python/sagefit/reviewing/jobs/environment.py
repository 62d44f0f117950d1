"""Variables of a container that change what runs in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.job.environment import leads_elsewhere, loads_code, reserved
from sagefit.machine.definition import HIDDEN, OWN_VARIABLE
from sagefit.reviewing.message import say
from sagefit.reviewing.rulebook import Hit, Severity
from sagefit.secret_names import is_secret_name


def environment(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Hit]:
    """Findings about variables that are new or have another value. Their values are shown: paths and hosts.

    Both sides are fields by name, of which those with ``environment.`` in the name are variables.
    """
    for word, value in after.items():
        _, found, name = word.rpartition("environment.")
        if not found or name == OWN_VARIABLE or str(before.get(word)) == str(value):
            continue
        if why := reserved(name):
            yield Hit("job-environment", say(f"{{}}: no job sets this variable: {why}", word), "high")
        elif why := loads_code(name) or leads_elsewhere(name):
            old, new = (HIDDEN if is_secret_name(name) else str(side.get(word, "not set")) for side in (before, after))
            severity: Severity | None = "high" if loads_code(name) else None
            yield Hit("job-environment", say(f"{{}}: {{}} → {{}}: {why}", word, old, new), severity)
