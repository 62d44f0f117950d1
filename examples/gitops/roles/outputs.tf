output "apply_policies" {
  description = "What the apply role may do, for a role that somebody else takes: its own policy, and ARNs of managed ones."
  value = {
    own     = local._apply_policy
    managed = { for name in ["read", "roles"] : name => aws_iam_policy.this[name].arn }
  }
}

output "apply_role_arn" {
  description = "Role of the apply job; a variable of the protected environment."
  value       = "${local._arn}:iam::${var.account_id}:role/${var.name}-apply"
  depends_on  = [aws_iam_role_policy.this, aws_iam_role_policy_attachment.this]
}

output "permissions_boundary_arn" {
  description = "The boundary that each platform needs as its permissions_boundary_arn; without it the apply role makes no role."
  value       = local._boundary_arn
  depends_on  = [aws_iam_policy.this]
}

output "plan_role_arn" {
  description = "Role of the plan and drift jobs; a variable of the repository."
  value       = "${local._arn}:iam::${var.account_id}:role/${var.name}-plan"
  depends_on  = [aws_iam_role_policy.this, aws_iam_role_policy_attachment.this]
}
