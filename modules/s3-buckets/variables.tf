variable "buckets" {
  description = <<-EOT
    Buckets to make. The map key ends the bucket name: `<prefix>-<account>-<region>-<key>`.
    - `force_destroy`: destroy the bucket with the objects in it.
    - `versioning`: keep overwritten and deleted objects as old versions.
    - `retention`: lifecycle rules; null for none. Creating them takes about a minute, on AWS too.
      - `expire_days`: delete objects after so many days; null keeps them.
      - `noncurrent_days`: delete old versions after so many days.
      - `abort_multipart_days`: drop the parts of unfinished uploads after so many days.
    - `unfinished_upload_days`: the same for a bucket without `retention`, which keeps its objects; 0 keeps the parts too.
    - `access_log`: write access logs to `bucket` under `prefix`; null for none. The target bucket must
      allow `logging.s3.amazonaws.com` to put objects.
  EOT
  type = map(object({
    force_destroy = optional(bool, false)
    versioning    = optional(bool, true)
    retention = optional(object({
      expire_days          = optional(number)
      noncurrent_days      = optional(number, 30)
      abort_multipart_days = optional(number, 7)
    }))
    unfinished_upload_days = optional(number, 7)
    access_log = optional(object({
      bucket = string
      prefix = optional(string, "")
    }))
  }))
  nullable = false

  validation {
    condition     = length(var.buckets) > 0
    error_message = "buckets must name at least one bucket."
  }

  validation {
    condition     = alltrue([for key in keys(var.buckets) : can(regex("^[a-z0-9](-?[a-z0-9])*$", key))])
    error_message = "buckets: keys must be lower-case letters, digits and single hyphens, because they end bucket names."
  }

  validation {
    condition = alltrue([
      for key in keys(var.buckets) :
      length("${var.context.prefix}-${var.context.account_id}-${var.context.region}-${key}") <= 63
    ])
    error_message = "buckets: <prefix>-<account>-<region>-<key> may have at most 63 characters (S3); shorten context.prefix or the key."
  }

  validation {
    condition = alltrue([
      for bucket in var.buckets : bucket.retention == null ? true : alltrue([
        for days in [bucket.retention.expire_days, bucket.retention.noncurrent_days, bucket.retention.abort_multipart_days] :
        days == null ? true : days >= 1 && floor(days) == days
      ])
    ])
    error_message = "buckets[*].retention: days must be whole numbers of at least 1."
  }

  validation {
    condition     = alltrue([for bucket in var.buckets : bucket.unfinished_upload_days >= 0 && floor(bucket.unfinished_upload_days) == bucket.unfinished_upload_days])
    error_message = "buckets[*].unfinished_upload_days: a whole number of at least 0."
  }

  validation {
    condition     = alltrue([for bucket in var.buckets : bucket.access_log == null ? true : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", bucket.access_log.bucket))])
    error_message = "buckets[*].access_log.bucket must be a bucket name of 3 to 63 characters, not an ARN or a URI."
  }
}

variable "kms_key_arn" {
  description = "Key that encrypts the objects; null for the AWS-managed key `aws/s3`. The value may be unknown at plan."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", var.kms_key_arn))
    error_message = "kms_key_arn must be a key ARN: an alias would resolve in the account of whoever writes the object."
  }
}
