"""The faults file: what it matches, how often it applies, and what it says when it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from sagefit.cloud.faults import Faults, Match
from sagefit.errors import SagefitError


def faults(folder: Path, text: str) -> Faults:
    path = folder / "faults.yaml"
    path.write_text(text)
    return Faults.load(path)


@pytest.mark.parametrize(
    ("match", "name", "matches"),
    [
        (Match(), "anything", True),
        (Match(job="bert"), "bert-261121-101500-0", True),
        (Match(job="bert"), "bert-large-261121-101500-0", False),
        (Match(job="bert*", attempt=1), "bert-large-261121-101500-1", True),
        (Match(job="bert*", attempt=1), "bert-large-261121-101500-0", False),
        (Match(attempt=1), "bert-261121-101500-1b", True),
        (Match(attempt=0), "free-name", False),
        (Match(instance_type="ml.g5.*"), "bert-261121-101500-0", False),
    ],
)
def test_match(match: Match, name: str, matches: bool) -> None:
    assert match.matches(name, "ml.m5.large") is matches


def test_the_first_that_is_not_used_up_applies(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        """
- { times: 2, outcome: { status: Failed, failure_reason: first } }
- { match: { job: "b*" }, outcome: { status: Failed, failure_reason: second } }
""",
    )
    outcomes = [found.next(name, "ml.m5.large") for name in ("a", "b", "a", "b")]
    assert [outcome and outcome.failure_reason for outcome in outcomes] == ["first", "first", None, "second"]


def test_throttling_is_counted_for_each_training_job(tmp_path: Path) -> None:
    found = faults(tmp_path, "[{ times: 1, outcome: { throttle: 2 } }]")
    assert [bool(found.next(name, "")) for name in ("a", "a", "a", "b")] == [True, True, False, False]


def test_requests_are_throttled_by_their_call(tmp_path: Path) -> None:
    """Tries of one request are counted together, and no training job is meant."""
    found = faults(
        tmp_path,
        """
- { match: { call: "sagemaker:Describe*" }, outcome: { throttle: 2 } }
- { match: { call: s3 }, times: 1, outcome: { throttle: 1 } }
""",
    )
    tries = [found.throttles("sagemaker:DescribeTrainingJob", request) for request in ("a", "a", "b", "a")]
    assert tries == [True, True, True, False]
    assert [found.throttles(f"s3:{action}", action) for action in ("GetObject", "PutObject")] == [True, False]
    assert not found.throttles("sagemaker:CreateTrainingJob", "c")
    assert found.next("quickstart-261122-000001-0", "ml.m5.large") is None


def test_a_clock_is_wrong_beside_other_faults(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        """
- { match: { call: s3 }, outcome: { throttle: 1 } }
- { match: { call: "s3:Get*" }, outcome: { skew: -720 } }
- { match: { call: "*" }, outcome: { skew: 30.5 } }
""",
    )
    assert [found.skew(call) for call in ("s3:GetObject", "s3:PutObject", "iam:GetRole")] == [-720, 30.5, 30.5]
    assert [found.throttles("s3:GetObject", "a") for _ in range(2)] == [True, False]
    assert not found.throttles("iam:GetRole", "a")
    assert found.next("quickstart-261122-000001-0", "ml.m5.large") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('- { match: { call: "s3:*" }, outcome: { status: Completed } }', "match.call goes with outcome.throttle"),
        ("- { outcome: { skew: 1 } }", "outcome.skew is of requests: it goes with match.call"),
        ("- { match: { call: s3 }, times: 1, outcome: { skew: 1 } }", "outcome.skew goes without times"),
        ("- { match: { call: s3, job: a }, outcome: { throttle: 1 } }", "match.job of training jobs: give one"),
        ("- { match: { call: S3 }, outcome: { throttle: 1 } }", "fault 1.match.call"),
        ("- { outcome: { throttle: 0 } }", "fault 1.outcome.throttle: Input should be greater than or equal to 1"),
        ("- { outcome: { throttle: 1 } }\n- { otcome: 1 }", "fault 2.outcome: Field required"),
        ("- { match: { name: x }, outcome: { throttle: 1 } }", "fault 1.match.name: Extra inputs are not permitted"),
        ("- { outcome: {} }", "needs exactly one of status, api_error, stopped, interrupt_after_seconds, "),
        ("- { outcome: { status: Failed } }", "status Failed and failure_reason go together"),
        ("- { outcome: { status: Completed, failure_reason: x } }", "status Failed and failure_reason go together"),
        ("- { outcome: { throttle: 1, created: true } }", "created goes with api_error"),
        ("- { outcome: { stopped: Later } }", "fault 1.outcome.stopped: Input should be"),
        ("a: [", "is no YAML"),
        ("just text", "the file: Input should be a valid list"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SagefitError) as caught:
        faults(tmp_path, text)
    assert says in caught.value.message
    assert "faults.yaml" in caught.value.message
