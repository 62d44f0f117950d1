"""The mutations: what they change, where, and what that breaks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml_tables

_FILE = Path(__file__).with_name("mutations.yaml")
_BLOCK = re.compile(r'^(variable|resource|data|output|check) ((?:"\w+" ?)+)\{$', re.MULTILINE)
_RULE = re.compile(r"^ *(validation|precondition|postcondition|assert) \{$", re.MULTILINE)


@dataclass(frozen=True)
class Mutation:
    """One text of one file and what takes its place."""

    name: str
    file: str
    old: str
    new: str
    breaks: str

    @property
    def module(self) -> str:
        """The directory of the file, from the top of the checkout."""
        return str(Path(self.file).parent)

    def apply(self, text: str) -> str:
        """Return the file's text with the mutation; raise ValueError unless the old text occurs exactly once."""
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.file} holds the old text {found} times instead of once: {self.old!r}")
        return text.replace(self.old, self.new)

    def rule_owner(self, text: str) -> str | None:
        """Return the address of the object whose rule is changed; None where no rule is."""
        before = text[: text.index(self.old)]
        rules = list(_RULE.finditer(before))
        # A block ends where a brace stands below the word that opened it.
        if not rules or re.search(rf"^ {{{_indent(rules[-1])}}}\}}$", before[rules[-1].end() :], re.MULTILINE):
            return None
        kind, labels = list(_BLOCK.finditer(before))[-1].groups()
        prefix = {"variable": "var.", "resource": ""}.get(kind, f"{kind}.")
        return prefix + ".".join(re.findall(r"\w+", labels))


def _indent(match: re.Match[str]) -> int:
    return len(match[0]) - len(match[0].lstrip())


def load() -> list[Mutation]:
    """Read all mutations."""
    return [Mutation(**entry) for entry in yaml_tables.read(_FILE)]
