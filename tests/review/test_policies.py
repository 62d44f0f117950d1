"""Policy failures before and after a plan, and the cut of a plan that is scanned."""

from __future__ import annotations

import json
from typing import Any

from review.plans import change, plan
from sagefit.checkov import Finding
from sagefit.reviewing import Document, as_json, markdown, review
from sagefit.reviewing.policies import compare, moves_of, scoped, scoped_base


def _failed(check: str, address: str, severity: str = "HIGH", status: Any = "failed") -> Finding:
    """What a scan says of one resource; made by hand here, since checkov is not part of these tests."""
    return Finding(check, "name", severity, status, address, f"{check} is not kept")


def test_new_fixed_and_old_failures() -> None:
    base = [_failed("A", "x.old"), _failed("A", "x.fixed"), _failed("B", "x.moved"), _failed("C", "x.gone")]
    head = [
        _failed("A", "x.old"),
        _failed("A", "x.fixed", status="passed"),
        _failed("B", "x.there"),
        _failed("D", "x.new"),
    ]
    diff = compare(base, head, {"x.moved": "x.there"})
    assert [f.address for f in diff.new] == ["x.new"]
    assert [f.address for f in diff.fixed] == ["x.fixed", "x.gone"]
    assert [f.address for f in diff.old] == ["x.old", "x.there"]


def test_skipped_is_no_failure_and_severity_is_ours() -> None:
    diff = compare(
        [], [_failed("A", "x.a", status="skipped"), _failed("B", "x.b", "CRITICAL"), _failed("C", "x.c", "?")]
    )
    assert [(f.check, f.severity) for f in diff.new] == [("B", "critical"), ("C", "medium")]


def test_new_failures_are_on_the_page_and_shut_the_gate() -> None:
    document = Document("plan.json", plan([change("x.new", None, {})]))
    found = review(document, policies=compare([_failed("A", "x.o")], [_failed("A", "x.o"), _failed("B", "x.new")]))
    assert found.findings == []
    assert found.blocks("high")
    assert not found.blocks("critical")
    text = markdown(found)
    assert "| policies | 1 new, 0 fixed, 1 old |" in text
    assert "**high** `x.new` `B` `B is not kept`" in text
    assert as_json(found)["policies"]["new"] == [
        {"check": "B", "severity": "high", "address": "x.new", "message": "B is not kept"}
    ]


_CONFIGURATION = {
    "root_module": {
        "resources": [
            {
                "address": "aws_s3_bucket.b",
                "type": "aws_s3_bucket",
                "name": "b",
                "expressions": {"bucket": {"constant_value": "secret-constant"}},
            },
            {
                "address": "aws_s3_bucket_versioning.v",
                "expressions": {"bucket": {"references": ["aws_s3_bucket.b.id", "aws_s3_bucket.b"]}},
            },
            {
                "address": "aws_s3_bucket_logging.far",
                "expressions": {"bucket": {"references": ["aws_s3_bucket.other.id"]}},
            },
            {"address": "aws_s3_bucket.other", "expressions": {}},
        ],
        "module_calls": {
            "m": {
                "source": "./m",
                "module": {
                    "resources": [
                        {"address": "aws_kms_key.k", "expressions": {}},
                        {
                            "address": "aws_kms_alias.a",
                            "expressions": {
                                "target_key_id": {
                                    "references": ["aws_kms_key.k[0].id", "aws_kms_key.k[0]", "aws_kms_key.k"]
                                }
                            },
                        },
                    ]
                },
            }
        },
    }
}


def _same(address: str, values: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return change(address, values, values, "no-op", **fields)


def _document() -> Document:
    entries = [
        _same("aws_s3_bucket.b", {"bucket": "b"}),
        change("aws_s3_bucket_versioning.v", {"bucket": "b", "on": True}, {"bucket": "b", "on": False}),
        _same("aws_s3_bucket_logging.far", {"bucket": "o"}),
        _same("aws_s3_bucket.other", {"bucket": "o"}),
        change("module.m.aws_kms_key.k[0]", {"token": "tok-before"}, {"token": "tok-after"}, module_address="module.m",
               _after_sensitive={"token": True}, _before_sensitive={"token": True}),
        _same("module.m.aws_kms_alias.a", {"n": 1, "text": "holds tok-after"}, module_address="module.m"),
        change("aws_s3_bucket.new", None, {"bucket": "n"}),
        change("aws_s3_bucket.gone", {"bucket": "g"}, None),
    ]  # fmt: skip
    return Document("plan.json", plan(entries, configuration=_CONFIGURATION))


def _addresses(cut: dict[str, Any]) -> set[str]:
    planned, modules = set(), [cut["planned_values"]["root_module"]]
    while modules:
        module = modules.pop()
        modules += module.get("child_modules", [])
        planned |= {resource["address"] for resource in module["resources"]}
    assert planned == {entry["address"] for entry in cut["resource_changes"]}
    return planned


def test_a_scan_gets_what_changes_and_what_stands_next_to_it() -> None:
    near = {"aws_s3_bucket.b", "aws_s3_bucket_versioning.v", "module.m.aws_kms_key.k[0]", "module.m.aws_kms_alias.a"}
    assert _addresses(scoped(_document())) == near | {"aws_s3_bucket.new"}
    assert _addresses(scoped_base(_document())) == near | {"aws_s3_bucket.gone"}


def test_a_scan_gets_values_as_they_will_be_and_as_they_are_without_secrets() -> None:
    after, before = scoped(_document()), scoped_base(_document())
    assert '"on": false' in json.dumps(after)
    assert '"on": true' in json.dumps(before["planned_values"])
    for cut in (after, before):
        text = json.dumps(cut)
        assert "tok-" not in text
        assert "secret-constant" not in text
        assert "aws_s3_bucket.b.id" in text, "references connect resources for the scan"


def test_a_moved_resource_has_its_old_address_in_the_base() -> None:
    moved = change("aws_s3_bucket.there", {"a": 1}, {"a": 2}, previous_address="aws_s3_bucket.here")
    document = Document("plan.json", plan([moved]))
    assert _addresses(scoped(document)) == {"aws_s3_bucket.there"}
    assert _addresses(scoped_base(document)) == {"aws_s3_bucket.here"}
    assert moves_of(document) == {"aws_s3_bucket.here": "aws_s3_bucket.there"}
