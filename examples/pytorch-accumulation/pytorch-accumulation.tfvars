# Rendered by sagefit from pytorch-accumulation.yaml. Edit that file, not this one. sha256 e46a687d13aa3199

name        = "pytorch-accumulation"
platform    = "dev"
description = "A language model of bytes, 32 windows for each step"

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
# A run costs at most 0.05 USD in us-east-1; repeats after internal errors of AWS could add at most 0.11 USD.
attempts = [
  # 0: ml.m5.large, at most 5 min. Fewest kernels for each step, where it fits
  # FITS: at most 1.0 of 7.4 GiB per host (13%); 0.12 USD an hour in us-east-1
  {
    name                = "large-batch"
    reason              = "Fewest kernels for each step, where it fits"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "accumulate", capacity = "larger" }
    memory_percent      = 13.2
  },
  # 1: ml.m5.large, at most 5 min. 8 micro-batches of 4 make the same step
  # FITS: at most 0.5 of 7.4 GiB per host (7%); 0.12 USD an hour in us-east-1
  {
    name                = "accumulate"
    reason              = "8 micro-batches of 4 make the same step"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_accumulation_steps = "8", per_device_train_batch_size = "4" }
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "larger", capacity = "larger" }
    memory_percent      = 6.7
  },
  # 2: ml.m5.xlarge, at most 5 min. Twice the memory per host
  # FITS: at most 0.5 of 14.8 GiB per host (3%); 0.23 USD an hour in us-east-1
  {
    name                = "larger"
    reason              = "Twice the memory per host"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_accumulation_steps = "8", per_device_train_batch_size = "4" }
    volume_size_gb      = 30
    max_runtime_seconds = 300
    memory_percent      = 3.3
  },
]
