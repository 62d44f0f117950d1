"""A company with two regions in one root: a provider that is forgotten is refused at plan.

That such a root applies, with a key of its own and many tags, is shown in ``tests/gitops/test_under_the_roles.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkout import copy_tree
from policies.offline import cloud, run, terraform

pytestmark = pytest.mark.xdist_group("consumer")

_ROOT = """
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {
  region = "us-east-1"
}

provider "aws" {
  alias  = "eu"
  region = "eu-central-1"
}

module "platform" {
  source    = "../sagefit"
  providers = { aws = aws.eu }

  name = "vision"
}

module "job" {
  source    = "../sagefit/modules/training-job"
  providers = { aws = aws }

  name     = "digits"
  platform = module.platform.document
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}
"""


def test_a_provider_that_is_forgotten_is_refused_at_plan(tmp_path: Path) -> None:
    """The job would be made in another region than its platform, with ARNs of things that are not there."""
    (tmp_path / "sagefit").mkdir()
    copy_tree(tmp_path / "sagefit")
    root = tmp_path / "root"
    (root / "code").mkdir(parents=True)
    (root / "code" / "train.py").write_text("print('hello')\n", encoding="utf-8")
    (root / "main.tf").write_text(_ROOT, encoding="utf-8")
    with cloud(tmp_path / "cloud") as environment:
        terraform(root, environment, "init")
        refused = run(root, environment, "plan", "-input=false", "-no-color")
    assert refused.returncode == 1
    said = " ".join(refused.stderr.replace("│", " ").split())
    assert "platform.region: is eu-central-1, and the job's provider works in us-east-1." in said
    assert "providers = { aws = aws.ALIAS }" in said
