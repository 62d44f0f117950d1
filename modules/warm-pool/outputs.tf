output "allow_condition" {
  description = "Condition block that lets a statement allow sagemaker:CreateTrainingJob for this pool's shape only."
  value       = local.allow_condition
}

output "guard_statements" {
  description = "Deny statements for the role that creates the jobs: no longer keep-alive than the pool's, and only for its instance type."
  value       = local.guard_statements
}

output "match_keys" {
  description = "Everything a job must share with its predecessor to reuse the pool."
  value       = var.match
}

output "profile" {
  description = "The pool as the platform document carries it."
  value       = local.profile
}

output "quota_name" {
  description = "Service quota that the pool uses up."
  value       = local.quota_name
}

output "quota_value" {
  description = "The quota as read at plan; null unless quota.check or quota.request asked for it."
  value       = one(data.aws_servicequotas_service_quota.this[*].value)
}
