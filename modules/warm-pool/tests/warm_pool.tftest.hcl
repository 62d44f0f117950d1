mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "eu-west-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
  mock_data "aws_servicequotas_service_quota" {
    defaults = {
      quota_code = "L-0123ABCD"
      value      = 1
    }
  }
}

variables {
  context = {
    partition  = "aws"
    region     = "eu-west-1"
    account_id = "123456789012"
    prefix     = "sagefit-test"
  }
  name  = "small-gpu"
  match = { instance_type = "ml.g5.2xlarge", volume_size_gb = 100 }
}

run "profile_is_what_the_platform_publishes" {
  command = plan

  assert {
    condition     = output.profile == { instance_type = "ml.g5.2xlarge", instance_count = 1, volume_size_gb = 100, keep_alive_seconds = 1800 }
    error_message = "The profile must have the four fields of the platform document."
  }
}

run "quota_is_left_alone_by_default" {
  command = plan

  assert {
    condition     = length(data.aws_servicequotas_service_quota.this) == 0 && length(aws_servicequotas_service_quota.this) == 0 && output.quota_value == null
    error_message = "Quotas are live calls and must be opt-in."
  }

  assert {
    condition     = output.quota_name == "ml.g5.2xlarge for training warm pool usage"
    error_message = "The quota must be named as AWS names it."
  }
}

run "guard_denies_long_and_foreign_pools" {
  command = plan

  assert {
    condition     = alltrue([for statement in output.guard_statements : statement.Effect == "Deny" && statement.Resource == "arn:aws:sagemaker:eu-west-1:123456789012:training-job/*" && can(regex("^[A-Za-z0-9]+$", statement.Sid))])
    error_message = "Guards must deny on the account's training jobs under alphanumeric Sids."
  }

  assert {
    condition     = jsonencode(output.guard_statements[0].Condition) == jsonencode({ NumericGreaterThan = { "sagemaker:KeepAlivePeriod" = "1800" } })
    error_message = "A longer keep-alive than the pool's must be denied."
  }

  assert {
    condition = jsonencode(output.guard_statements[1].Condition) == jsonencode({
      "ForAnyValue:StringNotEquals" = { "sagemaker:InstanceTypes" = ["ml.g5.2xlarge"] }
      NumericGreaterThan            = { "sagemaker:KeepAlivePeriod" = "0" }
    })
    error_message = "Keeping another instance type must be denied, and jobs without keep-alive left alone."
  }
}

run "allow_condition_has_its_null_guard" {
  command = plan

  assert {
    condition     = keys(output.allow_condition["ForAllValues:StringEquals"]) == keys(output.allow_condition["Null"]) && output.allow_condition["Null"]["sagemaker:InstanceTypes"] == "false"
    error_message = "ForAllValues is true when the key is absent, so a Null guard must stand beside it (IAM)."
  }
}

run "quota_check_passes_when_it_covers" {
  command = plan

  variables {
    quota = { check = true }
  }

  assert {
    condition     = output.quota_value == 1
    error_message = "The quota read must be published."
  }
}

run "quota_check_refuses_a_small_quota" {
  command = plan

  variables {
    quota      = { check = true }
    pool_count = 2
  }

  expect_failures = [data.aws_servicequotas_service_quota.this]
}

run "quota_request_asks_by_code" {
  command = plan

  variables {
    quota      = { request = 4 }
    pool_count = 2
    match      = { instance_type = "ml.g5.2xlarge", instance_count = 2 }
  }

  assert {
    condition     = aws_servicequotas_service_quota.this[0].value == 4 && aws_servicequotas_service_quota.this[0].quota_code == "L-0123ABCD" && aws_servicequotas_service_quota.this[0].service_code == "sagemaker"
    error_message = "The request must use the code found by name."
  }
}

run "long_keep_alive_needs_the_override" {
  command = plan

  variables {
    keep_alive_seconds     = 7200
    max_keep_alive_seconds = 7200
  }

  assert {
    condition     = output.profile.keep_alive_seconds == 7200
    error_message = "With the override a longer keep-alive must be accepted."
  }
}

# Rules

run "keep_alive_is_positive" {
  command = plan

  variables {
    keep_alive_seconds = 0
  }

  expect_failures = [var.keep_alive_seconds]
}

run "keep_alive_over_an_hour_is_refused" {
  command = plan

  variables {
    keep_alive_seconds = 3601
  }

  expect_failures = [var.keep_alive_seconds]
}

run "max_keep_alive_is_within_the_api" {
  command = plan

  variables {
    max_keep_alive_seconds = 21601
  }

  expect_failures = [var.max_keep_alive_seconds]
}

run "instance_type_is_of_sagemaker" {
  command = plan

  variables {
    match = { instance_type = "g5.2xlarge" }
  }

  expect_failures = [var.match]
}

run "instance_count_is_positive" {
  command = plan

  variables {
    match = { instance_type = "ml.g5.2xlarge", instance_count = 0 }
  }

  expect_failures = [var.match]
}

run "volume_size_is_positive" {
  command = plan

  variables {
    match = { instance_type = "ml.g5.2xlarge", volume_size_gb = 0 }
  }

  expect_failures = [var.match]
}

run "subnets_are_sixteen_at_most" {
  command = plan

  variables {
    match = { instance_type = "ml.g5.2xlarge", subnet_ids = [for index in range(17) : "subnet-${index}"], security_group_ids = ["sg-0a"] }
  }

  expect_failures = [var.match]
}

run "security_groups_are_five_at_most" {
  command = plan

  variables {
    match = { instance_type = "ml.g5.2xlarge", subnet_ids = ["subnet-0a"], security_group_ids = [for index in range(6) : "sg-${index}"] }
  }

  expect_failures = [var.match]
}

run "subnets_and_groups_come_together" {
  command = plan

  variables {
    match = { instance_type = "ml.g5.2xlarge", subnet_ids = ["subnet-0a"] }
  }

  expect_failures = [var.match]
}

run "name_is_lower_case" {
  command = plan

  variables {
    name = "Small GPU"
  }

  expect_failures = [var.name]
}

run "pool_count_is_positive" {
  command = plan

  variables {
    pool_count = 0
  }

  expect_failures = [var.pool_count]
}

run "quota_request_covers_the_pool" {
  command = plan

  variables {
    quota      = { request = 1 }
    pool_count = 2
  }

  expect_failures = [var.quota]
}

run "quota_is_checked_or_requested" {
  command = plan

  variables {
    quota = { check = true, request = 4 }
  }

  expect_failures = [var.quota]
}

run "max_keep_alive_is_whole" {
  command = plan

  variables {
    max_keep_alive_seconds = 1800.5
  }

  expect_failures = [var.max_keep_alive_seconds]
}

run "keep_alive_is_whole" {
  command = plan

  variables {
    keep_alive_seconds = 1.5
  }

  expect_failures = [var.keep_alive_seconds]
}

run "instance_count_is_whole" {
  command = plan

  variables {
    match = { instance_type = "ml.g5.2xlarge", instance_count = 1.5 }
  }

  expect_failures = [var.match]
}

run "volume_size_is_whole" {
  command = plan

  variables {
    match = { instance_type = "ml.g5.2xlarge", volume_size_gb = 1.5 }
  }

  expect_failures = [var.match]
}
