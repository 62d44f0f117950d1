# One run per rule of the attempts, named after it.
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

run "attempts_not_empty" {
  command = plan

  variables {
    attempts = []
  }

  expect_failures = [var.attempts]
}

run "at_most_twenty_attempts" {
  command = plan

  variables {
    attempts = [for i in range(21) : { name = "a${i}", instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.attempts]
}

run "attempt_name_pattern" {
  command = plan

  variables {
    attempts = [{ name = "First_One", instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.attempts]
}

run "attempt_name_length" {
  command = plan

  variables {
    attempts = [{ name = "a23456789-123456789-123456789-1", instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.attempts]
}

run "attempt_names_are_unique" {
  command = plan

  variables {
    attempts = [{ name = "same", instance_type = "ml.m5.large" }, { name = "same", instance_type = "ml.m5.xlarge" }]
  }

  expect_failures = [var.attempts]
}

run "attempt_reason_length" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", reason = format("%0501d", 1) }]
  }

  expect_failures = [var.attempts]
}

run "instance_type_is_known" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.huge" }]
  }

  expect_failures = [var.attempts]
}

run "instance_type_is_allowed_by_the_platform" {
  command = plan

  variables {
    platform = merge(var.platform, { allowed_instance_types = ["ml.m5.xlarge"] })
  }

  expect_failures = [var.attempts]
}

run "instance_count_is_whole" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 1.5 }]
  }

  expect_failures = [var.attempts]
}

run "instance_count_within_quota" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 21 }]
  }

  expect_failures = [var.attempts]
}

run "volume_size_is_positive" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", volume_size_gb = 0 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "local_disks_take_no_volume_key" {
  command = plan

  variables {
    resources = { volume_kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/1" }
    attempts  = [{ name = "first", instance_type = "ml.g5.xlarge" }]
    image     = { framework = "pytorch", version = "2.6" }
  }

  expect_failures = [var.attempts]
}

run "runtime_at_least_one_second" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_runtime_seconds = 0 }]
  }

  expect_failures = [var.attempts]
}

run "runtime_at_most_28_days" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_runtime_seconds = 2419201 }]
  }

  expect_failures = [var.attempts]
}

run "max_wait_needs_spot" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_wait_seconds = 90000 }]
  }

  expect_failures = [var.attempts]
}

run "spot_needs_max_wait" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", spot = true }]
  }

  expect_failures = [var.attempts]
}

run "max_wait_includes_the_runtime" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", spot = true, max_runtime_seconds = 7200, max_wait_seconds = 3600 }]
  }

  expect_failures = [var.attempts]
}

run "max_wait_at_most_28_days" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", spot = true, max_wait_seconds = 2419201 }]
  }

  expect_failures = [var.attempts]
}

run "max_pending_has_a_floor" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_pending_seconds = 1799 }]
  }

  expect_failures = [var.attempts]
}

run "spot_needs_checkpoints" {
  command = plan

  variables {
    resources = { checkpoints = false }
    attempts  = [{ name = "first", instance_type = "ml.m5.large", spot = true, max_wait_seconds = 90000 }]
  }

  expect_failures = [var.attempts]
}

run "spot_without_checkpointing_algorithm_waits_an_hour" {
  command = plan

  variables {
    code     = null
    image    = { algorithm = "kmeans" }
    attempts = [{ name = "first", instance_type = "ml.m5.large", spot = true, max_runtime_seconds = 3600, max_wait_seconds = 3601 }]
  }

  expect_failures = [var.attempts]
}

run "keep_alive_at_most_six_hours" {
  command = plan

  variables {
    resources = { max_keep_alive_seconds = 21600 }
    attempts  = [{ name = "first", instance_type = "ml.m5.large", keep_alive_seconds = 21601 }]
  }

  expect_failures = [var.attempts]
}

run "keep_alive_within_the_platform_limit" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", keep_alive_seconds = 3601 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "spot_excludes_warm_pools" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", spot = true, max_wait_seconds = 90000, keep_alive_seconds = 600 }]
  }

  expect_failures = [var.attempts]
}

run "warm_pool_matches_the_first_attempt" {
  command = plan

  variables {
    resources = { warm_pool = "small" }
    attempts  = [{ name = "first", instance_type = "ml.m5.xlarge" }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "warm_pool_matches_the_volume" {
  command = plan

  variables {
    resources = { warm_pool = "small" }
    attempts  = [{ name = "first", instance_type = "ml.m5.large", volume_size_gb = 31 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "next_names_a_known_class" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", next = { memory = "second" } }, { name = "second", instance_type = "ml.m5.xlarge", next = {} }]
  }

  expect_failures = [var.attempts]
}

run "next_names_an_attempt" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", next = { host_memory = "third" } }, { name = "second", instance_type = "ml.m5.xlarge", next = {} }]
  }

  expect_failures = [var.attempts]
}

run "next_points_forward" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", next = { host_memory = "second" } }, { name = "second", instance_type = "ml.m5.xlarge", next = { host_memory = "first" } }]
  }

  expect_failures = [var.attempts]
}

run "next_never_points_to_itself" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", next = { host_memory = "first" } }, { name = "second", instance_type = "ml.m5.xlarge", next = {} }]
  }

  expect_failures = [var.attempts]
}

run "a_stopped_run_stays_stopped" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", next = { stopped = "second" } }, { name = "second", instance_type = "ml.m5.xlarge", next = {} }]
  }

  expect_failures = [var.attempts]
}

run "instance_count_is_positive" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 0 }]
  }

  expect_failures = [var.attempts]
}

run "volume_size_is_that_of_a_volume" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", volume_size_gb = 16385 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "volume_size_is_whole" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", volume_size_gb = 1.5 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "runtime_is_whole" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_runtime_seconds = 1.5 }]
  }

  expect_failures = [var.attempts]
}

run "max_wait_is_whole" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", spot = true, max_wait_seconds = 90000.5 }]
  }

  expect_failures = [var.attempts]
}

run "max_pending_is_whole" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.g5.xlarge", max_pending_seconds = 1800.5 }]
    image    = { framework = "pytorch", version = "2.6" }
  }

  expect_failures = [var.attempts]
}

run "max_pending_has_a_ceiling" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.g5.xlarge", max_pending_seconds = 2419201 }]
    image    = { framework = "pytorch", version = "2.6" }
  }

  expect_failures = [var.attempts]
}

run "keep_alive_is_not_negative" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", keep_alive_seconds = -1 }]
  }

  expect_failures = [var.attempts]
}

run "keep_alive_is_whole" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", keep_alive_seconds = 1.5 }]
  }

  expect_failures = [var.attempts]
}

run "a_spot_attempt_never_finds_the_pool" {
  command = plan

  variables {
    resources = { warm_pool = "small" }
    attempts  = [{ name = "first", instance_type = "ml.m5.large", spot = true, max_wait_seconds = 90000 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}
