"""A company with two regions in one root: a provider of another place is refused, and one name does for both.

That a root with a key of its own and many tags applies is shown in ``tests/gitops/test_under_the_roles.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkout import copy_tree
from cloud.aws_user import Aws
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

module "foreign" {
  source    = "../sagefit/modules/training-job"
  providers = { aws = aws.eu }

  name     = "digits"
  platform = merge(module.platform.document, { account_id = "210987654321", partition = "aws-cn" })
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

module "buckets" {
  source    = "../sagefit/modules/s3-buckets"
  providers = { aws = aws.eu }

  context = { partition = "aws-cn", region = "eu-central-1", account_id = "210987654321", prefix = "other" }
  buckets = { data = {} }
}
"""


def test_a_provider_of_another_place_is_refused_at_plan(tmp_path: Path) -> None:
    """What is made elsewhere than its names say would hold ARNs of things that are not there."""
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
    assert "platform.account_id: is 210987654321, and the job's provider works in account 123456789012." in said
    assert "platform.partition: is aws-cn, and the job's provider works in aws." in said
    assert "context.account_id: is 210987654321, and this module's provider works in account 123456789012." in said
    assert "context.partition: is aws-cn, and this module's provider works in aws." in said
    assert said.count("providers = { aws = aws.ALIAS }") == 5


_PROVIDERS = _ROOT.partition('module "platform"')[0]
_IN_A_REGION = """
module "{region}" {{
  source    = "../sagefit"
  providers = {{ aws = {provider} }}

  name            = "vision"
  regional_names  = true
  buckets         = {{ force_destroy = true }}
  # Rules of buckets take a minute.
  checkpoint_days        = 0
  unfinished_upload_days = 0
}}

module "{region}_job" {{
  source    = "../sagefit/modules/training-job"
  providers = {{ aws = {provider} }}

  name     = "digits"
  platform = module.{region}.document
  image    = {{ framework = "sklearn", version = "1.2-1" }}
  code     = {{ source_dir = "code", entry_point = "train.py" }}
  attempts = [{{ name = "first", instance_type = "ml.m5.large" }}]
  schedule = {{ expression = "cron(0 3 1 1 ? 2199)" }} # a rate would start a run at once
}}
"""
_US, _EU = _IN_A_REGION.format(region="us", provider="aws"), _IN_A_REGION.format(region="eu", provider="aws.eu")


@pytest.mark.of_files("*.tf", "modules", "tests/consumer", "python/sagefit_cloud/extensions")
def test_two_regions_have_a_platform_and_a_job_of_one_name(tmp_path: Path) -> None:
    """Neither takes anything of the other: what an account has only once bears the region's name."""
    (tmp_path / "sagefit").mkdir()
    copy_tree(tmp_path / "sagefit")
    root = tmp_path / "root"
    (root / "code").mkdir(parents=True)
    (root / "code" / "train.py").write_text("print('hello')\n", encoding="utf-8")
    with cloud(tmp_path / "cloud") as environment:
        aws = Aws(environment)

        def names() -> set[str]:
            iam, watch = aws.client("iam"), aws.client("cloudwatch")
            made = [role["RoleName"] for role in iam.list_roles()["Roles"]]
            made += [policy["PolicyName"] for policy in iam.list_policies(Scope="Local")["Policies"]]
            made += [dashboard["DashboardName"] for dashboard in watch.list_dashboards()["DashboardEntries"]]
            return {name for name in made if name.startswith("sagefit-vision")}

        (root / "main.tf").write_text(_PROVIDERS + _US + _EU, encoding="utf-8")
        terraform(root, environment, "init")
        terraform(root, environment, "apply", "-input=false", "-auto-approve")
        assert run(root, environment, "plan", "-input=false", "-detailed-exitcode").returncode == 0
        both = names()
        (root / "main.tf").write_text(_PROVIDERS + _US, encoding="utf-8")
        terraform(root, environment, "apply", "-input=false", "-auto-approve")
        assert run(root, environment, "plan", "-input=false", "-detailed-exitcode").returncode == 0
        one = names()
        terraform(root, environment, "destroy", "-input=false", "-auto-approve")
        assert names() == set()
    assert one == {name for name in both if "_us-east-1" in name}
    assert {name.replace("eu-central-1", "us-east-1") for name in both - one} == one
    assert len(one) == 8, one
