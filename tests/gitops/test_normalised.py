"""What counts when two plans are compared. The plans here are written by hand: small, and odd in one way each."""

from __future__ import annotations

import copy
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sagefit.gitops.normalised import KEY_VARIABLE, Normalised, difference, review_key

KEY = b"key"


def change(address: str, *actions: str, **fields: Any) -> dict[str, Any]:
    inner = {"actions": list(actions), "before": {"size": 1}, "after": {"size": 2}, "after_unknown": {}}
    inner |= {name: fields.pop(name) for name in list(fields) if name in (*inner, "importing", "replace_paths")}
    return {"address": address, "type": "t", "change": inner} | fields


_UPDATE: dict[str, Any] = {
    "before": {"size": 1, "definition": '{"a": 1, "b": 1, "c": [1, 2]}', "revision": "x"},
    "after": {"size": 2, "definition": '{"a": 2, "b": 1, "c": [1, 2]}'},
    "after_unknown": {"revision": True},
}
PLAN: dict[str, Any] = {
    "timestamp": "2026-01-01T00:00:00Z",
    "complete": True,
    "errored": False,
    "resource_changes": [
        change("t.a", "update", **_UPDATE),
        change("t.b", "delete", "create", replace_paths=[["size"], ["name"]]),
        change("t.c", "no-op"),
    ],
    "output_changes": {"x": {"actions": ["update"], "before": 1, "after": 2, "after_unknown": False}},
    "relevant_attributes": [{"resource": "t.a"}, {"resource": "t.b"}],
    "checks": [{"address": {"to_display": "check.a"}, "status": "pass"}],
}


def of(plan: dict[str, Any]) -> Normalised:
    return Normalised.of(plan, KEY)


def edited(edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    plan = copy.deepcopy(PLAN)
    edit(plan)
    return plan


SAME: dict[str, Callable[[dict[str, Any]], object]] = {
    "time": lambda plan: plan.update(timestamp="2026-02-02T00:00:00Z"),
    "order of attributes": lambda plan: plan["relevant_attributes"].reverse(),
    "order of changes": lambda plan: plan["resource_changes"].reverse(),
    "order of paths": lambda plan: plan["resource_changes"][1]["change"]["replace_paths"].reverse(),
    "what stays as it is": lambda plan: plan["resource_changes"].pop(2),
    "drift": lambda plan: plan.update(resource_drift=[change("t.z", "update")]),
    "an attribute that stays": lambda plan: _both(plan, "place", {"rack": 1}),
    "a leaf of JSON that stays": lambda plan: _both(plan, "definition", None),
}


def _both(plan: dict[str, Any], name: str, value: object) -> None:
    """The same in what was and in what will be: an attribute, or else a leaf in its JSON."""
    inner = plan["resource_changes"][0]["change"]
    for side in ("before", "after"):
        inner[side][name] = json.dumps({**json.loads(inner[side][name]), "b": 7}) if value is None else value


def _leaf(plan: dict[str, Any], side: str, **leaves: object) -> None:
    inner = plan["resource_changes"][0]["change"][side]
    inner["definition"] = json.dumps({**json.loads(inner["definition"]), **leaves})


def _read(plan: dict[str, Any]) -> None:
    inner = plan["resource_changes"][0]["change"]["after"]
    inner["definition"] = json.loads(inner["definition"])


OTHER: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a value": (
        lambda plan: plan["resource_changes"][0]["change"]["after"].update(size=3),
        "t.a: other values of size",
    ),
    "a value before": (
        lambda plan: plan["resource_changes"][0]["change"]["before"].update(size=0),
        "t.a: other values of size",
    ),
    "a type": (
        lambda plan: plan["resource_changes"][0]["change"]["after"].update(size="2"),
        "t.a: other values of size",
    ),
    "unknown and null": (
        lambda plan: [
            plan["resource_changes"][0]["change"][part].update(size=value)
            for part, value in (("after", None), ("after_unknown", True))
        ],
        "t.a: other values of size",
    ),
    "a leaf of JSON": (lambda plan: _leaf(plan, "after", a=3), "t.a: other values of definition"),
    "a leaf of JSON before": (lambda plan: _leaf(plan, "before", a=0), "t.a: other values of definition"),
    "a leaf more": (lambda plan: _leaf(plan, "after", d=None), "t.a: other values of definition"),
    "a leaf less": (lambda plan: _leaf(plan, "after", c=[1]), "t.a: other values of definition"),
    "a leaf that is a list of none": (lambda plan: _leaf(plan, "after", c=[]), "t.a: other values of definition"),
    "a text for a number": (lambda plan: _leaf(plan, "after", a="2"), "t.a: other values of definition"),
    "true for one": (lambda plan: _leaf(plan, "after", b=True), "t.a: other values of definition"),
    "a number written otherwise": (lambda plan: _leaf(plan, "after", b=1.0), "t.a: other values of definition"),
    "a map for its text": (lambda plan: _read(plan), "t.a: other values of definition"),
    "a key twice": (
        lambda plan: plan["resource_changes"][0]["change"]["after"].update(
            definition='{"a": 3, "a": 2, "b": 1, "c": [1, 2]}'
        ),
        "t.a: other values of definition",
    ),
    "an attribute more": (
        lambda plan: plan["resource_changes"][0]["change"]["after"].update(extra=1),
        "t.a: other values of extra",
    ),
    "a value of what is made anew": (
        lambda plan: [plan["resource_changes"][1]["change"][side].update(name="n") for side in ("before", "after")],
        "t.b: other values of name",
    ),
    "an action": (
        lambda plan: plan["resource_changes"][0]["change"].update(actions=["delete"]),
        "t.a: update was reviewed, delete is planned now",
    ),
    "the order of a replacement": (
        lambda plan: plan["resource_changes"][1]["change"].update(actions=["create", "delete"]),
        "t.b: delete then create was reviewed, create then delete is planned now",
    ),
    "a change more": (
        lambda plan: plan["resource_changes"].append(change("t.d", "create")),
        "t.d: create was not in the reviewed plan",
    ),
    "a change less": (lambda plan: plan["resource_changes"].pop(0), "t.a: update is no longer planned"),
    "a deposed object": (
        lambda plan: plan["resource_changes"].append(change("t.a", "delete", deposed="abcd")),
        "t.a (deposed abcd): delete was not in the reviewed plan",
    ),
    "a move": (
        lambda plan: plan["resource_changes"][2].update(previous_address="t.old"),
        "t.c: no-op was not in the reviewed plan",
    ),
    "an import": (
        lambda plan: plan["resource_changes"][2]["change"].update(importing={"id": "i"}),
        "t.c: no-op was not in the reviewed plan",
    ),
    "a reason": (
        lambda plan: plan["resource_changes"][1].update(action_reason="replace_because_tainted"),
        "t.b: other values of its place or reason",
    ),
    "an output": (lambda plan: plan["output_changes"]["x"].update(after=3), "output x: another value"),
    "a check": (lambda plan: plan["checks"][0].update(status="fail"), "checks, or whether the plan is complete"),
    "a part": (lambda plan: plan.update(complete=False), "checks, or whether the plan is complete"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_makes_no_other_plan(name: str) -> None:
    other = of(edited(SAME[name]))
    assert difference(of(PLAN), other) == []
    assert other.digest(KEY) == of(PLAN).digest(KEY)


@pytest.mark.parametrize("name", OTHER)
def test_what_makes_another_plan(name: str) -> None:
    edit, told = OTHER[name]
    other = of(edited(edit))
    assert difference(of(PLAN), other) == [told]
    assert other.digest(KEY) != of(PLAN).digest(KEY)


def test_digests_depend_on_the_key() -> None:
    assert of(PLAN).digest(KEY) != Normalised.of(PLAN, b"other").digest(b"other")
    assert of(PLAN).changes != Normalised.of(PLAN, b"other").changes


def test_a_plan_that_only_reads_does_nothing() -> None:
    assert Normalised.of({"resource_changes": [change("data.t.a", "read")]}, KEY).is_empty
    assert not of(PLAN).is_empty
    assert not Normalised.of({"output_changes": PLAN["output_changes"]}, KEY).is_empty


def test_a_machine_has_one_key_for_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    key = review_key()
    assert len(key) == 64
    assert review_key() == key
    files = list((tmp_path / "home").iterdir())
    assert [(file.name, stat.S_IMODE(file.stat().st_mode)) for file in files] == [("review.key", 0o600)]
    monkeypatch.setenv(KEY_VARIABLE, "ours")
    assert review_key() == b"ours"
