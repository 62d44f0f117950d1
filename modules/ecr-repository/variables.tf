variable "encryption" {
  description = <<-EOT
    Encryption at rest. ECR fixes it when the repository is made: a change replaces the repository.
    - `type`: `KMS` or `AES256`.
    - `kms_key_arn`: key for type KMS; null for the AWS-managed key `aws/ecr`.
  EOT
  type = object({
    type        = optional(string, "KMS")
    kms_key_arn = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["KMS", "AES256"], var.encryption.type)
    error_message = "encryption.type must be KMS or AES256."
  }

  validation {
    condition     = var.encryption.type == "KMS" || var.encryption.kms_key_arn == null
    error_message = "encryption.kms_key_arn needs encryption.type = \"KMS\"."
  }
}

variable "force_delete" {
  description = "Delete the repository with the images in it."
  type        = bool
  default     = false
  nullable    = false
}

variable "lifecycle_policy" {
  description = <<-EOT
    Which images go by themselves.
    - `untagged_days`: delete untagged images after so many days; 0 keeps them.
    - `keep_images`: keep so many images, the newest; null keeps all. A job whose image has gone can no longer run.
  EOT
  type = object({
    untagged_days = optional(number, 14)
    keep_images   = optional(number)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.lifecycle_policy.untagged_days >= 0 && floor(var.lifecycle_policy.untagged_days) == var.lifecycle_policy.untagged_days
    error_message = "lifecycle_policy.untagged_days must be a whole number of at least 1, or 0 to keep untagged images."
  }

  validation {
    condition     = var.lifecycle_policy.keep_images == null ? true : var.lifecycle_policy.keep_images >= 1 && floor(var.lifecycle_policy.keep_images) == var.lifecycle_policy.keep_images
    error_message = "lifecycle_policy.keep_images must be a whole number of at least 1, or null."
  }
}

variable "mutable_tags" {
  description = "Let a tag move to another image. Off by default: a job that names a tag must get the image that was reviewed."
  type        = bool
  default     = false
  nullable    = false
}

variable "name" {
  description = "Last part of the repository name, after the prefix; null for the prefix alone."
  type        = string
  default     = null

  validation {
    condition     = var.name == null || can(regex("^[a-z0-9]+([._/-][a-z0-9]+)*$", var.name))
    error_message = "name must be lower-case letters and digits, separated by single dots, underscores, hyphens or slashes."
  }
}
