# Every optional block of a training job, read from the decoded definition.
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

run "an_isolated_job_may_bring_its_packages" {
  command = plan

  variables {
    code      = { source_dir = "tests/fixtures/packaged", entry_point = "train.py", offline_requirements = true }
    resources = { network_isolation = true }
  }

  assert {
    condition     = contains(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.ContainerArguments, "--isolated")
    error_message = "the launcher installs from what is there"
  }
}

run "a_minimal_job_asks_for_nothing_optional" {
  command = plan

  assert {
    condition = sort(keys(output.definition.States["first: submit"].Parameters)) == sort([
      "AlgorithmSpecification", "CheckpointConfig", "Environment", "InputDataConfig", "OutputDataConfig", "ProfilerConfig", "ResourceConfig",
      "RoleArn", "StoppingCondition", "Tags", "TrainingJobName.$",
    ])
    error_message = "absent optional blocks must be absent from the request"
  }
  assert {
    condition     = !strcontains(jsonencode(output.definition.States["first: submit"].Parameters), "null")
    error_message = "a request holds no nulls"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters["TrainingJobName.$"] == "States.Format('{}-0{}', $$.Execution.Name, $.repeat.letter)"
    error_message = "a training job is named after its run and its attempt"
  }
  assert {
    condition     = jsondecode(aws_sfn_state_machine.this.definition) == jsondecode(jsonencode(output.definition))
    error_message = "the state machine runs the definition that the module shows"
  }
}

run "a_script_runs_under_the_launcher" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = ["--fast", "a b"] }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.ContainerEntrypoint[0] == "python3"
    error_message = "the launcher is a Python program"
  }
  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.ContainerArguments) == jsonencode([
      "/opt/ml/input/data/sagefit/launcher.pyz", "--entry-point", "train.py", "--", "--fast", "a b",
    ])
    error_message = "the launcher gets the entry point, then the script's own arguments"
  }
  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Parameters.Environment) == jsonencode({ SAGEFIT_ATTEMPT = "first" })
    error_message = "the attempt's name can be read back from its training job"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.InputDataConfig[*].ChannelName == ["code", "sagefit"]
    error_message = "code and launcher are channels"
  }
  assert {
    condition     = [for m in output.definition.States["first: submit"].Parameters.AlgorithmSpecification.MetricDefinitions : m.Name] == ["sagefit:host_memory_peak_gib", "sagefit:host_memory_percent", "sagefit:gpu_memory_percent", "sagefit:unsaved_seconds"]
    error_message = "the launcher's metrics are always read"
  }
  # A regular expression must find the line that the launcher prints.
  assert {
    condition = [
      for m in output.definition.States["first: submit"].Parameters.AlgorithmSpecification.MetricDefinitions :
      regex(m.Regex, "[sagefit] host_memory_gib=0.431 host_memory_peak_gib=0.502 host_memory_percent=84.2 gpu_memory_percent=7 unsaved_seconds=12.5")[0]
    ] == ["0.502", "84.2", "7", "12.5"]
    error_message = "each metric reads its own number"
  }
}

run "the_launcher_knows_of_isolation" {
  command = plan

  variables {
    resources = { network_isolation = true }
    code      = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [for i in range(95) : "x"] }
  }

  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.ContainerArguments) == jsonencode(concat(
      ["/opt/ml/input/data/sagefit/launcher.pyz", "--entry-point", "train.py", "--isolated", "--"],
      [for i in range(95) : "x"],
    ))
    error_message = "the flag is the launcher's, and 95 arguments are left to the script"
  }
}

run "the_launcher_knows_of_the_platforms_isolation" {
  command = plan

  variables {
    platform = merge(var.platform, { network = { isolation = true } })
  }

  assert {
    condition     = contains(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.ContainerArguments, "--isolated")
    error_message = "the platform isolates its jobs"
  }
}

run "code_is_shipped_file_by_file" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", exclude = ["*.md"] }
  }

  assert {
    condition     = keys(aws_s3_object.code) == ["package/__init__.py", "train.py"]
    error_message = "excluded files stay behind, the others keep their paths"
  }
  assert {
    condition     = aws_s3_object.code["train.py"].key == "jobs/digits/code/${output.code_digest}/train.py"
    error_message = "the digest of the code is part of the key"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.InputDataConfig[0].DataSource.S3DataSource.S3Uri == "s3://sagefit-dev-123456789012-us-east-1-data/jobs/digits/code/${output.code_digest}/"
    error_message = "the channel reads the digest's own prefix"
  }
  assert {
    condition     = jsonencode(keys(aws_s3_object.launcher)) == jsonencode(["launcher.pyz"])
    error_message = "the launcher is one object"
  }
}

run "a_built_in_algorithm_runs_alone" {
  command = plan

  variables {
    code            = null
    image           = { algorithm = "xgboost", version = "1.7-1" }
    channels        = { train = { s3_uri = "s3://bucket/train/", content_type = "text/csv" } }
    hyperparameters = { num_round = "10" }
  }

  assert {
    condition     = keys(output.definition.States["first: submit"].Parameters.AlgorithmSpecification) == ["TrainingImage", "TrainingInputMode"]
    error_message = "no launcher, no metrics"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"
    error_message = "XGBoost comes from its own registry"
  }
  assert {
    condition     = length(aws_s3_object.code) + length(aws_s3_object.launcher) == 0
    error_message = "nothing is shipped"
  }
  assert {
    condition     = output.code_digest == null
    error_message = "no code, no digest"
  }
}

run "a_script_on_the_image_of_an_algorithm_sends_no_metrics" {
  command = plan

  variables {
    image = { framework = "xgboost", version = "1.7-1" }
  }

  assert {
    condition     = !contains(keys(output.definition.States["first: submit"].Parameters.AlgorithmSpecification), "MetricDefinitions")
    error_message = "SageMaker would refuse the request"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.ContainerEntrypoint == ["python3"]
    error_message = "the script runs"
  }
}

run "an_image_of_ones_own_with_the_name_of_an_algorithm_sends_metrics" {
  command = plan

  variables {
    image              = { uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1" }
    metric_definitions = [{ name = "x", regex = "x=(.)" }]
  }

  assert {
    condition     = length(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.MetricDefinitions) == 5
    error_message = "the registry is not SageMaker's"
  }
}

run "an_algorithm_resource_replaces_the_image" {
  command = plan

  variables {
    code  = null
    image = { algorithm_arn = "arn:aws:sagemaker:us-east-1:123456789012:algorithm/forest" }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.AlgorithmName == "arn:aws:sagemaker:us-east-1:123456789012:algorithm/forest"
    error_message = "AlgorithmName is set"
  }
  assert {
    condition     = !contains(keys(output.definition.States["first: submit"].Parameters.AlgorithmSpecification), "TrainingImage")
    error_message = "TrainingImage is not"
  }
}

run "the_instance_chooses_between_cpu_and_gpu_image" {
  command = plan

  variables {
    image = { framework = "pytorch", version = "2.6" }
    attempts = [
      { name = "first", instance_type = "ml.m5.large" },
      { name = "second", instance_type = "ml.g5.xlarge" },
    ]
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.6.0-cpu-py312"
    error_message = "a CPU instance gets the CPU image"
  }
  assert {
    condition     = output.definition.States["second: submit"].Parameters.AlgorithmSpecification.TrainingImage == "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.6.0-gpu-py312"
    error_message = "a GPU instance gets the GPU image"
  }
}

run "images_of_other_partitions_have_their_own_hosts" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "cn-north-1" }
  }

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "123456789012", arn = "arn:aws-cn:iam::123456789012:root" }
  }

  variables {
    platform = merge(var.platform, { region = "cn-north-1", partition = "aws-cn", role_arn = "arn:aws-cn:iam::123456789012:role/x" })
    image    = { framework = "tensorflow", version = "2.16" }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/tensorflow-training:2.16.2-cpu-py310"
    error_message = "China has its own account and suffix"
  }
  assert {
    condition     = output.definition.States["first: submit"].Resource == "arn:aws-cn:states:::aws-sdk:sagemaker:createTrainingJob"
    error_message = "the task lives in the partition"
  }
}

run "hugging_face_images_name_both_versions" {
  command = plan

  variables {
    image    = { framework = "huggingface", version = "4.49" }
    attempts = [{ name = "first", instance_type = "ml.g5.xlarge" }]
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:2.5.1-transformers4.49.0-gpu-py311-cu124-ubuntu22.04"
    error_message = "the tag holds framework, library, Python and CUDA"
  }
}

run "an_own_image_comes_from_the_platform_repository" {
  command = plan

  variables {
    image = { repository = "", tag = "v3" }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "123456789012.dkr.ecr.us-east-1.amazonaws.com/sagefit-dev:v3"
    error_message = "\"\" is the platform's repository"
  }
}

run "an_image_can_be_pinned_by_digest" {
  command = plan

  variables {
    image = {
      repository = "123456789012.dkr.ecr.us-east-1.amazonaws.com/other"
      digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "123456789012.dkr.ecr.us-east-1.amazonaws.com/other@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    error_message = "repository@digest"
  }
}

run "an_image_uri_is_taken_as_it_is" {
  command = plan

  variables {
    image    = { uri = "registry.example.com/team/train:7" }
    attempts = [{ name = "first", instance_type = "ml.trn1.2xlarge" }]
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingImage == "registry.example.com/team/train:7"
    error_message = "uri is used for every attempt, on any instance"
  }
}

run "channels_express_all_of_s3" {
  command = plan

  variables {
    channels = {
      augmented = { s3_uri = "s3://bucket/train.manifest", s3_data_type = "AugmentedManifestFile", attribute_names = ["source-ref", "label"], mode = "Pipe", record_wrapper = "RecordIO", shuffle_seed = 7 }
      manifest  = { s3_uri = "s3://bucket/list.manifest", s3_data_type = "ManifestFile" }
      packed    = { s3_uri = "s3://bucket/packed/", mode = "Pipe", compression = "Gzip", content_type = "text/csv" }
      sharded   = { s3_uri = "s3://bucket/shards/", mode = "FastFile", distribution = "ShardedByS3Key" }
    }
  }

  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.InputDataConfig[0]) == jsonencode({
      ChannelName       = "augmented"
      InputMode         = "Pipe"
      RecordWrapperType = "RecordIO"
      ShuffleConfig     = { Seed = 7 }
      DataSource = { S3DataSource = {
        AttributeNames         = ["source-ref", "label"]
        S3DataType             = "AugmentedManifestFile"
        S3DataDistributionType = "FullyReplicated"
        S3Uri                  = "s3://bucket/train.manifest"
      } }
    })
    error_message = "augmented manifest"
  }
  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.InputDataConfig[1]) == jsonencode({
      ChannelName = "manifest"
      DataSource = { S3DataSource = {
        S3DataType             = "ManifestFile"
        S3DataDistributionType = "FullyReplicated"
        S3Uri                  = "s3://bucket/list.manifest"
      } }
    })
    error_message = "manifest"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.InputDataConfig[2].CompressionType == "Gzip" && output.definition.States["first: submit"].Parameters.InputDataConfig[2].ContentType == "text/csv"
    error_message = "compression and content type"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.InputDataConfig[3].DataSource.S3DataSource.S3DataDistributionType == "ShardedByS3Key"
    error_message = "distribution"
  }
}

run "a_local_directory_becomes_a_channel" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/data" } }
  }

  assert {
    condition     = keys(aws_s3_object.input) == ["train/rows.csv"]
    error_message = "each file is an object of the plan"
  }
  assert {
    condition     = "s3://sagefit-dev-123456789012-us-east-1-data/${aws_s3_object.input["train/rows.csv"].key}" == "${output.definition.States["first: submit"].Parameters.InputDataConfig[0].DataSource.S3DataSource.S3Uri}rows.csv"
    error_message = "the channel reads the prefix of its files"
  }
}

run "what_is_excluded_of_a_local_directory_stays_behind" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/code", exclude = ["*.md", "package/**"] } }
    processing = [{
      name          = "clean"
      image         = { uri = "x/y:1" }
      inputs        = { raw = { local_path = "tests/fixtures/code", exclude = ["**/*.py"] } }
      outputs       = ["clean"]
      instance_type = "ml.m5.large"
    }]
  }

  assert {
    condition     = keys(aws_s3_object.input) == ["clean:raw/notes.md", "train/train.py"]
    error_message = "of channels and of the inputs of steps"
  }
}

run "a_local_file_becomes_a_channel" {
  command = plan

  variables {
    channels = { train = { local_path = "tests/fixtures/data/rows.csv" } }
  }

  assert {
    condition     = keys(aws_s3_object.input) == ["train/rows.csv"]
    error_message = "the file keeps its name"
  }
}

run "a_file_system_is_mounted_in_a_vpc" {
  command = plan

  variables {
    resources = { subnet_ids = ["subnet-1", "subnet-2"], security_group_ids = ["sg-1"] }
    channels  = { train = { file_system = { id = "fs-0123456789abcdef0", type = "FSxLustre", directory_path = "/fsx/train" } } }
  }

  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.InputDataConfig[0].DataSource) == jsonencode({ FileSystemDataSource = {
      FileSystemId         = "fs-0123456789abcdef0"
      FileSystemType       = "FSxLustre"
      FileSystemAccessMode = "ro"
      DirectoryPath        = "/fsx/train"
    } })
    error_message = "the file system is the only source, read-only"
  }
  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Parameters.VpcConfig) == jsonencode({ Subnets = ["subnet-1", "subnet-2"], SecurityGroupIds = ["sg-1"] })
    error_message = "the job runs in the VPC"
  }
}

run "resources_reach_the_request" {
  command = plan

  variables {
    resources = {
      volume_size_gb                  = 80
      input_mode                      = "FastFile"
      network_isolation               = true
      encrypt_inter_container_traffic = true
      checkpoint_local_path           = "/opt/ml/ckpt"
      volume_kms_key_arn              = "arn:aws:kms:us-east-1:123456789012:key/volume"
      output_kms_key_arn              = "arn:aws:kms:us-east-1:123456789012:key/output"
      output_s3_uri                   = "s3://models/digits"
      output_compression              = "NONE"
      retry_attempts                  = 3
      remote_debug                    = false
    }
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 2, max_pending_seconds = null }]
  }

  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.ResourceConfig) == jsonencode({
      InstanceCount  = 2
      InstanceType   = "ml.m5.large"
      VolumeSizeInGB = 80
      VolumeKmsKeyId = "arn:aws:kms:us-east-1:123456789012:key/volume"
    })
    error_message = "hardware and disk"
  }
  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.OutputDataConfig) == jsonencode({
      S3OutputPath    = "s3://models/digits"
      CompressionType = "NONE"
      KmsKeyId        = "arn:aws:kms:us-east-1:123456789012:key/output"
    })
    error_message = "output"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.AlgorithmSpecification.TrainingInputMode == "FastFile"
    error_message = "input mode"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.EnableNetworkIsolation && output.definition.States["first: submit"].Parameters.EnableInterContainerTrafficEncryption
    error_message = "isolation and encryption"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.RetryStrategy.MaximumRetryAttempts == 3
    error_message = "retry strategy"
  }
  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.CheckpointConfig) == jsonencode({
      "S3Uri.$" = "States.Format('s3://sagefit-dev-123456789012-us-east-1-checkpoints/jobs/digits/{}/', $$.Execution.Name)"
      LocalPath = "/opt/ml/ckpt"
    })
    error_message = "all attempts of a run share one checkpoint folder"
  }
}

run "checkpoints_can_be_turned_off" {
  command = plan

  variables {
    resources = { checkpoints = false }
  }

  assert {
    condition     = !contains(keys(output.definition.States["first: submit"].Parameters), "CheckpointConfig")
    error_message = "no checkpoint folder"
  }
}

run "remote_debug_reaches_the_request" {
  command = plan

  variables {
    resources = { remote_debug = true }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.RemoteDebugConfig.EnableRemoteDebug
    error_message = "remote debug"
  }
}

run "the_profiler_is_off_unless_asked_for" {
  command = plan

  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Parameters.ProfilerConfig) == jsonencode({ DisableProfiler = true })
    error_message = "SageMaker's default does not decide"
  }
}

run "a_profiler_that_is_asked_for_is_left_to_aws" {
  command = plan

  variables {
    resources = { profiler = true }
  }

  assert {
    condition     = !contains(keys(output.definition.States["first: submit"].Parameters), "ProfilerConfig")
    error_message = "nothing is sent"
  }
}

run "the_platform_sets_network_and_key" {
  command = plan

  variables {
    platform = merge(var.platform, {
      kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/platform"
      network     = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"], isolation = true }
    })
    attempts = [
      { name = "first", instance_type = "ml.m5.large" },
      { name = "second", instance_type = "ml.g5.xlarge" },
    ]
    image = { uri = "registry.example.com/team/train:7" }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.VpcConfig.Subnets == tolist(["subnet-1"]) && output.definition.States["first: submit"].Parameters.EnableNetworkIsolation
    error_message = "the platform's network"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.ResourceConfig.VolumeKmsKeyId == "arn:aws:kms:us-east-1:123456789012:key/platform"
    error_message = "the platform's key encrypts the volume"
  }
  assert {
    condition     = !contains(keys(output.definition.States["second: submit"].Parameters.ResourceConfig), "VolumeKmsKeyId")
    error_message = "local disks take no key"
  }
  assert {
    condition     = output.definition.States["second: submit"].Parameters.OutputDataConfig.KmsKeyId == "arn:aws:kms:us-east-1:123456789012:key/platform"
    error_message = "the platform's key encrypts the output"
  }
  assert {
    condition     = aws_cloudwatch_log_group.runs.kms_key_id == "arn:aws:kms:us-east-1:123456789012:key/platform"
    error_message = "the platform's key encrypts the log"
  }
}

run "a_job_may_leave_the_platform_vpc" {
  command = plan

  variables {
    platform  = merge(var.platform, { network = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] } })
    resources = { subnet_ids = [], security_group_ids = [] }
  }

  assert {
    condition     = !contains(keys(output.definition.States["first: submit"].Parameters), "VpcConfig")
    error_message = "empty lists mean no VPC"
  }
}

run "an_attempt_overrides_the_job" {
  command = plan

  variables {
    hyperparameters    = { epochs = "3", cache = "true" }
    environment        = { LEVEL = "info" }
    metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
    attempts = [{
      name                = "first"
      instance_type       = "ml.m5.large"
      hyperparameters     = { cache = "false" }
      environment         = { THREADS = "2" }
      volume_size_gb      = 64
      spot                = true
      max_runtime_seconds = 3600
      max_wait_seconds    = 7200
    }]
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.HyperParameters == tomap({ cache = "false", epochs = "3" })
    error_message = "hyperparameters are merged"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.Environment == tomap({ LEVEL = "info", SAGEFIT_ATTEMPT = "first", THREADS = "2" })
    error_message = "environments are merged, and name the attempt"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.ResourceConfig.VolumeSizeInGB == 64
    error_message = "the attempt's disk wins"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters.EnableManagedSpotTraining && jsonencode(output.definition.States["first: submit"].Parameters.StoppingCondition) == jsonencode({ MaxRuntimeInSeconds = 3600, MaxWaitTimeInSeconds = 7200 })
    error_message = "spot waits as long as it may"
  }
  assert {
    condition     = reverse(output.definition.States["first: submit"].Parameters.AlgorithmSpecification.MetricDefinitions)[0].Name == "accuracy"
    error_message = "the job's metrics follow the launcher's"
  }
  assert {
    condition     = output.worst_case_seconds == 7200
    error_message = "waiting counts"
  }
}

run "a_warm_pool_lends_its_shape" {
  command = plan

  variables {
    resources = { warm_pool = "small", volume_size_gb = 100 }
    attempts = [
      { name = "first", instance_type = "ml.m5.large", next = { host_memory = "second" } },
      { name = "second", instance_type = "ml.m5.xlarge" },
    ]
  }

  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Parameters.ResourceConfig) == jsonencode({ InstanceCount = 1, InstanceType = "ml.m5.large", KeepAlivePeriodInSeconds = 1800, VolumeSizeInGB = 30 })
    error_message = "the pool's disk and keep-alive are match keys"
  }
  assert {
    condition     = jsonencode(output.definition.States["second: submit"].Parameters.ResourceConfig) == jsonencode({ InstanceCount = 1, InstanceType = "ml.m5.xlarge", VolumeSizeInGB = 100 })
    error_message = "another shape takes no part in the pool"
  }
}

run "a_prediction_is_a_tag" {
  command = plan

  variables {
    attempts = [
      { name = "predicted", instance_type = "ml.m5.large", memory_percent = 70.6, next = { host_memory = "unknown" } },
      { name = "unknown", instance_type = "ml.m5.xlarge" },
    ]
  }

  assert {
    condition     = [for r in output.definition.States["predicted: submit"].Parameters.Tags : r.Value if r.Key == "sagefit:memory-percent"] == ["70.6"]
    error_message = "What the prediction takes of the memory must be a tag of the training job."
  }

  assert {
    condition     = length([for r in output.definition.States["unknown: submit"].Parameters.Tags : r if r.Key == "sagefit:memory-percent"]) == 0
    error_message = "An attempt without a prediction must not claim one."
  }
}

run "training_jobs_carry_the_tags" {
  command = plan

  variables {
    tags = { cost = "42" }
  }

  assert {
    condition = { for t in output.definition.States["first: submit"].Parameters.Tags : t.Key => t.Value } == {
      cost               = "42"
      team               = "vision"
      "sagefit:attempt"  = "first"
      "sagefit:job"      = "digits"
      "sagefit:platform" = "dev"
    }
    error_message = "platform, job and attempt tags"
  }
}

run "ordinary_words_are_no_credentials" {
  command = plan

  variables {
    hyperparameters = { model = "task-specific-finetuning-model-v2", max_tokens = "512", shelf_order = "alphabetical_and_then_by_size" }
    environment     = { TOKENIZERS_PARALLELISM = "false" }
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.HyperParameters.model == "task-specific-finetuning-model-v2"
    error_message = "words that only contain a token's prefix are fine"
  }
}
