"""Python values as HCL literals, laid out the way ``terraform fmt`` would.

Strings can hold anything: quotes, newlines, unicode and the two template openers, which are doubled so that they
stay text. Source for the escapes: Terraform language, "Strings and Templates". Terraform itself keeps strings in
Unicode normal form C.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Escaped beyond what HCL requires: invisible characters and those that change text direction, which falsify a diff.
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\$\{|%\{')
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INLINE_WIDTH = 100


def quote(text: str) -> str:
    """``text`` as an HCL quoted string without any template in it."""
    return '"' + _SPECIAL.sub(lambda match: _escape(match.group()), text) + '"'


def _escape(special: str) -> str:
    if special in ("${", "%{"):
        return special[0] + special
    return _ESCAPES.get(special) or f"\\u{ord(special):04x}"


def literal(value: object, indent: int = 0) -> str:
    """``value`` as an HCL expression; containers break over lines when one line would be long.

    Raises TypeError for what has no HCL form.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return _object(value, indent)
    if isinstance(value, Sequence):
        return _list(value, indent)
    raise TypeError(f"no HCL form for {type(value).__name__}")


def attributes(items: Mapping[str, object], indent: int = 0) -> str:
    """``key = value`` lines with the equals signs of neighbouring one-line values in one column."""
    pad = "  " * indent
    lines: list[tuple[str, str]] = [(_key(key), literal(value, indent)) for key, value in items.items()]
    out: list[str] = []
    group: list[tuple[str, str]] = []

    def flush() -> None:
        width = max((len(key) for key, _ in group), default=0)
        out.extend(f"{pad}{key:<{width}} = {value}" for key, value in group)
        group.clear()

    for key, value in lines:
        if "\n" in value:
            flush()
            out.append(f"{pad}{key} = {value}")
        else:
            group.append((key, value))
    flush()
    return "\n".join(out)


def comment(text: str) -> str:
    """``text`` as one comment line: whatever it holds, nothing after it is code."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return f"# {' '.join(printable.split())}".rstrip()


def _key(key: str) -> str:
    return key if _IDENTIFIER.fullmatch(key) else quote(key)


def _object(value: Mapping[str, object], indent: int) -> str:
    if not value:
        return "{}"
    inline = "{ " + ", ".join(f"{_key(k)} = {literal(v, indent)}" for k, v in value.items()) + " }"
    if "\n" not in inline and len(inline) + 2 * indent <= _INLINE_WIDTH:
        return inline
    return "{\n" + attributes(value, indent + 1) + "\n" + "  " * indent + "}"


def _list(value: Sequence[object], indent: int) -> str:
    inline = "[" + ", ".join(literal(v, indent) for v in value) + "]"
    if "\n" not in inline and len(inline) + 2 * indent <= _INLINE_WIDTH:
        return inline
    pad = "  " * (indent + 1)
    return "[\n" + "".join(f"{pad}{literal(v, indent + 1)},\n" for v in value) + "  " * indent + "]"
