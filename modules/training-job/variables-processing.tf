variable "processing" {
  description = <<-EOT
    Processing steps of every run, in order, before the first attempt.
    - `name`: names the step's states and its folder of outputs.
    - `image`: exactly one of `uri`, `repository` with `tag` or `digest`, and `framework` with `version`; spark is one of them.
    - `code`: as the job's; without it the image runs its own program. Spark's images run it with `smspark-submit`, others with `python3`.
    - `inputs`: by name, at `/opt/ml/processing/input/NAME`; each exactly one of `s3_uri`, `local_path` (with `exclude` and `allow_sensitive`) and `from`, which is `STEP/OUTPUT` of an earlier step; with `s3_data_type` and `distribution`.
    - `outputs`: names; what a step leaves in `/opt/ml/processing/output/NAME` is a folder of the run in the artifacts bucket, which a channel or a later step takes by `from`.
    - `environment`; `instance_type`, `instance_count`, `volume_size_gb`, `max_runtime_seconds`.
    Network, isolation and keys are those of `resources` and of the platform.
  EOT
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
      arguments       = optional(list(string), [])
      exclude         = optional(list(string), [])
      allow_sensitive = optional(list(string), [])
    }))
    inputs = optional(map(object({
      s3_uri          = optional(string)
      local_path      = optional(string)
      exclude         = optional(list(string), [])
      allow_sensitive = optional(list(string), [])
      from            = optional(string)
      s3_data_type    = optional(string, "S3Prefix")
      distribution    = optional(string, "FullyReplicated")
    })), {})
    outputs             = list(string)
    environment         = optional(map(string), {})
    instance_type       = string
    instance_count      = optional(number, 1)
    volume_size_gb      = optional(number, 30)
    max_runtime_seconds = optional(number, 86400)
  }))
  default  = []
  nullable = false

  validation {
    condition     = length(var.processing) <= local._limits["processing"].most
    error_message = "processing: at most ${local._limits["processing"].most} steps, because the name of a processing job leaves one digit for them. Put several into one script."
  }

  validation {
    condition     = alltrue([for s in var.processing : can(regex(local._limits["processing.*.name"].pattern, s.name)) && length(s.name) <= local._limits["processing.*.name"].most]) && length(distinct(var.processing[*].name)) == length(var.processing)
    error_message = "processing[*].name: lower-case letters, digits and single inner hyphens, at most ${local._limits["processing.*.name"].most} characters, and every name is used once, because states and folders are named by it. Rename the step."
  }

  validation {
    condition     = alltrue([for s in var.processing : length([for v in [s.image.uri, s.image.repository, s.image.framework] : v if v != null]) == 1])
    error_message = "processing[*].image: give exactly one of uri, repository, framework."
  }

  validation {
    condition     = alltrue([for s in var.processing : s.image.uri != ""])
    error_message = "processing[*].image.uri: is empty. Write registry/repository:tag, or leave it out and name a framework."
  }

  validation {
    condition     = alltrue([for s in var.processing : s.image.repository == null ? s.image.tag == null && s.image.digest == null : (s.image.tag == null) != (s.image.digest == null) && (s.image.digest == null || can(regex(local._limits["image.digest"].pattern, s.image.digest)))])
    error_message = "processing[*].image: a repository takes exactly one of tag and digest, which is sha256: and 64 hexadecimal digits; other images take neither. Correct tag and digest."
  }

  validation {
    condition     = alltrue([for s in var.processing : s.image.repository != "" || var.platform.repository_url != null])
    error_message = "processing[*].image.repository: \"\" is the platform's own repository, but this platform has none. Give a repository URL or turn the platform's repository on."
  }

  validation {
    condition     = alltrue([for s in var.processing : s.code != null || s.image.framework == null])
    error_message = "processing[*].code: a framework image runs your script. Give code, or an image that brings its own program."
  }

  validation {
    condition     = alltrue([for s in var.processing : length(try(s.code.arguments, [])) <= local._limits["processing.*.code.arguments"].most && alltrue([for a in try(s.code.arguments, []) : length(a) >= 1 && length(a) <= local._limits["processing.*.code.arguments.*"].most]) && length(try(s.code.entry_point, "-")) <= local._limits["processing.*.code.entry_point"].most])
    error_message = "processing[*].code: at most ${local._limits["processing.*.code.arguments"].most} arguments of 1 to ${local._limits["processing.*.code.arguments.*"].most} characters (API), and ${local._limits["processing.*.code.entry_point"].most} for entry_point, whose path in the container is one. Shorten them, or put long values into a file of the code."
  }

  validation {
    condition     = !anytrue(flatten([for s in var.processing : concat([for a in try(s.code.arguments, []) : can(regex(local._credential, a))], [for k, v in s.environment : can(regex(local._credential, "${k}=${v}"))])]))
    error_message = "processing[*].code.arguments, processing[*].environment: one of them looks like a credential, and everyone who can describe the job reads it. Let the script fetch the secret with the execution role."
  }

  validation {
    condition     = !anytrue(flatten([for s in var.processing : [for k in keys(s.environment) : can(regex(local._reserved_name, k)) && !contains(local._variables.own, k)]]))
    error_message = "processing[*].environment: ${join(", ", flatten([for s in var.processing : [for k in keys(s.environment) : k if can(regex(local._reserved_name, k)) && !contains(local._variables.own, k)]]))}: Sagefit, SageMaker and the execution role set such variables. Rename yours, or remove it."
  }

  validation {
    condition     = alltrue([for s in var.processing : length(s.environment) <= local._limits["processing.*.environment"].most && alltrue([for k, v in s.environment : can(regex(local._limits["processing.*.environment.*"].pattern, k)) && length(v) <= local._limits["processing.*.environment.*.value"].most])])
    error_message = "processing[*].environment: at most ${local._limits["processing.*.environment"].most} variables; a name has letters, digits and underscores and starts with no digit, and names and values have at most ${local._limits["processing.*.environment.*"].most} characters (API). Pass long values as an argument or in a file of the code."
  }

  validation {
    condition     = alltrue([for s in var.processing : length(s.inputs) + (s.code == null ? 0 : 1) <= local._limits["processing.*.inputs"].most])
    error_message = "processing[*].inputs: at most ${local._limits["processing.*.inputs"].most} (API), the step's code being one of them. Give several prefixes one parent, or use a manifest."
  }

  validation {
    condition     = alltrue(flatten([for s in var.processing : [for n in keys(s.inputs) : can(regex(local._limits["processing.*.inputs.*"].pattern, n)) && n != "code"]]))
    error_message = "processing[*].inputs: a name has 1 to 64 letters, digits, dots, hyphens and underscores, and code belongs to the step's code. Rename it."
  }

  validation {
    condition     = alltrue(flatten([for s in var.processing : [for c in values(s.inputs) : length([for v in [c.s3_uri, c.local_path, c.from] : v if v != null]) == 1]]))
    error_message = "processing[*].inputs: each holds exactly one of s3_uri, local_path, from."
  }

  validation {
    condition     = alltrue(flatten([for s in var.processing : [for c in values(s.inputs) : c.s3_uri == null || (can(regex(local._limits["processing.*.inputs.*.uri"].pattern, c.s3_uri)) && try(length(c.s3_uri) <= local._limits["processing.*.inputs.*.uri"].most, false))]]))
    error_message = "processing[*].inputs[*].s3_uri: write s3://bucket/prefix, at most ${local._limits["processing.*.inputs.*.uri"].most} characters (API)."
  }

  validation {
    condition     = alltrue(flatten([for i, s in var.processing : [for c in values(s.inputs) : c.from == null || contains(flatten([for e in slice(var.processing, 0, i) : [for o in e.outputs : "${e.name}/${o}"]]), coalesce(c.from, "-"))]]))
    error_message = "processing[*].inputs[*].from: must be STEP/OUTPUT of an earlier step. Correct it, or move the step up."
  }

  validation {
    condition     = alltrue(flatten([for s in var.processing : [for c in values(s.inputs) : contains(["FullyReplicated", "ShardedByS3Key"], c.distribution) && (c.s3_data_type == "S3Prefix" || (c.s3_data_type == "ManifestFile" && c.s3_uri != null))]]))
    error_message = "processing[*].inputs[*]: distribution is FullyReplicated or ShardedByS3Key, and s3_data_type S3Prefix or ManifestFile (API), which is read through s3_uri."
  }

  validation {
    condition     = alltrue([for s in var.processing : length(s.outputs) >= 1 && length(s.outputs) + (s.image.framework == "spark" || can(regex("/sagemaker-spark-processing[:@]", coalesce(s.image.uri, "-"))) ? 1 : 0) <= local._limits["processing.*.outputs"].most])
    error_message = "processing[*].outputs: 1 to ${local._limits["processing.*.outputs"].most} (API), of which Spark's event log is one. Write several into folders of one output."
  }

  validation {
    condition     = alltrue([for s in var.processing : length(distinct(s.outputs)) == length(s.outputs) && alltrue([for o in s.outputs : can(regex(local._limits["processing.*.outputs.*"].pattern, o)) && !contains([".", "..", "spark-events"], o)])])
    error_message = "processing[*].outputs: a name has 1 to 64 letters, digits, dots, hyphens and underscores, is used once, and is not spark-events, where Spark's event log goes. Rename it."
  }

  validation {
    condition     = alltrue([for s in var.processing : contains(keys(local.instances), s.instance_type) && !contains(jsondecode(file("${path.module}/processing.json")).no_processing, s.instance_type)])
    error_message = "processing[*].instance_type: ${join(", ", var.processing[*].instance_type)} must be in instances.csv and run processing jobs (API: ProcessingInstanceType). Use another type, such as ml.m5.xlarge."
  }

  validation {
    condition     = alltrue([for s in var.processing : length(var.platform.allowed_instance_types) == 0 || contains(var.platform.allowed_instance_types, s.instance_type)])
    error_message = "processing[*].instance_type: platform ${var.platform.name} allows ${join(", ", var.platform.allowed_instance_types)} only. Choose one of them, or extend the platform's allowed_instance_types."
  }

  validation {
    condition     = alltrue(flatten([for s in var.processing : [for v in [[s.instance_count, local._limits["processing.*.resources.instance_count"].most], [s.volume_size_gb, local._limits["processing.*.resources.volume_size_gb"].most], [s.max_runtime_seconds, local._limits["processing.*.resources.max_runtime"].most]] : v[0] >= 1 && v[0] <= v[1] && floor(v[0]) == v[0]]]))
    error_message = "processing[*]: instance_count is a whole number from 1 to ${local._limits["processing.*.resources.instance_count"].most}, volume_size_gb from 1 to ${local._limits["processing.*.resources.volume_size_gb"].most}, max_runtime_seconds from 1 to ${local._limits["processing.*.resources.max_runtime"].most}, which is 9 days (API)."
  }

  validation {
    condition     = alltrue([for s in var.processing : try(tonumber(local.instances[s.instance_type].nvme_gb), 0) == 0 || s.volume_size_gb <= try(tonumber(local.instances[s.instance_type].nvme_gb), 0)])
    error_message = "processing[*].volume_size_gb: ${join(", ", [for s in var.processing : "${s.instance_type} has ${local.instances[s.instance_type].nvme_gb} GB of local disks" if try(tonumber(local.instances[s.instance_type].nvme_gb) > 0 && s.volume_size_gb > tonumber(local.instances[s.instance_type].nvme_gb), false)])} and gets no volume beside them; a step asks for no more than that (API). Lower it, or change instance_type."
  }
}
