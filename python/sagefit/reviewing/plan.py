"""The parts of a plan as ``terraform show -json`` prints it, in any format 1.x.

What Terraform leaves out is absent here too. Parts that this version does not know are ignored, but an unknown action
is kept, because somebody has to look at it.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
