context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
  tags       = { Team = "vision" }
}

name                   = "large-gpu"
keep_alive_seconds     = 7200
max_keep_alive_seconds = 10800
pool_count             = 2

match = {
  instance_type                   = "ml.p4d.24xlarge"
  instance_count                  = 4
  volume_size_gb                  = 500
  role_arn                        = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
  volume_kms_key_arn              = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
  subnet_ids                      = ["subnet-0a"]
  security_group_ids              = ["sg-0a"]
  network_isolation               = true
  encrypt_inter_container_traffic = true
}
