"""Files that are no plan, odd plans and hostile ones: a clear error or a safe page, never a wrong calm."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.plans import change, plan, policy, reviewed
from sagefit.errors import SagefitError
from sagefit.reviewing import Document, as_json, markdown, review

GOOD = plan([change("aws_s3_bucket.b", {"bucket": "b"}, None)])

BROKEN = {
    "empty": (b"", "empty"),
    "blank": (b" \n ", "empty"),
    "cut": (GOOD[: len(GOOD) // 2], "broken JSON"),
    "cut before the end": (GOOD[:-1], "cut off"),
    "zip": (b"PK\x03\x04rest", "saved plan itself"),
    "text": (b"Terraform will perform the following actions:", "plan in words"),
    "log": (b'{"@level":"info"}\n{"@level":"info"}', "log of terraform plan"),
    "bytes": (b"\xff\xfe\xfd\x00{", "no"),
    "not utf-8": (b'{"a": "\xe9"}', "no text"),
    "list": (b"[]", "no object"),
    "number": (b"7", "no JSON|no object"),
    "no version": (b"{}", "format_version is missing"),
    "a state file": (b'{"version": 4, "serial": 1, "lineage": "x"}', "a state"),
    "a state shown": (b'{"format_version": "1.0", "values": {}}', "a state"),
    "a schema": (b'{"format_version": "1.0", "provider_schemas": {}}', "no plan"),
    "next major": (plan(format_version="2.0"), "reads 1.x"),
    "a version of another type": (plan(format_version=1.2), "format_version"),
    "changes that are no list": (plan(resource_changes={"a": 1}), "resource_changes"),
    "a change without actions": (
        plan([{"address": "a.b", "type": "a", "change": {}}]),
        r"resource_changes\[0\].change.actions",
    ),
    "no action at all": (plan([change("a.b", None, {}) | {"change": {"actions": []}}]), "actions"),
    "an action of another type": (plan([change("a.b", None, {}) | {"change": {"actions": [1]}}]), "actions"),
    "a change without a type": (plan([{"address": "a.b", "change": {"actions": ["create"]}}]), "type"),
    "the same change twice": (plan([change("a.b", None, {}), change("a.b", None, {})]), "twice"),
    "a key twice": (GOOD.replace(b'"errored"', b'"resource_changes": [], "errored"'), "twice in one object"),
    "not a number": (plan([change("a.b", None, {"x": float("nan")})]), "NaN"),
    "errored of another type": (plan(errored="no"), "errored"),
    "deep": (b'{"a":' * 100_000, "deeper"),
    "deep and whole": (
        plan(variables=json.loads("[" * 400 + "]" * 400) and {"v": json.loads("[" * 400 + "]" * 400)}),
        "deeper",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_plan_is_refused_by_name(name: str) -> None:
    data, words = BROKEN[name]
    with pytest.raises(SagefitError, match=words) as refused:
        Document("plan.json", data)
    assert refused.value.message.startswith("plan.json: ")
    assert refused.value.hint
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_what_powershell_writes_is_read(encoding: str) -> None:
    boms = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    data = boms.get(encoding, b"") + GOOD.decode().encode(encoding)
    assert [c.address for c in Document("plan.json", data).plan.resource_changes] == ["aws_s3_bucket.b"]


@pytest.mark.parametrize("version", ["0.1", "0.2", "1.0", "1.1", "1.2", "1.99"])
def test_every_minor_version_is_read_and_unknown_keys_are_ignored(version: str) -> None:
    entry = change("aws_s3_bucket.b", {"bucket": "b"}, None) | {"from_the_future": {"x": 1}}
    found = review(Document("plan.json", plan([entry], format_version=version, future=[1])))
    assert [finding.rule for finding in found.findings] == ["stateful-destroy"]


def test_an_old_plan_without_flags_is_said_to_be_uncertain() -> None:
    old = json.loads(GOOD)
    for key in ("complete", "errored", "applyable"):
        del old[key]
    assert "does not say whether it is complete" in markdown(review(Document("p", json.dumps(old).encode())))


def test_an_action_that_is_not_known_is_for_people() -> None:
    found = reviewed(change("aws_s3_bucket.b", {}, {}, "transmogrify"))
    assert [(f.rule, f.severity) for f in found.findings] == [("plan-unknown-action", "high")]
    assert found.blocks("critical"), "what could not be judged must not pass"
    assert "1 unknown" in markdown(found)


def test_a_file_without_its_changes_is_not_called_unchanged() -> None:
    whole = {"resources": [{"address": "aws_s3_bucket.b", "mode": "managed", "type": "aws_s3_bucket", "values": {}}]}
    found = reviewed(planned_values={"root_module": whole})
    assert found.verdict == "review needed"
    assert "No change is listed" in markdown(found)


HOSTILE = (
    "`; rm -rf /`",
    "```\n</details>\n# Nothing to see\n```diff",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</summary></details><!-- -->",
    "| a | b |\n|---|---|",
    "@everyone #1 GH-2 https://evil.example",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "--> <h1>approved</h1> <!--",
    "{{ 7 * 7 }} {% raw %} {} {0.__class__}",
    "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe \u200b",
    "~~~~\n~~~~",
    "\\`escape\\` \\",
    "a" * 10_000,
    "\ud800 lone",
)


def _tokens(page: str) -> list[Any]:
    from markdown_it import MarkdownIt

    flat: list[Any] = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(page):
        flat += [token, *(token.children or [])]
    return flat


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_values_and_names_of_strangers_stay_text(text: str) -> None:
    name = text.encode("utf-8", "replace").decode()  # a lone surrogate in a name is refused when the plan is read
    address = f'aws_s3_bucket.b["{name}"]'
    statement = {"Sid": text, "Effect": "Allow", "Action": ["s3:GetObject", text], "Resource": [text], "Principal": "*"}
    page = markdown(
        reviewed(
            change(address, {"bucket": text, "tags": {text: "a"}}, {"bucket": text + "x", "tags": {text: "b"}}),
            change("aws_s3_bucket_policy.p", {"policy": policy()}, {"policy": policy(statement)}),
            change("aws_ebs_volume.v", {"encrypted": True, "tags": {"n": text}}, None, name=name),
            change("aws_cloudwatch_metric_alarm.a", {"alarm_actions": [text], "threshold": 1}, {"alarm_actions": []}),
            terraform_version=name,
            output_changes={name: {"actions": ["create"], "after": text}},
            checks=[
                {"address": {"to_display": text}, "status": "fail", "instances": [{"problems": [{"message": text}]}]}
            ],
        )
    )
    tokens = _tokens(page)
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert set(re.findall(r"<(/?[a-z0-9]+)", html)) <= {
        "details",
        "/details",
        "summary",
        "/summary",
        "sub",
        "/sub",
        "br",
    }
    assert not [token.type for token in tokens if token.type in ("link_open", "image")]
    assert [t.tag for t in tokens if t.type == "heading_open"] == ["h2", "h3"]
    text_outside = "".join(token.content for token in tokens if token.type == "text")
    assert "@everyone" not in text_outside
    assert "approved" not in text_outside
    assert not any(ord(letter) < 32 and letter != "\n" for letter in page)
    assert "\u202e" not in page
    assert len(page.encode()) <= 60_000


def test_a_huge_value_is_cut_and_its_size_told() -> None:
    page = markdown(reviewed(change("aws_sns_topic.t", {"display_name": "x" * 10_000_000}, {"display_name": "y"})))
    assert "10,000,000 characters" in page
    assert len(page) < 10_000


@pytest.mark.parametrize("depth", [140, 700, 100_000])
def test_a_policy_that_nests_too_deep_is_not_called_known(depth: int) -> None:
    deep = '{"Statement":' + "[" * depth + "]" * depth + "}"
    found = reviewed(
        change("aws_iam_policy.p", {"policy": policy({"Effect": "Deny", "Action": "*"})}, {"policy": deep})
    )
    assert [finding.severity for finding in found.findings] == ["high"]
    assert len(markdown(found)) < 10_000


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_TYPES = st.sampled_from(
    [
        "aws_s3_bucket", "aws_iam_role_policy", "aws_security_group", "aws_cloudwatch_metric_alarm",
        "aws_sfn_state_machine", "aws_network_acl", "aws_lambda_permission", "aws_iam_role", "aws_kms_key",
        "aws_dynamodb_table", "aws_scheduler_schedule", "aws_cloudwatch_event_rule", "aws_cloudwatch_event_target",
        "aws_ecr_lifecycle_policy", "aws_s3_bucket_lifecycle_configuration", "aws_ssm_parameter",
        "aws_sns_topic_subscription", "aws_ec2_managed_prefix_list", "aws_s3_bucket_policy",
    ]
)  # fmt: skip
_PARTS = st.sampled_from(
    [
        "planned_values", "configuration", "variables", "checks", "output_changes", "resource_drift",
        "deferred_changes", "prior_state", "resource_changes",
    ]
)  # fmt: skip
_NAMES = ["policy", "ingress", "egress", "definition", "alarm_actions", "threshold", "assume_role_policy", "principal",
          "logging_configuration", "metric_query", "evaluation_periods", "inline_policy", "managed_policy_arns",
          "server_side_encryption", "cidr_blocks", "password", "event_pattern", "filter_policy", "rule", "target",
          "input", "name", "schedule_expression", "type", "entry", "tags", "role_arn", "arn", "state"]  # fmt: skip
_VALUES = st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=4)


@given(_TYPES, _VALUES, _VALUES, _JSON, _JSON)
def test_any_values_make_a_page_and_a_report(of_type: str, before: Any, after: Any, unknown: Any, marks: Any) -> None:
    entry = change(
        f"{of_type}.x", before, after, _after_unknown=unknown, _before_sensitive=marks, _after_sensitive=unknown
    )
    drift = change(f"{of_type}.x", after, before, _before_sensitive=marks)
    found = reviewed(
        entry, resource_drift=[drift], prior_state={"values": unknown}, configuration={"root_module": marks}
    )
    assert markdown(found)
    json.dumps(as_json(found))


_KEYS = st.sampled_from(
    [
        "StartAt", "States", "Type", "Resource", "Parameters", "Retry", "MaxAttempts", "Choices", "Catch", "Next",
        "Default", "Environment", "InstanceType", "InstanceCount", "MaxRuntimeInSeconds", "TrainingImage", "S3Uri.$",
        "HyperParameterTuningJobConfig", "ResourceLimits", "MaxNumberOfTrainingJobs", "KmsKeyId", "seconds", "Comment",
    ]
)  # fmt: skip
_TEXTS = st.sampled_from(
    ["a", "b", "Pass", "ml.g5.xlarge", "arn:aws:states:::sagemaker:createTrainingJob", "s3://b/c", "3600", "{", "[1]"]
)
_DEFINITIONS = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | _TEXTS, inner, max_size=5),
    max_leaves=20,
)


@given(_DEFINITIONS, _DEFINITIONS, _DEFINITIONS)
def test_any_definition_is_judged(before: Any, after: Any, given_to_it: Any) -> None:
    sides = [{"name": "m", "definition": json.dumps({"States": {}, **each} if isinstance(each, dict) else each)}
             for each in (before, after)]  # fmt: skip
    schedule = {"schedule_expression": "rate(1 day)", "target": [{"arn": ":stateMachine:m", "input": given_to_it}]}
    found = reviewed(
        change("aws_sfn_state_machine.m", sides[0], sides[1]), change("aws_scheduler_schedule.s", None, schedule)
    )
    assert markdown(found)


@given(st.dictionaries(_PARTS, _JSON))
def test_any_plan_is_refused_or_reviewed(fields: dict[str, Any]) -> None:
    try:
        document = Document("plan.json", plan(**fields))
    except SagefitError:
        return
    markdown(review(document))
