# Rendered by sagefit from disk.yaml. Edit that file, not this one. sha256 09580fe04c2b8fbb

name        = "disk"
platform    = "dev"
description = "Digits from features on a volume that is too small at first"

image = { framework = "sklearn", version = "1.2-1" }
code  = { source_dir = "../examples/disk/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters    = { epochs = "2", features = "3000" }
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true, network_isolation = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.xlarge, at most 10 min. The type that the job file names
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 2
    max_runtime_seconds = 600
    next = {
      host_memory = "larger-host"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
  },
  # 1: ml.m5.xlarge, at most 10 min. 4 GB of disk instead of 2
  {
    name                = "larger-volume"
    reason              = "4 GB of disk instead of 2"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 4
    max_runtime_seconds = 600
  },
  # 2: ml.m6i.xlarge, at most 10 min. Another pool of capacity with no less memory, at the nearest price
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 2
    max_runtime_seconds = 600
    next                = { host_memory = "larger-host" }
  },
  # 3: ml.r6i.xlarge, at most 10 min. 30 GiB of usable host memory instead of 15
  {
    name                = "larger-host"
    reason              = "30 GiB of usable host memory instead of 15"
    instance_type       = "ml.r6i.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 2
    max_runtime_seconds = 600
  },
]
