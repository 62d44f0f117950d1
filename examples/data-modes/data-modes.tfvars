# Rendered by sagefit from data-modes.yaml. Edit that file, not this one. sha256 7a10a3cf329a3827

name        = "data-modes"
platform    = "dev"
description = "Handwritten digits, copied to the volume"

image = { framework = "sklearn", version = "1.2-1" }
code  = { source_dir = "../examples/data-modes/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters = { epochs = "5" }
environment     = {}
metric_definitions = [
  { name = "accuracy", regex = "^accuracy=([0-9.]+)" },
  { name = "records", regex = "records=([0-9]+)" },
  { name = "bytes_on_volume", regex = "bytes_on_volume=([0-9]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.08 USD in us-east-1; repeats after internal errors of AWS could add at most 0.15 USD.
attempts = [
  # 0: ml.m5.large, at most 10 min. The type that the job file names
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
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
    memory_percent = 3.5
  },
  # 1: ml.m5.large, at most 10 min. 60 GB of disk instead of 30
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 600
    memory_percent      = 3.5
  },
  # 2: ml.m6i.large, at most 10 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { host_memory = "larger-host" }
    memory_percent      = 3.5
  },
  # 3: ml.r6i.large, at most 10 min. 15 GiB of usable host memory instead of 7
  # FITS: at most 0.3 of 14.8 GiB per host (2%); 0.15 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "15 GiB of usable host memory instead of 7"
    instance_type       = "ml.r6i.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 1.8
  },
]
