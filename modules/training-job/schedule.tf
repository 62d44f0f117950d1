# Scheduled runs. The universal target is used because the plain Step Functions
# target names executions by itself, and training jobs are named after them.
locals {
  # A training job's name has 63 characters for PREFIX-ID-ATTEMPT and the letter
  # of a repeat, and the scheduler's id may have as many as a UUID.
  _schedule_run_prefix = (
    var.schedule == null ? var.name : trimsuffix(substr(var.name, 0, 22), "-")
  )
}

resource "aws_scheduler_schedule" "this" {
  count = var.schedule == null ? 0 : 1

  name                         = local._short
  description                  = "Starts the Sagefit job ${var.name} on platform ${local._platform}"
  schedule_expression          = var.schedule.expression
  schedule_expression_timezone = var.schedule.timezone
  state                        = var.schedule.enabled ? "ENABLED" : "DISABLED"
  kms_key_arn                  = var.platform.kms_key_arn

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = "${local._arn_prefix}:scheduler:::aws-sdk:sfn:startExecution"
    role_arn = local._scheduler_role

    # jsonencode writes <> as escapes, in which the scheduler finds no keyword.
    input = replace(replace(jsonencode({
      StateMachineArn = local.state_machine_arn
      Name            = "${local._schedule_run_prefix}-<aws.scheduler.execution-id>"
      Input           = "{}"
    }), "\\u003c", "<"), "\\u003e", ">")

    retry_policy {
      maximum_event_age_in_seconds = 3600
      maximum_retry_attempts       = 3
    }
  }

  depends_on = [aws_iam_role_policy.schedule, aws_sfn_state_machine.this]
}

resource "aws_iam_role" "schedule" {
  count = var.schedule == null ? 0 : 1

  name                 = "${local._role_name}-schedule"
  path                 = "/sagefit/"
  description          = "Starts the Sagefit job ${var.name} on its schedule"
  permissions_boundary = var.platform.permissions_boundary_arn
  tags                 = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "SchedulerOnly"
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.platform.account_id }
        ArnEquals    = { "aws:SourceArn" = "${local._arn_prefix}:scheduler:${local._arn_middle}:schedule-group/default" }
      }
    }]
  })

  lifecycle {
    postcondition {
      condition     = self.arn == local._scheduler_role
      error_message = "platform: the ARN of the schedule's role is ${self.arn}, and policies name ${local._scheduler_role}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_iam_role_policy" "schedule" {
  count = var.schedule == null ? 0 : 1

  name = "start-runs"
  role = aws_iam_role.schedule[0].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid      = "StartRunsOfThisJob"
        Effect   = "Allow"
        Action   = ["states:StartExecution"]
        Resource = [local.state_machine_arn]
      }],
      # The scheduler reads what it encrypted as the role that it starts runs with.
      [
        for key in [var.platform.kms_key_arn] : {
          Sid      = "DecryptTheInputOfTheSchedule"
          Effect   = "Allow"
          Action   = ["kms:Decrypt"]
          Resource = [key]
        } if key != null
      ],
    )
  })
}
