context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
  tags       = { Team = "vision" }
}

platform                 = "dev"
interval_seconds         = 300
permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
