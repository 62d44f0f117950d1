mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "eu-west-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
}

variables {
  context = {
    partition  = "aws"
    region     = "eu-west-1"
    account_id = "123456789012"
    prefix     = "sagefit-test"
    tags       = { Team = "vision" }
  }
}

run "defaults_are_immutable_scanned_and_encrypted" {
  command = plan

  assert {
    condition     = aws_ecr_repository.this.image_tag_mutability == "IMMUTABLE"
    error_message = "Tags must be immutable."
  }

  assert {
    condition     = aws_ecr_repository.this.image_scanning_configuration[0].scan_on_push
    error_message = "Images must be scanned on push."
  }

  assert {
    condition     = aws_ecr_repository.this.encryption_configuration[0].encryption_type == "KMS"
    error_message = "Images must be encrypted by KMS."
  }

  assert {
    condition     = aws_ecr_repository.this.force_delete == false
    error_message = "A repository with images must not be deleted by default."
  }
}

run "name_arn_and_url_are_known_at_plan" {
  command = plan

  assert {
    condition     = output.name == "sagefit-test" && output.arn == "arn:aws:ecr:eu-west-1:123456789012:repository/sagefit-test" && output.url == "123456789012.dkr.ecr.eu-west-1.amazonaws.com/sagefit-test"
    error_message = "Name, ARN and address must be built from the context."
  }
}

run "china_has_its_own_domain" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "cn-north-1" }
  }

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "123456789012", arn = "arn:aws-cn:iam::123456789012:root" }
  }

  variables {
    context = { partition = "aws-cn", region = "cn-north-1", account_id = "123456789012", prefix = "sagefit-test" }
    name    = "vision"
  }

  assert {
    condition     = output.url == "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/sagefit-test-vision"
    error_message = "Addresses in China end in amazonaws.com.cn, and the name follows the prefix."
  }
}

run "the_sovereign_cloud_has_its_own_domain" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "eusc-de-east-1" }
  }

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "123456789012", arn = "arn:aws-eusc:iam::123456789012:root" }
  }

  variables {
    context = { partition = "aws-eusc", region = "eusc-de-east-1", account_id = "123456789012", prefix = "sagefit-test" }
  }

  assert {
    condition     = output.url == "123456789012.dkr.ecr.eusc-de-east-1.amazonaws.eu/sagefit-test"
    error_message = "Addresses of a partition end in its own domain."
  }
}

run "lifecycle_expires_untagged_only_by_default" {
  command = plan

  assert {
    condition     = [for rule in jsondecode(aws_ecr_lifecycle_policy.this[0].policy).rules : rule.selection.tagStatus] == ["untagged"]
    error_message = "By default only untagged images may expire."
  }
}

run "lifecycle_keeps_the_newest" {
  command = plan

  variables {
    lifecycle_policy = { keep_images = 20 }
  }

  assert {
    condition     = { for rule in jsondecode(aws_ecr_lifecycle_policy.this[0].policy).rules : rule.rulePriority => rule.selection.countNumber } == { "1" = 14, "2" = 20 }
    error_message = "The rule for any image must come last."
  }
}

run "lifecycle_can_be_off" {
  command = plan

  variables {
    lifecycle_policy = { untagged_days = 0 }
  }

  assert {
    condition     = length(aws_ecr_lifecycle_policy.this) == 0
    error_message = "Without rules there must be no policy."
  }
}

run "encryption_takes_a_key" {
  command = plan

  variables {
    encryption = { kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111" }
  }

  assert {
    condition     = aws_ecr_repository.this.encryption_configuration[0].kms_key == "arn:aws:kms:eu-west-1:123456789012:key/0000-1111"
    error_message = "The key must encrypt the repository."
  }
}

run "choices_reach_the_repository" {
  command = plan

  variables {
    encryption   = { type = "AES256" }
    force_delete = true
    mutable_tags = true
  }

  assert {
    condition     = aws_ecr_repository.this.encryption_configuration[0].encryption_type == "AES256" && aws_ecr_repository.this.force_delete && aws_ecr_repository.this.image_tag_mutability == "MUTABLE"
    error_message = "Written choices must reach the repository."
  }
}

# Rules

run "context_partition_is_a_partition" {
  command = plan

  variables {
    context = { partition = "amazon", region = "eu-west-1", account_id = "123456789012", prefix = "sagefit-test" }
  }

  expect_failures = [var.context]
}

run "context_region_is_a_region" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "Ireland" }
  }

  variables {
    context = { partition = "aws", region = "Ireland", account_id = "123456789012", prefix = "sagefit-test" }
  }

  expect_failures = [var.context]
}

run "context_account_id_has_twelve_digits" {
  command = plan

  variables {
    context = { partition = "aws", region = "eu-west-1", account_id = "12345", prefix = "sagefit-test" }
  }

  expect_failures = [var.context]
}

run "context_prefix_is_not_empty" {
  command = plan

  variables {
    context = { partition = "aws", region = "eu-west-1", account_id = "123456789012", prefix = "" }
  }

  expect_failures = [var.context]
}

run "context_global_suffix_is_marked" {
  command = plan

  variables {
    context = { partition = "aws", region = "eu-west-1", account_id = "123456789012", prefix = "sagefit-test", global_suffix = "-eu-west-1" }
  }

  expect_failures = [var.context]
}

run "encryption_type_is_known" {
  command = plan

  variables {
    encryption = { type = "none" }
  }

  expect_failures = [var.encryption]
}

run "key_needs_kms" {
  command = plan

  variables {
    encryption = { type = "AES256", kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111" }
  }

  expect_failures = [var.encryption]
}

run "untagged_days_are_not_negative" {
  command = plan

  variables {
    lifecycle_policy = { untagged_days = -1 }
  }

  expect_failures = [var.lifecycle_policy]
}

run "keep_images_is_positive" {
  command = plan

  variables {
    lifecycle_policy = { keep_images = 0 }
  }

  expect_failures = [var.lifecycle_policy]
}

run "name_is_a_repository_name" {
  command = plan

  variables {
    name = "Vision"
  }

  expect_failures = [var.name]
}

run "untagged_days_are_whole" {
  command = plan

  variables {
    lifecycle_policy = { untagged_days = 1.5 }
  }

  expect_failures = [var.lifecycle_policy]
}

run "keep_images_is_whole" {
  command = plan

  variables {
    lifecycle_policy = { keep_images = 1.5 }
  }

  expect_failures = [var.lifecycle_policy]
}

run "the_provider_works_in_the_region_of_the_context" {
  command = plan

  override_data {
    target = data.aws_region.this
    values = { id = "eu-central-1" }
  }

  expect_failures = [data.aws_region.this]
}

run "the_provider_works_in_the_account_of_the_context" {
  command = plan

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "210987654321", arn = "arn:aws:iam::210987654321:root" }
  }

  expect_failures = [data.aws_caller_identity.this]
}

run "the_provider_works_in_the_partition_of_the_context" {
  command = plan

  override_data {
    target = data.aws_caller_identity.this
    values = { account_id = "123456789012", arn = "arn:aws-cn:iam::123456789012:root" }
  }

  expect_failures = [data.aws_caller_identity.this]
}

run "policies_name_the_arn_of_the_repository" {
  command = plan

  override_resource {
    target          = aws_ecr_repository.this
    override_during = plan
    values          = { arn = "arn:aws-cn:ecr:eu-west-1:123456789012:repository/sagefit-test" }
  }

  expect_failures = [aws_ecr_repository.this]
}
