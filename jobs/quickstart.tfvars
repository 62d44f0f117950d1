# Rendered by sagefit from quickstart.yaml. Edit that file, not this one. sha256 774c33ce6ca4dc0d

name        = "quickstart"
platform    = "dev"
description = "Handwritten digits on a small instance"

image = { framework = "sklearn", version = "1.2-1" }
code = {
  source_dir  = "../examples/quickstart"
  entry_point = "train.py"
  exclude     = ["data/**", "*.md", "export_data.py"]
}
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters    = { cache = "true", epochs = "2" }
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 1.0

resources = { input_mode = "File", checkpoints = true, network_isolation = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
attempts = [
  # 0: ml.m5.large, at most 10 min. Fastest when the augmented data fits beside the process
  {
    name                = "in-memory"
    reason              = "Fastest when the augmented data fits beside the process"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { host_memory = "streaming", capacity = "larger" }
  },
  # 1: ml.m5.large, at most 10 min. Same batches, recomputed instead of kept, resumed from the checkpoint
  {
    name                = "streaming"
    reason              = "Same batches, recomputed instead of kept, resumed from the checkpoint"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    hyperparameters     = { cache = "false" }
    volume_size_gb      = 30
    max_runtime_seconds = 600
    next                = { host_memory = "larger", capacity = "larger" }
  },
  # 2: ml.m5.xlarge, at most 10 min. Twice the memory per host
  {
    name                = "larger"
    reason              = "Twice the memory per host"
    instance_type       = "ml.m5.xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { cache = "false" }
    volume_size_gb      = 30
    max_runtime_seconds = 600
  },
]
