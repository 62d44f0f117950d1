"""Which image a job gets, by the module's own lines and real Terraform, against what AWS publishes (``uris.csv``)."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from sagefit.job.image_table import algorithms, frameworks
from sagefit.paths import TRAINING_JOB_MODULE
from sagefit_launcher.__main__ import OLDEST
from terraform_console import evaluate

Row = dict[str, str]

with (Path(__file__).parent / "uris.csv").open(encoding="utf-8") as _file:
    ROWS: list[Row] = list(csv.DictReader(_file))

# What these files read of the module around them; the rest of that needs a provider.
_AROUND = """
variable "image" { type = any }
variable "processing" { type = any }
variable "platform" { type = any }
variable "instance_type" { type = string }
locals {
  instances      = { for row in csvdecode(file("${path.module}/instances.csv")) : row.ml_type => row }
  _machine_types = [[var.instance_type]]
}
output "uri" { value = one(length(var.processing) == 0 ? local.image_uris : local.step_image_uris) }
output "runs_launcher" { value = local._runs_launcher }
"""
_ROOT = """
module "row" {
  source   = "./resolve"
  for_each = { for index, row in csvdecode(file("${path.module}/uris.csv")) : index => row }

  instance_type = each.value.instance_type
  platform      = { partition = each.value.partition, region = each.value.region, repository_url = null }
  image         = local.images[each.key]
  processing = [
    for image in [local.images[each.key]] : { image = image, instance_type = each.value.instance_type }
    if each.value.way == "processing"
  ]
}

locals {
  images = {
    for index, row in csvdecode(file("${path.module}/uris.csv")) : index => {
      uri            = null
      repository     = null
      tag            = null
      digest         = null
      framework      = row.way == "algorithm" ? null : row.name
      algorithm      = row.way == "algorithm" ? row.name : null
      version        = row.version
      python_version = row.python_version == "" ? null : row.python_version
    }
  }
}
"""


@pytest.mark.of_files(
    *("modules/training-job/*images.tf", "modules/training-job/images.json", "modules/training-job/instances.csv"),
    *("python/sagefit/job/image_table.py", "python/sagefit_launcher/__main__.py"),
    *("tests/images", "tests/terraform_console.py"),
)
def test_images_are_those_that_aws_publishes(tmp_path: Path) -> None:
    """All rows in one process of Terraform."""
    (tmp_path / "resolve").mkdir()
    for name in ("images.tf", "processing-images.tf", "images.json", "instances.csv"):
        shutil.copy(TRAINING_JOB_MODULE / name, tmp_path / "resolve")
    shutil.copy(Path(__file__).parent / "uris.csv", tmp_path)
    (tmp_path / "resolve" / "around.tf").write_text(_AROUND, encoding="utf-8")
    (tmp_path / "main.tf").write_text(_ROOT, encoding="utf-8")
    found = evaluate(tmp_path, "{ for index, row in module.row : index => row }")
    wrong = [(row, found[str(i)]) for i, row in enumerate(ROWS) if found[str(i)]["uri"] != row["uri"]]
    assert not wrong
    for index, row in enumerate(ROWS):
        if row["way"] not in ("algorithm", "processing"):
            assert found[str(index)]["runs_launcher"] is runs_launcher(row), row


def runs_launcher(row: Row) -> bool:
    """Whether Python takes code on this image: the module says the same."""
    family = frameworks()[row["name"]]
    exact = family.exact(row["version"])
    assert exact is not None
    python = family.python(exact, row["python_version"] or max(family.versions[exact]))
    return python is None or python >= OLDEST


def test_the_table_covers_every_version_and_every_region() -> None:
    """Each version of images.json has a row, and so has each region of each of its accounts."""
    versions = {(row["name"], row["version"]) for row in ROWS}
    places = {(row["uri"].partition(".")[0], row["region"]) for row in ROWS}
    for family in {**frameworks(), **algorithms()}.values():
        assert {(family.name, version) for version in family.versions} <= versions
        assert {(account, region) for region, account in family.accounts.items()} <= places
    assert {row["partition"] for row in ROWS} >= {"aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-eusc"}


def test_most_rows_have_two_sources() -> None:
    """A row that one package alone knows is a version or a region newer than the other's release."""
    sources = Counter(row["sources"].count(";") + 1 for row in ROWS)
    assert sources[0] == 0
    assert sources[2] + sources[3] > 4 * sources[1]
