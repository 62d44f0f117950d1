# Rendered by sagefit from model-parallel.yaml. Edit that file, not this one. sha256 60f39e87f16b620d

name        = "model-parallel"
platform    = "dev"
description = "A decoder whose layers are split over four GPUs"

image              = { framework = "pytorch", version = "2.6" }
code               = { source_dir = "../examples/model-parallel/code", entry_point = "train.py" }
channels           = { train = { local_path = "../examples/quickstart/data/train" } }
hyperparameters    = { batch_size = "16", layers = "24", steps = "200", width = "2048" }
environment        = { SAGEFIT_TORCHRUN = "true" }
metric_definitions = [{ name = "loss", regex = "loss=([0-9.]+)" }]

resources = { input_mode = "File", checkpoints = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 36.15 USD in us-east-1, by estimated prices; repeats after internal errors of AWS could add at most 72.30 USD.
attempts = [
  # 0: ml.g5.12xlarge, at most 1 h. The type that the job file names
  # FITS: at most 11.4 of 22.0 GiB per GPU (52%), 14.8 of 177.6 GiB per host (8%); 7.09 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.g5.12xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next = {
      gpu_memory  = "larger-gpu"
      host_memory = "larger-host"
      disk        = "larger-disk"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 51.8
  },
  # 1: ml.g6.24xlarge, at most 1 h. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 11.4 of 22.0 GiB per GPU (52%), 14.8 of 355.2 GiB per host (4%); 8.34 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.g6.24xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { disk = "larger-disk" }
    memory_percent      = 51.8
  },
  # 2: 4 x ml.g6.4xlarge, at most 1 h. 59 GiB of usable host memory instead of 178
  # FITS: at most 11.4 of 22.0 GiB per GPU (52%), 3.7 of 59.2 GiB per host (6%); 6.62 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "59 GiB of usable host memory instead of 178"
    instance_type       = "ml.g6.4xlarge"
    instance_count      = 4
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "larger-gpu", disk = "larger-disk" }
    memory_percent      = 51.8
  },
  # 3: ml.g7e.24xlarge, at most 1 h. 7600 GB of NVMe disk instead of 3800
  # FITS: at most 11.4 of 95.0 GiB per GPU (12%), 14.8 of 947.2 GiB per host (2%); 20.72 USD an hour in us-east-1, estimated
  {
    name                = "larger-disk"
    reason              = "7600 GB of NVMe disk instead of 3800"
    instance_type       = "ml.g7e.24xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 7600
    max_runtime_seconds = 3600
    memory_percent      = 12.0
  },
  # 4: 4 x ml.g6e.2xlarge, at most 1 h. L40S with 44 GiB instead of A10G with 22 GiB
  # FITS: at most 11.4 of 44.3 GiB per GPU (26%), 3.7 of 59.2 GiB per host (6%); 11.20 USD an hour in us-east-1
  {
    name                = "larger-gpu"
    reason              = "L40S with 44 GiB instead of A10G with 22 GiB"
    instance_type       = "ml.g6e.2xlarge"
    instance_count      = 4
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 25.6
  },
]
