# Rendered by sagefit from scheduled.yaml. Edit that file, not this one. sha256 219ec2b0e27375a7

name        = "scheduled"
platform    = "dev"
description = "Handwritten digits, trained anew every week"

image = { framework = "sklearn", version = "1.2-1" }
code  = { source_dir = "../examples/sklearn/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters = { folds = "3" }
environment     = {}
metric_definitions = [
  { name = "cv_accuracy", regex = "cv_accuracy=([0-9.]+)" },
  { name = "accuracy", regex = "^accuracy=([0-9.]+)" },
]
max_price = 1.0
schedule  = { expression = "cron(0 6 ? * MON *)", timezone = "Europe/Berlin" }

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.07 USD in us-east-1; repeats after internal errors of AWS could add at most 0.14 USD.
attempts = [
  # 0: ml.m5.large, at most 10 min. The cheapest that fits
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The cheapest that fits"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next = {
      host_memory = "other-capacity"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 3.5
  },
  # 1: ml.m5.large, at most 10 min. 60 GB of disk instead of 30
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 600
    memory_percent      = 3.5
  },
  # 2: ml.m5.xlarge, at most 10 min. Another pool of capacity with no less memory, at the nearest price. 15 GiB of usable host memory instead of 7
  # FITS: at most 0.3 of 14.8 GiB per host (2%); 0.23 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price. 15 GiB of usable host memory instead of 7"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 1.8
  },
]
