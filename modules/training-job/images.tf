# Image URIs of AWS. images.json is a condensed table; it names its source.
locals {
  _images = jsondecode(file("${path.module}/images.json"))

  # XGBoost is both: an algorithm, and an image that runs scripts.
  _image_family   = var.image.framework != null ? var.image.framework : var.image.algorithm
  _image_kind     = var.image.framework != null || local._image_family == "xgboost" ? "frameworks" : "algorithms"
  _image_names    = var.image.framework != null ? keys(local._images.frameworks) : concat(keys(local._images.algorithms), ["xgboost"])
  _image_row      = try(local._images[local._image_kind][local._image_family], null)
  _image_versions = try(concat(keys(local._image_row.aliases), keys(local._image_row.versions)), [])

  # An algorithm with one version needs none in the job file.
  _image_asked   = var.image.version != null ? var.image.version : try(one(keys(local._image_row.versions)), "")
  _image_exact   = try(local._image_row.aliases[local._image_asked], local._image_asked)
  _image_tags    = try(local._image_row.versions[local._image_exact], null)
  _image_version = local._image_tags == null ? null : local._image_exact
  _image_pythons = try(keys(local._image_tags), [])
  _image_python  = var.image.python_version != null ? var.image.python_version : try(reverse(local._image_pythons)[0], "")
  _image_tag     = try(local._image_tags[local._image_python], null)

  # Major and minor version of its Python. Tags such as py3 do not say it, and the table does.
  _image_python_version = try(
    regex("^py(\\d)(\\d+)$", local._image_python),
    split(".", local._image_row.pythons[local._image_exact]),
    null,
  )
  _runs_launcher = local._image_tag == null || try(local._image_python_version[0] == "3" && tonumber(local._image_python_version[1]) >= 8, true)

  # A region may have a framework and not all of its versions.
  _image_regions = try(setsubtract(
    keys(local._images.accounts[local._image_row.accounts]),
    flatten([for a in try(local._image_row.absent, []) : a.regions if contains(a.versions, local._image_exact)]),
  ), [])
  _image_account = (
    contains(local._image_regions, var.platform.region)
    ? local._images.accounts[local._image_row.accounts][var.platform.region]
    : null
  )

  _dns_suffix = lookup({
    aws-cn    = "amazonaws.com.cn"
    aws-eusc  = "amazonaws.eu"
    aws-iso   = "c2s.ic.gov"
    aws-iso-b = "sc2s.sgov.gov"
    aws-iso-e = "cloud.adc-e.uk"
    aws-iso-f = "csp.hci.ic.gov"
  }, var.platform.partition, "amazonaws.com")

  # The platform's own repository is written as "".
  _own_reference = var.image.digest != null ? "@${var.image.digest}" : ":${coalesce(var.image.tag, "-")}"
  _own_repository = (
    var.image.repository == null ? null
    : var.image.repository != "" ? "${var.image.repository}${local._own_reference}"
    : "${coalesce(var.platform.repository_url, "-")}${local._own_reference}"
  )

  # The address of an image in ECR says its region. Others pull it with the first attempt only, to be refused then.
  _region_in_address = "^\\d{12}\\.dkr\\.ecr(?:-fips)?\\.([a-z0-9-]+)\\."
  _image_elsewhere = distinct([
    for uri in local.image_uris : regex(local._region_in_address, uri)[0]
    if try(regex(local._region_in_address, uri)[0], var.platform.region) != var.platform.region
  ])

  # What SageMaker takes for its own algorithm, by the repository alone: it refuses metric definitions for such an image,
  # also where it runs a script, and has metrics of its own. XGBoost's image is the only one that does run scripts.
  _algorithm_rows = concat(values(local._images.algorithms), [local._images.frameworks.xgboost])
  _algorithm_repositories = flatten([
    for row in local._algorithm_rows : [for account in values(local._images.accounts[row.accounts]) : "${account}/${row.repository}"]
  ])
  _uri_repository = try(join("/", regex("^(\\d{12})\\.dkr\\.ecr\\.[^/]+/([^:@]+)", var.image.uri)), "")
  _brings_metrics = (
    var.image.algorithm != null || local._image_family == "xgboost" || contains(local._algorithm_repositories, local._uri_repository)
  )

  # The instance decides between the CPU and the GPU image; groups share one.
  _attempt_processors = [
    for types in local._machine_types : anytrue([for t in types : try(local.instances[t].accelerator, "") != ""]) ? "gpu" : "cpu"
  ]

  image_uris = [
    for processor in local._attempt_processors :
    var.image.uri != null ? var.image.uri
    : local._own_repository != null ? local._own_repository
    : local._image_tag == null ? null
    : format(
      "%s.dkr.ecr.%s.%s/%s:%s",
      coalesce(local._image_account, "-"),
      var.platform.region,
      local._dns_suffix,
      local._image_row.repository,
      replace(local._image_tag, "{processor}", processor),
    )
  ]
}
