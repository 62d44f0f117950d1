name  = "digits"
image = { framework = "pytorch", version = "2.6" }
code  = { source_dir = "../modules/training-job/tests/example/code", entry_point = "train.py" }
attempts = [
  { name = "wide", instance_type = "ml.m5.large", next = { host_memory = "narrow" } },
  { name = "narrow", instance_type = "ml.m5.large", hyperparameters = { width = "1" } },
]

platform = {
  schema     = 1
  name       = "dev"
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
  buckets    = { data = "company-data", artifacts = "company-artifacts", checkpoints = "company-checkpoints" }
}

metric_definitions = [{ name = "loss", regex = "loss=([0-9.]+)" }]
tuning = {
  strategy            = "Random"
  objective           = { metric = "loss", type = "Minimize" }
  max_jobs            = 6
  max_parallel_jobs   = 3
  max_runtime_seconds = 7200
  seed                = 1
  ranges = {
    rate  = { type = "Continuous", min = 0.001, max = 0.1, scaling = "Logarithmic" }
    depth = { type = "Integer", min = 2, max = 6 }
    mode  = { type = "Categorical", values = ["fast", "exact"] }
  }
}
