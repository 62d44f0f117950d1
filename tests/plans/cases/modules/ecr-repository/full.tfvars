context = {
  partition  = "aws"
  region     = "us-east-1"
  account_id = "123456789012"
  prefix     = "sagefit-dev"
  tags       = { Team = "vision" }
}

name             = "vision/own"
encryption       = { kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555" }
force_delete     = true
lifecycle_policy = { untagged_days = 3, keep_images = 20 }
mutable_tags     = true
