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

# IAM is the same in all regions of an account, and roles are named after their platform: so the names differ.
# Each region has its own key, buckets and repository, and publishes its document there, in SSM: a job file names the
# platform, and AWS_REGION says where to find it.
module "us" {
  source = "../../.."

  name = "research-us"
  kms  = { create = true }
  tags = local.tags
}

module "eu" {
  source    = "../../.."
  providers = { aws = aws.eu }

  name = "research-eu"
  kms  = { create = true }
  tags = local.tags
}

output "documents" {
  description = "What jobs need to know, by platform."
  value       = { for platform in [module.us.document, module.eu.document] : platform.name => platform }
}
