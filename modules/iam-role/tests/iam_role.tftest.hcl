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

run "minimal_role_has_telemetry_only" {
  command = plan

  assert {
    condition     = keys(aws_iam_role_policy.this) == ["telemetry"]
    error_message = "Without buckets, repositories, network and keys only telemetry may remain."
  }

  assert {
    condition     = aws_iam_role.this.name == "sagefit-test-execution" && output.arn == "arn:aws:iam::123456789012:role/sagefit-test-execution"
    error_message = "Name and ARN must be built from the context."
  }

  assert {
    condition     = aws_iam_role.this.tags == tomap({ Team = "vision" })
    error_message = "The role must carry the context's tags."
  }
}

run "names_can_be_those_of_the_region" {
  command = plan

  variables {
    context      = { partition = "aws", region = "eu-west-1", account_id = "123456789012", prefix = "sagefit-test", global_suffix = "_eu-west-1" }
    job_policies = true
  }

  assert {
    condition     = aws_iam_role.this.name == "sagefit-test-execution_eu-west-1" && output.arn == "arn:aws:iam::123456789012:role/${aws_iam_role.this.name}"
    error_message = "the role has the region's name"
  }

  assert {
    condition     = [aws_iam_policy.jobs["jobs"].name, output.job_policy_arns["jobs"]] == ["sagefit-test-jobs_eu-west-1", "arn:aws:iam::123456789012:policy/sagefit/sagefit-test-jobs_eu-west-1"]
    error_message = "and so have the policies of jobs"
  }
}

run "trust_is_limited_to_jobs_of_the_account" {
  command = plan

  assert {
    condition = jsondecode(aws_iam_role.this.assume_role_policy).Statement == [{
      Sid       = "SageMakerJobsOfThisAccount"
      Effect    = "Allow"
      Principal = { Service = "sagemaker.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "aws:SourceAccount" = "123456789012" }
        ArnLike = {
          "aws:SourceArn" = [
            "arn:aws:sagemaker:*:123456789012:training-job/*",
            "arn:aws:sagemaker:*:123456789012:processing-job/*",
            "arn:aws:sagemaker:*:123456789012:hyper-parameter-tuning-job/*",
          ]
        }
      }
    }]
    error_message = "Only SageMaker may assume the role, for training, processing and tuning jobs of the account."
  }
}

run "bucket_access_is_graded" {
  command = plan

  variables {
    buckets = {
      data        = { name = "bucket-data" }
      artifacts   = { name = "bucket-artifacts", access = "write", prefixes = ["jobs/"] }
      checkpoints = { name = "bucket-checkpoints", access = "sync", prefixes = ["jobs/"] }
    }
  }

  assert {
    condition = {
      for statement in jsondecode(aws_iam_role_policy.this["storage"].policy).Statement :
      statement.Sid => statement.Resource
      } == {
      ListArtifacts   = "arn:aws:s3:::bucket-artifacts"
      ListCheckpoints = "arn:aws:s3:::bucket-checkpoints"
      ListData        = "arn:aws:s3:::bucket-data"
      ReadObjects = [
        "arn:aws:s3:::bucket-artifacts/jobs/*",
        "arn:aws:s3:::bucket-checkpoints/jobs/*",
        "arn:aws:s3:::bucket-data/*",
      ]
      WriteObjects = [
        "arn:aws:s3:::bucket-artifacts/jobs/*",
        "arn:aws:s3:::bucket-checkpoints/jobs/*",
      ]
      DeleteCheckpoints = ["arn:aws:s3:::bucket-checkpoints/jobs/*"]
    }
    error_message = "Reading, writing and deleting must each reach their own buckets and prefixes only."
  }

  assert {
    condition = {
      for statement in local.policies.storage :
      statement.Sid => try(statement.Condition.StringLike["s3:prefix"], null) if statement.Action == "s3:ListBucket"
    } == { ListArtifacts = ["jobs/*"], ListCheckpoints = ["jobs/*"], ListData = null }
    error_message = "Listing must be limited to the prefixes where there are some."
  }
}

run "read_only_buckets_give_no_write" {
  command = plan

  variables {
    buckets = { lake = { name = "company-lake", prefixes = ["vision/2026/", "audio/"] } }
  }

  assert {
    condition     = [for statement in local.policies.storage : statement.Sid] == ["ListLake", "ReadObjects"]
    error_message = "A read-only bucket must add no write and no delete statement."
  }
}

run "images_are_pulled_from_named_repositories" {
  command = plan

  variables {
    repository_arns = ["arn:aws:ecr:eu-west-1:123456789012:repository/sagefit-test"]
  }

  assert {
    condition     = [for statement in local.policies.images : statement.Sid if statement.Resource == "*"] == ["RegistryToken"]
    error_message = "Only the registry token may be on *."
  }

  assert {
    condition     = jsondecode(aws_iam_role_policy.this["images"].policy).Statement[1].Resource == ["arn:aws:ecr:eu-west-1:123456789012:repository/sagefit-test"]
    error_message = "Pulls must be limited to the repositories given."
  }
}

run "network_permissions_follow_subnets" {
  command = plan

  variables {
    network = { subnet_ids = ["subnet-0a", "subnet-0b"], security_group_ids = ["sg-0a"] }
  }

  assert {
    condition = local.policies.network[1].Resource == [
      "arn:aws:ec2:eu-west-1:123456789012:network-interface/*",
      "arn:aws:ec2:eu-west-1:*:subnet/subnet-0a",
      "arn:aws:ec2:eu-west-1:*:subnet/subnet-0b",
      "arn:aws:ec2:eu-west-1:*:security-group/sg-0a",
    ]
    error_message = "Interfaces must be made in the given subnets and groups only."
  }

  assert {
    condition = jsonencode(local.policies.network[2].Condition.ArnLike["ec2:Subnet"]) == jsonencode([
      "arn:aws:ec2:eu-west-1:*:subnet/subnet-0a",
      "arn:aws:ec2:eu-west-1:*:subnet/subnet-0b",
    ])
    error_message = "Interfaces of other subnets must be out of reach."
  }

  assert {
    condition     = [for statement in local.policies.network : alltrue([for action in flatten([statement.Action]) : startswith(action, "ec2:Describe")]) if statement.Resource == "*"] == [true]
    error_message = "Only EC2's Describe actions may be on *."
  }
}

run "keys_are_used_and_granted_to_services_only" {
  command = plan

  variables {
    kms_key_arns = { platform = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111" }
  }

  assert {
    condition     = alltrue([for statement in local.policies.keys : statement.Resource == ["arn:aws:kms:eu-west-1:123456789012:key/0000-1111"]])
    error_message = "Key statements must name the key."
  }

  assert {
    condition     = [for statement in local.policies.keys : statement.Condition if statement.Action == "kms:CreateGrant"] == [{ Bool = { "kms:GrantIsForAWSResource" = "true" } }]
    error_message = "Grants must be for AWS services only."
  }
}

run "metrics_are_limited_to_namespaces" {
  command = plan

  variables {
    metric_namespaces = ["/aws/sagemaker/TrainingJobs", "team/vision"]
  }

  assert {
    condition     = jsonencode(local.policies.telemetry[1].Condition) == jsonencode({ StringEquals = { "cloudwatch:namespace" = ["/aws/sagemaker/TrainingJobs", "team/vision"] } })
    error_message = "PutMetricData must be conditioned on the namespaces."
  }
}

run "no_namespaces_no_metrics" {
  command = plan

  variables {
    metric_namespaces = []
  }

  assert {
    condition     = [for statement in local.policies.telemetry : statement.Sid] == ["WriteTrainingLogs"]
    error_message = "Without namespaces the role must not put metrics."
  }
}

run "boundary_and_managed_policies_are_attached" {
  command = plan

  variables {
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
    managed_policy_arns      = { feature_store = "arn:aws:iam::123456789012:policy/feature-store" }
  }

  assert {
    condition     = aws_iam_role.this.permissions_boundary == "arn:aws:iam::123456789012:policy/boundary"
    error_message = "The boundary must be on the role."
  }

  assert {
    condition     = aws_iam_role_policy_attachment.this["feature_store"].policy_arn == "arn:aws:iam::123456789012:policy/feature-store"
    error_message = "Managed policies must be attached under their key."
  }
}

run "policies_for_single_jobs_are_made_on_request" {
  command = plan

  assert {
    condition     = output.job_policy_arns == null && length(aws_iam_policy.jobs) == 0
    error_message = "Nothing is made that nobody asked for."
  }
}

run "policies_for_single_jobs_hold_all_but_data" {
  command = plan

  variables {
    job_policies        = true
    buckets             = { data = { name = "bucket-data" } }
    kms_key_arns        = { own = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111" }
    managed_policy_arns = { team = "arn:aws:iam::123456789012:policy/team" }
    network             = { subnet_ids = ["subnet-0a"], security_group_ids = ["sg-0a"] }
    repository_arns     = ["arn:aws:ecr:eu-west-1:123456789012:repository/a"]
  }

  assert {
    condition = { for name, policy in aws_iam_policy.jobs : "${policy.path}${policy.name}" => jsondecode(policy.policy).Statement[*].Sid } == {
      "/sagefit/sagefit-test-jobs" = [
        "RegistryToken", "PullImages", "WriteTrainingLogs", "PutMetrics", "DescribeNetwork", "CreateInterfaces",
        "ManageInterfacesOfTheSubnets",
      ]
      "/sagefit/sagefit-test-job-keys" = ["UseKeys", "GrantKeysToVolumes"]
    }
    error_message = "Images, telemetry, network and keys are for all jobs; data is each job's own."
  }

  assert {
    condition = output.job_policy_arns == {
      jobs     = "arn:aws:iam::123456789012:policy/sagefit/sagefit-test-jobs"
      job-keys = "arn:aws:iam::123456789012:policy/sagefit/sagefit-test-job-keys"
      team     = "arn:aws:iam::123456789012:policy/team"
    }
    error_message = "Their ARNs must be known at plan, and the team's own policies go with them."
  }
}

run "policies_for_single_jobs_fit_iam" {
  command = plan

  variables {
    job_policies    = true
    repository_arns = [for n in range(80) : "arn:aws:ecr:eu-west-1:123456789012:repository/a-repository-with-a-long-name-${n}"]
  }

  expect_failures = [aws_iam_policy.jobs]
}

run "managed_policies_do_not_take_the_name_of_ours" {
  command = plan

  variables {
    job_policies        = true
    managed_policy_arns = { jobs = "arn:aws:iam::123456789012:policy/team" }
  }

  expect_failures = [var.managed_policy_arns]
}

run "other_partitions_keep_their_arns" {
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
    buckets = { data = { name = "bucket-data" } }
  }

  assert {
    condition     = output.arn == "arn:aws-cn:iam::123456789012:role/sagefit-test-execution" && local.policies.storage[0].Resource == "arn:aws-cn:s3:::bucket-data"
    error_message = "ARNs must be of the partition."
  }
}

run "statement_ids_are_unique" {
  command = plan

  variables {
    buckets         = { data = { name = "bucket-data" }, raw-data = { name = "bucket-raw", access = "write" }, raw2 = { name = "bucket-raw2", access = "sync" } }
    repository_arns = ["arn:aws:ecr:eu-west-1:123456789012:repository/sagefit-test"]
    network         = { subnet_ids = ["subnet-0a"], security_group_ids = ["sg-0a"] }
    kms_key_arns    = { platform = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111" }
  }

  assert {
    condition = alltrue([
      for statements in values(local.policies) :
      length(distinct([for statement in statements : statement.Sid])) == length(statements) && alltrue([for statement in statements : can(regex("^[A-Za-z0-9]+$", statement.Sid))])
    ])
    error_message = "Every statement needs an alphanumeric Sid of its own (IAM)."
  }

  assert {
    condition = {
      for statement in flatten(values(local.policies)) : statement.Sid => jsonencode(flatten([statement.Action]))
      } == {
      ListData                     = jsonencode(["s3:ListBucket"])
      ListRawData                  = jsonencode(["s3:ListBucket"])
      ListRaw2                     = jsonencode(["s3:ListBucket"])
      ReadObjects                  = jsonencode(["s3:GetObject"])
      WriteObjects                 = jsonencode(["s3:AbortMultipartUpload", "s3:PutObject"])
      DeleteCheckpoints            = jsonencode(["s3:DeleteObject"])
      RegistryToken                = jsonencode(["ecr:GetAuthorizationToken"])
      PullImages                   = jsonencode(["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"])
      WriteTrainingLogs            = jsonencode(["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"])
      PutMetrics                   = jsonencode(["cloudwatch:PutMetricData"])
      DescribeNetwork              = jsonencode(["ec2:DescribeDhcpOptions", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"])
      CreateInterfaces             = jsonencode(["ec2:CreateNetworkInterface"])
      ManageInterfacesOfTheSubnets = jsonencode(["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface", "ec2:DeleteNetworkInterfacePermission"])
      UseKeys                      = jsonencode(["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"])
      GrantKeysToVolumes           = jsonencode(["kms:CreateGrant"])
    }
    error_message = "Every action must be one that training needs."
  }

  assert {
    condition     = local.policies.telemetry[0].Resource == [for kind in ["ProcessingJobs", "TrainingJobs"] : "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/sagemaker/${kind}*"]
    error_message = "Only the logs of training and processing jobs may be written."
  }

  assert {
    condition     = length(join("", [for policy in values(aws_iam_role_policy.this) : policy.policy])) < 10240
    error_message = "Inline policies of a role may have 10,240 characters together (IAM)."
  }
}

# Rules

run "bucket_name_is_no_arn" {
  command = plan

  variables {
    buckets = { data = { name = "arn:aws:s3:::bucket" } }
  }

  expect_failures = [var.buckets]
}

run "bucket_access_is_a_grade" {
  command = plan

  variables {
    buckets = { data = { name = "bucket", access = "admin" } }
  }

  expect_failures = [var.buckets]
}

run "bucket_prefix_has_no_wildcard" {
  command = plan

  variables {
    buckets = { data = { name = "bucket", prefixes = ["raw/*"] } }
  }

  expect_failures = [var.buckets]
}

run "bucket_prefix_does_not_start_with_a_slash" {
  command = plan

  variables {
    buckets = { data = { name = "bucket", prefixes = ["/raw"] } }
  }

  expect_failures = [var.buckets]
}

run "bucket_keys_differ_in_letters_and_digits" {
  command = plan

  variables {
    buckets = { raw-data = { name = "bucket-1" }, rawdata = { name = "bucket-2" } }
  }

  expect_failures = [var.buckets]
}

run "kms_key_is_a_key_arn" {
  command = plan

  variables {
    kms_key_arns = { platform = "arn:aws:kms:eu-west-1:123456789012:alias/platform" }
  }

  expect_failures = [var.kms_key_arns]
}

run "managed_policy_is_a_policy_arn" {
  command = plan

  variables {
    managed_policy_arns = { own = "AmazonS3ReadOnlyAccess" }
  }

  expect_failures = [var.managed_policy_arns]
}

run "managed_policy_does_not_undo_the_scoping" {
  command = plan

  variables {
    managed_policy_arns = { all = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess" }
  }

  expect_failures = [var.managed_policy_arns]
}

run "metric_namespace_has_no_wildcard" {
  command = plan

  variables {
    metric_namespaces = ["*"]
  }

  expect_failures = [var.metric_namespaces]
}

run "name_is_lower_case" {
  command = plan

  variables {
    name = "Execution"
  }

  expect_failures = [var.name]
}

run "name_fits_iam" {
  command = plan

  variables {
    name = "a-very-long-name-for-a-role-that-has-to-hold-a-prefix-as-well"
  }

  expect_failures = [var.name]
}

run "subnet_ids_are_ids" {
  command = plan

  variables {
    network = { subnet_ids = ["private-a"], security_group_ids = ["sg-0a"] }
  }

  expect_failures = [var.network]
}

run "security_group_ids_are_ids" {
  command = plan

  variables {
    network = { subnet_ids = ["subnet-0a"], security_group_ids = ["default"] }
  }

  expect_failures = [var.network]
}

run "subnets_and_groups_come_together" {
  command = plan

  variables {
    network = { subnet_ids = ["subnet-0a"] }
  }

  expect_failures = [var.network]
}

run "boundary_is_a_policy_arn" {
  command = plan

  variables {
    permissions_boundary_arn = "boundary"
  }

  expect_failures = [var.permissions_boundary_arn]
}

run "repository_is_an_arn_with_an_account" {
  command = plan

  variables {
    repository_arns = ["arn:aws:ecr:eu-west-1:*:repository/pytorch-training"]
  }

  expect_failures = [var.repository_arns]
}

run "policies_name_the_arn_of_the_role" {
  command = plan

  override_resource {
    target          = aws_iam_role.this
    override_during = plan
    values          = { arn = "arn:aws-cn:iam::123456789012:role/sagefit-test-execution" }
  }

  expect_failures = [aws_iam_role.this]
}

run "roles_name_the_arn_of_the_policy" {
  command = plan

  variables {
    job_policies = true
  }

  override_resource {
    target          = aws_iam_policy.jobs["jobs"]
    override_during = plan
    values          = { arn = "arn:aws-cn:iam::123456789012:policy/sagefit/sagefit-test-jobs" }
  }

  expect_failures = [aws_iam_policy.jobs]
}
