# One job. The same objects are the variables of the job/ root, where a
# rendered jobs/NAME.tfvars fills them. Files beside this one hold the larger
# objects: variables-input.tf, variables-resources.tf, variables-attempts.tf.

variable "code" {
  description = <<-EOT
    Training code, or null for an algorithm that brings its own.
    - `source_dir`: directory that holds the code; relative paths start at the root module's directory.
    - `entry_point`: Python script inside `source_dir`.
    - `arguments`: extra command line arguments of the script, after the hyperparameters.
    - `offline_requirements`: its requirements.txt needs no network, because the image or the directory has the packages; an isolated job asks for it.
    - `exclude`: patterns of files to leave out, in the syntax of `fileset` (`data/**`). Version control, caches and bytecode are always left out.
    - `allow_sensitive`: files, by their path below `source_dir`, that look like credentials or states and are shipped all the same.
  EOT
  type = object({
    source_dir           = string
    entry_point          = string
    arguments            = optional(list(string), [])
    exclude              = optional(list(string), [])
    allow_sensitive      = optional(list(string), [])
    offline_requirements = optional(bool, false)
  })
  default = null

  validation {
    condition     = length(try(var.code.arguments, [])) <= local._limits["code.arguments"].most - 4 - length(local._launcher_flags)
    error_message = "code.arguments: a container takes ${local._limits["code.arguments"].most} arguments at most (API) and the launcher uses ${4 + length(local._launcher_flags)} of them${local._isolated ? " in an isolated job" : ""}, so give ${local._limits["code.arguments"].most - 4 - length(local._launcher_flags)} or fewer."
  }

  validation {
    condition     = var.code == null || alltrue([for a in try(concat([var.code.entry_point], var.code.arguments), []) : length(a) >= 1 && length(a) <= local._limits["code.arguments.*"].most])
    error_message = "code.arguments, code.entry_point: each container argument has 1 to ${local._limits["code.arguments.*"].most} characters (API). Shorten it, or pass long values as a hyperparameter or a channel."
  }

  validation {
    condition     = !anytrue([for a in try(var.code.arguments, []) : can(regex(local._credential, a))])
    error_message = "code.arguments: one of them looks like a credential, and everyone who can describe the job reads it. Let the script fetch the secret with the execution role."
  }

  validation {
    condition     = var.code == null || try(var.image.algorithm_arn, null) == null
    error_message = "code: an algorithm resource (image.algorithm_arn) runs its own program. Remove code, or choose another image."
  }

  validation {
    condition     = var.code == null || try(var.image.algorithm, null) == null || try(var.image.algorithm, null) == "xgboost"
    error_message = "code: of the built-in algorithms only xgboost runs scripts. Remove code, or choose image.framework."
  }
}

variable "description" {
  description = "What the job is for; shown in the state machine's definition."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.description) <= local._limits["description"].most
    error_message = "description: at most ${local._limits["description"].most} characters, so that the definition stays readable. Shorten it."
  }
}

variable "environment" {
  description = "Environment variables of the training container. An attempt's own ones override these."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for a in var.attempts : length(merge(var.environment, a.environment)) <= local._limits["environment"].most])
    error_message = "environment: a container takes 100 variables at most (API) and SAGEFIT_ATTEMPT is one of them, so give ${local._limits["environment"].most} or fewer, those of the attempt included. Move settings to hyperparameters or a file in the code."
  }

  validation {
    condition     = !anytrue([for k in keys(merge(concat([var.environment], var.attempts[*].environment)...)) : can(regex(local._reserved_name, k)) && !contains(local._variables.own, k)])
    error_message = "environment: ${join(", ", [for k in keys(merge(concat([var.environment], var.attempts[*].environment)...)) : k if can(regex(local._reserved_name, k)) && !contains(local._variables.own, k)])}: Sagefit, SageMaker and the execution role set such variables. Rename yours, or remove it."
  }

  validation {
    condition     = alltrue([for k in keys(merge(concat([var.environment], var.attempts[*].environment)...)) : can(regex(local._limits["environment.*"].pattern, k))])
    error_message = "environment: a name is 1 to ${local._limits["environment.*"].most} letters, digits and underscores and starts with no digit (API). Rename it."
  }

  validation {
    condition     = alltrue([for v in flatten([for e in concat([var.environment], var.attempts[*].environment) : values(e)]) : length(v) <= local._limits["environment.*.value"].most])
    error_message = "environment: a value has at most ${local._limits["environment.*.value"].most} characters (API). Use a hyperparameter (${local._limits["hyperparameters.*.value"].most}) or a file in the code."
  }

  validation {
    condition     = !anytrue(flatten([for m in concat([var.environment], var.attempts[*].environment) : [for k, v in m : can(regex(local._credential, "${k}=${v}"))]]))
    error_message = "environment: ${join(", ", distinct(flatten([for m in concat([var.environment], var.attempts[*].environment) : [for k, v in m : k if can(regex(local._credential, "${k}=${v}"))]])))} looks like a credential, and everyone who can describe the job reads it. Let the script fetch the secret with the execution role."
  }
}

variable "hyperparameters" {
  description = "Hyperparameters as strings. An attempt's own ones override these."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for a in var.attempts : length(merge(var.hyperparameters, a.hyperparameters)) <= local._limits["hyperparameters"].most])
    error_message = "hyperparameters: at most ${local._limits["hyperparameters"].most} (API), those of the attempt included. Put the rest in a file in the code."
  }

  validation {
    condition     = alltrue([for k in keys(merge(concat([var.hyperparameters], var.attempts[*].hyperparameters)...)) : length(k) >= 1 && length(k) <= local._limits["hyperparameters.*"].most])
    error_message = "hyperparameters: a name has 1 to ${local._limits["hyperparameters.*"].most} characters (API). Rename it."
  }

  validation {
    condition     = alltrue([for k in keys(merge(concat([var.hyperparameters], var.attempts[*].hyperparameters)...)) : !endswith(k, ".$")])
    error_message = "hyperparameters: a name must not end in \".$\", which a state machine reads as a path. Rename it."
  }

  validation {
    condition     = alltrue([for v in flatten([for h in concat([var.hyperparameters], var.attempts[*].hyperparameters) : values(h)]) : length(v) <= local._limits["hyperparameters.*.value"].most])
    error_message = "hyperparameters: a value has at most ${local._limits["hyperparameters.*.value"].most} characters (API). Put long values in a file in the code or in a channel."
  }

  validation {
    condition     = !anytrue(flatten([for m in concat([var.hyperparameters], var.attempts[*].hyperparameters) : [for k, v in m : can(regex(local._credential, "${k}=${v}"))]]))
    error_message = "hyperparameters: ${join(", ", distinct(flatten([for m in concat([var.hyperparameters], var.attempts[*].hyperparameters) : [for k, v in m : k if can(regex(local._credential, "${k}=${v}"))]])))} looks like a credential, and everyone who can describe the job reads it. Let the script fetch the secret with the execution role."
  }

  # A run carries the description of its current training job from state to
  # state, and 262,144 bytes is the most a state may carry.
  validation {
    condition     = alltrue([for a in var.attempts : length(jsonencode([merge(var.hyperparameters, a.hyperparameters), merge(var.environment, a.environment)])) <= 150000])
    error_message = "hyperparameters, environment: together at most 150,000 characters for one attempt, because a run carries them through the state machine. Put long values in a file in the code or in a channel."
  }
}

variable "max_price" {
  description = "What a run may cost at worst, in USD, or null. Sagefit checks it before a plan; here it becomes a tag of the state machine, so that a plan shows when it is raised."
  type        = number
  default     = null
}

variable "metric_definitions" {
  description = "Metrics read from the training log: name and a regular expression with one group. The launcher's own memory metrics are added, except on the images of SageMaker's own algorithms, which take no metrics."
  type = list(object({
    name  = string
    regex = string
  }))
  default  = []
  nullable = false

  validation {
    condition     = length(var.metric_definitions) + length(local._launcher_metrics) <= local._limits["metrics"].most
    error_message = "metric_definitions: at most ${local._limits["metrics"].most} (API), of which a script job uses 4 for the launcher's metrics. Give fewer."
  }

  validation {
    condition     = alltrue([for m in var.metric_definitions : length(m.name) >= 1 && length(m.name) <= local._limits["metrics.*.name"].most])
    error_message = "metric_definitions: a name has 1 to ${local._limits["metrics.*.name"].most} characters (API). Rename it."
  }

  validation {
    condition     = alltrue([for m in var.metric_definitions : length(m.regex) >= 1 && length(m.regex) <= local._limits["metrics.*.regex"].most])
    error_message = "metric_definitions: a regex has 1 to ${local._limits["metrics.*.regex"].most} characters (API). Shorten it."
  }

  validation {
    condition     = length(var.metric_definitions) == length(distinct(var.metric_definitions[*].name))
    error_message = "metric_definitions: every name is used once. Rename the second one."
  }

  validation {
    condition     = length(var.metric_definitions) == 0 || !local._brings_metrics
    error_message = "metric_definitions: SageMaker's own algorithms define their own metrics, and XGBoost's image does so also where it runs a script. Remove metric_definitions, or use another image."
  }
}

variable "name" {
  description = "Name of the job. Runs, training jobs, log group and role are named after it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex(local._limits["name"].pattern, var.name)) && length(var.name) <= local._limits["name"].most
    error_message = "name: lower-case letters, digits and single inner hyphens, at most ${local._limits["name"].most} characters, because a training job adds the time and the attempt and has 63 (API). Rename the job."
  }

  validation {
    condition     = !can(regex(local._limits["name"].reserved, var.name))
    error_message = "name: ${var.name} ends in execution or schedule, as roles of the platform and of other jobs do, and an account has each name of a role only once (IAM). Rename the job."
  }
}

variable "platform" {
  description = "The platform's document: the root module's output `document`, also published as the SSM parameter `/sagefit/<platform>`."
  type = object({
    schema                   = number
    name                     = string
    partition                = string
    region                   = string
    account_id               = string
    role_arn                 = string
    permissions_boundary_arn = optional(string)
    job_policy_arns          = optional(map(string))
    shared_data              = optional(map(string), {})
    buckets = object({
      data        = string
      artifacts   = string
      checkpoints = string
    })
    kms_key_arn    = optional(string)
    repository_url = optional(string)
    network = optional(object({
      subnet_ids                      = optional(list(string), [])
      security_group_ids              = optional(list(string), [])
      isolation                       = optional(bool, false)
      encrypt_inter_container_traffic = optional(bool, false)
    }), {})
    allowed_instance_types = optional(list(string), [])
    max_keep_alive_seconds = optional(number, 3600)
    warm_pools = optional(map(object({
      instance_type      = string
      instance_count     = optional(number, 1)
      volume_size_gb     = optional(number, 30)
      keep_alive_seconds = number
    })), {})
    log_retention_days = optional(number, 30)
    tags               = optional(map(string), {})
    global_suffix      = optional(string, "")
  })
  nullable = false

  validation {
    condition     = var.platform.schema == 1
    error_message = "platform.schema: this version reads schema 1. Apply the platform with the same version as the job."
  }

  validation {
    condition     = can(regex("^[a-z0-9](-?[a-z0-9])*$", var.platform.name)) && length(var.platform.name) <= 20
    error_message = "platform.name: lower-case letters, digits and single inner hyphens, at most 20 characters. It prefixes every name."
  }

  validation {
    condition     = can(regex("^\\d{12}$", var.platform.account_id))
    error_message = "platform.account_id: an account has 12 digits. Apply the platform again to publish its document."
  }

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:iam::\\d{12}:role/[\\w+=,.@/-]+$", var.platform.role_arn))
    error_message = "platform.role_arn: must be the ARN of an IAM role. Apply the platform again to publish its document."
  }
}

variable "schedule" {
  description = <<-EOT
    Starts runs on a schedule of EventBridge Scheduler, or null.
    - `expression`: `rate(1 day)`, `cron(0 6 * * ? *)` or `at(2030-01-01T06:00:00)`.
    - `timezone`: IANA name the expression is read in.
    - `enabled`: false keeps the schedule but starts nothing.
  EOT
  type = object({
    expression = string
    timezone   = optional(string, "UTC")
    enabled    = optional(bool, true)
  })
  default = null

  validation {
    condition     = can(regex(local._limits["schedule.expression"].pattern, try(var.schedule.expression, "rate(1 day)"))) && try(length(var.schedule.expression) <= local._limits["schedule.expression"].most, true)
    error_message = "schedule.expression: write ${local._limits["schedule.expression"].words}, as EventBridge Scheduler does: cron(...) has six fields, and of day and weekday one is ?."
  }
}

variable "tags" {
  description = "Tags of the job's resources and of its training jobs, on top of the platform's."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(merge(data.aws_default_tags.this.tags, var.platform.tags, var.tags)) <= local._limits["tags"].most
    error_message = "tags: a training job takes 50 (API), the provider's default ones, the platform's and four of Sagefit included. Remove some."
  }

  validation {
    condition     = alltrue([for k, v in var.tags : can(regex(local._limits["tags.*"].pattern, k)) && can(regex(local._limits["tags.*.value"].pattern, v)) && length(k) >= 1 && length(k) <= local._limits["tags.*"].most && length(v) <= local._limits["tags.*.value"].most])
    error_message = "tags: a key has 1 to ${local._limits["tags.*"].most} characters and a value at most ${local._limits["tags.*.value"].most}, of letters, digits, spaces and _.:/=+-@ (API). Rename it."
  }

  # Policies go by them: a job must not say that its platform is not regulated.
  validation {
    condition     = alltrue([for k in keys(var.tags) : !startswith(lower(k), "sagefit:")])
    error_message = "tags: keys starting with sagefit: are the platform's and Sagefit's own. Rename it, or set it in the platform."
  }

  validation {
    condition     = alltrue([for k in keys(var.tags) : !startswith(lower(k), "aws:")])
    error_message = "tags: keys starting with aws: are reserved (API). Rename it."
  }

  validation {
    condition     = !anytrue([for k, v in var.tags : can(regex(local._credential, "${k}=${v}"))])
    error_message = "tags: ${join(", ", [for k, v in var.tags : k if can(regex(local._credential, "${k}=${v}"))])} looks like a credential, and tags are readable by everyone who can list resources. Remove it."
  }
}

variable "tracing" {
  description = "Record runs of the state machine with AWS X-Ray."
  type        = bool
  default     = false
  nullable    = false
}
