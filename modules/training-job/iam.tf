# Role of the state machine: creates this job's training jobs, and its processing
# jobs (processing.tf) and tuning jobs (tuning.tf), and no others.
locals {
  # <job>-<yymmdd>-<hhmmss>-<attempt>, letter by letter: the runs of a job whose
  # name only begins like this one's, as "bert-large" does, are not covered. A
  # scheduled run is named by EventBridge Scheduler in a form of its own, for
  # which everything that begins alike has to be covered.
  _tries = [for digits in range(1, length(tostring(length(var.attempts) - 1)) + 2) : join("", [for _ in range(digits) : "?"])]
  _job_arns = concat(
    [for try in local._tries : "${local._training_job_arn_all}${var.name}-??????-??????-${try}"],
    var.schedule == null ? [] : ["${local._training_job_arn_all}${local._schedule_run_prefix}-*"],
  )

  _allow_create = {
    Sid      = "CreateTrainingJobsOfThisJob"
    Effect   = "Allow"
    Action   = ["sagemaker:CreateTrainingJob"]
    Resource = local._job_arns
    # ForAllValues is true for a request without the key, hence the Null test. Whether a request with instance groups
    # has the key is in no document, so the test is not made of it.
    Condition = { for operator, keys in {
      "ForAllValues:StringEquals" = { for k, v in {
        "sagemaker:InstanceTypes"       = distinct(flatten(local._machine_types))
        "sagemaker:VpcSubnets"          = local._in_vpc ? local._subnet_ids : null
        "sagemaker:VpcSecurityGroupIds" = local._in_vpc ? local._security_group_ids : null
      } : k => v if v != null }
      Null = { for k, v in {
        "sagemaker:InstanceTypes"       = anytrue([for a in var.attempts : length(a.instance_groups) > 0]) ? null : "false"
        "sagemaker:VpcSubnets"          = local._in_vpc ? "false" : null
        "sagemaker:VpcSecurityGroupIds" = local._in_vpc ? "false" : null
        "sagemaker:OutputKmsKey"        = local._output_kms_key != null ? "false" : null
      } : k => v if v != null }
      NumericLessThanEquals = {
        "sagemaker:MaxRuntimeInSeconds" = tostring(max(concat([1], var.attempts[*].max_runtime_seconds)...))
      }
      NumericLessThanEqualsIfExists = {
        "sagemaker:KeepAlivePeriod" = tostring(max(concat([0], local._attempts[*].keep_alive_seconds)...))
      }
      Bool = { for k, v in {
        "sagemaker:NetworkIsolation"                = local._isolated ? "true" : null
        "sagemaker:InterContainerTrafficEncryption" = local._encrypt_traffic ? "true" : null
      } : k => v if v != null }
      BoolIfExists = {
        "sagemaker:EnableRemoteDebug" = tostring(var.resources.remote_debug)
      }
      ArnEquals = { for k, v in {
        "sagemaker:OutputKmsKey" = local._output_kms_key
      } : k => v if v != null }
    } : operator => keys if length(keys) > 0 }
  }

  _allow_follow = {
    Sid      = "FollowTrainingJobsOfThisJob"
    Effect   = "Allow"
    Action   = ["sagemaker:DescribeTrainingJob"]
    Resource = local._job_arns
  }

  _allow_tag = {
    Sid      = "TagTrainingJobsOfThisJob"
    Effect   = "Allow"
    Action   = ["sagemaker:AddTags"]
    Resource = local._job_arns
  }

  _allow_release = length(flatten(local._releases)) == 0 ? null : {
    Sid       = "ReleaseWarmPoolsOfThisJob"
    Effect    = "Allow"
    Action    = ["sagemaker:UpdateTrainingJob"]
    Resource  = local._job_arns
    Condition = { NumericEquals = { "sagemaker:KeepAlivePeriod" = "0" } }
  }

  _training_statements = [
    for s in [local._allow_create, local._allow_follow, local._allow_tag, local._allow_release] : s if var.tuning == null
  ]

  _allow_pass_role = {
    Sid       = "PassTheExecutionRole"
    Effect    = "Allow"
    Action    = ["iam:PassRole"]
    Resource  = [local.execution_role_arn]
    Condition = { StringEquals = { "iam:PassedToService" = "sagemaker.amazonaws.com" } }
  }

  # Log delivery is an account-wide service without resource-level permissions.
  _allow_log_delivery = {
    Sid    = "DeliverLogsOfTheStateMachine"
    Effect = "Allow"
    Action = [
      "logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
      "logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
    ]
    Resource = ["*"]
  }

  _allow_tracing = !var.tracing ? null : {
    Sid    = "SendTraces"
    Effect = "Allow"
    Action = [
      "xray:GetSamplingRules", "xray:GetSamplingTargets", "xray:PutTelemetryRecords", "xray:PutTraceSegments",
    ]
    Resource = ["*"]
  }

  state_machine_policy = {
    Version = "2012-10-17"
    Statement = [
      for s in concat(
        local._training_statements, local._tuning_statements, local._processing_statements,
        [local._allow_pass_role, local._allow_log_delivery, local._allow_tracing],
      ) : s if s != null
    ]
  }
}

resource "aws_iam_role" "state_machine" {
  name                 = local._role_name
  path                 = "/sagefit/"
  description          = "Runs the Sagefit job ${var.name} on platform ${local._platform}"
  permissions_boundary = var.platform.permissions_boundary_arn
  tags                 = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "StateMachineOnly"
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "states.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.platform.account_id }
        ArnEquals    = { "aws:SourceArn" = local.state_machine_arn }
      }
    }]
  })

  lifecycle {
    postcondition {
      condition     = self.arn == local._state_machine_role
      error_message = "platform: the ARN of the state machine's role is ${self.arn}, and policies name ${local._state_machine_role}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_iam_role_policy" "state_machine" {
  name   = "run-training-jobs"
  role   = aws_iam_role.state_machine.name
  policy = jsonencode(local.state_machine_policy)
}
