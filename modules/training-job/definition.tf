# The state machine. Every task (tasks.tf) is a small group of states of its own
# with a literal request, so that the graph of a run is the graph of the plan.
# What is the same for all tasks stands once: one group gives a failure its class,
# and leads back to the task for its record and the edges of `next`. A kind of
# task adds the states that turn its success and its failure into those of a
# training job: "..." below.
#
#   task:      submit -> wait -> describe -> judge -> ... -> completed -> done,
#                |        ^                  |  |            or submit of the next step
#                |        +---- running -----+  |
#                v        | exists             ...
#             refused, lost                     |
#                          |                    |
#   shared:    refusal -> classify refusal   classify
#                          |                    |
#                          +--> class: CLASS <--+
#                                    |
#                          patience -+- (what passes by itself: pause -> again -> submit)
#                                    |
#                            note, settle, route
#                                    |
#   task:                          ended -> next -> submit of the target, or
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
    for kind, places in {
      create_error     = ["create_error"]
      secondary_status = ["secondary_status"]
      failure_reason   = ["failure_reason", "line", "reason"]
    } : kind => [for p in local._table : { class = p.class, glob = p.glob } if contains(places, p.where)]
  }

  # A standard execution may have 25,000 events and a look at the training job
  # costs 9. Room for 2600 looks leaves the rest for starting and ending. At 2000
  # looks for the allowed time, 30 % of it is left for waiting, uploading and
  # repeats, and a task that need not wait for instances for two hours has them to
  # do so. The deadline ends a run before its history is full, whatever repeats add.
  _looks        = 2600
  poll_seconds  = var.resources.poll_seconds != null ? var.resources.poll_seconds : max(30, ceil(local.worst_case_seconds / 2000))
  _wait_seconds = 7200
  _deadline_seconds = min(
    local._looks * local.poll_seconds,
    ceil(1.3 * local.worst_case_seconds) + local._wait_seconds * length(local._tasks),
  )

  # New roles and policies take seconds to work everywhere, and throttling and
  # service errors pass: such refusals are tried again, this often in an attempt.
  _patience = 8
  _passing  = ["permission", "internal"]
  # AWS's own internal errors ask for another try of the same attempt. Names are
  # used up, so each try has a letter of its own: <run>-0, <run>-0b, <run>-0c.
  _repeats       = ["b", "c"]
  _first_try     = { letter = "", of = [], tries = 0 }
  _pause_seconds = min(15, local.poll_seconds)
  _sdk           = "${local._arn_prefix}:states:::aws-sdk:sagemaker"

  # A throttled request arrives as SageMaker.SageMakerException, as every error does for which SageMaker's API has no
  # name. So does a request that is wrong, and patience tells them apart by their words.
  _retry_create = [{
    ErrorEquals     = ["SageMaker.ThrottlingException", "sagemaker.ThrottlingException", "SageMaker.SdkClientException"]
    IntervalSeconds = 2
    BackoffRate     = 2
    MaxDelaySeconds = 60
    MaxAttempts     = 6
    JitterStrategy  = "FULL"
  }]
  # Reading is harmless to repeat, and giving up loses sight of a job that costs money: three hours at 15 s and more.
  _retry_describe = [{
    ErrorEquals     = ["States.ALL"]
    IntervalSeconds = local._pause_seconds
    BackoffRate     = 2
    MaxDelaySeconds = 300
    MaxAttempts     = 40
  }]

  _task_states = [
    for task in local._tasks : [
      {
        "${task.name}: submit" = {
          Comment        = task.comment
          Type           = "Task"
          Resource       = "${local._sdk}:create${local._kinds[task.kind].api}"
          Parameters     = task.request
          ResultSelector = { name = task.name }
          ResultPath     = "$.attempt"
          Retry          = local._retry_create
          Catch          = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${task.name}: refused" }]
          Next           = "${task.name}: wait"
        }

        # From here on a refusal looks like a training job that failed.
        "${task.name}: refused" = {
          Type = "Pass"
          Parameters = {
            attempt      = { name = task.name }
            "attempts.$" = "$.attempts"
            "error.$"    = "$.error"
            repeat = {
              "letter.$" = "$.repeat.letter"
              "of.$"     = "$.repeat.of"
              "tries.$"  = "States.MathAdd($.repeat.tries, 1)"
            }
            job = {
              "TrainingJobName.$" = task.job
              TrainingJobStatus   = "Refused"
            }
          }
          Next = "${task.name}: refusal"
        }

        # The name is ours alone, so an earlier try has created the job.
        "${task.name}: refusal" = {
          Type    = "Choice"
          Choices = [{ Variable = "$.error.Error", StringMatches = "*ResourceInUse*", Next = "${task.name}: wait" }]
          Default = "refusal"
        }

        # The job may still train and cost money, so no other attempt starts beside it.
        "${task.name}: lost" = {
          Type = "Pass"
          Parameters = {
            "TrainingJobName.$" = task.job
            TrainingJobStatus   = "Lost"
          }
          ResultPath = "$.job"
          Next       = "refusal"
        }

        "${task.name}: wait" = {
          Type    = "Wait"
          Seconds = local.poll_seconds
          Next    = "${task.name}: describe"
        }

        "${task.name}: describe" = merge(
          {
            Type       = "Task"
            Resource   = "${local._sdk}:describe${local._kinds[task.kind].api}"
            Parameters = { "${local._kinds[task.kind].api}Name.$" = task.job }
            ResultPath = "$.job"
            Retry      = local._retry_describe
            Catch      = [{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "${task.name}: lost" }]
            Next       = "${task.name}: judge"
          },
          { for answer in [local._kinds[task.kind].answer] : "ResultSelector" => answer if length(answer) > 0 },
        )

        "${task.name}: judge" = {
          Type = "Choice"
          Choices = concat(
            [merge(local._kinds[task.kind].success, { Next = task.done })],
            [
              for status in ["InProgress", "Stopping"] :
              { Variable = local._kinds[task.kind].status, StringEquals = status, Next = "${task.name}: wait" }
            ],
            [
              for status, state in merge(local._kinds[task.kind].ends, task.ends) :
              { Variable = local._kinds[task.kind].status, StringEquals = status, Next = state }
            ],
          )
          Default = local._kinds[task.kind].failure
        }

        "${task.name}: ended" = {
          Type       = "Pass"
          InputPath  = "$.note"
          ResultPath = "$.attempts['${task.record}']"
          Next       = length(task.next) == 0 ? "failed" : "${task.name}: next"
        }
      },
      {
        for edges in [task.next] : "${task.name}: next" => {
          Type = "Choice"
          Choices = concat(
            [{ Variable = "$.job.TrainingJobStatus", StringEquals = "Lost", Next = "failed" }],
            [
              for class, target in edges : {
                Variable     = "$.class"
                StringEquals = class
                Next         = contains(task.release, target) ? "${task.name}: release for ${target}" : "${target}: submit"
              }
            ],
          )
          Default = "failed"
        } if length(edges) > 0
      },
      {
        for target in task.release : "${task.name}: release for ${target}" => {
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
    ]
  ]

  # A job that waits for instances for longer than max_pending is Stopped, as one that a person stops, and never
  # started. No document has the word of its secondary status, so it gets the one of the table (Batch guide).
  _training_states = [
    {
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
    },
    {
      for state in ["stopped"] : state => {
        Type = "Choice"
        Choices = concat(
          [{ Variable = "$.job.TrainingStartTime", IsPresent = true, Next = "classify" }],
          [
            for row in local._rows.secondary_status :
            { Variable = "$.job.SecondaryStatus", StringEquals = row.glob, Next = "classify" } if row.class != "stopped"
          ],
        )
        Default = "stopped while pending"
      } if local._waits_for_capacity
    },
    {
      for state in ["stopped while pending"] : state => {
        Type       = "Pass"
        Result     = "MaxPendingTimeExceeded"
        ResultPath = "$.job.SecondaryStatus"
        Next       = "classify"
      } if local._waits_for_capacity
    },
  ]
  _waits_for_capacity = anytrue([for a in var.attempts : a.max_pending_seconds != null])

  _shared_states = [
    {
      # The role creates no training jobs for a run with another name, such as a console proposes, and IAM's refusal
      # would come late and say less. A pattern of Step Functions has no sign for a single character.
      named = {
        Type = "Choice"
        Choices = [
          for pattern in local._run_patterns :
          { Variable = "$$.Execution.Name", StringMatches = pattern, Next = "begin" }
        ]
        Default = "misnamed"
      }

      misnamed = {
        Type  = "Fail"
        Error = "Sagefit.name"
        Cause = "A run of this job is named ${var.name}-<yymmdd>-<hhmmss>, and this one is not, so nothing was started. Start it with `sagefit start`, or give that name."
      }

      begin = {
        Type   = "Pass"
        Result = { attempts = {}, repeat = local._first_try }
        Next   = "${try(local._tasks[0].name, "-")}: submit"
      }

      done = { Type = "Succeed" }

      # An error has a name, and mostly says more.
      refusal = {
        Type    = "Choice"
        Choices = [{ Variable = "$.error.Cause", IsPresent = true, Next = "refusal with cause" }]
        Default = "refusal without cause"
      }

      "refusal with cause" = {
        Type = "Pass"
        Parameters = {
          "TrainingJobName.$"   = "$.job.TrainingJobName"
          "TrainingJobStatus.$" = "$.job.TrainingJobStatus"
          "FailureReason.$"     = "States.Format('{}: {}', $.error.Error, $.error.Cause)"
        }
        ResultPath = "$.job"
        Next       = "classify refusal"
      }

      "refusal without cause" = {
        Type       = "Pass"
        InputPath  = "$.error.Error"
        ResultPath = "$.job.FailureReason"
        Next       = "classify refusal"
      }

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
          # What is not about the script may be what a create request is refused with.
          [{ Not = { Variable = "$.job.FailureReason", StringMatches = "AlgorithmError*" }, Next = "classify refusal" }],
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
              { Variable = "$.repeat.tries", NumericLessThanEquals = local._patience },
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
          letter    = letter
          "of.$"    = "States.Array(${join(", ", concat([for m in range(n) : "$.repeat.of[${m}]"], ["$.job.TrainingJobName"]))})"
          "tries.$" = "$.repeat.tries"
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
  ]

  # Classes that a rule can find; code is what is left when none matches.
  _found   = distinct(flatten([for rows in values(local._rows) : rows[*].class]))
  _classes = [for c in local.failure_classes : c if c == "code" || contains(local._found, c)]

  # Sizes in bytes, rounded up to three: four letters of base64.
  _definition_bytes = length(base64encode(jsonencode(local.definition))) / 4 * 3
  _request_bytes    = { for i, a in var.attempts : a.name => length(base64encode(jsonencode(local.attempt_requests[i]))) / 4 * 3 }

  _run_patterns = concat(["${var.name}-*-*"], var.schedule == null ? [] : ["${local._schedule_run_prefix}-*"])

  _states = flatten([
    local._shared_states,
    [for kind, row in local._kinds : row.states if contains(local._tasks[*].kind, kind)],
    local._task_states,
  ])

  definition = {
    Comment        = join(": ", compact(["Sagefit job ${var.name}", var.description]))
    StartAt        = "named"
    TimeoutSeconds = local._deadline_seconds
    # Not merge(), which takes the last of two states of one name: this refuses them.
    States = { for each in flatten([for states in local._states : [for name, state in states : { name = name, state = state }]]) : each.name => each.state }
  }
}
