"""What a recovery knows without asking: how things are called, and whose a lock is."""

from __future__ import annotations

import json
import os
import pwd
import re
import socket
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sagefit.paths import ROOT
from sagefit.processes import Identity
from sagefit.recover.names import IDENTIFIERS, WITHOUT, Place, identifiers
from sagefit.recover.taken_back import mend_state_file
from sagefit.terraform import StateLock
from sagefit.terraform.at_work import Begun

_PLACE = Place("aws", "eu-west-1", "123456789012")
_ME = f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"


def test_every_resource_of_the_modules_has_an_identifier_or_a_reason() -> None:
    files = [*ROOT.glob("*.tf"), *(ROOT / "job").glob("*.tf"), *(ROOT / "modules").glob("*/*.tf")]
    used = {name for file in files for name in re.findall(r'^resource "(\w+)"', file.read_text(), re.MULTILINE)}
    assert not IDENTIFIERS.keys() & WITHOUT.keys()
    assert used == IDENTIFIERS.keys() | WITHOUT.keys()


def create(kind: str, after: dict[str, Any], name: str = "this", actions: tuple[str, ...] = ("create",)) -> Any:
    change = {"actions": list(actions), "after": after}
    return {"address": f"{kind}.{name}", "type": kind, "change": change}


def test_identifiers_come_from_what_a_plan_knows() -> None:
    document = {
        "resource_changes": [
            create("aws_iam_role", {"name": "r"}),
            create("aws_iam_role_policy", {"name": "p", "role": "r"}),
            create("aws_iam_role_policy", {"name": "p"}, "later"),  # its role is not known yet
            create("aws_cloudwatch_event_rule", {"name": "e"}),
            create("aws_cloudwatch_event_rule", {"name": "e", "event_bus_name": "b"}, "bus"),
            create("aws_sfn_state_machine", {"name": "m"}),
            create("aws_s3_object", {"bucket": "b", "key": "a/b c"}),
            create("aws_ssm_parameter", {"name": "/x"}, actions=("update",)),
            create("aws_sns_topic_subscription", {"endpoint": "a@example.com"}),
        ]
    }
    assert identifiers(document, _PLACE) == {
        "aws_iam_role.this": "r",
        "aws_iam_role_policy.this": "r:p",
        "aws_cloudwatch_event_rule.this": "default/e",
        "aws_cloudwatch_event_rule.bus": "b/e",
        "aws_sfn_state_machine.this": "arn:aws:states:eu-west-1:123456789012:stateMachine:m",
        "aws_s3_object.this": "b/a/b c",
    }


@mock_aws
@pytest.mark.parametrize("aliased", [True, False])
def test_a_kms_key_is_found_by_its_alias_or_its_tags(aliased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    kms = boto3.client("kms")
    tags = {"sagefit:platform": "dev", "team": "a"}

    def made(description: str, **changes: str) -> str:
        pairs = [{"TagKey": name, "TagValue": value} for name, value in (tags | changes).items()]
        return str(kms.create_key(Description=description, Tags=pairs)["KeyMetadata"]["KeyId"])

    other, mine = made("of dev", team="b"), made("of dev")
    made("something else")
    ended = made("of dev")
    kms.schedule_key_deletion(KeyId=ended)
    if aliased:
        kms.create_alias(AliasName="alias/dev", TargetKeyId=other)
    key = create("aws_kms_key", {"description": "of dev", "tags_all": tags})
    found = identifiers({"resource_changes": [key, create("aws_kms_alias", {"name": "alias/dev"})]}, _PLACE)
    assert found == {"aws_kms_key.this": other if aliased else mine, "aws_kms_alias.this": "alias/dev"}
    if not aliased:
        made("of dev")  # which of two is not known
        assert "aws_kms_key.this" not in identifiers({"resource_changes": [key]}, _PLACE)


def locked(who: str = _ME, created: float | None = None) -> StateLock:
    when = datetime.fromtimestamp(time.time() if created is None else created, timezone.utc)
    said = f"""Error acquiring the state lock: Error message: api error PreconditionFailed
Lock Info:
  ID:        306a7aab-02f3
  Path:      states/x.tfstate
  Operation: OperationTypeApply
  Who:       {who}
  Version:   1.11.4
  Created:   {when:%Y-%m-%d %H:%M:%S.%f}123 +0000 UTC
  Info:      """
    lock = StateLock.of(said)
    assert lock
    return lock


def test_a_lock_is_read_from_what_terraform_says() -> None:
    lock = locked("a@b", 1700000000.25)
    assert (lock.id, lock.operation, lock.who) == ("306a7aab-02f3", "apply", "a@b")
    assert lock.created.timestamp() == 1700000000.25
    assert StateLock.of("Error acquiring the state lock: no info") is None


@pytest.mark.parametrize(
    ("who", "made", "begun", "reason"),  # in seconds: the lock, start and end of a Terraform that is gone
    [
        (_ME, 55, [(0, None)], None),
        (_ME, 55, [(0, 56)], None),
        (_ME, 55, [(0, 10), (50, 56)], None),
        (f"somebody@{socket.gethostname()}", 55, [(0, None)], "held by somebody@"),
        (f"{_ME}.example.com", 55, [(0, None)], "held by"),
        (_ME, 55, [], "no Terraform"),
        (_ME, 55, [(0, 30)], "no Terraform"),
        (_ME, -30, [(0, None)], "no Terraform"),
    ],
)
def test_only_a_lock_of_a_terraform_of_ours_that_is_gone_was_left_behind(
    who: str, made: float, begun: list[tuple[float, float | None]], reason: str | None, tmp_path: Path
) -> None:
    zero = time.time() - 60
    gone = [Begun(Identity(999999, zero + start), None if end is None else zero + end) for start, end in begun]
    said = locked(who, zero + made).why_not_ours(gone, "dev/platform-of-nobody", tmp_path)
    assert said is None if reason is None else reason in str(said)


def test_a_lock_of_a_terraform_that_runs_was_not_left_behind(tmp_path: Path) -> None:
    said = locked().why_not_ours([Begun(Identity.of())], "dev/platform-of-nobody", tmp_path)
    assert "no Terraform" in str(said)


def test_a_user_without_a_name_has_locks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as any number: Terraform then looks at the environment."""
    monkeypatch.setenv("USER", "u")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    gone = [Begun(Identity(999999, time.time() - 60))]
    assert locked(f"u@{socket.gethostname()}").why_not_ours(gone, "dev/platform-of-nobody", tmp_path) is None


class FileStack:
    """A stack of which only the file of its state matters."""

    key = "dev/platform"

    def __init__(self, file: Path) -> None:
        self.state_file = file


@pytest.mark.parametrize("cut", ["", '{\n  "version": 4,\n  "terra', "[]"])
def test_a_state_file_that_was_cut_off_is_kept_beside_the_one_of_before(tmp_path: Path, cut: str) -> None:
    file, before = tmp_path / "x.tfstate", json.dumps({"version": 4, "lineage": "l", "serial": 7})
    stack: Any = FileStack(file)
    file.with_name("x.tfstate.backup").write_text(before, encoding="utf-8")
    for kept in ("x.tfstate.broken", "x.tfstate.broken1"):  # nothing is overwritten
        file.write_text(cut, encoding="utf-8")
        mend_state_file(stack)
        assert file.with_name(kept).read_text(encoding="utf-8") == cut
        assert file.read_text(encoding="utf-8") == before
    mend_state_file(stack)  # a whole one is left alone
    assert len(list(tmp_path.iterdir())) == 4


def test_a_state_file_that_was_cut_off_without_one_of_before_starts_anew(tmp_path: Path) -> None:
    file = tmp_path / "x.tfstate"
    stack: Any = FileStack(file)
    mend_state_file(stack)  # there is none
    file.write_text("{", encoding="utf-8")
    mend_state_file(stack)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tfstate.broken"]
