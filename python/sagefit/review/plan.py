"""Reads a plan as ``terraform show -json`` prints it: any file of format 1.x, and nothing that only looks like one.

What Terraform leaves out is absent here too, and what this version does not know is ignored; but an action that is
not known is kept, for somebody has to look at it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sagefit.errors import SagefitError

MAX_BYTES = 512 * 1024 * 1024
MAX_DEPTH = 150
"""Levels of objects and lists. Those of a real plan stay below 40."""

# What Terraform writes in `actions`, closed in Terraform 1.11.
KINDS = {
    ("no-op",): "no-op",
    ("create",): "create",
    ("read",): "read",
    ("update",): "update",
    ("delete",): "delete",
    ("delete", "create"): "replace",
    ("create", "delete"): "replace",
    ("forget",): "forget",
    ("create", "forget"): "replace-forget",
}
UNKNOWN_KIND = "unknown"

_HINT = "make it from a saved plan: terraform show -json PLANFILE > plan.json"
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


class _Part(BaseModel):
    """A part of a plan: what is null counts as absent, and what is not known here is ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data


class Values(_Part):
    """One value or resource before and after, with the trees that mark what is unknown and what is sensitive."""

    actions: Annotated[list[str], Field(min_length=1)]
    before: Any = None
    after: Any = None
    after_unknown: Any = None
    before_sensitive: Any = None
    after_sensitive: Any = None
    replace_paths: list[Any] = []
    importing: dict[str, Any] | None = None


class Change(_Part):
    """What is planned for one object; `address` and `deposed` together are its key."""

    address: Annotated[str, Field(min_length=1)]
    type: str
    name: str = ""
    mode: str = "managed"
    provider_name: str = ""
    module_address: str = ""
    previous_address: str | None = None
    deposed: str | None = None
    action_reason: str = ""
    change: Values

    @cached_property
    def kind(self) -> str:
        """``create``, ``update``, ``replace``, ``delete``, ``forget``, ``read``, ``no-op``, ``replace-forget``.

        ``unknown`` for actions that no Terraform up to 1.11 writes.
        """
        return KINDS.get(tuple(self.change.actions), UNKNOWN_KIND)

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others."""
        return self.address, self.deposed or ""

    @property
    def destroys(self) -> bool:
        """Whether an object is destroyed, in any order with its replacement."""
        return "delete" in self.change.actions

    @property
    def is_import(self) -> bool:
        """Whether Terraform takes over an object that exists."""
        return self.change.importing is not None

    @property
    def is_move(self) -> bool:
        """Whether it had another address in the state."""
        return self.previous_address is not None and self.previous_address != self.address

    @property
    def before(self) -> dict[str, Any]:
        """The attributes there are; empty for what is created."""
        return self.change.before if isinstance(self.change.before, dict) else {}

    @property
    def after(self) -> dict[str, Any]:
        """The attributes there will be, without those that are not known yet; empty for what is destroyed."""
        return self.change.after if isinstance(self.change.after, dict) else {}


class Plan(_Part):
    """A plan. ``applyable``, ``complete`` and ``errored`` are None where the Terraform that wrote it did not say."""

    format_version: str
    terraform_version: str = ""
    timestamp: str = ""
    applyable: bool | None = None
    complete: bool | None = None
    errored: bool | None = None
    resource_changes: list[Change] = []
    resource_drift: list[Change] = []
    deferred_changes: list[Any] = []
    output_changes: dict[str, Values] = {}
    checks: list[Any] = []
    variables: dict[str, Any] = {}
    configuration: dict[str, Any] = {}
    planned_values: dict[str, Any] = {}
    prior_state: dict[str, Any] = {}

    @cached_property
    def counts(self) -> Counter[str]:
        """How many managed objects are treated in which way, by `Change.kind`; and ``import`` and ``move``."""
        found: Counter[str] = Counter()
        for change in self.managed:
            found[change.kind] += 1
            found["import"] += change.is_import
            found["move"] += change.is_move
        return found

    @cached_property
    def managed(self) -> list[Change]:
        """Changes of resources, without the reading of data."""
        return [change for change in self.resource_changes if change.mode == "managed"]

    @cached_property
    def by_address(self) -> dict[str, Change]:
        """Changes by address, without deposed objects."""
        return {change.address: change for change in self.resource_changes if not change.deposed}

    @property
    def outputs_change(self) -> bool:
        """Whether a value that others read changes."""
        return any(KINDS.get(tuple(output.actions)) != "no-op" for output in self.output_changes.values())

    @property
    def lists_nothing(self) -> bool:
        """Whether there are resources and no word of what happens to them, as in a refresh-only plan or a cut file."""
        return not self.resource_changes and bool(self.known_addresses)

    @cached_property
    def known_addresses(self) -> set[str]:
        """Addresses of resources as they are, and as they are planned to be."""
        states = (self.planned_values, self.prior_state.get("values"))
        modules = [state.get("root_module") for state in states if isinstance(state, dict)]
        found = set()
        while modules:
            module = modules.pop()
            if isinstance(module, dict):
                modules.extend(module.get("child_modules") or [])
                resources = [each for each in module.get("resources") or [] if isinstance(each, dict)]
                found |= {str(each.get("address")) for each in resources if each.get("mode") == "managed"}
        return found


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
    """The plan in ``path``. Raises SagefitError that says what is wrong with a file that is none."""
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


def deeper(data: Any, levels: int) -> bool:
    """Whether objects and lists are nested deeper than that; without recursion, since that is the question."""
    layer = [data] if isinstance(data, dict | list) else []
    for _ in range(levels):
        layer = [
            child
            for node in layer
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return True


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
