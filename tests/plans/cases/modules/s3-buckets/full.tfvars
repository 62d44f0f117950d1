context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
  tags       = { Team = "vision" }
}

kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"

buckets = {
  models = {
    force_destroy = true
    retention     = { expire_days = 90, noncurrent_days = 10, abort_multipart_days = 2 }
    access_log    = { bucket = "company-access-logs", prefix = "sagefit/" }
  }
  scratch = {
    versioning = false
    retention  = {}
  }
}
