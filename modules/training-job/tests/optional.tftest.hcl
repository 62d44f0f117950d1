# Optional arguments that no other file gives: each reaches what it is for.
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
    tags           = { team = "vision" }
  }
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

run "limits_are_raised_in_writing" {
  command = plan

  variables {
    description = "Digits from pixels"
    resources   = { instance_quota = 30, max_keep_alive_seconds = 7200 }
    attempts = [{
      name                = "first"
      instance_type       = "ml.g5.xlarge"
      instance_count      = 25
      keep_alive_seconds  = 7200
      max_pending_seconds = 1800
      memory_percent      = 71
    }]
    image = { framework = "pytorch", version = "2.6", python_version = "py312" }
  }

  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Parameters.ResourceConfig) == jsonencode({ InstanceCount = 25, InstanceType = "ml.g5.xlarge", KeepAlivePeriodInSeconds = 7200, VolumeSizeInGB = 30 })
    error_message = "quota and keep-alive"
  }
  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Parameters.StoppingCondition) == jsonencode({ MaxPendingTimeInSeconds = 1800, MaxRuntimeInSeconds = 86400 })
    error_message = "an attempt may wait for capacity, and 24 hours are the default"
  }
  assert {
    condition     = output.definition.Comment == "Sagefit job digits: Digits from pixels"
    error_message = "the definition says what the job is for"
  }
  assert {
    condition     = endswith(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage, "-py312")
    error_message = "the Python version that is asked for"
  }
  assert {
    condition     = { for t in output.definition.States["first: submit"].Parameters.Tags : t.Key => t.Value }["sagefit:memory-percent"] == "71"
    error_message = "the prediction is a tag"
  }
  assert {
    condition     = output.worst_case_seconds == 86400 + 1800
    error_message = "waiting for capacity counts"
  }
}

run "an_algorithm_with_one_version_needs_none" {
  command = plan

  variables {
    code  = null
    image = { algorithm = "kmeans" }
    channels = {
      plain  = { s3_uri = "s3://bucket/plain/", mode = "File", compression = "None", record_wrapper = "None" }
      shared = { file_system = { id = "fs-0123abcd", type = "EFS", directory_path = "/train", access_mode = "rw" } }
    }
    resources = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"], retry_attempts = 30, output_compression = "GZIP" }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "382416733822.dkr.ecr.us-east-1.amazonaws.com/kmeans:1"
    error_message = "the only version"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.InputDataConfig[0].CompressionType == "None" && output.definition.States["first: submit"].Parameters.InputDataConfig[0].RecordWrapperType == "None" && output.definition.States["first: submit"].Parameters.InputDataConfig[0].InputMode == "File"
    error_message = "written defaults"
  }
  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Parameters.InputDataConfig[1].DataSource.FileSystemDataSource) == jsonencode({ DirectoryPath = "/train", FileSystemAccessMode = "rw", FileSystemId = "fs-0123abcd", FileSystemType = "EFS" })
    error_message = "a file system to write to"
  }
  assert {
    condition     = keys(output.definition.States["first: submit"].Parameters.OutputDataConfig) == ["S3OutputPath"]
    error_message = "GZIP is SageMaker's own default"
  }
}

run "a_platform_of_its_own_kind" {
  command = plan

  variables {
    platform = merge(var.platform, {
      log_retention_days     = 365
      allowed_instance_types = ["ml.m5.large"]
      max_keep_alive_seconds = 600
      network                = { encrypt_inter_container_traffic = true }
      kms_key_arn            = "arn:aws:kms:us-east-1:123456789012:key/platform"
    })
    schedule = { expression = "at(2030-01-01T06:00:00)", enabled = false }
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 2, keep_alive_seconds = 600 }]
  }

  assert {
    condition     = aws_cloudwatch_log_group.runs.retention_in_days == 365 && aws_cloudwatch_log_group.runs.tags["team"] == "vision"
    error_message = "logs are kept as long as the platform says, under its tags"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.EnableInterContainerTrafficEncryption
    error_message = "the platform encrypts traffic"
  }
  assert {
    condition     = aws_scheduler_schedule.this[0].state == "DISABLED" && aws_scheduler_schedule.this[0].schedule_expression_timezone == "UTC" && aws_scheduler_schedule.this[0].kms_key_arn == "arn:aws:kms:us-east-1:123456789012:key/platform"
    error_message = "a schedule may rest"
  }
  assert {
    condition     = !aws_sfn_state_machine.this.tracing_configuration[0].enabled && aws_sfn_state_machine.this.logging_configuration[0].level == "ALL" && !aws_sfn_state_machine.this.logging_configuration[0].include_execution_data
    error_message = "runs are logged without their data, and traced only when asked for"
  }
  assert {
    condition = jsondecode(aws_iam_role.schedule[0].assume_role_policy) == {
      Version = "2012-10-17"
      Statement = [{
        Sid       = "SchedulerOnly"
        Effect    = "Allow"
        Action    = "sts:AssumeRole"
        Principal = { Service = "scheduler.amazonaws.com" }
        Condition = {
          StringEquals = { "aws:SourceAccount" = "123456789012" }
          ArnEquals    = { "aws:SourceArn" = "arn:aws:scheduler:us-east-1:123456789012:schedule-group/default" }
        }
      }]
    }
    error_message = "only this account's scheduler takes the role"
  }
  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_role_policy.schedule[0].policy).Statement : [s.Action, s.Resource]]) == jsonencode([
      [["states:StartExecution"], ["arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-digits"]],
      [["kms:Decrypt"], ["arn:aws:kms:us-east-1:123456789012:key/platform"]],
    ])
    error_message = "with the role of a schedule the scheduler starts runs, and reads what it encrypted with the platform's key"
  }
  assert {
    condition = jsondecode(aws_iam_role.state_machine.assume_role_policy) == {
      Version = "2012-10-17"
      Statement = [{
        Sid       = "StateMachineOnly"
        Effect    = "Allow"
        Action    = "sts:AssumeRole"
        Principal = { Service = "states.amazonaws.com" }
        Condition = {
          StringEquals = { "aws:SourceAccount" = "123456789012" }
          ArnEquals    = { "aws:SourceArn" = "arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-digits" }
        }
      }]
    }
    error_message = "only this state machine takes the role"
  }
  assert {
    condition     = aws_iam_role.state_machine.path == "/sagefit/" && aws_iam_role.state_machine.tags["sagefit:job"] == "digits" && aws_sfn_state_machine.this.tags["sagefit:platform"] == "dev"
    error_message = "path and tags"
  }
}

run "allowed_files_are_shipped_and_marked" {
  command = plan

  variables {
    code     = { source_dir = "tests/fixtures/sensitive", entry_point = "train.py", allow_sensitive = [".env", "notes.md"] }
    channels = { train = { local_path = "tests/fixtures/sensitive", exclude = ["*.md"], allow_sensitive = [".env"] } }
  }

  assert {
    condition     = jsonencode({ for name, object in aws_s3_object.code : name => object.metadata }) == jsonencode({ ".env" = { sagefit-sensitive = "allowed" }, "notes.md" = { sagefit-sensitive = "allowed" }, "train.py" = null })
    error_message = "code that is allowed is marked for reviews"
  }
  assert {
    condition     = jsonencode({ for name, object in aws_s3_object.input : name => object.metadata }) == jsonencode({ "train/.env" = { sagefit-sensitive = "allowed" }, "train/train.py" = null })
    error_message = "data that is allowed is marked for reviews"
  }
}

run "policies_name_the_arn_of_the_schedules_role" {
  command = plan

  variables {
    schedule = { expression = "rate(1 day)" }
  }

  override_resource {
    target          = aws_iam_role.schedule[0]
    override_during = plan
    values          = { arn = "arn:aws-cn:iam::123456789012:role/sagefit/x" }
  }

  expect_failures = [aws_iam_role.schedule]
}
