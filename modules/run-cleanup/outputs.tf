output "definition" {
  description = "What the state machine does."
  value       = local.definition
}

output "policy" {
  description = "What its role may do."
  value       = local.policy
}

output "state_machine_arn" {
  description = "ARN of the state machine, known at plan."
  value       = local._arn.machine
  depends_on  = [aws_cloudwatch_event_target.this]
}
