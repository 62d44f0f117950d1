variable "resources" {
  description = <<-EOT
    What all attempts share.
    - `volume_size_gb`: disk of each instance; an attempt or its warm pool may say otherwise.
    - `input_mode`: File, FastFile or Pipe for channels that name none.
    - `network_isolation`, `encrypt_inter_container_traffic`: null takes the platform's setting; true is always possible.
    - `subnet_ids`, `security_group_ids`: null takes the platform's; an empty list runs outside any VPC.
    - `warm_pool`: name of a warm pool of the platform, used by attempts of the pool's shape.
    - `max_keep_alive_seconds`: raises or lowers the platform's limit for this job.
    - `checkpoints`: give the attempts of a run one checkpoint folder, mounted at `checkpoint_local_path`.
    - `role`: `own` is a role for this job alone, which reads what the job names and writes below the job's name; `shared` is that of all jobs of the platform. Null is `shared` with a `warm_pool`, whose instances go to jobs of one role, and else `own`, if the platform has it.
    - `volume_kms_key_arn`, `output_kms_key_arn`: null takes the platform's key, if it has one.
    - `output_s3_uri`: null is the platform's artifacts bucket; `output_compression` is GZIP or NONE.
    - `retry_attempts`: let SageMaker itself repeat a training job after its internal errors.
    - `remote_debug`: allow a shell into the running container.
    - `profiler`: leave SageMaker's profiler as AWS sets it; false turns it off.
    - `instance_quota`: most instances one attempt may ask for.
    - `poll_seconds`: time between two looks at a training job; null computes it from the time limits.
  EOT
  type = object({
    volume_size_gb                  = optional(number, 30)
    input_mode                      = optional(string, "File")
    network_isolation               = optional(bool)
    encrypt_inter_container_traffic = optional(bool)
    subnet_ids                      = optional(list(string))
    security_group_ids              = optional(list(string))
    warm_pool                       = optional(string)
    max_keep_alive_seconds          = optional(number)
    checkpoints                     = optional(bool, true)
    checkpoint_local_path           = optional(string, "/opt/ml/checkpoints")
    role                            = optional(string)
    volume_kms_key_arn              = optional(string)
    output_kms_key_arn              = optional(string)
    output_s3_uri                   = optional(string)
    output_compression              = optional(string, "GZIP")
    retry_attempts                  = optional(number)
    remote_debug                    = optional(bool, false)
    profiler                        = optional(bool, false)
    instance_quota                  = optional(number, 20)
    poll_seconds                    = optional(number)
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["File", "FastFile", "Pipe"], var.resources.input_mode)
    error_message = "resources.input_mode: File, FastFile or Pipe (API)."
  }

  validation {
    condition     = !var.platform.network.isolation || var.resources.network_isolation != false
    error_message = "resources.network_isolation: platform ${var.platform.name} runs isolated containers only. Remove the setting, or choose another platform."
  }

  validation {
    condition     = !var.platform.network.encrypt_inter_container_traffic || var.resources.encrypt_inter_container_traffic != false
    error_message = "resources.encrypt_inter_container_traffic: platform ${var.platform.name} encrypts traffic between containers. Remove the setting, or choose another platform."
  }

  validation {
    condition     = (length(coalesce(var.resources.subnet_ids, var.platform.network.subnet_ids)) == 0) == (length(coalesce(var.resources.security_group_ids, var.platform.network.security_group_ids)) == 0)
    error_message = "resources.subnet_ids, resources.security_group_ids: a VPC needs both (API). Set both, or neither."
  }

  validation {
    condition     = length(coalesce(var.resources.subnet_ids, var.platform.network.subnet_ids)) <= local._limits["resources.subnet_ids"].most
    error_message = "resources.subnet_ids: at most ${local._limits["resources.subnet_ids"].most} (API). Give fewer."
  }

  validation {
    condition     = length(coalesce(var.resources.security_group_ids, var.platform.network.security_group_ids)) <= local._limits["resources.security_group_ids"].most
    error_message = "resources.security_group_ids: at most ${local._limits["resources.security_group_ids"].most} (API). Give fewer."
  }

  validation {
    condition     = alltrue([for s in concat(coalesce(var.resources.subnet_ids, []), coalesce(var.resources.security_group_ids, [])) : can(regex(local._limits["resources.subnet_ids.*"].pattern, s))])
    error_message = "resources.subnet_ids, resources.security_group_ids: ids of at most ${local._limits["resources.subnet_ids.*"].most} letters, digits and hyphens (API), such as subnet-0a1b2c3d."
  }

  validation {
    condition     = var.resources.warm_pool == null || contains(keys(var.platform.warm_pools), coalesce(var.resources.warm_pool, "-"))
    error_message = "resources.warm_pool: platform ${var.platform.name} has ${length(var.platform.warm_pools) == 0 ? "no warm pools" : "only the pools ${join(", ", keys(var.platform.warm_pools))}"}. Name one of them, or declare the pool in the platform."
  }

  validation {
    condition     = try(var.resources.max_keep_alive_seconds >= 0 && var.resources.max_keep_alive_seconds <= local._limits["resources.max_keep_alive"].most && floor(var.resources.max_keep_alive_seconds) == var.resources.max_keep_alive_seconds, var.resources.max_keep_alive_seconds == null)
    error_message = "resources.max_keep_alive_seconds: a whole number from 0 to ${local._limits["resources.max_keep_alive"].most} (API)."
  }

  validation {
    condition     = startswith(var.resources.checkpoint_local_path, "/") && var.resources.checkpoint_local_path != "/" && length(var.resources.checkpoint_local_path) <= local._limits["resources.checkpoint_local_path"].most
    error_message = "resources.checkpoint_local_path: an absolute path below / of at most ${local._limits["resources.checkpoint_local_path"].most} characters (API)."
  }

  validation {
    condition     = !can(regex("(^|/)[.]{0,2}/|/[.]{0,2}$", trimprefix(var.resources.checkpoint_local_path, "/")))
    error_message = "resources.checkpoint_local_path: has no . or .. and no double slash, so that it stays where it says. Write it out."
  }

  validation {
    condition     = contains(["own", "shared"], coalesce(var.resources.role, "own"))
    error_message = "resources.role: own or shared."
  }

  validation {
    condition = alltrue([
      for key in [
        [var.resources.volume_kms_key_arn, local._limits["resources.volume_kms_key_arn"]],
        [var.resources.output_kms_key_arn, local._limits["resources.output_kms_key_arn"]],
      ] : key[0] == null || try(can(regex(key[1].pattern, key[0])) && length(key[0]) <= key[1].most, false)
    ])
    error_message = "resources.volume_kms_key_arn, resources.output_kms_key_arn: the ARN of a KMS key (not an alias), so that the policy can name it, of at most ${local._limits["resources.volume_kms_key_arn"].most} characters (API)."
  }

  validation {
    condition     = var.resources.output_s3_uri == null || (can(regex(local._limits["resources.output_s3_uri"].pattern, var.resources.output_s3_uri)) && try(length(var.resources.output_s3_uri) <= local._limits["resources.output_s3_uri"].most, false))
    error_message = "resources.output_s3_uri: write s3://bucket/prefix, in the job's region and at most ${local._limits["resources.output_s3_uri"].most} characters (API)."
  }

  validation {
    condition     = contains(["GZIP", "NONE"], var.resources.output_compression)
    error_message = "resources.output_compression: GZIP or NONE (API)."
  }

  validation {
    condition     = try(var.resources.retry_attempts >= 1 && var.resources.retry_attempts <= local._limits["resources.retry_attempts"].most && floor(var.resources.retry_attempts) == var.resources.retry_attempts, var.resources.retry_attempts == null)
    error_message = "resources.retry_attempts: a whole number from 1 to ${local._limits["resources.retry_attempts"].most} (API), or null for none."
  }

  validation {
    condition     = var.resources.instance_quota >= 1 && floor(var.resources.instance_quota) == var.resources.instance_quota
    error_message = "resources.instance_quota: a whole number of at least 1."
  }

  validation {
    condition     = try(var.resources.poll_seconds >= 1 && var.resources.poll_seconds <= local._limits["resources.poll_interval"].most && floor(var.resources.poll_seconds) == var.resources.poll_seconds, var.resources.poll_seconds == null)
    error_message = "resources.poll_seconds: a whole number from 1 to ${local._limits["resources.poll_interval"].most}, or null to compute it."
  }
}
