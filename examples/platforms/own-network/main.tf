# A platform for data that must not leave: jobs run in a private network without a route out, their containers are
# isolated, and everything is encrypted by a key of the platform.

terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

data "aws_region" "this" {}

locals {
  name = "private"
  zones = {
    a = { zone = "${data.aws_region.this.id}a", cidr = "10.20.0.0/20" }
    b = { zone = "${data.aws_region.this.id}b", cidr = "10.20.16.0/20" }
  }
}

resource "aws_vpc" "this" {
  #checkov:skip=CKV2_AWS_11:Flow logs belong to the account's network baseline, not to this example
  cidr_block           = "10.20.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = "sagefit-${local.name}" }
}

# Nothing uses the default group; without rules nothing can.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id
}

resource "aws_subnet" "training" {
  for_each = local.zones

  vpc_id            = aws_vpc.this.id
  availability_zone = each.value.zone
  cidr_block        = each.value.cidr
  tags              = { Name = "sagefit-${local.name}-${each.key}" }
}

resource "aws_route_table" "training" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "sagefit-${local.name}" }
}

resource "aws_route_table_association" "training" {
  for_each = aws_subnet.training

  subnet_id      = each.value.id
  route_table_id = aws_route_table.training.id
}

# The only way out: data, models and checkpoints go to S3 through this.
resource "aws_vpc_endpoint" "s3" {
  vpc_id          = aws_vpc.this.id
  service_name    = "com.amazonaws.${data.aws_region.this.id}.s3"
  route_table_ids = [aws_route_table.training.id]
  tags            = { Name = "sagefit-${local.name}-s3" }
}

resource "aws_security_group" "training" {
  #checkov:skip=CKV2_AWS_5:SageMaker attaches it to the interfaces of the jobs
  name        = "sagefit-${local.name}-training"
  description = "Hosts of training jobs"
  vpc_id      = aws_vpc.this.id
  tags        = { Name = "sagefit-${local.name}-training" }
}

# Hosts of one job talk to each other.
resource "aws_vpc_security_group_ingress_rule" "hosts" {
  #checkov:skip=CKV_AWS_23:Its address says it
  security_group_id            = aws_security_group.training.id
  referenced_security_group_id = aws_security_group.training.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "hosts" {
  #checkov:skip=CKV_AWS_23:Its address says it
  security_group_id            = aws_security_group.training.id
  referenced_security_group_id = aws_security_group.training.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "s3" {
  #checkov:skip=CKV_AWS_23:Its address says it
  security_group_id = aws_security_group.training.id
  prefix_list_id    = aws_vpc_endpoint.s3.prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

module "platform" {
  source = "../../.."

  name = local.name

  kms = { create = true }

  network = {
    subnet_ids                      = [for subnet in aws_subnet.training : subnet.id]
    security_group_ids              = [aws_security_group.training.id]
    isolation                       = true
    encrypt_inter_container_traffic = true
  }

  allowed_instance_types = ["ml.m5.xlarge", "ml.g5.2xlarge", "ml.g5.12xlarge"]

  warm_pools = {
    small-gpu = {
      instance_type      = "ml.g5.2xlarge"
      volume_size_gb     = 100
      keep_alive_seconds = 1200
    }
  }

  execution_role = {
    buckets = {
      images = { name = "company-images", prefixes = ["2026/"] }
    }
  }
}

output "document" {
  description = "What jobs need to know; modules/training-job takes it as `platform`."
  value       = module.platform.document
}
