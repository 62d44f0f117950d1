name        = "digits"
platform    = "kept"
description = "A job whose state is kept"
image       = { framework = "pytorch", version = "2.6" }
code        = { source_dir = "../tests/upgrade/code", entry_point = "train.py" }
channels    = { train = { s3_uri = "s3://my-data/digits/train/" } }
resources   = { warm_pool = "small" }
schedule    = { expression = "rate(1 day)", enabled = false }
tracing     = true

attempts = [
  { name = "pool", instance_type = "ml.m5.large", max_runtime_seconds = 3600, next = { host_memory = "larger" } },
  { name = "larger", instance_type = "ml.m5.xlarge", max_runtime_seconds = 3600 },
]
