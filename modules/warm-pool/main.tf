# A pool is no object of the API: SageMaker keeps the instances of a job when the job asks for it and when the next
# job matches. What can be managed is a shape that all its jobs share, the quota behind it, and a guard against
# keeping the wrong thing for too long.

locals {
  quota_name = "${var.match.instance_type} for training warm pool usage"
  instances  = var.pool_count * var.match.instance_count

  profile = {
    instance_type      = var.match.instance_type
    instance_count     = var.match.instance_count
    volume_size_gb     = var.match.volume_size_gb
    keep_alive_seconds = var.keep_alive_seconds
  }

  _sid  = replace(title(var.name), "-", "")
  _jobs = "arn:${var.context.partition}:sagemaker:${var.context.region}:${var.context.account_id}:training-job/*"

  # For the identity that creates the jobs, which is the role of their state machine: the keys are of the request, so
  # on the execution role they would do nothing.
  guard_statements = [
    {
      Sid       = "Keep${local._sid}NoLonger"
      Effect    = "Deny"
      Action    = ["sagemaker:CreateTrainingJob", "sagemaker:UpdateTrainingJob"]
      Resource  = local._jobs
      Condition = { NumericGreaterThan = { "sagemaker:KeepAlivePeriod" = tostring(var.keep_alive_seconds) } }
    },
    {
      # ForAnyValue is false where the request names no type; ForAllValues would be true there and need a Null guard.
      Sid      = "Keep${local._sid}OfItsTypeOnly"
      Effect   = "Deny"
      Action   = ["sagemaker:CreateTrainingJob"]
      Resource = local._jobs
      Condition = {
        NumericGreaterThan            = { "sagemaker:KeepAlivePeriod" = "0" }
        "ForAnyValue:StringNotEquals" = { "sagemaker:InstanceTypes" = [var.match.instance_type] }
      }
    },
  ]

  # The same limit in the other direction, for policies that allow rather than deny.
  allow_condition = {
    "ForAllValues:StringEquals" = { "sagemaker:InstanceTypes" = [var.match.instance_type] }
    Null                        = { "sagemaker:InstanceTypes" = "false" }
    NumericLessThanEquals       = { "sagemaker:KeepAlivePeriod" = tostring(var.keep_alive_seconds) }
  }
}

# Quota codes are opaque; the name is what AWS documents.
data "aws_servicequotas_service_quota" "this" {
  count = var.quota.check || var.quota.request != null ? 1 : 0

  service_code = "sagemaker"
  quota_name   = local.quota_name

  lifecycle {
    postcondition {
      condition     = !var.quota.check || self.value >= local.instances
      error_message = "quota: \"${local.quota_name}\" is ${self.value}, but the pool ${var.name} keeps ${local.instances} (pool_count * match.instance_count). Set quota.request to ask for more, or quota.check = false."
    }
  }
}

resource "aws_servicequotas_service_quota" "this" {
  count = var.quota.request == null ? 0 : 1

  service_code = "sagemaker"
  quota_code   = data.aws_servicequotas_service_quota.this[0].quota_code
  value        = var.quota.request
}
