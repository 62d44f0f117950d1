context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
  tags       = { Team = "vision" }
}

name                     = "trainer"
kms_key_arns             = { platform = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555" }
managed_policy_arns      = { features = "arn:aws:iam::123456789012:policy/read-features" }
metric_namespaces        = ["/aws/sagemaker/TrainingJobs", "Vision"]
permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
repository_arns          = ["arn:aws:ecr:us-east-1:123456789012:repository/sagefit-dev", "arn:aws:ecr:us-east-1:763104351884:repository/pytorch-training"]

buckets = {
  data        = { name = "company-data" }
  artifacts   = { name = "company-artifacts", access = "write", prefixes = ["jobs/", "shared/"] }
  checkpoints = { name = "company-checkpoints", access = "sync", prefixes = ["jobs/"] }
}

network = {
  subnet_ids         = ["subnet-0b", "subnet-0a"]
  security_group_ids = ["sg-0a"]
}
