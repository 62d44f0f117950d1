mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "eu-west-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
}

variables {
  context = {
    partition  = "aws"
    region     = "eu-west-1"
    account_id = "123456789012"
    prefix     = "sagefit-test"
    tags       = { Team = "vision" }
  }
  buckets = { data = {} }
}

run "names_and_arns_are_known_at_plan" {
  command = plan

  assert {
    condition     = output.names == { data = "sagefit-test-123456789012-eu-west-1-data" }
    error_message = "Names must be <prefix>-<account>-<region>-<key>."
  }

  assert {
    condition     = output.arns == { data = "arn:aws:s3:::sagefit-test-123456789012-eu-west-1-data" }
    error_message = "ARNs must be built from the names."
  }

  assert {
    condition     = aws_s3_bucket.this["data"].bucket == output.names["data"] && aws_s3_bucket.this["data"].tags == tomap({ Team = "vision" })
    error_message = "The bucket must have the published name and the context's tags."
  }
}

run "defaults_are_closed" {
  command = plan

  assert {
    condition     = aws_s3_bucket.this["data"].force_destroy == false
    error_message = "A bucket with objects must not be destroyed by default."
  }

  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.this["data"].block_public_acls,
      aws_s3_bucket_public_access_block.this["data"].block_public_policy,
      aws_s3_bucket_public_access_block.this["data"].ignore_public_acls,
      aws_s3_bucket_public_access_block.this["data"].restrict_public_buckets,
    ])
    error_message = "Public access must be blocked in all four ways."
  }

  assert {
    condition     = aws_s3_bucket_ownership_controls.this["data"].rule[0].object_ownership == "BucketOwnerEnforced"
    error_message = "ACLs must be off."
  }

  assert {
    condition     = aws_s3_bucket_versioning.this["data"].versioning_configuration[0].status == "Enabled"
    error_message = "Versioning must be on."
  }

  assert {
    condition = (
      one(aws_s3_bucket_server_side_encryption_configuration.this["data"].rule).bucket_key_enabled &&
      one(one(aws_s3_bucket_server_side_encryption_configuration.this["data"].rule).apply_server_side_encryption_by_default).sse_algorithm == "aws:kms"
    )
    error_message = "Objects must be encrypted by KMS with a bucket key."
  }

  assert {
    condition     = length(aws_s3_bucket_logging.this) == 0
    error_message = "Access logs must be opt-in."
  }

  assert {
    condition = (
      one(aws_s3_bucket_lifecycle_configuration.this["data"].rule).abort_incomplete_multipart_upload[0].days_after_initiation == 7 &&
      length(one(aws_s3_bucket_lifecycle_configuration.this["data"].rule).expiration) == 0 &&
      length(one(aws_s3_bucket_lifecycle_configuration.this["data"].rule).noncurrent_version_expiration) == 0
    )
    error_message = "Unfinished uploads must go, and nothing else."
  }
}

run "policy_denies_plain_http_old_tls_and_weaker_encryption" {
  command = plan

  assert {
    condition = {
      for statement in jsondecode(aws_s3_bucket_policy.this["data"].policy).Statement :
      statement.Sid => jsonencode(statement.Condition)
      } == {
      DenyPlainHttp            = jsonencode({ Bool = { "aws:SecureTransport" = "false" } })
      DenyOldTls               = jsonencode({ NumericLessThan = { "s3:TlsVersion" = "1.2" } })
      DenyOtherEncryption      = jsonencode({ Null = { "s3:x-amz-server-side-encryption" = "false" }, StringNotEquals = { "s3:x-amz-server-side-encryption" = ["aws:kms", "aws:kms:dsse"] } })
      DenyCustomerProvidedKeys = jsonencode({ Null = { "s3:x-amz-server-side-encryption-customer-algorithm" = "false" } })
    }
    error_message = "The policy must hold these denials."
  }

  assert {
    condition     = alltrue([for statement in jsondecode(aws_s3_bucket_policy.this["data"].policy).Statement : statement.Effect == "Deny"])
    error_message = "A bucket policy must only deny; what it allowed would bypass the roles."
  }
}

run "own_key_encrypts" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111"
  }

  assert {
    condition     = one(one(aws_s3_bucket_server_side_encryption_configuration.this["data"].rule).apply_server_side_encryption_by_default).kms_master_key_id == "arn:aws:kms:eu-west-1:123456789012:key/0000-1111"
    error_message = "The key must be the bucket's default."
  }
}

run "retention_makes_lifecycle_rules" {
  command = plan

  variables {
    buckets = { data = { retention = { expire_days = 90 } }, models = { retention = {} }, raw = { unfinished_upload_days = 0 } }
  }

  assert {
    condition     = keys(aws_s3_bucket_lifecycle_configuration.this) == ["data", "models"]
    error_message = "A bucket without retention whose unfinished uploads stay must get no lifecycle rule."
  }

  assert {
    condition = (
      aws_s3_bucket_lifecycle_configuration.this["data"].rule[0].expiration[0].days == 90 &&
      aws_s3_bucket_lifecycle_configuration.this["data"].rule[0].noncurrent_version_expiration[0].noncurrent_days == 30 &&
      aws_s3_bucket_lifecycle_configuration.this["data"].rule[0].abort_incomplete_multipart_upload[0].days_after_initiation == 7
    )
    error_message = "The rule must expire objects, old versions and unfinished uploads."
  }

  assert {
    condition     = length(aws_s3_bucket_lifecycle_configuration.this["models"].rule[0].expiration) == 0
    error_message = "Without expire_days no object may expire."
  }

  assert {
    condition     = length(aws_s3_bucket_lifecycle_configuration.this["data"].rule[0].filter) == 1
    error_message = "The rule needs an explicit filter."
  }
}

run "access_log_goes_to_the_target" {
  command = plan

  variables {
    buckets = { data = { access_log = { bucket = "company-logs", prefix = "sagefit/" } } }
  }

  assert {
    condition     = aws_s3_bucket_logging.this["data"].target_bucket == "company-logs" && aws_s3_bucket_logging.this["data"].target_prefix == "sagefit/"
    error_message = "Access logs must go to the bucket given."
  }
}

run "versioning_and_force_destroy_can_be_chosen" {
  command = plan

  variables {
    buckets = { scratch = { versioning = false, force_destroy = true } }
  }

  assert {
    condition     = length(aws_s3_bucket_versioning.this) == 0 && aws_s3_bucket.this["scratch"].force_destroy
    error_message = "Versioning off and force_destroy on must reach the bucket."
  }
}

# Rules

run "buckets_are_not_empty" {
  command = plan

  variables {
    buckets = {}
  }

  expect_failures = [var.buckets]
}

run "bucket_key_is_lower_case" {
  command = plan

  variables {
    buckets = { Raw_Data = {} }
  }

  expect_failures = [var.buckets]
}

run "bucket_name_fits_s3" {
  command = plan

  variables {
    buckets = { a-key-that-is-far-too-long-for-a-bucket = {} }
  }

  expect_failures = [var.buckets]
}

run "retention_days_are_positive" {
  command = plan

  variables {
    buckets = { data = { retention = { expire_days = 0 } } }
  }

  expect_failures = [var.buckets]
}

run "retention_days_are_whole" {
  command = plan

  variables {
    buckets = { data = { retention = { noncurrent_days = 1.5 } } }
  }

  expect_failures = [var.buckets]
}

run "access_log_bucket_is_no_uri" {
  command = plan

  variables {
    buckets = { data = { access_log = { bucket = "s3://company-logs" } } }
  }

  expect_failures = [var.buckets]
}

run "kms_key_is_a_key_arn" {
  command = plan

  variables {
    kms_key_arn = "alias/platform"
  }

  expect_failures = [var.kms_key_arn]
}

run "policies_name_the_arn_of_the_bucket" {
  command = plan

  override_resource {
    target          = aws_s3_bucket.this["data"]
    override_during = plan
    values          = { arn = "arn:aws-cn:s3:::sagefit-test-data" }
  }

  expect_failures = [aws_s3_bucket.this]
}

run "unfinished_upload_days_are_whole" {
  command = plan

  variables {
    buckets = { data = { unfinished_upload_days = 1.5 } }
  }

  expect_failures = [var.buckets]
}
