variable "keep_alive_seconds" {
  description = "How long SageMaker keeps the instances after a job, for the next one. They are billed meanwhile."
  type        = number
  default     = 1800
  nullable    = false

  validation {
    condition     = var.keep_alive_seconds >= 1 && floor(var.keep_alive_seconds) == var.keep_alive_seconds
    error_message = "keep_alive_seconds must be a whole number of at least 1; a pool kept for 0 s is no pool."
  }

  validation {
    condition     = var.keep_alive_seconds <= var.max_keep_alive_seconds
    error_message = "keep_alive_seconds is over max_keep_alive_seconds (SageMaker's default quota is 3600 s); raise max_keep_alive_seconds where the account's quota allows more."
  }
}

variable "match" {
  description = <<-EOT
    What SageMaker compares: a job reuses the pool only if every one of these is equal. The execution role counts too.
    - `instance_type`, `instance_count`, `volume_size_gb`: the shape. Pin the volume even where local disks make it
      idle: it still counts.
    - `role_arn`, `volume_kms_key_arn`, `subnet_ids`, `security_group_ids`, `network_isolation`,
      `encrypt_inter_container_traffic`: normally the platform's; a job that overrides one misses the pool.
  EOT
  type = object({
    instance_type                   = string
    instance_count                  = optional(number, 1)
    volume_size_gb                  = optional(number, 30)
    role_arn                        = optional(string)
    volume_kms_key_arn              = optional(string)
    subnet_ids                      = optional(list(string), [])
    security_group_ids              = optional(list(string), [])
    network_isolation               = optional(bool, false)
    encrypt_inter_container_traffic = optional(bool, false)
  })
  nullable = false

  validation {
    condition     = can(regex("^ml\\.[a-z0-9-]+\\.[a-z0-9-]+$", var.match.instance_type))
    error_message = "match.instance_type must be a SageMaker instance type such as ml.g5.2xlarge."
  }

  validation {
    condition     = var.match.instance_count >= 1 && floor(var.match.instance_count) == var.match.instance_count
    error_message = "match.instance_count must be a whole number of at least 1."
  }

  validation {
    condition     = var.match.volume_size_gb >= 1 && floor(var.match.volume_size_gb) == var.match.volume_size_gb
    error_message = "match.volume_size_gb must be a whole number of at least 1."
  }

  validation {
    condition     = length(var.match.subnet_ids) <= 16
    error_message = "match.subnet_ids may hold at most 16 subnets (SageMaker VpcConfig)."
  }

  validation {
    condition     = length(var.match.security_group_ids) <= 5
    error_message = "match.security_group_ids may hold at most 5 groups (SageMaker VpcConfig)."
  }

  validation {
    condition     = (length(var.match.subnet_ids) == 0) == (length(var.match.security_group_ids) == 0)
    error_message = "match: give subnet_ids and security_group_ids together, or neither."
  }
}

variable "max_keep_alive_seconds" {
  description = "Upper limit of keep_alive_seconds. Raising it over 3600 is the written override: the account's keep-alive quota must have been raised too."
  type        = number
  default     = 3600
  nullable    = false

  validation {
    condition     = var.max_keep_alive_seconds >= 1 && var.max_keep_alive_seconds <= 21600 && floor(var.max_keep_alive_seconds) == var.max_keep_alive_seconds
    error_message = "max_keep_alive_seconds must be a whole number between 1 and 21600 (SageMaker KeepAlivePeriodInSeconds)."
  }
}

variable "name" {
  description = "Name of the pool, by which jobs choose it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.name))
    error_message = "name must be lower-case letters, digits and single hyphens."
  }
}

variable "pool_count" {
  description = "How many pools of this shape may wait at the same time: that many jobs in a row, side by side."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.pool_count >= 1 && floor(var.pool_count) == var.pool_count
    error_message = "pool_count must be a whole number of at least 1."
  }
}

variable "quota" {
  description = <<-EOT
    The account's quota of warm instances of this type, which is 0 by default; without quota SageMaker accepts a job
    and silently keeps no pool. Both are live calls, so both are off by default.
    - `check`: read the quota when planning and refuse one that is too small.
    - `request`: ask AWS for a quota of this many instances; null to ask for nothing. AWS may take days to agree.
  EOT
  type = object({
    check   = optional(bool, false)
    request = optional(number)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.quota.request == null ? true : var.quota.request >= var.pool_count * var.match.instance_count
    error_message = "quota.request must cover the pool: at least pool_count * match.instance_count instances."
  }

  validation {
    condition     = !(var.quota.check && var.quota.request != null)
    error_message = "quota: check refuses what request is about to change; check again after AWS has agreed."
  }
}
