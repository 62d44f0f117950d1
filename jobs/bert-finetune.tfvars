# Rendered by sagefit from bert-finetune.yaml. Edit that file, not this one. sha256 9d227ae2e96c715e

name        = "bert-finetune"
platform    = "dev"
description = "BERT learns to name what ended a training job"

image    = { framework = "huggingface", version = "4.56" }
code     = { source_dir = "../examples/bert-finetune", entry_point = "train.py", exclude = ["*.md"] }
channels = { train = { local_path = "../modules/training-job/failures.json" } }
hyperparameters = {
  bf16                        = "true"
  dataloader_num_workers      = "4"
  gradient_accumulation_steps = "1"
  gradient_checkpointing      = "false"
  learning_rate               = "2e-05"
  max_length                  = "512"
  model_name                  = "bert-large-uncased"
  num_train_epochs            = "3"
  per_device_train_batch_size = "32"
}
environment        = {}
metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
max_price          = 20.0

resources = { input_mode = "File", checkpoints = true }

# A run starts with the first attempt. When one fails, `next` names the attempt for that class of failure.
# A run costs at most 15.13 USD in us-east-1; repeats after internal errors of AWS could add at most 30.26 USD.
attempts = [
  # 0: ml.g6e.xlarge, spot, at most 1 h. The cheapest that fits
  # FITS: at most 28.9 of 44.3 GiB per GPU (65%), 4.8 of 29.6 GiB per host (16%); 2.61 USD an hour in us-east-1
  {
    name                = "main"
    reason              = "The cheapest that fits"
    instance_type       = "ml.g6e.xlarge"
    instance_count      = 1
    spot                = true
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    max_wait_seconds    = 7200
    next = {
      gpu_memory    = "accumulate-2"
      host_memory   = "fewer-workers"
      shared_memory = "fewer-workers"
      disk          = "larger-host"
      capacity      = "on-demand"
      quota         = "on-demand"
      spot          = "on-demand"
    }
    memory_percent = 65.2
  },
  # 1: ml.g6e.xlarge, at most 1 h. The same without waiting for spare capacity
  # FITS: at most 28.9 of 44.3 GiB per GPU (65%), 4.8 of 29.6 GiB per host (16%); 2.61 USD an hour in us-east-1
  {
    name                = "on-demand"
    reason              = "The same without waiting for spare capacity"
    instance_type       = "ml.g6e.xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next = {
      gpu_memory    = "accumulate-2"
      host_memory   = "fewer-workers"
      shared_memory = "fewer-workers"
      disk          = "larger-host"
      capacity      = "other-capacity"
      quota         = "other-capacity"
    }
    memory_percent = 65.2
  },
  # 2: ml.g6e.xlarge, at most 1 h. Micro-batch 16 instead of 32, accumulation 2 instead of 1: the same effective batch
  # FITS: at most 19.6 of 44.3 GiB per GPU (44%), 4.8 of 29.6 GiB per host (16%); 2.61 USD an hour in us-east-1
  {
    name                = "accumulate-2"
    reason              = "Micro-batch 16 instead of 32, accumulation 2 instead of 1: the same effective batch"
    instance_type       = "ml.g6e.xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { gradient_accumulation_steps = "2", per_device_train_batch_size = "16" }
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "checkpointing", host_memory = "larger-gpu" }
    memory_percent      = 44.2
  },
  # 3: ml.g6e.xlarge, at most 1 h. Activations are computed a second time instead of kept
  # FITS: at most 9.6 of 44.3 GiB per GPU (22%), 4.8 of 29.6 GiB per host (16%); 2.61 USD an hour in us-east-1
  {
    name           = "checkpointing"
    reason         = "Activations are computed a second time instead of kept"
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
    next                = { gpu_memory = "larger-gpu", host_memory = "larger-gpu" }
    memory_percent      = 21.7
  },
  # 4: ml.g6e.xlarge, at most 1 h. 2 loader workers instead of 4
  # FITS: at most 28.9 of 44.3 GiB per GPU (65%), 4.3 of 29.6 GiB per host (15%); 2.61 USD an hour in us-east-1
  {
    name                = "fewer-workers"
    reason              = "2 loader workers instead of 4"
    instance_type       = "ml.g6e.xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { dataloader_num_workers = "2" }
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { host_memory = "larger-host", disk = "larger-host" }
    memory_percent      = 65.2
  },
  # 5: ml.g6e.2xlarge, at most 1 h. Another pool of capacity with no less memory, at the nearest price
  # FITS: at most 28.9 of 44.3 GiB per GPU (65%), 4.8 of 59.2 GiB per host (8%); 2.80 USD an hour in us-east-1
  {
    name                = "other-capacity"
    reason              = "Another pool of capacity with no less memory, at the nearest price"
    instance_type       = "ml.g6e.2xlarge"
    instance_count      = 1
    spot                = false
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    next                = { gpu_memory = "larger-gpu", host_memory = "larger-host" }
    memory_percent      = 65.2
  },
  # 6: ml.g6e.2xlarge, at most 1 h. 59 GiB of usable host memory instead of 30
  # FITS: at most 28.9 of 44.3 GiB per GPU (65%), 4.3 of 59.2 GiB per host (7%); 2.80 USD an hour in us-east-1
  {
    name                = "larger-host"
    reason              = "59 GiB of usable host memory instead of 30"
    instance_type       = "ml.g6e.2xlarge"
    instance_count      = 1
    spot                = false
    hyperparameters     = { dataloader_num_workers = "2" }
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 65.2
  },
  # 7: ml.g7e.2xlarge, at most 1 h. RTX PRO Server 6000 with 95 GiB instead of L40S with 44 GiB
  # FITS: at most 9.6 of 95.0 GiB per GPU (10%), 4.8 of 59.2 GiB per host (8%); 4.20 USD an hour in us-east-1
  {
    name           = "larger-gpu"
    reason         = "RTX PRO Server 6000 with 95 GiB instead of L40S with 44 GiB"
    instance_type  = "ml.g7e.2xlarge"
    instance_count = 1
    spot           = false
    hyperparameters = {
      gradient_accumulation_steps = "2"
      gradient_checkpointing      = "true"
      per_device_train_batch_size = "16"
    }
    volume_size_gb      = 30
    max_runtime_seconds = 3600
    memory_percent      = 10.1
  },
]
