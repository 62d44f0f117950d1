locals {
  _namespace = "/aws/sagemaker/TrainingJobs"
  _arn = {
    cloudwatch = "arn:${var.context.partition}:cloudwatch:${var.context.region}:${var.context.account_id}"
    events     = "arn:${var.context.partition}:events:${var.context.region}:${var.context.account_id}"
    states     = "arn:${var.context.partition}:states:${var.context.region}:${var.context.account_id}"
    root       = "arn:${var.context.partition}:iam::${var.context.account_id}:root"
  }

  # Metrics carry the name of a host or a job, and both are new for every run: an alarm on a fixed name could not
  # exist beforehand. These alarms ask for the whole namespace instead and report each host or job by itself, which
  # takes GROUP BY and ORDER BY together. The query language has no prefix match, so they see every training job of
  # the account and Region, not of the platform only.
  _alarms = {
    host-memory = {
      dimension   = "Host"
      metric      = "MemoryUtilization"
      threshold   = var.thresholds.host_memory
      description = "A training host is short of memory; the kernel ends the job when none is left. Next: fewer loader workers, streaming, or more memory."
    }
    container-memory = {
      dimension   = "TrainingJobName"
      metric      = "sagefit:host_memory_percent"
      threshold   = var.thresholds.container_memory
      description = "A training container is near its memory limit. Next: fewer loader workers, streaming, or more memory."
    }
    gpu-memory = {
      dimension   = "TrainingJobName"
      metric      = "sagefit:gpu_memory_percent"
      threshold   = var.thresholds.gpu_memory
      description = "A GPU of a training job is nearly full. Next: a smaller micro-batch with more accumulation, checkpointing, or a larger GPU."
    }
    disk = {
      dimension   = "Host"
      metric      = "DiskUtilization"
      threshold   = var.thresholds.disk
      description = "The disk of a training host is nearly full. Next: a larger volume, or a streaming input mode."
    }
  }

  alarms = {
    for key, alarm in local._alarms : key => merge(alarm, {
      name       = "${var.context.prefix}-${key}"
      expression = "SELECT MAX(\"${alarm.metric}\") FROM SCHEMA(\"${local._namespace}\", ${alarm.dimension}) GROUP BY ${alarm.dimension} ORDER BY MAX() DESC"
    }) if alarm.threshold > 0
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = each.value.name
  alarm_description   = each.value.description
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.threshold
  evaluation_periods  = var.evaluation.periods
  datapoints_to_alarm = var.evaluation.datapoints
  # A host that is gone has no data; that is not a shortage, and its end is an event (below).
  treat_missing_data = "notBreaching"
  alarm_actions      = [local.topic_arn]
  tags               = var.context.tags

  metric_query {
    id          = "m1"
    label       = each.value.metric
    expression  = each.value.expression
    period      = var.evaluation.period_seconds
    return_data = true
  }

  # An alarm may not name a topic that refuses it.
  depends_on = [aws_sns_topic_policy.this]
}

# A schedule that may not start its run says so in no event and in no mail.
locals {
  schedules_alarm = "${var.context.prefix}-schedules"
}

resource "aws_cloudwatch_metric_alarm" "schedules" {
  count = var.events.dropped_schedules ? 1 : 0

  alarm_name          = local.schedules_alarm
  alarm_description   = "EventBridge Scheduler gave up starting a run (or another target of the account's default schedule group). Next: the role of the schedule, its key, and what the schedule starts."
  namespace           = "AWS/Scheduler"
  metric_name         = "InvocationDroppedCount"
  dimensions          = { ScheduleGroup = "default" }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = [local.topic_arn]
  tags                = var.context.tags

  depends_on = [aws_sns_topic_policy.this]
}

# Events

locals {
  _attempt_ends = concat(
    var.events.failed_attempts ? ["Failed"] : [],
    var.events.stopped_attempts ? ["Stopped"] : [],
  )

  # A run whose attempts are over has nothing left that runs; of the others a training job may.
  _stops = (
    var.cleanup != null
    ? "What still runs of it is stopped within minutes, and its warm instances are given back. If that fails, another mail says so."
    : "Its training job may go on and cost money. sagefit stop ends both; else stop it in SageMaker."
  )
  _run_ends = {
    runs = {
      status      = "FAILED"
      description = "Runs of ${var.context.prefix} that end without a model"
      lines       = ["No approved attempt is left for what happened. The history of the run holds what ended each attempt; sagefit diagnose <run> explains it."]
    }
    aborted-runs = {
      status      = "ABORTED"
      description = "Runs of ${var.context.prefix} that somebody stopped"
      lines       = ["A person or a program stopped it.", local._stops]
    }
    late-runs = {
      status      = "TIMED_OUT"
      description = "Runs of ${var.context.prefix} that reached their deadline"
      lines       = ["It reached the deadline of its state machine (TimeoutSeconds), which all its attempts and their repeats fit into.", local._stops]
    }
  }

  # Training jobs are told apart by their role: their names carry the job's name, not the platform's. A trial of a search
  # has the role too, and is left out by the field that only trials have. A field that says nothing is null in recorded
  # events, and absent in AWS's example.
  _event_rules = merge(local._rules_of_runs, {
    attempts = {
      enabled     = length(local._attempt_ends) > 0
      description = "Training jobs of ${var.context.prefix} that end without a model"
      pattern = jsonencode({
        source        = ["aws.sagemaker"]
        "detail-type" = ["SageMaker Training Job State Change"]
        detail = {
          RoleArn           = concat([var.role_arn], [for prefix in [var.job_roles] : { prefix = prefix } if prefix != null])
          TrainingJobStatus = local._attempt_ends
          TuningJobArn      = [null, { exists = false }]
        }
      })
      paths = {
        job       = "$.detail.TrainingJobName"
        reason    = "$.detail.FailureReason"
        secondary = "$.detail.SecondaryStatus"
        status    = "$.detail.TrainingJobStatus"
      }
      # A path that is absent leaves its place empty.
      lines = [
        "Training job <job> (${var.context.prefix}) ended: <status>, <secondary>.",
        "Reason: <reason>",
        "Its run goes on by itself where an approved attempt covers this failure.",
      ]
    }
    cleanups = {
      enabled     = var.events.failed_runs && var.cleanup != null
      description = "Jobs of ended runs of ${var.context.prefix} that could not be stopped"
      pattern = jsonencode({
        source        = ["aws.states"]
        "detail-type" = ["Step Functions Execution Status Change"]
        detail = {
          stateMachineArn = [for arn in [var.cleanup] : arn if arn != null]
          status          = ["ABORTED", "FAILED", "TIMED_OUT"]
        }
      })
      # AWS's list of what an event has knows no error and no cause; its older page knows both.
      paths = {
        cause     = "$.detail.cause"
        error     = "$.detail.error"
        execution = "$.detail.executionArn"
        status    = "$.detail.status"
      }
      lines = [
        "A run of ${var.context.prefix} has ended, and its jobs could not be stopped: they may cost money (<status>, <error>).",
        "<cause>",
        "Which jobs, says the execution: <execution>",
      ]
    }
  })

  _rules_of_runs = {
    for key, end in local._run_ends : key => {
      enabled     = var.events.failed_runs
      description = end.description
      pattern = jsonencode({
        source        = ["aws.states"]
        "detail-type" = ["Step Functions Execution Status Change"]
        detail = {
          stateMachineArn = [{ prefix = "${local._arn.states}:stateMachine:${var.context.prefix}-" }]
          status          = [end.status]
        }
      })
      paths = {
        cause = "$.detail.cause"
        error = "$.detail.error"
        run   = "$.detail.name"
      }
      lines = concat(
        ["Run <run> (${var.context.prefix}) ended: ${end.status}."],
        end.lines,
        ["What is said of it: <error> <cause>"],
      )
    }
  }

  event_rules = {
    for key, rule in local._event_rules : key => merge(rule, {
      name = "${var.context.prefix}-${key}"
      arn  = "${local._arn.events}:rule/${var.context.prefix}-${key}"
    }) if rule.enabled
  }
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = local.event_rules

  name          = each.value.name
  description   = each.value.description
  event_pattern = each.value.pattern
  tags          = var.context.tags

  lifecycle {
    postcondition {
      condition     = self.arn == each.value.arn
      error_message = "context: the ARN of the rule is ${self.arn}, and policies name ${each.value.arn}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = local.event_rules

  rule      = aws_cloudwatch_event_rule.this[each.key].name
  target_id = "topic"
  arn       = local.topic_arn

  input_transformer {
    input_paths = each.value.paths
    # Each line is a JSON string; jsonencode would turn the < and > of the places into escapes.
    input_template = join("\n", [for line in each.value.lines : "\"${line}\""])
  }

  depends_on = [aws_sns_topic_policy.this]
}

# A composite alarm over these would add nothing: each already stands for every host or job, and their remedies differ.

# Topic

locals {
  topic_name = "${var.context.prefix}-alarms"
  topic_arn  = "arn:${var.context.partition}:sns:${var.context.region}:${var.context.account_id}:${local.topic_name}"

  topic_policy = {
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid       = "AlarmsPublish"
          Effect    = "Allow"
          Principal = { Service = "cloudwatch.amazonaws.com" }
          Action    = "sns:Publish"
          Resource  = local.topic_arn
          Condition = {
            StringEquals = { "aws:SourceAccount" = var.context.account_id }
            ArnLike      = { "aws:SourceArn" = "${local._arn.cloudwatch}:alarm:${var.context.prefix}-*" }
          }
        },
      ],
      [
        for arns in [[for rule in values(local.event_rules) : rule.arn]] : {
          Sid       = "EventRulesPublish"
          Effect    = "Allow"
          Principal = { Service = "events.amazonaws.com" }
          Action    = "sns:Publish"
          Resource  = local.topic_arn
          Condition = { ArnEquals = { "aws:SourceArn" = arns } }
        } if length(arns) > 0
      ],
      [
        {
          Sid       = "DenyPlainHttp"
          Effect    = "Deny"
          Principal = "*"
          Action    = "sns:Publish"
          Resource  = local.topic_arn
          Condition = { Bool = { "aws:SecureTransport" = "false" } }
        },
      ],
    )
  }

  # The services are named without a source condition: not all of them pass one on to KMS, and a notification that
  # cannot be encrypted is lost without a word. Who may publish is the topic policy's business, and it has conditions.
  key_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "AccountAdministers"
        Effect    = "Allow"
        Principal = { AWS = local._arn.root }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        Sid       = "AlarmsAndEventsEncrypt"
        Effect    = "Allow"
        Principal = { Service = ["cloudwatch.amazonaws.com", "events.amazonaws.com"] }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey*"]
        Resource  = "*"
      },
    ]
  }

  _key_alias = "alias/${local.topic_name}"
}

resource "aws_kms_key" "topic" {
  count = var.topic_key.create ? 1 : 0

  description             = "Notifications of ${var.context.prefix}"
  enable_key_rotation     = true
  deletion_window_in_days = 7 # Protects messages in flight only.
  policy                  = jsonencode(local.key_policy)
  tags                    = var.context.tags
}

resource "aws_kms_alias" "topic" {
  count = var.topic_key.create ? 1 : 0

  name          = local._key_alias
  target_key_id = aws_kms_key.topic[0].key_id
}

resource "aws_sns_topic" "this" {
  name = local.topic_name
  # By alias where the key is ours: its name is known at plan.
  kms_master_key_id = var.topic_key.create ? local._key_alias : var.topic_key.id
  # The alarms that report here. An alarm that is left out is no resource, and a policy can only look at resources.
  tags = merge(var.context.tags, { "sagefit:alarms" = join(" ", keys(local.alarms)) })

  depends_on = [aws_kms_alias.topic]

  lifecycle {
    postcondition {
      condition     = self.arn == local.topic_arn
      error_message = "context: the ARN of the topic is ${self.arn}, and policies name ${local.topic_arn}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_sns_topic_policy" "this" {
  arn    = local.topic_arn
  policy = jsonencode(local.topic_policy)

  depends_on = [aws_sns_topic.this]
}

resource "aws_sns_topic_subscription" "email" {
  for_each = var.emails

  topic_arn = local.topic_arn
  protocol  = "email"
  endpoint  = each.value

  depends_on = [aws_sns_topic.this]
}

# Dashboard

locals {
  dashboard_name = "${var.context.prefix}-memory${var.context.global_suffix}"

  _charts = [
    { title = "Host memory, % of the instance", dimension = "Host", metric = "MemoryUtilization", threshold = var.thresholds.host_memory },
    { title = "Container memory, % of its limit", dimension = "TrainingJobName", metric = "sagefit:host_memory_percent", threshold = var.thresholds.container_memory },
    { title = "Fullest GPU, % of its memory", dimension = "TrainingJobName", metric = "sagefit:gpu_memory_percent", threshold = var.thresholds.gpu_memory },
    { title = "GPU memory, % summed over the GPUs of a host", dimension = "Host", metric = "GPUMemoryUtilization", threshold = 0 },
    { title = "Disk, % of the volume", dimension = "Host", metric = "DiskUtilization", threshold = var.thresholds.disk },
    { title = "Peak host memory, GiB", dimension = "TrainingJobName", metric = "sagefit:host_memory_peak_gib", threshold = 0 },
  ]

  # Dashboards may search, which alarms may not: new jobs appear by themselves.
  dashboard = {
    widgets = [
      for index, chart in local._charts : {
        type   = "metric"
        x      = index % 2 * 12
        y      = floor(index / 2) * 6
        width  = 12
        height = 6
        properties = {
          title  = chart.title
          region = var.context.region
          view   = "timeSeries"
          period = 60
          yAxis  = { left = { min = 0 } }
          metrics = [[{
            id         = "e1"
            expression = "SEARCH('{${local._namespace},${chart.dimension}} MetricName=\"${chart.metric}\"', 'Maximum', 60)"
          }]]
          annotations = {
            horizontal = [for threshold in [chart.threshold] : { label = "alarm", value = threshold } if threshold > 0]
          }
        }
      }
    ]
  }
}

resource "aws_cloudwatch_dashboard" "this" {
  count = var.dashboard ? 1 : 0

  dashboard_name = local.dashboard_name
  dashboard_body = jsonencode(local.dashboard)
}
