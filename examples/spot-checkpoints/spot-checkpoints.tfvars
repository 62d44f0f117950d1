# Rendered by sagefit from spot-checkpoints.yaml. Edit that file, not this one. sha256 92c3377f84f90013

name        = "spot-checkpoints"
platform    = "dev"
description = "Handwritten digits on spot capacity that is taken away once"

image = { framework = "sklearn", version = "1.2-1" }
code  = { source_dir = "../examples/spot-checkpoints/code", entry_point = "train.py" }
channels = {
  test  = { local_path = "../examples/quickstart/data/test" }
  train = { local_path = "../examples/quickstart/data/train" }
}
hyperparameters = { epochs = "10", pause = "0.5" }
environment     = {}
metric_definitions = [
  { name = "accuracy", regex = "^accuracy=([0-9.]+)" },
  { name = "starts", regex = "starts=([0-9]+)" },
  { name = "epochs_trained", regex = "epochs_trained=([0-9]+)" },
]
max_price = 1.0

resources = { input_mode = "File", checkpoints = true, poll_seconds = 1 }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 0.05 USD in us-east-1; repeats after internal errors of AWS could add at most 0.09 USD.
attempts = [
  # 0: ml.m5.large, spot, at most 10 min. Spot at up to 90 % less, as long as there is capacity
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "spot"
    reason              = "Spot at up to 90 % less, as long as there is capacity"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = true
    volume_size_gb      = 30
    max_runtime_seconds = 600
    max_wait_seconds    = 1200
    next                = { capacity = "on-demand", spot = "on-demand" }
    memory_percent      = 3.5
  },
  # 1: ml.m5.large, at most 10 min. Goes on from the same checkpoint where spot never came back
  # FITS: at most 0.3 of 7.4 GiB per host (4%); 0.12 USD an hour in us-east-1
  {
    name                = "on-demand"
    reason              = "Goes on from the same checkpoint where spot never came back"
    instance_type       = "ml.m5.large"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 600
    memory_percent      = 3.5
  },
]
