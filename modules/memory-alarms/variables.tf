variable "cleanup" {
  description = "State machine that stops what still runs of a run that ended (modules/run-cleanup); null for none."
  type        = string
  default     = null

  validation {
    condition     = var.cleanup == null || can(regex("^arn:aws[a-z-]*:states:[a-z0-9-]+:[0-9]{12}:stateMachine:[A-Za-z0-9_-]+$", var.cleanup))
    error_message = "cleanup must be the ARN of a state machine."
  }
}

variable "dashboard" {
  description = "Make a dashboard of host memory, GPU memory and disk over all jobs. CloudWatch bills dashboards beyond the third of an account."
  type        = bool
  default     = true
  nullable    = false
}

variable "emails" {
  description = "Addresses that get the notifications. Each must confirm a message from AWS first."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for email in var.emails : can(regex("^[^@ ]+@[^@ ]+[.][^@ ]+$", email))])
    error_message = "emails must be e-mail addresses."
  }
}

variable "evaluation" {
  description = <<-EOT
    How long memory must be short before an alarm.
    - `period_seconds`: length of a period. Training metrics have one value a minute, so shorter periods see nothing.
    - `periods`, `datapoints`: so many (`datapoints`) of the last `periods` must be over the threshold.
  EOT
  type = object({
    period_seconds = optional(number, 60)
    periods        = optional(number, 3)
    datapoints     = optional(number, 2)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.evaluation.period_seconds >= 60 && var.evaluation.period_seconds % 60 == 0
    error_message = "evaluation.period_seconds must be a multiple of 60."
  }

  validation {
    condition     = var.evaluation.period_seconds * var.evaluation.periods <= 10800
    error_message = "evaluation: period_seconds * periods may span at most 3 hours, all that Metrics Insights looks back."
  }

  validation {
    condition     = var.evaluation.periods >= 1 && floor(var.evaluation.periods) == var.evaluation.periods
    error_message = "evaluation.periods must be a whole number of at least 1."
  }

  validation {
    condition     = var.evaluation.datapoints >= 1 && var.evaluation.datapoints <= var.evaluation.periods && floor(var.evaluation.datapoints) == var.evaluation.datapoints
    error_message = "evaluation.datapoints must be a whole number between 1 and evaluation.periods."
  }
}

variable "events" {
  description = <<-EOT
    Ends that are notified. Alarms alone would miss them: the metrics of a host end with the host.
    - `failed_attempts`, `stopped_attempts`: training jobs of the platform's roles that failed or stopped; trials of a
      search are none of them, and how a search ended the run says.
    - `dropped_schedules`: runs that a schedule could not start. It sees all schedules of the account's default group.
    - `failed_runs`: runs that ended without a model, after their last attempt; and jobs of them that could not be stopped.
  EOT
  type = object({
    failed_attempts   = optional(bool, true)
    stopped_attempts  = optional(bool, true)
    failed_runs       = optional(bool, true)
    dropped_schedules = optional(bool, true)
  })
  default  = {}
  nullable = false
}

variable "job_roles" {
  description = "How the ARNs of the jobs' own roles begin; null where all jobs have `role_arn`."
  type        = string
  default     = null

  validation {
    condition     = var.job_roles == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+/$", var.job_roles))
    error_message = "job_roles must be the ARN of a path of roles, with a slash at its end."
  }
}

variable "role_arn" {
  description = "Execution role of the platform's jobs; events of jobs under other roles are left alone."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", var.role_arn))
    error_message = "role_arn must be a role ARN."
  }
}

variable "thresholds" {
  description = <<-EOT
    Percentages above which an alarm goes off; 0 leaves the alarm out.
    - `host_memory`: memory of an instance, as SageMaker measures it each minute.
    - `container_memory`: memory of the container against its own limit, as the launcher measures it. Off by default: on an
      instance of its own a container's limit is the instance, and the two would alarm together.
    - `gpu_memory`: the fullest GPU of a host, as the launcher measures it. SageMaker's own GPU metric adds up the
      GPUs of a host, so a single full GPU among eight does not show in it.
    - `disk`: disk of an instance.
  EOT
  type = object({
    host_memory      = optional(number, 90)
    container_memory = optional(number, 0)
    gpu_memory       = optional(number, 95)
    disk             = optional(number, 85)
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for threshold in values(var.thresholds) : threshold >= 0 && threshold < 100])
    error_message = "thresholds must be above 0 and below 100 percent, or 0 for no alarm."
  }
}

variable "topic_key" {
  description = <<-EOT
    Key that encrypts the topic. The AWS-managed key `alias/aws/sns` will not do: its policy cannot be changed, so
    CloudWatch and EventBridge could not use it and notifications would be lost.
    - `create`: make a key for this topic.
    - `id`: use this key (ARN, or alias name) instead, with `create = false`. Its policy must let
      `cloudwatch.amazonaws.com` and `events.amazonaws.com` use `kms:Decrypt` and `kms:GenerateDataKey*`.
  EOT
  type = object({
    create = optional(bool, true)
    id     = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.topic_key.create ? var.topic_key.id == null : true
    error_message = "topic_key.id needs topic_key.create = false."
  }

  validation {
    condition     = var.topic_key.create ? true : var.topic_key.id != null
    error_message = "topic_key.create = false needs topic_key.id: the topic is always encrypted."
  }

  validation {
    condition     = var.topic_key.id != "alias/aws/sns"
    error_message = "topic_key.id: alias/aws/sns cannot be used by CloudWatch alarms and EventBridge; notifications would be lost."
  }
}
