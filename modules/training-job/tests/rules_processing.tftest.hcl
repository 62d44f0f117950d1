# One run per rule of the processing steps, named after it.
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
    buckets    = { data = "d", artifacts = "a", checkpoints = "c" }
  }
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

run "environment_is_not_of_sagemaker" {
  command = plan

  variables {
    processing = [{ name = "clean", image = { uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/x:1" }, outputs = ["clean"], environment = { SM_HPS = "{}" }, instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "steps_are_at_most_ten" {
  command = plan

  variables {
    processing = [for i in range(11) : { name = "s${i}", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "names_have_the_form_of_attempts" {
  command = plan

  variables {
    processing = [{ name = "Features", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "names_are_used_once" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large" }, { name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "image_uri_of_a_step_is_not_empty" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "image_is_exactly_one_kind" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1", framework = "sklearn", version = "1.2-1" }, outputs = ["o"], instance_type = "ml.m5.large", code = { source_dir = "tests/fixtures/code", entry_point = "train.py" } }]
  }

  expect_failures = [var.processing]
}

run "repository_needs_tag_or_digest" {
  command = plan

  variables {
    processing = [{ name = "a", image = { repository = "123456789012.dkr.ecr.us-east-1.amazonaws.com/own" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "digest_has_the_form_of_a_digest" {
  command = plan

  variables {
    processing = [{ name = "a", image = { repository = "123456789012.dkr.ecr.us-east-1.amazonaws.com/own", digest = "sha256:1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "own_repository_exists" {
  command = plan

  variables {
    processing = [{ name = "a", image = { repository = "", tag = "1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "framework_runs_a_script" {
  command = plan

  variables {
    processing = [{ name = "a", image = { framework = "sklearn", version = "1.2-1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "arguments_are_short" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [join("", [for i in range(257) : "x"])] } }]
  }

  expect_failures = [var.processing]
}

run "arguments_hold_no_secret" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = ["hf_abcdefghijklmnopqrstuvwx"] } }]
  }

  expect_failures = [var.processing]
}

run "environment_values_are_short" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", environment = { A = join("", [for i in range(257) : "x"]) } }]
  }

  expect_failures = [var.processing]
}

run "inputs_are_at_most_ten" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", code = { source_dir = "tests/fixtures/code", entry_point = "train.py" }, inputs = { for i in range(10) : "i${i}" => { s3_uri = "s3://bucket/x/" } } }]
  }

  expect_failures = [var.processing]
}

run "code_is_the_name_of_the_code" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { code = { s3_uri = "s3://bucket/x/" } } }]
  }

  expect_failures = [var.processing]
}

run "input_is_exactly_one_source" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = {} } }]
  }

  expect_failures = [var.processing]
}

run "input_uri_has_the_form_of_one" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = { s3_uri = "https://bucket/x" } } }]
  }

  expect_failures = [var.processing]
}

run "input_comes_from_an_earlier_step" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = { from = "b/o" } } }, { name = "b", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "manifest_is_read_through_s3" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = { local_path = "tests/fixtures/data", s3_data_type = "ManifestFile" } } }]
  }

  expect_failures = [var.processing]
}

run "there_is_an_output" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = [], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "output_names_are_used_once" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o", "o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [var.processing]
}

run "instance_runs_processing_jobs" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.p4d.24xlarge" }]
  }

  expect_failures = [var.processing]
}

run "platform_allows_the_instance" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.xlarge" }]
    platform = {
      schema                 = 1
      name                   = "dev"
      partition              = "aws"
      region                 = "us-east-1"
      account_id             = "123456789012"
      role_arn               = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
      buckets                = { data = "d", artifacts = "a", checkpoints = "c" }
      allowed_instance_types = ["ml.m5.large"]
    }
  }

  expect_failures = [var.processing]
}

run "numbers_are_within_the_limits" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", max_runtime_seconds = 777601 }]
  }

  expect_failures = [var.processing]
}

run "volume_fits_the_local_disks" {
  command = plan

  variables {
    processing = [{ name = "a", image = { framework = "sklearn", version = "1.2-1" }, outputs = ["o"], instance_type = "ml.g4dn.xlarge", volume_size_gb = 126, code = { source_dir = "tests/fixtures/code", entry_point = "train.py" } }]
  }

  expect_failures = [var.processing]
}

run "channel_comes_from_a_step" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
    channels   = { train = { from = "a/other" } }
  }

  expect_failures = [var.channels]
}

run "image_is_in_the_table" {
  command = plan

  variables {
    processing = [{ name = "a", image = { framework = "spark", version = "9.9" }, outputs = ["o"], instance_type = "ml.m5.large", code = { source_dir = "tests/fixtures/code", entry_point = "train.py" } }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_is_in_the_region_of_the_platform" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "123456789012.dkr.ecr.eu-west-3.amazonaws.com/team/prepare:1" }, outputs = ["o"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_is_published_in_the_region" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "us-iso-east-1" }
  }

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "123456789012", arn = "arn:aws-iso:iam::123456789012:root" }
  }

  variables {
    processing = [{ name = "a", image = { framework = "spark", version = "3.5" }, outputs = ["o"], instance_type = "ml.m5.large", code = { source_dir = "tests/fixtures/code", entry_point = "train.py" } }]
    image      = { uri = "x/y:1" }
    platform = {
      schema     = 1
      name       = "dev"
      partition  = "aws-iso"
      region     = "us-iso-east-1"
      account_id = "123456789012"
      role_arn   = "arn:aws-iso:iam::123456789012:role/sagefit-dev-execution"
      buckets    = { data = "d", artifacts = "a", checkpoints = "c" }
    }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_is_built_for_the_instance" {
  command = plan

  variables {
    processing = [{ name = "a", image = { framework = "spark", version = "3.5" }, outputs = ["o"], instance_type = "ml.g4dn.xlarge", code = { source_dir = "tests/fixtures/code", entry_point = "train.py" } }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "entry_point_exists" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", code = { source_dir = "tests/fixtures/code", entry_point = "other.py" } }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "local_input_exists" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = { local_path = "tests/fixtures/nothing" } } }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "local_input_is_small" {
  command = plan

  variables {
    processing = [{ name = "a", image = { uri = "x/y:1" }, outputs = ["o"], instance_type = "ml.m5.large", inputs = { raw = { local_path = "tests/fixtures/many" } } }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}
