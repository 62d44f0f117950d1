"""Names of environment variables that a job must not set, or that change what runs in its container.

The patterns are rows of ``modules/training-job/environment.json``, which Terraform reads too.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from sagefit.paths import ENVIRONMENT_JSON


def reserved(name: str) -> str | None:
    """Why no job may set a variable of this name; None when a job may."""
    return None if name in _table()["own"] else _first("reserved", name)


def loads_code(name: str) -> str | None:
    """How a variable of this name brings other code into the container; None when it does not."""
    return _first("loads", name)


def leads_elsewhere(name: str) -> str | None:
    """How a variable of this name redirects code, packages or requests to another place; None when it does not."""
    return _first("leads", name)


def _first(kind: str, name: str) -> str | None:
    return next((what for what, pattern in _table()[kind].items() if re.search(pattern, name)), None)


@cache
def _table() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(ENVIRONMENT_JSON.read_text(encoding="utf-8"))
    return loaded
