# What a plan needs: to look at what the platforms are made of, to read their states, to hold the state's lock; and what
# `sagefit doctor` looks at.
locals {
  _state_objects = "${local._arn}:s3:::${var.state.bucket}/sagefit"

  # Terraform looks at the files it has uploaded, and S3 lets nobody look who may not read. They are files of the
  # repository, which whoever plans has anyway.
  _uploaded = flatten([
    for platform in var.platforms : [
      for kind in ["code", "inputs", "launcher"] :
      "${local._arn}:s3:::sagefit-${platform}-${var.account_id}-${var.region}-data/jobs/*/${kind}/*"
    ]
  ])

  _read = {
    Sid    = "Look"
    Effect = "Allow"
    Action = [
      "cloudwatch:DescribeAlarms",
      "cloudwatch:GetDashboard",
      "cloudwatch:ListTagsForResource",
      "ec2:DescribeInstanceTypeOfferings",
      "ec2:DescribeRouteTables",
      "ec2:DescribeSecurityGroups",
      "ec2:DescribeSubnets",
      "ec2:DescribeVpcEndpoints",
      "ec2:DescribeVpcs",
      "ecr:DescribeImages",
      "ecr:DescribeRepositories",
      "ecr:GetLifecyclePolicy",
      "ecr:ListTagsForResource",
      "events:DescribeRule",
      "events:ListTagsForResource",
      "events:ListTargetsByRule",
      "iam:GetPolicy",
      "iam:GetPolicyVersion",
      "iam:GetRole",
      "iam:GetRolePolicy",
      "iam:ListAttachedRolePolicies",
      "iam:ListInstanceProfilesForRole",
      "iam:ListPolicyVersions",
      "iam:ListRolePolicies",
      "iam:SimulatePrincipalPolicy",
      "kms:DescribeKey",
      "kms:GetKeyPolicy",
      "kms:GetKeyRotationStatus",
      "kms:ListAliases",
      "kms:ListResourceTags",
      "logs:DescribeLogGroups",
      "logs:ListTagsForResource",
      "s3:GetAccelerateConfiguration",
      "s3:GetBucket*",
      "s3:GetEncryptionConfiguration",
      "s3:GetLifecycleConfiguration",
      "s3:GetReplicationConfiguration",
      "s3:ListBucket",
      "scheduler:GetSchedule",
      "scheduler:ListTagsForResource",
      "servicequotas:GetAWSDefaultServiceQuota",
      "servicequotas:GetRequestedServiceQuotaChange",
      "servicequotas:GetServiceQuota",
      "servicequotas:ListAWSDefaultServiceQuotas",
      "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota",
      "servicequotas:ListServiceQuotas",
      "sns:GetSubscriptionAttributes",
      "sns:GetTopicAttributes",
      "sns:ListSubscriptionsByTopic",
      "sns:ListTagsForResource",
      "ssm:DescribeParameters",
      "ssm:ListTagsForResource",
      "states:DescribeStateMachine",
      "states:ListExecutions",
      "states:ListStateMachines",
      "states:ListStateMachineVersions",
      "states:ListTagsForResource",
      "states:ValidateStateMachineDefinition",
    ]
    Resource = "*"
  }

  _read_documents = {
    Sid      = "ReadPlatforms"
    Effect   = "Allow"
    Action   = "ssm:GetParameter"
    Resource = [for platform in var.platforms : "${local._arn}:ssm:${local._here}:parameter/sagefit/${platform}"]
  }

  _read_uploaded = {
    Sid      = "LookAtUploads"
    Effect   = "Allow"
    Action   = ["s3:GetObject", "s3:GetObjectTagging"]
    Resource = local._uploaded
  }

  # What a page tells of runs: when the last ones ran, how they ended and what they cost, and which are in progress. The
  # reason of a failure is among it, as SageMaker keeps it; logs and data are not. Names can be listed of all jobs alone.
  _read_runs = [
    {
      Sid      = "LookAtRuns"
      Effect   = "Allow"
      Action   = "states:DescribeExecution"
      Resource = [for platform in var.platforms : "${local._arn}:states:${local._here}:execution:sagefit-${platform}-*"]
    },
    {
      Sid       = "LookAtJobs"
      Effect    = "Allow"
      Action    = [for what in ["TrainingJob", "ProcessingJob", "HyperParameterTuningJob"] : "sagemaker:Describe${what}"]
      Resource  = "*"
      Condition = { StringEquals = { "aws:ResourceTag/sagefit:platform" = var.platforms } }
    },
    {
      Sid      = "ListJobs"
      Effect   = "Allow"
      Action   = ["sagemaker:ListProcessingJobs", "sagemaker:ListTrainingJobs", "sagemaker:ListTrainingJobsForHyperParameterTuningJob"]
      Resource = "*"
    },
  ]

  _read_state = {
    Sid      = "ReadState"
    Effect   = "Allow"
    Action   = "s3:GetObject"
    Resource = "${local._state_objects}/*"
  }

  _lock_state = {
    Sid      = "LockState"
    Effect   = "Allow"
    Action   = ["s3:PutObject", "s3:DeleteObject"]
    Resource = "${local._state_objects}/*.tflock"
  }

  _state_key = var.state.kms_key_arn == null ? [] : [{
    Sid       = "StateKey"
    Effect    = "Allow"
    Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
    Resource  = var.state.kms_key_arn
    Condition = { StringEquals = { "kms:ViaService" = "s3.${local._via}" } }
  }]

  # Whatever else the role is ever given: a plan runs what is in the pull request, and must not see data or secrets.
  _no_data = {
    Sid         = "NoData"
    Effect      = "Deny"
    Action      = ["s3:GetObject", "s3:GetObjectVersion"]
    NotResource = concat(["${local._state_objects}/*"], local._uploaded)
  }

  _no_secrets = {
    Sid    = "NoSecrets"
    Effect = "Deny"
    Action = [
      "ecr:BatchGetImage",
      "ecr:GetDownloadUrlForLayer",
      "logs:FilterLogEvents",
      "logs:GetLogEvents",
      "logs:StartQuery",
      "secretsmanager:BatchGetSecretValue",
      "secretsmanager:GetSecretValue",
      "ssm:GetParameterHistory",
      "ssm:GetParametersByPath",
      "sts:AssumeRole",
    ]
    Resource = "*"
  }

  # All keys but that of the state, which is your own or, in a bucket with AWS's default key, AWS's.
  _no_other_keys = {
    for element, value in {
      Sid         = "NoOtherKeys"
      Effect      = "Deny"
      Action      = "kms:Decrypt"
      Resource    = var.state.kms_key_arn == null ? "*" : null
      NotResource = var.state.kms_key_arn
      Condition   = var.state.kms_key_arn == null ? { "ForAllValues:StringNotEquals" = { "kms:ResourceAliases" = "alias/aws/s3" } } : null
    } : element => value if value != null
  }

  # What both roles read is one managed policy: the inline policies of a role have 10,240 characters together (IAM).
  _read_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat([local._read, local._read_documents, local._read_uploaded, local._read_state], local._read_runs, local._state_key)
  })

  _plan_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [local._lock_state, local._no_data, local._no_secrets, local._no_other_keys]
  })
}
