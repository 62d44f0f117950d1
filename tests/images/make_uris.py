"""Make ``uris.csv``: which image AWS's own packages and the AWS provider name for a version, an instance and a region.

Run by hand, with a package index in reach, when images.json gets new versions:

    .venv/bin/python tests/images/make_uris.py

Each version of the table is asked for in one region, and each region of each group of accounts for one version. The
column ``uri`` is what the first package answers, never what Sagefit would.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import boto3

from sagefit import environments
from sagefit.paths import IMAGES_JSON, home
from sagefit.toolchain import terraform_binary, terraform_environment

TABLE = Path(__file__).parent / "uris.csv"
COLUMNS = ("way", "name", "version", "python_version", "instance_type", "partition", "region", "uri", "sources")
PACKAGES = ("sagemaker-core==2.27.0", "sagemaker==2.257.7")
PROVIDER = "hashicorp/aws 5.100.0"
SESSION = boto3.Session()
TYPES = {"cpu": "ml.m5.xlarge", "gpu": "ml.g5.xlarge"}

# Both packages have this function, in two places.
RETRIEVE = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
try:
    from sagemaker.core import image_uris
except ImportError:
    from sagemaker import image_uris
answers, answered = [], set()
for row in json.load(sys.stdin):
    answers.append(None)
    if tuple(row["purpose"]) in answered:
        continue
    name, base = row["name"], {}
    if name.startswith("huggingface"):
        kind = "tensorflow" if name.endswith("tensorflow") else "pytorch"
        listed = image_uris.config_for_framework("huggingface")["training"]["versions"].get(row["version"], {})
        base = {"base_framework_version": ([b for b in listed if b.startswith(kind)] or [None])[-1]}
        name = "huggingface"
    python = None if row["python"] == "any" else row["python"]
    try:
        answers[-1] = image_uris.retrieve(name, row["region"], version=row["version"], py_version=python,
                                          instance_type=row["instance_type"], image_scope=row["scope"], **base)
        answered.add(tuple(row["purpose"]))
    except (ValueError, KeyError):
        pass
print(json.dumps(answers))
"""

# A static table, read without an account.
ACCOUNTS = """
terraform {
  required_providers { aws = { source = "hashicorp/aws", version = "5.100.0" } }
}
provider "aws" {
  region                      = "us-east-1"
  access_key                  = "none"
  secret_key                  = "none"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}
variable "asked" { type = map(object({ repository = string, region = string })) }
data "aws_sagemaker_prebuilt_ecr_image" "this" {
  for_each        = var.asked
  repository_name = each.value.repository
  region          = each.value.region
}
output "accounts" { value = { for k, d in data.aws_sagemaker_prebuilt_ecr_image.this : k => d.registry_id } }
"""


def main() -> int:
    """Ask all, and write the first row of each purpose that the first package has an answer for."""
    asked = list(requests())
    rows = [row | {"uri": uri} for row, uri in zip(asked, ask_package(PACKAGES[0], asked), strict=True) if uri]
    again = ask_package(PACKAGES[1], rows)
    accounts = ask_provider({place(row["uri"]): row["region"] for row in rows})
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
        table.writeheader()
        for row, uri in zip(rows, again, strict=True):
            agreeing = [True, uri == row["uri"], accounts.get(place(row["uri"])) == row["uri"].partition(".")[0]]
            sources = [source for source, agrees in zip((*PACKAGES, PROVIDER), agreeing, strict=True) if agrees]
            table.writerow(row | {"sources": "; ".join(sources).replace("==", " ")})
    print(f"{len(rows)} rows")
    return 0


def requests() -> Iterator[dict[str, Any]]:
    """What to ask for: each version for each processor in some region, then something in each region."""
    table, turn = json.loads(IMAGES_JSON.read_text(encoding="utf-8")), 0
    families = [
        (kind.removesuffix("s"), name, row)
        for kind in ("frameworks", "processing", "algorithms")
        for name, row in table[kind].items()
    ]
    for way, name, row in families:
        regions = sorted(table["accounts"][row["accounts"]])
        for version, pythons in row["versions"].items():
            for python, processor in product(pythons, row["processors"]):
                turn += 7
                for region in rotated(regions, turn):
                    yield request((name, version, python, processor), way, name, version, python, processor, region)
    for group, accounts in table["accounts"].items():
        sharing = [family for family in families if family[2]["accounts"] == group]
        for region in sorted(accounts if sharing else ()):
            turn += 1
            for way, name, row in rotated(sharing, turn):
                version, pythons = list(row["versions"].items())[-1]
                also = "algorithm" if name == "xgboost" else way
                yield request((group, region), also, name, version, max(pythons), row["processors"][-1], region)


def rotated(items: list[Any], by: int) -> list[Any]:
    """The same, beginning further on."""
    return items[by % len(items) :] + items[: by % len(items)]


def request(
    purpose: tuple[str, ...], way: str, name: str, version: str, python: str, processor: str, region: str
) -> dict[str, Any]:
    """One row without its answer."""
    return {
        "purpose": purpose,
        "way": way,
        "name": name,
        "version": version,
        "python": python,
        "scope": "processing" if way == "processing" else "training",
        "python_version": "" if python == "any" or way == "algorithm" else python,
        "instance_type": TYPES[processor],
        "partition": SESSION.get_partition_for_region(region),
        "region": region,
    }


def ask_package(package: str, rows: list[dict[str, Any]]) -> list[str | None]:
    """The answers of one package, in an environment of its own: both are called ``sagemaker``."""

    def build(folder: Path) -> None:
        environments.create(folder)
        environments.install(folder, package)

    folder = environments.built(home() / f"uris-{environments.digest(package.encode())}", build)
    command = [str(folder / "bin" / "python"), "-c", RETRIEVE]
    done = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True, check=True)
    found: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def ask_provider(places: dict[str, str]) -> dict[str, str]:
    """The accounts that the provider knows, by place; what it does not know is asked for once and left out."""
    asked = {at: {"repository": at.partition("/")[2], "region": region} for at, region in places.items()}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.tf").write_text(ACCOUNTS, encoding="utf-8")
        terraform(folder, "init")
        for _ in range(2):
            Path(folder, "asked.auto.tfvars.json").write_text(json.dumps({"asked": asked}), encoding="utf-8")
            said = terraform(folder, "plan", "-json", "-out=plan")
            for unknown in re.findall(r'"address":"data\.aws_sagemaker_prebuilt_ecr_image\.this\[\\"(.*?)\\"\]"', said):
                asked.pop(unknown, None)
        shown = json.loads(terraform(folder, "show", "-json", "plan"))
    found: dict[str, str] = shown["planned_values"]["outputs"]["accounts"]["value"]
    return found


def terraform(folder: str, *arguments: str) -> str:
    """What Terraform says; a plan with errors is an answer too."""
    command = [str(terraform_binary(home())), f"-chdir={folder}", *arguments]
    environment = {**os.environ, **terraform_environment(home())}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def place(uri: str) -> str:
    """Region and repository of an image of AWS: ``us-east-1/pytorch-training``."""
    host, _, repository = uri.partition("/")
    return f"{host.split('.')[3]}/{repository.partition(':')[0]}"


if __name__ == "__main__":
    sys.exit(main())
