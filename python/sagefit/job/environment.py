"""Names of environment variables that are not a job's to set, or that change what runs in its container.

The patterns are rows of ``modules/training-job/environment.json``, which Terraform reads too.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from sagefit.paths import ENVIRONMENT_JSON


def reserved(name: str) -> str | None:
    """Why no job may set a variable of this name; None where it may."""
    return None if name in _table()["own"] else _first("reserved", name)


def loads_code(name: str) -> str | None:
    """What a variable of this name does when it brings other code into the container; None of any other."""
    return _first("loads", name)


def leads_elsewhere(name: str) -> str | None:
    """What a variable of this name does when code, packages or requests come from or go elsewhere by it."""
    return _first("leads", name)


def _first(kind: str, name: str) -> str | None:
    return next((what for what, pattern in _table()[kind].items() if re.search(pattern, name)), None)


@cache
def _table() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(ENVIRONMENT_JSON.read_text(encoding="utf-8"))
    return loaded
