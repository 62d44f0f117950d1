# What some cases stand on and Sagefit never makes: private subnets, and the roles of a pipeline. Nothing here is billed
# by the hour.

provider "aws" {
  region = var.region

  default_tags {
    tags = { "sagefit:acceptance" = "ground" }
  }
}

data "aws_availability_zones" "here" {
  #checkov:skip=CKV_AWS_394:Two of the zones are used, whichever there are
  state = "available"
}

resource "aws_vpc" "this" {
  #checkov:skip=CKV2_AWS_11:It stands for an hour and leads to S3 alone
  cidr_block           = "10.74.0.0/24"
  enable_dns_hostnames = true
  tags                 = { Name = "sagefit-acceptance" }
}

# Nobody uses it; without rules nobody can.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id
}

resource "aws_subnet" "private" {
  count = 2

  vpc_id            = aws_vpc.this.id
  cidr_block        = cidrsubnet(aws_vpc.this.cidr_block, 2, count.index)
  availability_zone = data.aws_availability_zones.here.names[count.index]
  tags              = { Name = "sagefit-acceptance-${count.index}" }
}

resource "aws_route_table" "private" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "sagefit-acceptance" }
}

resource "aws_route_table_association" "private" {
  count = 2

  subnet_id      = aws_subnet.private[count.index].id
  route_table_id = aws_route_table.private.id
}

# SageMaker moves data and models through the subnets; no other way leads out of them.
resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [aws_route_table.private.id]
  tags              = { Name = "sagefit-acceptance" }
}

resource "aws_security_group" "jobs" {
  #checkov:skip=CKV2_AWS_5:Training jobs are attached to it
  name        = "sagefit-acceptance"
  description = "Training jobs of the acceptance suite: each other, and S3"
  vpc_id      = aws_vpc.this.id
}

resource "aws_vpc_security_group_ingress_rule" "each_other" {
  security_group_id            = aws_security_group.jobs.id
  description                  = "Hosts of one job"
  referenced_security_group_id = aws_security_group.jobs.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "each_other" {
  security_group_id            = aws_security_group.jobs.id
  description                  = "Hosts of one job"
  referenced_security_group_id = aws_security_group.jobs.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "s3" {
  security_group_id = aws_security_group.jobs.id
  description       = "S3, through the endpoint"
  prefix_list_id    = aws_vpc_endpoint.s3.prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

module "roles" {
  source = "../../examples/gitops/roles"

  name              = "acceptance-pipeline"
  account_id        = var.account_id
  region            = var.region
  repository        = "sagefit/acceptance"
  platforms         = [var.platform]
  oidc_provider_arn = var.oidc_provider_arn
  state             = { bucket = var.state_bucket }
}

# A pipeline's host says who may take the apply role. Here somebody of the account does, so a second role has its rights.
resource "aws_iam_role" "acts" {
  name                 = "acceptance-pipeline-acts"
  description          = "The rights of a pipeline's apply role, for the acceptance suite"
  max_session_duration = 3600

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Account"
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = "arn:aws:iam::${var.account_id}:root" }
    }]
  })
}

resource "aws_iam_role_policy" "acts" {
  name   = "apply"
  role   = aws_iam_role.acts.name
  policy = module.roles.apply_policies.own
}

resource "aws_iam_role_policy_attachment" "acts" {
  for_each = module.roles.apply_policies.managed

  role       = aws_iam_role.acts.name
  policy_arn = each.value
}
