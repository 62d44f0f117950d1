"""The cases, what they cost, and what was seen of them: nothing here starts a cloud."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagefit.acceptance import all_cases, chosen, price_of, seen
from sagefit.acceptance.cases import JOBS, Case, End
from sagefit.acceptance.made import Made
from sagefit.acceptance.price import Budget
from sagefit.errors import SagefitError
from sagefit.failures import diagnose
from sagefit.paths import ACCEPTANCE
from sagefit.planning import plan
from sagefit.platform import Buckets, Platform
from sagefit.running import AttemptRecord, Run, RunRecord

CASES = all_cases()
SEEN = sorted((ACCEPTANCE / "seen").glob("*/*.json"))
PLATFORM = Platform(
    schema_=1,
    name="acceptance",
    partition="aws",
    region="us-east-1",
    account_id="210987654321",
    buckets=Buckets(data="d", artifacts="a", checkpoints="c"),
)


def record(*attempts: AttemptRecord, status: str = "SUCCEEDED") -> RunRecord:
    began = datetime(2026, 11, 29, tzinfo=timezone.utc)
    run = Run("memory-261129-101112", "memory", PLATFORM)
    return RunRecord(run, status, began, began + timedelta(seconds=60), list(attempts))


def attempt(index: int, outcome: str, usd: float | None = 0.01, **more: Any) -> AttemptRecord:
    return AttemptRecord(index, f"a{index}", outcome=outcome, billable_seconds=60, usd=usd, **more)


def test_every_job_has_a_case_and_every_case_a_job() -> None:
    assert len(CASES) == 12
    assert sorted(path.stem for path in JOBS.glob("*.yaml")) == sorted(case.name for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_short_and_says_what_it_shows(case: Case) -> None:
    text = case.job.path.read_text(encoding="utf-8")
    assert case.job.platform in ("acceptance", "acceptance-ci")
    assert text.startswith("# ")
    assert len(case.expects) == (2 if case.does == "run_twice" else 1)
    longest = max(each.longest_seconds for each in plan(case.job).attempts)
    assert longest <= 40 * 60


def test_all_of_them_are_within_the_limit_that_is_the_default() -> None:
    assert sum(price_of(case, "us-east-1").usd for case in CASES) < 6


def test_a_price_counts_every_run_and_every_repeat() -> None:
    (twice, once) = chosen(["stop", "pool"])
    assert once.job.resources.instance_type == twice.job.resources.instance_type
    assert price_of(twice, "us-east-1").usd == pytest.approx(2 * price_of(once, "us-east-1").usd)
    # ml.m5.large for ten minutes, and two to stop, three times
    assert price_of(once, "us-east-1").usd == pytest.approx(3 * 0.115 / 5)


def test_without_a_price_there_is_no_limit_to_keep() -> None:
    with pytest.raises(SagefitError, match=r"case memory: a price in mars-1 is not known") as caught:
        price_of(chosen(["memory"])[0], "mars-1")
    assert "AWS_REGION" in str(caught.value.hint)


def test_a_case_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(SagefitError, match="no case 'memry'") as caught:
        chosen(["memry"])
    assert "memory" in str(caught.value.hint)


@given(st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 1)), min_size=1, max_size=12), st.floats(0.1, 6))
def test_the_limit_is_kept_whatever_cases_cost(costs: list[tuple[float, float]], limit: float) -> None:
    budget, spent = Budget(limit), 0.0
    for case, (most, share) in zip(CASES, costs, strict=False):
        if budget.take(case, most):
            spent += most * share
            records = [record(attempt(0, "completed", usd=most * share / len(case.expects)))] * len(case.expects)
            budget.settle(case, records)
            assert budget.usd >= spent - 1e-9
    assert spent <= limit + 1e-9


def test_what_is_not_known_to_be_cheap_counts_as_dear() -> None:
    (case, kept) = chosen(["memory", "pool"])
    over = record(attempt(0, "completed", usd=0.01))
    for each, records in {
        "a price that is not known": (case, [record(attempt(0, "completed", usd=None))]),
        "a run that is not over": (case, [dataclasses.replace(over, status="RUNNING")]),
        "a second run that was not made": (kept, [over]),
        "instances that are kept and billed after it": (kept, [over, over]),
    }.items():
        budget = Budget(1)
        assert budget.take(records[0], 0.9), each
        budget.settle(*records)
        assert budget.usd == pytest.approx(0.9), each
        assert not budget.take(chosen(["stop"])[0], 0.2), each


def test_an_end_names_what_is_not_so() -> None:
    end = End(status="SUCCEEDED", outcomes=["host_memory", "completed"], metrics={"rows": 3}, warm_pool="Reused")
    good = record(attempt(0, "host_memory"), attempt(1, "completed", metrics={"rows": 3.0}))
    assert end.differences(good, "Reused") == []
    assert end.differences(record(attempt(0, "code"), status="FAILED"), "Available") == [
        "the run: FAILED, not SUCCEEDED",
        "its attempts: code, not host_memory, completed",
        "metric rows: None, not 3",
        "its instances: Available, not Reused",
    ]


def test_a_case_is_judged_by_all_its_runs_and_by_what_the_run_took_them_for() -> None:
    (pool, pending) = chosen(["pending", "pool"])
    moved = record(attempt(0, "capacity"), attempt(1, "completed"))
    fine = record(attempt(0, "completed"))
    assert pending.judged([moved], [None]) == ("as expected", "")
    assert pending.judged([fine], [None]) == ("not seen", "the instances came")
    assert pending.judged([record(attempt(0, "code"), status="FAILED")], [None])[0] == "differs"
    mistaken = record(attempt(0, "capacity", routed_by="code"), attempt(1, "completed"))
    assert pending.judged([mistaken], [None]) == ("differs", "a0 was capacity, and the run took it for code")
    assert pool.judged([fine, fine], ["Reused", "Available"]) == ("as expected", "")
    assert pool.judged([fine, fine], ["Available", "Available"]) == ("differs", "its instances: Available, not Reused")


def test_what_was_seen_does_not_tell_whose_it_is() -> None:
    text = (
        "arn:aws:states:us-east-1:210987654321:execution:sagefit-acceptance-memory:memory-261129-101112"
        " in subnet-0a1b2c3d4e5f60718 with key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9 at 10.74.0.12, 8.5 s"
    )
    assert seen.anonymous(text, record()) == (
        "arn:aws:states:us-east-1:123456789012:execution:sagefit-acceptance-memory:memory-RUN in subnet-0"
        " with key/00000000-0000-0000-0000-000000000000 at 0.0.0.0, 8.5 s"
    )


def test_clouds_are_compared_by_their_words_and_not_by_their_times() -> None:
    here = {"status": "FAILED", "seconds": 3.0, "attempts": [{"job": {"FailureReason": "one"}}], "errors": []}
    there = {
        "status": "FAILED",
        "seconds": 9.0,
        "attempts": [{"job": {"FailureReason": "another"}}],
        "errors": [{"error": "x"}],
    }
    assert list(seen.differences([here], [here | {"seconds": 8.0}])) == []
    assert list(seen.differences([here], [there])) == [
        "attempts[0].job.FailureReason: 'one', and 'another' there",
        "errors[0].error: nothing, and 'x' there",
    ]
    assert list(seen.differences([here, here], [here])) == ["2 runs, and 1 there"]


def test_measured_amounts_are_not_compared() -> None:
    """A process that was killed had come as far as it had, but the limit, the signal and the words stay."""
    killed = "train.py was killed (signal 9) with the host at 0.55 of 0.50 GiB after 3.2 s, exit code: 137"
    other = killed.replace("0.55", "0.51").replace("3.2 s", "12.9 s")
    assert list(seen.differences([{"evidence": killed}], [{"evidence": other}])) == []
    for changed in (killed.replace("137", "1"), killed.replace("signal 9", "signal 15"), f"{killed} 3.2.1", ""):
        assert len(list(seen.differences([{"evidence": killed}], [{"evidence": changed}]))) == 1


def test_what_is_made_is_noted_until_it_is_gone(tmp_path: Path) -> None:
    made = Made(tmp_path / "acceptance")
    for name in ("ground", "acceptance", "job memory"):
        made.begin(name)
    made.begin("acceptance")  # again, after it failed
    assert Made(tmp_path / "acceptance").names == ["ground", "job memory", "acceptance"]
    made.gone("job memory")
    assert made.names == ["ground", "acceptance"]


@pytest.mark.parametrize("path", SEEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_seen_is_told_apart_by_its_reason_alone(path: Path) -> None:
    """Of an attempt that failed, the table of failures tells its class from SageMaker's own words."""
    document = json.loads(path.read_text(encoding="utf-8"))
    for run in document["runs"]:
        for told in run["attempts"]:
            job = told.get("job", {})
            if "FailureReason" in job:
                found = diagnose(job["FailureReason"], secondary_status=job["SecondaryStatus"])
                assert found.failure_class == told["outcome"] == told["by_the_reason_alone"]


def test_of_every_case_the_embedded_cloud_has_been_seen() -> None:
    found = [path.stem for path in SEEN if path.parent.name == "local"]
    assert found == sorted(case.name for case in CASES)
