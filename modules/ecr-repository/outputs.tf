output "arn" {
  description = "ARN of the repository, known at plan."
  value       = local.arn
  depends_on  = [aws_ecr_repository.this]
}

output "name" {
  description = "Name of the repository."
  value       = local.name
  depends_on  = [aws_ecr_repository.this]
}

output "url" {
  description = "Address to push to and pull from, without a tag; known at plan."
  value       = local.url
  depends_on  = [aws_ecr_repository.this]
}
