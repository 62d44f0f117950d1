"""What is scanned of a plan of copies: one of each kind, with verdicts for all as if each had been scanned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from review.plans import change, plan
from review.stack import Stack
from sagefit.checkov import Finding, scan
from sagefit.review import Document
from sagefit.review.groups import Grouped, grouped
from sagefit.review.policies import scoped, scoped_base
from sagefit.review.scan import judged

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


def _group_of(groups: Grouped, address: str) -> tuple[str, ...]:
    return next(members for members in groups.members.values() if address in members)


@pytest.mark.slow
@pytest.mark.xdist_group("review-scan")
def test_verdicts_are_those_of_a_scan_of_every_resource(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "main.tf").write_text(_QUEUES)
    created = stack.plan(_STACK)
    stack.pretend_applied(created)
    updated = stack.plan(_STACK.replace("size              = 10", "size = count.index < 2 ? 30 : 20"))
    for cut in (scoped(Document("new", created)), scoped(Document("old", updated)), scoped_base(Document("old", updated))):
        groups = grouped(cut)
        assert sorted(a for members in groups.members.values() for a in members) == sorted(
            entry["address"] for entry in cut["resource_changes"]
        )
        assert len(groups.plan["resource_changes"]) < len(cut["resource_changes"])
        assert _verdicts(judged(groups)) == _verdicts(scan(cut))
