variable "account_id" {
  description = "The account the roles are made in. Given rather than looked up, so that a plan shows the policies."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id: 12 digits. Correct it."
  }
}

variable "apply_branch" {
  description = "GitLab: the protected branch whose pipelines may apply. GitHub names an environment instead."
  type        = string
  default     = "main"
  nullable    = false

  validation {
    condition     = !strcontains(var.apply_branch, "*") && var.apply_branch != ""
    error_message = "apply_branch: one branch, no pattern. Name the protected branch."
  }
}

variable "audience" {
  description = "Whom the host's tokens are for; null for sts.amazonaws.com (GitHub) or https://gitlab.com (GitLab)."
  type        = string
  default     = null
}

variable "boundary_actions" {
  description = "What jobs may do beyond what Sagefit's modules give them, for example `sqs:SendMessage`; the boundary allows it."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for action in var.boundary_actions : can(regex("^[a-z0-9-]+:[A-Z][A-Za-z]+$", action)) && !can(regex("^(iam|sts|organizations|account|sso|sso-admin|identitystore):", action))])
    error_message = "boundary_actions: SERVICE:Action without patterns, and none of iam, sts, organizations, account, sso, sso-admin, identitystore, with which a job could widen itself. Write each out."
  }
}

variable "boundary_role_arns" {
  description = "Execution roles of your own that state machines may pass to jobs; those of the platforms need no name."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.boundary_role_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "boundary_role_arns: ARNs of roles (arn:PARTITION:iam::ACCOUNT:role/NAME), no patterns. Write each out."
  }
}

variable "environment" {
  description = "GitHub: the protected environment, with required reviewers, whose jobs may apply."
  type        = string
  default     = "production"
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]+$", var.environment))
    error_message = "environment: letters, digits, dots, hyphens, underscores, no pattern. Name one environment."
  }
}

variable "drift_environment" {
  description = "GitHub: the environment of the scheduled drift check, limited to the default branch."
  type        = string
  default     = "drift"
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]+$", var.drift_environment)) && var.drift_environment != var.environment
    error_message = "drift_environment: as environment, and not the environment that applies. Name another."
  }
}

variable "host" {
  description = "Where the repository lives: github or gitlab."
  type        = string
  default     = "github"
  nullable    = false

  validation {
    condition     = contains(["github", "gitlab"], var.host)
    error_message = "host: github or gitlab. Choose one."
  }
}

variable "name" {
  description = "Prefix of the two roles' names."
  type        = string
  default     = "sagefit-ci"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.name)) && length(var.name) <= 40
    error_message = "name: lower-case letters, digits and single inner hyphens, at most 40 characters. Correct it."
  }
}

variable "oidc_provider_arn" {
  description = "An OIDC provider of the host that the account has already; an account can have one. Null makes it."
  type        = string
  default     = null
}

variable "permissions_boundary_arn" {
  description = "A boundary of your own, without which the apply role can make no role; null makes one that lets jobs do what Sagefit's modules give them."
  type        = string
  default     = null
}

variable "plan_branches" {
  description = "GitLab: the branches whose merge requests may plan, each by its name."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for branch in var.plan_branches : !strcontains(branch, "*") && branch != ""])
    error_message = "plan_branches: names of branches, no patterns. Write each out."
  }
}

variable "platform_key_arns" {
  description = "Keys of your own that the platforms encrypt with (`kms.key_arn`). Those that Sagefit makes need no name."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.platform_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))])
    error_message = "platform_key_arns: ARNs of keys (arn:PARTITION:kms:REGION:ACCOUNT:key/ID), not of aliases. Correct them."
  }
}

variable "platforms" {
  description = "Names of the platforms that the roles plan and apply."
  type        = list(string)
  default     = ["dev"]
  nullable    = false

  validation {
    condition     = length(var.platforms) > 0
    error_message = "platforms: at least one. Name it."
  }

  validation {
    condition     = alltrue([for name in var.platforms : can(regex("^[a-z0-9](-?[a-z0-9])*$", name))])
    error_message = "platforms: lower-case letters, digits and single inner hyphens. Correct the names."
  }
}

variable "region" {
  description = "The Region of the platforms."
  type        = string
  nullable    = false
}

variable "repository" {
  description = "GitHub: OWNER/NAME. GitLab: the full path of the project."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+$", var.repository))
    error_message = "repository: OWNER/NAME or GROUP/PROJECT, no pattern. Name one repository."
  }
}

variable "state" {
  description = "Where Terraform's states lie: a bucket, and the key that encrypts it, if it is your own."
  type = object({
    bucket      = string
    kms_key_arn = optional(string)
  })
  nullable = false

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.state.bucket))
    error_message = "state: bucket is the name of an S3 bucket. Correct it."
  }
}
