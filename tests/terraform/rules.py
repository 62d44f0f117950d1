"""The rules of a module, as its source states them: validations, conditions of resources, data and outputs, checks.

A rule is known by the object it belongs to and by its message, the two things that Terraform tells when it fires.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hcl2

_HAS_RULES = re.compile(r"^ *(validation|precondition|postcondition|check\b.*) \{$", re.MULTILINE)
_INTERPOLATION = re.compile(r"\$\{")


@dataclass(frozen=True)
class Rule:
    """One rule: the object that ``expect_failures`` names, and its message as written, templates included."""

    address: str
    message: str

    def __str__(self) -> str:
        return f"{self.address}: {self.message}"

    def says(self, detail: str) -> bool:
        """Whether a diagnostic's text is this rule's message, whatever its templates were filled with."""
        parts = map(re.escape, _literals(self.message))
        return re.match(".*".join(parts) + r"(\n|$)", detail, re.DOTALL) is not None


def rules_of(module: Path, *, without: Container[str] = ()) -> list[Rule]:
    """Return the rules of the ``*.tf`` files of one directory, in the order of files and lines.

    Files with the names of ``without`` are left out.
    """
    return [
        rule
        for file in sorted(module.glob("*.tf"))
        if file.name not in without and _HAS_RULES.search(text := file.read_text(encoding="utf-8"))
        for rule in _rules(hcl2.loads(text))
    ]


def unquoted(text: str) -> str:
    """Return what a quoted string of python-hcl2 stands for."""
    return text.removeprefix('"').removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")


def _rules(content: dict[str, Any]) -> Iterator[Rule]:
    for name, variable in _labelled(content.get("variable", [])):
        yield from _stated(f"var.{name}", variable.get("validation", []))
    for kind, prefix in (("resource", ""), ("data", "data.")):
        for type_, named in _labelled(content.get(kind, [])):
            for name, block in _labelled([named]):
                for lifecycle in block.get("lifecycle", []):
                    yield from _conditions(f"{prefix}{type_}.{name}", lifecycle)
    for name, output in _labelled(content.get("output", [])):
        yield from _conditions(f"output.{name}", output)
    for name, check in _labelled(content.get("check", [])):
        yield from _stated(f"check.{name}", check.get("assert", []))


def _labelled(blocks: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in blocks:
        for label, content in block.items():
            if isinstance(content, dict):
                yield unquoted(label), content


def _conditions(address: str, block: dict[str, Any]) -> Iterator[Rule]:
    for kind in ("precondition", "postcondition"):
        yield from _stated(address, block.get(kind, []))


def _stated(address: str, blocks: Iterable[dict[str, Any]]) -> Iterator[Rule]:
    return (Rule(address, unquoted(block["error_message"])) for block in blocks)


def _literals(template: str) -> Iterator[str]:
    """Yield what stands between the templates of a message; braces and quotes inside a template may nest."""
    start = 0
    while opened := _INTERPOLATION.search(template, start):
        yield template[start : opened.start()]
        start, depth = opened.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(template[start], 0)
            start += 1
    yield template[start:]
