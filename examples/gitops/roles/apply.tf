# What an apply needs: all that a plan does, and to make and change what bears the platforms' names.
locals {
  _prefixes = [for platform in var.platforms : "sagefit-${platform}"]
  _iam      = "${local._arn}:iam::${var.account_id}"
  # Of the platform, of its state machines and schedules, and of its jobs. With an underscore: of what stops the jobs of
  # runs that ended.
  _roles = flatten([
    for platform in var.platforms : concat(
      [for path in ["", "sagefit/", "sagefit/${platform}/"] : "${local._iam}:role/${path}sagefit-${platform}-*"],
      ["${local._iam}:role/sagefit/sagefit-${platform}_cleanup*"],
    )
  ])
  _role_policies = [for prefix in local._prefixes : "${local._iam}:policy/sagefit/${prefix}-*"]

  _manage = {
    Sid    = "Manage"
    Effect = "Allow"
    Action = [
      "cloudwatch:DeleteAlarms",
      "cloudwatch:DeleteDashboards",
      "cloudwatch:PutDashboard",
      "cloudwatch:PutMetricAlarm",
      "cloudwatch:TagResource",
      "cloudwatch:UntagResource",
      "ecr:CreateRepository",
      "ecr:DeleteLifecyclePolicy",
      "ecr:DeleteRepository",
      "ecr:PutImageScanningConfiguration",
      "ecr:PutImageTagMutability",
      "ecr:PutLifecyclePolicy",
      "ecr:TagResource",
      "ecr:UntagResource",
      "events:DeleteRule",
      "events:PutRule",
      "events:PutTargets",
      "events:RemoveTargets",
      "events:TagResource",
      "events:UntagResource",
      "logs:AssociateKmsKey",
      "logs:CreateLogGroup",
      "logs:DeleteLogGroup",
      "logs:DeleteRetentionPolicy",
      "logs:DisassociateKmsKey",
      "logs:PutRetentionPolicy",
      "logs:TagResource",
      "logs:UntagResource",
      "s3:CreateBucket",
      "s3:DeleteBucket",
      "s3:DeleteBucketPolicy",
      "s3:PutBucket*",
      "s3:PutEncryptionConfiguration",
      "s3:PutLifecycleConfiguration",
      "scheduler:CreateSchedule",
      "scheduler:DeleteSchedule",
      "scheduler:UpdateSchedule",
      "sns:CreateTopic",
      "sns:DeleteTopic",
      "sns:SetTopicAttributes",
      "sns:Subscribe",
      "sns:TagResource",
      "sns:UntagResource",
      "states:CreateStateMachine",
      "states:DeleteStateMachine",
      "states:PublishStateMachineVersion",
      "states:TagResource",
      "states:UntagResource",
      "states:UpdateStateMachine",
    ]
    Resource = flatten([
      for prefix in local._prefixes : [
        "${local._arn}:cloudwatch::${var.account_id}:dashboard/${prefix}-*",
        "${local._arn}:cloudwatch:${local._here}:alarm:${prefix}-*",
        "${local._arn}:ecr:${local._here}:repository/${prefix}*",
        "${local._arn}:events:${local._here}:rule/${prefix}-*",
        "${local._arn}:logs:${local._here}:log-group:/aws/vendedlogs/states/${prefix}-*",
        "${local._arn}:s3:::${prefix}-${var.account_id}-*",
        "${local._arn}:scheduler:${local._here}:schedule/default/${prefix}-*",
        "${local._arn}:sns:${local._here}:${prefix}-*",
        "${local._arn}:states:${local._here}:stateMachine:${prefix}-*",
        "${local._arn}:states:${local._here}:stateMachine:${prefix}_cleanup",
      ]
    ])
  }

  # IAM knows no resource for this action.
  _unsubscribe = {
    Sid      = "Unsubscribe"
    Effect   = "Allow"
    Action   = "sns:Unsubscribe"
    Resource = "*"
  }

  # A warm pool may ask for more instances (warm_pools[*].quota.request). AWS decides.
  _ask_for_quotas = {
    Sid      = "AskForQuotas"
    Effect   = "Allow"
    Action   = "servicequotas:RequestServiceQuotaIncrease"
    Resource = "${local._arn}:servicequotas:${local._here}:sagemaker/*"
  }

  # A state machine's logs are delivered by a service of CloudWatch Logs that knows no resources.
  _deliver = {
    Sid    = "DeliverLogs"
    Effect = "Allow"
    Action = [
      "logs:CreateLogDelivery",
      "logs:DeleteLogDelivery",
      "logs:DescribeResourcePolicies",
      "logs:GetLogDelivery",
      "logs:ListLogDeliveries",
      "logs:PutResourcePolicy",
      "logs:UpdateLogDelivery",
    ]
    Resource = "*"
  }

  _upload = {
    Sid      = "Upload"
    Effect   = "Allow"
    Action   = ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObject", "s3:PutObjectTagging"]
    Resource = local._uploaded
  }

  # To remove an uploaded file from a bucket that keeps versions, Terraform lists the versions of this file.
  _list_versions = {
    Sid    = "ListVersionsOfUploads"
    Effect = "Allow"
    Action = "s3:ListBucketVersions"
    Resource = [
      for platform in var.platforms : "${local._arn}:s3:::sagefit-${platform}-${var.account_id}-${var.region}-data"
    ]
    Condition = { StringLike = { "s3:prefix" = ["jobs/*"] } }
  }

  _publish = {
    Sid      = "Publish"
    Effect   = "Allow"
    Action   = ["ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:PutParameter", "ssm:RemoveTagsFromResource"]
    Resource = local._read_documents.Resource
  }

  # Whoever may write a role's policy may give himself what that role has. So the roles are those of the platforms
  # alone, with the boundary, and they can be passed to the services that use them alone.
  _make_roles = {
    Sid       = "MakeRoles"
    Effect    = "Allow"
    Action    = ["iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"]
    Resource  = local._roles
    Condition = { StringEquals = { "iam:PermissionsBoundary" = local._boundary_arn } }
  }

  _change_roles = {
    Sid    = "ChangeRoles"
    Effect = "Allow"
    Action = [
      "iam:DeleteRole",
      "iam:DeleteRolePolicy",
      "iam:DetachRolePolicy",
      "iam:TagRole",
      "iam:UntagRole",
      "iam:UpdateAssumeRolePolicy",
      "iam:UpdateRole",
      "iam:UpdateRoleDescription",
    ]
    Resource = local._roles
  }

  # What the roles of all jobs have in common. A policy is worth what the roles are that have it.
  _change_policies = {
    Sid    = "ChangePolicies"
    Effect = "Allow"
    Action = [
      "iam:CreatePolicy",
      "iam:CreatePolicyVersion",
      "iam:DeletePolicy",
      "iam:DeletePolicyVersion",
      "iam:TagPolicy",
      "iam:UntagPolicy",
    ]
    Resource = local._role_policies
  }

  _pass_roles = {
    Sid      = "PassRoles"
    Effect   = "Allow"
    Action   = "iam:PassRole"
    Resource = local._roles
    Condition = {
      StringEquals = {
        "iam:PassedToService" = ["events.amazonaws.com", "scheduler.amazonaws.com", "states.amazonaws.com"]
      }
    }
  }

  # Keys have no names that a policy could hold on to, so the tag that Sagefit gives them has to do.
  _make_keys = {
    Sid       = "MakeKeys"
    Effect    = "Allow"
    Action    = ["kms:CreateKey", "kms:TagResource"]
    Resource  = "*"
    Condition = { StringEquals = { "aws:RequestTag/sagefit:platform" = var.platforms } }
  }

  _manage_keys = {
    Sid    = "ManageKeys"
    Effect = "Allow"
    Action = [
      "kms:CreateAlias",
      "kms:DeleteAlias",
      "kms:EnableKeyRotation",
      "kms:PutKeyPolicy",
      "kms:ScheduleKeyDeletion",
      "kms:TagResource",
      "kms:UntagResource",
      "kms:UpdateAlias",
      "kms:UpdateKeyDescription",
    ]
    Resource  = "${local._arn}:kms:${local._here}:key/*"
    Condition = { StringEquals = { "aws:ResourceTag/sagefit:platform" = var.platforms } }
  }

  # A service encrypts on behalf of the caller: S3 the files that are uploaded, Scheduler the input of a schedule. ECR
  # makes itself a grant on behalf of the caller who makes a repository. So these are not the caller's own to use. A
  # platform's key is one that Sagefit made and tagged, or one that the variable names.
  _keys_of_platforms = concat(
    [{
      name      = "Platform"
      resource  = ["${local._arn}:kms:${local._here}:key/*"]
      condition = { "aws:ResourceTag/sagefit:platform" = var.platforms }
    }],
    [for arns in [var.platform_key_arns] : { name = "Named", resource = arns, condition = {} } if length(arns) > 0],
  )
  _use_keys = flatten([
    for keys in local._keys_of_platforms : [
      {
        Sid      = "Use${keys.name}Keys"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = keys.resource
        Condition = {
          StringEquals = merge(keys.condition, {
            "kms:ViaService" = ["s3.${local._via}", "scheduler.${local._via}"]
          })
        }
      },
      {
        Sid      = "Grant${keys.name}Keys"
        Effect   = "Allow"
        Action   = "kms:CreateGrant"
        Resource = keys.resource
        Condition = {
          StringEquals = merge(keys.condition, { "kms:ViaService" = "ecr.${local._via}" })
          Bool         = { "kms:GrantIsForAWSResource" = "true" }
        }
      },
      {
        Sid       = "Retire${keys.name}Grants"
        Effect    = "Allow"
        Action    = "kms:RetireGrant"
        Resource  = keys.resource
        Condition = { StringEquals = merge(keys.condition, { "kms:ViaService" = "ecr.${local._via}" }) }
      },
    ]
  ])

  _name_keys = {
    Sid      = "NameKeys"
    Effect   = "Allow"
    Action   = ["kms:CreateAlias", "kms:DeleteAlias", "kms:UpdateAlias"]
    Resource = [for prefix in local._prefixes : "${local._arn}:kms:${local._here}:alias/${prefix}*"]
  }

  _write_state = {
    Sid      = "WriteState"
    Effect   = "Allow"
    Action   = ["s3:DeleteObject", "s3:PutObject"]
    Resource = "${local._state_objects}/*"
  }

  # The pipeline defines jobs; it runs none, and it cannot widen itself.
  _not_itself = {
    Sid      = "NotItself"
    Effect   = "Deny"
    Action   = "iam:*"
    Resource = ["${local._iam}:role/${var.name}-*", "${local._iam}:policy/${var.name}-*"]
  }

  # In a managed policy of its own, for the same reason.
  _roles_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      local._make_roles, local._change_roles, local._change_policies, local._pass_roles, local._not_itself,
    ]
  })

  _apply_policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        local._manage, local._unsubscribe, local._ask_for_quotas, local._deliver, local._upload, local._list_versions, local._publish,
        local._make_keys, local._manage_keys, local._name_keys,
      ],
      local._use_keys,
      [local._write_state],
    )
  })
}
