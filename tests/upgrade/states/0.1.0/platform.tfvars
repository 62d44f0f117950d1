# What has a state worth keeping: own key, old versions, an extra bucket, a subscription.
name                     = "kept"
kms                      = { create = true }
log_retention_days       = 90
permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
tags                     = { Team = "vision" }
warm_pools               = { small = { instance_type = "ml.m5.large" } }

alarms = {
  emails     = ["ml-team@example.com"]
  thresholds = { container_memory = 90 }
}

buckets = {
  retention = { artifacts = { noncurrent_days = 60 } }
  extra     = { raw = { access = "write" } }
}

network = {
  subnet_ids         = ["subnet-0a"]
  security_group_ids = ["sg-0a"]
  isolation          = true
}
