# The least a platform needs: a name. Everything else has a safe default.

terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

module "platform" {
  source = "../../.."

  name = "minimal"

  alarms = {
    emails = ["ml-team@example.com"]
  }

  tags = {
    CostCentre = "ml"
  }
}

output "document" {
  description = "What jobs need to know; modules/training-job takes it as `platform`."
  value       = module.platform.document
}

output "engineer_policy_json" {
  description = "Policy to attach to the role of those who run jobs."
  value       = module.platform.engineer_policy_json
}
