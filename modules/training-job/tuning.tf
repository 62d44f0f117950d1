# With `tuning`, an attempt is a tuning job. When a tuning job brings nothing, the
# newest of its training jobs that failed becomes the failure of the attempt, so
# the rules that give a failure its class are the same for all.
#
#   task:     judge -> best -> completed -> done
#               |
#   shared:     +---> tuning stopped --------------------------> classify
#               +---> trials -> trial -> autopsy --------------> classify
#                                 +----> no trial -> tuning failed, or no objective -> classify
locals {
  _ranges = try(var.tuning.ranges, {})
  # The product of how many values there are, which Terraform can only add up.
  _combinations = floor(0.5 + pow(10, sum(concat([0], [for r in values(local._ranges) : log(max(1, length(r.values)), 10)]))))
  _trials       = try(coalesce(var.tuning.max_jobs, local._combinations), 1)

  # <job>-<yymmdd>-<hhmmss>-<attempt><letter of a repeat>
  _longest_tuning_name = 32 - length("-yymmdd-hhmmss-") - length(tostring(max(length(var.attempts) - 1, 0))) - 1

  # Training jobs of a tuning job have no entrypoint of their own, but images of
  # frameworks start what these hyperparameters name: here the launcher, which
  # finds its own arguments in the third.
  _launcher_arguments = jsonencode(slice(local._container_arguments, min(1, length(local._container_arguments)), length(local._container_arguments)))
  _starts_launcher = { for name, value in {
    sagemaker_program           = "sagefit_trial.py"
    sagemaker_submit_directory  = "/opt/ml/input/data/sagefit/sagefit_trial.py"
    sagemaker_sagefit_arguments = local._launcher_arguments
  } : name => value if var.code != null }
  _static_hyperparameters = [for h in local._hyperparameters : merge(h, local._starts_launcher)]

  # Of a request for a training job, what a tuning job's definition has no field
  # for. All training jobs of a tuning job share the folder of checkpoints, and
  # only the launcher keeps them apart in it: those keep it that have a launcher,
  # and that spot or a retry brings back to their checkpoint.
  _not_in_trials = ["TrainingJobName.$", "HyperParameters", "AlgorithmSpecification", "Tags", "RemoteDebugConfig", "ProfilerConfig"]

  tuning_requests = [
    for i, request in local.requests : { for k, v in {
      "HyperParameterTuningJobName.$" = local._training_job[i]
      HyperParameterTuningJobConfig   = local._search
      TrainingJobDefinition = merge(
        { for k, v in request : k => v if !contains(local._not_in_trials, k) && (k != "CheckpointConfig" || (var.code != null && (var.attempts[i].spot || var.resources.retry_attempts != null))) },
        { AlgorithmSpecification = { for k, v in request.AlgorithmSpecification : k => v if !startswith(k, "Container") } },
        { for k, v in { StaticHyperParameters = local._static_hyperparameters[i] } : k => v if length(v) > 0 },
      )
      Tags = request.Tags
    } : k => v if v != null } if var.tuning != null
  ]

  _search = var.tuning == null ? null : { for k, v in {
    Strategy = var.tuning.strategy
    HyperParameterTuningJobObjective = {
      Type       = var.tuning.objective.type
      MetricName = var.tuning.objective.metric
    }
    ResourceLimits = { for k, v in {
      MaxNumberOfTrainingJobs = var.tuning.max_jobs
      MaxParallelTrainingJobs = var.tuning.max_parallel_jobs
      MaxRuntimeInSeconds     = var.tuning.max_runtime_seconds
    } : k => v if v != null }
    ParameterRanges = { for k, v in {
      IntegerParameterRanges     = [for name, r in local._ranges : { Name = name, MinValue = tostring(r.min), MaxValue = tostring(r.max), ScalingType = r.scaling } if r.type == "Integer"]
      ContinuousParameterRanges  = [for name, r in local._ranges : { Name = name, MinValue = tostring(r.min), MaxValue = tostring(r.max), ScalingType = r.scaling } if r.type == "Continuous"]
      CategoricalParameterRanges = [for name, r in local._ranges : { Name = name, Values = r.values } if r.type == "Categorical"]
    } : k => v if length(v) > 0 }
    TrainingJobEarlyStoppingType = var.tuning.early_stopping ? "Auto" : "Off"
    RandomSeed                   = var.tuning.seed
  } : k => v if v != null }

  # How long the training jobs of one attempt take, one after another or side by side.
  _rounds = try(ceil(local._trials / var.tuning.max_parallel_jobs), 1)
  _longest_attempts = [
    for seconds in local._longest_training_jobs : min(
      local._rounds * seconds,
      try(coalesce(var.tuning.max_runtime_seconds, local._rounds * seconds), local._rounds * seconds),
    )
  ]

  _tuning_states = {
    best = merge(local._asks_again, {
      Type       = "Task"
      Resource   = "${local._sdk}:describeTrainingJob"
      Parameters = { "TrainingJobName.$" = "$.job.BestTrainingJob.TrainingJobName" }
      ResultSelector = {
        "training_job.$" = "$.TrainingJobName"
        "model.$"        = "$.ModelArtifacts.S3ModelArtifacts"
      }
      ResultPath = "$.best"
      Next       = "completed"
    })

    completed = {
      Type = "Pass"
      Parameters = {
        "attempts.$"        = "$.attempts"
        "attempt.$"         = "$.attempt.name"
        "tuning_job.$"      = "$.job.HyperParameterTuningJobName"
        "training_job.$"    = "$.best.training_job"
        "model.$"           = "$.best.model"
        "hyperparameters.$" = "$.job.BestTrainingJob.TunedHyperParameters"
        "objective.$"       = "$.job.BestTrainingJob.FinalHyperParameterTuningJobObjectiveMetric"
      }
      Next = "done"
    }

    # The newest of ten, and not of one: AWS documents for another list of jobs that a page is filtered by status after
    # it was taken. Ten with the longest texts stay below the 262,144 bytes that a state may be given.
    trials = merge(local._asks_again, {
      Type     = "Task"
      Resource = "${local._sdk}:listTrainingJobsForHyperParameterTuningJob"
      Parameters = {
        "HyperParameterTuningJobName.$" = "$.job.HyperParameterTuningJobName"
        StatusEquals                    = "Failed"
        SortBy                          = "CreationTime"
        SortOrder                       = "Descending"
        MaxResults                      = 10
      }
      ResultSelector = { "names.$" = "$.TrainingJobSummaries[*].TrainingJobName" }
      ResultPath     = "$.trials"
      Next           = "trial"
    })

    trial = {
      Type    = "Choice"
      Choices = [{ Variable = "$.trials.names[0]", IsPresent = true, Next = "autopsy" }]
      Default = "no trial"
    }

    autopsy = merge(local._asks_again, {
      Type       = "Task"
      Resource   = "${local._sdk}:describeTrainingJob"
      Parameters = { "TrainingJobName.$" = "States.ArrayGetItem($.trials.names, 0)" }
      ResultPath = "$.job"
      Next       = "classify"
    })

    # What follows reads the description of a training job.
    "no trial" = {
      Type    = "Choice"
      Choices = [{ Variable = "$.job.FailureReason", IsPresent = true, Next = "tuning failed" }]
      Default = "no objective"
    }

    "tuning failed" = {
      Type = "Pass"
      Parameters = {
        "TrainingJobName.$" = "$.job.HyperParameterTuningJobName"
        TrainingJobStatus   = "Failed"
        SecondaryStatus     = "Failed"
        "FailureReason.$"   = "$.job.FailureReason"
      }
      ResultPath = "$.job"
      Next       = "classify"
    }

    "no objective" = {
      Type = "Pass"
      Parameters = {
        "TrainingJobName.$" = "$.job.HyperParameterTuningJobName"
        TrainingJobStatus   = "Failed"
        SecondaryStatus     = "Failed"
        FailureReason       = "No training job ended well with the objective metric: is it printed, and does its regex find it, or did max_runtime end the training jobs?"
      }
      ResultPath = "$.job"
      Next       = "classify"
    }

    unread = {
      Type = "Pass"
      Parameters = {
        "TrainingJobName.$" = "$.job.HyperParameterTuningJobName"
        TrainingJobStatus   = "Unread"
      }
      ResultPath = "$.job"
      Next       = "refusal"
    }

    "tuning stopped" = {
      Type = "Pass"
      Parameters = {
        "TrainingJobName.$" = "$.job.HyperParameterTuningJobName"
        TrainingJobStatus   = "Stopped"
        SecondaryStatus     = "Stopped"
      }
      ResultPath = "$.job"
      Next       = "classify"
    }
  }

  # What cannot be read is told as what it is.
  _asks_again = {
    Retry = local._retry_describe
    Catch = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "unread" }]
  }

  # Role of the state machine: it creates and follows tuning jobs instead of
  # training jobs, and reads those that SageMaker makes of them.
  _tuning_arns = [for try in local._tries : "${local._arn_prefix}:sagemaker:${local._arn_middle}:hyper-parameter-tuning-job/${var.name}-??????-??????-${try}"]
  _tuning_statements = [
    for statement in [
      {
        Sid      = "CreateTuningJobsOfThisJob"
        Effect   = "Allow"
        Action   = ["sagemaker:CreateHyperParameterTuningJob"]
        Resource = local._tuning_arns
        # Those of a training job, but for two that this call does not know. It has two time limits, of a training job
        # and of all, and no document says which of them the key is.
        Condition = merge(
          {
            for operator, keys in local._allow_create.Condition : operator => keys
            if !contains(["NumericLessThanEqualsIfExists", "BoolIfExists"], operator)
          },
          {
            NumericLessThanEquals = {
              "sagemaker:MaxRuntimeInSeconds" = tostring(max(concat([1, try(coalesce(var.tuning.max_runtime_seconds, 1), 1)], var.attempts[*].max_runtime_seconds)...))
            }
          },
        )
      },
      {
        Sid      = "FollowTuningJobsOfThisJob"
        Effect   = "Allow"
        Action   = ["sagemaker:DescribeHyperParameterTuningJob", "sagemaker:ListTrainingJobsForHyperParameterTuningJob"]
        Resource = local._tuning_arns
      },
      {
        Sid      = "ReadTheirTrainingJobs"
        Effect   = "Allow"
        Action   = ["sagemaker:DescribeTrainingJob"]
        Resource = [for try in local._tries : "${local._training_job_arn_all}${var.name}-??????-??????-${try}-*"]
      },
      {
        Sid      = "TagTuningJobsOfThisJob"
        Effect   = "Allow"
        Action   = ["sagemaker:AddTags"]
        Resource = local._tuning_arns
      },
    ] : statement if var.tuning != null
  ]
}
