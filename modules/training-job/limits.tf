locals {
  # One table of bounds for Terraform and Python, by the job file's field.
  _limits = { for row in jsondecode(file("${path.module}/limits.json")) : row.field => row }
}
