# Code, launcher and local data reach S3 through Terraform. A digest of all
# files is part of the key, so a run reads exactly what its plan showed.
locals {
  _always_excluded = [
    "**/.git/**", "**/.venv/**", "**/.terraform/**", "**/.ipynb_checkpoints/**",
    "**/__pycache__/**", "**/.mypy_cache/**", "**/.pytest_cache/**", "**/.ruff_cache/**",
    "**/*.pyc", "**/*.pyo", "**/*.tfstate", "**/.DS_Store",
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

  # The launcher is part of Sagefit and travels with the failure table.
  _launcher_dir = "${path.module}/../../python/sagefit/launcher"
  _launcher_files = var.code == null ? {} : merge(
    { for f in fileset(local._launcher_dir, "*.py") : f => "${local._launcher_dir}/${f}" },
    { "failures.json" = "${path.module}/failures.json" },
  )
  _launcher_hashes = { for f, path in local._launcher_files : f => filesha256(path) }
  _launcher_prefix = "jobs/${var.name}/launcher/${substr(sha256(jsonencode(local._launcher_hashes)), 0, 16)}"

  # A local path is a file or a directory; fileexists fails on a directory.
  _channel_is_file = {
    for name, c in var.channels : name => try(fileexists(c.local_path), false) if c.local_path != null
  }
  _channel_files = {
    for name, is_file in local._channel_is_file : name => (
      is_file
      ? { (basename(var.channels[name].local_path)) = var.channels[name].local_path }
      : { for f in try(fileset(var.channels[name].local_path, "**"), []) : f => "${var.channels[name].local_path}/${f}" }
    )
  }
  _channel_hashes = {
    for name, files in local._channel_files : name => { for f, path in files : f => filesha256(path) }
  }
  _channel_prefixes = {
    for name, hashes in local._channel_hashes :
    name => "jobs/${var.name}/inputs/${name}/${substr(sha256(jsonencode(hashes)), 0, 16)}"
  }
  _input_objects = merge([
    for name, files in local._channel_files : {
      for f, path in files : "${name}/${f}" => {
        key    = "${local._channel_prefixes[name]}/${f}"
        source = path
        hash   = local._channel_hashes[name][f]
      }
    }
  ]...)
}

resource "aws_s3_object" "code" {
  for_each = local._code_hashes

  bucket      = var.platform.buckets.data
  key         = "${local._code_prefix}/${each.key}"
  source      = "${local._source_dir}/${each.key}"
  source_hash = each.value

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

  lifecycle {
    create_before_destroy = true
  }
}
