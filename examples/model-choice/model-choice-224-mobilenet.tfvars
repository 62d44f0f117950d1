# Rendered by sagefit from model-choice-224-mobilenet.yaml. Edit that file, not this one. sha256 531fc03cadb8db66

name        = "model-choice-224-mobilenet"
platform    = "dev"
description = "Digits of 224 pixels with mobilenet_v3_small"

image = { framework = "pytorch", version = "2.6" }
code  = { source_dir = "../examples/model-choice/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters    = { batch_size = "256", image_size = "224", model = "mobilenet_v3_small", steps = "1000" }
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 20.0

resources = { input_mode = "File", checkpoints = true, network_isolation = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 1.93 USD in us-east-1; repeats after internal errors of AWS could add at most 3.85 USD.
attempts = [
  # 0: ml.g4dn.xlarge, at most 1 h. The cheapest that fits
  # FITS: at most 7.8 of 14.6 GiB per GPU (53%), 2.8 of 14.8 GiB per host (19%); 0.74 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The cheapest that fits"
    instance_type       = "ml.g4dn.xlarge"
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
    memory_percent = 53.4
  },
  # 1: ml.g4dn.2xlarge, at most 1 h. Another pool of capacity with no less memory, at the nearest price. 30 GiB of usable host memory instead of 15
  # FITS: at most 7.8 of 14.6 GiB per GPU (53%), 2.8 of 29.6 GiB per host (9%); 0.94 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price. 30 GiB of usable host memory instead of 15"
    instance_type       = "ml.g4dn.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 53.4
  },
  # 2: ml.g6.xlarge, at most 1 h. L4 with 22 GiB instead of T4 with 15 GiB
  # FITS: at most 7.8 of 22.0 GiB per GPU (35%), 2.8 of 14.8 GiB per host (19%); 1.13 USD an hour in us-east-1
  {
    name                = "larger-gpu"
    reason              = "L4 with 22 GiB instead of T4 with 15 GiB"
    instance_type       = "ml.g6.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 35.4
  },
]
