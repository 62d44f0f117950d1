# A run follows its jobs and is not one with them: where a person stops the run, or its deadline does, its training job
# goes on and costs money. This small state machine stops it.
#
#   event of a run that ended -> began -> look: stop what still runs -> pools: give back what is kept -> again, or done
#
# A list of SageMaker takes a page of jobs and filters it by name and status then: in an account that has many jobs most
# pages are empty. So each list is read to its last page, from the newest job on, back to the start of the run.
locals {
  # Not the start of a job's names, whose runs would start it: an underscore is in none of them.
  name = "${var.context.prefix}_cleanup"

  _arn = {
    events    = "arn:${var.context.partition}:events:${var.context.region}:${var.context.account_id}:rule/${var.context.prefix}-cleanup"
    machine   = "arn:${var.context.partition}:states:${var.context.region}:${var.context.account_id}:stateMachine:${local.name}"
    runs      = "arn:${var.context.partition}:states:${var.context.region}:${var.context.account_id}:stateMachine:${var.context.prefix}-"
    ended     = "arn:${var.context.partition}:states:${var.context.region}:${var.context.account_id}:execution:${var.context.prefix}-*:*"
    roles     = "arn:${var.context.partition}:iam::${var.context.account_id}:role/sagefit/"
    sagemaker = "arn:${var.context.partition}:sagemaker:${var.context.region}:${var.context.account_id}"
    sdk       = "arn:${var.context.partition}:states:::aws-sdk"
  }

  # The kinds of jobs of a run, in the order in which they are stopped: a tuning job makes training jobs.
  _kinds = [
    { api = "HyperParameterTuningJob", list = "HyperParameterTuningJobs", summaries = "HyperParameterTuningJobSummaries", resource = "hyper-parameter-tuning-job" },
    { api = "TrainingJob", list = "TrainingJobs", summaries = "TrainingJobSummaries", resource = "training-job" },
    { api = "ProcessingJob", list = "ProcessingJobs", summaries = "ProcessingJobSummaries", resource = "processing-job" },
  ]

  # What is listed, with what is done to each job that is found, and where the last page leads.
  _lists = concat(
    [
      for i, kind in local._kinds : merge(kind, {
        of    = kind.list
        only  = { StatusEquals = "InProgress" }
        call  = "stop${kind.api}"
        acts  = "stop ${kind.list}"
        noted = "note ${kind.list}"
        then  = i + 1 < length(local._kinds) ? "list ${local._kinds[min(i + 1, length(local._kinds) - 1)].list}" : "looked"
      })
    ],
    [
      for kind in local._kinds : merge(kind, {
        of    = "pools"
        only  = { WarmPoolStatusEquals = "Available" }
        call  = "updateTrainingJob"
        acts  = "release pools"
        noted = "more pools"
        then  = "enough"
      }) if kind.api == "TrainingJob"
    ],
  )

  # A create that was under way, and instances that are kept once a job has stopped, are seen at a later look.
  _looks = 5

  _retry = [{
    ErrorEquals     = ["States.ALL"]
    IntervalSeconds = 5
    BackoffRate     = 2
    MaxAttempts     = 6
    JitterStrategy  = "FULL"
  }]

  # Lists find a text anywhere in a name. Names that begin with "<run>-" are those from "<run>-" up to "<run>.", which
  # is the next sign after the hyphen. Others are left alone; one that is found at the same time, of a job whose name ends
  # like this one's, only makes it look again.
  _each_of_this_run = {
    for call, parameters in merge(
      { for kind in local._kinds : "stop${kind.api}" => { "${kind.api}Name.$" = "$.name" } },
      { updateTrainingJob = { "TrainingJobName.$" = "$.name", ResourceConfig = { KeepAlivePeriodInSeconds = 0 } } },
      ) : call => {
      Type           = "Map"
      ItemsPath      = "$.found.${one([for list in local._lists : list.summaries if list.call == call])}"
      MaxConcurrency = 1
      ItemSelector = {
        "name.$" = "$$.Map.Item.Value.${one([for list in local._lists : list.api if list.call == call])}Name"
        "from.$" = "$.from"
        "to.$"   = "$.to"
      }
      ItemProcessor = {
        StartAt = "${call}: of this run"
        # A name of a state is used once in the whole machine, also within its Map states.
        States = {
          "${call}: of this run" = {
            Type = "Choice"
            Choices = [{
              And = [
                { Variable = "$.name", StringGreaterThanEqualsPath = "$.from" },
                { Variable = "$.name", StringLessThanPath = "$.to" },
              ]
              Next = call
            }]
            Default = "${call}: left alone"
          }
          # One that has ended meanwhile is refused; one that goes on is found again at the next look.
          (call) = {
            Type       = "Task"
            Resource   = "${local._arn.sdk}:sagemaker:${call}"
            Parameters = parameters
            ResultPath = null
            Catch      = [{ ErrorEquals = ["States.ALL"], ResultPath = null, Next = "${call}: left alone" }]
            End        = true
          }
          "${call}: left alone" = { Type = "Succeed" }
        }
      }
      ResultPath = null
    }
  }

  definition = {
    Comment = "Stops the jobs of runs of ${var.context.prefix} that ended without them"
    StartAt = "began"
    # Looks and the pauses between them, with time for retries.
    TimeoutSeconds = local._looks * var.interval_seconds + 3600
    States = merge(
      {
        # The event has the start as a number, which no intrinsic makes a time of.
        began = {
          Type           = "Task"
          Resource       = "${local._arn.sdk}:sfn:describeExecution"
          Parameters     = { "ExecutionArn.$" = "$.execution" }
          ResultSelector = { "since.$" = "$.StartDate" }
          ResultPath     = "$.began"
          Retry          = [for retry in local._retry : merge(retry, { MaxAttempts = 2 })]
          Catch          = [{ ErrorEquals = ["States.ALL"], ResultPath = null, Next = "not known" }]
          Next           = "begin"
        }

        # Of a job that was destroyed meanwhile, or where a policy of the company forbids the question. All jobs of the
        # account are looked at then, which takes longer and misses none.
        "not known" = {
          Type       = "Pass"
          Result     = { since = "1970-01-01T00:00:00Z" }
          ResultPath = "$.began"
          Next       = "begin"
        }

        begin = {
          Type = "Pass"
          Parameters = {
            "run.$"    = "$.run"
            "status.$" = "$.status"
            "since.$"  = "$.began.since"
            "from.$"   = "States.Format('{}-', $.run)"
            "to.$"     = "States.Format('{}.', $.run)"
            looks      = 0
          }
          Next = "look"
        }

        look = {
          Type = "Pass"
          Parameters = {
            "run.$"    = "$.run"
            "status.$" = "$.status"
            "since.$"  = "$.since"
            "from.$"   = "$.from"
            "to.$"     = "$.to"
            "looks.$"  = "States.MathAdd($.looks, 1)"
            running    = { names = [] }
          }
          Next = "list ${local._kinds[0].list}"
        }

        # A run that failed is over with its jobs, but for one that it lost sight of. Its instances are kept for the next.
        looked = {
          Type = "Choice"
          Choices = [
            {
              And = [
                { Variable = "$.status", StringEquals = "FAILED" },
                { Variable = "$.running.names[0]", IsPresent = false },
              ]
              Next = "done"
            },
            { Variable = "$.status", StringEquals = "FAILED", Next = "enough" },
          ]
          Default = "list pools"
        }

        enough = {
          Type = "Choice"
          Choices = [
            { Variable = "$.looks", NumericLessThan = local._looks, Next = "pause" },
            { Variable = "$.running.names[0]", IsPresent = true, Next = "still running" },
          ]
          Default = "done"
        }

        pause = {
          Type    = "Wait"
          Seconds = var.interval_seconds
          Next    = "look"
        }

        "still running" = {
          Type      = "Fail"
          Error     = "Sagefit.StillRunning"
          CausePath = "States.Format('Jobs of run {} still run and cost money: {}. Stop them in SageMaker.', $.run, States.JsonToString($.running.names))"
        }

        done = { Type = "Succeed" }
      },
      merge([
        for list in local._lists : merge(
          # The first page, and those after it.
          {
            for state, token in { "list ${list.of}" = {}, "next ${list.of}" = { "NextToken.$" = "$.found.NextToken" } } : state => {
              Type                                  = "Task"
              Resource                              = "${local._arn.sdk}:sagemaker:list${list.list}"
              Parameters = merge(list.only, token, {
                "NameContains.$"      = "$.from"
                "CreationTimeAfter.$" = "$.since"
                SortBy                = "CreationTime"
                SortOrder             = "Descending"
                MaxResults            = 100
              })
              ResultPath = "$.found"
              Retry      = local._retry
              Next       = "any ${list.of}"
            }
          },
          {
            "any ${list.of}" = {
              Type    = "Choice"
              Choices = [{ Variable = "$.found.${list.summaries}[0]", IsPresent = true, Next = list.acts }]
              Default = "more ${list.of}"
            }
            (list.acts) = merge(local._each_of_this_run[list.call], { Next = list.noted })
            "more ${list.of}" = {
              Type    = "Choice"
              Choices = [{ Variable = "$.found.NextToken", IsPresent = true, Next = "next ${list.of}" }]
              Default = list.then
            }
          },
        )
      ]...),
      {
        for kind in local._kinds : "note ${kind.list}" => {
          Type       = "Pass"
          Parameters = { "names.$" = "$.found.${kind.summaries}[*].${kind.api}Name" }
          ResultPath = "$.running"
          Next       = "more ${kind.list}"
        }
      },
    )
  }

  # By tag, because names of jobs carry the job and not the platform.
  _of_this_platform = { StringEquals = { "aws:ResourceTag/sagefit:platform" = var.platform } }

  policy = {
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          # The lists take no resource.
          Sid      = "ListJobs"
          Effect   = "Allow"
          Action   = [for kind in local._kinds : "sagemaker:List${kind.list}"]
          Resource = "*"
        },
      ],
      [
        {
          Sid      = "ReadWhenRunsBegan"
          Effect   = "Allow"
          Action   = "states:DescribeExecution"
          Resource = local._arn.ended
        },
      ],
      [
        for kind in local._kinds : {
          Sid       = "Stop${kind.list}"
          Effect    = "Allow"
          Action    = "sagemaker:Stop${kind.api}"
          Resource  = "${local._arn.sagemaker}:${kind.resource}/*"
          Condition = local._of_this_platform
        }
      ],
      [
        {
          Sid      = "ReleaseWarmPools"
          Effect   = "Allow"
          Action   = "sagemaker:UpdateTrainingJob"
          Resource = "${local._arn.sagemaker}:training-job/*"
          Condition = merge(local._of_this_platform, {
            NumericEquals = { "sagemaker:KeepAlivePeriod" = "0" }
          })
        },
      ],
    )
  }

  _role_arns  = { for role, full in local._role_names : role => "${local._arn.roles}${full}" }
  _role_names = { for role in [local.name, "${local.name}-start"] : role => "${role}${var.context.global_suffix}" }

  # Whoever may assume a role: the service, for the one thing that has it.
  _roles = {
    (local.name) = {
      description = "Stops the jobs of runs of ${var.context.prefix} that ended without them"
      service     = "states.amazonaws.com"
      source      = local._arn.machine
      policy      = local.policy
    }
    "${local.name}-start" = {
      description = "Starts ${local.name} when a run of ${var.context.prefix} has ended"
      service     = "events.amazonaws.com"
      source      = local._arn.events
      policy = {
        Version = "2012-10-17"
        Statement = [{
          Sid      = "StartCleanup"
          Effect   = "Allow"
          Action   = "states:StartExecution"
          Resource = local._arn.machine
        }]
      }
    }
  }
}

resource "aws_iam_role" "this" {
  for_each = local._roles

  name                 = local._role_names[each.key]
  path                 = "/sagefit/"
  description          = each.value.description
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.context.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = each.value.service }
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.context.account_id }
        ArnEquals    = { "aws:SourceArn" = each.value.source }
      }
    }]
  })

  lifecycle {
    postcondition {
      condition     = self.arn == local._role_arns[each.key]
      error_message = "context: the ARN of the role is ${self.arn}, and policies name ${local._role_arns[each.key]}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_iam_role_policy" "this" {
  for_each = local._roles

  name   = "cleanup"
  role   = aws_iam_role.this[each.key].name
  policy = jsonencode(each.value.policy)
}

resource "aws_sfn_state_machine" "cleanup" {
  #checkov:skip=CKV_AWS_284:It lists and stops, in a few states; tracing turns X-Ray on for who pays for it
  #checkov:skip=CKV_AWS_285:Its history, which Step Functions keeps for 90 days, says all that a log would

  name       = local.name
  role_arn   = local._role_arns[local.name]
  definition = jsonencode(local.definition)
  tags       = var.context.tags

  depends_on = [aws_iam_role_policy.this]

  lifecycle {
    postcondition {
      condition     = self.arn == local._arn.machine
      error_message = "context: the ARN of the state machine is ${self.arn}, and policies name ${local._arn.machine}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_cloudwatch_event_rule" "this" {
  name        = "${var.context.prefix}-cleanup"
  description = "Runs of ${var.context.prefix} that ended without a model: what still runs of them is stopped"
  tags        = var.context.tags

  event_pattern = jsonencode({
    source        = ["aws.states"]
    "detail-type" = ["Step Functions Execution Status Change"]
    detail = {
      stateMachineArn = [{ prefix = local._arn.runs }]
      status          = ["ABORTED", "FAILED", "TIMED_OUT"]
    }
  })

  lifecycle {
    postcondition {
      condition     = self.arn == local._arn.events
      error_message = "context: the ARN of the rule is ${self.arn}, and policies name ${local._arn.events}. Correct the partition, the Region or the account there, or take the provider of that place."
    }
  }
}

resource "aws_cloudwatch_event_target" "this" {
  rule      = aws_cloudwatch_event_rule.this.name
  target_id = "cleanup"
  arn       = local._arn.machine
  role_arn  = local._role_arns["${local.name}-start"]

  input_transformer {
    input_paths = {
      run       = "$.detail.name"
      status    = "$.detail.status"
      execution = "$.detail.executionArn"
    }
    # Written out: jsonencode would turn the < and > of the places into escapes.
    input_template = "{\"run\": \"<run>\", \"status\": \"<status>\", \"execution\": \"<execution>\"}"
  }

  depends_on = [aws_iam_role_policy.this, aws_sfn_state_machine.cleanup]
}
