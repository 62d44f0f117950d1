# Instance groups: the request of a job with several types, and one run per rule.
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
  image = { framework = "pytorch", version = "2.6" }
  code  = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  attempts = [{
    name = "first"
    instance_groups = [
      { name = "gpu", instance_type = "ml.g5.xlarge" },
      { name = "cpu", instance_type = "ml.c5.4xlarge", instance_count = 2 },
    ]
  }]
}

run "groups_reach_the_request" {
  command = plan

  variables {
    channels = {
      images = { s3_uri = "s3://data/images/", instance_groups = ["cpu"], distribution = "ShardedByS3Key" }
      train  = { s3_uri = "s3://data/train/" }
    }
  }

  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.ResourceConfig) == jsonencode({
      InstanceGroups = [
        { InstanceGroupName = "gpu", InstanceType = "ml.g5.xlarge", InstanceCount = 1 },
        { InstanceGroupName = "cpu", InstanceType = "ml.c5.4xlarge", InstanceCount = 2 },
      ]
      VolumeSizeInGB = 30
    })
    error_message = "groups stand in place of a type and a count"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.InputDataConfig[0].DataSource.S3DataSource.InstanceGroupNames == tolist(["cpu"])
    error_message = "a channel goes to the groups it names"
  }
  assert {
    condition     = alltrue([for n in [1, 2, 3] : jsonencode(output.definition.States["first: submit"].Parameters.InputDataConfig[n].DataSource.S3DataSource.InstanceGroupNames) == jsonencode(["gpu", "cpu"])])
    error_message = "where one channel names groups, all others name all groups, code and launcher too"
  }
  assert {
    condition     = strcontains(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage, "-gpu-")
    error_message = "one image serves all groups, and it has to be the one for GPUs"
  }
  assert {
    condition     = output.definition.States["first: submit"].Comment == "1 x ml.g5.xlarge + 2 x ml.c5.4xlarge"
    error_message = "the graph names all groups"
  }
  assert {
    condition = anytrue([
      for s in output.state_machine_policy.Statement : jsonencode(try(s.Condition["ForAllValues:StringEquals"]["sagemaker:InstanceTypes"], [])) == jsonencode(["ml.g5.xlarge", "ml.c5.4xlarge"])
    ])
    error_message = "the role may create on the types of all groups"
  }
  assert {
    condition     = length([for s in output.state_machine_policy.Statement : s if can(s.Condition.Null["sagemaker:InstanceTypes"])]) == 0
    error_message = "a request with groups need not have the key"
  }
}

run "a_type_or_groups" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_groups = [
      { name = "gpu", instance_type = "ml.g5.xlarge" },
      { name = "cpu", instance_type = "ml.c5.4xlarge", instance_count = 2 },
    ] }]
  }

  expect_failures = [var.attempts]
}

run "neither_a_type_nor_groups" {
  command = plan

  variables {
    attempts = [{ name = "first" }]
  }

  expect_failures = [var.attempts]
}

run "at_most_five_groups" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_groups = [for i in range(6) : { name = "g${i}", instance_type = "ml.m5.large" }] }]
  }

  expect_failures = [var.attempts]
}

run "group_names_are_used_once" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_groups = [for i in range(2) : { name = "same", instance_type = "ml.m5.large" }] }]
  }

  expect_failures = [var.attempts]
}

run "groups_are_not_kept_warm" {
  command = plan

  variables {
    attempts = [{ name = "first", keep_alive_seconds = 600, instance_groups = [
      { name = "gpu", instance_type = "ml.g5.xlarge" },
      { name = "cpu", instance_type = "ml.c5.4xlarge", instance_count = 2 },
    ] }]
  }

  expect_failures = [var.attempts]
}

run "groups_have_known_types" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_groups = [{ name = "a", instance_type = "ml.none.large" }] }]
  }

  expect_failures = [var.attempts]
}

run "groups_count_against_the_quota_together" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_groups = [for i in range(3) : { name = "g${i}", instance_type = "ml.m5.large", instance_count = 7 }] }]
  }

  expect_failures = [var.attempts]
}

run "a_search_has_no_groups" {
  command = plan

  variables {
    metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
    tuning             = { objective = { metric = "accuracy", type = "Maximize" }, max_jobs = 2, ranges = { depth = { min = 1, max = 2, type = "Integer" } } }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "a_channel_names_a_known_group" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://data/train/", instance_groups = ["other"] } }
  }

  expect_failures = [var.channels]
}

run "a_channel_names_a_group_once" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://data/train/", instance_groups = ["cpu", "cpu"] } }
  }

  expect_failures = [var.channels]
}

run "channels_name_groups_or_none_does" {
  command = plan

  variables {
    platform = {
      schema     = 1
      name       = "dev"
      partition  = "aws"
      region     = "us-east-1"
      account_id = "123456789012"
      role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
      buckets    = { data = "company-data", artifacts = "company-artifacts", checkpoints = "company-checkpoints" }
      network    = { subnet_ids = ["subnet-0a1b2c3d"], security_group_ids = ["sg-0a1b2c3d"] }
    }
    channels = {
      images = { s3_uri = "s3://data/images/", instance_groups = ["cpu"] }
      train  = { file_system = { id = "fs-01234567", type = "EFS", directory_path = "/train" } }
    }
  }

  expect_failures = [var.channels]
}

run "no_channel_names_groups_where_none_has_to" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://data/train/" } }
  }

  assert {
    condition     = alltrue([for c in output.definition.States["first: submit"].Parameters.InputDataConfig : !contains(keys(c.DataSource.S3DataSource), "InstanceGroupNames")])
    error_message = "all groups get what is for nobody in particular"
  }
}
