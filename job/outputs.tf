output "attempts" {
  description = "Names of the attempts, in order."
  value       = module.job.attempts
}

output "code_digest" {
  description = "Digest of the shipped code; null without code."
  value       = module.job.code_digest
}

output "run_prefix" {
  description = "Prefix of every run's name."
  value       = module.job.run_prefix
}

output "state_machine_arn" {
  description = "ARN to start runs with."
  value       = module.job.state_machine_arn
}

output "state_machine_name" {
  description = "Name of the state machine."
  value       = module.job.state_machine_name
}

output "warm_pool" {
  description = "For each attempt whether it finds kept instances, and if not, what prevents it; null where nothing is kept."
  value       = module.job.warm_pool
}

output "worst_case_seconds" {
  description = "The longest a run can spend in training jobs."
  value       = module.job.worst_case_seconds
}
