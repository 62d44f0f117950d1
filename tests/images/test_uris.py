"""Which image a job gets, by the module's own lines and real Terraform, against what AWS publishes (``uris.csv``)."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from sagefit.job.image_table import algorithms, frameworks, processing
from sagefit.paths import TRAINING_JOB_MODULE
from terraform_console import evaluate

Row = dict[str, str]

with (Path(__file__).parent / "uris.csv").open(encoding="utf-8") as _file:
    ROWS: list[Row] = list(csv.DictReader(_file))

# What images.tf reads of the module around it; the rest of that needs a provider.
_AROUND = """
variable "image" { type = any }
variable "platform" { type = any }
variable "instance_type" { type = string }
locals {
  instances      = { for row in csvdecode(file("${path.module}/instances.csv")) : row.ml_type => row }
  _machine_types = [[var.instance_type]]
}
output "uri" { value = one(local.image_uris) }
"""
_ROOT = """
module "row" {
  source   = "./resolve"
  for_each = { for index, row in csvdecode(file("${path.module}/uris.csv")) : index => row }

  instance_type = each.value.instance_type
  platform      = { partition = each.value.partition, region = each.value.region, repository_url = null }
  image = {
    uri            = null
    repository     = null
    tag            = null
    digest         = null
    framework      = each.value.way == "framework" ? each.value.name : null
    algorithm      = each.value.way == "algorithm" ? each.value.name : null
    version        = each.value.version
    python_version = each.value.python_version == "" ? null : each.value.python_version
  }
}
"""


@pytest.mark.slow
def test_images_are_those_that_aws_publishes(tmp_path: Path) -> None:
    """All rows in one process of Terraform."""
    (tmp_path / "resolve").mkdir()
    for name in ("images.tf", "images.json", "instances.csv"):
        shutil.copy(TRAINING_JOB_MODULE / name, tmp_path / "resolve")
    shutil.copy(Path(__file__).parent / "uris.csv", tmp_path)
    (tmp_path / "resolve" / "around.tf").write_text(_AROUND, encoding="utf-8")
    (tmp_path / "main.tf").write_text(_ROOT, encoding="utf-8")
    found = evaluate(tmp_path, "{ for index, row in module.row : index => row.uri }")
    wrong = [(row, found[str(i)]) for i, row in enumerate(ROWS) if found[str(i)] != row["uri"]]
    assert not wrong


def test_the_table_covers_every_version_and_every_region() -> None:
    """Each version of images.json has a row, and so has each region of each of its accounts."""
    versions = {(row["name"], row["version"]) for row in ROWS}
    places = {(row["uri"].partition(".")[0], row["region"]) for row in ROWS}
    for family in {**frameworks(), **algorithms()}.values():
        if family.name in processing():
            continue
        assert {(family.name, version) for version in family.versions} <= versions
        assert {(account, region) for region, account in family.accounts.items()} <= places
    assert {row["partition"] for row in ROWS} >= {"aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-eusc"}


def test_most_rows_have_two_sources() -> None:
    """A row that one package alone knows is a version or a region newer than the other's release."""
    sources = Counter(row["sources"].count(";") + 1 for row in ROWS)
    assert sources[0] == 0
    assert sources[2] + sources[3] > 4 * sources[1]
