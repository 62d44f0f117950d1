"""The page: its order, its size, and what it says of many changes."""

from __future__ import annotations

import json
import random
from datetime import date
from typing import Any

import pytest

from review.plans import change, plan, policy, reviewed
from sagefit.reviewing import Document, Tuning, Written, as_json, markdown, review
from sagefit.reviewing.judge import Review
from sagefit.reviewing.page import BUDGET
from sagefit.reviewing.tune import Suppression


def _many(count: int, dangerous: int) -> list[dict[str, Any]]:
    rest = [
        change(
            f'aws_sns_topic.t["{i}"]',
            {"display_name": f"old {i}", "tags": {"n": "x" * 50}},
            {"display_name": f"new {i}"},
        )
        for i in range(count)
    ]
    gone = [
        change(f'module.data["{i % 7}"].aws_s3_bucket.b["{i}"]', {"bucket": f"b{i}"}, None) for i in range(dangerous)
    ]
    return [*rest, *gone]


@pytest.mark.parametrize(("count", "dangerous"), [(0, 0), (1, 1), (300, 3), (3000, 50), (5000, 900), (0, 8000)])
def test_the_page_fits_and_keeps_every_danger(count: int, dangerous: int) -> None:
    text = markdown(reviewed(*_many(count, dangerous)))
    assert len(text.encode()) <= BUDGET
    assert f"{dangerous} critical" in text or not dangerous
    decisions = text.split("### Needs a decision")[1].split("<details>")[0]
    assert "stateful-destroy" in decisions or not dangerous
    if 0 < dangerous <= 50:
        for index in range(dangerous):
            assert f'aws_s3_bucket.b["{index}"]' in decisions
    if count + dangerous > 2000:
        assert "left out here for want of room" in text


def test_wide_values_in_many_decisions_fit_too() -> None:
    wide = [
        change(
            f"aws_iam_role_policy.{'p' * 150}{i}",
            {"policy": policy()},
            {
                "policy": policy(
                    {"Effect": "Allow", "Action": ["s3:*"] * 50, "Resource": [f"arn:{'é' * 400}{n}" for n in range(20)]}
                )
            },
        )
        for i in range(400)
    ]
    text = markdown(reviewed(*wide))
    assert len(text.encode()) <= BUDGET
    assert "iam-" in text


def test_the_least_dangerous_is_cut_first() -> None:
    text = markdown(
        reviewed(*_many(2000, 0), *(change(f"aws_lambda_alias.a{i}", {"name": f"a{i}"}, None) for i in range(30)))
    )
    assert all(f"`aws_lambda_alias.a{i}` delete" in text for i in range(30))
    assert text.index("Destroyed, replaced") < text.index("Updated in place")
    assert "left out here" in text.split("Updated in place")[1]


def test_the_order_of_changes_and_of_sets_does_not_matter() -> None:
    entries = _many(20, 5)
    shuffled = random.Random(1).sample(entries, len(entries))
    pages = [
        markdown(reviewed(*each)).split("### Needs a decision")[1].split("<details>")[0] for each in (entries, shuffled)
    ]
    assert pages[0] == pages[1]


def test_findings_are_sorted_by_severity() -> None:
    report = as_json(
        reviewed(
            change("aws_sqs_queue.q", {"message_retention_seconds": 9000}, {"message_retention_seconds": 60}),
            change("aws_cloudwatch_log_group.g", {"retention_in_days": 9}, {"retention_in_days": 1}),
            change("aws_s3_bucket.b", {}, None),
        )
    )
    assert [f["severity"] for f in report["findings"]] == ["critical", "high", "medium"]
    assert report["summary"]["delete"] == 1
    assert set(report) >= {"summary", "findings", "jobs", "cost"}
    assert set(report["findings"][0]) >= {"rule", "severity", "address", "message"}


def test_json_strings_are_compared_by_what_they_hold() -> None:
    before = policy({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "a"})
    after = json.dumps(json.loads(before), indent=4)
    text = markdown(reviewed(change("aws_iam_policy.p", {"policy": before}, {"policy": after, "path": "/x/"})))
    assert "policy" not in text.split("```diff")[1].split("```")[0]


def test_sets_are_compared_without_their_order() -> None:
    before = {"rules": [{"port": 1, "peer": "a"}, {"port": 2, "peer": "b"}, {"port": 3, "peer": "c"}]}
    after = {"rules": [{"port": 3, "peer": "c"}, {"port": 1, "peer": "a"}, {"port": 2, "peer": "z"}]}
    shown = markdown(reviewed(change("aws_x.y", before, after))).split("```diff")[1].split("```")[0]
    assert shown.split("\n")[1:-1] == ["  - rules[2].peer: b", "  + rules[2].peer: z"]


def test_unknown_values_stay_unknown() -> None:
    entry = change("aws_x.y", {"a": "1", "b": "2"}, {"b": "2"}, _after_unknown={"a": True})
    assert "+ a: (known after apply)" in markdown(reviewed(entry))


def _drift(**fields: Any) -> Review:
    entry = change(
        "aws_cloudwatch_log_group.g", {"retention_in_days": 7, "tags": {}}, {"retention_in_days": 30, "tags": {}}
    )
    noise = change("aws_sns_topic.t", {"tags": None, "tags_all": {}}, {"tags": {}, "tags_all": {"a": "b"}})
    hand = change("aws_cloudwatch_log_group.g", {"retention_in_days": 30}, {"retention_in_days": 7})
    return reviewed(entry, resource_drift=[noise, hand], **fields)


def test_a_change_by_hand_that_goes_back_is_told_and_noise_is_not() -> None:
    found = _drift()
    assert [(f.rule, f.address) for f in found.findings] == [("drift-reverted", "aws_cloudwatch_log_group.g")]
    assert found.drifted == (1, 1)
    assert "| drift | 1 in something that matters, 1 in form only |" in markdown(found)


def _accepting(expires: date, address: str = "aws_s3_bucket.b") -> Tuning:
    accepted = Suppression(rule="stateful-destroy", address=address, reason="emptied, ticket 17", expires=expires)
    return Tuning(suppress=[accepted])


def test_an_accepted_finding_is_told_apart_and_expires() -> None:
    gone = change("aws_s3_bucket.b", {}, None)
    until = reviewed(gone, tuning=_accepting(date(2026, 6, 1)))
    assert until.findings == []
    assert not until.blocks("low")
    assert "emptied, ticket 17" in markdown(until)
    assert as_json(until)["suppressed"][0]["expires"] == "2026-06-01"
    after = reviewed(gone, tuning=_accepting(date(2026, 5, 31)))
    assert [f.rule for f in after.findings] == ["stateful-destroy", "suppression-expired"]


def test_an_acceptance_is_of_its_address_only() -> None:
    entries = [change(f'aws_s3_bucket.b["{key}"]', {}, None) for key in ("x", "y")]
    found = reviewed(*entries, tuning=_accepting(date(2027, 1, 1), 'aws_s3_bucket.b["x"]'))
    assert [f.address for f in found.findings] == ['aws_s3_bucket.b["y"]']
    assert reviewed(*entries, tuning=_accepting(date(2027, 1, 1), "aws_s3_bucket.*")).findings == []


def test_severities_can_be_tuned() -> None:
    found = reviewed(change("aws_s3_bucket.b", {}, None), tuning=Tuning(severities={"stateful-destroy": "low"}))
    assert [f.severity for f in found.findings] == ["low"]
    assert not found.blocks("medium")


def test_one_document_gives_one_page() -> None:
    data = plan(_many(50, 10))
    assert len({markdown(review(Document("plan.json", data))) for _ in range(3)}) == 1


def test_what_the_author_wrote_is_shown_beside_what_it_does() -> None:
    plain = reviewed(change("aws_sns_topic.t", None, {"name": "t"}))
    before = "\n".join(f"line-{number}: 1" for number in range(40))
    after = before.replace("line-20: 1", "line-20: '</details> ``` @ada'")
    page = markdown(plain, written=Written("jobs/a<b.yaml", before.encode(), after.encode()))
    assert "<details><summary>What the author wrote in jobs/a&lt;b.yaml (2)</summary>" in page
    assert "-line-20: 1\n+line-20: '</details> ``` @ada'\n line-21: 1\n" in page
    assert "````diff\n" in page
    assert "line-17" not in page
    assert page.index("What the author wrote") < page.index("Created (1)")
    new = markdown(plain, written=Written("jobs/a.yaml", None, "\n".join(f"a{n}: 1" for n in range(500)).encode()))
    assert "What the author wrote in jobs/a.yaml (500)" in new
    assert "… 381 more lines" in new
    assert markdown(plain, written=Written("jobs/a.yaml", b"a: 1", b"a: 1")) == markdown(plain)
