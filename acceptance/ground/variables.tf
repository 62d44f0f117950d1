variable "account_id" {
  description = "The account that the cases run in."
  type        = string
  nullable    = false
}

variable "oidc_provider_arn" {
  description = "The account's provider for GitHub's tokens, where it has one; an account can have one. Null makes it."
  type        = string
  default     = null
}

variable "platform" {
  description = "The platform that the roles of a pipeline apply."
  type        = string
  default     = "acceptance-ci"
  nullable    = false
}

variable "region" {
  description = "The Region of the cases."
  type        = string
  nullable    = false
}

variable "state_bucket" {
  description = "The bucket of Terraform's states, where they lie in S3; with states on this machine no role needs one."
  type        = string
  default     = "states-lie-on-this-machine"
  nullable    = false
}
