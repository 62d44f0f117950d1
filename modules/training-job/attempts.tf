# One CreateTrainingJob request per attempt. What is not asked for is absent.
locals {
  _network            = var.platform.network
  _isolated           = coalesce(var.resources.network_isolation, local._network.isolation)
  _encrypt_traffic    = coalesce(var.resources.encrypt_inter_container_traffic, local._network.encrypt_inter_container_traffic)
  _subnet_ids         = var.resources.subnet_ids != null ? var.resources.subnet_ids : local._network.subnet_ids
  _security_group_ids = var.resources.security_group_ids != null ? var.resources.security_group_ids : local._network.security_group_ids
  _in_vpc             = length(local._subnet_ids) > 0 && length(local._security_group_ids) > 0

  _volume_kms_key = var.resources.volume_kms_key_arn != null ? var.resources.volume_kms_key_arn : var.platform.kms_key_arn
  _output_kms_key = var.resources.output_kms_key_arn != null ? var.resources.output_kms_key_arn : var.platform.kms_key_arn
  output_s3_uri   = var.resources.output_s3_uri != null ? var.resources.output_s3_uri : "s3://${var.platform.buckets.artifacts}/jobs/${var.name}"

  _max_keep_alive_seconds = coalesce(var.resources.max_keep_alive_seconds, var.platform.max_keep_alive_seconds)
  _pool                   = var.resources.warm_pool == null ? null : try(var.platform.warm_pools[var.resources.warm_pool], null)

  # The table names the built-in algorithms that the guide lists as writing checkpoints.
  _algorithms_without_checkpoints = setsubtract(keys(local._images.algorithms), local._images.writes_checkpoints)

  # An attempt of the pool's shape takes part in the pool.
  _pooled = [
    for a in var.attempts : try(alltrue([
      !a.spot,
      a.instance_type == local._pool.instance_type,
      a.instance_count == local._pool.instance_count,
      a.volume_size_gb == null || a.volume_size_gb == local._pool.volume_size_gb,
    ]), false)
  ]
  _attempts = [
    for i, a in var.attempts : {
      pooled = local._pooled[i]
      volume_size_gb = (
        a.volume_size_gb != null ? a.volume_size_gb
        : local._pooled[i] ? local._pool.volume_size_gb
        : var.resources.volume_size_gb
      )
      keep_alive_seconds = (
        a.keep_alive_seconds > 0 ? a.keep_alive_seconds
        : local._pooled[i] ? local._pool.keep_alive_seconds
        : 0
      )
      # Local disks are encrypted by the hardware and take no key.
      volume_kms_key = anytrue([for t in local._machine_types[i] : try(tonumber(local.instances[t].nvme_gb), 0) > 0]) ? null : local._volume_kms_key
    }
  ]

  _hyperparameters = [for a in var.attempts : merge(var.hyperparameters, a.hyperparameters)]
  # A description of a training job returns its environment but no tags.
  _environments = [for a in var.attempts : merge(var.environment, a.environment, tomap({ SAGEFIT_ATTEMPT = a.name }))]

  # Names of variables that are not the job's to set; the table also has those
  # that change what runs, which a review of the plan reports.
  _variables     = jsondecode(file("${path.module}/environment.json"))
  _reserved_name = "(${join("|", values(local._variables.reserved))})"

  # At the start of a word: "task-..." holds no "sk-..." token.
  _credential = "(^|[^A-Za-z0-9])(${join("|", concat(values(local._secrets.contents), values(local._secrets.fields)))})"

  # The launcher starts the script, measures memory and explains a failure. In
  # an isolated job it installs nothing from outside.
  _launcher_flags = local._isolated ? ["--isolated"] : []
  _container_arguments = var.code == null ? [] : concat(
    ["/opt/ml/input/data/sagefit/launcher.pyz", "--entry-point", var.code.entry_point],
    local._launcher_flags,
    ["--"],
    var.code.arguments,
  )
  _launcher_metrics = var.code == null || local._brings_metrics ? [] : [
    { name = "sagefit:host_memory_peak_gib", regex = "\\[sagefit\\].* host_memory_peak_gib=([0-9.]+)" },
    { name = "sagefit:host_memory_percent", regex = "\\[sagefit\\].* host_memory_percent=([0-9.]+)" },
    { name = "sagefit:gpu_memory_percent", regex = "\\[sagefit\\].* gpu_memory_percent=([0-9.]+)" },
    { name = "sagefit:unsaved_seconds", regex = "\\[sagefit\\].* unsaved_seconds=([0-9.]+)" },
  ]
  _metric_definitions = concat(local._launcher_metrics, var.metric_definitions)

  # Channels: the user's own in alphabetical order, then code and launcher.
  _input_channels = concat(
    [
      for name, c in var.channels : { for k, v in {
        ChannelName = name
        DataSource = { for k, v in {
          S3DataSource = c.file_system != null ? null : { for k, v in {
            S3DataType             = c.s3_data_type
            "S3Uri.$"              = c.from == null ? null : "States.Format('${try(local._step_outputs[c.from], "-")}/', $$.Execution.Name)"
            S3Uri                  = c.s3_uri != null ? c.s3_uri : try("s3://${var.platform.buckets.data}/${local._channel_prefixes[name]}/", null)
            S3DataDistributionType = c.distribution
            AttributeNames         = length(c.attribute_names) > 0 ? c.attribute_names : null
            InstanceGroupNames     = length(c.instance_groups) > 0 ? c.instance_groups : null
          } : k => v if v != null }
          FileSystemDataSource = c.file_system == null ? null : {
            FileSystemId         = c.file_system.id
            FileSystemType       = c.file_system.type
            FileSystemAccessMode = c.file_system.access_mode
            DirectoryPath        = c.file_system.directory_path
          }
        } : k => v if v != null }
        InputMode         = c.mode
        ContentType       = c.content_type
        CompressionType   = c.compression
        RecordWrapperType = c.record_wrapper
        ShuffleConfig     = c.shuffle_seed == null ? null : { Seed = c.shuffle_seed }
      } : k => v if v != null }
    ],
    [
      for name, prefix in var.code == null ? {} : { code = local._code_prefix, sagefit = local._launcher_prefix } : {
        ChannelName                                      = name
        InputMode                                        = "File"
        DataSource = {
          S3DataSource = {
            S3DataType             = "S3Prefix"
            S3Uri                  = "s3://${var.platform.buckets.data}/${prefix}/"
            S3DataDistributionType = "FullyReplicated"
          }
        }
      }
    ],
  )

  # Where one channel names instance groups, SageMaker takes the request only if all do. So a channel that names none
  # then gets all groups of the attempt, which is what it gets without the names.
  _names_groups = anytrue([for c in values(var.channels) : length(c.instance_groups) > 0])
  _attempt_channels = [
    for a in var.attempts : [
      for channel in local._input_channels : merge(channel, {
        DataSource = {
          for kind, source in channel.DataSource : kind => merge(
            { for k in ["InstanceGroupNames"] : k => a.instance_groups[*].name if local._names_groups && kind == "S3DataSource" },
            source,
          )
        }
      })
    ]
  ]

  requests = [
    for i, a in var.attempts : { for k, v in {
      "TrainingJobName.$" = local._training_job[i]
      RoleArn             = local.execution_role_arn
      AlgorithmSpecification = { for k, v in {
        TrainingImage       = local.image_uris[i]
        AlgorithmName       = var.image.algorithm_arn
        TrainingInputMode   = var.resources.input_mode
        ContainerEntrypoint = var.code == null ? null : ["python3"]
        ContainerArguments  = var.code == null ? null : local._container_arguments
        MetricDefinitions   = length(local._metric_definitions) == 0 ? null : [for m in local._metric_definitions : { Name = m.name, Regex = m.regex }]
      } : k => v if v != null }
      HyperParameters = length(local._hyperparameters[i]) == 0 ? null : local._hyperparameters[i]
      Environment     = local._environments[i]
      InputDataConfig = length(local._attempt_channels[i]) == 0 ? null : local._attempt_channels[i]
      OutputDataConfig = { for k, v in {
        S3OutputPath    = local.output_s3_uri
        CompressionType = var.resources.output_compression == "GZIP" ? null : var.resources.output_compression
        KmsKeyId        = local._output_kms_key
      } : k => v if v != null }
      ResourceConfig = { for k, v in {
        InstanceType  = a.instance_type
        InstanceCount = a.instance_type == null ? null : a.instance_count
        InstanceGroups = length(a.instance_groups) == 0 ? null : [
          for g in a.instance_groups : { InstanceGroupName = g.name, InstanceType = g.instance_type, InstanceCount = g.instance_count }
        ]
        VolumeSizeInGB           = local._attempts[i].volume_size_gb
        VolumeKmsKeyId           = local._attempts[i].volume_kms_key
        KeepAlivePeriodInSeconds = local._attempts[i].keep_alive_seconds == 0 ? null : local._attempts[i].keep_alive_seconds
      } : k => v if v != null }
      StoppingCondition = { for k, v in {
        MaxRuntimeInSeconds     = a.max_runtime_seconds
        MaxWaitTimeInSeconds    = a.max_wait_seconds
        MaxPendingTimeInSeconds = a.max_pending_seconds
      } : k => v if v != null }
      CheckpointConfig = !var.resources.checkpoints ? null : {
        "S3Uri.$" = "States.Format('s3://${var.platform.buckets.checkpoints}/jobs/${var.name}/{}/', $$.Execution.Name)"
        LocalPath = var.resources.checkpoint_local_path
      }
      EnableManagedSpotTraining             = a.spot ? true : null
      EnableNetworkIsolation                = local._isolated ? true : null
      EnableInterContainerTrafficEncryption = local._encrypt_traffic ? true : null
      VpcConfig = !local._in_vpc ? null : {
        Subnets          = local._subnet_ids
        SecurityGroupIds = local._security_group_ids
      }
      RetryStrategy     = var.resources.retry_attempts == null ? null : { MaximumRetryAttempts = var.resources.retry_attempts }
      RemoteDebugConfig = var.resources.remote_debug ? { EnableRemoteDebug = true } : null
      # Left out, SageMaker's default decides, which writes system metrics below the job's output (DG).
      ProfilerConfig = var.resources.profiler ? null : { DisableProfiler = true }
      Tags = [
        for key, value in merge(
          local._job_tags,
          { "sagefit:attempt" = a.name },
          a.memory_percent == null ? {} : { "sagefit:memory-percent" = tostring(a.memory_percent) },
        ) : { Key = key, Value = value }
      ]
    } : k => v if v != null }
  ]

  # The longest a run can take in its jobs while AWS itself does not fail: every
  # step and every attempt, in full. Repeats after errors of AWS are not in it: they seldom
  # come, mostly before training starts, and go on from the checkpoint. The
  # deadline of the state machine bounds them.
  worst_case_seconds = sum(concat([0], var.processing[*].max_runtime_seconds, local._longest_attempts))
  _longest_training_jobs = [
    for a in var.attempts :
    (a.max_wait_seconds != null ? a.max_wait_seconds : a.max_runtime_seconds)
    + (a.max_pending_seconds != null ? a.max_pending_seconds : 0)
  ]
}
