resource "aws_sfn_state_machine" "this" {
  #checkov:skip=CKV_AWS_284:A run is a handful of states that wait, and its history times each of them; tracing turns X-Ray on for who pays for it
  #checkov:skip=CKV_AWS_285:Everything is logged but the data of the states, which repeats hyperparameters and environment of every training job

  name       = local.state_machine_name
  role_arn   = local._state_machine_role
  definition = jsonencode(local.definition)
  tags       = merge(local.tags, var.max_price == null ? {} : { "sagefit:max-price-usd" = tostring(var.max_price) })

  logging_configuration {
    log_destination        = "${local._log_group_arn}:*"
    level                  = "ALL"
    include_execution_data = false
  }

  tracing_configuration {
    enabled = var.tracing
  }

  depends_on = [
    aws_cloudwatch_log_group.runs,
    aws_iam_role_policy.execution,
    aws_iam_role_policy.state_machine,
    aws_iam_role_policy_attachment.execution,
    aws_s3_object.code,
    aws_s3_object.input,
    aws_s3_object.launcher,
  ]

  # Rules that need files, tables or several variables at once. Those of a
  # single variable are its validations.
  lifecycle {
    postcondition {
      condition     = self.arn == local.state_machine_arn
      error_message = "platform: the ARN of the state machine is ${self.arn}, and policies name ${local.state_machine_arn}. Correct the partition, the Region or the account there, or take the provider of that place."
    }

    precondition {
      condition     = split(":", data.aws_caller_identity.this.arn)[1] == var.platform.partition
      error_message = "platform.partition: is ${var.platform.partition}, and the job's provider works in ${split(":", data.aws_caller_identity.this.arn)[1]}. Pass the provider of that partition (providers = { aws = aws.ALIAS }), or the document of a platform there."
    }

    precondition {
      condition     = data.aws_region.this.id == var.platform.region
      error_message = "platform.region: is ${var.platform.region}, and the job's provider works in ${data.aws_region.this.id}. Pass the provider of that Region (providers = { aws = aws.ALIAS }), or the document of a platform there."
    }

    precondition {
      condition     = data.aws_caller_identity.this.account_id == var.platform.account_id
      error_message = "platform.account_id: is ${var.platform.account_id}, and the job's provider works in account ${data.aws_caller_identity.this.account_id}. Pass the provider of that account (providers = { aws = aws.ALIAS }), or the document of a platform there."
    }

    precondition {
      condition     = var.code == null || length(local._code_files) > 0
      error_message = "code.source_dir: no file is left to ship from this directory. Give the path of an existing directory, relative to the directory Terraform runs in, or loosen code.exclude."
    }

    precondition {
      condition     = var.code == null || length(local._code_files) == 0 || contains(local._code_files, try(var.code.entry_point, ""))
      error_message = "code.entry_point: the script must exist inside code.source_dir and must not be excluded. Give its path relative to code.source_dir, or loosen code.exclude."
    }

    precondition {
      condition     = var.code == null || length(local._code_files) <= 1000
      error_message = "code.source_dir: at most 1000 files are shipped as code. Leave data and build output out with code.exclude, and bring data as a channel."
    }

    precondition {
      condition     = length(local._sensitive) == 0
      error_message = "code, channels[*].local_path, processing[*]: ${join(", ", slice(local._sensitive, 0, min(5, length(local._sensitive))))}${length(local._sensitive) > 5 ? " and ${length(local._sensitive) - 5} more" : ""}: what looks like a credential or a state is not shipped, because it stays in the versions of a bucket. Leave it out with exclude beside the path, or, if nothing in it is secret, name the file in allow_sensitive."
    }

    precondition {
      condition     = length(local._allowed_nothing) == 0
      error_message = "code.allow_sensitive, channels[*].allow_sensitive, processing[*]: ${join(", ", local._allowed_nothing)} names no file that is shipped. Write a path as it is below the directory, or remove it."
    }

    precondition {
      condition     = local._image_family == null || local._image_row != null
      error_message = "image: ${coalesce(local._image_family, "this image")} is not in the table. Known: ${join(", ", local._image_names)}. For others give image.uri."
    }

    precondition {
      condition     = local._image_row == null || local._image_version != null
      error_message = "image.version: ${coalesce(var.image.version, "no version")} of ${coalesce(local._image_family, "this image")} is not in the table. Known: ${join(", ", local._image_versions)}. For others give image.uri."
    }

    precondition {
      condition     = local._image_family == null || local._image_version == null || local._image_tag != null
      error_message = "image.python_version: ${coalesce(var.image.python_version, "none")} is not built for this version. Known: ${join(", ", local._image_pythons)}."
    }

    precondition {
      condition     = local._image_row == null || local._image_account != null
      error_message = "image: ${coalesce(local._image_family, "this image")} ${local._image_asked} is not published in ${var.platform.region}, but in ${join(", ", local._image_regions)}. Choose another image.version or region, or copy the image to your own repository and give image.uri."
    }

    precondition {
      condition     = length(local._image_elsewhere) == 0
      error_message = "image: it is in ${join(", ", local._image_elsewhere)}, and SageMaker in ${var.platform.region} takes images of its own region only (API). Copy it to a repository there, by a replication rule of ECR for example, and give that one."
    }

    precondition {
      condition     = var.image.algorithm_arn != null || alltrue([for uri in local.image_uris : length(coalesce(uri, "-")) <= local._limits["image.uri"].most])
      error_message = "image: an image URI has at most ${local._limits["image.uri"].most} characters (API). Use a shorter repository name or tag."
    }

    precondition {
      condition     = var.tuning == null || alltrue([for a in var.attempts : length(a.instance_groups) == 0])
      error_message = "attempts[*].instance_groups: Sagefit tunes on one instance type. Remove the groups, or tuning."
    }

    precondition {
      condition     = local._image_family == null || alltrue([for t in flatten(local._machine_types) : !startswith(try(local.instances[t].accelerator, ""), "Trainium")])
      error_message = "image: the table knows no image for Trainium instances. Give image.uri for a job with such an attempt."
    }

    precondition {
      condition     = local._image_family == null || alltrue([for p in local._attempt_processors : try(contains(local._image_row.processors, p), true)])
      error_message = "image: ${coalesce(local._image_family, "this image")} exists for ${join(" and ", try(local._image_row.processors, []))} instances only. Change attempts[*].instance_type, or give image.uri."
    }

    precondition {
      condition     = var.code == null || local._runs_launcher
      error_message = "image.version, image.python_version: this image has Python ${join(".", coalesce(local._image_python_version, []))}, and the launcher that starts code needs Python 3.8. Choose a newer image.version."
    }

    precondition {
      condition     = !can(regex("^[^/]+/(sagemaker-)?xgboost:(1|latest)$", coalesce(var.image.uri, "-"))) && !(local._image_family == "xgboost" && contains(["1", "latest"], coalesce(var.image.version, "-")))
      error_message = "image: XGBoost tagged :1 or :latest is a moving target that AWS no longer supports in this form. Name a version such as 1.7-1."
    }

    precondition {
      condition     = !local._isolated || !contains(local._code_files, "requirements.txt") || try(var.code.offline_requirements, false)
      error_message = "resources.network_isolation: pip cannot install code's requirements.txt, because an isolated container has no network (API). Use an image that has the packages, or ship wheels beside it, and set code.offline_requirements; or turn isolation off."
    }

    precondition {
      condition = alltrue(flatten([
        for n, c in var.channels : [
          for machines in local._machines : length(local._channel_files[n]) >= sum(concat([0], [
            for m in machines : m.instance_count if length(c.instance_groups) == 0 || contains(c.instance_groups, m.name)
          ])) if c.local_path != null && c.distribution == "ShardedByS3Key"
        ]
      ]))
      error_message = "channels[*].distribution: ShardedByS3Key gives each file to one instance (API), and one of these channels has fewer files than an attempt has instances, which would be paid for and idle. Split the data, lower attempts[*].instance_count, or use FullyReplicated."
    }

    precondition {
      condition     = alltrue([for n, c in var.channels : c.local_path == null || length(try(local._channel_files[n], [])) > 0])
      error_message = "channels[*].local_path: must be a file or a directory with files that exists. Paths are relative to the directory Terraform runs in."
    }

    precondition {
      condition     = alltrue([for n, c in var.channels : length(try(local._channel_files[n], [])) <= 1000])
      error_message = "channels[*].local_path: at most 1000 files are shipped by Terraform. Copy larger data sets to S3 and give s3_uri."
    }

    precondition {
      condition     = alltrue([for i, s in var.processing : s.image.framework == null || local._step_tags[i] != null])
      error_message = "processing[*].image: ${join(", ", [for i, s in var.processing : join(" ", compact([s.image.framework, s.image.version, s.image.python_version])) if s.image.framework != null && local._step_tags[i] == null])} is not in the table of images. Correct version and python_version, or give image.uri. Known: ${join(", ", sort(flatten([for i, s in var.processing : try(keys(local._step_families[i].versions), keys(merge(local._images.frameworks, local._images.processing)))])))}."
    }

    precondition {
      condition     = alltrue([for i, s in var.processing : local._step_tags[i] == null || local._step_accounts[i] != null])
      error_message = "processing[*].image: ${join(", ", [for i, s in var.processing : s.image.framework if local._step_tags[i] != null && local._step_accounts[i] == null])} is not published in ${var.platform.region}. Copy the image to your own repository and give image.repository."
    }

    precondition {
      condition     = length(local._step_images_elsewhere) == 0
      error_message = "processing[*].image: that of ${join(", ", [for i, region in local._step_images_elsewhere : "${var.processing[i].name} is in ${region}"])}, and SageMaker in ${var.platform.region} takes images of its own region only (API). Copy it to a repository there, by a replication rule of ECR for example, and give that one."
    }

    precondition {
      condition     = alltrue([for i, s in var.processing : local._step_families[i] == null || contains(try(local._step_families[i].processors, []), local._step_processors[i])])
      error_message = "processing[*].instance_type: ${join(", ", [for i, s in var.processing : s.image.framework if local._step_families[i] != null && !contains(try(local._step_families[i].processors, []), local._step_processors[i])])} is not built for instances of this kind. Use another type, or give image.uri."
    }

    precondition {
      condition     = alltrue([for s in var.processing : s.code == null || contains(try(keys(local._channel_files["${s.name}:code"]), []), try(s.code.entry_point, ""))])
      error_message = "processing[*].code.entry_point: the script must exist inside code.source_dir and must not be excluded. Give its path relative to code.source_dir, or loosen code.exclude."
    }

    precondition {
      condition     = alltrue([for name, data in local._local_data : length(try(local._channel_files[name], [])) > 0 if strcontains(name, ":")])
      error_message = "processing[*].inputs[*].local_path, processing[*].code.source_dir: must be a file or a directory with files that exists. Paths are relative to the directory Terraform runs in."
    }

    precondition {
      condition     = alltrue([for name, data in local._local_data : length(try(local._channel_files[name], [])) <= 1000 if strcontains(name, ":")])
      error_message = "processing[*].inputs[*].local_path, processing[*].code.source_dir: at most 1000 files are shipped by Terraform. Copy larger data sets to S3 and give s3_uri, and leave files out with code.exclude."
    }

    precondition {
      condition     = var.resources.role != "own" || var.platform.job_policy_arns != null
      error_message = "resources.role: platform ${var.platform.name} has one role for all its jobs. Remove the setting, or set the platform's execution_role.per_job and apply it with this version."
    }

    precondition {
      condition     = length(local._not_shared) == 0
      error_message = "${join(", ", local._not_shared)}: platform ${var.platform.name} does not share this place with its jobs, so the job's role may not use it. Correct it, list the bucket in the platform's execution_role.buckets (with access write for outputs), or set resources.role = \"shared\" if the platform's role may."
    }

    precondition {
      condition     = local._data_policy_bytes <= 10240
      error_message = "channels, processing[*].inputs: the policy of the job's role has about ${local._data_policy_bytes} bytes and may have 10240 (IAM), because it names each prefix. Give prefixes one parent, or set resources.role = \"shared\"."
    }

    precondition {
      condition     = !can(regex("--x-s3(/|$)", coalesce(var.resources.output_s3_uri, "-"))) || local._output_kms_key == null
      error_message = "resources.output_s3_uri: an S3 Express One Zone bucket takes no KMS key (API). Use a general purpose bucket, or a platform without a key."
    }

    precondition {
      condition     = alltrue([for a in local._attempts : a.volume_size_gb >= 1 && a.volume_size_gb <= local._limits["resources.volume_size_gb"].most && floor(a.volume_size_gb) == a.volume_size_gb])
      error_message = "attempts[*].volume_size_gb, resources.volume_size_gb: a whole number from 1 to ${local._limits["resources.volume_size_gb"].most} (EBS); instances without local disks need it (API)."
    }

    precondition {
      condition     = alltrue([for a in local._attempts : a.keep_alive_seconds <= local._max_keep_alive_seconds])
      error_message = "attempts[*].keep_alive_seconds: this platform keeps instances for ${local._max_keep_alive_seconds} seconds at most. Lower it, or raise resources.max_keep_alive_seconds or the platform's limit."
    }

    precondition {
      condition     = var.tuning == null || local._trials <= (try(var.tuning.strategy, "-") == "Random" ? local._limits["tuning.max_jobs"].most : local._limits["tuning.trials"].most)
      error_message = "tuning.max_jobs, tuning.ranges: ${local._trials} training jobs, and a tuning job takes ${local._limits["tuning.trials"].most}, or on request ${local._limits["tuning.max_jobs"].most} with strategy Random (DG). Search less."
    }

    precondition {
      condition     = try(var.tuning.max_parallel_jobs <= local._trials, true)
      error_message = "tuning.max_parallel_jobs: more at a time than the ${local._trials} training jobs in all. Lower it, or raise tuning.max_jobs."
    }

    precondition {
      condition     = local.worst_case_seconds <= local._looks * local.poll_seconds
      error_message = "resources.poll_seconds: the history of a run (25,000 events) holds ${local._looks} looks, and one every ${local.poll_seconds} s does not cover the ${local.worst_case_seconds} s that the attempts may take together. Set it to ${ceil(local.worst_case_seconds / local._looks)} or more, leave it out to have it computed, or lower attempts[*].max_runtime_seconds."
    }

    precondition {
      condition     = local._deadline_seconds <= 31536000
      error_message = "attempts[*].max_runtime_seconds, max_wait_seconds, max_pending_seconds: a run may take a year (Step Functions), and these attempts may take ${ceil(local.worst_case_seconds / 86400)} days together, to which 30 % are added. Lower them, or remove attempts."
    }

    # Half of what may pass between states is left for what AWS adds to a description, and for the record of the run.
    precondition {
      condition     = alltrue([for size in local._request_bytes : size <= 131072])
      error_message = "hyperparameters, tuning.ranges, environment, channels, tags: the request of attempt ${join(", ", [for name, size in local._request_bytes : "${name} has ${size} bytes" if size > 131072])}, and 131072 fit, because the description of a training job repeats it and 262,144 bytes pass between states (Step Functions). Put long values into a file of the code."
    }

    precondition {
      condition     = local._definition_bytes <= 1048576
      error_message = "attempts: the definition of the state machine has ${local._definition_bytes} bytes and may have 1,048,576 (Step Functions), because every attempt repeats the whole request. Remove attempts, or put long hyperparameters, environment variables and channels into a file of the code."
    }

    precondition {
      condition     = local._pool == null || length(var.attempts) == 0 || try(local._attempts[0].pooled, false)
      error_message = "resources.warm_pool: the first attempt must have the pool's shape (${try(local._pool.instance_count, 1)} x ${try(local._pool.instance_type, "-")}, ${try(local._pool.volume_size_gb, 0)} GB, not spot), or it never finds the pool. Change attempts[0] or the pool."
    }
  }
}
