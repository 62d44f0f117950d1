name     = "digits"
image    = { framework = "pytorch", version = "2.6" }
attempts = [{ name = "only", instance_type = "ml.m5.large" }]

platform = {
  schema     = 1
  name       = "dev"
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
  buckets    = { data = "company-data", artifacts = "company-artifacts", checkpoints = "company-checkpoints" }
}

processing = [{
  name          = "features"
  image         = { framework = "spark", version = "3.5" }
  code          = { source_dir = "../modules/training-job/tests/example/code", entry_point = "train.py", arguments = ["--fast"] }
  inputs        = { raw = { s3_uri = "s3://company-data/raw/" } }
  outputs       = ["train"]
  instance_type = "ml.m5.xlarge"
}]
channels = { train = { from = "features/train" } }
