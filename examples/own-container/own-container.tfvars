# Rendered by sagefit from own-container.yaml. Edit that file, not this one. sha256 82dad343c05322b8

name        = "own-container"
platform    = "dev"
description = "Handwritten digits with LightGBM in an own container"

# image.build: no image of 'image' is pinned yet; sagefit image builds and pins it
image = { repository = "", tag = "1" }
code  = { source_dir = "../examples/own-container/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters    = { learning_rate = "0.2", leaves = "15", rounds = "60" }
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "^accuracy=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.large, at most 10 min. The type that the job file names
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next = {
      host_memory = "larger-host"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
  },
  # 1: ml.m5.large, at most 10 min. 60 GB of disk instead of 30
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 600
  },
  # 2: ml.m6i.large, at most 10 min. Another pool of capacity with no less memory, at the nearest price
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { host_memory = "larger-host" }
  },
  # 3: ml.r6i.large, at most 10 min. 15 GiB of usable host memory instead of 7
  {
    name                = "larger-host"
    reason              = "15 GiB of usable host memory instead of 7"
    instance_type       = "ml.r6i.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
  },
]
