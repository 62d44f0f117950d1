# Rendered by sagefit from model-choice-bert.yaml. Edit that file, not this one. sha256 540e5d1aafb8437f

name        = "model-choice-bert"
platform    = "dev"
description = "bert-base-uncased learns to name what ended a training job"

image    = { framework = "huggingface", version = "4.56" }
code     = { source_dir = "../examples/bert-finetune", entry_point = "train.py", exclude = ["*.md"] }
channels = { train = { local_path = "../modules/training-job/failures.json" } }
hyperparameters = {
  bf16                        = "true"
  gradient_accumulation_steps = "1"
  gradient_checkpointing      = "false"
  learning_rate               = "2e-05"
  max_length                  = "512"
  model_name                  = "bert-base-uncased"
  num_train_epochs            = "3"
  per_device_train_batch_size = "32"
}
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 20.0

resources = { input_mode = "File", checkpoints = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 6.19 USD in us-east-1; repeats after internal errors of AWS could add at most 12.38 USD.
attempts = [
  # 0: ml.g6.xlarge, at most 1 h. The cheapest that fits
  # FITS: at most 11.5 of 22.0 GiB per GPU (53%), 2.9 of 14.8 GiB per host (19%); 1.13 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The cheapest that fits"
    instance_type       = "ml.g6.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next = {
      gpu_memory  = "accumulate-2"
      host_memory = "other-capacity"
      disk        = "other-capacity"
      capacity    = "other-capacity"
      quota       = "other-capacity"
    }
    memory_percent = 52.5
  },
  # 1: ml.g6.xlarge, at most 1 h. Micro-batch 16 instead of 32, accumulation 2 instead of 1: the same effective batch
  # FITS: at most 7.9 of 22.0 GiB per GPU (36%), 2.9 of 14.8 GiB per host (19%); 1.13 USD an hour in us-east-1
  {
    name                = "accumulate-2"
    reason              = "Micro-batch 16 instead of 32, accumulation 2 instead of 1: the same effective batch"
    instance_type       = "ml.g6.xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_accumulation_steps = "2", per_device_train_batch_size = "16" }
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "checkpointing", host_memory = "larger-gpu" }
    memory_percent      = 35.8
  },
  # 2: ml.g6.xlarge, at most 1 h. Activations are computed a second time instead of kept
  # FITS: at most 4.3 of 22.0 GiB per GPU (20%), 2.9 of 14.8 GiB per host (19%); 1.13 USD an hour in us-east-1
  {
    name           = "checkpointing"
    reason         = "Activations are computed a second time instead of kept"
    instance_type  = "ml.g6.xlarge"
    instance_count = 1
    spot           = false
    hyperparameters = {
      gradient_accumulation_steps = "2"
      gradient_checkpointing      = "true"
      per_device_train_batch_size = "16"
    }
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "larger-gpu", host_memory = "larger-gpu" }
    memory_percent      = 19.8
  },
  # 3: ml.g6.2xlarge, at most 1 h. Another pool of capacity with no less memory, at the nearest price. 30 GiB of usable host memory instead of 15
  # FITS: at most 11.5 of 22.0 GiB per GPU (53%), 2.9 of 29.6 GiB per host (10%); 1.22 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price. 30 GiB of usable host memory instead of 15"
    instance_type       = "ml.g6.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "larger-gpu" }
    memory_percent      = 52.5
  },
  # 4: ml.g6e.xlarge, at most 1 h. L40S with 44 GiB instead of L4 with 22 GiB
  # FITS: at most 4.3 of 44.3 GiB per GPU (10%), 2.9 of 29.6 GiB per host (10%); 2.61 USD an hour in us-east-1
  {
    name           = "larger-gpu"
    reason         = "L40S with 44 GiB instead of L4 with 22 GiB"
    instance_type  = "ml.g6e.xlarge"
    instance_count = 1
    spot           = false
    hyperparameters = {
      gradient_accumulation_steps = "2"
      gradient_checkpointing      = "true"
      per_device_train_batch_size = "16"
    }
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 9.8
  },
]
