terraform {
  required_version = ">= 1.10"

  # Overridden by -backend-config=path=... at init, or by a backend_override.tf with another backend.
  backend "local" {}

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}
