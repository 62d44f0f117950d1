output "permissions_boundary_arn" {
  description = "The boundary of what the pipeline makes."
  value       = module.roles.permissions_boundary_arn
}

output "role_arn" {
  description = "The role that applies what a pipeline would."
  value       = aws_iam_role.acts.arn
  depends_on  = [aws_iam_role_policy.acts, aws_iam_role_policy_attachment.acts]
}

output "security_group_ids" {
  description = "The group of the jobs."
  value       = [aws_security_group.jobs.id]
}

output "subnet_ids" {
  description = "Private subnets in two zones."
  value       = aws_subnet.private[*].id
}
