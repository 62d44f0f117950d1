# The platform: what the jobs of one team share in one account and Region.

data "aws_caller_identity" "this" {}

data "aws_partition" "this" {}

data "aws_region" "this" {}

locals {
  context = {
    partition  = data.aws_partition.this.partition
    region     = data.aws_region.this.id
    account_id = data.aws_caller_identity.this.account_id
    prefix     = "sagefit-${var.name}"
    tags       = merge(var.tags, { "sagefit:platform" = var.name })

    global_suffix = var.regional_names ? "_${data.aws_region.this.id}" : ""
  }

  _buckets = merge(
    {
      # Jobs read data and write the rest, each below its own prefix.
      data      = { access = "read", prefixes = [], versioning = true }
      artifacts = { access = "write", prefixes = ["jobs/"], versioning = true }
      # Checkpoints are rewritten all the time and are worth nothing once their run has ended: old versions would only cost.
      checkpoints = { access = "sync", prefixes = ["jobs/"], versioning = false }
    },
    { for key, bucket in var.buckets.extra : key => { access = bucket.access, prefixes = [], versioning = true } },
  )

  # Every run has a folder of its own for its checkpoints, and no other run reads it.
  _of_checkpoints = var.checkpoint_days == 0 ? null : { expire_days = var.checkpoint_days, noncurrent_days = 30, abort_multipart_days = 7 }

  # Own key or given key, in a map because the ARN of a new key is unknown at plan while the keys of a map are not; for
  # the same reason a given key may be an object, which is known to be there when its ARN is not.
  _has_key   = var.kms.create || var.kms.key != null || var.kms.key_arn != null
  _given_arn = var.kms.key != null ? var.kms.key.arn : var.kms.key_arn
  _key_arn   = var.kms.create ? one(aws_kms_key.this[*].arn) : local._given_arn
  _key_arns  = local._has_key ? { platform = local._key_arn } : {}

  # Framework images are published by AWS in other accounts. Built-in algorithms are pulled by SageMaker itself.
  _images = jsondecode(file("${path.module}/modules/training-job/images.json"))
  _framework_repository_arns = [
    for framework in merge(local._images.frameworks, local._images.processing) :
    "arn:${local.context.partition}:ecr:${local.context.region}:${local._images.accounts[framework.accounts][local.context.region]}:repository/${framework.repository}"
    if contains(keys(local._images.accounts[framework.accounts]), local.context.region)
  ]
}

module "buckets" {
  source = "./modules/s3-buckets"

  context     = local.context
  kms_key_arn = local._key_arn
  buckets = {
    for key, bucket in local._buckets : key => {
      force_destroy = var.buckets.force_destroy
      versioning    = bucket.versioning
      retention     = lookup(var.buckets.retention, key, key == "checkpoints" ? local._of_checkpoints : null)
      access_log    = var.buckets.access_log

      unfinished_upload_days = var.unfinished_upload_days
    }
  }
}

module "repository" {
  source = "./modules/ecr-repository"

  context          = local.context
  encryption       = { kms_key_arn = local._key_arn }
  force_delete     = var.repository.force_delete
  lifecycle_policy = { untagged_days = var.repository.untagged_days, keep_images = var.repository.keep_images }
}

module "role" {
  source = "./modules/iam-role"

  context                  = local.context
  job_policies             = var.execution_role.per_job
  kms_key_arns             = local._key_arns
  managed_policy_arns      = var.execution_role.managed_policy_arns
  network                  = { subnet_ids = var.network.subnet_ids, security_group_ids = var.network.security_group_ids }
  permissions_boundary_arn = var.permissions_boundary_arn
  repository_arns          = concat([module.repository.arn], local._framework_repository_arns, var.execution_role.repository_arns)
  buckets = merge(
    {
      for key, bucket in local._buckets : key => {
        name     = module.buckets.names[key]
        access   = bucket.access
        prefixes = bucket.prefixes
      }
    },
    var.execution_role.buckets,
  )
}

module "alarms" {
  source = "./modules/memory-alarms"

  context    = local.context
  cleanup    = var.run_cleanup.enabled ? module.run_cleanup[0].state_machine_arn : null
  dashboard  = var.alarms.dashboard
  emails     = var.alarms.emails
  events     = var.alarms.events
  role_arn   = module.role.arn
  job_roles  = "arn:${local.context.partition}:iam::${local.context.account_id}:role/sagefit/${var.name}/"
  thresholds = var.alarms.thresholds
  topic_key = {
    create = !local._has_key
    id     = var.kms.create ? one(aws_kms_alias.this[*].name) : local._given_arn
  }
}

module "run_cleanup" {
  source = "./modules/run-cleanup"
  count  = var.run_cleanup.enabled ? 1 : 0

  context                  = local.context
  interval_seconds         = var.run_cleanup.interval_seconds
  permissions_boundary_arn = var.permissions_boundary_arn
  platform                 = var.name
}

module "warm_pool" {
  source   = "./modules/warm-pool"
  for_each = var.warm_pools

  context                = local.context
  name                   = each.key
  keep_alive_seconds     = each.value.keep_alive_seconds
  max_keep_alive_seconds = var.max_keep_alive_seconds
  pool_count             = each.value.pool_count
  quota                  = each.value.quota
  match = {
    instance_type                   = each.value.instance_type
    instance_count                  = each.value.instance_count
    volume_size_gb                  = each.value.volume_size_gb
    role_arn                        = module.role.arn
    volume_kms_key_arn              = local._key_arn
    subnet_ids                      = var.network.subnet_ids
    security_group_ids              = var.network.security_group_ids
    network_isolation               = var.network.isolation
    encrypt_inter_container_traffic = var.network.encrypt_inter_container_traffic
  }
}

# Key

locals {
  _key_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "AccountAdministers"
        Effect    = "Allow"
        Principal = { AWS = "arn:${local.context.partition}:iam::${local.context.account_id}:root" }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        # Without a source condition, for the reason given in modules/memory-alarms.
        Sid       = "AlarmsAndEventsEncrypt"
        Effect    = "Allow"
        Principal = { Service = ["cloudwatch.amazonaws.com", "events.amazonaws.com"] }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey*"]
        Resource  = "*"
      },
      {
        Sid       = "LogsOfRunsEncrypt"
        Effect    = "Allow"
        Principal = { Service = "logs.${local.context.region}.${data.aws_partition.this.dns_suffix}" }
        Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
        Resource  = "*"
        Condition = {
          ArnLike = {
            "kms:EncryptionContext:aws:logs:arn" = "arn:${local.context.partition}:logs:${local.context.region}:${local.context.account_id}:log-group:/aws/vendedlogs/states/${local.context.prefix}-*"
          }
        }
      },
    ]
  }
}

resource "aws_kms_key" "this" {
  count = var.kms.create ? 1 : 0

  description             = "Data, images, volumes, logs and notifications of ${local.context.prefix}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = jsonencode(local._key_policy)
  tags                    = local.context.tags
}

resource "aws_kms_alias" "this" {
  count = var.kms.create ? 1 : 0

  name          = "alias/${local.context.prefix}"
  target_key_id = aws_kms_key.this[0].key_id
}

# Platform document: all that a job needs to know, read by job/ and by modules/training-job

locals {
  document = merge(local._document_options, {
    schema                   = 1
    name                     = var.name
    partition                = local.context.partition
    region                   = local.context.region
    account_id               = local.context.account_id
    role_arn                 = module.role.arn
    permissions_boundary_arn = var.permissions_boundary_arn
    buckets                  = module.buckets.names
    kms_key_arn              = local._key_arn
    repository_url           = module.repository.url
    network = {
      subnet_ids                      = sort(var.network.subnet_ids)
      security_group_ids              = sort(var.network.security_group_ids)
      isolation                       = var.network.isolation
      encrypt_inter_container_traffic = var.network.encrypt_inter_container_traffic
    }
    allowed_instance_types = sort(var.allowed_instance_types)
    max_keep_alive_seconds = var.max_keep_alive_seconds
    warm_pools             = { for name, pool in module.warm_pool : name => pool.profile }
    log_retention_days     = var.log_retention_days
    topic_arn              = module.alarms.topic_arn
    tags                   = local.context.tags
  })
  _document_options = merge(
    { for field, value in { upload_folders = sort(var.upload_folders) } : field => value if length(value) > 0 },
    { for suffix in [local.context.global_suffix] : "global_suffix" => suffix if suffix != "" },
    { for arns in [module.role.job_policy_arns] : "job_policy_arns" => arns if var.execution_role.per_job },
    # Whether there is any is asked of the variables: the name of a bucket that is being made no plan knows.
    { for shared in [local._shared_data] : "shared_data" => shared if var.execution_role.per_job && local._shares_data },
  )
  _shares_data = length(var.buckets.extra) + length(var.execution_role.buckets) > 0

  # "bucket/prefix" of what jobs may use besides the platform's own three buckets.
  _shared_data = merge(
    { for key, bucket in var.buckets.extra : "${module.buckets.names[key]}/" => bucket.access == "read" ? "read" : "write" },
    merge([
      for bucket in var.execution_role.buckets : {
        for prefix in length(bucket.prefixes) == 0 ? toset([""]) : bucket.prefixes :
        "${bucket.name}/${prefix}" => bucket.access == "read" ? "read" : "write"
      }
    ]...),
  )

  document_parameter = "/sagefit/${var.name}"
  _document_json     = jsonencode(local.document)
  # In bytes, not characters: tags may hold any script.
  _document_bytes = length(base64encode(local._document_json)) / 4 * 3
}

resource "aws_ssm_parameter" "document" {
  #checkov:skip=CKV2_AWS_34:The document holds names and ARNs, no secret; as a SecureString everyone who plans a job would need the key

  name        = local.document_parameter
  description = "Sagefit platform ${var.name}: what its jobs need to know"
  type        = "String"
  value       = local._document_json
  tags        = local.context.tags

  lifecycle {
    precondition {
      condition     = local._document_bytes <= 4096
      error_message = "The platform document has about ${local._document_bytes} bytes; an SSM parameter takes 4096. Shorten tags, allowed_instance_types, upload_folders, execution_role.buckets or warm_pools."
    }
  }
}

# Engineers: they start approved jobs and watch them. They create no training jobs and pass no roles; the state machine does.

locals {
  _states   = "arn:${local.context.partition}:states:${local.context.region}:${local.context.account_id}"
  _machines = "${local._states}:stateMachine:${local.context.prefix}-*"
  _runs     = "${local._states}:execution:${local.context.prefix}-*:*"
  _training = "arn:${local.context.partition}:sagemaker:${local.context.region}:${local.context.account_id}:training-job/*"
  _steps    = "arn:${local.context.partition}:sagemaker:${local.context.region}:${local.context.account_id}:processing-job/*"
  _tuning   = "arn:${local.context.partition}:sagemaker:${local.context.region}:${local.context.account_id}:hyper-parameter-tuning-job/*"
  _logs     = "arn:${local.context.partition}:logs:${local.context.region}:${local.context.account_id}:log-group"

  _engineer_policy = {
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "StartRuns"
          Effect   = "Allow"
          Action   = ["states:DescribeStateMachine", "states:ListExecutions", "states:StartExecution"]
          Resource = local._machines
        },
        {
          Sid      = "FollowAndStopRuns"
          Effect   = "Allow"
          Action   = ["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"]
          Resource = local._runs
        },
        {
          Sid      = "FollowTrainingJobs"
          Effect   = "Allow"
          Action   = ["sagemaker:DescribeHyperParameterTuningJob", "sagemaker:DescribeProcessingJob", "sagemaker:DescribeTrainingJob", "sagemaker:ListTrainingJobsForHyperParameterTuningJob"]
          Resource = [local._training, local._steps, local._tuning]
        },
        {
          # By tag, because names of training jobs carry the job and not the platform.
          Sid       = "StopTrainingJobs"
          Effect    = "Allow"
          Action    = ["sagemaker:StopHyperParameterTuningJob", "sagemaker:StopProcessingJob", "sagemaker:StopTrainingJob"]
          Resource  = [local._training, local._steps, local._tuning]
          Condition = { StringEquals = { "aws:ResourceTag/sagefit:platform" = var.name } }
        },
        {
          # On * because the lists take no resource. The one of jobs finds the platform of a run that is asked for by name.
          Sid      = "ListJobsAndTrainingJobs"
          Effect   = "Allow"
          Action   = ["sagemaker:ListHyperParameterTuningJobs", "sagemaker:ListProcessingJobs", "sagemaker:ListTrainingJobs", "states:ListStateMachines"]
          Resource = "*"
        },
        {
          Sid    = "ReadLogs"
          Effect = "Allow"
          Action = ["logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"]
          Resource = [
            "${local._logs}:/aws/sagemaker/ProcessingJobs*",
            "${local._logs}:/aws/sagemaker/TrainingJobs*",
            "${local._logs}:/aws/vendedlogs/states/${local.context.prefix}-*",
          ]
        },
        {
          Sid      = "ReadMetrics"
          Effect   = "Allow"
          Action   = "cloudwatch:GetMetricData"
          Resource = "*"
        },
        {
          Sid      = "ReadPlatform"
          Effect   = "Allow"
          Action   = "ssm:GetParameter"
          Resource = "arn:${local.context.partition}:ssm:${local.context.region}:${local.context.account_id}:parameter${local.document_parameter}"
        },
        {
          Sid      = "ListArtifacts"
          Effect   = "Allow"
          Action   = "s3:ListBucket"
          Resource = module.buckets.arns["artifacts"]
        },
        {
          Sid      = "ReadArtifacts"
          Effect   = "Allow"
          Action   = "s3:GetObject"
          Resource = "${module.buckets.arns["artifacts"]}/*"
        },
      ],
      [
        for arn in values(local._key_arns) : {
          Sid       = "DecryptArtifacts"
          Effect    = "Allow"
          Action    = "kms:Decrypt"
          Resource  = arn
          Condition = { StringEquals = { "kms:ViaService" = "s3.${local.context.region}.${data.aws_partition.this.dns_suffix}" } }
        }
      ],
    )
  }
}
