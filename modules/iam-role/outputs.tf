output "arn" {
  description = "ARN of the role, known at plan; usable once its policies exist."
  value       = local.arn
  depends_on  = [aws_iam_role_policy.this, aws_iam_role_policy_attachment.this]
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
