# Rendered by sagefit from loader-workers-many.yaml. Edit that file, not this one. sha256 2e96408f52ed3d60

name        = "loader-workers-many"
platform    = "dev"
description = "Pictures from two loader workers"

image    = { framework = "pytorch", version = "2.6" }
code     = { source_dir = "../examples/loader-workers/code", entry_point = "train.py" }
channels = { train = { local_path = "../examples/quickstart/data/train" } }
hyperparameters = {
  batch_size      = "64"
  num_workers     = "2"
  prefetch_factor = "16"
  sharing         = "file_system"
  steps           = "44"
}
environment        = {}
metric_definitions = [{ name = "loss", regex = "loss=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.51 USD in us-east-1; repeats after internal errors of AWS could add at most 1.02 USD.
attempts = [
  # 0: ml.m5.4xlarge, at most 8 min. The type that the job file names
  # FITS: at most 2.4 of 59.2 GiB per host (4%); 0.92 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.4xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 480
    next = {
      host_memory   = "fewer-workers"
      shared_memory = "fewer-workers"
      disk          = "larger-volume"
      capacity      = "other-capacity"
      quota         = "other-capacity"
    }
    memory_percent = 4.0
  },
  # 1: ml.m5.4xlarge, at most 8 min. 1 loader workers instead of 2
  # FITS: at most 1.5 of 59.2 GiB per host (2%); 0.92 USD an hour in us-east-1
  {
    name                = "fewer-workers"
    reason              = "1 loader workers instead of 2"
    instance_type       = "ml.m5.4xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { num_workers = "1" }
    volume_size_gb      = 30
    max_runtime_seconds = 480
    next                = { host_memory = "larger-host" }
    memory_percent      = 2.5
  },
  # 2: ml.m5.4xlarge, at most 8 min. 60 GB of disk instead of 30
  # FITS: at most 2.4 of 59.2 GiB per host (4%); 0.92 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.4xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 480
    memory_percent      = 4.0
  },
  # 3: ml.m6i.4xlarge, at most 8 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 2.4 of 59.2 GiB per host (4%); 0.92 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.4xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 480
    next                = { host_memory = "larger-host" }
    memory_percent      = 4.0
  },
  # 4: ml.r6i.4xlarge, at most 8 min. 118 GiB of usable host memory instead of 59
  # FITS: at most 1.5 of 118.4 GiB per host (1%); 1.21 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "118 GiB of usable host memory instead of 59"
    instance_type       = "ml.r6i.4xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { num_workers = "1" }
    volume_size_gb      = 30
    max_runtime_seconds = 480
    memory_percent      = 1.2
  },
]
