"""A platform team's own repository: it calls the root module and holds the team's settings."""

from __future__ import annotations

from pathlib import Path

MAIN = """\
terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

variable "platform" {
  description = "Settings of the platform; see the README of Sagefit."
  type = object({
    name                   = string
    allowed_instance_types = optional(set(string), [])
    network = object({
      subnet_ids         = list(string)
      security_group_ids = list(string)
      isolation          = bool
    })
    kms_key_arn   = optional(string)
    host_memory   = optional(number, 90)
    force_destroy = optional(bool, false)
    tags          = map(string)
  })
}

module "platform" {
  source = "../sagefit"

  name                   = var.platform.name
  allowed_instance_types = var.platform.allowed_instance_types
  network                = var.platform.network
  kms                    = { key_arn = var.platform.kms_key_arn }
  alarms                 = { thresholds = { host_memory = var.platform.host_memory } }
  buckets                = { force_destroy = var.platform.force_destroy }
  tags                   = var.platform.tags
}

output "document" {
  value = module.platform.document
}
"""

GOOD = """\
platform = {
  name                   = "vision"
  allowed_instance_types = ["ml.g5.2xlarge", "ml.m5.xlarge"]
  kms_key_arn            = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
  network = {
    subnet_ids         = ["subnet-0a1b2c3d"]
    security_group_ids = ["sg-0a1b2c3d"]
    isolation          = true
  }
  tags = {
    CostCentre          = "vision"
    "sagefit:regulated" = "true"
  }
}
"""

# Valid, and against the rules of the house.
BAD = """\
platform = {
  name                   = "vision"
  allowed_instance_types = ["ml.p5.48xlarge"]
  network                = { subnet_ids = [], security_group_ids = [], isolation = false }
  host_memory            = 0
  force_destroy          = true
  tags                   = { "sagefit:regulated" = "true" }
}
"""


def create(folder: Path) -> Path:
    """Write the repository, beside a checkout of Sagefit in ``folder``; returns its root."""
    root = folder / "platforms"
    root.mkdir()
    for name, text in {"main.tf": MAIN, "good.tfvars": GOOD, "bad.tfvars": BAD}.items():
        (root / name).write_text(text, encoding="utf-8")
    return root
