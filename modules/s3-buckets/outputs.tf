output "arns" {
  description = "Bucket ARNs by key, known at plan."
  value       = local.arns
  depends_on  = [aws_s3_bucket_policy.this, aws_s3_bucket_server_side_encryption_configuration.this]
}

output "names" {
  description = "Bucket names by key, known at plan; usable once encryption and policy are in place."
  value       = local.names
  depends_on  = [aws_s3_bucket_policy.this, aws_s3_bucket_server_side_encryption_configuration.this]
}
