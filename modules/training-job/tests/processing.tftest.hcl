# Steps before the first attempt: their requests, their states, and who may create them.
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
    schema      = 1
    name        = "dev"
    partition   = "aws"
    region      = "us-east-1"
    account_id  = "123456789012"
    role_arn    = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
    kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    buckets     = { data = "d", artifacts = "a", checkpoints = "c" }
    network     = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"], isolation = true, encrypt_inter_container_traffic = true }
  }
  image = { framework = "sklearn", version = "1.2-1" }
  code  = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  processing = [
    {
      name          = "features"
      image         = { framework = "spark", version = "3.5" }
      code          = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = ["--fast"] }
      inputs        = { raw = { s3_uri = "s3://raw/clicks/", distribution = "ShardedByS3Key" }, labels = { local_path = "tests/fixtures/data" } }
      outputs       = ["train", "test"]
      environment   = { LEVEL = "3" }
      instance_type = "ml.m5.xlarge", instance_count = 2, max_runtime_seconds = 3600
    },
    {
      name          = "split"
      image         = { repository = "123456789012.dkr.ecr.us-east-1.amazonaws.com/own", tag = "1" }
      inputs        = { features = { from = "features/train" } }
      outputs       = ["parts"]
      instance_type = "ml.g4dn.xlarge", max_runtime_seconds = 600
    },
  ]
  channels = { train = { from = "split/parts" }, test = { from = "features/test", mode = "FastFile" } }
  attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 2, max_runtime_seconds = 3600 }]
}

run "a_step_asks_for_what_it_needs" {
  command = plan

  assert {
    condition = jsonencode({
      for k, v in output.definition.States["processing features: submit"].Parameters : k => v
      if !contains(["ProcessingInputs", "ProcessingOutputConfig", "Tags"], k)
      }) == jsonencode({
      "ProcessingJobName.$" = "States.Format('{}-p0{}', $$.Execution.Name, $.repeat.letter)"
      RoleArn               = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
      AppSpecification = {
        ImageUri            = "173754725891.dkr.ecr.us-east-1.amazonaws.com/sagemaker-spark-processing:3.5-cpu"
        ContainerEntrypoint = ["smspark-submit", "--local-spark-event-logs-dir", "/opt/ml/processing/spark-events", "/opt/ml/processing/input/code/train.py"]
        ContainerArguments  = ["--fast"]
      }
      Environment = { LEVEL = "3" }
      ProcessingResources = {
        ClusterConfig = {
          InstanceType   = "ml.m5.xlarge"
          InstanceCount  = 2
          VolumeSizeInGB = 30
          VolumeKmsKeyId = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
        }
      }
      StoppingCondition = { MaxRuntimeInSeconds = 3600 }
      NetworkConfig = {
        EnableNetworkIsolation                = true
        EnableInterContainerTrafficEncryption = true
        VpcConfig                             = { Subnets = ["subnet-1"], SecurityGroupIds = ["sg-1"] }
      }
    })
    error_message = "image, command, resources and network are those of the step and of the platform"
  }
  assert {
    condition = {
      for i in output.definition.States["processing features: submit"].Parameters.ProcessingInputs :
      i.InputName => replace(i.S3Input.S3Uri, "/[0-9a-f]{16}/", "DIGEST")
    } == { code = "s3://d/jobs/digits/inputs/features/code/DIGEST/", labels = "s3://d/jobs/digits/inputs/features/labels/DIGEST/", raw = "s3://raw/clicks/" }
    error_message = "code and local data come from where Terraform ships them"
  }
  assert {
    condition = output.definition.States["processing features: submit"].Parameters.ProcessingOutputConfig == {
      KmsKeyId = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
      Outputs = [
        for name in ["train", "test", "spark-events"] : {
          OutputName = name
          S3Output = {
            "S3Uri.$"    = "States.Format('s3://a/jobs/digits/{}/processing/features/${name}', $$.Execution.Name)"
            LocalPath    = name == "spark-events" ? "/opt/ml/processing/spark-events" : "/opt/ml/processing/output/${name}"
            S3UploadMode = name == "spark-events" ? "Continuous" : "EndOfJob"
          }
        }
      ]
    }
    error_message = "outputs are folders of the run"
  }
  assert {
    condition     = contains(output.definition.States["processing split: submit"].Parameters.Tags, { Key = "sagefit:step", Value = "split" }) && !can(output.definition.States["processing split: submit"].Parameters.AppSpecification.ContainerEntrypoint)
    error_message = "a step is tagged with its name, and an image without code runs its own program"
  }
  assert {
    condition     = !can(output.definition.States["processing split: submit"].Parameters.ProcessingResources.ClusterConfig.VolumeKmsKeyId)
    error_message = "local disks are encrypted by the hardware and take no key"
  }
  assert {
    condition = (
      output.definition.States["processing split: submit"].Parameters.ProcessingInputs[0].S3Input["S3Uri.$"] == "States.Format('s3://a/jobs/digits/{}/processing/features/train/', $$.Execution.Name)"
      && one([for c in output.definition.States["first: submit"].Parameters.InputDataConfig : c if c.ChannelName == "train"]).DataSource.S3DataSource["S3Uri.$"] == "States.Format('s3://a/jobs/digits/{}/processing/split/parts/', $$.Execution.Name)"
    )
    error_message = "a later step and a channel take the output from where it was put"
  }
}

run "a_run_goes_through_the_steps_to_the_first_attempt" {
  command = plan

  assert {
    condition = [
      output.definition.States.begin.Next,
      output.definition.States["processing features: completed"].Next,
      output.definition.States["processing split: completed"].Next,
    ] == ["processing features: submit", "processing split: submit", "first: submit"]
    error_message = "steps come one after another, and then the first attempt"
  }
  assert {
    condition = length(setsubtract(keys(output.definition.States), flatten(["named", [
      for name, state in output.definition.States : compact(concat(
        [try(state.Next, ""), try(state.Default, "")],
        try([for rule in state.Choices : rule.Next], []),
        try([for rule in state.Catch : rule.Next], []),
      ))
    ]]))) == 0
    error_message = "every state is led to"
  }
  assert {
    condition     = output.worst_case_seconds == 3600 + 600 + 3600
    error_message = "the worst case has the steps in it"
  }
  assert {
    condition = jsonencode([for s in output.state_machine_policy.Statement : s if s.Sid == "CreateProcessingJobsOfThisJob"][0]) == jsonencode({
      Sid      = "CreateProcessingJobsOfThisJob"
      Effect   = "Allow"
      Action   = ["sagemaker:CreateProcessingJob"]
      Resource = [for end in ["?", "??"] : "arn:aws:sagemaker:us-east-1:123456789012:processing-job/digits-??????-??????-p${end}"]
      Condition = {
        "ForAllValues:StringEquals" = {
          "sagemaker:InstanceTypes"       = ["ml.m5.xlarge", "ml.g4dn.xlarge"]
          "sagemaker:VpcSubnets"          = ["subnet-1"]
          "sagemaker:VpcSecurityGroupIds" = ["sg-1"]
        }
        Null                  = { for key in ["InstanceTypes", "VpcSubnets", "VpcSecurityGroupIds", "OutputKmsKey"] : "sagemaker:${key}" => "false" }
        NumericLessThanEquals = { "sagemaker:MaxRuntimeInSeconds" = "3600" }
        Bool                  = { "sagemaker:NetworkIsolation" = "true", "sagemaker:InterContainerTrafficEncryption" = "true" }
        ArnEquals             = { "sagemaker:OutputKmsKey" = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555" }
      }
    })
    error_message = "the role creates the steps of this job, as they are and not less protected"
  }
}

run "a_job_without_steps_knows_nothing_of_them" {
  command = plan

  variables {
    processing = []
    channels   = {}
  }

  assert {
    condition     = !strcontains(jsonencode([output.definition, output.state_machine_policy]), "rocessing")
    error_message = "no states and no permissions of processing jobs"
  }
}

run "an_image_is_that_of_the_region" {
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
    processing = [var.processing[0]] # the other one has an image of another region
    channels   = { test = { from = "features/test" } }
    platform = {
      schema     = 1
      name       = "dev"
      partition  = "aws-cn"
      region     = "cn-north-1"
      account_id = "123456789012"
      role_arn   = "arn:aws-cn:iam::123456789012:role/sagefit-dev-execution"
      buckets    = { data = "d", artifacts = "a", checkpoints = "c" }
    }
    schedule = { expression = "rate(1 day)" }
  }

  assert {
    condition     = output.definition.States["processing features: submit"].Parameters.AppSpecification.ImageUri == "671472414489.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-spark-processing:3.5-cpu"
    error_message = "account, region and domain are those of the platform"
  }
  assert {
    condition     = !can(output.definition.States["processing features: submit"].Parameters.NetworkConfig)
    error_message = "what is not asked for is absent"
  }
  assert {
    condition     = contains([for s in output.state_machine_policy.Statement : s if s.Sid == "CreateProcessingJobsOfThisJob"][0].Resource, "arn:aws-cn:sagemaker:cn-north-1:123456789012:processing-job/digits-*-p??")
    error_message = "scheduled runs have names of their own form"
  }
}

run "an_image_is_that_of_a_government_region" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "us-gov-west-1" }
  }

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "123456789012", arn = "arn:aws-us-gov:iam::123456789012:root" }
  }

  variables {
    processing = [var.processing[0]] # the other one has an image of another region
    channels   = { test = { from = "features/test" } }
    platform = {
      schema     = 1
      name       = "dev"
      partition  = "aws-us-gov"
      region     = "us-gov-west-1"
      account_id = "123456789012"
      role_arn   = "arn:aws-us-gov:iam::123456789012:role/sagefit-dev-execution"
      buckets    = { data = "d", artifacts = "a", checkpoints = "c" }
    }
  }

  assert {
    condition     = output.definition.States["processing features: submit"].Parameters.AppSpecification.ImageUri == "271483468897.dkr.ecr.us-gov-west-1.amazonaws.com/sagemaker-spark-processing:3.5-cpu"
    error_message = "account, region and domain are those of the platform"
  }
}
