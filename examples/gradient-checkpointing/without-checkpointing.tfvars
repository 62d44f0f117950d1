# Rendered by sagefit from without-checkpointing.yaml. Edit that file, not this one. sha256 27fdc4d9ce990c1a

name        = "without-checkpointing"
platform    = "dev"
description = "A deep language model of bytes, with all activations kept"

image           = { framework = "pytorch", version = "2.6" }
code            = { source_dir = "../examples/gradient-checkpointing/code", entry_point = "train.py" }
channels        = { train = { local_path = "../examples/data/handbook" } }
hyperparameters = { batch_size = "12", gradient_checkpointing = "false", max_seq_length = "256", max_steps = "8" }
environment     = { MALLOC_MMAP_THRESHOLD_ = "131072", OMP_WAIT_POLICY = "PASSIVE" }
metric_definitions = [
  { name = "loss", regex = "loss=([0-9.]+)" },
  { name = "bits_per_byte", regex = "bits_per_byte=([0-9.]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.18 USD in us-east-1; repeats after internal errors of AWS could add at most 0.36 USD.
attempts = [
  # 0: ml.m5.2xlarge, at most 5 min. The type that the job file names
  # FITS: at most 0.9 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next = {
      host_memory = "checkpointing"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 3.0
  },
  # 1: ml.m5.2xlarge, at most 5 min. Activations are computed a second time instead of kept
  # FITS: at most 0.5 of 29.6 GiB per host (2%); 0.46 USD an hour in us-east-1
  {
    name                = "checkpointing"
    reason              = "Activations are computed a second time instead of kept"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_checkpointing = "true" }
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "larger-host" }
    memory_percent      = 1.7
  },
  # 2: ml.m5.2xlarge, at most 5 min. 60 GB of disk instead of 30
  # FITS: at most 0.9 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 300
    memory_percent      = 3.0
  },
  # 3: ml.m6i.2xlarge, at most 5 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 0.9 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "larger-host" }
    memory_percent      = 3.0
  },
  # 4: ml.r6i.2xlarge, at most 5 min. 59 GiB of usable host memory instead of 30
  # FITS: at most 0.5 of 59.2 GiB per host (1%); 0.60 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "59 GiB of usable host memory instead of 30"
    instance_type       = "ml.r6i.2xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_checkpointing = "true" }
    volume_size_gb      = 30
    max_runtime_seconds = 300
    memory_percent      = 0.9
  },
]
