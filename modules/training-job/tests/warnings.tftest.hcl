# One run per warning, named after it.
mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "us-east-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
}

variables {
  name = "digits"
  platform = {
    schema     = 1
    name       = "dev"
    partition  = "aws"
    region     = "us-east-1"
    account_id = "123456789012"
    role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
    buckets = {
      data        = "sagefit-dev-123456789012-us-east-1-data"
      artifacts   = "sagefit-dev-123456789012-us-east-1-artifacts"
      checkpoints = "sagefit-dev-123456789012-us-east-1-checkpoints"
    }
    repository_url = "123456789012.dkr.ecr.us-east-1.amazonaws.com/sagefit-dev"
    warm_pools     = { small = { instance_type = "ml.m5.large", keep_alive_seconds = 1800 } }
  }
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

run "runtime_above_the_default_quota" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_runtime_seconds = 432001 }]
  }

  expect_failures = [check.default_runtime_quota]
}

run "pending_limit_on_a_cpu_instance" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_pending_seconds = 3600 }]
  }

  expect_failures = [check.pending_limit_without_effect]
}

run "encryption_with_one_instance" {
  command = plan

  variables {
    resources = { encrypt_inter_container_traffic = true }
  }

  expect_failures = [check.encryption_between_one]
}

run "remote_debug_in_isolation" {
  command = plan

  variables {
    resources = { remote_debug = true, network_isolation = true }
  }

  expect_failures = [check.remote_debug_opens_a_way_in]
}
