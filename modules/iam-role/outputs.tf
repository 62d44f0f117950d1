output "arn" {
  description = "ARN of the role, known at plan; usable once its policies exist."
  value       = local.arn
  depends_on  = [aws_iam_role_policy.this, aws_iam_role_policy_attachment.this]
}

output "job_policy_arns" {
  description = "Policies for the roles of single jobs, by name, known at plan: all that this role has but its buckets, and the managed ones. Null without `job_policies`."
  value       = !var.job_policies ? null : merge(local._policy_arns, var.managed_policy_arns)
  depends_on  = [aws_iam_policy.jobs]
}

output "name" {
  description = "Name of the role."
  value       = local.name
  depends_on  = [aws_iam_role_policy.this, aws_iam_role_policy_attachment.this]
}

output "policies" {
  description = "Statements of the inline policies by concern, for reviews and tests."
  value       = local.policies
}
