# Rendered by sagefit from bare.yaml. Edit that file, not this one. sha256 46ee3fede619df80

name     = "bare"
platform = "dev"

image           = { uri = "public.ecr.aws/docker/library/python:3.12" }
code            = { source_dir = "../tests/scenarios/jobs/src", entry_point = "train.py" }
channels        = {}
hyperparameters = {}
environment     = {}

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.large, at most 10 min.
  {
    name                = "first"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { capacity = "second" }
  },
  # 1: ml.m5.xlarge, at most 10 min.
  {
    name                = "second"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
  },
]
