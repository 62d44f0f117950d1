# Code, launcher and local data reach S3 through Terraform. A digest of all
# files is part of the key, so a run reads exactly what its plan showed.
locals {
  # The last one is what Sagefit renders of a job file beside the code.
  _always_excluded = [
    "**/.git/**", "**/.venv/**", "**/.terraform/**", "**/.ipynb_checkpoints/**",
    "**/__pycache__/**", "**/.mypy_cache/**", "**/.pytest_cache/**", "**/.ruff_cache/**",
    "**/*.pyc", "**/*.pyo", "**/*.tfstate", "**/.DS_Store", "**/${var.name}.tfvars",
  ]

  _source_dir = try(var.code.source_dir, null)
  _code_files = local._source_dir == null ? [] : tolist(setsubtract(
    fileset(local._source_dir, "**"),
    toset(flatten([
      for pattern in concat(local._always_excluded, try(var.code.exclude, [])) :
      tolist(fileset(local._source_dir, pattern))
    ])),
  ))
  _code_hashes = { for f in local._code_files : f => filesha256("${local._source_dir}/${f}") }
  code_digest  = local._source_dir == null ? null : substr(sha256(jsonencode(local._code_hashes)), 0, 16)
  _code_prefix = local._source_dir == null ? null : "jobs/${var.name}/code/${local.code_digest}"

  # The launcher is part of Sagefit: one archive, which has the failure table
  # in it. The toolkits of images start a tuning job's by a file of its own.
  _launcher_names  = var.code == null ? [] : concat(["launcher.pyz"], var.tuning == null ? [] : ["sagefit_trial.py"])
  _launcher_files  = { for f in local._launcher_names : f => "${path.module}/launcher/${f}" }
  _launcher_hashes = { for f, path in local._launcher_files : f => filesha256(path) }
  _launcher_prefix = "jobs/${var.name}/launcher/${substr(sha256(jsonencode(local._launcher_hashes)), 0, 16)}"

  # Folders and files of this machine: channels, and what the steps read, the
  # code of a step being one of its inputs.
  _local_data = merge(
    {
      for name, c in var.channels : name => { path = c.local_path, exclude = c.exclude, allow = c.allow_sensitive, code = false }
      if c.local_path != null
    },
    merge([
      for s in var.processing : merge(
        {
          for name, c in s.inputs : "${s.name}:${name}" => { path = c.local_path, exclude = c.exclude, allow = c.allow_sensitive, code = false }
          if c.local_path != null
        },
        {
          for code in [s.code] : "${s.name}:code" => { path = code.source_dir, exclude = concat(local._always_excluded, code.exclude), allow = code.allow_sensitive, code = true }
          if code != null
        },
      )
    ]...),
  )

  # A local path is a file or a directory; fileexists fails on a directory.
  _channel_is_file = {
    for name, data in local._local_data : name => try(fileexists(data.path), false)
  }
  _channel_files = {
    for name, is_file in local._channel_is_file : name => (
      is_file
      ? { (basename(local._local_data[name].path)) = local._local_data[name].path }
      : {
        for f in try(setsubtract(
          fileset(local._local_data[name].path, "**"),
          flatten([for pattern in local._local_data[name].exclude : tolist(fileset(local._local_data[name].path, pattern))]),
        ), []) : f => "${local._local_data[name].path}/${f}"
      }
    )
  }
  _channel_hashes = {
    for name, files in local._channel_files : name => { for f, path in files : f => filesha256(path) }
  }
  _channel_prefixes = {
    for name, hashes in local._channel_hashes :
    name => "jobs/${var.name}/inputs/${replace(name, ":", "/")}/${substr(sha256(jsonencode(hashes)), 0, 16)}"
  }
  _input_objects = merge([
    for name, files in local._channel_files : {
      for f, path in files : "${name}/${f}" => {
        key     = "${local._channel_prefixes[name]}/${f}"
        source  = path
        hash    = local._channel_hashes[name][f]
        allowed = contains(local._local_data[name].allow, f)
      }
    }
  ]...)

  # What looks like a credential or a state: files by their path, and the text
  # of code. Patterns of text begin with what stands before the value.
  _secrets      = jsondecode(file("${path.module}/secrets.json"))
  _secret_files = "(?i)(${join("|", values(local._secrets.files))})"
  _secret_texts = "(^|[^A-Za-z0-9])(${join("|", values(local._secrets.contents))})"
  _texts        = "(?i)\\.(py|ipynb|sh|ya?ml|json|toml|ini|cfg|conf|txt|md|properties|xml)$"

  _uploads = merge(
    {
      for code in [var.code] : "code" => {
        files = { for f in local._code_files : f => "${local._source_dir}/${f}" }, allow = code.allow_sensitive, code = true
      } if code != null
    },
    {
      for name, data in local._local_data : strcontains(name, ":") ? "processing ${name}" : "channels.${name}" => {
        files = local._channel_files[name], allow = data.allow, code = data.code
      }
    },
  )
  _sensitive = flatten([
    for where, upload in local._uploads : [
      for f, path in upload.files : "${where}: ${f}" if !contains(upload.allow, f) && anytrue([
        can(regex(local._secret_files, path)),
        upload.code && can(regex(local._texts, f)) && can(regex(local._secret_texts, try(file(path), ""))),
      ])
    ]
  ])
  _allowed_nothing = flatten([
    for where, upload in local._uploads : [for f in upload.allow : "${where}: ${f}" if !contains(keys(upload.files), f)]
  ])
  _allowed = { sagefit-sensitive = "allowed" }
}

resource "aws_s3_object" "code" {
  for_each = local._code_hashes

  bucket      = var.platform.buckets.data
  key         = "${local._code_prefix}/${each.key}"
  source      = "${local._source_dir}/${each.key}"
  source_hash = each.value
  metadata    = contains(var.code.allow_sensitive, each.key) ? local._allowed : null

  # An object takes ten tags (S3), and a company's default tags may be more; a new default tag writes no file anew.
  override_provider {
    default_tags { tags = {} }
  }

  # The definition moves to the new files before the old ones go.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "launcher" {
  for_each = local._launcher_hashes

  bucket      = var.platform.buckets.data
  key         = "${local._launcher_prefix}/${each.key}"
  source      = local._launcher_files[each.key]
  source_hash = each.value

  override_provider {
    default_tags { tags = {} }
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "input" {
  for_each = local._input_objects

  bucket      = var.platform.buckets.data
  key         = each.value.key
  source      = each.value.source
  source_hash = each.value.hash
  metadata    = each.value.allowed ? local._allowed : null

  override_provider {
    default_tags { tags = {} }
  }

  lifecycle {
    create_before_destroy = true
  }
}
