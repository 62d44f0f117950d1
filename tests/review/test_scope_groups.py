"""What is scanned of a plan of copies: one of each kind, with verdicts for all as if each had been scanned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from review.plans import change, plan
from review.stack import Stack
from sagefit.checkov import Finding, scan
from sagefit.reviewing import Document
from sagefit.reviewing.groups import grouped
from sagefit.reviewing.policies import scoped
from sagefit.reviewing.scan import judged, policy_diff

_AWS = {"provider_name": "registry.terraform.io/hashicorp/aws"}

# Every bucket has its versioning, that of `gamma` off; one key and one role for all; two modules of one source.
_STACK = """
locals {
  teams = toset(["alpha", "beta", "gamma", "delta", "public"])
  shut  = setsubtract(local.teams, ["beta"])
}
resource "aws_kms_key" "hub" {
  description         = "for all"
  enable_key_rotation = true
}
resource "aws_s3_bucket" "data" {
  for_each = local.teams
  bucket   = "data-${each.key}"
}
resource "aws_s3_bucket_versioning" "data" {
  for_each = local.teams
  bucket   = aws_s3_bucket.data[each.key].id
  versioning_configuration { status = each.key == "gamma" ? "Suspended" : "Enabled" }
}
resource "aws_s3_bucket_server_side_encryption_configuration" "data" {
  for_each = local.teams
  bucket   = aws_s3_bucket.data[each.key].bucket
  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.hub.arn
    }
  }
}
resource "aws_s3_bucket_public_access_block" "data" {
  for_each                = local.shut
  bucket                  = aws_s3_bucket.data[each.key].bucket
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}
resource "aws_iam_role" "hub" {
  name               = "hub"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = [{
    Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }] })
}
resource "aws_iam_role_policy" "reader" {
  count  = 8
  name   = "reader-${count.index}"
  role   = aws_iam_role.hub.id
  policy = jsonencode({ Version = "2012-10-17", Statement = [{
    Effect = "Allow", Action = count.index == 5 ? "s3:*" : "s3:GetObject",
    Resource = "arn:aws:s3:::reader-${count.index}/*" }] })
}
resource "aws_security_group" "node" {
  count       = 6
  name        = "node-${count.index}"
  description = "nodes"
  ingress {
    description = "ssh"
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = [count.index == 4 ? "0.0.0.0/0" : "10.0.0.0/16"]
  }
}
resource "aws_ebs_volume" "disk" {
  count             = 8
  availability_zone = "us-east-1a"
  size              = 10
  encrypted         = count.index != 3
  kms_key_id        = count.index == 6 ? null : aws_kms_key.hub.arn
}
module "queues" {
  source   = "./queues"
  for_each = toset(["in", "out", "dead"])
  name     = each.key
  hidden   = each.key != "dead"
}
"""
_QUEUES = """
variable "name" { type = string }
variable "hidden" { type = bool }
resource "aws_sqs_queue" "q" {
  count                   = 2
  name                    = "${var.name}-${count.index}"
  sqs_managed_sse_enabled = var.hidden
}
resource "aws_cloudwatch_log_group" "q" {
  name              = "/q/${var.name}"
  retention_in_days = 400
}
"""


def _verdicts(found: list[Finding]) -> set[tuple[str, str, str]]:
    return {(each.check, each.address, each.status) for each in found}


@pytest.mark.full(witness="tests/review/test_scan.py::test_failures_are_new_fixed_or_old")
@pytest.mark.xdist_group("review-scan")
def test_verdicts_are_those_of_a_scan_of_every_resource(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "main.tf").write_text(_QUEUES)
    created = stack.plan(_STACK)
    stack.pretend_applied(created)
    updated = stack.plan(_STACK.replace("size              = 10", "size = count.index < 2 ? 30 : 20"))
    for cut in (scoped(Document("new", created)), scoped(Document("old", updated))):
        groups = grouped(cut)
        assert sorted(a for members in groups.members.values() for a in members) == sorted(
            entry["address"] for entry in cut["resource_changes"]
        )
        assert len(groups.plan["resource_changes"]) < len(cut["resource_changes"])
        verdicts = _verdicts(judged(groups))
        assert verdicts == _verdicts(scan(cut))
        odd = "aws_ebs_volume.disk[3]"
        assert groups.members[odd] == (odd,)
        assert verdicts >= {("CKV_AWS_3", odd, "failed"), ("CKV_AWS_3", "aws_ebs_volume.disk[5]", "passed")}


def _groups(*values: dict[str, Any], kind: str = "aws_ebs_volume", **fields: Any) -> list[tuple[str, ...]]:
    """The groups of resources that are made with these values, by their place in the list."""
    made = [change(f"{kind}.x[{place}]", None, value, **(_AWS | fields)) for place, value in enumerate(values)]
    found = grouped(scoped(Document("plan.json", plan(made)))).members.values()
    return sorted(tuple(address.split("[")[1][:-1] for address in members) for members in found)


_FIRST = ("0",)  # checkov connects what has no key to the first instance, so that one is judged alone


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"encrypted": True}, {"encrypted": False}),
        ({"size": 1}, {"size": True}),
        ({"cidr_blocks": ["10.0.0.1/32"]}, {"cidr_blocks": ["10.0.0.2/32"]}),
        ({"version": "1.1"}, {"version": "1.2"}),
        ({"policy": '{"Action": "s3:GetObject"}'}, {"policy": '{"Action": "s3:*"}'}),
        ({"policy": '{"Resource": "arn:aws:s3:::b/*"}'}, {"policy": '{"Resource": "*"}'}),
        ({"owner": "arn:aws:iam::1:root"}, {"owner": "arn:aws:iam::2:root"}),
        ({"policy_arn": "arn:aws:iam::aws:policy/P1"}, {"policy_arn": "arn:aws:iam::aws:policy/P2"}),
        ({"name": "a"}, {"name": ""}),
        ({"name": "a"}, {"name": None}),
        ({"name": "sagefit-p1-alarms"}, {"name": "sagefit-p2-warnings"}),
        ({"setting": [{"name": "logs1"}]}, {"setting": [{"name": "logs2"}]}),
        ({"tags": {"team": "a1"}}, {"tags": {"team": "a2"}}),
        ({"acl": "x1", "name": "x1"}, {"acl": "x2", "name": "x2"}),
    ],
)
def test_what_a_check_may_read_keeps_resources_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert _groups(one, one, one, other) == [_FIRST, ("1", "2"), ("3",)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": "disk-1", "size": 3}, {"name": "disk-2", "size": 3}),
        ({"id": "vol-0a", "arn": "arn:aws:ec2:r:1:vol-0a"}, {"id": "vol-0b", "arn": "arn:aws:ec2:r:1:vol-0b"}),
        ({"name": "b-red", "policy": '{"Resource": "arn:aws:s3:::b-red/*"}'},
         {"name": "b-blue", "policy": '{"Resource":"arn:aws:s3:::b-blue/*"}'}),
        ({"tags": {"Name": "a", "team": "t"}}, {"tags": {"Name": "b", "team": "t"}}),
        ({"etag": "0123"}, {"etag": "4567"}),
    ],
)  # fmt: skip
def test_what_only_names_a_resource_keeps_nothing_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert _groups(one, one, other) == [_FIRST, ("1", "2")]


def test_names_count_where_they_may_be_settings() -> None:
    assert _groups(*[{"name": name} for name in "abb"], provider_name="registry.terraform.io/hashicorp/azurerm") == [
        _FIRST,
        ("1", "2"),
    ]
    assert len(_groups(*[{"name": name} for name in "abc"], provider_name="registry.terraform.io/x/azurerm")) == 3


@pytest.mark.parametrize("mark", ["_after_unknown", "_after_sensitive", "_actions"])
def test_marks_and_actions_keep_resources_apart(mark: str) -> None:
    entries = [change(f"aws_ebs_volume.x[{place}]", {"size": 1}, {"size": 2}, **_AWS) for place in range(4)]
    entries[3]["change"][mark[1:]] = ["delete", "create"] if mark == "_actions" else {"size": True}
    groups = grouped(scoped(Document("plan.json", plan(entries))))
    assert sorted(map(len, groups.members.values())) == [1, 1, 2]


def _pairs(versionings: list[int]) -> dict[str, Any]:
    """Buckets 0 to 9, and their versionings in this order, of which that of bucket 7 is off."""
    blocks = [
        {"address": "aws_s3_bucket.b", "expressions": {}},
        {
            "address": "aws_s3_bucket_versioning.v",
            "expressions": {"bucket": {"references": ["aws_s3_bucket.b", "each.key"]}},
        },
    ]
    made = [change(f"aws_s3_bucket.b[{key}]", None, {"bucket": f"k{key}"}, **_AWS) for key in range(10)]
    made += [
        change(f"aws_s3_bucket_versioning.v[{key}]", None, {"bucket": f"k{key}", "on": key != 7}, **_AWS)
        for key in versionings
    ]
    return scoped(Document("plan.json", plan(made, configuration={"root_module": {"resources": blocks}})))


def test_other_neighbours_keep_resources_apart() -> None:
    """Of ten pairs one is not protected: that is scanned, the first one, and one for the rest."""
    groups = grouped(_pairs(list(range(10))))
    assert {entry["address"] for entry in groups.plan["resource_changes"]} == {
        f"{block}[{key}]" for key in (0, 1, 7) for block in ("aws_s3_bucket.b", "aws_s3_bucket_versioning.v")
    }
    assert groups.members["aws_s3_bucket.b[7]"] == ("aws_s3_bucket.b[7]",)
    assert len(groups.members["aws_s3_bucket.b[1]"]) == 8


def test_who_speaks_for_a_group_brings_its_own_neighbours() -> None:
    kept = {entry["address"] for entry in grouped(_pairs(list(range(9, -1, -1)))).plan["resource_changes"]}
    buckets = {address for address in kept if address.startswith("aws_s3_bucket.")}
    assert 3 < len(buckets) < 10
    assert kept == buckets | {address.replace("aws_s3_bucket.b", "aws_s3_bucket_versioning.v") for address in buckets}


def test_a_scan_of_many_kinds_says_that_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SAGEFIT_CHECKOV", "/not/run/where/nothing/is/left/to/judge")
    gone = Document("plan.json", plan([]))
    assert policy_diff(gone).new == ()
    assert "can take minutes" not in capsys.readouterr().err
    monkeypatch.setattr("sagefit.reviewing.scan.MANY", -1)
    policy_diff(gone)
    assert "can take minutes" in capsys.readouterr().err
