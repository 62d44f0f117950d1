"""What a page tells beside the plan: runs, who shares a platform, and where things are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from review.plans import change, policy, reviewed
from review.test_jobs import definition, machine
from sagefit.reviewing import Links, PastRun, Runs, Written, brief, console, markdown

RAN = PastRun("digits-261128-120000", "2026-11-28 12:00", "completed", 1, "ml.g5.xlarge", 20.06, 3.14, 0.314)
FILES = "https://host/ada/models/blob/abc/"


def test_the_last_runs_of_a_job_are_told_with_memory_and_price() -> None:
    failed = PastRun("digits-261127-120000", "2026-11-27 12:00", "failed: memory", 3, "2 x ml.p3.2xlarge", usd=8.0)
    running = replace(RAN, name="digits-261128-130000", ended="", usd=0.0, estimated=True, gpu_gib=None, host_gib=None)
    runs = Runs(last=[running, RAN, failed], in_progress=[running.name])
    text = markdown(reviewed(machine(definition(), definition(batch="16"))), runs=runs)
    rows = [line for line in text.split("### Last runs")[1].splitlines() if line.startswith("|")]
    assert rows == [
        "| run | started (UTC) | ended | on | memory, at most | USD |",
        "|---|---|---|---|---|--:|",
        "| `digits-261128-130000` | 2026-11-28 12:00 | in progress | `ml.g5.xlarge` | - | about 0.00 |",
        "| `digits-261128-120000` | 2026-11-28 12:00 | `completed` | `ml.g5.xlarge` "
        "| GPU 20.1 GiB, host 3.1 GiB | 0.31 |",
        "| `digits-261127-120000` | 2026-11-27 12:00 | `failed: memory` (3 attempts) "
        "| `2 x ml.p3.2xlarge` | - | 8.00 |",
    ]
    assert "**1 run in progress**: `digits-261128-130000`. What has begun goes on with the definition" in text
    assert text.count("no finding rests on it") == 1
    assert "Last runs" not in markdown(reviewed(machine(None, definition())), runs=Runs())
    assert brief(reviewed(machine(None, definition())), runs).running == 1


def test_a_platform_names_the_jobs_that_share_it() -> None:
    runs = Runs(jobs=[f"job-{number}" for number in range(14)], in_progress=["job-3-261128-120000"])
    found = reviewed(change("module.role.aws_iam_policy.x", {"policy": policy()}, {"policy": policy()}))
    text = markdown(found, runs=runs)
    assert "### Who shares it\n\n14 jobs of this platform: `job-0`, `job-1`" in text
    assert "`job-11` and 2 more." in text
    assert "**1 run in progress**: `job-3-261128-120000`." in text
    assert (brief(found, runs).sharing, brief(found).sharing) == (14, 0)


def test_why_nothing_is_known_is_said() -> None:
    text = "\n\n".join(Runs(unknown="AccessDenied </details> `states:DescribeExecution`").lines())
    assert text.startswith("### Last runs\n\nNothing is known of them: `` AccessDenied </details> `states:")
    assert "Nothing is known of their runs" in "\n".join(Runs(jobs=["a"], unknown="x").lines())


def test_a_page_leads_to_its_rules_to_the_line_that_was_edited_and_to_the_console() -> None:
    wider = policy({"Effect": "Allow", "Action": "*", "Resource": "*"})
    links = Links(FILES, f"{FILES}docs/review.md")
    found = reviewed(change("aws_iam_policy.p", {"policy": policy()}, {"policy": wider}), links=links)
    wrote = Written("jobs/a b.yaml", b"a: 1\nb: 2\nc: 3\n", b"a: 1\nb: 2\nc: 4\n")
    where = console("eu-central-1", "123456789012", "sagefit-dev-digits")
    text = markdown(found, written=wrote, runs=Runs(last=[RAN]), console=where)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert f'<a href="{FILES}docs/review.md#iam-admin"><code>iam-admin</code></a>' in html
    assert f'<a href="{FILES}jobs/a%20b.yaml#L3"><code>jobs/a b.yaml:3</code></a>' in html
    states = "https://console.aws.amazon.com/states/home?region=eu-central-1#"
    execution = "arn:aws:states:eu-central-1:123456789012:execution:sagefit-dev-digits:digits-261128-120000"
    assert f'<a href="{states}/v2/executions/details/{execution}"><code>digits-261128-120000</code></a>' in html
    machine_ = "arn:aws:states:eu-central-1:123456789012:stateMachine:sagefit-dev-digits"
    assert f'<a href="{states}/statemachines/view/{machine_}">The state machine</a> in the console.' in html


def test_without_addresses_nothing_is_a_link() -> None:
    wider = policy({"Effect": "Allow", "Action": "*", "Resource": "*"})
    found = reviewed(change("aws_iam_policy.p", {"policy": policy()}, {"policy": wider}))
    text = markdown(found, written=Written("jobs/a.yaml", b"a: 1", b"a: 2"), runs=Runs(last=[RAN]))
    assert "](" not in text


@pytest.mark.parametrize(
    ("region", "start"),
    [
        ("cn-north-1", "https://console.amazonaws.cn/states/"),
        ("us-gov-west-1", "https://console.amazonaws-us-gov.com/states/"),
    ],
)
def test_other_partitions_have_consoles_of_their_own(region: str, start: str) -> None:
    found = console(region, "123456789012", "sagefit-dev-digits")
    assert found
    assert start in found.of_machine("x")
    partition = "aws-cn" if region.startswith("cn") else "aws-us-gov"
    assert f"arn:{partition}:states:{region}:" in found.of_run("r")


@pytest.mark.parametrize(
    "given", [("x) [y](https://z", "1" * 12, "m"), ("us-east-1", "1", "m"), ("us-east-1", "1" * 12, "a/b")]
)
def test_what_is_no_place_of_aws_has_no_console(given: tuple[str, str, str]) -> None:
    assert console(*given) is None


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (None, "a: 1\n", 1),
        ("a: 1\nb: 2\n", "a: 1\n", 2),
        ("a: 1\n" * 9 + "b: 2\n", "a: 1\n" * 9 + "b: 3\n", 10),
        ("a: 1\n", "a: 1\n", None),
    ],
)
def test_the_line_that_was_edited(before: str | None, after: str, line: int | None) -> None:
    assert Written("x", before.encode() if before else None, after.encode()).line == line
