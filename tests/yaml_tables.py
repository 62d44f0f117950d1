"""Reads tables that tests are made of, which is done whenever tests are collected, in every process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

# libyaml's, where PyYAML was built with it, takes a tenth of the time.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path) -> Any:
    """What a YAML file holds."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
