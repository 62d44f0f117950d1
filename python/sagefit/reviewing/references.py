"""Which resource refers to which, as the configuration in a plan says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

_KEY = re.compile(r'\[(?:"(?:[^"\\]|\\.)*"|[^\]]*)\]')


class References:
    """References between resource blocks. A block is an address without the keys of its instances."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self._configuration = configuration

    @staticmethod
    def block(address: str) -> str:
        """The block that the object at ``address`` is an instance of."""
        return _KEY.sub("", address) if "[" in address else address

    @staticmethod
    def keys(address: str) -> list[str]:
        """The keys of ``address``, of its modules first, in their brackets."""
        return _KEY.findall(address) if "[" in address else []

    def expressions(self, block: str) -> Any:
        """What the configuration says of a block, its ``depends_on`` included."""
        resource = self._resources.get(block) or {}
        return [resource.get("expressions"), resource.get("depends_on")]

    def of(self, address: str, attribute: str | None = None) -> list[str]:
        """Blocks that the object at ``address`` refers to, in ``attribute`` or anywhere."""
        block = self.block(address)
        module = _module_of(block)
        resource = self._resources.get(block)
        if resource is None:
            return []
        expressions = resource.get("expressions") or {}
        found = expressions.get(attribute) if attribute else [expressions, resource.get("depends_on")]
        names = _references(found)
        prefix = f"{module}." if module else ""
        return list(dict.fromkeys(prefix + name for text in names if (name := _resource_name(text))))

    def gives(self, address: str, attribute: str) -> bool:
        """Whether the configuration says anything of ``attribute``; also where there is no configuration to look at."""
        resource = self._resources.get(self.block(address))
        return resource is None or attribute in (resource.get("expressions") or {})

    def provisioners(self, address: str) -> list[str]:
        """Kinds of the provisioners of the block at ``address``."""
        resource = self._resources.get(self.block(address)) or {}
        return [str(each.get("type")) for each in resource.get("provisioners") or [] if isinstance(each, dict)]

    @cached_property
    def neighbours(self) -> dict[str, set[str]]:
        """Blocks next to each block, whichever refers to the other."""
        found: dict[str, set[str]] = {}
        for block in self._resources:
            for other in self.of(block):
                found.setdefault(block, set()).add(other)
                found.setdefault(other, set()).add(block)
        return found

    @cached_property
    def _resources(self) -> dict[str, dict[str, Any]]:
        return dict(_walk(self._configuration.get("root_module"), ""))


def _walk(module: Any, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(module, dict):
        return
    for resource in module.get("resources") or []:
        if isinstance(resource, dict) and isinstance(resource.get("address"), str):
            yield prefix + resource["address"], resource
    calls = module.get("module_calls")
    for name, call in calls.items() if isinstance(calls, dict) else ():
        if isinstance(call, dict):
            yield from _walk(call.get("module"), f"{prefix}module.{name}.")


def _module_of(block: str) -> str:
    parts, found = block.split("."), []
    while len(parts) > 1 and parts[0] == "module":
        found += parts[:2]
        parts = parts[2:]
    return ".".join(found)


def _references(expressions: Any) -> Iterator[str]:
    if isinstance(expressions, dict):
        yield from (text for text in expressions.get("references") or () if isinstance(text, str))
        for name, value in expressions.items():
            if name not in ("references", "constant_value"):
                yield from _references(value)
    elif isinstance(expressions, list):
        for item in expressions:
            if isinstance(item, str):
                yield item
            else:
                yield from _references(item)


def _resource_name(reference: str) -> str | None:
    """The block that a reference such as ``aws_iam_role.this[0].arn`` leads to."""
    parts = References.block(reference).split(".")
    if parts[0] == "data" and len(parts) > 2:
        return ".".join(parts[:3])
    if parts[0] in ("var", "local", "each", "count", "path", "self", "terraform", "module", "data") or len(parts) < 2:
        return None
    return ".".join(parts[:2])
