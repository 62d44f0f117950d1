"""Reads the file of a plan, and refuses an incomplete one: a page about half a plan would hide dangers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from sagefit.documents import MAX_DEPTH, deeper
from sagefit.errors import SagefitError
from sagefit.reviewing.plan import Plan

MAX_BYTES = 512 * 1024 * 1024
_HINT = "make it from a saved plan: terraform show -json PLANFILE > plan.json"
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


class Document:
    """A plan as it was read: its parts, its whole JSON for redaction and scans, and the digest of the file.

    ``name`` is the file's name, for people. ``digest`` is the SHA-256 of its bytes: Terraform prints one saved plan
    the same way every time.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.digest = hashlib.sha256(data).hexdigest()
        self.raw: dict[str, Any] = _checked(name, _parse(name, _text(name, data)))
        try:
            self.plan = Plan.model_validate(self.raw)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            _refuse(name, f"{_place(first['loc'])}: {first['msg']}", _HINT)
        twice = [key for key, n in Counter(change.key for change in self.plan.resource_changes).items() if n > 1]
        if twice:
            _refuse(name, f"resource_changes: {twice[0][0]} is there twice, which no Terraform writes", _HINT)


def read_document(path: Path) -> Document:
    """The plan in ``path``. Raises SagefitError that says why a file is no plan."""
    try:
        if path.stat().st_size > MAX_BYTES:
            _refuse(str(path), f"larger than {MAX_BYTES >> 20} MiB", "split the stack: nobody can review this plan")
        data = path.read_bytes()
    except OSError as error:
        _refuse(
            str(path), f"cannot be read: {error.strerror}", "give the path of a file that terraform show -json made"
        )
    return Document(path.name, data)


def _text(name: str, data: bytes) -> str:
    if data.startswith(b"PK"):
        _refuse(name, "this is the saved plan itself, not its JSON", "terraform show -json PLANFILE > plan.json")
    encoding = next((found for bom, found in _BOMS if data.startswith(bom)), "utf-8")  # PowerShell writes UTF-16
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        _refuse(name, f"no text: {error.reason} at byte {error.start}", _HINT)
    if not text.strip():
        _refuse(name, "the file is empty", _HINT)
    return text


def _parse(name: str, text: str) -> Any:
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
        if deeper(data, MAX_DEPTH):
            raise RecursionError
    except json.JSONDecodeError as error:
        _refuse(name, _complaint(text, error), _HINT)
    except RecursionError:
        _refuse(name, f"nested deeper than {MAX_DEPTH} levels", "no Terraform writes such a plan; do not apply it")
    except ValueError as error:
        _refuse(name, str(error), _HINT)
    return data


def _complaint(text: str, error: json.JSONDecodeError) -> str:
    first = text.lstrip().split("\n", 1)[0]
    if '"@level"' in first:
        return "this is the log of terraform plan -json, not a plan"
    if not first.startswith("{"):
        return "this is no JSON; it looks like the plan in words" if "Terraform" in text[:10_000] else "this is no JSON"
    cut = " (the file seems to be cut off)" if error.pos >= len(text.rstrip()) - 1 else ""
    return f"broken JSON in line {error.lineno}, column {error.colno}: {error.msg}{cut}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice[:80]!r} is twice in one object, so readers would see different plans")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _checked(name: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, "the JSON holds no object", _HINT)
    version = data.get("format_version")
    if not isinstance(version, str):
        what = "a state" if "lineage" in data or "serial" in data else "no plan"
        _refuse(name, f"format_version is missing: this is {what}", _HINT)
    if version.split(".")[0] not in ("0", "1"):
        _refuse(
            name, f"format_version {version[:20]}: this version reads 1.x", "use a newer Sagefit for this Terraform"
        )
    if not {"resource_changes", "planned_values", "output_changes", "resource_drift"} & data.keys():
        what = "a state" if "values" in data else "no plan"
        _refuse(name, f"this is {what}: neither planned_values nor resource_changes is in it", _HINT)
    return data


def _place(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).removeprefix(".")


def _refuse(name: str, message: str, hint: str) -> NoReturn:
    raise SagefitError(f"{name}: {message}", hint=hint)
