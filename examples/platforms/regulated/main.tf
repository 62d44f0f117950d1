# A platform whose network, key and limits belong to others: it refers to what the network and security teams made.
# All of it is known before the plan, so the plan shows every policy in full, and that is what gets reviewed.

terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

# Replace these by your own; see the README for what each must allow.
locals {
  subnet_ids               = ["subnet-0a1b2c3d4e5f60718", "subnet-0b1c2d3e4f5061728"]
  security_group_ids       = ["sg-0c1d2e3f405162738"]
  kms_key_arn              = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
  permissions_boundary_arn = "arn:aws:iam::123456789012:policy/training-boundary"
  access_log_bucket        = "company-access-logs"
}

module "platform" {
  source = "../../.."

  name = "regulated"

  # Every role of the platform and of its jobs gets the boundary: no policy can reach beyond it.
  permissions_boundary_arn = local.permissions_boundary_arn

  # Buckets, images, volumes, outputs, logs of state machines and notifications.
  kms = { key_arn = local.kms_key_arn }

  # A job file can add isolation and encryption but never switch them off: modules/training-job refuses to.
  network = {
    subnet_ids                      = local.subnet_ids
    security_group_ids              = local.security_group_ids
    isolation                       = true
    encrypt_inter_container_traffic = true
  }

  allowed_instance_types = ["ml.g5.2xlarge", "ml.g5.8xlarge", "ml.g5.12xlarge"]

  warm_pools = {
    small-gpu = {
      instance_type      = "ml.g5.2xlarge"
      volume_size_gb     = 100
      keep_alive_seconds = 1200
    }
  }

  buckets = {
    access_log = { bucket = local.access_log_bucket, prefix = "sagefit/" }
    # Old versions of data and models are evidence: they stay for a year.
    retention = {
      data        = { noncurrent_days = 365 }
      artifacts   = { noncurrent_days = 365 }
      checkpoints = { expire_days = 30 }
    }
  }

  log_retention_days = 365

  alarms = {
    emails = ["ml-team@example.com", "security@example.com"]
  }

  # The policies in policies/ ask more of a platform that says so.
  tags = {
    DataClass           = "confidential"
    "sagefit:regulated" = "true"
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
