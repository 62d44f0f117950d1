# Rendered by sagefit from tensorflow-mixed-precision.yaml. Edit that file, not this one. sha256 a9df04d0f2464a80

name        = "tensorflow-mixed-precision"
platform    = "dev"
description = "Digits with Keras in mixed precision"

image = { framework = "tensorflow", version = "2.19" }
code  = { source_dir = "../examples/tensorflow-mixed-precision/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters = { batch_size = "1024", layers = "2", mixed_precision = "bf16", steps = "10" }
environment     = {}
metric_definitions = [
  { name = "accuracy", regex = "accuracy=([0-9.]+)" },
  { name = "activations_mib", regex = "activations_mib=([0-9.]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = true, network_isolation = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.31 USD in us-east-1; repeats after internal errors of AWS could add at most 0.61 USD.
attempts = [
  # 0: ml.m5.2xlarge, at most 10 min. The type that the job file names
  # FITS: at most 1.0 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.2xlarge"
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
    memory_percent = 3.3
  },
  # 1: ml.m5.2xlarge, at most 10 min. 60 GB of disk instead of 30
  # FITS: at most 1.0 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 600
    memory_percent      = 3.3
  },
  # 2: ml.m6i.2xlarge, at most 10 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 1.0 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { host_memory = "larger-host" }
    memory_percent      = 3.3
  },
  # 3: ml.r6i.2xlarge, at most 10 min. 59 GiB of usable host memory instead of 30
  # FITS: at most 1.0 of 59.2 GiB per host (2%); 0.60 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "59 GiB of usable host memory instead of 30"
    instance_type       = "ml.r6i.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 1.7
  },
]
