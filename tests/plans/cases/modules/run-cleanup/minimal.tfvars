context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
}

platform = "dev"
