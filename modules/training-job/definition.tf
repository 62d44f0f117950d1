# The state machine. Every attempt is a small group of states of its own with
# a literal request, so that the graph of a run is the graph of the plan:
#
#   submit -> wait -> describe -> judge -> done
#     |        ^         (running: wait)    |
#     v        |                            v
#   refused -> refusal (exists: wait)     CLASS -> the attempt named by `next`,
#                 |                                 or the failure of the run
#                 +-> CLASS, or pause -> submit
locals {
  failure_classes = [
    "gpu_memory", "host_memory", "shared_memory", "disk", "capacity", "quota", "spot",
    "time", "stopped", "data", "permission", "internal", "code",
  ]

  # Neighbours of one class in the table share a Choice rule. The order of the
  # table is kept: the first match wins.
  _patterns = jsondecode(file("${path.module}/failures.json")).patterns
  _rows = {
    for where in ["create_error", "secondary_status", "failure_reason"] :
    where => [for p in local._patterns : p if p.where == where]
  }
  _starts = {
    for where, rows in local._rows :
    where => [for i, r in rows : i if i == 0 ? true : rows[i - 1].class != r.class]
  }
  _groups = {
    for where, starts in local._starts : where => [
      for n, start in starts : {
        class = local._rows[where][start].class
        # A backslash is the escape character of StringMatches.
        globs = [
          for r in slice(local._rows[where], start, n + 1 < length(starts) ? starts[n + 1] : length(local._rows[where])) :
          replace(r.glob, "\\", "\\\\")
        ]
      }
    ]
  }

  # A standard execution may have 25,000 events and a look at the training job
  # costs 9. At 2000 looks for the allowed time a third of them is left for
  # waiting, starting and uploading; the time limit ends a run before its
  # history is full.
  poll_seconds      = var.resources.poll_seconds != null ? var.resources.poll_seconds : max(30, ceil(local.worst_case_seconds / 2000))
  _deadline_seconds = max(2600 * local.poll_seconds, local.worst_case_seconds + 3600)

  # New roles and policies take seconds to work everywhere, and throttling and
  # service errors pass: such refusals are tried again, this often in a run.
  _patience       = 8
  _passing        = ["permission", "internal"]
  _pause_seconds  = min(15, local.poll_seconds)
  _sdk            = "${local._arn_prefix}:states:::aws-sdk:sagemaker"
  _training_job   = [for i, a in var.attempts : "States.Format('{}-${i}', $$.Execution.Name)"]
  _attempt_shapes = [for i, a in var.attempts : "${a.instance_count} ${a.instance_type} ${local._attempts[i].volume_size_gb}"]
  _attempt_index  = { for i, a in var.attempts : a.name => i... }

  # Warm instances that the next attempt cannot use are given back.
  _releases = [
    for i, a in var.attempts : [
      for target in distinct(values(a.next)) : target
      if local._attempts[i].keep_alive_seconds > 0 && try(local._attempt_shapes[local._attempt_index[target][0]] != local._attempt_shapes[i], false)
    ]
  ]

  _states = [
    for i, a in var.attempts : merge(
      {
        "${a.name}: submit" = {
          Comment    = join(": ", compact(["${a.instance_count} x ${a.instance_type}${a.spot ? " spot" : ""}", a.reason]))
          Type       = "Task"
          Resource   = "${local._sdk}:createTrainingJob"
          Parameters = local.requests[i]
          ResultPath = null
          Retry = [{
            ErrorEquals     = ["SageMaker.ThrottlingException", "sagemaker.ThrottlingException", "SageMaker.SdkClientException"]
            IntervalSeconds = 2
            BackoffRate     = 2
            MaxDelaySeconds = 60
            MaxAttempts     = 6
            JitterStrategy  = "FULL"
          }]
          Catch = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${a.name}: refused" }]
          Next  = "${a.name}: wait"
        }

        # From here on a refusal looks like a training job that failed.
        "${a.name}: refused" = {
          Type = "Pass"
          Parameters = {
            "attempts.$" = "$.attempts"
            "tries.$"    = "States.MathAdd($.tries, 1)"
            job = {
              TrainingJobStatus = "Refused"
              "FailureReason.$" = "States.Format('{}: {}', $.error.Error, $.error.Cause)"
            }
          }
          Next = "${a.name}: refusal"
        }

        "${a.name}: refusal" = {
          Type = "Choice"
          Choices = concat(
            # The name is ours alone, so an earlier try has created the job.
            [{ Variable = "$.job.FailureReason", StringMatches = "*ResourceInUse*", Next = "${a.name}: wait" }],
            flatten([
              for g in local._groups.create_error : [
                for again in [true, false] : {
                  And = concat(
                    again ? [{ Variable = "$.tries", NumericLessThanEquals = local._patience }] : [],
                    [{ Or = [for glob in g.globs : { Variable = "$.job.FailureReason", StringMatches = glob }] }],
                  )
                  Next = "${a.name}: ${again ? "pause" : g.class}"
                } if !again || contains(local._passing, g.class)
              ]
            ])
          )
          Default = "${a.name}: code"
        }

        "${a.name}: pause" = {
          Type    = "Wait"
          Seconds = local._pause_seconds
          Next    = "${a.name}: submit"
        }

        "${a.name}: wait" = {
          Type    = "Wait"
          Seconds = local.poll_seconds
          Next    = "${a.name}: describe"
        }

        "${a.name}: describe" = {
          Type       = "Task"
          Resource   = "${local._sdk}:describeTrainingJob"
          Parameters = { "TrainingJobName.$" = local._training_job[i] }
          ResultPath = "$.job"
          # Reading is harmless to repeat, and giving up loses sight of a job that costs money.
          Retry = [{
            ErrorEquals     = ["States.ALL"]
            IntervalSeconds = local._pause_seconds
            BackoffRate     = 2
            MaxDelaySeconds = 300
            MaxAttempts     = 10
          }]
          Catch = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${a.name}: refused" }]
          Next  = "${a.name}: judge"
        }

        "${a.name}: judge" = {
          Type = "Choice"
          Choices = concat(
            [
              {
                And = [
                  { Variable = "$.job.TrainingJobStatus", StringEquals = "Completed" },
                  { Variable = "$.job.SecondaryStatus", StringEquals = "Completed" },
                ]
                Next = "${a.name}: done"
              },
              {
                Or = [
                  { Variable = "$.job.TrainingJobStatus", StringEquals = "InProgress" },
                  { Variable = "$.job.TrainingJobStatus", StringEquals = "Stopping" },
                ]
                Next = "${a.name}: wait"
              },
              { Variable = "$.job.FailureReason", IsPresent = false, Next = "${a.name}: no reason" },
            ],
            [
              for g in local._groups.secondary_status : {
                Or   = [for status in g.globs : { Variable = "$.job.SecondaryStatus", StringEquals = status }]
                Next = "${a.name}: ${g.class}"
              }
            ],
            [
              for g in local._groups.failure_reason : {
                Or   = [for glob in g.globs : { Variable = "$.job.FailureReason", StringMatches = glob }]
                Next = "${a.name}: ${g.class}"
              }
            ],
          )
          Default = "${a.name}: code"
        }

        # A training job that was stopped gives no reason but its status.
        "${a.name}: no reason" = {
          Type       = "Pass"
          InputPath  = "$.job.SecondaryStatus"
          ResultPath = "$.job.FailureReason"
          Next       = "${a.name}: judge"
        }

        "${a.name}: done" = {
          Type = "Pass"
          Parameters = {
            "attempts.$"     = "$.attempts"
            "training_job.$" = "$.job.TrainingJobName"
            "model.$"        = "$.job.ModelArtifacts.S3ModelArtifacts"
          }
          Next = "done"
        }
      },
      {
        for class in local._classes : "${a.name}: ${class}" => {
          Type = "Pass"
          Parameters = {
            attempt          = a.name
            class            = class
            "training_job.$" = local._training_job[i]
            "evidence.$"     = "$.job.FailureReason"
          }
          ResultPath = "$.attempts['${i}']"
          Next = (
            !contains(keys(a.next), class) ? "failed: ${class}"
            : contains(local._releases[i], a.next[class]) ? "${a.name}: release for ${a.next[class]}"
            : "${a.next[class]}: submit"
          )
        }
      },
      {
        for target in local._releases[i] : "${a.name}: release for ${target}" => {
          Type     = "Task"
          Resource = "${local._sdk}:updateTrainingJob"
          Parameters = {
            "TrainingJobName.$" = local._training_job[i]
            ResourceConfig      = { KeepAlivePeriodInSeconds = 0 }
          }
          ResultPath = null
          Catch      = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${target}: submit" }]
          Next       = "${target}: submit"
        }
      },
    )
  ]

  # Classes that a rule can find; code is what is left when none matches.
  _classes = [
    for c in local.failure_classes : c
    if c == "code" || contains([for p in local._patterns : p.class if contains(keys(local._rows), p.where)], c)
  ]
  _final_classes = [
    for c in local._classes : c
    if !alltrue([for a in var.attempts : contains(keys(a.next), c)])
  ]

  definition = {
    Comment        = join(": ", compact(["Sagefit job ${var.name}", var.description]))
    StartAt        = "begin"
    TimeoutSeconds = local._deadline_seconds
    States = merge(
      {
        begin = {
          Type   = "Pass"
          Result = { attempts = {}, tries = 0 }
          Next   = "${try(var.attempts[0].name, "-")}: submit"
        }
        done = { Type = "Succeed" }
      },
      {
        for class in local._final_classes : "failed: ${class}" => {
          Type      = "Fail"
          Error     = "Sagefit.${class}"
          CausePath = "States.JsonToString($.attempts)"
        }
      },
      local._states...
    )
  }
}
