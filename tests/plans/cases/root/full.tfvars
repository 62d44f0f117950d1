name                     = "research"
allowed_instance_types   = ["ml.m5.large", "ml.g5.xlarge"]
log_retention_days       = 90
max_keep_alive_seconds   = 7200
permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
tags                     = { Team = "research" }
kms                      = { key_arn = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555" }
repository               = { untagged_days = 7, keep_images = 50 }
warm_pools               = { small = { instance_type = "ml.g5.xlarge", keep_alive_seconds = 7200 } }

alarms = {
  emails     = ["research@example.com"]
  thresholds = { container_memory = 88 }
}

buckets = {
  retention  = { checkpoints = { expire_days = 14 } }
  access_log = { bucket = "company-access-logs" }
  extra      = { raw = { access = "write" } }
}

execution_role = {
  buckets             = { lake = { name = "company-lake", prefixes = ["public/"] } }
  repository_arns     = ["arn:aws:ecr:us-east-1:210987654321:repository/shared"]
  managed_policy_arns = { features = "arn:aws:iam::123456789012:policy/read-features" }
}

network = {
  subnet_ids         = ["subnet-0b", "subnet-0a"]
  security_group_ids = ["sg-0a"]
}
