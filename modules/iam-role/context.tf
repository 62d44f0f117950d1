# The same file in every module that is given a context, so that each can be copied alone.
variable "context" {
  description = <<-EOT
    Where the module works and how it names things; the same object in every module.
    - `partition`: AWS partition, such as `aws` or `aws-cn`.
    - `region`: Region of every resource.
    - `account_id`: account of every resource, twelve digits.
    - `prefix`: start of every name; names are API, so changing it replaces resources.
    - `tags`: tags of every resource that takes tags.
    - `global_suffix`: end of the names that an account has only once (roles, their policies, dashboards), such as
      `_eu-central-1`; empty where no other Region has the same prefix.
  EOT
  type = object({
    partition  = string
    region     = string
    account_id = string
    prefix     = string
    tags       = optional(map(string), {})

    global_suffix = optional(string, "")
  })
  nullable = false

  validation {
    condition     = can(regex("^aws(-[a-z]+)*$", var.context.partition))
    error_message = "context.partition must be an AWS partition such as aws, aws-cn or aws-us-gov."
  }

  validation {
    condition     = can(regex("^[a-z]{2,4}(-[a-z]+)+-[0-9]$", var.context.region))
    error_message = "context.region must be a Region name such as us-east-1."
  }

  validation {
    condition     = can(regex("^[0-9]{12}$", var.context.account_id))
    error_message = "context.account_id must be twelve digits, written as a string."
  }

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.context.prefix))
    error_message = "context.prefix must be lower-case letters, digits and single hyphens, not empty."
  }

  # Nothing else ends with an underscore and more, so no two names are the same.
  validation {
    condition     = can(regex("^(_[a-z0-9-]{1,20})?$", var.context.global_suffix))
    error_message = "context.global_suffix must be empty, or an underscore and up to 20 lower-case letters, digits and hyphens, such as _eu-central-1."
  }
}

# ARNs are built from names, so a module whose provider works elsewhere would apply cleanly and be of no use.
data "aws_region" "this" {
  lifecycle {
    postcondition {
      condition     = self.id == var.context.region
      error_message = "context.region: is ${var.context.region}, and this module's provider works in ${self.id}. Pass the provider of that Region (providers = { aws = aws.ALIAS }), or the context of this one."
    }
  }
}

data "aws_caller_identity" "this" {
  lifecycle {
    postcondition {
      condition     = split(":", self.arn)[1] == var.context.partition
      error_message = "context.partition: is ${var.context.partition}, and this module's provider works in ${split(":", self.arn)[1]}. Pass the provider of that partition (providers = { aws = aws.ALIAS }), or the context of this one."
    }

    postcondition {
      condition     = self.account_id == var.context.account_id
      error_message = "context.account_id: is ${var.context.account_id}, and this module's provider works in account ${self.account_id}. Pass the provider of that account (providers = { aws = aws.ALIAS }), or the context of this one."
    }
  }
}
