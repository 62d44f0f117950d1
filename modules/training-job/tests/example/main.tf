data "aws_ssm_parameter" "platform" {
  name = "/sagefit/dev"
}

module "job" {
  source = "../.."

  name     = "digits"
  platform = jsondecode(data.aws_ssm_parameter.platform.insecure_value)
  image    = { framework = "pytorch", version = "2.6" }
  code     = { source_dir = "${path.module}/code", entry_point = "train.py" }
  channels = { train = { s3_uri = "s3://my-data/digits/train/" } }

  hyperparameters = { epochs = "3", batch_size = "256", accumulation_steps = "1" }

  attempts = [
    {
      name                = "cheapest"
      instance_type       = "ml.g5.xlarge"
      spot                = true
      max_runtime_seconds = 7200
      max_wait_seconds    = 14400
      next                = { gpu_memory = "half-batch", host_memory = "more-memory", capacity = "on-demand", spot = "on-demand" }
    },
    {
      name                = "half-batch"
      reason              = "same effective batch, half the activations"
      instance_type       = "ml.g5.xlarge"
      hyperparameters     = { batch_size = "128", accumulation_steps = "2" }
      max_runtime_seconds = 10800
      next                = { gpu_memory = "more-memory", host_memory = "more-memory" }
    },
    {
      name                = "on-demand"
      reason              = "no spot capacity"
      instance_type       = "ml.g5.xlarge"
      max_runtime_seconds = 7200
      next                = { host_memory = "more-memory" }
    },
    {
      name                = "more-memory"
      reason              = "44 GiB on the GPU, 32 GiB on the host"
      instance_type       = "ml.g6e.xlarge"
      max_runtime_seconds = 10800
    },
  ]
}

output "state_machine_arn" {
  description = "What to start."
  value       = module.job.state_machine_arn
}

output "definition" {
  description = "What it does."
  value       = module.job.definition
}
