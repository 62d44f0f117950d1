resource "aws_sfn_state_machine" "this" {
  #checkov:skip=CKV_AWS_284:A run is a handful of states that wait, and its history times each of them; tracing turns X-Ray on for who pays for it
  #checkov:skip=CKV_AWS_285:Everything is logged but the data of the states, which repeats hyperparameters and environment of every training job

  name       = local.state_machine_name
  role_arn   = local._state_machine_role
  definition = jsonencode(local.definition)
  tags       = local.tags

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
    aws_iam_role_policy.state_machine,
    aws_s3_object.code,
    aws_s3_object.input,
    aws_s3_object.launcher,
  ]

  # Rules that need files, tables or several variables at once. Those of a
  # single variable are its validations.
  lifecycle {
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
      condition     = local._image_family == null || local._image_row != null
      error_message = "image: ${coalesce(local._image_family, "this image")} is not in the table. Known: ${join(", ", sort(keys(local._image_table)))}. For others give image.uri."
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
      error_message = "image: ${coalesce(local._image_family, "this image")} is not published in ${var.platform.region}. Copy it to your own repository and give image.uri."
    }

    precondition {
      condition     = var.image.algorithm_arn != null || alltrue([for uri in local.image_uris : length(coalesce(uri, "-")) <= 255])
      error_message = "image: an image URI has at most 255 characters (API). Use a shorter repository name or tag."
    }

    precondition {
      condition     = local._image_family == null || alltrue([for a in var.attempts : !startswith(try(local.instances[a.instance_type].accelerator, ""), "Trainium")])
      error_message = "image: the table knows no image for Trainium instances. Give image.uri for a job with such an attempt."
    }

    precondition {
      condition     = local._image_family == null || alltrue([for p in local._attempt_processors : try(contains(local._image_row.processors, p), true)])
      error_message = "image: ${coalesce(local._image_family, "this image")} exists for ${join(" and ", try(local._image_row.processors, []))} instances only. Change attempts[*].instance_type, or give image.uri."
    }

    precondition {
      condition     = !can(regex("(^|/)(sagemaker-)?xgboost:(1|latest)$", coalesce(var.image.uri, "-"))) && !(local._image_family == "xgboost" && contains(["1", "latest"], coalesce(var.image.version, "-")))
      error_message = "image: XGBoost tagged :1 or :latest is a moving target that AWS no longer supports in this form. Name a version such as 1.7-1."
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
      condition     = !can(regex("--x-s3(/|$)", coalesce(var.resources.output_s3_uri, "-"))) || local._output_kms_key == null
      error_message = "resources.output_s3_uri: an S3 Express One Zone bucket takes no KMS key (API). Use a general purpose bucket, or a platform without a key."
    }

    precondition {
      condition     = alltrue([for a in local._attempts : a.volume_size_gb >= 1 && floor(a.volume_size_gb) == a.volume_size_gb])
      error_message = "attempts[*].volume_size_gb, resources.volume_size_gb: a whole number of at least 1; instances without local disks need it (API)."
    }

    precondition {
      condition     = alltrue([for a in local._attempts : a.keep_alive_seconds <= local._max_keep_alive_seconds])
      error_message = "attempts[*].keep_alive_seconds: this platform keeps instances for ${local._max_keep_alive_seconds} seconds at most. Lower it, or raise resources.max_keep_alive_seconds or the platform's limit."
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
      error_message = "hyperparameters, environment, channels, tags: the request of attempt ${join(", ", [for name, size in local._request_bytes : "${name} has ${size} bytes" if size > 131072])}, and 131072 fit, because the description of a training job repeats it and 262,144 bytes pass between states (Step Functions). Put long values into a file of the code."
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
