# Rendered by sagefit from model-parallel.yaml. Edit that file, not this one. sha256 ce6dea4e0aa2c5b1

name        = "model-parallel"
platform    = "dev"
description = "A decoder whose layers are split over four GPUs"

image              = { framework = "pytorch", version = "2.6" }
code               = { source_dir = "../examples/model-parallel/code", entry_point = "train.py" }
channels           = { train = { local_path = "../examples/quickstart/data/train" } }
hyperparameters    = { batch_size = "16", layers = "24", steps = "200", width = "2048" }
environment        = { SAGEFIT_TORCHRUN = "true" }
metric_definitions = [{ name = "loss", regex = "loss=([0-9.]+)" }]
max_price          = 30.0

resources = { input_mode = "File", checkpoints = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 26.83 USD in us-east-1; repeats after internal errors of AWS could add at most 53.65 USD.
attempts = [
  # 0: ml.g5.12xlarge, at most 1 h.
  # FITS: at most 11.8 of 22.0 GiB per GPU (54%), 14.8 of 177.6 GiB per host (8%); 7.09 USD an hour in us-east-1
  {
    name                = "main"
    instance_type       = "ml.g5.12xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "larger-gpu", capacity = "other-capacity", quota = "other-capacity" }
    memory_percent      = 53.8
  },
  # 1: ml.g6.12xlarge, at most 1 h. Four GPUs of another kind, on one host as well
  # FITS: at most 11.8 of 22.0 GiB per GPU (54%), 14.8 of 177.6 GiB per host (8%); 5.75 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Four GPUs of another kind, on one host as well"
    instance_type       = "ml.g6.12xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "larger-gpu" }
    memory_percent      = 53.8
  },
  # 2: ml.g6e.12xlarge, at most 1 h. Four GPUs with twice the memory
  # FITS: at most 11.8 of 44.3 GiB per GPU (27%), 14.8 of 355.2 GiB per host (4%); 13.12 USD an hour in us-east-1
  {
    name                = "larger-gpu"
    reason              = "Four GPUs with twice the memory"
    instance_type       = "ml.g6e.12xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 26.6
  },
]
