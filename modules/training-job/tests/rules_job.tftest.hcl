# One run per rule of the job itself, named after it.
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

run "name_pattern" {
  command = plan

  variables {
    name = "Digits"
  }

  expect_failures = [var.name]
}

run "name_length" {
  command = plan

  variables {
    name = "a234567890-234567890-234567890-2345678901"
  }

  expect_failures = [var.name]
}

run "name_is_none_of_the_platforms_role" {
  command = plan

  variables {
    name = "execution"
  }

  expect_failures = [var.name]
}

run "name_is_none_of_another_jobs_execution_role" {
  command = plan

  variables {
    name = "digits-execution"
  }

  expect_failures = [var.name]
}

run "name_is_none_of_another_jobs_schedule_role" {
  command = plan

  variables {
    name = "digits-schedule"
  }

  expect_failures = [var.name]
}

run "description_length" {
  command = plan

  variables {
    description = format("%01001d", 1)
  }

  expect_failures = [var.description]
}

run "platform_schema" {
  command = plan

  variables {
    platform = merge(var.platform, { schema = 2 })
  }

  expect_failures = [var.platform]
}

run "platform_name_pattern" {
  command = plan

  variables {
    platform = merge(var.platform, { name = "Dev" })
  }

  expect_failures = [var.platform]
}

run "platform_account_id_pattern" {
  command = plan

  variables {
    platform = merge(var.platform, { account_id = "123" })
  }

  expect_failures = [var.platform]
}

run "platform_role_arn_pattern" {
  command = plan

  variables {
    platform = merge(var.platform, { role_arn = "sagefit-dev-execution" })
  }

  expect_failures = [var.platform]
}

run "at_most_100_hyperparameters" {
  command = plan

  variables {
    hyperparameters = { for i in range(101) : "p${i}" => "1" }
  }

  expect_failures = [var.hyperparameters]
}

run "hyperparameters_of_an_attempt_count_too" {
  command = plan

  variables {
    hyperparameters = { for i in range(100) : "p${i}" => "1" }
    attempts        = [{ name = "first", instance_type = "ml.m5.large", hyperparameters = { one-more = "1" } }]
  }

  expect_failures = [var.hyperparameters]
}

run "hyperparameter_name_length" {
  command = plan

  variables {
    hyperparameters = { (format("%0257d", 1)) = "1" }
  }

  expect_failures = [var.hyperparameters]
}

run "hyperparameter_name_is_no_path" {
  command = plan

  variables {
    hyperparameters = { "epochs.$" = "$.x" }
  }

  expect_failures = [var.hyperparameters]
}

run "hyperparameter_value_length" {
  command = plan

  variables {
    hyperparameters = { text = format("%02501d", 1) }
  }

  expect_failures = [var.hyperparameters]
}

run "hyperparameter_holds_no_access_key" {
  command = plan

  variables {
    hyperparameters = { key = join("", ["AKIA", "ABCDEFGHIJKLMNOP"]) }
  }

  expect_failures = [var.hyperparameters]
}

run "hyperparameters_fit_into_the_state" {
  command = plan

  variables {
    hyperparameters = { for i in range(100) : "p${i}" => format("%01500d", 1) }
  }

  expect_failures = [var.hyperparameters]
}

run "at_most_100_environment_variables" {
  command = plan

  variables {
    environment = { for i in range(100) : "V${i}" => "1" }
  }

  expect_failures = [var.environment]
}

run "environment_leaves_the_attempt_alone" {
  command = plan

  variables {
    environment = { SAGEFIT_ATTEMPT = "mine" }
  }

  expect_failures = [var.environment]
}

run "environment_of_an_attempt_leaves_its_name_alone" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", environment = { SAGEFIT_ATTEMPT = "mine" } }]
  }

  expect_failures = [var.environment]
}

run "environment_name_pattern" {
  command = plan

  variables {
    environment = { "1ST" = "1" }
  }

  expect_failures = [var.environment]
}

run "environment_value_length" {
  command = plan

  variables {
    environment = { TEXT = format("%0513d", 1) }
  }

  expect_failures = [var.environment]
}

run "environment_holds_no_token" {
  command = plan

  variables {
    environment = { HUB = join("", ["hf_", format("%034d", 1)]) }
  }

  expect_failures = [var.environment]
}

run "environment_of_an_attempt_holds_no_token" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", environment = { GIT = join("", ["ghp_", format("%036d", 1)]) } }]
  }

  expect_failures = [var.environment]
}

run "environment_names_no_aws_secret" {
  command = plan

  variables {
    environment = { AWS_SECRET_ACCESS_KEY = "x" }
  }

  expect_failures = [var.environment]
}

run "environment_holds_no_private_key" {
  command = plan

  variables {
    environment = { PEM = "-----BEGIN RSA PRIVATE KEY-----" }
  }

  expect_failures = [var.environment]
}

run "at_most_40_metric_definitions" {
  command = plan

  variables {
    metric_definitions = [for i in range(38) : { name = "m${i}", regex = "m${i}=([0-9]+)" }]
  }

  expect_failures = [var.metric_definitions]
}

run "metric_name_length" {
  command = plan

  variables {
    metric_definitions = [{ name = format("%0256d", 1), regex = "x=([0-9]+)" }]
  }

  expect_failures = [var.metric_definitions]
}

run "metric_regex_length" {
  command = plan

  variables {
    metric_definitions = [{ name = "x", regex = format("%0501d", 1) }]
  }

  expect_failures = [var.metric_definitions]
}

run "metric_names_are_unique" {
  command = plan

  variables {
    metric_definitions = [{ name = "x", regex = "x=(.)" }, { name = "x", regex = "y=(.)" }]
  }

  expect_failures = [var.metric_definitions]
}

run "built_in_algorithm_defines_its_metrics" {
  command = plan

  variables {
    code               = null
    image              = { algorithm = "kmeans" }
    metric_definitions = [{ name = "x", regex = "x=(.)" }]
  }

  expect_failures = [var.metric_definitions]
}

run "schedule_expression_pattern" {
  command = plan

  variables {
    schedule = { expression = "every day" }
  }

  expect_failures = [var.schedule]
}

run "schedule_expression_length" {
  command = plan

  variables {
    schedule = { expression = format("cron(%s0 3 * * ? *)", join("", [for minute in range(120) : "0,"])) }
  }

  expect_failures = [var.schedule]
}

run "volume_key_length" {
  command = plan

  variables {
    resources = { volume_kms_key_arn = format("arn:aws:kms:us-east-1:123456789012:key/%02048d", 1) }
  }

  expect_failures = [var.resources]
}

run "output_key_length" {
  command = plan

  variables {
    resources = { output_kms_key_arn = format("arn:aws:kms:us-east-1:123456789012:key/%02048d", 1) }
  }

  expect_failures = [var.resources]
}

run "schedule_cron_of_five_fields" {
  command = plan

  variables {
    schedule = { expression = "cron(0 3 * * *)" }
  }

  expect_failures = [var.schedule]
}

run "schedule_cron_of_day_and_weekday" {
  command = plan

  variables {
    schedule = { expression = "cron(0 3 1 * MON *)" }
  }

  expect_failures = [var.schedule]
}

run "schedule_rate_without_a_unit" {
  command = plan

  variables {
    schedule = { expression = "rate(12h)" }
  }

  expect_failures = [var.schedule]
}

run "at_most_50_tags" {
  command = plan

  variables {
    tags = { for i in range(48) : "t${i}" => "1" }
  }

  expect_failures = [var.tags]
}

run "tag_pattern" {
  command = plan

  variables {
    tags = { "a*b" = "1" }
  }

  expect_failures = [var.tags]
}

run "tag_value_length" {
  command = plan

  variables {
    tags = { text = format("%0257d", 1) }
  }

  expect_failures = [var.tags]
}

run "tags_of_sagefit_are_not_the_jobs" {
  command = plan

  variables {
    tags = { "Sagefit:regulated" = "false" }
  }

  expect_failures = [var.tags]
}

run "tag_prefix_aws_is_reserved" {
  command = plan

  variables {
    tags = { "aws:x" = "1" }
  }

  expect_failures = [var.tags]
}

run "tag_holds_no_credential" {
  command = plan

  variables {
    tags = { key = join("", ["sk-", format("%040d", 1)]) }
  }

  expect_failures = [var.tags]
}

run "input_mode_is_known" {
  command = plan

  variables {
    resources = { input_mode = "Stream" }
  }

  expect_failures = [var.resources]
}

run "platform_requires_isolation" {
  command = plan

  variables {
    platform  = merge(var.platform, { network = { isolation = true } })
    resources = { network_isolation = false }
  }

  expect_failures = [var.resources]
}

run "platform_requires_encrypted_traffic" {
  command = plan

  variables {
    platform  = merge(var.platform, { network = { encrypt_inter_container_traffic = true } })
    resources = { encrypt_inter_container_traffic = false }
  }

  expect_failures = [var.resources]
}

run "vpc_needs_subnets_and_security_groups" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1"] }
  }

  expect_failures = [var.resources]
}

run "at_most_16_subnets" {
  command = plan

  variables {
    resources = { subnet_ids = [for i in range(17) : "subnet-${i}"], security_group_ids = ["sg-1"] }
  }

  expect_failures = [var.resources]
}

run "at_most_5_security_groups" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1"], security_group_ids = [for i in range(6) : "sg-${i}"] }
  }

  expect_failures = [var.resources]
}

run "subnet_id_pattern" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet 1"], security_group_ids = ["sg-1"] }
  }

  expect_failures = [var.resources]
}

run "warm_pool_exists" {
  command = plan

  variables {
    resources = { warm_pool = "large" }
  }

  expect_failures = [var.resources]
}

run "max_keep_alive_within_the_api" {
  command = plan

  variables {
    resources = { max_keep_alive_seconds = 21601 }
  }

  expect_failures = [var.resources]
}

run "checkpoint_path_is_written_out" {
  command = plan

  variables {
    resources = { checkpoint_local_path = "/opt/ml/checkpoints/../.." }
  }

  expect_failures = [var.resources]
}

run "checkpoint_local_path_is_below_the_root" {
  command = plan

  variables {
    resources = { checkpoint_local_path = "/" }
  }

  expect_failures = [var.resources]
}

run "checkpoint_path_is_absolute" {
  command = plan

  variables {
    resources = { checkpoint_local_path = "checkpoints" }
  }

  expect_failures = [var.resources]
}

run "kms_key_pattern" {
  command = plan

  variables {
    resources = { output_kms_key_arn = "alias/x" }
  }

  expect_failures = [var.resources]
}

run "output_s3_uri_pattern" {
  command = plan

  variables {
    resources = { output_s3_uri = "bucket" }
  }

  expect_failures = [var.resources]
}

run "express_output_takes_no_key" {
  command = plan

  variables {
    resources = { output_s3_uri = "s3://models--use1-az4--x-s3/jobs", output_kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/1" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "output_compression_is_known" {
  command = plan

  variables {
    resources = { output_compression = "ZIP" }
  }

  expect_failures = [var.resources]
}

run "retry_attempts_within_the_api" {
  command = plan

  variables {
    resources = { retry_attempts = 31 }
  }

  expect_failures = [var.resources]
}

run "instance_quota_is_positive" {
  command = plan

  variables {
    resources = { instance_quota = 0 }
  }

  expect_failures = [var.resources]
}

run "the_provider_works_in_the_platforms_region" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "eu-central-1" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "the_provider_works_in_the_platforms_account" {
  command = plan

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "210987654321", arn = "arn:aws:iam::210987654321:root" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "poll_seconds_is_positive" {
  command = plan

  variables {
    resources = { poll_seconds = 0 }
  }

  expect_failures = [var.resources]
}

run "platform_name_length" {
  command = plan

  variables {
    platform = merge(var.platform, { name = "p23456789012345678901" })
  }

  expect_failures = [var.platform]
}

run "hyperparameter_name_is_not_empty" {
  command = plan

  variables {
    hyperparameters = { "" = "1" }
  }

  expect_failures = [var.hyperparameters]
}

run "hyperparameter_of_an_attempt_holds_no_token" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", hyperparameters = { hub = join("", ["hf_", format("%034d", 1)]) } }]
  }

  expect_failures = [var.hyperparameters]
}

run "an_image_of_an_algorithm_defines_its_metrics" {
  command = plan

  variables {
    image              = { framework = "xgboost", version = "1.7-1" }
    metric_definitions = [{ name = "x", regex = "x=(.)" }]
  }

  expect_failures = [var.metric_definitions]
}

run "an_algorithm_named_by_its_uri_defines_its_metrics" {
  command = plan

  variables {
    image              = { uri = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1" }
    metric_definitions = [{ name = "x", regex = "x=(.)" }]
  }

  expect_failures = [var.metric_definitions]
}

run "metric_name_is_not_empty" {
  command = plan

  variables {
    metric_definitions = [{ name = "", regex = "x=(.)" }]
  }

  expect_failures = [var.metric_definitions]
}

run "metric_regex_is_not_empty" {
  command = plan

  variables {
    metric_definitions = [{ name = "x", regex = "" }]
  }

  expect_failures = [var.metric_definitions]
}

run "tags_of_the_platform_count_too" {
  command = plan

  variables {
    platform = merge(var.platform, { tags = { for i in range(40) : "p${i}" => "1" } })
    tags     = { for i in range(8) : "t${i}" => "1" }
  }

  expect_failures = [var.tags]
}

run "subnets_of_the_platform_count_too" {
  command = plan

  variables {
    platform = merge(var.platform, { network = { subnet_ids = [for i in range(17) : "subnet-${i}"], security_group_ids = ["sg-1"] } })
  }

  expect_failures = [var.resources]
}

run "max_keep_alive_is_whole" {
  command = plan

  variables {
    resources = { max_keep_alive_seconds = 1.5 }
  }

  expect_failures = [var.resources]
}

run "volume_key_pattern" {
  command = plan

  variables {
    resources = { volume_kms_key_arn = "alias/x" }
  }

  expect_failures = [var.resources]
}

run "output_s3_uri_length" {
  command = plan

  variables {
    resources = { output_s3_uri = join("", ["s3://bucket/", format("%01024d", 1)]) }
  }

  expect_failures = [var.resources]
}

run "retry_attempts_are_whole" {
  command = plan

  variables {
    resources = { retry_attempts = 1.5 }
  }

  expect_failures = [var.resources]
}

run "retry_attempts_are_positive" {
  command = plan

  variables {
    resources = { retry_attempts = 0 }
  }

  expect_failures = [var.resources]
}

run "instance_quota_is_whole" {
  command = plan

  variables {
    resources = { instance_quota = 1.5 }
  }

  expect_failures = [var.resources]
}

run "poll_seconds_are_whole" {
  command = plan

  variables {
    resources = { poll_seconds = 30.5 }
  }

  expect_failures = [var.resources]
}

run "poll_seconds_at_most_an_hour" {
  command = plan

  variables {
    resources = { poll_seconds = 3601 }
  }

  expect_failures = [var.resources]
}

run "looks_at_a_training_job_fit_into_the_history" {
  command = plan

  variables {
    resources = { poll_seconds = 1 }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "a_run_ends_within_a_year" {
  command = plan

  variables {
    attempts = [for i in range(11) : { name = "a${i}", instance_type = "ml.m5.large", spot = true, max_wait_seconds = 2419200 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "a_request_fits_between_states" {
  command = plan

  variables {
    hyperparameters = { for i in range(60) : "p${i}" => format("%02200d", 1) }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "the_definition_fits_step_functions" {
  command = plan

  variables {
    hyperparameters = { for i in range(27) : "p${i}" => format("%02200d", 1) }
    attempts        = [for i in range(20) : { name = "a${i}", instance_type = "ml.m5.large" }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "the_provider_works_in_the_platforms_partition" {
  command = plan

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "123456789012", arn = "arn:aws-cn:iam::123456789012:root" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "policies_name_the_arn_of_the_state_machine" {
  command = plan

  override_resource {
    target          = aws_sfn_state_machine.this
    override_during = plan
    values          = { arn = "arn:aws-cn:states:eu-west-1:123456789012:stateMachine:x" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "policies_name_the_arn_of_the_log_group" {
  command = plan

  override_resource {
    target          = aws_cloudwatch_log_group.runs
    override_during = plan
    values          = { arn = "arn:aws-cn:logs:eu-west-1:123456789012:log-group:x" }
  }

  expect_failures = [aws_cloudwatch_log_group.runs]
}

run "policies_name_the_arn_of_the_machines_role" {
  command = plan

  override_resource {
    target          = aws_iam_role.state_machine
    override_during = plan
    values          = { arn = "arn:aws-cn:iam::123456789012:role/sagefit/x" }
  }

  expect_failures = [aws_iam_role.state_machine]
}
