# Rendered by sagefit from pytorch-full-precision.yaml. Edit that file, not this one. sha256 da0fce710992e2a7

name        = "pytorch-full-precision"
platform    = "dev"
description = "A language model of bytes in fp32"

image           = { framework = "pytorch", version = "2.6" }
code            = { source_dir = "../examples/pytorch-mixed-precision/code", entry_point = "train.py" }
channels        = { train = { local_path = "../examples/data/handbook" } }
hyperparameters = { batch_size = "16", max_seq_length = "256", max_steps = "8", mixed_precision = "no" }
environment     = { MALLOC_MMAP_THRESHOLD_ = "131072", OMP_WAIT_POLICY = "PASSIVE" }
metric_definitions = [
  { name = "loss", regex = "loss=([0-9.]+)" },
  { name = "saved_mib", regex = "saved_mib=([0-9.]+)" },
  { name = "bits_per_byte", regex = "bits_per_byte=([0-9.]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = false, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.09 USD in us-east-1; repeats after internal errors of AWS could add at most 0.18 USD.
attempts = [
  # 0: ml.m5.xlarge, at most 5 min. The type that the job file names
  # FITS: at most 0.7 of 14.8 GiB per host (5%); 0.23 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next = {
      host_memory = "larger-host"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 5.0
  },
  # 1: ml.m5.xlarge, at most 5 min. 60 GB of disk instead of 30
  # FITS: at most 0.7 of 14.8 GiB per host (5%); 0.23 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 300
    memory_percent      = 5.0
  },
  # 2: ml.m6i.xlarge, at most 5 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 0.7 of 14.8 GiB per host (5%); 0.23 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "larger-host" }
    memory_percent      = 5.0
  },
  # 3: ml.r6i.xlarge, at most 5 min. 30 GiB of usable host memory instead of 15
  # FITS: at most 0.7 of 29.6 GiB per host (2%); 0.30 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "30 GiB of usable host memory instead of 15"
    instance_type       = "ml.r6i.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    memory_percent      = 2.5
  },
]
