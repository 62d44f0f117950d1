output "alarm_arns" {
  description = "Alarm ARNs by kind (host-memory, container-memory, gpu-memory, disk, schedules), known at plan."
  value = merge(
    { for key, alarm in local.alarms : key => "${local._arn.cloudwatch}:alarm:${alarm.name}" },
    { for name in [local.schedules_alarm] : "schedules" => "${local._arn.cloudwatch}:alarm:${name}" if var.events.dropped_schedules },
  )
  depends_on = [aws_cloudwatch_metric_alarm.schedules, aws_cloudwatch_metric_alarm.this]
}

output "dashboard_name" {
  description = "Name of the dashboard; null without one."
  value       = var.dashboard ? local.dashboard_name : null
  depends_on  = [aws_cloudwatch_dashboard.this]
}

output "event_rule_arns" {
  description = "Event rule ARNs by kind (attempts, runs, aborted-runs, late-runs, cleanups), known at plan."
  value       = { for key, rule in local.event_rules : key => rule.arn }
  depends_on  = [aws_cloudwatch_event_target.this]
}

output "topic_arn" {
  description = "ARN of the topic, known at plan. Further alarms may publish to it if their names start with the prefix."
  value       = local.topic_arn
  depends_on  = [aws_sns_topic_policy.this]
}
