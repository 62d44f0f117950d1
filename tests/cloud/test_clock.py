"""A machine whose clock is wrong: its signatures are refused as AWS does it, and people are told what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli_runner import Sagefit
from cloud.aws_user import Aws
from cloud.test_throttling import READS, a_cloud
from sagefit.answers import SKEWED, answered_at, understood
from sagefit.errors import FAILED

pytestmark = pytest.mark.xdist_group("throttling")

FAULTS = """
- { match: { call: "s3:ListBuckets" }, outcome: { skew: -1200 } }
- { match: { call: "s3:*" }, outcome: { skew: 600 } }
- { match: { call: "sns:*" }, outcome: { skew: 720 } }
- { match: { call: "sqs:*" }, outcome: { skew: 200 } }
- { match: { call: "*" }, outcome: { skew: -720 } }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clock")


@pytest.fixture(scope="module")
def late(home: Path) -> Iterator[Aws]:
    """A cloud whose users are twelve minutes behind, but for some."""
    yield from a_cloud(home, FAULTS)


def refused(aws: Aws, service: str) -> ClientError:
    method, arguments = READS[service]
    with pytest.raises(ClientError) as caught:
        getattr(aws.new_client(service), method)(**arguments)
    return caught.value


@pytest.mark.parametrize("service", READS)
def test_every_service_refuses_in_words_that_say_what_is_wrong(late: Aws, service: str) -> None:
    error = refused(late, service)
    assert error.response["Error"]["Code"] in SKEWED
    minutes = {"s3": "20 minutes behind", "sns": "12 minutes ahead of"}.get(service, "12 minutes behind")
    said = understood(error, "platform")
    assert said
    assert f"platform: the clock of this machine is {minutes} AWS's" in said.message
    assert "set the clock" in str(said.hint)


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ("iam", "Signature expired: "),
        ("sns", "Signature not yet current: "),
        ("sagemaker", " - 5 min.)"),
        ("s3", "The difference between the request time and the current time is too large."),
    ],
)
def test_the_words_are_those_of_aws(late: Aws, service: str, words: str) -> None:
    assert words in str(refused(late, service))


def test_a_few_minutes_are_taken_and_s3_takes_more(late: Aws) -> None:
    """Time is AWS's all the same, as its answers say it."""
    s3 = late.new_client("s3")
    made = s3.create_bucket(Bucket="ten-minutes-ahead")
    behind = datetime.now(timezone.utc) - (answered_at(made) or datetime.now(timezone.utc))
    assert behind.total_seconds() == pytest.approx(600, abs=30)
    late.new_client("sqs").list_queues()


def test_a_request_that_was_signed_long_ago_is_refused_without_a_fault(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the clock of both that is compared. No fault says by how much here, so the clock is not blamed."""
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda **_: now - timedelta(minutes=6))
    error = refused(aws, "iam")
    assert "Signature expired: " in str(error)
    assert understood(error) is None


def test_a_command_says_that_the_clock_is_wrong(late: Aws, home: Path) -> None:
    assert late
    done = Sagefit(home)("--cloud", "local", "runs", "quickstart", check=FAILED)
    assert "platform: cannot read /sagefit/dev: the clock of this machine is 12 minutes behind AWS's" in done.err
    assert "timedatectl" in done.err
    assert "login" not in done.err


def test_the_doctor_says_that_the_clock_is_wrong(late: Aws, home: Path) -> None:
    assert late
    done = Sagefit(home)("--cloud", "local", "doctor", check=FAILED)
    assert "the clock of this machine is 12 minutes behind AWS's" in done.out
    assert "log in" not in done.out


def answer(code: str, minutes: float | None) -> ClientError:
    date = format_datetime(datetime.now(timezone.utc) + timedelta(minutes=minutes or 0), usegmt=True)
    headers: dict[str, str] = {} if minutes is None else {"date": date}
    response: Any = {"Error": {"Code": code, "Message": "x"}, "ResponseMetadata": {"HTTPHeaders": headers}}
    return ClientError(response, "GetRole")


@pytest.mark.parametrize(
    ("code", "minutes", "words"),
    [
        ("SignatureDoesNotMatch", 0, None),  # a wrong key
        ("SignatureDoesNotMatch", 2, None),
        ("SignatureDoesNotMatch", None, None),
        ("SignatureDoesNotMatch", 61, "61 minutes behind AWS's"),
        ("RequestTimeTooSkewed", -17, "17 minutes ahead of AWS's"),
        ("AccessDenied", 61, None),
    ],
)
def test_the_clock_is_blamed_only_where_it_is_at_fault(code: str, minutes: float | None, words: str | None) -> None:
    said = understood(answer(code, minutes))
    assert said is None if words is None else words in str(said)
