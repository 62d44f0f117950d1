# The role of the training containers, and of SageMaker when it moves their data:
# one for this job, or the one that all jobs of the platform share. The job's own
# has the platform's policies for all that jobs have in common (images, logs,
# network, keys), and one policy for its data: what it names it may read, and
# what it makes it may write, below its own name. Where the job has a network or
# keys that are not the platform's, or is debugged from outside, that stands there too.
locals {
  _role_asked   = var.resources.role != null ? var.resources.role : var.resources.warm_pool != null ? "shared" : "own"
  _has_own_role = local._role_asked == "own" && var.platform.job_policy_arns != null

  _execution_role_name = "${local._role_name}-execution"
  _execution_role_path = "/sagefit/${local._platform}/"
  execution_role_arn = (
    local._has_own_role
    ? "${local._arn_prefix}:iam::${var.platform.account_id}:role${local._execution_role_path}${local._execution_role_name}"
    : var.platform.role_arn
  )
  _job_policy_arns = local._has_own_role ? var.platform.job_policy_arns : {}

  # "bucket/prefix", of whatever begins like it.
  _own_folder = "jobs/${var.name}"
  _named_inputs = merge(
    { for name, c in var.channels : "channels.${name}.s3_uri" => c if c.s3_uri != null },
    merge([
      for i, s in var.processing : { for name, c in s.inputs : "processing[${i}].inputs.${name}.s3_uri" => c if c.s3_uri != null }
    ]...),
  )
  _inputs_read = {
    for field, c in local._named_inputs : field => (
      strcontains(trimprefix(c.s3_uri, "s3://"), "/") ? trimprefix(c.s3_uri, "s3://") : "${trimprefix(c.s3_uri, "s3://")}/"
    )
  }
  # Which objects a manifest names, no plan knows.
  _has_manifest = anytrue([for c in local._named_inputs : c.s3_data_type != "S3Prefix"])

  _shared_data = merge({ "${var.platform.buckets.data}/" = "read" }, var.platform.shared_data)
  _reads = distinct(concat(
    ["${var.platform.buckets.data}/${local._own_folder}/", "${var.platform.buckets.artifacts}/${local._own_folder}/"],
    var.resources.checkpoints ? ["${var.platform.buckets.checkpoints}/${local._own_folder}/"] : [],
    values(local._inputs_read),
    local._has_manifest ? keys(local._shared_data) : [],
  ))
  _output = "${trimsuffix(trimprefix(local.output_s3_uri, "s3://"), "/")}/"
  _writes = distinct(concat(
    ["${var.platform.buckets.artifacts}/${local._own_folder}/", local._output],
    var.resources.checkpoints ? ["${var.platform.buckets.checkpoints}/${local._own_folder}/"] : [],
  ))

  # In a policy *, ? and $ mean something; a key of S3 may hold them.
  _patterns = {
    for text in distinct(concat(local._reads, local._writes)) :
    text => "${replace(replace(replace(text, "$", "$${$}"), "*", "$${*}"), "?", "$${?}")}*"
  }
  _s3            = "${local._arn_prefix}:s3:::"
  _buckets_named = sort(distinct([for text in keys(local._patterns) : split("/", text)[0]]))
  # The folder without its slash is what SageMaker lists where it is told to write.
  _listed = {
    for bucket in local._buckets_named : bucket => sort(distinct(flatten([
      for text, pattern in local._patterns : [
        trimprefix(pattern, "${bucket}/"),
        [for written in local._writes : trimsuffix(trimprefix(written, "${bucket}/"), "/") if written == text && text != "${bucket}/"],
      ] if split("/", text)[0] == bucket
    ])))
  }

  _data_policy = {
    Version = "2012-10-17"
    Statement = concat(
      [
        for i, bucket in local._buckets_named : {
          Sid       = "List${i}"
          Effect    = "Allow"
          Action    = ["s3:ListBucket"]
          Resource  = ["${local._s3}${bucket}"]
          Condition = { StringLike = { "s3:prefix" = local._listed[bucket] } }
        }
      ],
      [
        {
          Sid      = "ReadWhatTheJobNames"
          Effect   = "Allow"
          Action   = ["s3:GetObject"]
          Resource = sort([for text in local._reads : "${local._s3}${local._patterns[text]}"])
        },
        {
          Sid      = "WriteWhatTheJobMakes"
          Effect   = "Allow"
          Action   = ["s3:AbortMultipartUpload", "s3:PutObject"]
          Resource = sort([for text in local._writes : "${local._s3}${local._patterns[text]}"])
        },
      ],
      [
        for text in ["${var.platform.buckets.checkpoints}/${local._own_folder}/"] : {
          Sid      = "DeleteCheckpointsOfTheJob"
          Effect   = "Allow"
          Action   = ["s3:DeleteObject"]
          Resource = ["${local._s3}${local._patterns[text]}"]
        } if var.resources.checkpoints
      ],
      local._own_network_statements,
      local._own_key_statements,
      local._debug_statements,
    )
  }
  _data_policy_bytes = local._has_own_role ? length(base64encode(jsonencode(local._data_policy))) / 4 * 3 : 0

  # The platform's policies name its own network. A subnet or group that another account shares is named by the account
  # that owns it; the id alone says which it is.
  _ec2         = "${local._arn_prefix}:ec2:${var.platform.region}"
  _own_subnets = sort(setsubtract(local._in_vpc ? local._subnet_ids : [], local._network.subnet_ids))
  _own_groups  = sort(setsubtract(local._in_vpc ? local._security_group_ids : [], local._network.security_group_ids))
  _own_network_statements = concat(
    [
      for named in [concat(
        [for id in local._own_subnets : "${local._ec2}:*:subnet/${id}"],
        [for id in local._own_groups : "${local._ec2}:*:security-group/${id}"],
        )] : {
        Sid      = "CreateInterfacesOfTheJob"
        Effect   = "Allow"
        Action   = ["ec2:CreateNetworkInterface"]
        Resource = concat(["${local._ec2}:${var.platform.account_id}:network-interface/*"], named)
      } if length(named) > 0
    ],
    [
      for named in [[for id in local._own_subnets : "${local._ec2}:*:subnet/${id}"]] : {
        Sid       = "ManageInterfacesOfTheJob"
        Effect    = "Allow"
        Action    = ["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface", "ec2:DeleteNetworkInterfacePermission"]
        Resource  = ["${local._ec2}:${var.platform.account_id}:network-interface/*"]
        Condition = { ArnLike = { "ec2:Subnet" = named } }
      } if length(named) > 0
    ],
    [
      # On * because EC2's Describe actions take no resource; they read only. A platform with a network has them already.
      for named in [length(local._network.subnet_ids) > 0 ? [] : local._own_subnets] : {
        Sid      = "DescribeNetworkOfTheJob"
        Effect   = "Allow"
        Action   = ["ec2:DescribeDhcpOptions", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"]
        Resource = ["*"]
      } if length(named) > 0
    ],
  )

  # As for the platform's key: volumes are attached by EC2, which gets its own grant.
  _own_keys = sort(setsubtract(compact([local._volume_kms_key, local._output_kms_key]), compact([var.platform.kms_key_arn])))
  _own_key_statements = [
    for statement in [
      {
        Sid      = "UseKeysOfTheJob"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"]
        Resource = local._own_keys
      },
      {
        Sid       = "GrantKeysOfTheJobToVolumes"
        Effect    = "Allow"
        Action    = ["kms:CreateGrant"]
        Resource  = local._own_keys
        Condition = { Bool = { "kms:GrantIsForAWSResource" = "true" } }
      },
    ] : statement if length(local._own_keys) > 0
  ]

  # On * because Session Manager's channels have no ARN. The container opens them; who may connect is another right.
  _debug_statements = [
    for actions in [["ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel", "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel"]] : {
      Sid      = "OpenAShellForDebugging"
      Effect   = "Allow"
      Action   = actions
      Resource = ["*"]
    } if var.resources.remote_debug
  ]

  # What the platform lets its jobs read and write besides what is their own.
  _readable = concat(keys(local._shared_data), ["${var.platform.buckets.artifacts}/jobs/", "${var.platform.buckets.checkpoints}/jobs/"])
  _writable = concat([for area, access in var.platform.shared_data : area if access == "write"], ["${var.platform.buckets.artifacts}/${local._own_folder}/"])
  _not_shared = !local._has_own_role ? [] : concat(
    [for field, text in local._inputs_read : field if !anytrue([for area in local._readable : startswith(text, area)])],
    anytrue([for area in local._writable : startswith(local._output, area)]) ? [] : ["resources.output_s3_uri"],
  )
}

resource "aws_iam_role" "execution" {
  count = local._has_own_role ? 1 : 0

  name                 = local._execution_role_name
  path                 = local._execution_role_path
  description          = "Training containers of the Sagefit job ${var.name} on platform ${local._platform}"
  permissions_boundary = var.platform.permissions_boundary_arn
  tags                 = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "SageMakerJobsOfThisAccount"
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "sagemaker.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.platform.account_id }
        ArnLike = {
          "aws:SourceArn" = [
            for kind in ["training-job", "processing-job", "hyper-parameter-tuning-job"] : # AWS does not say who asks for trials
            "${local._arn_prefix}:sagemaker:*:${var.platform.account_id}:${kind}/*"
          ]
        }
      }
    }]
  })

  lifecycle {
    postcondition {
      condition     = self.arn == local.execution_role_arn
      error_message = "platform: the ARN of the job's role is ${self.arn}, and policies name ${local.execution_role_arn}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_iam_role_policy" "execution" {
  count = local._has_own_role ? 1 : 0

  name   = "data"
  role   = aws_iam_role.execution[0].name
  policy = jsonencode(local._data_policy)
}

resource "aws_iam_role_policy_attachment" "execution" {
  for_each = local._job_policy_arns

  role       = aws_iam_role.execution[0].name
  policy_arn = each.value
}
