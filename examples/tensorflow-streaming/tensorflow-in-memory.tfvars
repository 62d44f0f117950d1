# Rendered by sagefit from tensorflow-in-memory.yaml. Edit that file, not this one. sha256 e3f644bdd3df209c

name        = "tensorflow-in-memory"
platform    = "dev"
description = "Digits from files, all of them held in memory"

image = { framework = "tensorflow", version = "2.19" }
code  = { source_dir = "../examples/tensorflow-streaming/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters    = { batch_size = "32", epochs = "2", in_memory = "true" }
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.25 USD in us-east-1; repeats after internal errors of AWS could add at most 0.51 USD.
attempts = [
  # 0: ml.m5.2xlarge, at most 8 min. The type that the job file names
  # FITS: at most 2.0 of 29.6 GiB per host (7%); 0.46 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 480
    next = {
      host_memory = "streaming"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 6.8
  },
  # 1: ml.m5.2xlarge, at most 8 min. The dataset is streamed instead of held
  # FITS: at most 0.9 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "streaming"
    reason              = "The dataset is streamed instead of held"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { in_memory = "false" }
    volume_size_gb      = 30
    max_runtime_seconds = 480
    next                = { host_memory = "larger-host" }
    memory_percent      = 3.0
  },
  # 2: ml.m5.2xlarge, at most 8 min. 60 GB of disk instead of 30
  # FITS: at most 2.0 of 29.6 GiB per host (7%); 0.46 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 480
    memory_percent      = 6.8
  },
  # 3: ml.m6i.2xlarge, at most 8 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 2.0 of 29.6 GiB per host (7%); 0.46 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 480
    next                = { host_memory = "larger-host" }
    memory_percent      = 6.8
  },
  # 4: ml.r6i.2xlarge, at most 8 min. 59 GiB of usable host memory instead of 30
  # FITS: at most 0.9 of 59.2 GiB per host (1%); 0.60 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "59 GiB of usable host memory instead of 30"
    instance_type       = "ml.r6i.2xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { in_memory = "false" }
    volume_size_gb      = 30
    max_runtime_seconds = 480
    memory_percent      = 1.5
  },
]
