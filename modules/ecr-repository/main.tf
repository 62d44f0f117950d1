locals {
  name = var.name == null ? var.context.prefix : "${var.context.prefix}-${var.name}"
  arn  = "arn:${var.context.partition}:ecr:${var.context.region}:${var.context.account_id}:repository/${local.name}"

  _dns_suffix = lookup({
    aws-cn    = "amazonaws.com.cn"
    aws-eusc  = "amazonaws.eu"
    aws-iso   = "c2s.ic.gov"
    aws-iso-b = "sc2s.sgov.gov"
    aws-iso-e = "cloud.adc-e.uk"
    aws-iso-f = "csp.hci.ic.gov"
  }, var.context.partition, "amazonaws.com")
  url = "${var.context.account_id}.dkr.ecr.${var.context.region}.${local._dns_suffix}/${local.name}"

  # ECR wants the rule for any image to have the highest priority number.
  lifecycle_rules = concat(
    [
      for days in [var.lifecycle_policy.untagged_days] : {
        rulePriority = 1
        description  = "Expire untagged images after ${days} days"
        selection    = { tagStatus = "untagged", countType = "sinceImagePushed", countUnit = "days", countNumber = days }
        action       = { type = "expire" }
      } if days > 0
    ],
    [
      for count in [var.lifecycle_policy.keep_images] : {
        rulePriority = 2
        description  = "Keep the newest ${count} images"
        selection    = { tagStatus = "any", countType = "imageCountMoreThan", countNumber = count }
        action       = { type = "expire" }
      } if count != null
    ],
  )
}

resource "aws_ecr_repository" "this" {
  #checkov:skip=CKV_AWS_51:Tags are immutable unless the caller sets mutable_tags
  #checkov:skip=CKV_AWS_136:KMS is the default; AES256 is the caller's written choice

  name                 = local.name
  force_delete         = var.force_delete
  image_tag_mutability = var.mutable_tags ? "MUTABLE" : "IMMUTABLE"
  tags                 = var.context.tags

  encryption_configuration {
    encryption_type = var.encryption.type
    kms_key         = var.encryption.kms_key_arn
  }

  image_scanning_configuration {
    scan_on_push = true
  }

  lifecycle {
    postcondition {
      condition     = self.arn == local.arn
      error_message = "context: the ARN of the repository is ${self.arn}, and policies name ${local.arn}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_ecr_lifecycle_policy" "this" {
  count = length(local.lifecycle_rules) > 0 ? 1 : 0

  repository = aws_ecr_repository.this.name
  policy     = jsonencode({ rules = local.lifecycle_rules })
}
