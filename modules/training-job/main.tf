locals {
  _platform = var.platform.name
  _full     = "sagefit-${local._platform}-${var.name}"

  # Names of roles and schedules have 64 characters, `-execution` included; a longer one ends in a hash of the whole.
  _longest   = 54 - length(var.platform.global_suffix)
  _short     = length(local._full) <= local._longest ? local._full : "${substr(local._full, 0, local._longest - 9)}-${substr(sha256(local._full), 0, 8)}"
  _role_name = "${local._short}${var.platform.global_suffix}"

  # ARNs are built from names, so that the plan shows every policy in full.
  _arn_prefix           = "arn:${var.platform.partition}"
  _arn_middle           = "${var.platform.region}:${var.platform.account_id}"
  state_machine_name    = local._full
  state_machine_arn     = "${local._arn_prefix}:states:${local._arn_middle}:stateMachine:${local.state_machine_name}"
  log_group_name        = "/aws/vendedlogs/states/${local._full}"
  _log_group_arn        = "${local._arn_prefix}:logs:${local._arn_middle}:log-group:${local.log_group_name}"
  _state_machine_role   = "${local._arn_prefix}:iam::${var.platform.account_id}:role/sagefit/${local._role_name}"
  _scheduler_role       = "${local._arn_prefix}:iam::${var.platform.account_id}:role/sagefit/${local._role_name}-schedule"
  _training_job_arn_all = "${local._arn_prefix}:sagemaker:${local._arn_middle}:training-job/"

  tags = merge(var.platform.tags, var.tags, {
    "sagefit:platform" = local._platform
    "sagefit:job"      = var.name
  })

  # The jobs that cost the money are made by the state machine, which knows nothing of the provider's default tags.
  _job_tags = merge(data.aws_default_tags.this.tags, local.tags)

  # One table of instances for Terraform and Python.
  instances = { for row in csvdecode(file("${path.module}/instances.csv")) : row.ml_type => row }
}

resource "aws_cloudwatch_log_group" "runs" {
  #checkov:skip=CKV_AWS_158:CloudWatch encrypts it by a key of its own unless the platform has one; CKV2_SAGEFIT_5 asks for one where it must
  #checkov:skip=CKV_AWS_338:How long runs are remembered is the platform's decision (log_retention_days)

  name              = local.log_group_name
  retention_in_days = var.platform.log_retention_days
  kms_key_id        = var.platform.kms_key_arn
  tags              = local.tags

  lifecycle {
    postcondition {
      condition     = self.arn == local._log_group_arn
      error_message = "platform: the ARN of the log group is ${self.arn}, and policies name ${local._log_group_arn}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}
