locals {
  names = {
    for key in keys(var.buckets) :
    key => "${var.context.prefix}-${var.context.account_id}-${var.context.region}-${key}"
  }
  arns = { for key, name in local.names : key => "arn:${var.context.partition}:s3:::${name}" }

  # Denials only: who may use a bucket is for the policies of its users to say.
  policies = {
    for key, arn in local.arns : key => {
      Version = "2012-10-17"
      Statement = [
        {
          Sid       = "DenyPlainHttp"
          Effect    = "Deny"
          Principal = "*"
          Action    = "s3:*"
          Resource  = [arn, "${arn}/*"]
          Condition = { Bool = { "aws:SecureTransport" = "false" } }
        },
        {
          Sid       = "DenyOldTls"
          Effect    = "Deny"
          Principal = "*"
          Action    = "s3:*"
          Resource  = [arn, "${arn}/*"]
          Condition = { NumericLessThan = { "s3:TlsVersion" = "1.2" } }
        },
        {
          # A put that asks for nothing gets the bucket's default, which is KMS; one that asks for less is refused.
          Sid       = "DenyOtherEncryption"
          Effect    = "Deny"
          Principal = "*"
          Action    = "s3:PutObject"
          Resource  = "${arn}/*"
          Condition = {
            Null            = { "s3:x-amz-server-side-encryption" = "false" }
            StringNotEquals = { "s3:x-amz-server-side-encryption" = ["aws:kms", "aws:kms:dsse"] }
          }
        },
        {
          # Objects under a key that only their writer has could not be read by the team, nor recovered.
          Sid       = "DenyCustomerProvidedKeys"
          Effect    = "Deny"
          Principal = "*"
          Action    = "s3:PutObject"
          Resource  = "${arn}/*"
          Condition = { Null = { "s3:x-amz-server-side-encryption-customer-algorithm" = "false" } }
        },
      ]
    }
  }
}

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV2_AWS_61:Unless the caller says otherwise (buckets[*].retention), a rule only drops unfinished uploads: deleting data must be somebody's decision
  #checkov:skip=CKV2_AWS_62:Nothing waits for object events; runs are started by Step Functions
  #checkov:skip=CKV_AWS_144:Training data and models are reproducible; replication would double their cost for no gain
  #checkov:skip=CKV_AWS_18:Access logging needs a bucket that only the caller can name; buckets[*].access_log turns it on
  #checkov:skip=CKV_AWS_21:Versions are on unless the caller turns them off for what is rewritten all the time (buckets[*].versioning)

  for_each = var.buckets

  bucket        = local.names[each.key]
  force_destroy = each.value.force_destroy
  tags          = var.context.tags

  lifecycle {
    postcondition {
      condition     = self.arn == local.arns[each.key]
      error_message = "context: the ARN of the bucket is ${self.arn}, and policies name ${local.arns[each.key]}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_s3_bucket_ownership_controls" "this" {
  for_each = var.buckets

  bucket = aws_s3_bucket.this[each.key].bucket

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_public_access_block" "this" {
  for_each = var.buckets

  bucket                  = aws_s3_bucket.this[each.key].bucket
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  for_each = var.buckets

  bucket = aws_s3_bucket.this[each.key].bucket

  rule {
    # One call to KMS per bucket and hour instead of one per object.
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_versioning" "this" {
  for_each = { for key, bucket in var.buckets : key => bucket if bucket.versioning }

  bucket = aws_s3_bucket.this[each.key].bucket

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_policy" "this" {
  for_each = var.buckets

  bucket = aws_s3_bucket.this[each.key].bucket
  policy = jsonencode(local.policies[each.key])

  # S3 refuses two changes of one bucket's access at the same time.
  depends_on = [aws_s3_bucket_public_access_block.this]
}

locals {
  # A bucket that keeps its objects keeps no parts of uploads that never ended: no list shows them, and they cost money.
  _lifecycles = merge(
    {
      for key, bucket in var.buckets : key =>
      { id = "unfinished-uploads", expire_days = null, noncurrent_days = null, abort_multipart_days = bucket.unfinished_upload_days }
      if bucket.unfinished_upload_days > 0
    },
    { for key, bucket in var.buckets : key => merge({ id = "retention" }, bucket.retention) if bucket.retention != null },
  )
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  for_each = local._lifecycles

  bucket = aws_s3_bucket.this[each.key].bucket

  rule {
    id     = each.value.id
    status = "Enabled"

    # Every object; without a filter the provider never sees its own rule again.
    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = each.value.abort_multipart_days
    }

    dynamic "noncurrent_version_expiration" {
      for_each = [for days in [each.value.noncurrent_days] : days if days != null]

      content {
        noncurrent_days = noncurrent_version_expiration.value
      }
    }

    dynamic "expiration" {
      for_each = [for days in [each.value.expire_days] : days if days != null]

      content {
        days = expiration.value
      }
    }
  }

  # Rules on old versions need versioning to be on first.
  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_logging" "this" {
  for_each = { for key, bucket in var.buckets : key => bucket.access_log if bucket.access_log != null }

  bucket        = aws_s3_bucket.this[each.key].bucket
  target_bucket = each.value.bucket
  target_prefix = each.value.prefix
}
