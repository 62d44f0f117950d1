# Hyperparameter tuning. [API] is CreateHyperParameterTuningJob; [DG] are the
# pages "Resource limits for automatic model tuning" and "Define hyperparameter
# ranges" of the SageMaker developer guide.

variable "tuning" {
  description = <<-EOT
    What each attempt searches for, or null to train once: every attempt becomes a tuning job.
    - `strategy`: Bayesian, Random, Grid or Hyperband.
    - `objective`: the metric that tells which training job is best, and Maximize or Minimize.
    - `max_jobs`, `max_parallel_jobs`: training jobs in all and at a time; a grid takes as many as it has combinations, so `max_jobs` is null there.
    - `parallel_quota`: most training jobs at a time that the account allows.
    - `max_runtime_seconds`: time limit of each tuning job; null leaves it to the limits of its training jobs.
    - `early_stopping`: let SageMaker stop training jobs that will hardly be best; `seed` makes searches repeatable.
    - `ranges`: by hyperparameter, `type` Integer or Continuous with `min`, `max` and `scaling`, or Categorical with `values`.
  EOT
  type = object({
    strategy = optional(string, "Bayesian")
    objective = object({
      metric = string
      type   = string
    })
    max_jobs            = optional(number)
    max_parallel_jobs   = optional(number, 1)
    parallel_quota      = optional(number, 10)
    max_runtime_seconds = optional(number)
    early_stopping      = optional(bool, false)
    seed                = optional(number)
    ranges = map(object({
      type    = string
      min     = optional(number)
      max     = optional(number)
      scaling = optional(string, "Auto")
      values  = optional(list(string), [])
    }))
  })
  default = null

  validation {
    condition     = contains(["Bayesian", "Random", "Grid", "Hyperband"], try(var.tuning.strategy, "Random")) && contains(["Maximize", "Minimize"], try(var.tuning.objective.type, "Maximize"))
    error_message = "tuning.strategy: Bayesian, Random, Grid or Hyperband; tuning.objective.type: Maximize or Minimize (API)."
  }

  validation {
    condition     = var.tuning == null || local._brings_metrics || var.image.algorithm_arn != null || contains(var.metric_definitions[*].name, try(var.tuning.objective.metric, "-"))
    error_message = "tuning.objective.metric: not among metric_definitions, so nobody would find it in the log. Add it there, or correct the name."
  }

  validation {
    condition     = var.tuning == null || length(var.metric_definitions) + length(local._launcher_metrics) <= local._limits["tuning.metrics"].most
    error_message = "metric_definitions: a tuning job takes ${local._limits["tuning.metrics"].most} (DG), of which a script job uses 4 for the launcher's metrics. Give fewer."
  }

  validation {
    condition     = try(var.tuning.strategy == "Grid" || var.tuning.max_jobs != null, true)
    error_message = "tuning.max_jobs: how many training jobs the search may take; only a grid does without. Add it."
  }

  validation {
    condition     = alltrue([for n in [try(var.tuning.max_jobs, null), try(var.tuning.max_parallel_jobs, null), try(var.tuning.parallel_quota, null), try(var.tuning.seed + 1, null)] : try(n >= 1 && floor(n) == n, n == null)])
    error_message = "tuning.max_jobs, tuning.max_parallel_jobs, tuning.parallel_quota, tuning.seed: whole numbers of at least 1, or 0 for the seed (API)."
  }

  validation {
    condition     = try(var.tuning.parallel_quota <= local._limits["tuning.parallel_quota"].most, true)
    error_message = "tuning.parallel_quota: AWS grants ${local._limits["tuning.parallel_quota"].most} at most (DG). Lower it."
  }

  validation {
    condition     = try(var.tuning.max_parallel_jobs <= min(var.tuning.parallel_quota, local._limits["tuning.max_parallel_jobs"].most), true)
    error_message = "tuning.max_parallel_jobs: above tuning.parallel_quota, which is 10 in an account that asked for no more, and ${local._limits["tuning.max_parallel_jobs"].most} at most (DG). Lower it, or raise the quota and the setting."
  }

  validation {
    condition     = try(var.tuning.max_runtime_seconds >= local._limits["tuning.max_runtime"].least && var.tuning.max_runtime_seconds <= local._limits["tuning.max_runtime"].most && floor(var.tuning.max_runtime_seconds) == var.tuning.max_runtime_seconds, try(var.tuning.max_runtime_seconds, null) == null)
    error_message = "tuning.max_runtime_seconds: a whole number from ${local._limits["tuning.max_runtime"].least} (API) to ${local._limits["tuning.max_runtime"].most}, which is 30 days (DG)."
  }

  validation {
    condition     = alltrue([for names in [keys(try(var.tuning.ranges, {}))] : var.tuning == null || (length(names) >= 1 && length(names) <= local._limits["tuning.ranges"].most && alltrue([for name in names : length(name) >= 1 && length(name) <= local._limits["tuning.ranges.*"].most]))])
    error_message = "tuning.ranges: a tuning job searches over 1 to ${local._limits["tuning.ranges"].most} hyperparameters (DG), and a name has 1 to ${local._limits["tuning.ranges.*"].most} characters (API). Add one, or remove or rename some."
  }

  validation {
    condition     = alltrue([for r in values(try(var.tuning.ranges, {})) : contains(["Integer", "Continuous", "Categorical"], r.type) && contains(["Auto", "Linear", "Logarithmic", "ReverseLogarithmic"], r.scaling)])
    error_message = "tuning.ranges[*]: type is Integer, Continuous or Categorical, and scaling is Auto, Linear, Logarithmic or ReverseLogarithmic (API)."
  }

  validation {
    condition     = alltrue([for r in values(try(var.tuning.ranges, {})) : r.type == "Categorical" || try(r.min < r.max && (r.type != "Integer" || (floor(r.min) == r.min && floor(r.max) == r.max)), false)])
    error_message = "tuning.ranges[*]: a range of numbers needs min and max, min below max, and an Integer range whole ones (API). Correct them."
  }

  validation {
    condition     = alltrue([for r in values(try(var.tuning.ranges, {})) : try(r.scaling == "Logarithmic" ? r.min > 0 : r.scaling == "ReverseLogarithmic" ? r.min >= 0 && r.max < 1 : true, true)])
    error_message = "tuning.ranges[*].scaling: Logarithmic takes numbers above 0, and ReverseLogarithmic from 0 to below 1 (API). Change min and max, or use Linear."
  }

  validation {
    condition     = alltrue([for r in values(try(var.tuning.ranges, {})) : r.type != "Categorical" || (length(r.values) >= 1 && length(r.values) <= local._limits["tuning.ranges.*.values"].most && length(distinct(r.values)) == length(r.values) && alltrue([for v in r.values : length(v) >= 1 && length(v) <= local._limits["tuning.ranges.*.values.*"].most]))])
    error_message = "tuning.ranges[*].values: a Categorical range has 1 to ${local._limits["tuning.ranges.*.values"].most} different values of 1 to ${local._limits["tuning.ranges.*.values.*"].most} characters (API). Change the list."
  }

  # [] and not {} in the message: checkov's reader of HCL stops at a brace inside of a template.
  validation {
    condition     = !anytrue(flatten([for name, r in try(var.tuning.ranges, {}) : [for v in r.values : can(regex(local._credential, "${name}=${v}"))]]))
    error_message = "tuning.ranges: ${join(", ", [for name, r in try(var.tuning.ranges, []) : name if anytrue([for v in r.values : can(regex(local._credential, "${name}=${v}"))])])} looks like a credential, and everyone who can describe the job reads it. Let the script fetch the secret with the execution role."
  }

  validation {
    condition     = try(var.tuning.strategy, "-") != "Grid" || (alltrue([for r in values(try(var.tuning.ranges, {})) : r.type == "Categorical"]) && try(var.tuning.max_jobs, null) == null)
    error_message = "tuning.strategy: Grid takes Categorical ranges only, and tries each combination of them, so tuning.max_jobs is left out (DG). Write the values out, or use another strategy."
  }

  # A product by its logarithm, as Terraform has no product.
  validation {
    condition = try(
      var.tuning.strategy == "Grid" || anytrue([for r in values(var.tuning.ranges) : r.type == "Continuous"]) ||
      sum([for r in values(var.tuning.ranges) : log(r.type == "Categorical" ? length(r.values) : r.max - r.min + 1, 2)]) > log(var.tuning.max_jobs, 2) - 0.000001,
      true,
    )
    error_message = "tuning.max_jobs: more than the ranges have combinations, and a search tries none twice (API). Lower it, or search more values."
  }

  validation {
    condition     = try(var.tuning.strategy != "Hyperband" || !var.tuning.early_stopping, true)
    error_message = "tuning.early_stopping: Hyperband stops training jobs by its own rules (API). Remove it."
  }

  validation {
    condition     = try(var.tuning.strategy, "-") != "Hyperband" || anytrue([for name in ["epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs"] : contains(keys(var.hyperparameters), name)])
    error_message = "tuning.strategy: Hyperband reads how long a training job may go on from the hyperparameter epochs, numepochs, n-epochs, n_epochs or num_epochs (API). Set one, or use another strategy."
  }

  validation {
    condition     = alltrue([for name in keys(try(var.tuning.ranges, {})) : !anytrue([for h in concat([var.hyperparameters], var.attempts[*].hyperparameters) : contains(keys(h), name)])])
    error_message = "tuning.ranges: ${join(", ", [for name in keys(try(var.tuning.ranges, {})) : name if anytrue([for h in concat([var.hyperparameters], var.attempts[*].hyperparameters) : contains(keys(h), name)])])} is searched and set in hyperparameters, too. Remove one of them."
  }

  validation {
    condition     = var.tuning == null || alltrue([for h in local._static_hyperparameters : length(h) + length(try(var.tuning.ranges, {})) + 1 <= local._limits["hyperparameters"].most])
    error_message = "tuning.ranges: a training job takes ${local._limits["hyperparameters"].most} hyperparameters (DG), of which SageMaker adds one and a script job three. Put those that never change into a file of the code."
  }

  validation {
    condition     = var.tuning == null || alltrue([for a in var.attempts : length(merge(var.environment, a.environment)) <= local._limits["tuning.environment"].most])
    error_message = "environment: a tuning job takes 48 variables (API) and SAGEFIT_ATTEMPT is one of them, so give ${local._limits["tuning.environment"].most} or fewer. Move settings to a file in the code."
  }

  validation {
    condition     = var.tuning == null || length(local._launcher_arguments) <= local._limits["hyperparameters.*.value"].most
    error_message = "code.arguments: with tuning they travel as one hyperparameter, which has ${local._limits["hyperparameters.*.value"].most} characters (API). Shorten them."
  }

  validation {
    condition     = var.tuning == null || length(var.name) <= local._longest_tuning_name
    error_message = "name: with tuning at most ${local._longest_tuning_name} characters, because a tuning job adds the time and the attempt to it and has 32 (API). Rename the job."
  }

  validation {
    condition     = var.tuning == null || var.schedule == null
    error_message = "schedule: the scheduler names runs by ids of 36 characters, and the name of a tuning job has 32 (API). Start the runs from elsewhere, or remove tuning."
  }

  validation {
    condition     = var.tuning == null || (var.resources.warm_pool == null && alltrue([for a in var.attempts : a.keep_alive_seconds == 0]))
    error_message = "resources.warm_pool, attempts[*].keep_alive_seconds: SageMaker keeps no instances warm for training jobs of a tuning job. Remove the setting, or tuning."
  }

  validation {
    condition     = var.tuning == null || !var.resources.remote_debug
    error_message = "resources.remote_debug: training jobs of a tuning job have none (API). Remove it."
  }

  validation {
    condition     = var.tuning == null || !var.resources.profiler
    error_message = "resources.profiler: training jobs of a tuning job have none (API). Remove it."
  }
}
