# One run per rule of image, code and channels, named after it.
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

run "image_is_exactly_one_kind" {
  command = plan

  variables {
    image = { framework = "sklearn", version = "1.2-1", uri = "x.dkr.ecr.us-east-1.amazonaws.com/y:1" }
  }

  expect_failures = [var.image]
}

run "image_is_given" {
  command = plan

  variables {
    image = {}
  }

  expect_failures = [var.image]
}

run "repository_needs_tag_or_digest" {
  command = plan

  variables {
    image = { repository = "" }
  }

  expect_failures = [var.image]
}

run "repository_takes_tag_or_digest_not_both" {
  command = plan

  variables {
    image = { repository = "", tag = "1", digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000" }
  }

  expect_failures = [var.image]
}

run "own_repository_must_exist" {
  command = plan

  variables {
    image    = { repository = "", tag = "1" }
    platform = merge(var.platform, { repository_url = null })
  }

  expect_failures = [var.image]
}

run "tag_belongs_to_a_repository" {
  command = plan

  variables {
    image = { uri = "x.dkr.ecr.us-east-1.amazonaws.com/y:1", tag = "1" }
  }

  expect_failures = [var.image]
}

run "digest_pattern" {
  command = plan

  variables {
    image = { repository = "", digest = "sha256:12" }
  }

  expect_failures = [var.image]
}

run "framework_is_known" {
  command = plan

  variables {
    image = { framework = "pytorhc", version = "2.6" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "framework_version_is_known" {
  command = plan

  variables {
    image = { framework = "pytorch", version = "9.9" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "framework_python_version_is_known" {
  command = plan

  variables {
    image = { framework = "pytorch", version = "2.6", python_version = "py27" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_is_published_in_the_region" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "xx-nowhere-1" }
  }

  variables {
    image    = { framework = "sklearn", version = "1.2-1" }
    platform = merge(var.platform, { region = "xx-nowhere-1" })
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_is_in_the_region_of_the_platform" {
  command = plan

  variables {
    image = { uri = "123456789012.dkr.ecr.eu-west-3.amazonaws.com/team/train:1" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "repository_is_in_the_region_of_the_platform" {
  command = plan

  variables {
    image = { repository = "123456789012.dkr.ecr-fips.us-west-2.amazonaws.com/team/train", tag = "1" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "an_image_of_the_region_may_be_anybodys" {
  command = plan

  variables {
    image = { uri = "210987654321.dkr.ecr.us-east-1.amazonaws.com/team/train:1" }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == var.image.uri
    error_message = "an image of another account is taken as it is"
  }
}

run "algorithm_is_known" {
  command = plan

  variables {
    code  = null
    image = { algorithm = "k-means" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "xgboost_version_is_pinned" {
  command = plan

  variables {
    code  = null
    image = { algorithm = "xgboost", version = "1" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "xgboost_uri_is_pinned" {
  command = plan

  variables {
    code  = null
    image = { uri = "811284229777.dkr.ecr.us-east-1.amazonaws.com/xgboost:latest" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_uri_length" {
  command = plan

  variables {
    image = { uri = format("%0256d", 1) }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_uri_is_not_empty" {
  command = plan

  variables {
    image = { uri = "" }
  }

  expect_failures = [var.image]
}

run "image_uri_digest" {
  command = plan

  variables {
    image = { uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train@sha256:12" }
  }

  expect_failures = [var.image]
}

run "image_uri_has_a_tag_or_a_digest" {
  command = plan

  variables {
    image = { uri = format("registry.example.com:5000/train:7@sha256:%s", sha256("train")) }
  }

  expect_failures = [var.image]
}

run "versions_choose_among_images_of_aws" {
  command = plan

  variables {
    image = { repository = "", tag = "1", version = "2.6" }
  }

  expect_failures = [var.image]
}

run "image_tag_pattern" {
  command = plan

  variables {
    image = { repository = "", tag = "release:1" }
  }

  expect_failures = [var.image]
}

run "image_version_is_published_in_the_region" {
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
    image    = { framework = "pytorch", version = "2.8" }
    platform = merge(var.platform, { region = "us-iso-east-1", partition = "aws-iso" })
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "image_has_a_python_for_the_launcher" {
  command = plan

  variables {
    image = { framework = "mxnet", version = "1.8" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "a_tag_that_hides_an_old_python" {
  command = plan

  variables {
    image = { framework = "sklearn", version = "0.23-1" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "algorithm_arn_pattern" {
  command = plan

  variables {
    code  = null
    image = { algorithm_arn = "arn:aws:sagemaker:us-east-1:123456789012:model/x" }
  }

  expect_failures = [var.image]
}

run "trainium_needs_an_image_uri" {
  command = plan

  variables {
    image    = { framework = "pytorch", version = "2.6" }
    attempts = [{ name = "first", instance_type = "ml.trn1.2xlarge" }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "framework_runs_on_the_instance" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.g5.xlarge" }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "isolated_code_has_no_packages_to_install" {
  command = plan

  variables {
    code      = { source_dir = "tests/fixtures/packaged", entry_point = "train.py" }
    resources = { network_isolation = true }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "sharded_data_has_a_file_for_each_instance" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/data", distribution = "ShardedByS3Key" } }
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 2 }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "source_dir_exists" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/nothing", entry_point = "train.py" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "entry_point_exists" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "main.py" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "entry_point_is_not_excluded" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", exclude = ["*.py"] }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "files_like_secrets_are_not_shipped_as_code" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/sensitive", entry_point = "train.py", exclude = ["notes.md"] }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "text_with_a_token_is_not_shipped_as_code" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/sensitive", entry_point = "train.py", exclude = [".env"] }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "files_like_secrets_are_not_shipped_as_data" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/sensitive" } }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "a_single_file_is_no_secret_either" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/sensitive/.env" } }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "steps_ship_no_secrets" {
  command = plan

  variables {
    processing = [{ name = "clean", image = { framework = "sklearn", version = "1.2-1" }, code = { source_dir = "tests/fixtures/sensitive", entry_point = "train.py" }, outputs = ["clean"], instance_type = "ml.m5.large" }]
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "what_is_allowed_is_shipped" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", allow_sensitive = [".env"] }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "container_takes_100_arguments" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [for i in range(97) : "x"] }
  }

  expect_failures = [var.code]
}

run "isolated_container_takes_one_argument_less" {
  command = plan

  variables {
    resources = { network_isolation = true }
    code      = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [for i in range(96) : "x"] }
  }

  expect_failures = [var.code]
}

run "container_argument_length" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [format("%0257d", 1)] }
  }

  expect_failures = [var.code]
}

run "algorithm_resource_takes_no_code" {
  command = plan

  variables {
    image = { algorithm_arn = "arn:aws:sagemaker:us-east-1:123456789012:algorithm/x" }
  }

  expect_failures = [var.code]
}

run "built_in_algorithm_takes_no_code" {
  command = plan

  variables {
    image = { algorithm = "kmeans" }
  }

  expect_failures = [var.code]
}

run "at_most_20_channels" {
  command = plan

  variables {
    channels = { for i in range(19) : "c${i}" => { s3_uri = "s3://bucket/c${i}/" } }
  }

  expect_failures = [var.channels]
}

run "channel_name_pattern" {
  command = plan

  variables {
    channels = { "a b" = { s3_uri = "s3://bucket/train/" } }
  }

  expect_failures = [var.channels]
}

run "channel_name_code_is_taken" {
  command = plan

  variables {
    channels = { code = { s3_uri = "s3://bucket/train/" } }
  }

  expect_failures = [var.channels]
}

run "channel_name_sagefit_is_taken" {
  command = plan

  variables {
    channels = { sagefit = { s3_uri = "s3://bucket/train/" } }
  }

  expect_failures = [var.channels]
}

run "channel_has_one_source" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", local_path = "tests/fixtures/data" } }
  }

  expect_failures = [var.channels]
}

run "channel_has_a_source" {
  command = plan

  variables {
    channels = { train = {} }
  }

  expect_failures = [var.channels]
}

run "s3_uri_pattern" {
  command = plan

  variables {
    channels = { train = { s3_uri = "bucket/train" } }
  }

  expect_failures = [var.channels]
}

run "s3_uri_length" {
  command = plan

  variables {
    channels = { train = { s3_uri = join("", ["s3://bucket/", format("%01024d", 1)]) } }
  }

  expect_failures = [var.channels]
}

run "local_path_exists" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/nothing" } }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "mode_is_known" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", mode = "Stream" } }
  }

  expect_failures = [var.channels]
}

run "s3_data_type_is_known" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", s3_data_type = "Prefix" } }
  }

  expect_failures = [var.channels]
}

run "distribution_is_known" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", distribution = "Sharded" } }
  }

  expect_failures = [var.channels]
}

run "compression_is_known" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", mode = "Pipe", compression = "Zip" } }
  }

  expect_failures = [var.channels]
}

run "record_wrapper_is_known" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", mode = "Pipe", record_wrapper = "Avro" } }
  }

  expect_failures = [var.channels]
}

run "local_path_is_no_manifest" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/data", s3_data_type = "ManifestFile" } }
  }

  expect_failures = [var.channels]
}

run "augmented_manifest_needs_pipe_mode" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", s3_data_type = "AugmentedManifestFile", attribute_names = ["source-ref"] } }
  }

  expect_failures = [var.channels]
}

run "augmented_manifest_needs_attribute_names" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", s3_data_type = "AugmentedManifestFile", mode = "Pipe" } }
  }

  expect_failures = [var.channels]
}

run "attribute_names_need_an_augmented_manifest" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", attribute_names = ["source-ref"] } }
  }

  expect_failures = [var.channels]
}

run "at_most_16_attribute_names" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", s3_data_type = "AugmentedManifestFile", mode = "Pipe", attribute_names = [for i in range(17) : "a${i}"] } }
  }

  expect_failures = [var.channels]
}

run "fast_file_takes_prefixes_only" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", mode = "FastFile", s3_data_type = "ManifestFile" } }
  }

  expect_failures = [var.channels]
}

run "fast_file_takes_whole_folders" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train", mode = "FastFile" } }
  }

  expect_failures = [var.channels]
}

run "fast_file_of_the_job_counts_too" {
  command = plan

  variables {
    resources = { input_mode = "FastFile" }
    channels  = { train = { s3_uri = "s3://bucket/train" } }
  }

  expect_failures = [var.channels]
}

run "file_system_works_in_file_mode_only" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    channels  = { train = { file_system = { id = "fs-0123456789abcdef0", type = "EFS", directory_path = "/train", access_mode = "ro" }, mode = "FastFile" } }
  }

  expect_failures = [var.channels]
}

run "file_system_needs_a_vpc" {
  command = plan

  variables {
    channels = { train = { file_system = { id = "fs-0123456789abcdef0", type = "EFS", directory_path = "/train", access_mode = "ro" } } }
  }

  expect_failures = [var.channels]
}

run "file_system_id_pattern" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    channels  = { train = { file_system = { id = "efs-1", type = "EFS", directory_path = "/train", access_mode = "ro" } } }
  }

  expect_failures = [var.channels]
}

run "file_system_type_is_known" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    channels  = { train = { file_system = { id = "fs-0123456789abcdef0", type = "NFS", directory_path = "/train", access_mode = "ro" } } }
  }

  expect_failures = [var.channels]
}

run "file_system_access_mode_is_known" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    channels  = { train = { file_system = { id = "fs-0123456789abcdef0", type = "EFS", directory_path = "/train", access_mode = "r" } } }
  }

  expect_failures = [var.channels]
}

run "file_system_path_is_absolute" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    channels  = { train = { file_system = { id = "fs-0123456789abcdef0", type = "EFS", directory_path = "train", access_mode = "ro" } } }
  }

  expect_failures = [var.channels]
}

run "gzip_needs_pipe_mode" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", compression = "Gzip" } }
  }

  expect_failures = [var.channels]
}

run "record_io_needs_pipe_mode" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", record_wrapper = "RecordIO" } }
  }

  expect_failures = [var.channels]
}

run "content_type_length" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", content_type = format("%0257d", 1) } }
  }

  expect_failures = [var.channels]
}

run "shuffle_seed_is_whole" {
  command = plan

  variables {
    channels = { train = { s3_uri = "s3://bucket/train/", shuffle_seed = 0.5 } }
  }

  expect_failures = [var.channels]
}

run "argument_holds_no_token" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [join("", ["--token=hf_", format("%034d", 1)])] }
  }

  expect_failures = [var.code]
}

run "argument_is_not_empty" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [""] }
  }

  expect_failures = [var.code]
}

run "at_most_1000_files_of_code" {
  command = plan

  variables {
    # Made by the Python tests, because nobody wants to keep them.
    code = { source_dir = "tests/fixtures/many", entry_point = "0.py" }
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "at_most_1000_local_files" {
  command = plan

  variables {
    # Made by the Python tests, because nobody wants to keep them.
    channels = { train = { local_path = "tests/fixtures/many" } }
  }

  expect_failures = [aws_sfn_state_machine.this]
}
