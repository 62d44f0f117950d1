# One team, two regions: where data must stay, or where capacity is to be had. One root, one plan, one apply.

terraform {
  required_version = ">= 1.10"

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

locals {
  tags = { CostCentre = "research" }
}

# Each region has its own key, buckets and repository, and publishes its document there, in SSM: a job file names the
# platform, and AWS_REGION says where to find it. Roles and dashboards are the same in all regions of an account: with
# regional_names their names end with the region.
module "us" {
  source = "../../.."

  name           = "research"
  regional_names = true
  kms            = { create = true }
  tags           = local.tags
}

module "eu" {
  source    = "../../.."
  providers = { aws = aws.eu }

  name           = "research"
  regional_names = true
  kms            = { create = true }
  tags           = local.tags
}

output "documents" {
  description = "What jobs need to know, by region."
  value       = { us = module.us.document, eu = module.eu.document }
}
