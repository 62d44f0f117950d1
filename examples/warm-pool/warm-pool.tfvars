# Rendered by sagefit from warm-pool.yaml. Edit that file, not this one. sha256 36e215a61ac44a65

name        = "warm-pool"
platform    = "dev"
description = "Handwritten digits with features that stay in the warm pool"

image = { framework = "sklearn", version = "1.2-1" }
code  = { source_dir = "../examples/warm-pool/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters = { alpha = "0.0001", in_memory = "true" }
environment     = {}
metric_definitions = [
  { name = "accuracy", regex = "^accuracy=([0-9.]+)" },
  { name = "prepared", regex = "prepared=([0-9]+)" },
  { name = "found", regex = "found=([0-9]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.large, at most 10 min. All features in memory, the fastest while they fit
  {
    name                = "in-memory"
    reason              = "All features in memory, the fastest while they fit"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    keep_alive_seconds  = 600
    max_runtime_seconds = 600
    next                = { host_memory = "streaming" }
  },
  # 1: ml.m5.large, at most 10 min. Reads prepared features shard by shard, on the instance that the first attempt has left warm
  {
    name                = "streaming"
    reason              = "Reads prepared features shard by shard, on the instance that the first attempt has left warm"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    hyperparameters     = { in_memory = "false" }
    volume_size_gb      = 30
    keep_alive_seconds  = 600
    max_runtime_seconds = 600
  },
]
