# Rendered by sagefit from tensorflow-float16.yaml. Edit that file, not this one. sha256 e0b962cd93eb4d8a

name        = "tensorflow-float16"
platform    = "dev"
description = "Digits with Keras in mixed_float16"

image = { framework = "tensorflow", version = "2.19" }
code  = { source_dir = "../examples/tensorflow-mixed-precision/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters = { batch_size = "1024", layers = "2", mixed_precision = "fp16", steps = "10" }
environment     = {}
metric_definitions = [
  { name = "accuracy", regex = "accuracy=([0-9.]+)" },
  { name = "activations_mib", regex = "activations_mib=([0-9.]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = true, network_isolation = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.37 USD in us-east-1; repeats after internal errors of AWS could add at most 0.75 USD.
attempts = [
  # 0: ml.g4dn.xlarge, at most 10 min. The type that the job file names
  # FITS: at most 1.4 of 14.6 GiB per GPU (10%), 2.4 of 14.8 GiB per host (16%); 0.74 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.g4dn.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next = {
      gpu_memory  = "larger-gpu"
      host_memory = "other-capacity"
      disk        = "other-capacity"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 16.3
  },
  # 1: ml.g4dn.2xlarge, at most 10 min. Another pool of capacity with no less memory, at the nearest price. 30 GiB of usable host memory instead of 15
  # FITS: at most 1.4 of 14.6 GiB per GPU (10%), 2.4 of 29.6 GiB per host (8%); 0.94 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price. 30 GiB of usable host memory instead of 15"
    instance_type       = "ml.g4dn.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 9.9
  },
  # 2: ml.g6.xlarge, at most 10 min. L4 with 22 GiB instead of T4 with 15 GiB
  # FITS: at most 1.4 of 22.0 GiB per GPU (7%), 2.4 of 14.8 GiB per host (16%); 1.13 USD an hour in us-east-1
  {
    name                = "larger-gpu"
    reason              = "L4 with 22 GiB instead of T4 with 15 GiB"
    instance_type       = "ml.g6.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 16.3
  },
]
