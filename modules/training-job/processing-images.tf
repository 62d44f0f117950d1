# Image URIs of the processing steps, from the table of images.tf: Spark's
# images are for processing only, and all that run scripts for training run
# them here.
locals {
  _step_families = [for s in var.processing : try(merge(local._images.frameworks, local._images.processing)[s.image.framework], null)]
  _step_versions = [for i, s in var.processing : try(local._step_families[i].aliases[s.image.version], s.image.version)]
  _step_pythons  = [for i, s in var.processing : try(keys(local._step_families[i].versions[local._step_versions[i]]), [])]
  _step_tags = [
    for i, s in var.processing :
    try(local._step_families[i].versions[local._step_versions[i]][coalesce(s.image.python_version, reverse(local._step_pythons[i])[0])], null)
  ]
  _step_accounts = [
    for i, s in var.processing : anytrue([
      for gap in try(local._step_families[i].absent, []) :
      contains(gap.regions, var.platform.region) && contains(gap.versions, local._step_versions[i])
    ]) ? null : try(local._images.accounts[local._step_families[i].accounts][var.platform.region], null)
  ]
  _step_processors = [
    for s in var.processing : try(local.instances[s.instance_type].accelerator, "") == "" ? "cpu" : "gpu"
  ]
  _step_images_elsewhere = {
    for i, uri in local.step_image_uris : i => regex(local._region_in_address, uri)[0]
    if try(regex(local._region_in_address, uri)[0], var.platform.region) != var.platform.region
  }

  step_image_uris = [
    for i, s in var.processing :
    s.image.uri != null ? s.image.uri
    : s.image.repository != null ? join("", [
      s.image.repository != "" ? s.image.repository : coalesce(var.platform.repository_url, "-"),
      s.image.digest != null ? "@${s.image.digest}" : ":${coalesce(s.image.tag, "-")}",
    ])
    : local._step_tags[i] == null ? "-"
    : format(
      "%s.dkr.ecr.%s.%s/%s:%s",
      coalesce(local._step_accounts[i], "-"),
      var.platform.region,
      local._dns_suffix,
      local._step_families[i].repository,
      replace(local._step_tags[i], "{processor}", local._step_processors[i]),
    )
  ]
}
