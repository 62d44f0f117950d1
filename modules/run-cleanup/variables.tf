variable "interval_seconds" {
  description = "Time between two of the five looks at what still runs of a run that ended. A training job has 120 seconds to stop in."
  type        = number
  default     = 60
  nullable    = false

  validation {
    condition     = var.interval_seconds >= 1 && var.interval_seconds <= 3600 && floor(var.interval_seconds) == var.interval_seconds
    error_message = "interval_seconds must be a whole number from 1 to 3600."
  }
}

variable "permissions_boundary_arn" {
  description = "Policy that bounds the two roles; null for none."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be a policy ARN."
  }
}

variable "platform" {
  description = "Name of the platform, which the tag `sagefit:platform` of its jobs has: no other jobs are stopped."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.platform))
    error_message = "platform must be lower-case letters, digits and single hyphens."
  }
}
