output "attempts" {
  description = "Names of the attempts, in order."
  value       = var.attempts[*].name
}

output "code_digest" {
  description = "Digest of the shipped code, which is part of its S3 keys; null without code."
  value       = local.code_digest
}

output "definition" {
  description = "Definition of the state machine in the Amazon States Language, as an object."
  value       = local.definition
}

output "execution_role_arn" {
  description = "Role of the training containers: the job's own, or that of all jobs of the platform."
  value       = local.execution_role_arn
  depends_on  = [aws_iam_role_policy.execution, aws_iam_role_policy_attachment.execution]
}

output "execution_role_policy" {
  description = "What the job's own role may do with data, as an object; null where the role is the platform's."
  value       = local._has_own_role ? local._data_policy : null
}

output "log_group_name" {
  description = "Log group of the state machine."
  value       = local.log_group_name
  depends_on  = [aws_cloudwatch_log_group.runs]
}

output "run_prefix" {
  description = "Prefix of every run's name, which is followed by yymmdd-hhmmss. An execution with another name, such as a console proposes, ends at once and starts nothing."
  value       = "${var.name}-"
}

output "state_machine_arn" {
  description = "ARN to start runs with."
  value       = local.state_machine_arn
  depends_on  = [aws_sfn_state_machine.this]
}

output "state_machine_name" {
  description = "Name of the state machine."
  value       = local.state_machine_name
  depends_on  = [aws_sfn_state_machine.this]
}

output "state_machine_policy" {
  description = "Policy of the state machine's role, as an object."
  value       = local.state_machine_policy
}

output "warm_pool" {
  description = "For each attempt whether it finds kept instances, and if not, which key of the warm pool's match prevents it; null where nothing is kept."
  value       = local.warm_pool
}

output "worst_case_seconds" {
  description = "The longest a run can spend in training jobs: every attempt at its time limit. Repeats after errors of AWS itself come on top, until the definition's TimeoutSeconds."
  value       = local.worst_case_seconds
}
