variable "attempts" {
  description = <<-EOT
    Ways to run the job, in order; the first one starts every run.
    - `name`: names the states in the graph; `reason` says why the attempt is there.
    - `instance_type`, `instance_count`, `spot`: hardware and how it is bought.
    - `instance_groups`: instead of a type, groups of `name`, `instance_type`, `instance_count` that train together.
    - `hyperparameters`, `environment`: override the job's.
    - `volume_size_gb`: null takes the warm pool's or the job's; `keep_alive_seconds` keeps the instances warm afterwards.
    - `max_runtime_seconds`; `max_wait_seconds` (spot only, waiting included); `max_pending_seconds` (wait for capacity).
    - `memory_percent`: share of the usable memory that the prediction's upper bound takes, of the GPU or the host, whichever is fuller; kept as the tag `sagefit:memory-percent`.
    - `next`: for each failure class the later attempt that follows it. A class without an entry ends the run.
  EOT
  type = list(object({
    name           = string
    reason         = optional(string, "")
    instance_type  = optional(string)
    instance_count = optional(number, 1)
    instance_groups = optional(list(object({
      name           = string
      instance_type  = string
      instance_count = optional(number, 1)
    })), [])
    spot                = optional(bool, false)
    hyperparameters     = optional(map(string), {})
    environment         = optional(map(string), {})
    volume_size_gb      = optional(number)
    keep_alive_seconds  = optional(number, 0)
    max_runtime_seconds = optional(number, 86400)
    max_wait_seconds    = optional(number)
    max_pending_seconds = optional(number)
    memory_percent      = optional(number)
    next                = optional(map(string), {})
  }))
  nullable = false

  validation {
    condition     = length(var.attempts) >= 1
    error_message = "attempts: a job needs at least one. Add one with a name and an instance_type."
  }

  validation {
    condition     = length(var.attempts) <= local._limits["attempts"].most
    error_message = "attempts: at most ${local._limits["attempts"].most}, so that the record of a failed run fits into its cause (32,768 characters). Remove some."
  }

  validation {
    condition     = alltrue([for a in var.attempts : can(regex(local._limits["attempts.*.name"].pattern, a.name)) && length(a.name) <= local._limits["attempts.*.name"].most])
    error_message = "attempts[*].name: lower-case letters, digits and single inner hyphens, at most ${local._limits["attempts.*.name"].most} characters, because state names are made of it. Rename the attempt."
  }

  validation {
    condition     = length(distinct(var.attempts[*].name)) == length(var.attempts)
    error_message = "attempts[*].name: every name is used once. Rename the second one."
  }

  validation {
    condition     = alltrue([for a in var.attempts : length(a.reason) <= local._limits["attempts.*.reason"].most])
    error_message = "attempts[*].reason: at most ${local._limits["attempts.*.reason"].most} characters. Shorten it."
  }

  validation {
    condition     = alltrue([for a in var.attempts : (a.instance_type == null) == (length(a.instance_groups) > 0)])
    error_message = "attempts[*]: an attempt has an instance_type or instance_groups (API). Give one of the two."
  }

  validation {
    condition     = alltrue([for a in var.attempts : length(a.instance_groups) <= local._limits["resources.instance_groups"].most])
    error_message = "attempts[*].instance_groups: at most ${local._limits["resources.instance_groups"].most} (API). Join groups of one type."
  }

  validation {
    condition     = alltrue([for a in var.attempts : alltrue([for g in a.instance_groups : length(g.name) >= 1 && length(g.name) <= local._limits["resources.instance_groups.*.name"].most]) && length(distinct(a.instance_groups[*].name)) == length(a.instance_groups)])
    error_message = "attempts[*].instance_groups[*].name: 1 to ${local._limits["resources.instance_groups.*.name"].most} characters (API), each used once. Rename the group."
  }

  validation {
    condition     = alltrue([for a in var.attempts : length(a.instance_groups) == 0 || a.keep_alive_seconds == 0])
    error_message = "attempts[*].keep_alive_seconds: instance groups cannot be kept warm (SageMaker guide). Set it to 0, or use one instance_type."
  }

  validation {
    condition     = alltrue(flatten([for a in var.attempts : [for t in concat(a.instance_groups[*].instance_type, compact([a.instance_type])) : contains(keys(local.instances), t)]]))
    error_message = "attempts[*].instance_type: ${join(", ", flatten([for a in var.attempts : [for t in concat(a.instance_groups[*].instance_type, compact([a.instance_type])) : t if !contains(keys(local.instances), t)]]))} is no training instance in instances.csv. Correct it, or refresh the table."
  }

  validation {
    condition     = alltrue(flatten([for a in var.attempts : [for t in concat(a.instance_groups[*].instance_type, compact([a.instance_type])) : length(var.platform.allowed_instance_types) == 0 || contains(var.platform.allowed_instance_types, t)]]))
    error_message = "attempts[*].instance_type: platform ${var.platform.name} allows ${join(", ", var.platform.allowed_instance_types)} only. Choose one of them, or extend the platform's allowed_instance_types."
  }

  validation {
    condition     = alltrue(flatten([for a in var.attempts : [for n in concat([a.instance_count], a.instance_groups[*].instance_count) : n >= 1 && floor(n) == n]]))
    error_message = "attempts[*].instance_count: a whole number of at least 1."
  }

  validation {
    condition     = alltrue([for a in var.attempts : (a.instance_type == null ? sum(concat([0], a.instance_groups[*].instance_count)) : a.instance_count) <= var.resources.instance_quota])
    error_message = "attempts[*].instance_count: above resources.instance_quota (20, the account's default quota). Ask for fewer, or raise the quota and the setting."
  }

  validation {
    condition     = alltrue(flatten([for a in var.attempts : [for t in concat(a.instance_groups[*].instance_type, compact([a.instance_type])) : var.resources.volume_kms_key_arn == null || try(tonumber(local.instances[t].nvme_gb), 0) == 0]]))
    error_message = "resources.volume_kms_key_arn: instances with local NVMe disks take no volume key; the hardware encrypts them (API). Remove the key, or change attempts[*].instance_type."
  }

  validation {
    condition     = alltrue([for a in var.attempts : a.max_runtime_seconds >= 1 && a.max_runtime_seconds <= local._limits["resources.max_runtime"].most && floor(a.max_runtime_seconds) == a.max_runtime_seconds])
    error_message = "attempts[*].max_runtime_seconds: a whole number from 1 to ${local._limits["resources.max_runtime"].most}, which is 28 days (API)."
  }

  validation {
    condition     = alltrue([for a in var.attempts : a.spot || a.max_wait_seconds == null])
    error_message = "attempts[*].max_wait_seconds: accepted with spot only (API). Remove it, or set attempts[*].spot = true."
  }

  validation {
    condition     = alltrue([for a in var.attempts : !a.spot || a.max_wait_seconds != null])
    error_message = "attempts[*].max_wait_seconds: spot training needs it (API). Set it to max_runtime_seconds plus the time you accept to wait."
  }

  validation {
    condition     = alltrue([for a in var.attempts : try(a.max_wait_seconds >= a.max_runtime_seconds, a.max_wait_seconds == null)])
    error_message = "attempts[*].max_wait_seconds: includes the runtime, so it must be at least max_runtime_seconds (API). Raise it."
  }

  validation {
    condition     = alltrue([for a in var.attempts : try(a.max_wait_seconds <= local._limits["resources.max_wait"].most && floor(a.max_wait_seconds) == a.max_wait_seconds, a.max_wait_seconds == null)])
    error_message = "attempts[*].max_wait_seconds: a whole number of at most ${local._limits["resources.max_wait"].most}, which is 28 days. Lower it."
  }

  validation {
    condition     = alltrue([for a in var.attempts : try(a.max_pending_seconds >= local._limits["resources.max_pending"].least && a.max_pending_seconds <= local._limits["resources.max_pending"].most && floor(a.max_pending_seconds) == a.max_pending_seconds, a.max_pending_seconds == null)])
    error_message = "attempts[*].max_pending_seconds: a whole number from ${local._limits["resources.max_pending"].least} to ${local._limits["resources.max_pending"].most} (API)."
  }

  validation {
    condition     = alltrue([for a in var.attempts : !a.spot || var.resources.checkpoints])
    error_message = "attempts[*].spot: an interrupted training job starts from zero without checkpoints. Set resources.checkpoints = true, or spot = false."
  }

  validation {
    condition     = alltrue([for a in var.attempts : !a.spot || !contains(local._algorithms_without_checkpoints, coalesce(var.image.algorithm, "-")) || try(a.max_wait_seconds <= 3600, true)])
    error_message = "attempts[*].max_wait_seconds: a built-in algorithm that writes no checkpoints may wait 3600 seconds at most for spot (SageMaker guide). Lower it, or set spot = false."
  }

  validation {
    condition     = alltrue([for a in var.attempts : a.keep_alive_seconds >= 0 && a.keep_alive_seconds <= local._limits["attempts.*.warm_pool"].most && floor(a.keep_alive_seconds) == a.keep_alive_seconds])
    error_message = "attempts[*].keep_alive_seconds: a whole number from 0 to ${local._limits["attempts.*.warm_pool"].most} (API)."
  }

  validation {
    condition     = alltrue([for a in var.attempts : !a.spot || a.keep_alive_seconds == 0])
    error_message = "attempts[*].keep_alive_seconds: spot instances cannot be kept warm (API). Set it to 0, or spot = false."
  }

  validation {
    condition     = alltrue(flatten([for a in var.attempts : [for c in keys(a.next) : contains(local.failure_classes, c)]]))
    error_message = "attempts[*].next: unknown failure class ${join(", ", distinct(flatten([for a in var.attempts : [for c in keys(a.next) : c if !contains(local.failure_classes, c)]])))}. Known: ${join(", ", local.failure_classes)}."
  }

  validation {
    condition     = alltrue([for a in var.attempts : !contains(keys(a.next), "stopped")])
    error_message = "attempts[*].next: stopped has no edge, because whoever stops a training job wants the run to end. Remove it."
  }

  validation {
    condition     = alltrue(flatten([for i, a in var.attempts : [for t in values(a.next) : try(index(var.attempts[*].name, t) > i, false)]]))
    error_message = "attempts[*].next: an edge leads to a later attempt of the list, so that every run ends. Correct the name, or move the target down."
  }
}
