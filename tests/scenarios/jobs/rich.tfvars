# Rendered by sagefit from rich.yaml. Edit that file, not this one. sha256 7e3daafa3dbf895f

name     = "rich"
platform = "dev"

image           = { uri = "public.ecr.aws/docker/library/python:3.12" }
code            = { source_dir = "../tests/scenarios/jobs/src", entry_point = "train.py" }
channels        = {}
hyperparameters = {}
environment     = {}

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.large, spot, at most 3 min.
  {
    name                = "first"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = true
    volume_size_gb      = 30
    max_runtime_seconds = 180
    max_wait_seconds    = 240
    next = {
      gpu_memory    = "after-gpu-memory"
      host_memory   = "after-host-memory"
      shared_memory = "after-shared-memory"
      disk          = "after-disk"
      capacity      = "after-capacity"
      quota         = "after-quota"
      spot          = "after-spot"
      time          = "after-time"
      data          = "after-data"
      permission    = "after-permission"
      internal      = "after-internal"
      code          = "after-code"
    }
  },
  # 1: ml.g5.2xlarge, at most 3 min.
  {
    name                = "after-gpu-memory"
    instance_type       = "ml.g5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { gpu_memory = "last", capacity = "last" }
  },
  # 2: ml.r5.large, at most 3 min.
  {
    name                = "after-host-memory"
    instance_type       = "ml.r5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { host_memory = "last", capacity = "last" }
  },
  # 3: ml.m5.2xlarge, at most 3 min.
  {
    name                = "after-shared-memory"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { shared_memory = "last", capacity = "last" }
  },
  # 4: ml.m5.large, at most 3 min.
  {
    name                = "after-disk"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { disk = "last", capacity = "last" }
  },
  # 5: ml.m4.xlarge, at most 3 min.
  {
    name                = "after-capacity"
    instance_type       = "ml.m4.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { capacity = "last" }
  },
  # 6: ml.m4.xlarge, at most 3 min.
  {
    name                = "after-quota"
    instance_type       = "ml.m4.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { quota = "last", capacity = "last" }
  },
  # 7: ml.m5.xlarge, at most 3 min.
  {
    name                = "after-spot"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { spot = "last", capacity = "last" }
  },
  # 8: ml.m5.large, at most 3 min.
  {
    name                = "after-time"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { time = "last", capacity = "last" }
  },
  # 9: ml.m5.large, at most 3 min.
  {
    name                = "after-data"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { data = "last", capacity = "last" }
  },
  # 10: ml.m5.large, at most 3 min.
  {
    name                = "after-permission"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { permission = "last", capacity = "last" }
  },
  # 11: ml.m5.large, at most 3 min.
  {
    name                = "after-internal"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { internal = "last", capacity = "last" }
  },
  # 12: ml.m5.large, at most 3 min.
  {
    name                = "after-code"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
    next                = { code = "last", capacity = "last" }
  },
  # 13: ml.m5.4xlarge, at most 3 min.
  {
    name                = "last"
    instance_type       = "ml.m5.4xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 180
  },
]
