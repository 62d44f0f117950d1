variable "image" {
  description = <<-EOT
    What runs in the container; exactly one of:
    - `uri`: any image in a registry that the execution role can pull from.
    - `repository` with `tag` or `digest`: an ECR repository by its URL; `""` is the platform's own.
    - `framework` with `version` and, where several exist, `python_version`: an AWS image of pytorch, tensorflow, huggingface, huggingface-tensorflow, mxnet, sklearn or xgboost.
    - `algorithm` with an optional `version`: a built-in algorithm.
    - `algorithm_arn`: an algorithm resource of the account or the marketplace.
  EOT
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

  validation {
    condition     = length([for v in [var.image.uri, var.image.repository, var.image.framework, var.image.algorithm, var.image.algorithm_arn] : v if v != null]) == 1
    error_message = "image: give exactly one of uri, repository, framework, algorithm, algorithm_arn (API: TrainingImage or AlgorithmName, not both)."
  }

  validation {
    condition     = var.image.uri != ""
    error_message = "image.uri: is empty. Write registry/repository:tag, or leave it out and name a framework."
  }

  validation {
    condition     = var.image.repository == null || (var.image.tag == null) != (var.image.digest == null)
    error_message = "image.repository: give exactly one of image.tag and image.digest with it."
  }

  validation {
    condition     = var.image.repository != "" || var.platform.repository_url != null
    error_message = "image.repository: \"\" is the platform's own repository, but this platform has none. Give a repository URL or turn the platform's repository on."
  }

  validation {
    condition     = var.image.repository != null || (var.image.tag == null && var.image.digest == null)
    error_message = "image.tag, image.digest: they belong to image.repository. Set image.repository (\"\" for the platform's own) or write them into image.uri."
  }

  validation {
    condition     = var.image.digest == null || can(regex(local._limits["image.digest"].pattern, var.image.digest))
    error_message = "image.digest: write sha256: and 64 hexadecimal digits, as the registry shows it."
  }

  validation {
    condition     = !strcontains(coalesce(var.image.uri, "-"), "@") || can(regex("^[^@]+@sha256:[0-9a-f]{64}$", var.image.uri))
    error_message = "image.uri: a digest is @sha256: and 64 hexadecimal digits at the end, as the registry shows it."
  }

  validation {
    condition     = !can(regex("(^|/)[^/@]*:[^/@]*@", coalesce(var.image.uri, "-")))
    error_message = "image.uri: a training image has a tag or a digest, not both (API: registry/repository[:tag] or [@digest]). Remove the tag."
  }

  validation {
    condition     = var.image.framework != null || var.image.algorithm != null || (var.image.version == null && var.image.python_version == null)
    error_message = "image.version, image.python_version: they choose among AWS's images. Set image.framework or image.algorithm, or write the version into the tag."
  }

  validation {
    condition     = var.image.tag == null || can(regex(local._limits["image.tag"].pattern, var.image.tag))
    error_message = "image.tag: 1 to ${local._limits["image.tag"].most} letters, digits, underscores, dots and hyphens, and no dot or hyphen first (registries). Rename it."
  }

  validation {
    condition     = var.image.algorithm_arn == null || (try(length(var.image.algorithm_arn) <= local._limits["image.algorithm_arn"].most, false) && can(regex(local._limits["image.algorithm_arn"].pattern, var.image.algorithm_arn)))
    error_message = "image.algorithm_arn: must be an algorithm's ARN of at most ${local._limits["image.algorithm_arn"].most} characters (API)."
  }
}

variable "channels" {
  description = <<-EOT
    Input channels by name; each holds exactly one of `s3_uri`, `local_path`, `file_system`, `from`.
    - `s3_uri`: prefix or manifest in the job's region.
    - `local_path`: file or directory, shipped to the platform's data bucket by Terraform; `exclude`: patterns of files of the directory to leave out, in the syntax of `fileset` (`raw/**`); `allow_sensitive`: files, by their path in it, that look like credentials or states and are shipped all the same.
    - `file_system`: `id`, `type` (EFS or FSxLustre), `directory_path`, `access_mode` (ro or rw).
    - `from`: `STEP/OUTPUT`, the output of a processing step of the same run.
    - `mode`: File, FastFile or Pipe; null is the job's `resources.input_mode`.
    - `s3_data_type`: S3Prefix, ManifestFile or AugmentedManifestFile (with `attribute_names`).
    - `distribution`: FullyReplicated or ShardedByS3Key.
    - `compression`: Gzip or None; `record_wrapper`: RecordIO or None; `content_type`: MIME type; `shuffle_seed`: shuffles the order of the objects.
    - `instance_groups`: groups of the attempts that get the data in S3; empty gives it to all.
  EOT
  type = map(object({
    s3_uri          = optional(string)
    local_path      = optional(string)
    exclude         = optional(list(string), [])
    allow_sensitive = optional(list(string), [])
    file_system = optional(object({
      id             = string
      type           = string
      directory_path = string
      access_mode    = optional(string, "ro")
    }))
    from            = optional(string)
    mode            = optional(string)
    s3_data_type    = optional(string, "S3Prefix")
    attribute_names = optional(list(string), [])
    distribution    = optional(string, "FullyReplicated")
    compression     = optional(string)
    record_wrapper  = optional(string)
    content_type    = optional(string)
    shuffle_seed    = optional(number)
    instance_groups = optional(list(string), [])
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(var.channels) + (var.code == null ? 0 : 2) <= local._limits["inputs"].most
    error_message = "channels: at most ${local._limits["inputs"].most} (API), of which a script job uses two for its code and the launcher. Give several prefixes one parent, or use a manifest."
  }

  validation {
    condition     = alltrue([for n in keys(var.channels) : can(regex(local._limits["inputs.*"].pattern, n))])
    error_message = "channels: a name has 1 to 64 letters, digits, dots, hyphens and underscores (API). Rename it."
  }

  validation {
    condition     = !contains(keys(var.channels), "code") && !contains(keys(var.channels), "sagefit")
    error_message = "channels: the names code and sagefit belong to the training code and the launcher. Rename the channel."
  }

  validation {
    condition     = alltrue([for c in var.channels : length([for v in [c.s3_uri, c.local_path, try(c.file_system.id, null), c.from] : v if v != null]) == 1])
    error_message = "channels: each holds exactly one of s3_uri, local_path, file_system, from."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.from == null || contains(flatten([for s in var.processing : [for o in s.outputs : "${s.name}/${o}"]]), coalesce(c.from, "-"))])
    error_message = "channels[*].from: ${join(", ", [for c in var.channels : c.from if c.from != null])} must be STEP/OUTPUT of processing: a step's name and one of its outputs. Correct it, or add the output to the step."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.s3_uri == null || (can(regex(local._limits["inputs.*.uri"].pattern, c.s3_uri)) && try(length(c.s3_uri) <= local._limits["inputs.*.uri"].most, false))])
    error_message = "channels[*].s3_uri: write s3://bucket/prefix, at most ${local._limits["inputs.*.uri"].most} characters (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : contains(["File", "FastFile", "Pipe"], coalesce(c.mode, "File"))])
    error_message = "channels[*].mode: File, FastFile or Pipe (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : contains(["S3Prefix", "ManifestFile", "AugmentedManifestFile"], c.s3_data_type)])
    error_message = "channels[*].s3_data_type: S3Prefix, ManifestFile or AugmentedManifestFile (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : contains(["FullyReplicated", "ShardedByS3Key"], c.distribution)])
    error_message = "channels[*].distribution: FullyReplicated or ShardedByS3Key (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : contains(["None", "Gzip"], coalesce(c.compression, "None"))])
    error_message = "channels[*].compression: None or Gzip (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : contains(["None", "RecordIO"], coalesce(c.record_wrapper, "None"))])
    error_message = "channels[*].record_wrapper: None or RecordIO (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.s3_uri != null || c.s3_data_type == "S3Prefix"])
    error_message = "channels[*].s3_data_type: manifests are read through s3_uri. Leave S3Prefix for local_path, file_system and from."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.s3_data_type != "AugmentedManifestFile" || coalesce(c.mode, var.resources.input_mode) == "Pipe"])
    error_message = "channels[*].s3_data_type: AugmentedManifestFile works in Pipe mode only (API). Set channels[*].mode = \"Pipe\"."
  }

  validation {
    condition     = alltrue([for c in var.channels : (c.s3_data_type == "AugmentedManifestFile") == (length(c.attribute_names) > 0)])
    error_message = "channels[*].attribute_names: required with AugmentedManifestFile and meaningless without. Set both or neither."
  }

  validation {
    condition     = alltrue([for c in var.channels : length(c.attribute_names) <= local._limits["inputs.*.attribute_names"].most && alltrue([for a in c.attribute_names : length(a) >= 1 && length(a) <= local._limits["inputs.*.attribute_names.*"].most])])
    error_message = "channels[*].attribute_names: at most ${local._limits["inputs.*.attribute_names"].most} names of 1 to ${local._limits["inputs.*.attribute_names.*"].most} characters (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : coalesce(c.mode, var.resources.input_mode) != "FastFile" || c.s3_data_type == "S3Prefix"])
    error_message = "channels[*].mode: FastFile streams S3Prefix data only. Use File or Pipe for manifests."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.s3_uri == null || coalesce(c.mode, var.resources.input_mode) != "FastFile" || endswith(coalesce(c.s3_uri, "-"), "/")])
    error_message = "channels[*].s3_uri: FastFile mounts whole folders, so the prefix must end in \"/\". Add it."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.file_system == null || coalesce(c.mode, var.resources.input_mode) == "File"])
    error_message = "channels[*].file_system: EFS and FSx channels work in File mode only. Set channels[*].mode = \"File\"."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.file_system == null || length(local._subnet_ids) > 0])
    error_message = "channels[*].file_system: EFS and FSx are reached inside a VPC. Set resources.subnet_ids and resources.security_group_ids, or the platform's network."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.file_system == null || can(regex(local._limits["inputs.*.file_system.id"].pattern, c.file_system.id))])
    error_message = "channels[*].file_system.id: write fs- and 8 or more hexadecimal digits, 11 to 21 characters in all (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.file_system == null || contains(["EFS", "FSxLustre"], try(c.file_system.type, ""))])
    error_message = "channels[*].file_system.type: EFS or FSxLustre (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.file_system == null || contains(["ro", "rw"], try(c.file_system.access_mode, ""))])
    error_message = "channels[*].file_system.access_mode: ro or rw (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.file_system == null || (try(startswith(c.file_system.directory_path, "/"), false) && try(length(c.file_system.directory_path) <= local._limits["inputs.*.file_system.directory_path"].most, false))])
    error_message = "channels[*].file_system.directory_path: an absolute path of at most ${local._limits["inputs.*.file_system.directory_path"].most} characters (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : coalesce(c.compression, "None") == "None" || coalesce(c.mode, var.resources.input_mode) == "Pipe"])
    error_message = "channels[*].compression: Gzip is unpacked in Pipe mode only (API). Set channels[*].mode = \"Pipe\", or unpack in the script."
  }

  validation {
    condition     = alltrue([for c in var.channels : coalesce(c.record_wrapper, "None") == "None" || coalesce(c.mode, var.resources.input_mode) == "Pipe"])
    error_message = "channels[*].record_wrapper: RecordIO wraps records in Pipe mode only (API). Set channels[*].mode = \"Pipe\"."
  }

  validation {
    condition     = alltrue(flatten([for c in var.channels : [for g in c.instance_groups : [for a in var.attempts : contains(a.instance_groups[*].name, g)]]]))
    error_message = "channels[*].instance_groups: every name is one of attempts[*].instance_groups[*].name, in all attempts (API). Correct it, or remove it."
  }

  validation {
    condition     = alltrue([for c in var.channels : length(distinct(c.instance_groups)) == length(c.instance_groups)])
    error_message = "channels[*].instance_groups: names of groups, each once (API). Correct the list, or remove it."
  }

  # A request in which some channels name groups and others do not is refused: ValidationException, "Some channels have
  # assigned instance groups". FileSystemDataSource has no field for them.
  validation {
    condition     = alltrue([for c in var.channels : length(c.instance_groups) == 0]) || alltrue([for c in var.channels : c.file_system == null])
    error_message = "channels[*].instance_groups: SageMaker takes names of groups for all channels or for none, and a file system has none (API). Bring its data from S3, or remove the names."
  }

  validation {
    condition     = alltrue([for c in var.channels : length(coalesce(c.content_type, "-")) <= local._limits["inputs.*.content_type"].most])
    error_message = "channels[*].content_type: at most ${local._limits["inputs.*.content_type"].most} characters (API)."
  }

  validation {
    condition     = alltrue([for c in var.channels : c.shuffle_seed == null || (try(floor(c.shuffle_seed) == c.shuffle_seed, false) && try(c.shuffle_seed >= 0, false))])
    error_message = "channels[*].shuffle_seed: a whole number of at least 0."
  }
}
