context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
  tags       = { Team = "vision" }
}

role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
dashboard  = false
emails     = ["ml-team@example.com", "on-call@example.com"]
evaluation = { period_seconds = 120, periods = 5, datapoints = 3 }
events     = { stopped_attempts = false, failed_runs = false }
thresholds = { host_memory = 80, container_memory = 85, gpu_memory = 0, disk = 70 }
topic_key  = { create = false, id = "alias/company" }
