# Rendered by sagefit from fsdp-replicated.yaml. Edit that file, not this one. sha256 cbf348adc9fec4a0

name        = "fsdp-replicated"
platform    = "dev"
description = "A decoder whole on two hosts"

image              = { framework = "pytorch", version = "2.6" }
code               = { source_dir = "../examples/fsdp/code", entry_point = "train.py" }
channels           = { train = { local_path = "../examples/quickstart/data/train" } }
hyperparameters    = { batch_size = "2", layers = "8", sharding = "none", steps = "4", width = "512" }
environment        = { MALLOC_MMAP_THRESHOLD_ = "131072" }
metric_definitions = [{ name = "loss", regex = "loss=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.30 USD in us-east-1; repeats after internal errors of AWS could add at most 0.61 USD.
attempts = [
  # 0: 2 x ml.m5.xlarge, at most 10 min. The type that the job file names
  # FITS: at most 1.0 of 14.8 GiB per host (6%); 0.46 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 2
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next = {
      host_memory = "larger-host"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 6.4
  },
  # 1: 2 x ml.m5.xlarge, at most 10 min. 60 GB of disk instead of 30
  # FITS: at most 1.0 of 14.8 GiB per host (6%); 0.46 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 2
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 600
    memory_percent      = 6.4
  },
  # 2: 2 x ml.m6i.xlarge, at most 10 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 1.0 of 14.8 GiB per host (6%); 0.46 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.xlarge"
    instance_count      = 2
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { host_memory = "larger-host" }
    memory_percent      = 6.4
  },
  # 3: 2 x ml.r6i.xlarge, at most 10 min. 30 GiB of usable host memory instead of 15
  # FITS: at most 1.0 of 29.6 GiB per host (3%); 0.60 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "30 GiB of usable host memory instead of 15"
    instance_type       = "ml.r6i.xlarge"
    instance_count      = 2
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 3.2
  },
]
