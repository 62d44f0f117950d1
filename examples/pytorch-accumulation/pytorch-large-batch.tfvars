# Rendered by sagefit from pytorch-large-batch.yaml. Edit that file, not this one. sha256 b6a81f0c3015a4fb

name        = "pytorch-large-batch"
platform    = "dev"
description = "A language model of bytes, 32 windows at once"

image    = { framework = "pytorch", version = "2.6" }
code     = { source_dir = "../examples/pytorch-accumulation/code", entry_point = "train.py" }
channels = { train = { local_path = "../examples/data/handbook" } }
hyperparameters = {
  gradient_accumulation_steps = "1"
  max_seq_length              = "256"
  num_train_epochs            = "2"
  per_device_train_batch_size = "32"
}
environment = { OMP_WAIT_POLICY = "PASSIVE" }
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
  # FITS: at most 1.0 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next = {
      host_memory = "accumulate-2"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 3.3
  },
  # 1: ml.m5.2xlarge, at most 5 min. Micro-batch 16 instead of 32, accumulation 2 instead of 1: the same effective batch
  # FITS: at most 0.7 of 29.6 GiB per host (2%); 0.46 USD an hour in us-east-1
  {
    name                = "accumulate-2"
    reason              = "Micro-batch 16 instead of 32, accumulation 2 instead of 1: the same effective batch"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_accumulation_steps = "2", per_device_train_batch_size = "16" }
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "larger-host" }
    memory_percent      = 2.4
  },
  # 2: ml.m5.2xlarge, at most 5 min. 60 GB of disk instead of 30
  # FITS: at most 1.0 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 300
    memory_percent      = 3.3
  },
  # 3: ml.m6i.2xlarge, at most 5 min. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 1.0 of 29.6 GiB per host (3%); 0.46 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "larger-host" }
    memory_percent      = 3.3
  },
  # 4: ml.r6i.2xlarge, at most 5 min. 59 GiB of usable host memory instead of 30
  # FITS: at most 0.7 of 59.2 GiB per host (1%); 0.60 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "59 GiB of usable host memory instead of 30"
    instance_type       = "ml.r6i.2xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_accumulation_steps = "2", per_device_train_batch_size = "16" }
    volume_size_gb      = 30
    max_runtime_seconds = 300
    memory_percent      = 1.2
  },
]
