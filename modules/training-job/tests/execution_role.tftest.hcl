# The role of the training containers: the job's own, with what the job names and makes, or the platform's.
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
    schema                   = 1
    name                     = "dev"
    partition                = "aws"
    region                   = "us-east-1"
    account_id               = "123456789012"
    role_arn                 = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
    job_policy_arns          = { jobs = "arn:aws:iam::123456789012:policy/sagefit/sagefit-dev-jobs" }
    shared_data              = { "corpora/" = "read", "models/team/" = "write" }
    buckets                  = { data = "dev-data", artifacts = "dev-artifacts", checkpoints = "dev-checkpoints" }
    warm_pools               = { small = { instance_type = "ml.m5.large", keep_alive_seconds = 1800 } }
  }
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

run "a_job_has_a_role_of_its_own" {
  command = plan

  assert {
    condition = [
      aws_iam_role.execution[0].name, aws_iam_role.execution[0].path, aws_iam_role.execution[0].permissions_boundary,
    ] == ["sagefit-dev-digits-execution", "/sagefit/dev/", "arn:aws:iam::123456789012:policy/boundary"]
    error_message = "the role bears the job's name, lies in the platform's path and has the platform's boundary"
  }

  assert {
    condition     = tomap({ for name, attached in aws_iam_role_policy_attachment.execution : name => attached.policy_arn }) == var.platform.job_policy_arns
    error_message = "what all jobs need comes from the platform's policies"
  }

  assert {
    condition = jsondecode(aws_iam_role.execution[0].assume_role_policy).Statement[0].Condition == {
      StringEquals = { "aws:SourceAccount" = "123456789012" }
      ArnLike = {
        "aws:SourceArn" = [
          "arn:aws:sagemaker:*:123456789012:training-job/*",
          "arn:aws:sagemaker:*:123456789012:processing-job/*",
          "arn:aws:sagemaker:*:123456789012:hyper-parameter-tuning-job/*",
        ]
      }
    }
    error_message = "only jobs of the account are given the role"
  }

  assert {
    condition = (
      output.execution_role_arn == "arn:aws:iam::123456789012:role/sagefit/dev/sagefit-dev-digits-execution"
      && output.definition.States["first: submit"].Parameters.RoleArn == output.execution_role_arn
      && [for s in output.state_machine_policy.Statement : s.Resource if s.Sid == "PassTheExecutionRole"] == [[output.execution_role_arn]]
    )
    error_message = "attempts run with it, and the state machine may pass no other"
  }

  assert {
    condition = aws_iam_role_policy.execution[0].policy == jsonencode({ Version = "2012-10-17", Statement = [
      {
        Sid       = "List0"
        Effect    = "Allow"
        Action    = ["s3:ListBucket"]
        Resource  = ["arn:aws:s3:::dev-artifacts"]
        Condition = { StringLike = { "s3:prefix" = ["jobs/digits", "jobs/digits/*"] } }
      },
      {
        Sid       = "List1"
        Effect    = "Allow"
        Action    = ["s3:ListBucket"]
        Resource  = ["arn:aws:s3:::dev-checkpoints"]
        Condition = { StringLike = { "s3:prefix" = ["jobs/digits", "jobs/digits/*"] } }
      },
      {
        Sid       = "List2"
        Effect    = "Allow"
        Action    = ["s3:ListBucket"]
        Resource  = ["arn:aws:s3:::dev-data"]
        Condition = { StringLike = { "s3:prefix" = ["jobs/digits/*"] } }
      },
      {
        Sid    = "ReadWhatTheJobNames"
        Effect = "Allow"
        Action = ["s3:GetObject"]
        Resource = [
          "arn:aws:s3:::dev-artifacts/jobs/digits/*",
          "arn:aws:s3:::dev-checkpoints/jobs/digits/*",
          "arn:aws:s3:::dev-data/jobs/digits/*",
        ]
      },
      {
        Sid      = "WriteWhatTheJobMakes"
        Effect   = "Allow"
        Action   = ["s3:AbortMultipartUpload", "s3:PutObject"]
        Resource = ["arn:aws:s3:::dev-artifacts/jobs/digits/*", "arn:aws:s3:::dev-checkpoints/jobs/digits/*"]
      },
      {
        Sid      = "DeleteCheckpointsOfTheJob"
        Effect   = "Allow"
        Action   = ["s3:DeleteObject"]
        Resource = ["arn:aws:s3:::dev-checkpoints/jobs/digits/*"]
      },
    ] })
    error_message = "a job reads and writes below its own name"
  }
}

run "the_role_reads_the_inputs_and_writes_the_output_that_the_job_names" {
  command = plan

  variables {
    resources = { checkpoints = false, output_s3_uri = "s3://models/team/digits/" }
    channels  = { whole = { s3_uri = "s3://corpora" }, odd = { s3_uri = "s3://dev-data/a*b?c$${d}/part" }, weights = { s3_uri = "s3://dev-checkpoints/jobs/base/run/" } }
    processing = [{
      name = "split", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = { s3_uri = "s3://dev-data/raw/" } }
    }]
  }

  assert {
    condition = jsonencode([for s in output.execution_role_policy.Statement : s.Resource if s.Sid == "ReadWhatTheJobNames"]) == jsonencode([[
      "arn:aws:s3:::corpora/*",
      "arn:aws:s3:::dev-artifacts/jobs/digits/*",
      "arn:aws:s3:::dev-checkpoints/jobs/base/run/*",
      "arn:aws:s3:::dev-data/a$${*}b$${?}c$${$}{d}/part*",
      "arn:aws:s3:::dev-data/jobs/digits/*",
      "arn:aws:s3:::dev-data/raw/*",
    ]])
    error_message = "each input is named by its prefix, whatever letters it has"
  }

  assert {
    condition = jsonencode({ for s in output.execution_role_policy.Statement : s.Resource[0] => s.Condition.StringLike["s3:prefix"] if s.Action[0] == "s3:ListBucket" }) == jsonencode({
      "arn:aws:s3:::corpora"         = ["*"]
      "arn:aws:s3:::dev-artifacts"   = ["jobs/digits", "jobs/digits/*"]
      "arn:aws:s3:::dev-checkpoints" = ["jobs/base/run/*"]
      "arn:aws:s3:::dev-data"        = ["a$${*}b$${?}c$${$}{d}/part*", "jobs/digits/*", "raw/*"]
      "arn:aws:s3:::models"          = ["team/digits", "team/digits/*"]
    })
    error_message = "what is read or written is listed, and nothing else"
  }

  assert {
    condition = jsonencode([for s in output.execution_role_policy.Statement : s.Resource if contains(s.Action, "s3:PutObject") || contains(s.Action, "s3:DeleteObject")]) == jsonencode([[
      "arn:aws:s3:::dev-artifacts/jobs/digits/*", "arn:aws:s3:::models/team/digits/*",
    ]])
    error_message = "without checkpoints the output is all that is written, and nothing is deleted"
  }
}

run "a_manifest_may_name_whatever_is_shared" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://dev-data/lists/train.manifest", s3_data_type = "ManifestFile" } }
  }

  assert {
    condition = jsonencode([for s in output.execution_role_policy.Statement : s.Resource if s.Sid == "ReadWhatTheJobNames"]) == jsonencode([[
      "arn:aws:s3:::corpora/*",
      "arn:aws:s3:::dev-artifacts/jobs/digits/*",
      "arn:aws:s3:::dev-checkpoints/jobs/digits/*",
      "arn:aws:s3:::dev-data/*",
      "arn:aws:s3:::dev-data/jobs/digits/*",
      "arn:aws:s3:::dev-data/lists/train.manifest*",
      "arn:aws:s3:::models/team/*",
    ]])
    error_message = "no plan knows what a manifest names, so all shared data is in reach"
  }

  assert {
    condition     = jsonencode([for s in output.execution_role_policy.Statement : s.Resource if s.Sid == "WriteWhatTheJobMakes"]) == jsonencode([["arn:aws:s3:::dev-artifacts/jobs/digits/*", "arn:aws:s3:::dev-checkpoints/jobs/digits/*"]])
    error_message = "and writing stays the job's own"
  }
}

run "a_job_of_a_pool_has_the_role_of_the_pool" {
  command = plan

  variables {
    resources = { warm_pool = "small" }
  }

  assert {
    condition     = output.execution_role_arn == var.platform.role_arn && length(aws_iam_role.execution) == 0 && output.warm_pool.first == "hits the pool small"
    error_message = "kept instances go to jobs of one role"
  }
}

run "a_job_of_a_pool_with_its_own_role_is_told_what_that_costs" {
  command = plan

  variables {
    resources = { warm_pool = "small", role = "own" }
  }

  assert {
    condition     = output.warm_pool.first == "misses the pool small: RoleArn is ${output.execution_role_arn}, the pool has ${var.platform.role_arn}"
    error_message = "the role is one of the keys of a pool"
  }
}

run "the_shared_role_can_be_chosen" {
  command = plan

  variables {
    resources = { role = "shared" }
    channels  = { train = { s3_uri = "s3://somewhere/else/" } }
  }

  assert {
    condition     = output.execution_role_arn == var.platform.role_arn && length(aws_iam_role.execution) == 0 && output.execution_role_policy == null
    error_message = "with the shared role the platform alone says what is in reach"
  }
}

run "a_platform_without_policies_for_jobs_shares_its_role" {
  command = plan

  variables {
    platform = {
      schema     = 1
      name       = "dev"
      partition  = "aws"
      region     = "us-east-1"
      account_id = "123456789012"
      role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
      buckets    = { data = "dev-data", artifacts = "dev-artifacts", checkpoints = "dev-checkpoints" }
    }
    channels = { train = { s3_uri = "s3://somewhere/else/" } }
  }

  assert {
    condition     = output.execution_role_arn == var.platform.role_arn && length(aws_iam_role.execution) == 0
    error_message = "a document from before goes on as it did"
  }
}

run "a_long_name_still_fits_iam" {
  command = plan

  variables {
    name = "a-name-with-as-many-letters-as-there-may"
  }

  assert {
    condition     = length(aws_iam_role.execution[0].name) <= 64
    error_message = "names of roles have 64 characters"
  }
}

run "its_roles_can_be_those_of_the_region" {
  command = plan

  variables {
    platform = merge(var.platform, { global_suffix = "_us-east-1" })
    schedule = { expression = "rate(1 day)" }
  }

  assert {
    condition = [aws_iam_role.execution[0].name, aws_iam_role.state_machine.name, aws_iam_role.schedule[0].name] == [
      "sagefit-dev-digits_us-east-1-execution", "sagefit-dev-digits_us-east-1", "sagefit-dev-digits_us-east-1-schedule",
    ]
    error_message = "an account has a role once, for all regions"
  }

  assert {
    condition = alltrue([
      aws_sfn_state_machine.this.role_arn == "arn:aws:iam::123456789012:role/sagefit/sagefit-dev-digits_us-east-1",
      aws_scheduler_schedule.this[0].target[0].role_arn == "arn:aws:iam::123456789012:role/sagefit/sagefit-dev-digits_us-east-1-schedule",
      strcontains(aws_sfn_state_machine.this.definition, "role/sagefit/dev/sagefit-dev-digits_us-east-1-execution"),
    ])
    error_message = "and they are the ones that act"
  }

  assert {
    condition     = aws_scheduler_schedule.this[0].name == "sagefit-dev-digits"
    error_message = "a schedule is each region's own"
  }
}

run "a_long_name_with_a_region_still_fits_iam" {
  command = plan

  variables {
    name     = "a-name-with-as-many-letters-as-there-may"
    platform = merge(var.platform, { name = "p2345678901234567890", global_suffix = "_ap-southeast-5" })
    schedule = { expression = "rate(1 day)" }
  }

  assert {
    condition     = length(aws_iam_role.execution[0].name) == 64 && length(aws_iam_role.schedule[0].name) <= 64
    error_message = "names of roles have 64 characters"
  }
}

run "role_is_own_or_shared" {
  command = plan

  variables {
    resources = { role = "mine" }
  }

  expect_failures = [var.resources]
}

run "own_role_needs_the_platforms_policies" {
  command = plan

  variables {
    resources = { role = "own" }
    platform = {
      schema     = 1
      name       = "dev"
      partition  = "aws"
      region     = "us-east-1"
      account_id = "123456789012"
      role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
      buckets    = { data = "dev-data", artifacts = "dev-artifacts", checkpoints = "dev-checkpoints" }
    }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "input_is_shared" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://corpora-of-others/a/" } }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "input_of_a_step_is_shared" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = { s3_uri = "s3://elsewhere/a/" } } }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "output_goes_where_the_platform_lets_jobs_write" {
  command = plan

  variables {
    resources = { output_s3_uri = "s3://corpora/digits" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "output_goes_not_to_another_jobs_folder" {
  command = plan

  variables {
    resources = { output_s3_uri = "s3://dev-artifacts/jobs/digits-of-others" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "policy_of_the_role_fits_iam" {
  command = plan

  variables {
    channels = { for n in range(6) : "c${n}" => { s3_uri = "s3://corpora/${join("", [for _ in range(1000) : "x"])}${n}/" } }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "policies_name_the_arn_of_the_jobs_role" {
  command = plan

  override_resource {
    target          = aws_iam_role.execution[0]
    override_during = plan
    values          = { arn = "arn:aws-cn:iam::123456789012:role/sagefit/dev/sagefit-dev-digits-execution" }
  }

  expect_failures = [aws_iam_role.execution]
}
