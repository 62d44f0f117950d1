# Graph, role, names and schedule of a job.
mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "us-east-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
}

variables {
  name = "digits"
  platform = {
    schema     = 1
    name       = "dev"
    partition  = "aws"
    region     = "us-east-1"
    account_id = "123456789012"
    role_arn   = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
    buckets = {
      data        = "sagefit-dev-123456789012-us-east-1-data"
      artifacts   = "sagefit-dev-123456789012-us-east-1-artifacts"
      checkpoints = "sagefit-dev-123456789012-us-east-1-checkpoints"
    }
    repository_url = "123456789012.dkr.ecr.us-east-1.amazonaws.com/sagefit-dev"
    warm_pools     = { small = { instance_type = "ml.m5.large", keep_alive_seconds = 1800 } }
    tags           = { team = "vision" }
  }
  image = { framework = "sklearn", version = "1.2-1" }
  code  = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  attempts = [
    { name = "first", instance_type = "ml.m5.large", reason = "small", max_runtime_seconds = 3600, next = { host_memory = "second", capacity = "third" } },
    { name = "second", instance_type = "ml.m5.xlarge", max_runtime_seconds = 3600, next = { host_memory = "third" } },
    { name = "third", instance_type = "ml.m5.2xlarge", max_runtime_seconds = 3600 },
  ]
}

run "every_transition_has_a_target" {
  command = plan

  assert {
    condition = alltrue(flatten([
      for name, state in output.definition.States : [
        for target in compact(concat(
          [try(state.Next, ""), try(state.Default, "")],
          try([for rule in state.Choices : rule.Next], []),
          try([for rule in state.Catch : rule.Next], []),
        )) : contains(keys(output.definition.States), target)
      ]
    ]))
    error_message = "a transition leads to a state that exists"
  }
  assert {
    condition     = alltrue([for name in keys(output.definition.States) : length(name) <= 80])
    error_message = "state names have 80 characters at most"
  }
  assert {
    condition = alltrue([
      for name, state in output.definition.States :
      contains(["Succeed", "Fail"], state.Type) || can(state.Next) || can(state.Default)
    ])
    error_message = "every other state goes on"
  }
  assert {
    condition = length(setsubtract(keys(output.definition.States), flatten(["named", [
      for name, state in output.definition.States : compact(concat(
        [try(state.Next, ""), try(state.Default, "")],
        try([for rule in state.Choices : rule.Next], []),
        try([for rule in state.Catch : rule.Next], []),
      ))
    ]]))) == 0
    error_message = "every state is led to"
  }
  assert {
    condition     = alltrue([for name, state in output.definition.States : length(state.Choices) > 0 if state.Type == "Choice"])
    error_message = "a choice has rules"
  }
}

run "a_run_starts_with_the_first_attempt" {
  command = plan

  assert {
    condition = jsonencode(output.definition.States.named.Choices) == jsonencode([
      { Next = "begin", StringMatches = "${var.name}-*-*", Variable = "$$.Execution.Name" },
    ])
    error_message = "only a run with a name of this job begins"
  }
  assert {
    condition     = output.definition.StartAt == "named" && output.definition.States.begin.Next == "first: submit"
    error_message = "begin leads to the first attempt"
  }
  assert {
    condition     = output.definition.States["first: submit"].Comment == "1 x ml.m5.large: small"
    error_message = "the graph says why an attempt is there"
  }
  assert {
    condition     = output.attempts == tolist(["first", "second", "third"])
    error_message = "attempts keep their order"
  }
  assert {
    condition     = output.worst_case_seconds == 10800
    error_message = "the worst case is every attempt in full"
  }
}

run "edges_are_the_ones_of_next" {
  command = plan

  assert {
    condition = jsonencode(output.definition.States["first: next"].Choices) == jsonencode([
      { Variable = "$.job.TrainingJobStatus", StringEquals = "Lost", Next = "failed" },
      { Variable = "$.class", StringEquals = "capacity", Next = "third: submit" },
      { Variable = "$.class", StringEquals = "host_memory", Next = "second: submit" },
    ])
    error_message = "an edge leads to its attempt"
  }
  assert {
    condition     = output.definition.States["first: next"].Default == "failed" && output.definition.States["second: next"].Default == "failed" && output.definition.States["third: ended"].Next == "failed"
    error_message = "a class without an edge ends the run"
  }
  assert {
    condition = jsonencode(output.definition.States["second: ended"]) == jsonencode({
      Type       = "Pass"
      InputPath  = "$.note"
      ResultPath = "$.attempts['1']"
      Next       = "second: next"
    })
    error_message = "a failed attempt is recorded under its index"
  }
  assert {
    condition = jsonencode(output.definition.States.note) == jsonencode({
      Type       = "Pass"
      ResultPath = "$.note"
      Next       = "settle"
      Parameters = {
        "attempt.$"      = "$.attempt.name"
        "class.$"        = "$.class"
        "training_job.$" = "$.job.TrainingJobName"
        "evidence.$"     = "$.job.FailureReason"
        "repeats.$"      = "$.repeat.of"
      }
    })
    error_message = "the record names the attempt, what ended it and why"
  }
  assert {
    condition     = jsonencode(output.definition.States["second: refused"].Parameters.job["TrainingJobName.$"]) == jsonencode("States.Format('{}-1{}', $$.Execution.Name, $.repeat.letter)")
    error_message = "a refusal has the name of the training job that it would have been"
  }
  assert {
    condition     = output.definition.States.failed.ErrorPath == "States.Format('Sagefit.{}', $.class)" && output.definition.States.failed.CausePath == "States.JsonToString($.attempts)"
    error_message = "a failed run names the class and tells the record"
  }
}

run "a_classified_failure_comes_back_to_its_attempt" {
  command = plan

  assert {
    condition = jsonencode(output.definition.States.route.Choices) == jsonencode([
      for name in ["first", "second", "third"] : { Variable = "$.attempt.name", StringEquals = name, Next = "${name}: ended" }
    ])
    error_message = "the state says which attempt it is"
  }
  assert {
    condition = alltrue([
      for name in ["first", "second", "third"] :
      jsonencode(output.definition.States["${name}: submit"].ResultSelector) == jsonencode({ name = name })
      && output.definition.States["${name}: submit"].ResultPath == "$.attempt"
      && jsonencode(output.definition.States["${name}: refused"].Parameters.attempt) == jsonencode({ name = name })
    ])
    error_message = "a submission notes its attempt, refused or not"
  }
  assert {
    condition = toset([for name in keys(output.definition.States) : trimprefix(name, "class: ") if startswith(name, "class: ")]) == toset([
      "gpu_memory", "host_memory", "shared_memory", "disk", "capacity", "quota", "spot",
      "time", "stopped", "data", "permission", "internal", "code",
    ])
    error_message = "every class can be found"
  }
  assert {
    condition = alltrue([
      for name, state in output.definition.States : jsonencode(state) == jsonencode({
        Type       = "Pass"
        Result     = trimprefix(name, "class: ")
        ResultPath = "$.class"
        Next       = contains(["class: internal", "class: permission"], name) ? "patience" : "note"
      }) if startswith(name, "class: ")
    ])
    error_message = "a class is noted, and only passing ones ask for patience"
  }
}

run "the_table_stands_once" {
  command = plan

  assert {
    condition = toset([
      for name, state in output.definition.States : name
      if anytrue([for rule in try(state.Choices, []) : can(rule.StringMatches)]) && !endswith(name, ": refusal") && name != "named"
    ]) == toset(["classify", "classify refusal"])
    error_message = "attempts share one classification"
  }
}

run "only_completed_is_success" {
  command = plan

  assert {
    condition = jsonencode(output.definition.States["first: judge"].Choices[0]) == jsonencode({
      And = [
        { Variable = "$.job.TrainingJobStatus", StringEquals = "Completed" },
        { Variable = "$.job.SecondaryStatus", StringEquals = "Completed" },
      ]
      Next = "completed"
    })
    error_message = "both statuses are asked"
  }
  assert {
    condition     = [for rule in output.definition.States["first: judge"].Choices : rule.Next] == ["completed", "first: wait", "first: wait"]
    error_message = "there is one way to success"
  }
  assert {
    condition = alltrue(flatten([
      for name, state in output.definition.States : [
        for target in concat([try(state.Next, ""), try(state.Default, "")], try([for rule in state.Choices : rule.Next], [])) :
        endswith(name, ": judge") if target == "completed"
      ]
    ]))
    error_message = "only a judge leads to success"
  }
  assert {
    condition     = [for rule in slice(output.definition.States["first: judge"].Choices, 1, 3) : rule.StringEquals] == ["InProgress", "Stopping"] && output.definition.States["first: judge"].Default == "classify"
    error_message = "what neither completed nor runs is classified"
  }
  assert {
    condition     = output.definition.States.classify.Default == "class: code" && output.definition.States["classify refusal"].Default == "class: code"
    error_message = "what nothing matches is the code's own failure"
  }
  assert {
    condition = jsonencode(output.definition.States.completed) == jsonencode({
      Type = "Pass"
      Next = "done"
      Parameters = {
        "attempts.$"     = "$.attempts"
        "attempt.$"      = "$.attempt.name"
        "training_job.$" = "$.job.TrainingJobName"
        "model.$"        = "$.job.ModelArtifacts.S3ModelArtifacts"
      }
    })
    error_message = "a run puts out its record, its training job and its model"
  }
}

run "a_missing_reason_is_asked_for_before_it_is_read" {
  command = plan

  assert {
    condition = jsonencode(output.definition.States.classify.Choices[0]) == jsonencode({
      Variable = "$.job.FailureReason", IsPresent = false, Next = "no reason"
    })
    error_message = "IsPresent comes before every rule that reads the reason"
  }
  assert {
    condition     = !strcontains(jsonencode(output.definition.States["first: judge"]), "FailureReason")
    error_message = "the rules before it read the statuses only"
  }
  assert {
    condition     = output.definition.States["no reason"].InputPath == "$.job.SecondaryStatus" && output.definition.States["no reason"].ResultPath == "$.job.FailureReason" && output.definition.States["no reason"].Next == "classify"
    error_message = "the status stands in for a reason"
  }
}

run "choice_rules_keep_the_order_of_the_table" {
  command = plan

  assert {
    condition = jsonencode(slice(output.definition.States.classify.Choices, 1, length(output.definition.States.classify.Choices))) == jsonencode(concat(
      [for p in jsondecode(file("failures.json")).patterns : { Variable = "$.job.SecondaryStatus", StringEquals = p.glob, Next = "class: ${p.class}" } if p.where == "secondary_status"],
      [for p in jsondecode(file("failures.json")).patterns : { Variable = "$.job.FailureReason", StringMatches = p.glob, Next = "class: ${p.class}" } if contains(["failure_reason", "line", "reason"], p.where)],
      [{ Not = { Variable = "$.job.FailureReason", StringMatches = "AlgorithmError*" }, Next = "classify refusal" }],
    ))
    error_message = "a status or a reason leads to its class, and the first match of failures.json wins"
  }
  assert {
    condition = jsonencode(output.definition.States["classify refusal"].Choices) == jsonencode([
      for p in jsondecode(file("failures.json")).patterns : { Variable = "$.job.FailureReason", StringMatches = p.glob, Next = "class: ${p.class}" } if p.where == "create_error"
    ])
    error_message = "a refusal is told by the rows about refusals only"
  }
}

run "a_refusal_of_our_own_name_goes_on" {
  command = plan

  assert {
    condition     = output.definition.States["first: refusal"].Choices[0].StringMatches == "*ResourceInUse*" && output.definition.States["first: refusal"].Choices[0].Variable == "$.error.Error" && output.definition.States["first: refusal"].Choices[0].Next == "first: wait"
    error_message = "the training job exists: wait for it"
  }
  assert {
    condition     = length(output.definition.States["first: refusal"].Choices) == 1 && output.definition.States["first: refusal"].Default == "refusal"
    error_message = "any other refusal is classified"
  }
}

run "an_error_without_a_cause_is_a_reason_too" {
  command = plan

  assert {
    condition = jsonencode([output.definition.States.refusal.Choices, output.definition.States.refusal.Default]) == jsonencode([
      [{ Variable = "$.error.Cause", IsPresent = true, Next = "refusal with cause" }], "refusal without cause",
    ])
    error_message = "the cause is read where there is one"
  }
  assert {
    condition     = output.definition.States["refusal with cause"].Parameters["FailureReason.$"] == "States.Format('{}: {}', $.error.Error, $.error.Cause)" && output.definition.States["refusal with cause"].ResultPath == "$.job"
    error_message = "name and cause are the reason"
  }
  assert {
    condition     = output.definition.States["refusal without cause"].InputPath == "$.error.Error" && output.definition.States["refusal without cause"].ResultPath == "$.job.FailureReason"
    error_message = "the name alone is"
  }
  assert {
    condition     = alltrue([for state in ["refusal with cause", "refusal without cause"] : output.definition.States[state].Next == "classify refusal"])
    error_message = "and both are classified"
  }
}

run "no_attempt_starts_beside_a_job_that_is_out_of_sight" {
  command = plan

  assert {
    condition     = jsonencode(output.definition.States["first: describe"].Catch) == jsonencode([{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "first: lost" }])
    error_message = "a job that cannot be looked at is lost"
  }
  assert {
    condition = jsonencode(output.definition.States["first: lost"]) == jsonencode({
      Type       = "Pass"
      ResultPath = "$.job"
      Next       = "refusal"
      Parameters = { "TrainingJobName.$" = "States.Format('{}-0{}', $$.Execution.Name, $.repeat.letter)", TrainingJobStatus = "Lost" }
    })
    error_message = "its error is the reason"
  }
  assert {
    condition     = alltrue([for name in ["first", "second"] : jsonencode(output.definition.States["${name}: next"].Choices[0]) == jsonencode({ Variable = "$.job.TrainingJobStatus", StringEquals = "Lost", Next = "failed" })])
    error_message = "its run ends, whatever the class"
  }
}

run "a_job_that_waits_for_too_long_has_no_capacity" {
  command = plan

  variables {
    image = { framework = "pytorch", version = "2.6" }
    attempts = [
      { name = "first", instance_type = "ml.g5.xlarge", max_runtime_seconds = 3600, max_pending_seconds = 7200, next = { capacity = "second" } },
      { name = "second", instance_type = "ml.m5.large", max_runtime_seconds = 3600 },
    ]
  }

  assert {
    condition = jsonencode(output.definition.States["first: judge"].Choices[3]) == jsonencode({
      Variable = "$.job.TrainingJobStatus", StringEquals = "Stopped", Next = "stopped"
    })
    error_message = "a stop is looked at where pending has a limit"
  }
  assert {
    condition     = !strcontains(jsonencode(output.definition.States["second: judge"]), "Stopped")
    error_message = "elsewhere a person has stopped it"
  }
  assert {
    condition = jsonencode(output.definition.States.stopped) == jsonencode({
      Type = "Choice"
      Choices = concat(
        [{ Variable = "$.job.TrainingStartTime", IsPresent = true, Next = "classify" }],
        [
          for p in jsondecode(file("failures.json")).patterns : { Variable = "$.job.SecondaryStatus", StringEquals = p.glob, Next = "classify" }
          if p.where == "secondary_status" && p.class != "stopped"
        ],
      )
      Default = "stopped while pending"
    })
    error_message = "what started, and what has a status of its own, is no lack of capacity"
  }
  assert {
    condition = jsonencode(output.definition.States["stopped while pending"]) == jsonencode({
      Type = "Pass", Result = "MaxPendingTimeExceeded", ResultPath = "$.job.SecondaryStatus", Next = "classify"
    }) && contains([for rule in output.definition.States.classify.Choices : "${try(rule.StringEquals, "-")} ${rule.Next}"], "MaxPendingTimeExceeded class: capacity")
    error_message = "the table has its class"
  }
}

run "without_a_limit_of_pending_a_stop_is_a_stop" {
  command = plan

  assert {
    condition     = length([for name in ["stopped", "stopped while pending"] : name if contains(keys(output.definition.States), name)]) == 0
    error_message = "no state that nothing leads to"
  }
}

run "passing_refusals_are_tried_again_a_few_times" {
  command = plan

  assert {
    condition = jsonencode(output.definition.States.patience.Choices[0]) == jsonencode({
      And = [
        { Variable = "$.job.TrainingJobStatus", StringEquals = "Refused" },
        { Variable = "$.repeat.tries", NumericLessThanEquals = 8 },
      ]
      Next = "pause"
    })
    error_message = "patience is counted, and is for refusals only"
  }
  assert {
    condition = jsonencode(output.definition.States["first: refused"].Parameters.repeat) == jsonencode({
      "letter.$" = "$.repeat.letter", "of.$" = "$.repeat.of", "tries.$" = "States.MathAdd($.repeat.tries, 1)"
    })
    error_message = "every refusal of an attempt counts"
  }
  assert {
    condition     = output.definition.States["class: internal"].Next == "patience" && output.definition.States["class: permission"].Next == "patience"
    error_message = "some refusals are tried again"
  }
  assert {
    condition     = output.definition.States["class: quota"].Next == "note"
    error_message = "a quota does not pass by waiting"
  }
  assert {
    condition     = output.definition.States.pause.Seconds == 15 && output.definition.States.pause.Next == "again"
    error_message = "a pause comes first"
  }
  assert {
    condition = jsonencode(output.definition.States.again.Choices) == jsonencode([
      for name in ["first", "second", "third"] : { Variable = "$.attempt.name", StringEquals = name, Next = "${name}: submit" }
    ])
    error_message = "the same attempt is tried again, and nothing is recorded"
  }
}

run "an_internal_error_repeats_the_attempt_twice" {
  command = plan

  assert {
    condition = jsonencode(slice(output.definition.States.patience.Choices, 1, 3)) == jsonencode([
      for before, letter in { "" = "b", b = "c" } : {
        And = [
          { Variable = "$.job.TrainingJobStatus", StringEquals = "Failed" },
          { Variable = "$.class", StringEquals = "internal" },
          { Variable = "$.repeat.letter", StringEquals = before },
        ]
        Next = "repeat: ${letter}"
      }
    ])
    error_message = "a repeat follows the one before it"
  }
  assert {
    condition     = length(output.definition.States.patience.Choices) == 3 && output.definition.States.patience.Default == "note"
    error_message = "after the last repeat the failure is noted"
  }
  assert {
    condition = jsonencode(output.definition.States["repeat: c"]) == jsonencode({
      Type       = "Pass"
      ResultPath = "$.repeat"
      Next       = "pause"
      Parameters = { letter = "c", "of.$" = "States.Array($.repeat.of[0], $.job.TrainingJobName)", "tries.$" = "$.repeat.tries" }
    })
    error_message = "a repeat has a new name and remembers the old ones"
  }
  assert {
    condition     = output.definition.States["first: submit"].Parameters["TrainingJobName.$"] == "States.Format('{}-0{}', $$.Execution.Name, $.repeat.letter)" && output.definition.States["first: describe"].Parameters["TrainingJobName.$"] == "States.Format('{}-0{}', $$.Execution.Name, $.repeat.letter)"
    error_message = "the letter is part of the name"
  }
  assert {
    condition     = jsonencode(output.definition.States.begin.Result.repeat) == jsonencode({ letter = "", of = [], tries = 0 }) && jsonencode(output.definition.States.settle.Result) == jsonencode({ letter = "", of = [], tries = 0 }) && output.definition.States.settle.ResultPath == "$.repeat" && output.definition.States.settle.Next == "route"
    error_message = "every attempt begins without a letter and with all its tries"
  }
}

run "throttling_is_waited_out" {
  command = plan

  assert {
    condition     = output.definition.States["first: submit"].Retry[0].ErrorEquals == ["SageMaker.ThrottlingException", "sagemaker.ThrottlingException", "SageMaker.SdkClientException"]
    error_message = "a throttled request is repeated"
  }
  assert {
    condition = jsonencode([for state in ["first: submit", "first: describe"] : [
      for rule in output.definition.States[state].Retry : [rule.MaxAttempts, rule.IntervalSeconds, rule.BackoffRate, rule.MaxDelaySeconds]
    ]]) == jsonencode([[[6, 2, 2, 60]], [[40, 15, 2, 300]]])
    error_message = "a request is repeated for minutes, a look at a training job for hours"
  }
  assert {
    condition     = jsonencode(output.definition.States["first: describe"].Retry[0].ErrorEquals) == jsonencode(["States.ALL"]) && output.definition.States["first: describe"].ResultPath == "$.job"
    error_message = "a look may always be repeated, and its answer is what the judge reads"
  }
  assert {
    condition     = jsonencode(output.definition.States["first: submit"].Catch) == jsonencode([{ ErrorEquals = ["States.ALL"], ResultPath = "$.error", Next = "first: refused" }])
    error_message = "what is not answered after that is a refusal"
  }
  assert {
    condition = jsonencode([
      for rule in output.definition.States["classify refusal"].Choices : rule.Next if contains(["*Throttling*", "*Rate exceeded*"], rule.StringMatches)
    ]) == jsonencode(["class: internal", "class: internal"])
    error_message = "a request that stays throttled asks for patience"
  }
}

run "polling_follows_the_time_limits" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", max_runtime_seconds = 432000 }]
  }

  assert {
    condition     = output.definition.States["first: wait"].Seconds == 216
    error_message = "2000 looks cover the allowed time"
  }
  assert {
    condition     = output.definition.TimeoutSeconds == 2600 * 216
    error_message = "the run ends before its history is full"
  }
}

run "polling_has_a_floor" {
  command = plan

  assert {
    condition     = output.definition.States["first: wait"].Seconds == 30
    error_message = "short jobs are looked at every 30 seconds"
  }
}

run "a_short_job_does_not_block_a_run_for_a_day" {
  command = plan

  assert {
    condition     = output.definition.TimeoutSeconds == 1.3 * 3 * 3600 + 3 * 7200
    error_message = "30 % on top of the attempts, and two hours to wait for the instances of each"
  }
}

run "polling_can_be_set" {
  command = plan

  variables {
    resources = { poll_seconds = 5 }
  }

  assert {
    condition     = output.definition.States["first: wait"].Seconds == 5
    error_message = "poll_seconds overrides"
  }
}

run "warm_instances_of_another_shape_are_released" {
  command = plan

  variables {
    attempts = [
      { name = "first", instance_type = "ml.m5.large", keep_alive_seconds = 600, next = { host_memory = "second", capacity = "third" } },
      { name = "second", instance_type = "ml.m5.large", keep_alive_seconds = 600, next = { host_memory = "third" } },
      { name = "third", instance_type = "ml.m5.xlarge" },
    ]
  }

  assert {
    condition     = [for rule in output.definition.States["first: next"].Choices : rule.Next if rule.StringEquals == "host_memory"] == ["second: submit"]
    error_message = "the same shape reuses the pool"
  }
  assert {
    condition     = [for rule in output.definition.States["second: next"].Choices : rule.Next if rule.StringEquals == "host_memory"] == ["second: release for third"]
    error_message = "another shape gives it back first"
  }
  assert {
    condition = jsonencode(output.definition.States["second: release for third"].Parameters) == jsonencode({
      "TrainingJobName.$" = "$.job.TrainingJobName"
      ResourceConfig      = { KeepAlivePeriodInSeconds = 0 }
    })
    error_message = "a keep-alive of zero releases"
  }
  assert {
    condition     = output.definition.States["second: release for third"].Catch[0].Next == "third: submit"
    error_message = "a failed release holds nothing up"
  }
}

run "the_role_creates_this_jobs_training_jobs_only" {
  command = plan

  assert {
    condition = jsonencode([for s in output.state_machine_policy.Statement : s if s.Sid == "CreateTrainingJobsOfThisJob"][0]) == jsonencode({
      Sid      = "CreateTrainingJobsOfThisJob"
      Effect   = "Allow"
      Action   = ["sagemaker:CreateTrainingJob"]
      Resource = ["arn:aws:sagemaker:us-east-1:123456789012:training-job/digits-??????-??????-?", "arn:aws:sagemaker:us-east-1:123456789012:training-job/digits-??????-??????-??"]
      Condition = {
        BoolIfExists                  = { "sagemaker:EnableRemoteDebug" = "false" }
        "ForAllValues:StringEquals"   = { "sagemaker:InstanceTypes" = ["ml.m5.large", "ml.m5.xlarge", "ml.m5.2xlarge"] }
        Null                          = { "sagemaker:InstanceTypes" = "false" }
        NumericLessThanEquals         = { "sagemaker:MaxRuntimeInSeconds" = "3600" }
        NumericLessThanEqualsIfExists = { "sagemaker:KeepAlivePeriod" = "0" }
      }
    })
    error_message = "name, instances, time and keep-alive are fixed"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.state_machine.policy) == jsondecode(jsonencode(output.state_machine_policy))
    error_message = "the role has the policy that the module shows"
  }
  assert {
    condition = alltrue([
      for s in output.state_machine_policy.Statement : s.Resource != ["*"] || s.Sid == "DeliverLogsOfTheStateMachine"
    ])
    error_message = "only log delivery has no resources of its own"
  }
  assert {
    condition     = !strcontains(jsonencode(output.state_machine_policy), "UpdateTrainingJob") && !strcontains(jsonencode(output.state_machine_policy), "xray")
    error_message = "no right without a state that uses it"
  }
  assert {
    condition = jsonencode([for s in output.state_machine_policy.Statement : s if s.Sid == "PassTheExecutionRole"][0]) == jsonencode({
      Sid       = "PassTheExecutionRole"
      Effect    = "Allow"
      Action    = ["iam:PassRole"]
      Resource  = ["arn:aws:iam::123456789012:role/sagefit-dev-execution"]
      Condition = { StringEquals = { "iam:PassedToService" = "sagemaker.amazonaws.com" } }
    })
    error_message = "one role goes to one service"
  }
  assert {
    condition     = jsondecode(aws_iam_role.state_machine.assume_role_policy).Statement[0].Condition.ArnEquals["aws:SourceArn"] == output.state_machine_arn
    error_message = "only this state machine takes the role"
  }
}

run "the_role_follows_network_and_keys" {
  command = plan

  variables {
    resources = {
      subnet_ids                      = ["subnet-1"]
      security_group_ids              = ["sg-1"]
      network_isolation               = true
      encrypt_inter_container_traffic = true
      output_kms_key_arn              = "arn:aws:kms:us-east-1:123456789012:key/output"
    }
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 2, keep_alive_seconds = 600 }]
    tracing  = true
  }

  assert {
    condition = jsonencode([for s in output.state_machine_policy.Statement : s if s.Sid == "CreateTrainingJobsOfThisJob"][0].Condition) == jsonencode({
      ArnEquals    = { "sagemaker:OutputKmsKey" = "arn:aws:kms:us-east-1:123456789012:key/output" }
      Bool         = { "sagemaker:InterContainerTrafficEncryption" = "true", "sagemaker:NetworkIsolation" = "true" }
      BoolIfExists = { "sagemaker:EnableRemoteDebug" = "false" }
      "ForAllValues:StringEquals" = {
        "sagemaker:InstanceTypes"       = ["ml.m5.large"]
        "sagemaker:VpcSecurityGroupIds" = ["sg-1"]
        "sagemaker:VpcSubnets"          = ["subnet-1"]
      }
      Null = {
        "sagemaker:InstanceTypes"       = "false"
        "sagemaker:OutputKmsKey"        = "false"
        "sagemaker:VpcSecurityGroupIds" = "false"
        "sagemaker:VpcSubnets"          = "false"
      }
      NumericLessThanEquals         = { "sagemaker:MaxRuntimeInSeconds" = "86400" }
      NumericLessThanEqualsIfExists = { "sagemaker:KeepAlivePeriod" = "600" }
    })
    error_message = "every guarded field has its condition"
  }
  assert {
    condition     = contains([for s in output.state_machine_policy.Statement : s.Sid], "SendTraces") && aws_sfn_state_machine.this.tracing_configuration[0].enabled
    error_message = "traces are sent when asked for"
  }
}

run "names_and_arns_are_known_at_plan" {
  command = plan

  assert {
    condition     = output.state_machine_arn == "arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-digits" && output.state_machine_name == "sagefit-dev-digits"
    error_message = "state machine"
  }
  assert {
    condition     = aws_iam_role.state_machine.name == "sagefit-dev-digits" && aws_sfn_state_machine.this.role_arn == "arn:aws:iam::123456789012:role/sagefit/sagefit-dev-digits"
    error_message = "role"
  }
  assert {
    condition     = aws_cloudwatch_log_group.runs.name == "/aws/vendedlogs/states/sagefit-dev-digits" && aws_cloudwatch_log_group.runs.retention_in_days == 30
    error_message = "log group"
  }
  assert {
    condition     = output.run_prefix == "digits-" && output.log_group_name == aws_cloudwatch_log_group.runs.name
    error_message = "runs and log"
  }
}

run "long_names_keep_to_the_role_limit" {
  command = plan

  variables {
    name     = "a234567890-234567890-234567890-23456789"
    platform = merge(var.platform, { name = "p2345678901234567890" })
    schedule = { expression = "rate(1 day)" }
  }

  assert {
    condition     = length(aws_iam_role.state_machine.name) <= 64 && length(aws_iam_role.schedule[0].name) <= 64 && length(aws_scheduler_schedule.this[0].name) <= 64
    error_message = "64 characters"
  }
  assert {
    condition     = length("${jsondecode(aws_scheduler_schedule.this[0].target[0].input).Name}") - length("<aws.scheduler.execution-id>") + 36 + length("-19b") <= 63
    error_message = "a scheduled training job fits its name"
  }
}

run "no_schedule_by_default" {
  command = plan

  assert {
    condition     = length(aws_scheduler_schedule.this) + length(aws_iam_role.schedule) + length(aws_iam_role_policy.schedule) == 0
    error_message = "nothing is scheduled"
  }
}

run "a_schedule_starts_runs" {
  command = plan

  variables {
    schedule = { expression = "cron(0 6 * * ? *)", timezone = "Europe/Berlin" }
  }

  assert {
    condition     = aws_scheduler_schedule.this[0].target[0].arn == "arn:aws:scheduler:::aws-sdk:sfn:startExecution"
    error_message = "the universal target names the execution"
  }
  assert {
    condition     = strcontains(aws_scheduler_schedule.this[0].target[0].input, "digits-<aws.scheduler.execution-id>")
    error_message = "the keyword stands there unescaped"
  }
  assert {
    condition     = output.definition.States.named.Choices[*].StringMatches == ["digits-*-*", "digits-*"]
    error_message = "a run with a name of the schedule begins too"
  }
  assert {
    condition     = aws_scheduler_schedule.this[0].schedule_expression_timezone == "Europe/Berlin" && aws_scheduler_schedule.this[0].state == "ENABLED"
    error_message = "expression and zone"
  }
  assert {
    condition = jsonencode(jsondecode(aws_iam_role_policy.schedule[0].policy).Statement[0]) == jsonencode({
      Action   = ["states:StartExecution"]
      Effect   = "Allow"
      Resource = ["arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-digits"]
      Sid      = "StartRunsOfThisJob"
    })
    error_message = "the schedule starts this job only"
  }
}

run "the_permissions_boundary_is_kept" {
  command = plan

  variables {
    platform = merge(var.platform, { permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary" })
    schedule = { expression = "rate(1 day)" }
  }

  assert {
    condition     = aws_iam_role.state_machine.permissions_boundary == "arn:aws:iam::123456789012:policy/boundary" && aws_iam_role.schedule[0].permissions_boundary == "arn:aws:iam::123456789012:policy/boundary"
    error_message = "both roles"
  }
}
