locals {
  _arn = {
    s3   = "arn:${var.context.partition}:s3:::"
    ec2  = "arn:${var.context.partition}:ec2:${var.context.region}"
    logs = "arn:${var.context.partition}:logs:${var.context.region}:${var.context.account_id}"
    jobs = "arn:${var.context.partition}:sagemaker:*:${var.context.account_id}"
  }

  name = "${var.context.prefix}-${var.name}${var.context.global_suffix}"
  arn  = "arn:${var.context.partition}:iam::${var.context.account_id}:role/${local.name}"

  # Only SageMaker, and only for jobs of this account, may hand the role to a container.
  trust_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "SageMakerJobsOfThisAccount"
        Effect    = "Allow"
        Principal = { Service = "sagemaker.amazonaws.com" }
        Action    = "sts:AssumeRole"
        Condition = {
          StringEquals = { "aws:SourceAccount" = var.context.account_id }
          ArnLike = {
            "aws:SourceArn" = [
              "${local._arn.jobs}:training-job/*",
              "${local._arn.jobs}:processing-job/*",
              "${local._arn.jobs}:hyper-parameter-tuning-job/*", # a precaution: AWS does not say who asks for trials
            ]
          }
        }
      },
    ]
  }

  # One inline policy per concern; a concern without statements gets no policy. Keys have a policy of
  # their own because a key that is being created has no ARN yet: it must not hide the others in a plan.
  policies = {
    storage   = concat(local._list_buckets, local._use_objects)
    images    = local._images
    telemetry = concat(local._logs, local._metrics)
    network   = local._network
    keys      = local._keys
  }
}

# Storage

locals {
  # Objects each bucket entry stands for: the whole bucket, or its prefixes.
  _objects = {
    for key, bucket in var.buckets : key => (
      length(bucket.prefixes) == 0
      ? ["${local._arn.s3}${bucket.name}/*"]
      : [for prefix in bucket.prefixes : "${local._arn.s3}${bucket.name}/${prefix}*"]
    )
  }

  _readable  = sort(flatten(values(local._objects)))
  _writable  = sort(flatten([for key, objects in local._objects : objects if var.buckets[key].access != "read"]))
  _deletable = sort(flatten([for key, objects in local._objects : objects if var.buckets[key].access == "sync"]))

  _list_buckets = [
    for key, bucket in var.buckets : merge(
      {
        Sid      = "List${replace(title(key), "/[^A-Za-z0-9]/", "")}"
        Effect   = "Allow"
        Action   = "s3:ListBucket"
        Resource = "${local._arn.s3}${bucket.name}"
      },
      length(bucket.prefixes) == 0 ? {} : {
        Condition = { StringLike = { "s3:prefix" = [for prefix in bucket.prefixes : "${prefix}*"] } }
      },
    )
  ]

  # A statement without a resource is invalid, so those drop out.
  _use_objects = [
    for statement in [
      {
        Sid      = "ReadObjects"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = local._readable
      },
      {
        Sid      = "WriteObjects"
        Effect   = "Allow"
        Action   = ["s3:AbortMultipartUpload", "s3:PutObject"]
        Resource = local._writable
      },
      {
        Sid      = "DeleteCheckpoints"
        Effect   = "Allow"
        Action   = ["s3:DeleteObject"]
        Resource = local._deletable
      },
    ] : statement if length(statement.Resource) > 0
  ]
}

# Images

locals {
  _images = [
    for statement in [
      {
        # On * because the token belongs to the caller, not to a repository: the action takes no resource.
        Sid      = "RegistryToken"
        Effect   = "Allow"
        Action   = "ecr:GetAuthorizationToken"
        Resource = "*"
      },
      {
        Sid    = "PullImages"
        Effect = "Allow"
        Action = [
          "ecr:BatchCheckLayerAvailability",
          "ecr:BatchGetImage",
          "ecr:GetDownloadUrlForLayer",
        ]
        Resource = sort(distinct(var.repository_arns))
      },
    ] : statement if length(var.repository_arns) > 0
  ]
}

# Logs and metrics

locals {
  _logs = [
    {
      Sid    = "WriteTrainingLogs"
      Effect = "Allow"
      Action = [
        "logs:CreateLogGroup",
        "logs:CreateLogStream",
        "logs:DescribeLogStreams",
        "logs:PutLogEvents",
      ]
      Resource = [for kind in ["ProcessingJobs", "TrainingJobs"] : "${local._arn.logs}:log-group:/aws/sagemaker/${kind}*"]
    },
  ]

  _metrics = [
    for statement in [
      {
        # On * because metrics have no ARN; the namespace condition is what limits the action.
        Sid       = "PutMetrics"
        Effect    = "Allow"
        Action    = "cloudwatch:PutMetricData"
        Resource  = "*"
        Condition = { StringEquals = { "cloudwatch:namespace" = sort(var.metric_namespaces) } }
      },
    ] : statement if length(var.metric_namespaces) > 0
  ]
}

# Network

locals {
  # A subnet that another account shares is named by the account that owns it. The id alone says which subnet it is.
  _subnet_arns         = sort([for id in var.network.subnet_ids : "${local._arn.ec2}:*:subnet/${id}"])
  _security_group_arns = sort([for id in var.network.security_group_ids : "${local._arn.ec2}:*:security-group/${id}"])
  _interfaces          = "${local._arn.ec2}:${var.context.account_id}:network-interface/*"

  _network = [
    for statement in [
      {
        # On * because EC2's Describe actions take no resource; they read only.
        Sid    = "DescribeNetwork"
        Effect = "Allow"
        Action = [
          "ec2:DescribeDhcpOptions",
          "ec2:DescribeNetworkInterfaces",
          "ec2:DescribeSecurityGroups",
          "ec2:DescribeSubnets",
          "ec2:DescribeVpcs",
        ]
        Resource = "*"
      },
      {
        Sid      = "CreateInterfaces"
        Effect   = "Allow"
        Action   = "ec2:CreateNetworkInterface"
        Resource = concat([local._interfaces], local._subnet_arns, local._security_group_arns)
      },
      {
        Sid    = "ManageInterfacesOfTheSubnets"
        Effect = "Allow"
        Action = [
          "ec2:CreateNetworkInterfacePermission",
          "ec2:DeleteNetworkInterface",
          "ec2:DeleteNetworkInterfacePermission",
        ]
        Resource  = local._interfaces
        Condition = { ArnLike = { "ec2:Subnet" = local._subnet_arns } }
      },
    ] : statement if length(var.network.subnet_ids) > 0
  ]
}

# Keys

locals {
  _key_arns = [for key in sort(keys(var.kms_key_arns)) : var.kms_key_arns[key]]

  _keys = [
    for statement in [
      {
        Sid      = "UseKeys"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"]
        Resource = local._key_arns
      },
      {
        # Volumes are attached by EC2, which gets its own grant on the key; a grant to anyone else is refused.
        Sid       = "GrantKeysToVolumes"
        Effect    = "Allow"
        Action    = "kms:CreateGrant"
        Resource  = local._key_arns
        Condition = { Bool = { "kms:GrantIsForAWSResource" = "true" } }
      },
    ] : statement if length(var.kms_key_arns) > 0
  ]
}

# Policies for the roles of single jobs

locals {
  job_policies = { for name, statements in {
    jobs     = concat(local._images, local._logs, local._metrics, local._network)
    job-keys = local._keys # by itself, for the reason given above
  } : name => statements if var.job_policies && length(statements) > 0 }

  _policy_path  = "/sagefit/"
  _policy_names = { for name in keys(local.job_policies) : name => "${var.context.prefix}-${name}${var.context.global_suffix}" }
  _policy_arns = {
    for name, full in local._policy_names : name => "arn:${var.context.partition}:iam::${var.context.account_id}:policy${local._policy_path}${full}"
  }
  # White space does not count, and there is none.
  _policy_sizes = { for name, statements in local.job_policies : name => length(jsonencode({ Version = "2012-10-17", Statement = statements })) }
}

resource "aws_iam_policy" "jobs" {
  for_each = local.job_policies

  name        = local._policy_names[each.key]
  path        = local._policy_path
  description = "What all jobs of ${var.context.prefix} need beside their data"
  policy      = jsonencode({ Version = "2012-10-17", Statement = each.value })
  tags        = var.context.tags

  lifecycle {
    precondition {
      condition     = local._policy_sizes[each.key] <= 6144
      error_message = "The policy for the jobs' roles has ${local._policy_sizes[each.key]} characters and may have 6144 (IAM). Name fewer repository_arns, subnets or security groups, or set job_policies to false."
    }

    postcondition {
      condition     = self.arn == local._policy_arns[each.key]
      error_message = "context: the ARN of the policy is ${self.arn}, and roles name ${local._policy_arns[each.key]}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_iam_role" "this" {
  name                 = local.name
  description          = "Training containers of ${var.context.prefix}"
  assume_role_policy   = jsonencode(local.trust_policy)
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.context.tags

  lifecycle {
    postcondition {
      condition     = self.arn == local.arn
      error_message = "context: the ARN of the role is ${self.arn}, and policies name ${local.arn}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_iam_role_policy" "this" {
  for_each = { for name, statements in local.policies : name => statements if length(statements) > 0 }

  name   = each.key
  role   = aws_iam_role.this.name
  policy = jsonencode({ Version = "2012-10-17", Statement = each.value })
}

resource "aws_iam_role_policy_attachment" "this" {
  for_each = var.managed_policy_arns

  role       = aws_iam_role.this.name
  policy_arn = each.value
}
