variable "alarms" {
  description = <<-EOT
    Alarms and notifications.
    - `emails`: addresses to notify; each must confirm a message from AWS first.
    - `thresholds`: percentages that alarm; 0 leaves an alarm out. See modules/memory-alarms.
    - `events`: ends of attempts and runs to notify, and schedules that start nothing. See modules/memory-alarms.
    - `dashboard`: make a dashboard.
  EOT
  type = object({
    emails = optional(set(string), [])
    thresholds = optional(object({
      host_memory      = optional(number, 90)
      container_memory = optional(number, 0)
      gpu_memory       = optional(number, 95)
      disk             = optional(number, 85)
    }), {})
    events = optional(object({
      failed_attempts   = optional(bool, true)
      stopped_attempts  = optional(bool, true)
      failed_runs       = optional(bool, true)
      dropped_schedules = optional(bool, true)
    }), {})
    dashboard = optional(bool, true)
  })
  default  = {}
  nullable = false
}

variable "allowed_instance_types" {
  description = "Instance types that jobs of the platform may use; empty allows any."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for type in var.allowed_instance_types : can(regex("^ml\\.[a-z0-9-]+\\.[a-z0-9-]+$", type))])
    error_message = "allowed_instance_types must be SageMaker instance types such as ml.g5.2xlarge."
  }
}

variable "buckets" {
  description = <<-EOT
    The platform's buckets: data, artifacts, checkpoints and further ones.
    - `force_destroy`: let `terraform destroy` delete buckets that hold objects.
    - `retention`: lifecycle rules by bucket key; creating one takes about a minute. See modules/s3-buckets.
    - `access_log`: where to write access logs of all of them; null for none.
    - `extra`: further buckets. The map key ends the bucket name and names it in the platform document;
      `access` is what jobs may do with it: `read`, `write` or `sync`.
  EOT
  type = object({
    force_destroy = optional(bool, false)
    retention = optional(map(object({
      expire_days          = optional(number)
      noncurrent_days      = optional(number, 30)
      abort_multipart_days = optional(number, 7)
    })), {})
    access_log = optional(object({
      bucket = string
      prefix = optional(string, "")
    }))
    extra = optional(map(object({
      access = optional(string, "read")
    })), {})
  })
  default  = {}
  nullable = false

  validation {
    condition = alltrue([
      for key in keys(var.buckets.retention) :
      contains(concat(["data", "artifacts", "checkpoints"], keys(var.buckets.extra)), key)
    ])
    error_message = "buckets.retention: keys must be data, artifacts, checkpoints or a key of buckets.extra."
  }

  validation {
    condition     = length(setintersection(["data", "artifacts", "checkpoints"], keys(var.buckets.extra))) == 0
    error_message = "buckets.extra: data, artifacts and checkpoints exist already; choose other keys."
  }

  validation {
    condition     = alltrue([for bucket in var.buckets.extra : contains(["read", "write", "sync"], bucket.access)])
    error_message = "buckets.extra[*].access must be read, write or sync."
  }
}

variable "checkpoint_days" {
  description = "Days after which a file in the checkpoints bucket expires; 0 keeps all. No later run reads it but one with --resume. A training job may take 28 days (API), and a run as long as all its attempts together: files that are written once must last as long. `buckets.retention` of `checkpoints` wins. Making the rule takes about a minute."
  type        = number
  default     = 60
  nullable    = false

  validation {
    condition     = var.checkpoint_days == 0 || (var.checkpoint_days >= 28 && floor(var.checkpoint_days) == var.checkpoint_days)
    error_message = "checkpoint_days: a whole number of at least 28, the days that a training job may take, or 0 to keep all. For fewer give buckets.retention.checkpoints."
  }
}

variable "execution_role" {
  description = <<-EOT
    What jobs may use beyond the platform's own buckets and repository.
    - `buckets`: existing buckets. The map key is arbitrary; `access` is `read`, `write` or `sync`, `prefixes` narrows it.
    - `repository_arns`: further ECR repositories to pull images from; one that is made in the same configuration may be among them. Those of the AWS framework images are included.
    - `managed_policy_arns`: further policies. The map key is arbitrary.
    - `per_job`: each job gets a role of its own, which reads the inputs that it names and writes below its own name. A
      job may ask for the shared role all the same (`resources.role`). False: all jobs share one; before it is turned
      off, jobs take `resources.role: shared`, because AWS deletes no policy that a role has. A job with a role of its own has two,
      and three with a schedule. AWS allows 1,000 roles in an account, in all its Regions together, until it is asked for
      more.
  EOT
  type = object({
    buckets = optional(map(object({
      name     = string
      access   = optional(string, "read")
      prefixes = optional(set(string), [])
    })), {})
    repository_arns     = optional(list(string), [])
    managed_policy_arns = optional(map(string), {})
    per_job             = optional(bool, true)
  })
  default  = {}
  nullable = false

  validation {
    condition = length(setintersection(
      concat(["data", "artifacts", "checkpoints"], keys(var.buckets.extra)), keys(var.execution_role.buckets)
    )) == 0
    error_message = "execution_role.buckets: a key is already that of a bucket of the platform; choose another."
  }
}

variable "kms" {
  description = <<-EOT
    Key of the platform for buckets, images, volumes, outputs, logs of state machines and notifications.
    - `create`: make a key. Without it and without a key of yours the AWS-managed keys are used, which cost nothing and
      need no permissions, but whose use cannot be restricted. The topic then has a key of its own.
    - `key_arn`: an existing key. Its policy must let this account's IAM decide, and let `cloudwatch.amazonaws.com`,
      `events.amazonaws.com` and `logs.<region>.amazonaws.com` use it.
    - `key`: the same for a key that is made in the same configuration, whose ARN no plan knows: `{ arn = aws_kms_key.own.arn }`.
  EOT
  type = object({
    create  = optional(bool, false)
    key_arn = optional(string)
    key     = optional(object({ arn = string }))
  })
  default  = {}
  nullable = false

  validation {
    condition     = length([for given in [var.kms.create, var.kms.key_arn != null, var.kms.key != null] : given if given]) <= 1
    error_message = "kms: give one of create = true, key_arn and key."
  }

  validation {
    condition     = alltrue([for arn in [var.kms.key_arn, try(var.kms.key.arn, null)] : arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", arn))])
    error_message = "kms.key_arn, kms.key.arn must be a key ARN, not an alias: SageMaker volumes take no alias."
  }
}

variable "log_retention_days" {
  description = "How long the logs of runs are kept, in days: of the state machines. The logs of containers are in log groups of SageMaker, which are the whole account's and keep everything unless somebody changes them."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of the periods of CloudWatch Logs, such as 7, 14, 30, 90 or 365."
  }
}

variable "max_keep_alive_seconds" {
  description = "Longest keep-alive of any job of the platform. Raising it over 3600 is the written override: the account's keep-alive quota must have been raised too."
  type        = number
  default     = 3600
  nullable    = false

  validation {
    condition     = var.max_keep_alive_seconds >= 0 && var.max_keep_alive_seconds <= 21600 && floor(var.max_keep_alive_seconds) == var.max_keep_alive_seconds
    error_message = "max_keep_alive_seconds must be a whole number between 0 and 21600 (SageMaker KeepAlivePeriodInSeconds)."
  }
}

variable "name" {
  description = "Name of the platform; every name starts with sagefit-<name>."
  type        = string
  default     = "dev"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.name))
    error_message = "name must be lower-case letters, digits and single hyphens."
  }

  validation {
    condition     = length(var.name) <= 20
    error_message = "name may have at most 20 characters, because bucket and role names start with it."
  }

  validation {
    condition     = !endswith(var.name, "-alarms")
    error_message = "name must not end in -alarms: the key of the topic of another platform is named like that (KMS alias). Choose another name."
  }

  validation {
    condition     = length(var.name) > 20 || length("sagefit-${var.name}-123456789012-${data.aws_region.this.id}-checkpoints") <= 63
    error_message = "name is too long for this Region: sagefit-<name>-<account>-<region>-checkpoints may have at most 63 characters (S3). Shorten it."
  }
}

variable "network" {
  description = <<-EOT
    Network of the jobs; without subnets they run in SageMaker's own.
    - `subnet_ids`, `security_group_ids`: up to 16 subnets and 5 groups. The subnets need a route to S3, ECR and logs.
    - `isolation`: no network inside the containers; SageMaker still moves the data.
    - `encrypt_inter_container_traffic`: encrypt traffic between the hosts of a job, which slows training.
  EOT
  type = object({
    subnet_ids                      = optional(list(string), [])
    security_group_ids              = optional(list(string), [])
    isolation                       = optional(bool, false)
    encrypt_inter_container_traffic = optional(bool, false)
  })
  default  = {}
  nullable = false

  validation {
    condition     = length(var.network.subnet_ids) <= 16
    error_message = "network.subnet_ids may hold at most 16 subnets (SageMaker VpcConfig)."
  }

  validation {
    condition     = length(var.network.security_group_ids) <= 5
    error_message = "network.security_group_ids may hold at most 5 groups (SageMaker VpcConfig)."
  }

  validation {
    condition     = (length(var.network.subnet_ids) == 0) == (length(var.network.security_group_ids) == 0)
    error_message = "network: give subnet_ids and security_group_ids together, or neither."
  }
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of every role of the platform, those of its jobs included; null for none."
  type        = string
  default     = null
}

variable "regional_names" {
  description = <<-EOT
    End the names that an account has only once (roles, their policies, the dashboard) with the Region, so that a
    platform of the same name may be in another Region. Names are API: a change replaces these resources, those of the
    jobs included. So set it before the first apply.
  EOT
  type        = bool
  default     = false
  nullable    = false
}

variable "repository" {
  description = <<-EOT
    Repository for own images.
    - `force_delete`: let `terraform destroy` delete it with its images.
    - `untagged_days`, `keep_images`: which images go by themselves; `untagged_days = 0` and no `keep_images` keep all. See modules/ecr-repository.
  EOT
  type = object({
    force_delete  = optional(bool, false)
    untagged_days = optional(number, 14)
    keep_images   = optional(number)
  })
  default  = {}
  nullable = false
}

variable "run_cleanup" {
  description = <<-EOT
    A state machine that stops what still runs of a run that ended: of one that a person stopped in the console, or its
    deadline, the training job goes on and costs money.
    - `enabled`: make it.
    - `interval_seconds`: time between two of its five looks.
  EOT
  type = object({
    enabled          = optional(bool, true)
    interval_seconds = optional(number, 60)
  })
  default  = {}
  nullable = false
}

variable "tags" {
  description = "Tags of every resource of the platform and of its jobs."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(var.tags) <= 40
    error_message = "tags may have at most 40 entries: AWS takes 50, and jobs add their own."
  }

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:") && length(key) >= 1 && length(key) <= 128])
    error_message = "tags: keys must have 1 to 128 characters and not start with aws:."
  }

  validation {
    condition     = alltrue([for value in values(var.tags) : length(value) <= 256])
    error_message = "tags: values may have at most 256 characters."
  }

  validation {
    condition     = alltrue([for text in concat(keys(var.tags), values(var.tags)) : can(regex("^[\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*$", text))])
    error_message = "tags: keys and values are made of letters, digits, spaces and _.:/=+-@ (SageMaker)."
  }
}

variable "unfinished_upload_days" {
  description = "Days after which the parts of an upload that never ended go, in buckets without `buckets.retention`; no list of objects shows them, and they cost money. 0 keeps them. Making the rule takes about a minute."
  type        = number
  default     = 7
  nullable    = false

  validation {
    condition     = var.unfinished_upload_days >= 0 && floor(var.unfinished_upload_days) == var.unfinished_upload_days
    error_message = "unfinished_upload_days: a whole number of at least 0."
  }
}

variable "upload_folders" {
  description = "Folders of the machines that apply, outside of a job's Git checkout, from which jobs may upload local data; empty allows none. Sagefit's commands read it in `platforms/NAME.tfvars` and, before a plan, in the platform as it is applied."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for folder in var.upload_folders : can(regex("^/.*[^/]$", folder)) && !can(regex("(^|/)[.]{1,2}(/|$)", folder))])
    error_message = "upload_folders must be absolute paths without . and .. and without a slash at their end, such as /data/shared. The root folder is no choice."
  }
}

variable "warm_pools" {
  description = <<-EOT
    Warm pools that jobs can choose. The map key is the name of the pool.
    - `instance_type`, `instance_count`, `volume_size_gb`: the shape all its jobs share.
    - `keep_alive_seconds`: how long instances wait for the next job, billed.
    - `pool_count`, `quota`: see modules/warm-pool.
  EOT
  type = map(object({
    instance_type      = string
    instance_count     = optional(number, 1)
    volume_size_gb     = optional(number, 30)
    keep_alive_seconds = optional(number, 1800)
    pool_count         = optional(number, 1)
    quota = optional(object({
      check   = optional(bool, false)
      request = optional(number)
    }), {})
  }))
  default  = {}
  nullable = false

  validation {
    condition = length(var.allowed_instance_types) == 0 ? true : alltrue([
      for pool in var.warm_pools : contains(var.allowed_instance_types, pool.instance_type)
    ])
    error_message = "warm_pools[*].instance_type must be one of allowed_instance_types."
  }

  validation {
    condition     = alltrue([for pool in var.warm_pools : pool.keep_alive_seconds <= var.max_keep_alive_seconds])
    error_message = "warm_pools[*].keep_alive_seconds is over max_keep_alive_seconds (SageMaker's default quota is 3600 s); raise max_keep_alive_seconds where the account's quota allows more."
  }
}
