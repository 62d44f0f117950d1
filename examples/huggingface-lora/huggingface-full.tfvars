# Rendered by sagefit from huggingface-full.yaml. Edit that file, not this one. sha256 d03b5b031b4029a1

name        = "huggingface-full"
platform    = "dev"
description = "All weights of a small Llama, made locally"

image    = { framework = "huggingface", version = "4.56" }
code     = { source_dir = "../examples/huggingface-lora/code", entry_point = "train.py" }
channels = { train = { local_path = "../examples/data/handbook" } }
hyperparameters = {
  max_seq_length              = "64"
  max_steps                   = "8"
  method                      = "full"
  per_device_train_batch_size = "4"
  save_steps                  = "0"
}
environment = { OMP_WAIT_POLICY = "PASSIVE" }
metric_definitions = [
  { name = "loss", regex = "'loss': '?([0-9.]+)" },
  { name = "bits_per_byte", regex = "bits_per_byte=([0-9.]+)" },
]
max_price = 3.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.29 USD in us-east-1; repeats after internal errors of AWS could add at most 0.57 USD.
attempts = [
  # 0: ml.g4dn.2xlarge, at most 5 min. The type that the job file names
  # FITS: at most 1.9 of 14.6 GiB per GPU (13%), 2.6 of 29.6 GiB per host (9%); 0.94 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.g4dn.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next = {
      gpu_memory  = "other-capacity"
      host_memory = "larger-host"
      disk        = "larger-disk"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 13.3
  },
  # 1: ml.g6.2xlarge, at most 5 min. Another pool of capacity with no less memory, at the nearest price. L4 with 22 GiB instead of T4 with 15 GiB
  # FITS: at most 1.9 of 22.0 GiB per GPU (9%), 2.6 of 29.6 GiB per host (9%); 1.22 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price. L4 with 22 GiB instead of T4 with 15 GiB"
    instance_type       = "ml.g6.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    memory_percent      = 8.8
  },
  # 2: ml.g4dn.4xlarge, at most 5 min. 59 GiB of usable host memory instead of 30
  # FITS: at most 1.9 of 14.6 GiB per GPU (13%), 2.6 of 59.2 GiB per host (4%); 1.50 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "59 GiB of usable host memory instead of 30"
    instance_type       = "ml.g4dn.4xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    memory_percent      = 13.3
  },
  # 3: ml.g6.2xlarge, at most 5 min. 450 GB of NVMe disk instead of 225
  # FITS: at most 1.9 of 22.0 GiB per GPU (9%), 2.6 of 29.6 GiB per host (9%); 1.22 USD an hour in us-east-1
  {
    name                = "larger-disk"
    reason              = "450 GB of NVMe disk instead of 225"
    instance_type       = "ml.g6.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 450
    max_runtime_seconds = 300
    memory_percent      = 8.8
  },
]
