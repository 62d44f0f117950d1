# Rendered by sagefit from pool.yaml. Edit that file, not this one. sha256 41b002067d8386ce

name     = "pool"
platform = "dev"

image           = { uri = "public.ecr.aws/docker/library/python:3.12" }
code            = { source_dir = "../tests/scenarios/jobs/src", entry_point = "train.py" }
channels        = {}
hyperparameters = {}
environment     = {}

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.xlarge, at most 5 min.
  {
    name                = "first"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "kept", disk = "kept-too", capacity = "not-kept" }
  },
  # 1: ml.m5.large, at most 5 min.
  {
    name                = "kept"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 31
    keep_alive_seconds  = 1800
    max_runtime_seconds = 300
    next                = { host_memory = "larger" }
  },
  # 2: ml.m5.large, at most 5 min.
  {
    name                = "kept-too"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 32
    keep_alive_seconds  = 1800
    max_runtime_seconds = 300
    next                = { disk = "again" }
  },
  # 3: ml.m5.large, at most 5 min.
  {
    name                = "again"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 32
    keep_alive_seconds  = 1800
    max_runtime_seconds = 300
  },
  # 4: 5 x ml.c5.xlarge, at most 5 min.
  {
    name                = "not-kept"
    instance_type       = "ml.c5.xlarge"
    instance_count      = 5
    spot                = false
    volume_size_gb      = 30
    keep_alive_seconds  = 1800
    max_runtime_seconds = 300
    next                = { host_memory = "larger" }
  },
  # 5: ml.m5.xlarge, at most 5 min.
  {
    name                = "larger"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
  },
]
