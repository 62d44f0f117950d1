# Rendered by sagefit from spark-preprocessing.yaml. Edit that file, not this one. sha256 d15ecd5b9f446b82

name        = "spark-preprocessing"
platform    = "dev"
description = "Features by Apache Spark, then a classifier"

image = { framework = "sklearn", version = "1.2-1" }
code  = { source_dir = "../examples/spark-preprocessing/code", entry_point = "train.py" }
processing = [
  {
    name  = "features"
    image = { framework = "spark", version = "3.5" }
    code = {
      source_dir  = "../examples/spark-preprocessing/features"
      entry_point = "features.py"
      arguments = [
        "--events",
        "/opt/ml/processing/input/events",
        "--visits",
        "/opt/ml/processing/input/visits/visits.csv",
        "--train",
        "/opt/ml/processing/output/train",
        "--test",
        "/opt/ml/processing/output/test",
      ]
    }
    inputs = {
      events = { local_path = "../examples/spark-preprocessing/data/events" }
      visits = { local_path = "../examples/spark-preprocessing/data/visits.csv" }
    }
    outputs             = ["train", "test"]
    instance_type       = "ml.m5.2xlarge"
    max_runtime_seconds = 300
  },
]
channels           = { test = { from = "features/test" }, train = { from = "features/train" } }
hyperparameters    = {}
environment        = {}
metric_definitions = [{ name = "auc", regex = "auc=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.large, at most 5 min. The type that the job file names
  {
    name                = "main"
    reason              = "The type that the job file names"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next = {
      host_memory = "larger-host"
      disk        = "larger-volume"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
  },
  # 1: ml.m5.large, at most 5 min. 60 GB of disk instead of 30
  {
    name                = "larger-volume"
    reason              = "60 GB of disk instead of 30"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 60
    max_runtime_seconds = 300
  },
  # 2: ml.m6i.large, at most 5 min. Another pool of capacity with no less memory, at the nearest price
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.m6i.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
    next                = { host_memory = "larger-host" }
  },
  # 3: ml.r6i.large, at most 5 min. 15 GiB of usable host memory instead of 7
  {
    name                = "larger-host"
    reason              = "15 GiB of usable host memory instead of 7"
    instance_type       = "ml.r6i.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 300
  },
]
