# Rendered by sagefit from hard.yaml. Edit that file, not this one. sha256 b1af6e19da6a67a4

name     = "hard"
platform = "dev"

image           = { uri = "public.ecr.aws/docker/library/python:3.12" }
code            = { source_dir = "../tests/scenarios/jobs/hard", entry_point = "train.py" }
channels        = {}
hyperparameters = {}
environment     = {}

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.large, spot, at most 10 min.
  {
    name                = "first"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = true
    volume_size_gb      = 1
    max_runtime_seconds = 600
    max_wait_seconds    = 1200
    next = {
      host_memory   = "second"
      disk          = "second"
      shared_memory = "second"
      code          = "second"
      internal      = "second"
    }
  },
  # 1: ml.m5.xlarge, at most 10 min.
  {
    name                = "second"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 1
    max_runtime_seconds = 600
  },
]
