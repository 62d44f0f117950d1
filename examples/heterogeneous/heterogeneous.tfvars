# Rendered by sagefit from heterogeneous.yaml. Edit that file, not this one. sha256 b9d3c3a239f2a1e1

name        = "heterogeneous"
platform    = "dev"
description = "Handwritten digits, prepared by one group of instances and learned by another"

image = { framework = "pytorch", version = "2.6" }
code  = { source_dir = "../examples/heterogeneous/code", entry_point = "train.py" }
channels = {
  test = { local_path = "../examples/quickstart/data/test", instance_groups = ["train"] }
  train = {
    local_path      = "../examples/quickstart/data/train"
    distribution    = "ShardedByS3Key"
    instance_groups = ["prepare"]
  }
}
hyperparameters = { batch_size = "64", epochs = "6" }
environment     = {}
metric_definitions = [
  { name = "accuracy", regex = "^accuracy=([0-9.]+)" },
  { name = "batches", regex = "batches=([0-9]+)" },
  { name = "hosts", regex = "hosts=([0-9]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.44 USD in us-east-1; repeats after internal errors of AWS could add at most 0.89 USD.
attempts = [
  # 0: ml.g5.xlarge + 2 x ml.c5.2xlarge, at most 10 min.
  # FITS: at most 0.6 of 14.8 GiB per host (4%); 1.41 USD an hour in us-east-1
  {
    name                = "main"
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    instance_groups = [
      { name = "train", instance_type = "ml.g5.xlarge", instance_count = 1 },
      { name = "prepare", instance_type = "ml.c5.2xlarge", instance_count = 2 },
    ]
    memory_percent = 3.7
  },
]
