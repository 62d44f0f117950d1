# A network that reaches AWS and nothing else: no internet gateway, no NAT. The hosts of jobs reach S3; a machine in the
# same network, which runs Terraform and Sagefit, reaches the services that these call.

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
  name = "air-gapped"
  zones = {
    a = { zone = "${data.aws_region.this.id}a", cidr = "10.30.0.0/20" }
    b = { zone = "${data.aws_region.this.id}b", cidr = "10.30.16.0/20" }
  }

  # What `sagefit` and Terraform call. Jobs need none of them: SageMaker itself moves their data, logs and images.
  services = [
    "ecr.api", "ecr.dkr", "events", "kms", "logs", "monitoring", "sagemaker.api", "scheduler", "sns", "ssm", "states", "sts",
  ]
}

resource "aws_vpc" "this" {
  #checkov:skip=CKV2_AWS_11:Flow logs belong to the account's network baseline, not to this example
  cidr_block           = "10.30.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = "sagefit-${local.name}" }
}

# Nothing uses the default group; without rules nothing can.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id
}

resource "aws_subnet" "this" {
  for_each = local.zones

  vpc_id            = aws_vpc.this.id
  availability_zone = each.value.zone
  cidr_block        = each.value.cidr
  tags              = { Name = "sagefit-${local.name}-${each.key}" }
}

resource "aws_route_table" "this" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "sagefit-${local.name}" }
}

resource "aws_route_table_association" "this" {
  for_each = aws_subnet.this

  subnet_id      = each.value.id
  route_table_id = aws_route_table.this.id
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id          = aws_vpc.this.id
  service_name    = "com.amazonaws.${data.aws_region.this.id}.s3"
  route_table_ids = [aws_route_table.this.id]
  tags            = { Name = "sagefit-${local.name}-s3" }
}

resource "aws_vpc_endpoint" "service" {
  for_each = toset(local.services)

  vpc_id              = aws_vpc.this.id
  service_name        = "com.amazonaws.${data.aws_region.this.id}.${each.key}"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = [for subnet in aws_subnet.this : subnet.id]
  security_group_ids  = [aws_security_group.endpoints.id]
  tags                = { Name = "sagefit-${local.name}-${each.key}" }
}

resource "aws_security_group" "endpoints" {
  name        = "sagefit-${local.name}-endpoints"
  description = "Endpoints of AWS services"
  vpc_id      = aws_vpc.this.id
  tags        = { Name = "sagefit-${local.name}-endpoints" }
}

resource "aws_security_group" "training" {
  #checkov:skip=CKV2_AWS_5:SageMaker attaches it to the interfaces of the jobs
  name        = "sagefit-${local.name}-training"
  description = "Hosts of training jobs"
  vpc_id      = aws_vpc.this.id
  tags        = { Name = "sagefit-${local.name}-training" }
}

resource "aws_vpc_security_group_ingress_rule" "endpoints" {
  description       = "Machines of this network call AWS"
  security_group_id = aws_security_group.endpoints.id
  cidr_ipv4         = aws_vpc.this.cidr_block
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

# Hosts of one job talk to each other and to S3, and to nobody else.
resource "aws_vpc_security_group_ingress_rule" "hosts" {
  description                  = "Hosts of one job"
  security_group_id            = aws_security_group.training.id
  referenced_security_group_id = aws_security_group.training.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "hosts" {
  description                  = "Hosts of one job"
  security_group_id            = aws_security_group.training.id
  referenced_security_group_id = aws_security_group.training.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "s3" {
  description       = "Data, models and checkpoints"
  security_group_id = aws_security_group.training.id
  prefix_list_id    = aws_vpc_endpoint.s3.prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

module "platform" {
  source = "../../.."

  name = local.name
  kms  = { create = true }

  network = {
    subnet_ids                      = [for subnet in aws_subnet.this : subnet.id]
    security_group_ids              = [aws_security_group.training.id]
    isolation                       = true
    encrypt_inter_container_traffic = true
  }
}

output "document" {
  description = "What jobs need to know; modules/training-job takes it as `platform`."
  value       = module.platform.document
}
