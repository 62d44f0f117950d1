# Rendered by sagefit from distributed.yaml. Edit that file, not this one. sha256 1a9049d82b9f7dd2

name        = "distributed"
platform    = "dev"
description = "Digits on two hosts, data parallel"

image = { framework = "pytorch", version = "2.6" }
code  = { source_dir = "../examples/distributed/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters    = { batch_size = "32", epochs = "5" }
environment        = {}
metric_definitions = [{ name = "loss", regex = "loss=([0-9.]+)" }, { name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.30 USD in us-east-1; repeats after internal errors of AWS could add at most 0.61 USD.
attempts = [
  # 0: 2 x ml.m5.xlarge, at most 10 min. The type that the job file names
  # FITS: at most 0.4 of 14.8 GiB per host (3%); 0.46 USD an hour in us-east-1
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
    memory_percent = 2.8
  },
  # 1: 2 x ml.m5.xlarge, at most 10 min. 60 GB of disk instead of 30
  # FITS: at most 0.4 of 14.8 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 2
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 600
    memory_percent      = 2.8
  },
  # 2: 2 x ml.m6i.xlarge, at most 10 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 0.4 of 14.8 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.xlarge"
    instance_count      = 2
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { host_memory = "larger-host" }
    memory_percent      = 2.8
  },
  # 3: 2 x ml.r6i.xlarge, at most 10 min. 30 GiB of usable host memory instead of 15
  # FITS: at most 0.4 of 29.6 GiB per host (1%); 0.60 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "30 GiB of usable host memory instead of 15"
    instance_type       = "ml.r6i.xlarge"
    instance_count      = 2
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 1.4
  },
]
