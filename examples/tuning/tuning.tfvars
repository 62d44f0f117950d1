# Rendered by sagefit from tuning.yaml. Edit that file, not this one. sha256 a38d8a1671407e20

name        = "tuning"
platform    = "dev"
description = "Handwritten digits, hyperparameters found by random search"

image = { framework = "sklearn", version = "1.2-1" }
code  = { source_dir = "../examples/tuning/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters = { shifts = "true" }
environment     = {}
metric_definitions = [
  { name = "validation_accuracy", regex = "validation_accuracy=([0-9.]+)" },
  { name = "accuracy", regex = "^accuracy=([0-9.]+)" },
]
max_price = 1.0
tuning = {
  strategy          = "Random"
  objective         = { metric = "validation_accuracy", type = "Maximize" }
  max_jobs          = 4
  max_parallel_jobs = 2
  seed              = 1
  ranges = {
    components = { type = "Integer", min = 10, max = 60 }
    cost       = { type = "Continuous", min = 0.1, max = 100, scaling = "Logarithmic" }
    gamma      = { type = "Continuous", min = 0.001, max = 1, scaling = "Logarithmic" }
    kernel     = { type = "Categorical", values = ["rbf", "poly"] }
  }
}

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.11 USD in us-east-1; repeats after internal errors of AWS could add at most 0.21 USD.
attempts = [
  # 0: ml.m5.large, at most 4 x 5 min. Every picture five times, moved by a pixel each way
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "shifted"
    reason              = "Every picture five times, moved by a pixel each way"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "plain" }
    memory_percent      = 3.6
  },
  # 1: ml.m5.large, at most 4 x 5 min. The pictures as they are need a fifth of the memory
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "plain"
    reason              = "The pictures as they are need a fifth of the memory"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    hyperparameters     = { shifts = "false" }
    volume_size_gb      = 30
    max_runtime_seconds = 300
    memory_percent      = 3.6
  },
]
