# A job with every optional block, and an edge for every class that can have one.
name        = "segment-roads"
platform    = "regulated"
description = "Roads in aerial images"
image       = { repository = "", digest = "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945" }
code        = { source_dir = "../modules/training-job/tests/example/code", entry_point = "train.py", arguments = ["--fast"] }
environment = { NCCL_DEBUG = "WARN" }
tags        = { Project = "roads" }
tracing     = true

channels = {
  train      = { s3_uri = "s3://company-data/roads/train/", mode = "FastFile", shuffle_seed = 7 }
  validation = { s3_uri = "s3://company-data/roads/validation/", content_type = "image/png" }
}

hyperparameters    = { batch_size = "32", accumulation_steps = "1", workers = "8" }
metric_definitions = [{ name = "iou", regex = "iou=([0-9.]+)" }]
resources          = { warm_pool = "small-gpu", output_compression = "NONE", retry_attempts = 2 }
schedule           = { expression = "cron(0 6 * * ? *)", timezone = "Europe/Berlin" }

attempts = [
  {
    name                = "pool"
    reason              = "The pool of the platform"
    instance_type       = "ml.g5.2xlarge"
    max_runtime_seconds = 14400
    next = {
      gpu_memory    = "half-batch"
      host_memory   = "larger-host"
      shared_memory = "fewer-workers"
      disk          = "larger-host"
      capacity      = "larger-host"
      quota         = "larger-host"
      time          = "four-gpus"
      internal      = "fewer-workers"
    }
  },
  {
    name                = "half-batch"
    reason              = "Same effective batch, half the activations"
    instance_type       = "ml.g5.2xlarge"
    hyperparameters     = { batch_size = "16", accumulation_steps = "2" }
    max_runtime_seconds = 18000
    next                = { gpu_memory = "four-gpus", host_memory = "larger-host" }
  },
  {
    name                = "fewer-workers"
    reason              = "Two loader workers instead of eight"
    instance_type       = "ml.g5.2xlarge"
    hyperparameters     = { workers = "2" }
    environment         = { OMP_NUM_THREADS = "2" }
    keep_alive_seconds  = 600
    max_runtime_seconds = 18000
    next                = { host_memory = "larger-host", shared_memory = "larger-host" }
  },
  {
    name                = "larger-host"
    reason              = "Twice the host memory, spare capacity"
    instance_type       = "ml.g5.8xlarge"
    spot                = true
    volume_size_gb      = 200
    max_runtime_seconds = 14400
    max_wait_seconds    = 28800
    next                = { gpu_memory = "four-gpus", spot = "four-gpus", capacity = "four-gpus", host_memory = "four-gpus" }
  },
  {
    name                = "four-gpus"
    reason              = "Four GPUs on one host"
    instance_type       = "ml.g5.12xlarge"
    volume_size_gb      = 200
    max_runtime_seconds = 14400
    max_pending_seconds = 7200
  },
]
