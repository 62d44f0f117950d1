mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "eu-west-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
}

variables {
  context = {
    partition  = "aws"
    region     = "eu-west-1"
    account_id = "123456789012"
    prefix     = "sagefit-test"
    tags       = { Team = "vision" }
  }
  platform = "test"
}

run "every_end_of_a_run_without_a_model_starts_it" {
  command = plan

  assert {
    condition = jsondecode(aws_cloudwatch_event_rule.this.event_pattern) == {
      source        = ["aws.states"]
      "detail-type" = ["Step Functions Execution Status Change"]
      detail = {
        stateMachineArn = [{ prefix = "arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-test-" }]
        status          = ["ABORTED", "FAILED", "TIMED_OUT"]
      }
    }
    error_message = "of this platform's jobs, by the names of their state machines"
  }
  assert {
    condition     = !startswith(output.state_machine_arn, jsondecode(aws_cloudwatch_event_rule.this.event_pattern).detail.stateMachineArn[0].prefix)
    error_message = "its own end starts nothing"
  }
  assert {
    condition     = one(aws_cloudwatch_event_target.this.input_transformer).input_template == "{\"run\": \"<run>\", \"status\": \"<status>\", \"execution\": \"<execution>\"}" && one(aws_cloudwatch_event_target.this.input_transformer).input_paths["execution"] == "$.detail.executionArn" && aws_cloudwatch_event_target.this.arn == output.state_machine_arn
    error_message = "it is told the run, how it ended, and where it is read"
  }
}

run "its_roles_can_be_those_of_the_region" {
  command = plan

  variables {
    context = { partition = "aws", region = "eu-west-1", account_id = "123456789012", prefix = "sagefit-test", global_suffix = "_eu-west-1" }
  }

  assert {
    condition = { for key, role in aws_iam_role.this : key => role.name } == {
      sagefit-test_cleanup       = "sagefit-test_cleanup_eu-west-1"
      sagefit-test_cleanup-start = "sagefit-test_cleanup-start_eu-west-1"
    }
    error_message = "an account has a role once, for all regions"
  }

  assert {
    condition     = [aws_sfn_state_machine.cleanup.role_arn, aws_cloudwatch_event_target.this.role_arn] == [for role in ["sagefit-test_cleanup_eu-west-1", "sagefit-test_cleanup-start_eu-west-1"] : "arn:aws:iam::123456789012:role/sagefit/${role}"]
    error_message = "and the machine and its rule act as these"
  }
}

run "every_kind_of_job_is_stopped" {
  command = plan

  assert {
    condition = alltrue([
      for kind, api in { TrainingJobs = "TrainingJob", ProcessingJobs = "ProcessingJob", HyperParameterTuningJobs = "HyperParameterTuningJob" } :
      output.definition.States["list ${kind}"].Parameters.StatusEquals == "InProgress"
      && output.definition.States["any ${kind}"].Choices[0].Next == "stop ${kind}"
      && output.definition.States["stop ${kind}"].ItemSelector["name.$"] == "$$.Map.Item.Value.${api}Name"
      && jsonencode(output.definition.States["stop ${kind}"].ItemProcessor.States["stop${api}"].Parameters) == jsonencode({ "${api}Name.$" = "$.name" })
    ])
    error_message = "what is in progress is listed and stopped"
  }
  assert {
    condition = alltrue([
      for state in output.definition.States : jsonencode(state.ItemProcessor.States[state.ItemProcessor.StartAt].Choices[0].And) == jsonencode([
        { Variable = "$.name", StringGreaterThanEqualsPath = "$.from" },
        { Variable = "$.name", StringLessThanPath = "$.to" },
      ]) if state.Type == "Map"
    ])
    error_message = "names begin with that of the run"
  }
  assert {
    condition     = output.definition.States.begin.Parameters["from.$"] == "States.Format('{}-', $.run)" && output.definition.States.begin.Parameters["to.$"] == "States.Format('{}.', $.run)"
    error_message = "a hyphen and what follows it, and the sign after the hyphen"
  }
}

run "every_list_is_read_to_its_last_page" {
  command = plan

  assert {
    condition = alltrue([
      for of, only in {
        TrainingJobs             = { StatusEquals = "InProgress" }
        ProcessingJobs           = { StatusEquals = "InProgress" }
        HyperParameterTuningJobs = { StatusEquals = "InProgress" }
        pools                    = { WarmPoolStatusEquals = "Available" }
        } : alltrue([
          for state, token in { "list ${of}" = {}, "next ${of}" = { "NextToken.$" = "$.found.NextToken" } } :
          jsonencode(output.definition.States[state].Parameters) == jsonencode(merge(only, token, {
            "NameContains.$"      = "$.from"
            "CreationTimeAfter.$" = "$.since"
            SortBy                = "CreationTime"
            SortOrder             = "Descending"
            MaxResults            = 100
          })) && output.definition.States[state].Next == "any ${of}" && output.definition.States[state].ResultPath == "$.found"
          ]) && jsonencode(output.definition.States["more ${of}"].Choices) == jsonencode([
          { Variable = "$.found.NextToken", IsPresent = true, Next = "next ${of}" },
      ]) && output.definition.States["any ${of}"].Default == "more ${of}"
    ])
    error_message = "a page that is empty is not the last one"
  }
  assert {
    condition = { for of in ["HyperParameterTuningJobs", "TrainingJobs", "ProcessingJobs", "pools"] : of => output.definition.States["more ${of}"].Default } == {
      HyperParameterTuningJobs = "list TrainingJobs"
      TrainingJobs             = "list ProcessingJobs"
      ProcessingJobs           = "looked"
      pools                    = "enough"
    }
    error_message = "only the last page leads on"
  }
  assert {
    condition = alltrue([
      for acts, then in {
        "stop TrainingJobs"             = "note TrainingJobs"
        "stop ProcessingJobs"           = "note ProcessingJobs"
        "stop HyperParameterTuningJobs" = "note HyperParameterTuningJobs"
        "release pools"                 = "more pools"
        "note TrainingJobs"             = "more TrainingJobs"
        "note ProcessingJobs"           = "more ProcessingJobs"
        "note HyperParameterTuningJobs" = "more HyperParameterTuningJobs"
      } : output.definition.States[acts].Next == then
    ])
    error_message = "a page with jobs of the run is not the last one either"
  }
}

run "lists_reach_back_to_the_start_of_the_run" {
  command = plan

  assert {
    condition = output.definition.StartAt == "began" && jsonencode(output.definition.States.began.Parameters) == jsonencode({
      "ExecutionArn.$" = "$.execution"
    }) && jsonencode(output.definition.States.began.ResultSelector) == jsonencode({ "since.$" = "$.StartDate" })
    error_message = "the execution is asked when it began"
  }
  assert {
    condition     = output.definition.States.began.Catch[0].Next == "not known" && output.definition.States["not known"].Result.since == "1970-01-01T00:00:00Z"
    error_message = "where nobody knows, no job is too old"
  }
  assert {
    condition     = output.definition.States.begin.Parameters["since.$"] == "$.began.since" && output.definition.States.look.Parameters["since.$"] == "$.since"
    error_message = "every look reaches as far"
  }
}

run "instances_are_given_back_unless_the_run_failed" {
  command = plan

  assert {
    condition     = output.definition.States.looked.Default == "list pools" && output.definition.States.looked.Choices[1].StringEquals == "FAILED" && output.definition.States.looked.Choices[1].Next == "enough"
    error_message = "after a failure they wait for the next run"
  }
  assert {
    condition     = jsonencode(output.definition.States["release pools"].ItemProcessor.States.updateTrainingJob.Parameters.ResourceConfig) == jsonencode({ KeepAlivePeriodInSeconds = 0 })
    error_message = "they are given back"
  }
}

run "it_looks_five_times_and_says_what_it_could_not_stop" {
  command = plan

  variables {
    interval_seconds = 30
  }

  assert {
    condition = jsonencode(output.definition.States.enough.Choices) == jsonencode([
      { Variable = "$.looks", NumericLessThan = 5, Next = "pause" },
      { Variable = "$.running.names[0]", IsPresent = true, Next = "still running" },
    ]) && output.definition.States.enough.Default == "done"
    error_message = "it ends"
  }
  assert {
    condition     = output.definition.States.pause.Seconds == 30 && output.definition.States["still running"].Type == "Fail" && output.definition.TimeoutSeconds == 5 * 30 + 3600
    error_message = "a job that goes on is a failure of its own"
  }
}

run "its_roles_do_nothing_else" {
  command = plan

  assert {
    condition = jsonencode(output.policy.Statement) == jsonencode([
      {
        Sid      = "ListJobs"
        Effect   = "Allow"
        Action   = ["sagemaker:ListHyperParameterTuningJobs", "sagemaker:ListTrainingJobs", "sagemaker:ListProcessingJobs"]
        Resource = "*"
      },
      {
        Sid      = "ReadWhenRunsBegan"
        Effect   = "Allow"
        Action   = "states:DescribeExecution"
        Resource = "arn:aws:states:eu-west-1:123456789012:execution:sagefit-test-*:*"
      },
      {
        Sid       = "StopHyperParameterTuningJobs"
        Effect    = "Allow"
        Action    = "sagemaker:StopHyperParameterTuningJob"
        Resource  = "arn:aws:sagemaker:eu-west-1:123456789012:hyper-parameter-tuning-job/*"
        Condition = { StringEquals = { "aws:ResourceTag/sagefit:platform" = "test" } }
      },
      {
        Sid       = "StopTrainingJobs"
        Effect    = "Allow"
        Action    = "sagemaker:StopTrainingJob"
        Resource  = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/*"
        Condition = { StringEquals = { "aws:ResourceTag/sagefit:platform" = "test" } }
      },
      {
        Sid       = "StopProcessingJobs"
        Effect    = "Allow"
        Action    = "sagemaker:StopProcessingJob"
        Resource  = "arn:aws:sagemaker:eu-west-1:123456789012:processing-job/*"
        Condition = { StringEquals = { "aws:ResourceTag/sagefit:platform" = "test" } }
      },
      {
        Sid      = "ReleaseWarmPools"
        Effect   = "Allow"
        Action   = "sagemaker:UpdateTrainingJob"
        Resource = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/*"
        Condition = {
          StringEquals  = { "aws:ResourceTag/sagefit:platform" = "test" }
          NumericEquals = { "sagemaker:KeepAlivePeriod" = "0" }
        }
      },
    ])
    error_message = "jobs and runs of this platform, and no others"
  }
  assert {
    condition = {
      for name, role in aws_iam_role.this : name => [
        for s in jsondecode(role.assume_role_policy).Statement : [s.Principal.Service, s.Condition.ArnEquals["aws:SourceArn"], s.Condition.StringEquals["aws:SourceAccount"]]
      ]
      } == {
      "sagefit-test_cleanup"       = [["states.amazonaws.com", "arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-test_cleanup", "123456789012"]]
      "sagefit-test_cleanup-start" = [["events.amazonaws.com", "arn:aws:events:eu-west-1:123456789012:rule/sagefit-test-cleanup", "123456789012"]]
    }
    error_message = "each is for one service and one thing of this account"
  }
  assert {
    condition = jsondecode(aws_iam_role_policy.this["sagefit-test_cleanup-start"].policy).Statement == [{
      Sid = "StartCleanup", Effect = "Allow", Action = "states:StartExecution", Resource = "arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-test_cleanup"
    }]
    error_message = "the rule starts the machine, and nothing else"
  }
  assert {
    condition     = alltrue([for role in aws_iam_role.this : role.permissions_boundary == null])
    error_message = "no boundary unless one is given"
  }
}

run "the_permissions_boundary_is_kept" {
  command = plan

  variables {
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
  }

  assert {
    condition     = alltrue([for role in aws_iam_role.this : role.permissions_boundary == "arn:aws:iam::123456789012:policy/boundary"])
    error_message = "both roles have it"
  }
}

run "interval_is_whole_seconds" {
  command = plan

  variables {
    interval_seconds = 0
  }

  expect_failures = [var.interval_seconds]
}

run "boundary_is_a_policy" {
  command = plan

  variables {
    permissions_boundary_arn = "boundary"
  }

  expect_failures = [var.permissions_boundary_arn]
}

run "platform_is_a_name" {
  command = plan

  variables {
    platform = "Test"
  }

  expect_failures = [var.platform]
}

run "policies_name_the_arn_of_the_role" {
  command = plan

  override_resource {
    target          = aws_iam_role.this["sagefit-test_cleanup"]
    override_during = plan
    values          = { arn = "arn:aws-cn:iam::123456789012:role/sagefit/sagefit-test_cleanup" }
  }

  expect_failures = [aws_iam_role.this]
}

run "policies_name_the_arn_of_the_machine" {
  command = plan

  override_resource {
    target          = aws_sfn_state_machine.cleanup
    override_during = plan
    values          = { arn = "arn:aws-cn:states:eu-west-1:123456789012:stateMachine:sagefit-test_cleanup" }
  }

  expect_failures = [aws_sfn_state_machine.cleanup]
}

run "policies_name_the_arn_of_the_rule" {
  command = plan

  override_resource {
    target          = aws_cloudwatch_event_rule.this
    override_during = plan
    values          = { arn = "arn:aws-cn:events:eu-west-1:123456789012:rule/sagefit-test-cleanup" }
  }

  expect_failures = [aws_cloudwatch_event_rule.this]
}
