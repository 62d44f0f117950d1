# The job/ root, without an account: it reads the platform's document and hands the tfvars on.
mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "us-east-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
  override_data {
    target = data.aws_ssm_parameter.platform
    values = {
      insecure_value = "{\"schema\":1,\"name\":\"dev\",\"partition\":\"aws\",\"region\":\"us-east-1\",\"account_id\":\"123456789012\",\"role_arn\":\"arn:aws:iam::123456789012:role/sagefit-dev-execution\",\"buckets\":{\"data\":\"d\",\"artifacts\":\"a\",\"checkpoints\":\"c\"}}"
    }
  }
}

variables {
  name     = "digits"
  platform = "dev"
  image    = { framework = "sklearn", version = "1.2-1" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

run "a_job_on_a_platform" {
  command = plan

  module {
    source = "./job"
  }

  assert {
    condition     = data.aws_ssm_parameter.platform.name == "/sagefit/dev"
    error_message = "The document is the platform's."
  }
  assert {
    condition     = output.state_machine_name == "sagefit-dev-digits" && output.run_prefix == "digits-" && output.attempts == tolist(["first"])
    error_message = "Platform and job name the state machine."
  }
  assert {
    condition     = output.code_digest == null && output.worst_case_seconds == 86400
    error_message = "What the module leaves out and computes comes out."
  }
}

run "every_field_is_handed_on" {
  command = plan

  module {
    source = "./job"
  }

  variables {
    name               = "digits-from-pixels-on-paper"
    description        = "Digits from pixels"
    code               = { source_dir = "modules/training-job/tests/fixtures/code", entry_point = "train.py" }
    channels           = { train = { s3_uri = "s3://bucket/train/" } }
    hyperparameters    = { epochs = "3" }
    environment        = { LEVEL = "info" }
    resources          = { volume_size_gb = 50 }
    metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
    schedule           = { expression = "rate(1 day)" }
    tags               = { cost = "42" }
    tracing            = true
  }

  assert {
    condition     = output.code_digest != null && module.job.definition.Comment == "Sagefit job digits-from-pixels-on-paper: Digits from pixels"
    error_message = "Code and description."
  }
  assert {
    condition     = module.job.definition.States["first: submit"].Parameters.InputDataConfig[*].ChannelName == ["train", "code", "sagefit"]
    error_message = "Channels."
  }
  assert {
    condition     = module.job.definition.States["first: submit"].Parameters.HyperParameters.epochs == "3" && module.job.definition.States["first: submit"].Parameters.Environment.LEVEL == "info"
    error_message = "Hyperparameters and environment."
  }
  assert {
    condition     = module.job.definition.States["first: submit"].Parameters.ResourceConfig.VolumeSizeInGB == 50
    error_message = "Resources."
  }
  assert {
    condition     = contains([for m in module.job.definition.States["first: submit"].Parameters.AlgorithmSpecification.MetricDefinitions : m.Name], "accuracy")
    error_message = "Metric definitions."
  }
  assert {
    condition     = contains(module.job.definition.States["first: submit"].Parameters.Tags, { Key = "cost", Value = "42" })
    error_message = "Tags."
  }
  assert {
    condition     = contains([for s in module.job.state_machine_policy.Statement : s.Sid], "SendTraces")
    error_message = "Tracing."
  }
  # A scheduled run has a shorter prefix, and the role covers it.
  assert {
    condition     = strcontains(jsonencode(module.job.state_machine_policy), "training-job/digits-from-pixels-on-*")
    error_message = "Schedule."
  }
}

# Rules

run "platform_is_a_name" {
  command = plan

  module {
    source = "./job"
  }

  variables {
    platform = "Dev"
  }

  expect_failures = [var.platform]
}

run "platform_has_twenty_characters_at_most" {
  command = plan

  module {
    source = "./job"
  }

  variables {
    platform = "a-platform-of-twenty1"
  }

  expect_failures = [var.platform]
}

run "platform_document_has_schema_1" {
  command = plan

  module {
    source = "./job"
  }

  override_data {
    target = data.aws_ssm_parameter.platform
    values = {
      insecure_value = "{\"schema\":2,\"name\":\"dev\",\"partition\":\"aws\",\"region\":\"us-east-1\",\"account_id\":\"123456789012\",\"role_arn\":\"arn:aws:iam::123456789012:role/sagefit-dev-execution\",\"buckets\":{\"data\":\"d\",\"artifacts\":\"a\",\"checkpoints\":\"c\"}}"
    }
  }

  expect_failures = [data.aws_ssm_parameter.platform]
}
