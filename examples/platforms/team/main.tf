# Several teams in one account. Each has a platform of its own: names that start with it, instance types that fit its
# work, and a budget in dollars that counts what carries its tag.

terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

locals {
  # Dollars a month, and whom to tell.
  budgets = {
    vision    = { usd = 4000, email = "vision@example.com" }
    forecasts = { usd = 500, email = "forecasts@example.com" }
  }
}

module "vision" {
  source = "../../.."

  name                   = "vision"
  allowed_instance_types = ["ml.m5.xlarge", "ml.g5.2xlarge", "ml.g5.12xlarge"]
  alarms                 = { emails = [local.budgets.vision.email] }
  tags                   = { CostCentre = "vision" }
}

module "forecasts" {
  source = "../../.."

  name                   = "forecasts"
  allowed_instance_types = ["ml.m5.large", "ml.m5.xlarge", "ml.m5.4xlarge"]
  alarms                 = { emails = [local.budgets.forecasts.email] }
  tags                   = { CostCentre = "forecasts" }
}

# What is spent, where max_price of a job says what may be. CostCentre must be a cost allocation tag of the account
# (Billing, Cost allocation tags); what was spent before it is one does not count.
resource "aws_budgets_budget" "team" {
  for_each = local.budgets

  name         = "sagefit-${each.key}"
  budget_type  = "COST"
  time_unit    = "MONTHLY"
  limit_amount = each.value.usd
  limit_unit   = "USD"

  cost_filter {
    name   = "TagKeyValue"
    values = [format("user:CostCentre$%s", each.key)]
  }

  dynamic "notification" {
    for_each = { ACTUAL = 80, FORECASTED = 100 }

    content {
      notification_type          = notification.key
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value
      threshold_type             = "PERCENTAGE"
      subscriber_email_addresses = [each.value.email]
    }
  }
}

output "documents" {
  description = "What the jobs of each team need to know."
  value       = { vision = module.vision.document, forecasts = module.forecasts.document }
}

output "engineer_policies_json" {
  description = "The policy to attach to the role of each team; it reaches that team's jobs only."
  value = {
    vision    = module.vision.engineer_policy_json
    forecasts = module.forecasts.engineer_policy_json
  }
}
