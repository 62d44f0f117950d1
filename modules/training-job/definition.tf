# The state machine. Every attempt is a small group of states of its own with a
# literal request, so that the graph of a run is the graph of the plan. What is
# the same for all attempts stands once: one group gives a failure its class,
# and leads back to the attempt for its record and the edges of `next`.
#
#   attempt:   submit -> wait -> describe -> judge -> completed -> done
#                |        ^                  |  |
#                |        +---- running -----+  |
#                v        | exists              |
#             refused -> refusal                |
#                          |                    |
#   shared:         classify refusal         classify
#                          |                    |
#                          +--> class: CLASS <--+
#                                    |
#                          patience -+- (what passes by itself: pause -> again -> submit)
#                                    |
#                            note, settle, route
#                                    |
#   attempt:                       ended -> next -> submit of the target, or
#                                            |      release for the target first
#                                            v
#   shared:                                failed
locals {
  failure_classes = [
    "gpu_memory", "host_memory", "shared_memory", "disk", "capacity", "quota", "spot",
    "time", "stopped", "data", "permission", "internal", "code",
  ]

  # One Choice rule per row. The order of the table is kept: the first match wins.
  _table = jsondecode(file("${path.module}/failures.json")).patterns
  _rows = {
    for where in ["create_error", "secondary_status", "failure_reason"] : where => [
      for p in local._table : { class = p.class, glob = p.glob } if p.where == where
    ]
  }

  # A standard execution may have 25,000 events and a look at the training job
  # costs 9. Room for 2600 looks leaves the rest for starting and ending. At 2000
  # looks for the allowed time, 30 % of it is left for waiting, uploading and
  # repeats; the time limit ends a run before its history is full, whatever
  # repeats add.
  _looks            = 2600
  poll_seconds      = var.resources.poll_seconds != null ? var.resources.poll_seconds : max(30, ceil(local.worst_case_seconds / 2000))
  _deadline_seconds = local._looks * local.poll_seconds

  # New roles and policies take seconds to work everywhere, and throttling and
  # service errors pass: such refusals are tried again, this often in a run.
  _patience = 8
  _passing  = ["permission", "internal"]
  # AWS's own internal errors ask for another try of the same attempt. Names are
  # used up, so each try has a letter of its own: <run>-0, <run>-0b, <run>-0c.
  _repeats        = ["b", "c"]
  _first_try      = { letter = "", of = [] }
  _pause_seconds  = min(15, local.poll_seconds)
  _sdk            = "${local._arn_prefix}:states:::aws-sdk:sagemaker"
  _training_job   = [for i, a in var.attempts : "States.Format('{}-${i}{}', $$.Execution.Name, $.repeat.letter)"]
  _attempt_shapes = [for i, a in var.attempts : "${local._machine_words[i]} ${local._attempts[i].volume_size_gb}"]
  _attempt_index  = { for i, a in var.attempts : a.name => i... }

  # Warm instances that the next attempt cannot use are given back.
  _releases = [
    for i, a in var.attempts : [
      for target in distinct(values(a.next)) : target
      if local._attempts[i].keep_alive_seconds > 0 && try(local._attempt_shapes[local._attempt_index[target][0]] != local._attempt_shapes[i], false)
    ]
  ]

  _retry_create = [{
    ErrorEquals     = ["SageMaker.ThrottlingException", "sagemaker.ThrottlingException", "SageMaker.SdkClientException"]
    IntervalSeconds = 2
    BackoffRate     = 2
    MaxDelaySeconds = 60
    MaxAttempts     = 6
    JitterStrategy  = "FULL"
  }]
  # Reading is harmless to repeat, and giving up loses sight of a job that costs money.
  _retry_describe = [{
    ErrorEquals     = ["States.ALL"]
    IntervalSeconds = local._pause_seconds
    BackoffRate     = 2
    MaxDelaySeconds = 300
    MaxAttempts     = 10
  }]

  _attempt_states = [
    for i, a in var.attempts : merge(
      {
        "${a.name}: submit" = {
          Comment        = join(": ", compact(["${local._machine_words[i]}${a.spot ? " spot" : ""}", a.reason]))
          Type           = "Task"
          Resource       = "${local._sdk}:createTrainingJob"
          Parameters     = local.requests[i]
          ResultSelector = { name = a.name }
          ResultPath     = "$.attempt"
          Retry          = local._retry_create
          Catch          = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${a.name}: refused" }]
          Next           = "${a.name}: wait"
        }

        # From here on a refusal looks like a training job that failed.
        "${a.name}: refused" = {
          Type = "Pass"
          Parameters = {
            attempt      = { name = a.name }
            "attempts.$" = "$.attempts"
            "repeat.$"   = "$.repeat"
            "tries.$"    = "States.MathAdd($.tries, 1)"
            job = {
              "TrainingJobName.$" = local._training_job[i]
              TrainingJobStatus   = "Refused"
              "FailureReason.$"   = "States.Format('{}: {}', $.error.Error, $.error.Cause)"
            }
          }
          Next = "${a.name}: refusal"
        }

        # The name is ours alone, so an earlier try has created the job.
        "${a.name}: refusal" = {
          Type    = "Choice"
          Choices = [{ Variable = "$.job.FailureReason", StringMatches = "*ResourceInUse*", Next = "${a.name}: wait" }]
          Default = "classify refusal"
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
          Retry      = local._retry_describe
          Catch      = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${a.name}: refused" }]
          Next       = "${a.name}: judge"
        }

        "${a.name}: judge" = {
          Type = "Choice"
          Choices = [
            {
              And = [
                { Variable = "$.job.TrainingJobStatus", StringEquals = "Completed" },
                { Variable = "$.job.SecondaryStatus", StringEquals = "Completed" },
              ]
              Next = "completed"
            },
            { Variable = "$.job.TrainingJobStatus", StringEquals = "InProgress", Next = "${a.name}: wait" },
            { Variable = "$.job.TrainingJobStatus", StringEquals = "Stopping", Next = "${a.name}: wait" },
          ]
          Default = "classify"
        }

        "${a.name}: ended" = {
          Type       = "Pass"
          InputPath  = "$.note"
          ResultPath = "$.attempts['${i}']"
          Next       = length(a.next) == 0 ? "failed" : "${a.name}: next"
        }
      },
      {
        for edges in [a.next] : "${a.name}: next" => {
          Type = "Choice"
          Choices = [
            for class, target in edges : {
              Variable     = "$.class"
              StringEquals = class
              Next         = contains(local._releases[i], target) ? "${a.name}: release for ${target}" : "${target}: submit"
            }
          ]
          Default = "failed"
        } if length(edges) > 0
      },
      {
        for target in local._releases[i] : "${a.name}: release for ${target}" => {
          Type     = "Task"
          Resource = "${local._sdk}:updateTrainingJob"
          Parameters = {
            "TrainingJobName.$" = "$.job.TrainingJobName"
            ResourceConfig      = { KeepAlivePeriodInSeconds = 0 }
          }
          ResultPath = null
          Catch      = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${target}: submit" }]
          Next       = "${target}: submit"
        }
      },
    )
  ]

  _shared_states = merge(
    {
      begin = {
        Type   = "Pass"
        Result = { attempts = {}, tries = 0, repeat = local._first_try }
        Next   = local._first_state
      }

      completed = {
        Type = "Pass"
        Parameters = {
          "attempts.$"     = "$.attempts"
          "attempt.$"      = "$.attempt.name"
          "training_job.$" = "$.job.TrainingJobName"
          "model.$"        = "$.job.ModelArtifacts.S3ModelArtifacts"
        }
        Next = "done"
      }

      done = { Type = "Succeed" }

      "classify refusal" = {
        Type = "Choice"
        Choices = [
          for row in local._rows.create_error :
          { Variable = "$.job.FailureReason", StringMatches = replace(row.glob, "\\", "\\\\"), Next = "class: ${row.class}" }
        ]
        Default = "class: code"
      }

      # A rule that reads a field which is absent ends the run, so that is asked first.
      classify = {
        Type = "Choice"
        Choices = concat(
          [{ Variable = "$.job.FailureReason", IsPresent = false, Next = "no reason" }],
          [
            for row in local._rows.secondary_status :
            { Variable = "$.job.SecondaryStatus", StringEquals = row.glob, Next = "class: ${row.class}" }
          ],
          [
            for row in local._rows.failure_reason :
            { Variable = "$.job.FailureReason", StringMatches = replace(row.glob, "\\", "\\\\"), Next = "class: ${row.class}" }
          ],
        )
        Default = "class: code"
      }

      # A training job that was stopped gives no reason but its status.
      "no reason" = {
        Type       = "Pass"
        InputPath  = "$.job.SecondaryStatus"
        ResultPath = "$.job.FailureReason"
        Next       = "classify"
      }

      # A refused request is repeated as it is; a training job that failed keeps its name.
      patience = {
        Type = "Choice"
        Choices = concat(
          [{
            And = [
              { Variable = "$.job.TrainingJobStatus", StringEquals = "Refused" },
              { Variable = "$.tries", NumericLessThanEquals = local._patience },
            ]
            Next = "pause"
          }],
          [
            for n, letter in local._repeats : {
              And = [
                { Variable = "$.job.TrainingJobStatus", StringEquals = "Failed" },
                { Variable = "$.class", StringEquals = "internal" },
                { Variable = "$.repeat.letter", StringEquals = n == 0 ? "" : local._repeats[n - 1] },
              ]
              Next = "repeat: ${letter}"
            }
          ],
        )
        Default = "note"
      }

      note = {
        Type = "Pass"
        Parameters = {
          "attempt.$"      = "$.attempt.name"
          "class.$"        = "$.class"
          "training_job.$" = "$.job.TrainingJobName"
          "evidence.$"     = "$.job.FailureReason"
          "repeats.$"      = "$.repeat.of"
        }
        ResultPath = "$.note"
        Next       = "settle"
      }

      settle = {
        Type       = "Pass"
        Result     = local._first_try
        ResultPath = "$.repeat"
        Next       = "route"
      }

      pause = {
        Type    = "Wait"
        Seconds = local._pause_seconds
        Next    = "again"
      }

      failed = {
        Type      = "Fail"
        ErrorPath = "States.Format('Sagefit.{}', $.class)"
        CausePath = "States.JsonToString($.attempts)"
      }
    },
    # The record keeps the names of the training jobs that a repeat replaced.
    {
      for n, letter in local._repeats : "repeat: ${letter}" => {
        Type = "Pass"
        Parameters = {
          letter = letter
          "of.$" = "States.Array(${join(", ", concat([for m in range(n) : "$.repeat.of[${m}]"], ["$.job.TrainingJobName"]))})"
        }
        ResultPath = "$.repeat"
        Next       = "pause"
      }
    },
    # Back to the attempt.
    {
      for state, verb in { again = "submit", route = "ended" } : state => {
        Type                     = "Choice"
        Choices = [
          for name in concat(var.attempts[*].name, local._step_labels) :
          { Variable = "$.attempt.name", StringEquals = name, Next = "${name}: ${verb}" }
        ]
        Default = "failed"
      }
    },
    {
      for class in local._classes : "class: ${class}" => {
        Type       = "Pass"
        Result     = class
        ResultPath = "$.class"
        Next       = contains(local._passing, class) ? "patience" : "note"
      }
    },
  )

  # Classes that a rule can find; code is what is left when none matches.
  _found   = distinct(flatten([for rows in values(local._rows) : rows[*].class]))
  _classes = [for c in local.failure_classes : c if c == "code" || contains(local._found, c)]

  # Sizes in bytes, rounded up to three: four letters of base64.
  _definition_bytes = length(base64encode(jsonencode(local.definition))) / 4 * 3
  _request_bytes    = { for i, a in var.attempts : a.name => length(base64encode(jsonencode(try(local.tuning_requests[i], local.requests[i])))) / 4 * 3 }

  definition = {
    Comment        = join(": ", compact(["Sagefit job ${var.name}", var.description]))
    StartAt        = "begin"
    TimeoutSeconds = local._deadline_seconds
    States         = merge(local._shared_states, concat(local._step_states, local._attempt_states, local._tuning_states)...)
  }
}
