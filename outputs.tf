output "buckets" {
  description = "Bucket names by key."
  value       = module.buckets.names
}

output "dashboard_name" {
  description = "Name of the memory dashboard; null without one."
  value       = module.alarms.dashboard_name
}

output "document" {
  description = "The platform document: input `platform` of modules/training-job."
  value       = local.document
}

output "document_parameter" {
  description = "SSM parameter that holds the document."
  value       = local.document_parameter
  depends_on  = [aws_ssm_parameter.document]
}

output "engineer_policy_json" {
  description = "IAM policy for people who run jobs: start, follow and stop runs, read logs and artifacts."
  value       = jsonencode(local._engineer_policy)
}

output "kms_key_arn" {
  description = "Key of the platform; null where the AWS-managed keys are used."
  value       = local._key_arn
}

output "repository_url" {
  description = "Address to push own images to."
  value       = module.repository.url
}

output "role_arn" {
  description = "Execution role that jobs may share."
  value       = module.role.arn
}

output "topic_arn" {
  description = "Topic of alarms and ended runs, to subscribe to."
  value       = module.alarms.topic_arn
}

output "warm_pool_guards" {
  description = "Deny statements by pool, for the role that creates the jobs of a pool."
  value       = { for name, pool in module.warm_pool : name => pool.guard_statements }
}
