context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
  tags       = { Team = "vision" }
}

name  = "small"
match = { instance_type = "ml.m5.large" }
