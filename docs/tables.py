"""Tables of a Terraform module's variables and outputs, read from its ``*.tf`` files.

A page has them between ``<!-- made from FOLDER*.tf: variables -->`` (or ``outputs``) and ``<!-- end -->``, where FOLDER
is the module's, relative to the page, and empty beside it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2

_MARKS = re.compile(
    r"(?P<start><!-- made from (?P<folder>\S*)\*\.tf: (?P<kind>variables|outputs) -->\n).*?(?=<!-- end -->)", re.DOTALL
)


def with_tables(page: Path) -> str:
    """The text of a page with its tables made anew."""

    def table(match: re.Match[str]) -> str:
        found = _declared(page.parent / match["folder"], match["kind"].removesuffix("s"))
        rows = _outputs(found) if match["kind"] == "outputs" else _variables(found)
        return f"{match['start']}\n" + "\n".join(rows) + "\n\n"

    return _MARKS.sub(table, page.read_text(encoding="utf-8"))


def _declared(module: Path, kind: str) -> dict[str, dict[str, Any]]:
    """The blocks of one kind in a module, by name, sorted."""
    texts = [path.read_text(encoding="utf-8") for path in module.glob("*.tf")]
    # Only files that have some: python-hcl2 does not read every expression.
    files = [hcl2.loads(text) for text in texts if re.search(rf'^{kind} "', text, re.MULTILINE)]
    blocks = [item for file in files for block in file[kind] for item in block.items()]
    return {name.strip('"'): body for name, body in sorted(blocks)}


def _outputs(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| output | meaning |"
    yield "|---|---|"
    for name, body in found.items():
        yield f"| `{name}` | {_description(body)[0]} |"


def _variables(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| variable | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, body in found.items():
        default = f"`{_literal(body['default'])}`" if "default" in body else "required"
        yield f"| `{name}` | `{_short(_type(body))}` | {default} | {_description(body)[0]} |"
    for name, body in found.items():
        attributes, listed = list(_attributes(_type(body))), _description(body)[1]
        if attributes:
            required = ", ".join(f"`{path}`" for path, value in attributes if value is None)
            optional = ", ".join(f"`{path} = {value}`" for path, value in attributes if value is not None)
            said = [f"required {required}"] * bool(required) + [f"defaults {optional}"] * bool(optional)
            yield "\n".join([f"\n**`{name}`**: {'; '.join(said)}.", *[""] * bool(listed), *listed])


def _description(body: dict[str, Any]) -> tuple[str, list[str]]:
    """A description as its first paragraph, on one line, and the list that follows it."""
    text = body["description"].strip('"')
    if text.startswith("<<"):
        text = textwrap.dedent(text.split("\n", 1)[1].rsplit("\n", 1)[0])
    first, *rest = re.split(r"\n(?=- )", text.replace('\\"', '"'))
    line = " ".join(first.split()).replace("|", "\\|")
    line = "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(line.split("`")))
    return f"{line[:-1]} those below." if line.endswith(":") else line, rest


def _type(body: dict[str, Any]) -> str:
    return str(body["type"]).removeprefix("${").removesuffix("}")


def _short(kind: str) -> str:
    """A type without the attributes of its objects."""
    start = kind.find("object(")
    return kind if start < 0 else f"{kind[:start]}object{')' * kind[:start].count('(')}"


def _attributes(kind: str, prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """The attributes of a type's object and of the objects in it: path, and default (None for a required one)."""
    start = kind.find("object({")
    if start < 0:
        return
    for part in _parts(_inside(kind[start + len("object") :])[1:-1]):
        name, inner = part.split(" = ", 1)
        if inner.startswith("optional("):
            inner, *default = _parts(_inside(inner.removeprefix("optional")))
            yield f"{prefix}{name}", default[0] if default else "null"
        else:
            yield f"{prefix}{name}", None
        yield from _attributes(inner, f"{prefix}{name}{'.' if inner.startswith('object') else '[*].'}")


def _inside(text: str) -> str:
    """What the bracket at the start of a text holds."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return text[1:index]
    raise ValueError(f"no end of {text}")


def _parts(text: str) -> list[str]:
    """The parts of a list, at its commas."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _literal(value: Any) -> str:
    """A default as Terraform writes it; python-hcl2 leaves the quotes of texts in place."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return str(value)
