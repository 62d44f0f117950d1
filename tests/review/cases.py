"""The cases of ``corpus/``: what a stack is before and after, and what must be found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILES = ("dangers", "benign", "own", "dangers_2", "benign_2", "own_2")
"""The files; those that end in ``_2`` were written by somebody who had not seen the rules."""
_FOLDER = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Case:
    """One change. ``rule`` is what must be found there, empty for a benign one."""

    name: str
    kind: str
    rule: str
    before: str
    after: str

    def owns(self, address: str) -> bool:
        """Whether ``address`` is of this case."""
        return re.search(rf"(^module\.{self.name}\.|\.{self.name}(_\d+)?(\[|$))", address) is not None


def cases(name: str) -> list[Case]:
    """The cases of one file."""
    return [_case(fields) for fields in yaml.safe_load((_FOLDER / name).read_text(encoding="utf-8"))]


def _case(fields: dict[str, Any]) -> Case:
    before = after = fields["hcl"]
    for old, new in fields.get("swap", ()):
        assert old in after, f"{fields['case']}: {old!r} is not in its text"
        after = after.replace(old, new)
    after = fields.get("after", after)
    before, after = "" if fields.get("comes") else before, "" if fields.get("gone") else after
    name = fields["case"]
    return Case(name, fields.get("kind", ""), fields.get("rule", ""), _named(before, name), _named(after, name))


def _named(hcl: str, name: str) -> str:
    return (
        re.sub(r"\b__(?=\d)", f"{name}_", hcl)
        .replace('"_"', f'"{name}"')
        .replace('-_"', f'-{name}"')
        .replace("._.", f".{name}.")
    )
