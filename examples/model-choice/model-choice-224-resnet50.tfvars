# Rendered by sagefit from model-choice-224-resnet50.yaml. Edit that file, not this one. sha256 6b2cb4022040e7a0

name        = "model-choice-224-resnet50"
platform    = "dev"
description = "Digits of 224 pixels with resnet50"

image = { framework = "pytorch", version = "2.6" }
code  = { source_dir = "../examples/model-choice/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters    = { batch_size = "256", image_size = "224", model = "resnet50", steps = "1000" }
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 20.0

resources = { input_mode = "File", checkpoints = true, network_isolation = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 9.93 USD in us-east-1; repeats after internal errors of AWS could add at most 19.87 USD.
attempts = [
  # 0: ml.g6e.xlarge, at most 1 h. The cheapest that fits
  # FITS: at most 32.0 of 44.3 GiB per GPU (72%), 2.9 of 29.6 GiB per host (10%); 2.61 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The cheapest that fits"
    instance_type       = "ml.g6e.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next = {
      gpu_memory  = "larger-gpu"
      host_memory = "other-capacity"
      disk        = "other-capacity"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 72.2
  },
  # 1: ml.g6e.2xlarge, at most 1 h. Another pool of capacity with no less memory, at the nearest price. 59 GiB of usable host memory instead of 30
  # FITS: at most 32.0 of 44.3 GiB per GPU (72%), 2.9 of 59.2 GiB per host (5%); 2.80 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price. 59 GiB of usable host memory instead of 30"
    instance_type       = "ml.g6e.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "larger-gpu" }
    memory_percent      = 72.2
  },
  # 2: ml.g7e.2xlarge, at most 1 h. RTX PRO Server 6000 with 95 GiB instead of L40S with 44 GiB
  # FITS: at most 32.1 of 95.0 GiB per GPU (34%), 2.9 of 59.2 GiB per host (5%); 4.20 USD an hour in us-east-1
  {
    name                = "larger-gpu"
    reason              = "RTX PRO Server 6000 with 95 GiB instead of L40S with 44 GiB"
    instance_type       = "ml.g7e.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 33.8
  },
]
