# The fields of a rendered jobs/NAME.tfvars. Rules, defaults and the meaning of
# each attribute are those of modules/training-job.

variable "attempts" {
  description = "Ways to run the job, in order; `next` leads from a failure class to a later attempt."
  type = list(object({
    name           = string
    reason         = optional(string)
    instance_type  = optional(string)
    instance_count = optional(number)
    instance_groups = optional(list(object({
      name           = string
      instance_type  = string
      instance_count = optional(number)
    })))
    spot                = optional(bool)
    hyperparameters     = optional(map(string))
    environment         = optional(map(string))
    volume_size_gb      = optional(number)
    keep_alive_seconds  = optional(number)
    max_runtime_seconds = optional(number)
    max_wait_seconds    = optional(number)
    max_pending_seconds = optional(number)
    memory_percent      = optional(number)
    next                = optional(map(string))
  }))
  nullable = false
}

variable "channels" {
  description = "Input channels by name: S3, a local path, a file system or the output of a processing step."
  type = map(object({
    s3_uri          = optional(string)
    local_path      = optional(string)
    exclude         = optional(list(string))
    allow_sensitive = optional(list(string))
    file_system = optional(object({
      id             = string
      type           = string
      directory_path = string
      access_mode    = optional(string)
    }))
    from            = optional(string)
    mode            = optional(string)
    s3_data_type    = optional(string)
    attribute_names = optional(list(string))
    distribution    = optional(string)
    compression     = optional(string)
    record_wrapper  = optional(string)
    content_type    = optional(string)
    shuffle_seed    = optional(number)
    instance_groups = optional(list(string))
  }))
  default  = {}
  nullable = false
}

variable "code" {
  description = "Training code: source directory, entry point, arguments, excluded files."
  type = object({
    source_dir           = string
    entry_point          = string
    arguments            = optional(list(string))
    exclude              = optional(list(string))
    allow_sensitive      = optional(list(string))
    offline_requirements = optional(bool)
  })
  default = null
}

variable "description" {
  description = "What the job is for."
  type        = string
  default     = ""
  nullable    = false
}

variable "environment" {
  description = "Environment variables of the training container."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "hyperparameters" {
  description = "Hyperparameters as strings."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "image" {
  description = "What runs in the container: a URI, a repository, a framework, an algorithm."
  type = object({
    uri            = optional(string)
    repository     = optional(string)
    tag            = optional(string)
    digest         = optional(string)
    framework      = optional(string)
    version        = optional(string)
    python_version = optional(string)
    algorithm      = optional(string)
    algorithm_arn  = optional(string)
  })
  nullable = false
}

variable "max_price" {
  description = "What a run may cost at worst, in USD. Sagefit checks it before a plan."
  type        = number
  default     = null
}

variable "metric_definitions" {
  description = "Metrics read from the training log."
  type = list(object({
    name  = string
    regex = string
  }))
  default  = []
  nullable = false
}

variable "name" {
  description = "Name of the job."
  type        = string
  nullable    = false
}

variable "platform" {
  description = "Name of the platform, whose document is the SSM parameter /sagefit/NAME."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.platform)) && length(var.platform) <= 20
    error_message = "platform: lower-case letters, digits and single inner hyphens, at most 20 characters. Correct the name."
  }
}

variable "processing" {
  description = "Processing steps of every run, before the first attempt."
  type = list(object({
    name = string
    image = object({
      uri            = optional(string)
      repository     = optional(string)
      tag            = optional(string)
      digest         = optional(string)
      framework      = optional(string)
      version        = optional(string)
      python_version = optional(string)
    })
    code = optional(object({
      source_dir      = string
      entry_point     = string
      arguments       = optional(list(string))
      exclude         = optional(list(string))
      allow_sensitive = optional(list(string))
    }))
    inputs = optional(map(object({
      s3_uri          = optional(string)
      local_path      = optional(string)
      exclude         = optional(list(string))
      allow_sensitive = optional(list(string))
      from            = optional(string)
      s3_data_type    = optional(string)
      distribution    = optional(string)
    })))
    outputs             = list(string)
    environment         = optional(map(string))
    instance_type       = string
    instance_count      = optional(number)
    volume_size_gb      = optional(number)
    max_runtime_seconds = optional(number)
  }))
  default  = []
  nullable = false
}

variable "resources" {
  description = "What all attempts share: disk, network, keys, output, checkpoints, warm pool."
  type = object({
    volume_size_gb                  = optional(number)
    input_mode                      = optional(string)
    network_isolation               = optional(bool)
    encrypt_inter_container_traffic = optional(bool)
    subnet_ids                      = optional(list(string))
    security_group_ids              = optional(list(string))
    warm_pool                       = optional(string)
    max_keep_alive_seconds          = optional(number)
    checkpoints                     = optional(bool)
    checkpoint_local_path           = optional(string)
    role                            = optional(string)
    volume_kms_key_arn              = optional(string)
    output_kms_key_arn              = optional(string)
    output_s3_uri                   = optional(string)
    output_compression              = optional(string)
    retry_attempts                  = optional(number)
    remote_debug                    = optional(bool)
    instance_quota                  = optional(number)
    poll_seconds                    = optional(number)
  })
  default  = {}
  nullable = false
}

variable "schedule" {
  description = "Starts runs on a schedule, or null."
  type = object({
    expression = string
    timezone   = optional(string)
    enabled    = optional(bool)
  })
  default = null
}

variable "tags" {
  description = "Tags on top of the platform's."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "tracing" {
  description = "Record runs with AWS X-Ray."
  type        = bool
  default     = false
  nullable    = false
}

variable "tuning" {
  description = "What each attempt searches for, or null to train once."
  type = object({
    strategy = optional(string)
    objective = object({
      metric = string
      type   = string
    })
    max_jobs            = optional(number)
    max_parallel_jobs   = optional(number)
    parallel_quota      = optional(number)
    max_runtime_seconds = optional(number)
    early_stopping      = optional(bool)
    seed                = optional(number)
    ranges = map(object({
      type    = string
      min     = optional(number)
      max     = optional(number)
      scaling = optional(string)
      values  = optional(list(string))
    }))
  })
  default = null
}
