# One job on a platform. The provider is configured by the environment.

data "aws_ssm_parameter" "platform" {
  name = "/sagefit/${var.platform}"

  lifecycle {
    postcondition {
      condition     = try(jsondecode(self.insecure_value).schema == 1, false)
      error_message = "platform: /sagefit/${var.platform} holds no platform document of schema 1. Apply the platform with this version of Sagefit, or correct the name."
    }
  }
}

module "job" {
  source = "../modules/training-job"

  name               = var.name
  platform           = jsondecode(data.aws_ssm_parameter.platform.insecure_value)
  description        = var.description
  image              = var.image
  code               = var.code
  processing         = var.processing
  channels           = var.channels
  hyperparameters    = var.hyperparameters
  environment        = var.environment
  resources          = var.resources
  metric_definitions = var.metric_definitions
  max_price          = var.max_price
  attempts           = var.attempts
  schedule           = var.schedule
  tags               = var.tags
  tracing            = var.tracing
  tuning             = var.tuning
}
