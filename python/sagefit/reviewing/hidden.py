"""Finds what is secret in a plan: what Terraform marks, and what its name gives away."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

from sagefit.documents import parsed
from sagefit.reviewing.plan import Change, Plan, Values
from sagefit.secret_names import is_secret_name, may_name_a_secret

LEAST = 6
"""Characters of the shortest value that is searched for; shorter values occur in too many words."""

_OPAQUE = re.compile(r"^(environment|env)$", re.IGNORECASE)


def hidden_by_name(path: Iterable[object], value: object) -> bool:
    """Whether a name on the path to ``value`` says that it must not be shown, as for passwords and environments.

    A text that is itself called ``Environment`` is a tag.
    """
    names = [step for step in path if isinstance(step, str)]
    opaque = names if isinstance(value, dict | list) else names[:-1]
    return any(map(is_secret_name, names)) or any(_OPAQUE.match(name) for name in opaque)


def secrets_of(plan: Plan) -> Iterator[str]:
    """Every value that the plan marks as sensitive, and what is secret by its name."""
    for change in (*plan.resource_changes, *plan.resource_drift, *_deferred(plan)):
        values = change.change
        yield from _marked(values.before, values.before_sensitive)
        yield from _marked(values.after, values.after_sensitive)
    for output in plan.output_changes.values():
        yield from _marked(output.before, output.before_sensitive)
        yield from _marked(output.after, output.after_sensitive)
    for state in (plan.planned_values, plan.prior_state.get("values")):
        yield from _of_state(state, plan.by_address)
    root = plan.configuration.get("root_module")
    for name, declared in _items(root, "variables"):
        if declared.get("sensitive") is True or is_secret_name(name):
            yield from _texts(declared.get("default"))
            given = plan.variables.get(name)
            yield from _texts(given.get("value") if isinstance(given, dict) else None)
    yield from _named(plan.variables)
    yield from _of_configuration(plan.configuration)


def _deferred(plan: Plan) -> Iterator[Change]:
    for item in plan.deferred_changes:
        if isinstance(item, dict) and isinstance(item.get("resource_change"), dict):
            yield Change.model_construct(change=_values(item["resource_change"].get("change")))


def _values(change: Any) -> Any:
    fields = change if isinstance(change, dict) else {}
    return Values.model_construct(**{name: fields.get(name) for name in Values.model_fields})


def _marked(value: Any, tree: Any) -> Iterator[str]:
    if tree is True:
        yield from _texts(value)
    elif isinstance(value, dict):
        for key, child in value.items():
            if is_secret_name(key):
                yield from _texts(child)
            else:
                yield from _marked(child, tree.get(key) if isinstance(tree, dict) else None)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _marked(child, tree[index] if isinstance(tree, list) and index < len(tree) else None)
    elif isinstance(value, str) and value[:1] in ("{", "[") and may_name_a_secret(value):
        yield from _named(parsed(value))


def _named(value: Any) -> Iterator[str]:
    """What is secret by its name."""
    yield from _marked(value, None) if isinstance(value, dict | list) else ()


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value that is secret as a whole."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, str | int | float) and not isinstance(node, bool) and len(str(node)) >= LEAST:
            yield str(node)


def _of_state(state: Any, seen: Container[str]) -> Iterator[str]:
    """What a state marks; resources that change were looked at already."""
    if not isinstance(state, dict):
        return
    for output in (state.get("outputs") or {}).values() if isinstance(state.get("outputs"), dict) else ():
        if isinstance(output, dict) and output.get("sensitive") is True:
            yield from _texts(output.get("value"))
    modules = [state.get("root_module")]
    while modules:
        module = modules.pop()
        if isinstance(module, dict):
            modules.extend(module.get("child_modules") or [])
            for resource in module.get("resources") or []:
                if isinstance(resource, dict) and resource.get("address") not in seen:
                    yield from _marked(resource.get("values"), resource.get("sensitive_values"))


def _of_configuration(configuration: dict[str, Any]) -> Iterator[str]:
    """Constants of secret names, and of arguments that a called module declares as sensitive."""
    for _, provider in _items(configuration, "provider_config"):
        yield from _constants(provider.get("expressions"))
    modules = [configuration.get("root_module")]
    while modules:
        module = modules.pop()
        if not isinstance(module, dict):
            continue
        for resource in module.get("resources") or []:
            if isinstance(resource, dict):
                yield from _constants(resource.get("expressions"))
        for _, call in _items(module, "module_calls"):
            inner = call.get("module")
            modules.append(inner)
            given = call.get("expressions") if isinstance(call.get("expressions"), dict) else {}
            for name, declared in _items(inner, "variables"):
                if declared.get("sensitive") is True or is_secret_name(name):
                    yield from _texts(declared.get("default"))
                    argument = (given or {}).get(name)
                    yield from _texts(argument.get("constant_value") if isinstance(argument, dict) else None)
            yield from _constants(given)


def _constants(expressions: Any) -> Iterator[str]:
    if isinstance(expressions, dict):
        for name, expression in expressions.items():
            if is_secret_name(name) and isinstance(expression, dict):
                yield from _texts(expression.get("constant_value"))
            else:
                yield from _constants(expression)
    elif isinstance(expressions, list):
        for item in expressions:
            yield from _constants(item)


def _items(parent: Any, name: str) -> list[tuple[str, dict[str, Any]]]:
    found = parent.get(name) if isinstance(parent, dict) else None
    return [(key, value) for key, value in found.items() if isinstance(value, dict)] if isinstance(found, dict) else []
