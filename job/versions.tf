terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }

  # One state per job: `terraform init -backend-config=path=...`, or another
  # backend altogether in a file backend_override.tf.
  backend "local" {}
}
