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
  role_arn = "arn:aws:iam::123456789012:role/sagefit-test-execution"
}

run "default_alarms_cover_hosts_gpus_and_disks" {
  command = plan

  assert {
    condition     = { for key, alarm in aws_cloudwatch_metric_alarm.this : key => alarm.threshold } == { disk = 85, gpu-memory = 95, host-memory = 90 }
    error_message = "Host memory, GPU memory and disk must alarm by default."
  }

  assert {
    condition     = one(aws_cloudwatch_metric_alarm.this["host-memory"].metric_query).expression == "SELECT MAX(\"MemoryUtilization\") FROM SCHEMA(\"/aws/sagemaker/TrainingJobs\", Host) GROUP BY Host ORDER BY MAX() DESC"
    error_message = "Host memory must be asked of every host, one contributor each."
  }

  assert {
    condition     = one(aws_cloudwatch_metric_alarm.this["gpu-memory"].metric_query).expression == "SELECT MAX(\"sagefit:gpu_memory_percent\") FROM SCHEMA(\"/aws/sagemaker/TrainingJobs\", TrainingJobName) GROUP BY TrainingJobName ORDER BY MAX() DESC"
    error_message = "GPU memory must be the fullest GPU of each job, not SageMaker's sum."
  }

  assert {
    condition     = one(aws_cloudwatch_metric_alarm.this["disk"].metric_query).expression == "SELECT MAX(\"DiskUtilization\") FROM SCHEMA(\"/aws/sagemaker/TrainingJobs\", Host) GROUP BY Host ORDER BY MAX() DESC"
    error_message = "Disks must be asked of every host, one contributor each."
  }

  assert {
    condition = alltrue([
      for alarm in aws_cloudwatch_metric_alarm.this :
      alarm.comparison_operator == "GreaterThanThreshold" && alarm.treat_missing_data == "notBreaching" && one(alarm.metric_query).period == 60 && length(one(alarm.metric_query).expression) <= 1024
    ])
    error_message = "Alarms go off above their threshold, need a period and an expression of at most 1,024 characters, and must not treat a finished host as a shortage."
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : alarm.alarm_actions == toset([output.topic_arn])])
    error_message = "Every alarm must publish to the topic."
  }
}

run "thresholds_choose_alarms" {
  command = plan

  variables {
    thresholds = { host_memory = 80, container_memory = 92, gpu_memory = 0, disk = 0 }
  }

  assert {
    condition     = { for key, alarm in aws_cloudwatch_metric_alarm.this : key => alarm.threshold } == { container-memory = 92, host-memory = 80 }
    error_message = "A threshold of 0 must leave its alarm out."
  }

  assert {
    condition     = aws_sns_topic.this.tags == tomap({ Team = "vision", "sagefit:alarms" = "container-memory host-memory" })
    error_message = "The topic must name the alarms that report to it."
  }

  assert {
    condition     = one(aws_cloudwatch_metric_alarm.this["container-memory"].metric_query).expression == "SELECT MAX(\"sagefit:host_memory_percent\") FROM SCHEMA(\"/aws/sagemaker/TrainingJobs\", TrainingJobName) GROUP BY TrainingJobName ORDER BY MAX() DESC"
    error_message = "Container memory must be asked of every training job."
  }

  assert {
    condition     = output.alarm_arns["host-memory"] == "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:sagefit-test-host-memory"
    error_message = "Alarm ARNs must be known at plan."
  }
}

run "evaluation_reaches_the_alarms" {
  command = plan

  variables {
    evaluation = { period_seconds = 300, periods = 2, datapoints = 1 }
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : alarm.evaluation_periods == 2 && alarm.datapoints_to_alarm == 1 && one(alarm.metric_query).period == 300])
    error_message = "Period, periods and datapoints must reach every alarm."
  }
}

run "events_are_of_the_platform_only" {
  command = plan

  assert {
    condition = jsondecode(aws_cloudwatch_event_rule.this["attempts"].event_pattern) == {
      source        = ["aws.sagemaker"]
      "detail-type" = ["SageMaker Training Job State Change"]
      detail = {
        RoleArn           = ["arn:aws:iam::123456789012:role/sagefit-test-execution"]
        TuningJobArn      = [null, { exists = false }]
        TrainingJobStatus = ["Failed", "Stopped"]
      }
    }
    error_message = "Attempts must be told by the platform's role."
  }

  assert {
    condition = alltrue([
      for key, status in { runs = "FAILED", aborted-runs = "ABORTED", late-runs = "TIMED_OUT" } :
      jsondecode(aws_cloudwatch_event_rule.this[key].event_pattern) == {
        source        = ["aws.states"]
        "detail-type" = ["Step Functions Execution Status Change"]
        detail = {
          stateMachineArn = [{ prefix = "arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-test-" }]
          status          = [status]
        }
      }
    ])
    error_message = "Runs must be told by the names of the platform's state machines, however they end without a model."
  }

  assert {
    condition = alltrue([
      for key, words in { runs = "No approved attempt is left", aborted-runs = "somebody|person", late-runs = "deadline" } :
      can(regex(words, one(aws_cloudwatch_event_target.this[key].input_transformer).input_template))
    ])
    error_message = "Each mail must say what happened to the run."
  }

  assert {
    condition     = !strcontains(one(aws_cloudwatch_event_target.this["runs"].input_transformer).input_template, "goes on")
    error_message = "A run without an attempt left has no job that goes on."
  }

  assert {
    condition     = alltrue([for target in aws_cloudwatch_event_target.this : target.arn == output.topic_arn])
    error_message = "All rules must publish to the topic."
  }
}

run "schedules_that_start_nothing_are_told" {
  command = plan

  assert {
    condition = jsonencode([for alarm in aws_cloudwatch_metric_alarm.schedules : [
      alarm.namespace, alarm.metric_name, alarm.dimensions, alarm.statistic, alarm.threshold, alarm.treat_missing_data, alarm.alarm_actions,
    ]]) == jsonencode([["AWS/Scheduler", "InvocationDroppedCount", { ScheduleGroup = "default" }, "Sum", 0, "notBreaching", [output.topic_arn]]])
    error_message = "One that Scheduler gave up is one too many."
  }
}

run "schedules_may_be_left_out" {
  command = plan

  variables {
    events = { dropped_schedules = false }
  }

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.schedules) == 0 && !contains(keys(output.alarm_arns), "schedules")
    error_message = "No alarm unless it is wanted."
  }
}

run "jobs_that_could_not_be_stopped_are_told" {
  command = plan

  variables {
    cleanup = "arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-test_cleanup"
  }

  assert {
    condition = jsondecode(aws_cloudwatch_event_rule.this["cleanups"].event_pattern).detail == {
      stateMachineArn = ["arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-test_cleanup"]
      status          = ["ABORTED", "FAILED", "TIMED_OUT"]
    }
    error_message = "What stops them must be heard when it fails."
  }

  assert {
    condition     = alltrue([for key in ["aborted-runs", "late-runs"] : strcontains(one(aws_cloudwatch_event_target.this[key].input_transformer).input_template, "is stopped within minutes")])
    error_message = "The mail must say what happens to a run's jobs."
  }
}

run "without_cleanup_a_person_has_to_stop_them" {
  command = plan

  assert {
    condition     = !contains(keys(aws_cloudwatch_event_rule.this), "cleanups") && alltrue([for key in ["aborted-runs", "late-runs"] : strcontains(one(aws_cloudwatch_event_target.this[key].input_transformer).input_template, "sagefit stop ends both")])
    error_message = "The mail must say what to do."
  }
}

run "cleanup_is_a_state_machine" {
  command = plan

  variables {
    cleanup = "sagefit-test_cleanup"
  }

  expect_failures = [var.cleanup]
}

run "events_of_the_jobs_own_roles_count" {
  command = plan

  variables {
    job_roles = "arn:aws:iam::123456789012:role/sagefit/test/"
  }

  assert {
    condition     = jsondecode(aws_cloudwatch_event_rule.this["attempts"].event_pattern).detail.RoleArn == ["arn:aws:iam::123456789012:role/sagefit-test-execution", { prefix = "arn:aws:iam::123456789012:role/sagefit/test/" }]
    error_message = "A job with a role of its own is one of the platform too."
  }
}

run "messages_name_only_what_they_extract" {
  command = plan

  assert {
    condition = alltrue([
      for target in aws_cloudwatch_event_target.this :
      toset(flatten(regexall("<([a-z]+)>", one(target.input_transformer).input_template))) == toset(keys(one(target.input_transformer).input_paths))
    ])
    error_message = "Places in a message and extracted paths must be the same."
  }

  assert {
    condition     = alltrue([for target in aws_cloudwatch_event_target.this : alltrue([for line in split("\n", one(target.input_transformer).input_template) : can(jsondecode(line))])])
    error_message = "Each line of a message must be a JSON string (EventBridge)."
  }
}

run "events_can_be_chosen" {
  command = plan

  variables {
    events = { stopped_attempts = false, failed_runs = false }
  }

  assert {
    condition     = keys(aws_cloudwatch_event_rule.this) == ["attempts"] && jsondecode(aws_cloudwatch_event_rule.this["attempts"].event_pattern).detail.TrainingJobStatus == ["Failed"]
    error_message = "Only failed attempts may be left."
  }
}

run "without_events_the_topic_is_closed_to_them" {
  command = plan

  variables {
    events = { failed_attempts = false, stopped_attempts = false, failed_runs = false }
  }

  assert {
    condition     = length(aws_cloudwatch_event_rule.this) == 0 && [for statement in jsondecode(aws_sns_topic_policy.this.policy).Statement : statement.Sid] == ["AlarmsPublish", "DenyPlainHttp"]
    error_message = "Without rules EventBridge must have no access."
  }
}

run "topic_policy_names_its_publishers" {
  command = plan

  assert {
    condition = {
      for statement in jsondecode(aws_sns_topic_policy.this.policy).Statement :
      statement.Sid => jsonencode(statement.Condition)
      } == {
      AlarmsPublish = jsonencode({
        ArnLike      = { "aws:SourceArn" = "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:sagefit-test-*" }
        StringEquals = { "aws:SourceAccount" = "123456789012" }
      })
      EventRulesPublish = jsonencode({
        ArnEquals = { "aws:SourceArn" = [
          "arn:aws:events:eu-west-1:123456789012:rule/sagefit-test-aborted-runs",
          "arn:aws:events:eu-west-1:123456789012:rule/sagefit-test-attempts",
          "arn:aws:events:eu-west-1:123456789012:rule/sagefit-test-late-runs",
          "arn:aws:events:eu-west-1:123456789012:rule/sagefit-test-runs",
        ] }
      })
      DenyPlainHttp = jsonencode({ Bool = { "aws:SecureTransport" = "false" } })
    }
    error_message = "Only this platform's alarms and rules may publish, and only over TLS."
  }
}

run "topic_is_encrypted_by_a_key_of_its_own" {
  command = plan

  assert {
    condition     = aws_sns_topic.this.kms_master_key_id == "alias/sagefit-test-alarms" && aws_kms_key.topic[0].enable_key_rotation
    error_message = "The topic must be encrypted by a rotated key."
  }

  assert {
    condition     = flatten([for statement in jsondecode(aws_kms_key.topic[0].policy).Statement : try(statement.Principal.Service, [])]) == ["cloudwatch.amazonaws.com", "events.amazonaws.com"]
    error_message = "Alarms and events must be able to use the key, and no other service."
  }
}

run "given_key_makes_none" {
  command = plan

  variables {
    topic_key = { create = false, id = "alias/sagefit-test" }
  }

  assert {
    condition     = length(aws_kms_key.topic) == 0 && length(aws_kms_alias.topic) == 0 && aws_sns_topic.this.kms_master_key_id == "alias/sagefit-test"
    error_message = "A given key must be used and no other made."
  }
}

run "emails_subscribe" {
  command = plan

  variables {
    emails = ["team@example.com"]
  }

  assert {
    condition     = aws_sns_topic_subscription.email["team@example.com"].protocol == "email" && aws_sns_topic_subscription.email["team@example.com"].topic_arn == output.topic_arn
    error_message = "Each address must subscribe to the topic."
  }
}

run "dashboard_searches" {
  command = plan

  assert {
    condition = alltrue([
      for widget in jsondecode(aws_cloudwatch_dashboard.this[0].dashboard_body).widgets :
      startswith(widget.properties.metrics[0][0].expression, "SEARCH('{/aws/sagemaker/TrainingJobs,") && widget.x + widget.width <= 24
    ])
    error_message = "Charts must search, so that new jobs appear, and fit the 24 columns."
  }

  assert {
    condition = {
      for widget in jsondecode(aws_cloudwatch_dashboard.this[0].dashboard_body).widgets :
      regex("MetricName=\"([^\"]+)\"", widget.properties.metrics[0][0].expression)[0] => regex("TrainingJobs,(\\w+)\\}", widget.properties.metrics[0][0].expression)[0]
      } == {
      MemoryUtilization              = "Host"
      "sagefit:host_memory_percent"  = "TrainingJobName"
      "sagefit:gpu_memory_percent"   = "TrainingJobName"
      GPUMemoryUtilization           = "Host"
      DiskUtilization                = "Host"
      "sagefit:host_memory_peak_gib" = "TrainingJobName"
    }
    error_message = "SageMaker's metrics carry the host, those of the launcher the training job."
  }
}

run "the_dashboard_can_be_that_of_the_region" {
  command = plan

  variables {
    context = { partition = "aws", region = "eu-west-1", account_id = "123456789012", prefix = "sagefit-test", global_suffix = "_eu-west-1" }
  }

  assert {
    condition     = aws_cloudwatch_dashboard.this[0].dashboard_name == "sagefit-test-memory_eu-west-1" && output.dashboard_name == aws_cloudwatch_dashboard.this[0].dashboard_name
    error_message = "an account has a dashboard once, for all regions"
  }
}

run "dashboard_can_be_off" {
  command = plan

  variables {
    dashboard = false
  }

  assert {
    condition     = length(aws_cloudwatch_dashboard.this) == 0 && output.dashboard_name == null
    error_message = "Without a dashboard none may be made or named."
  }
}

# Rules

run "email_is_an_address" {
  command = plan

  variables {
    emails = ["team"]
  }

  expect_failures = [var.emails]
}

run "period_is_a_multiple_of_a_minute" {
  command = plan

  variables {
    evaluation = { period_seconds = 90 }
  }

  expect_failures = [var.evaluation]
}

run "evaluation_spans_three_hours_at_most" {
  command = plan

  variables {
    evaluation = { period_seconds = 3600, periods = 4 }
  }

  expect_failures = [var.evaluation]
}

run "periods_is_whole" {
  command = plan

  variables {
    evaluation = { periods = 2.5 }
  }

  expect_failures = [var.evaluation]
}

run "datapoints_do_not_exceed_periods" {
  command = plan

  variables {
    evaluation = { periods = 2, datapoints = 3 }
  }

  expect_failures = [var.evaluation]
}

run "role_is_a_role_arn" {
  command = plan

  variables {
    role_arn = "sagefit-test-execution"
  }

  expect_failures = [var.role_arn]
}

run "job_roles_is_a_path" {
  command = plan

  variables {
    job_roles = "arn:aws:iam::123456789012:role/sagefit/test"
  }

  expect_failures = [var.job_roles]
}

run "thresholds_are_percentages" {
  command = plan

  variables {
    thresholds = { disk = 100 }
  }

  expect_failures = [var.thresholds]
}

run "own_key_excludes_a_given_one" {
  command = plan

  variables {
    topic_key = { create = true, id = "alias/team" }
  }

  expect_failures = [var.topic_key]
}

run "topic_is_always_encrypted" {
  command = plan

  variables {
    topic_key = { create = false }
  }

  expect_failures = [var.topic_key]
}

run "aws_managed_sns_key_is_refused" {
  command = plan

  variables {
    topic_key = { create = false, id = "alias/aws/sns" }
  }

  expect_failures = [var.topic_key]
}

run "period_is_not_zero" {
  command = plan

  variables {
    evaluation = { period_seconds = 0 }
  }

  expect_failures = [var.evaluation]
}

run "datapoints_are_whole" {
  command = plan

  variables {
    evaluation = { datapoints = 1.5 }
  }

  expect_failures = [var.evaluation]
}

run "thresholds_are_not_negative" {
  command = plan

  variables {
    thresholds = { disk = -1 }
  }

  expect_failures = [var.thresholds]
}

run "policies_name_the_arn_of_the_topic" {
  command = plan

  override_resource {
    target          = aws_sns_topic.this
    override_during = plan
    values          = { arn = "arn:aws-cn:sns:eu-west-1:123456789012:sagefit-test-alarms" }
  }

  expect_failures = [aws_sns_topic.this]
}

run "policies_name_the_arn_of_the_rule" {
  command = plan

  override_resource {
    target          = aws_cloudwatch_event_rule.this["runs"]
    override_during = plan
    values          = { arn = "arn:aws-cn:events:eu-west-1:123456789012:rule/sagefit-test-runs" }
  }

  expect_failures = [aws_cloudwatch_event_rule.this]
}
