# Processing steps: containers that prepare data before the first attempt. How a
# step failed is told in the words of a training job, so that the shared states
# of definition.tf classify it; a run whose step failed ends.
#
#   task:     judge -> completed -> submit of the next step, or of the first attempt
#               |
#   shared:   failed -> reason alone, or reason and message -> classify
locals {
  # Spark's container has a starter of its own, which makes a cluster of the instances.
  _step_code    = "/opt/ml/processing/input/code"
  _spark_events = "/opt/ml/processing/spark-events"
  _step_is_spark = [
    for s in var.processing : s.image.framework == "spark" || can(regex("/sagemaker-spark-processing[:@]", coalesce(s.image.uri, "-")))
  ]
  _step_commands = [
    for i, s in var.processing : s.code == null ? null : concat(
      local._step_is_spark[i] ? ["smspark-submit", "--local-spark-event-logs-dir", local._spark_events] : ["python3"],
      ["${local._step_code}/${s.code.entry_point}"],
    )
  ]

  # Every output has a folder of the run in the artifacts bucket; {} is the run.
  _step_outputs = merge([
    for s in var.processing : {
      for output in s.outputs : "${s.name}/${output}" => "s3://${var.platform.buckets.artifacts}/jobs/${var.name}/{}/processing/${s.name}/${output}"
    }
  ]...)

  _step_inputs = [
    for s in var.processing : merge(
      { for name, c in s.inputs : name => c },
      { for code in [s.code] : "code" => { local_path = "", s3_uri = null, from = null, s3_data_type = "S3Prefix", distribution = "FullyReplicated" } if code != null },
    )
  ]

  step_requests = [
    for i, s in var.processing : { for k, v in {
      "ProcessingJobName.$" = local._processing_job[i]
      RoleArn               = local.execution_role_arn
      AppSpecification = { for k, v in {
        ImageUri            = local.step_image_uris[i]
        ContainerEntrypoint = local._step_commands[i]
        ContainerArguments  = try(length(s.code.arguments), 0) == 0 ? null : s.code.arguments
      } : k => v if v != null }
      Environment = length(s.environment) == 0 ? null : s.environment
      ProcessingInputs = length(local._step_inputs[i]) == 0 ? null : [
        for name, c in local._step_inputs[i] : {
          InputName = name
          S3Input = { for k, v in {
            S3Uri                  = c.s3_uri != null ? c.s3_uri : c.from != null ? null : try("s3://${var.platform.buckets.data}/${local._channel_prefixes["${s.name}:${name}"]}/", "-")
            "S3Uri.$"              = c.from == null ? null : "States.Format('${try(local._step_outputs[c.from], "-")}/', $$.Execution.Name)"
            LocalPath              = "/opt/ml/processing/input/${name}"
            S3DataType             = c.s3_data_type
            S3InputMode            = "File"
            S3DataDistributionType = c.distribution
          } : k => v if v != null }
        }
      ]
      ProcessingOutputConfig = { for k, v in {
        Outputs = concat(
          [
            for output in s.outputs : {
              OutputName = output
              S3Output = {
                "S3Uri.$"    = "States.Format('${local._step_outputs["${s.name}/${output}"]}', $$.Execution.Name)"
                LocalPath    = "/opt/ml/processing/output/${output}"
                S3UploadMode = "EndOfJob"
              }
            }
          ],
          [
            for events in [local._spark_events] : {
              OutputName = "spark-events"
              S3Output = {
                "S3Uri.$"    = "States.Format('s3://${var.platform.buckets.artifacts}/jobs/${var.name}/{}/processing/${s.name}/spark-events', $$.Execution.Name)"
                LocalPath    = events
                S3UploadMode = "Continuous"
              }
            } if local._step_is_spark[i] && s.code != null
          ],
        )
        KmsKeyId = local._output_kms_key
      } : k => v if v != null }
      ProcessingResources = {
        ClusterConfig = { for k, v in {
          InstanceType   = s.instance_type
          InstanceCount  = s.instance_count
          VolumeSizeInGB = s.volume_size_gb
          VolumeKmsKeyId = try(tonumber(local.instances[s.instance_type].nvme_gb), 0) > 0 ? null : local._volume_kms_key
        } : k => v if v != null }
      }
      StoppingCondition = { MaxRuntimeInSeconds = s.max_runtime_seconds }
      NetworkConfig = !(local._isolated || local._encrypt_traffic || local._in_vpc) ? null : { for k, v in {
        EnableNetworkIsolation                = local._isolated ? true : null
        EnableInterContainerTrafficEncryption = local._encrypt_traffic ? true : null
        VpcConfig                             = !local._in_vpc ? null : { Subnets = local._subnet_ids, SecurityGroupIds = local._security_group_ids }
      } : k => v if v != null }
      Tags = [for key, value in merge(local._job_tags, { "sagefit:step" = s.name }) : { Key = key, Value = value }]
    } : k => v if v != null }
  ]

  _processing_states = [
    # What follows a step is tried for the first time.
    {
      for i, label in local._step_labels : "${label}: completed" => {
        Type       = "Pass"
        Result     = local._first_try
        ResultPath = "$.repeat"
        Next       = "${try(local._tasks[i + 1].name, "-")}: submit"
      }
    },
    # A reason of SageMaker's own says little; the container's last words say more.
    {
      "processing: failed" = {
        Type = "Choice"
        Choices = [
          { Variable = "$.job.processing.FailureReason", IsPresent = false, Next = "classify" },
          { Variable = "$.job.processing.ExitMessage", IsPresent = false, Next = "processing: reason alone" },
        ]
        Default = "processing: reason and message"
      }
    },
    {
      for name, reason in {
        "reason alone"       = "$.job.processing.FailureReason"
        "reason and message" = "States.Format('{}: {}', $.job.processing.FailureReason, $.job.processing.ExitMessage)"
        } : "processing: ${name}" => {
        Type = "Pass"
        Parameters = {
          "TrainingJobName.$"   = "$.job.TrainingJobName"
          "TrainingJobStatus.$" = "$.job.TrainingJobStatus"
          "SecondaryStatus.$"   = "$.job.SecondaryStatus"
          "FailureReason.$"     = reason
        }
        ResultPath = "$.job"
        Next       = "classify"
      }
    },
  ]

  # Role: the steps of this job and no others, protected as its training jobs are.
  _processing_job_arns = [
    for form in concat(
      ["${var.name}-??????-??????-p"],
      var.schedule == null ? [] : ["${local._schedule_run_prefix}-*-p"],
    ) : "${local._arn_prefix}:sagemaker:${local._arn_middle}:processing-job/${form}"
  ]
  _step_limits = {
    "sagemaker:InstanceTypes"       = distinct(var.processing[*].instance_type)
    "sagemaker:MaxRuntimeInSeconds" = tostring(max(concat([1], var.processing[*].max_runtime_seconds)...))
  }
  _processing_statements = [for s in [
    {
      Sid      = "CreateProcessingJobsOfThisJob"
      Effect   = "Allow"
      Action   = ["sagemaker:CreateProcessingJob"]
      Resource = flatten([for arn in local._processing_job_arns : ["${arn}?", "${arn}??"]])
      Condition = {
        for operator, keys in local._allow_create.Condition :
        operator => { for key, value in keys : key => try(local._step_limits[operator == "Null" ? "-" : key], value) }
        if !endswith(operator, "IfExists")
      }
    },
    {
      Sid      = "FollowProcessingJobsOfThisJob"
      Effect   = "Allow"
      Action   = ["sagemaker:AddTags", "sagemaker:DescribeProcessingJob"]
      Resource = flatten([for arn in local._processing_job_arns : ["${arn}?", "${arn}??"]])
    },
  ] : s if length(var.processing) > 0]
}
