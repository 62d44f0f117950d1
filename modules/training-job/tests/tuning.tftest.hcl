# Attempts that are tuning jobs: what is asked for, what follows it, and one run per rule.
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
  }
  image              = { framework = "sklearn", version = "1.2-1" }
  code               = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = ["--fast"] }
  metric_definitions = [{ name = "accuracy", regex = "accuracy=([0-9.]+)" }]
  hyperparameters    = { epochs = "3" }
  attempts = [
    { name = "first", instance_type = "ml.m5.large", max_runtime_seconds = 600, next = { host_memory = "second" } },
    { name = "second", instance_type = "ml.m5.xlarge", max_runtime_seconds = 600, spot = true, max_wait_seconds = 1200 },
  ]
  tuning = {
    objective         = { metric = "accuracy", type = "Maximize" }
    max_jobs          = 5
    max_parallel_jobs = 2
    ranges = {
      learning_rate = { type = "Continuous", min = 0.001, max = 0.1, scaling = "Logarithmic" }
      depth         = { type = "Integer", min = 2, max = 6 }
      optimizer     = { type = "Categorical", values = ["adam", "sgd"] }
    }
  }
}

run "an_attempt_asks_for_a_tuning_job" {
  command = plan

  assert {
    condition     = endswith(output.definition.States["first: submit"].Resource, ":createHyperParameterTuningJob")
    error_message = "each attempt is a tuning job"
  }
  assert {
    condition = jsonencode(output.definition.States["first: submit"].Parameters.HyperParameterTuningJobConfig) == jsonencode({
      HyperParameterTuningJobObjective = { MetricName = "accuracy", Type = "Maximize" }
      ParameterRanges = {
        CategoricalParameterRanges = [{ Name = "optimizer", Values = ["adam", "sgd"] }]
        ContinuousParameterRanges  = [{ MaxValue = "0.1", MinValue = "0.001", Name = "learning_rate", ScalingType = "Logarithmic" }]
        IntegerParameterRanges     = [{ MaxValue = "6", MinValue = "2", Name = "depth", ScalingType = "Auto" }]
      }
      ResourceLimits               = { MaxNumberOfTrainingJobs = 5, MaxParallelTrainingJobs = 2 }
      Strategy                     = "Bayesian"
      TrainingJobEarlyStoppingType = "Off"
    })
    error_message = "the search is what the variable says, and what is not asked for is absent"
  }
  assert {
    condition = output.definition.States["first: submit"].Parameters.TrainingJobDefinition.StaticHyperParameters == {
      epochs                      = "3"
      sagemaker_program           = "sagefit_trial.py"
      sagemaker_submit_directory  = "/opt/ml/input/data/sagefit/sagefit_trial.py"
      sagemaker_sagefit_arguments = "[\"--entry-point\",\"train.py\",\"--\",\"--fast\"]"
    }
    error_message = "the image starts the launcher, which finds the script"
  }
  assert {
    condition = jsonencode(keys(output.definition.States["first: submit"].Parameters.TrainingJobDefinition.AlgorithmSpecification)) == jsonencode([
      "MetricDefinitions", "TrainingImage", "TrainingInputMode",
    ])
    error_message = "training jobs of a tuning job take no entrypoint"
  }
  assert {
    condition     = !contains(keys(output.definition.States["first: submit"].Parameters.TrainingJobDefinition), "CheckpointConfig") && contains(keys(output.definition.States["second: submit"].Parameters.TrainingJobDefinition), "CheckpointConfig")
    error_message = "only training jobs that can be interrupted go back to a checkpoint"
  }
  assert {
    condition     = !strcontains(jsonencode(output.definition.States["first: submit"].Parameters), "null")
    error_message = "a request holds no nulls"
  }
}

run "training_jobs_that_sagemaker_repeats_keep_checkpoints" {
  command = plan

  variables {
    resources = { retry_attempts = 2 }
  }

  assert {
    condition     = contains(keys(output.definition.States["first: submit"].Parameters.TrainingJobDefinition), "CheckpointConfig")
    error_message = "a retry goes back to a checkpoint"
  }
}

run "training_jobs_without_a_launcher_share_no_checkpoints" {
  command = plan

  variables {
    code = null
  }

  assert {
    condition     = !contains(keys(output.definition.States["second: submit"].Parameters.TrainingJobDefinition), "CheckpointConfig")
    error_message = "only the launcher gives each training job a folder of its own"
  }
}

run "its_failure_is_that_of_a_training_job" {
  command = plan

  assert {
    condition     = output.definition.States["first: judge"].Default == "trials" && output.definition.States.trial.Choices[0].Next == "autopsy" && output.definition.States.autopsy.Next == "classify"
    error_message = "the newest failed training job tells why an attempt failed"
  }
  assert {
    condition     = output.definition.States.trials.Parameters.SortBy == "CreationTime" && output.definition.States.trials.Parameters.SortOrder == "Descending" && output.definition.States.trials.Parameters.MaxResults == 10
    error_message = "it is found where the newest training job did not fail, even if a page is filtered after it was taken"
  }
  assert {
    condition     = output.definition.States.completed.Parameters["hyperparameters.$"] == "$.job.BestTrainingJob.TunedHyperParameters"
    error_message = "a run that succeeds tells the best hyperparameters"
  }
  assert {
    condition     = output.worst_case_seconds == 3 * 600 + 3 * 1200
    error_message = "five training jobs, two at a time, take three rounds"
  }
}

run "a_time_limit_bounds_the_worst_case" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_runtime_seconds = 900 })
  }

  assert {
    condition     = output.worst_case_seconds == 900 + 900
    error_message = "a tuning job ends at its own limit"
  }
  assert {
    condition     = one([for s in output.state_machine_policy.Statement : s.Condition.NumericLessThanEquals["sagemaker:MaxRuntimeInSeconds"] if s.Sid == "CreateTuningJobsOfThisJob"]) == "900"
    error_message = "whichever of its two limits AWS compares is allowed"
  }
}

run "its_role_creates_tuning_jobs_only" {
  command = plan

  assert {
    condition = flatten(output.state_machine_policy.Statement[*].Action) == [
      "sagemaker:CreateHyperParameterTuningJob", "sagemaker:DescribeHyperParameterTuningJob",
      "sagemaker:ListTrainingJobsForHyperParameterTuningJob", "sagemaker:DescribeTrainingJob", "sagemaker:AddTags", "iam:PassRole",
      "logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
      "logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
    ]
    error_message = "nothing but what the states call"
  }
  assert {
    condition     = output.state_machine_policy.Statement[0].Resource == ["arn:aws:sagemaker:us-east-1:123456789012:hyper-parameter-tuning-job/digits-??????-??????-?", "arn:aws:sagemaker:us-east-1:123456789012:hyper-parameter-tuning-job/digits-??????-??????-??"]
    error_message = "tuning jobs of this job's runs"
  }
}

run "a_grid_has_as_many_training_jobs_as_combinations" {
  command = plan

  variables {
    tuning = merge(var.tuning, {
      strategy = "Grid"
      max_jobs = null
      ranges   = { depth = { type = "Categorical", values = ["2", "4", "6"] }, optimizer = { type = "Categorical", values = ["adam", "sgd"] } }
    })
  }

  assert {
    condition     = output.worst_case_seconds == 3 * 600 + 3 * 1200 && startswith(output.definition.States["first: submit"].Comment, "6 x 1 x ml.m5.large")
    error_message = "three times two combinations"
  }
}

run "strategy_and_type" {
  command = plan

  variables {
    tuning = merge(var.tuning, { strategy = "Guess" })
  }

  expect_failures = [var.tuning]
}

run "objective_among_metrics" {
  command = plan

  variables {
    tuning = merge(var.tuning, { objective = { metric = "loss", type = "Minimize" } })
  }

  expect_failures = [var.tuning]
}

run "metrics_at_most_20" {
  command = plan

  variables {
    metric_definitions = concat(var.metric_definitions, [for n in range(17) : { name = "m${n}", regex = "m${n}=(.*)" }])
  }

  expect_failures = [var.tuning]
}

run "max_jobs_required" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = null, ranges = { optimizer = { type = "Categorical", values = ["adam", "sgd"] } } })
  }

  expect_failures = [var.tuning]
}

run "whole_numbers" {
  command = plan

  variables {
    tuning = merge(var.tuning, { seed = -1 })
  }

  expect_failures = [var.tuning]
}

run "training_jobs_at_most_750" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = 751 })
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "parallel_within_all" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_parallel_jobs = 6 })
  }

  expect_failures = [aws_sfn_state_machine.this]
}

run "parallel_within_quota" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = 20, max_parallel_jobs = 11 })
  }

  expect_failures = [var.tuning]
}

run "parallel_quota_is_one_that_aws_grants" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = 20, max_parallel_jobs = 2, parallel_quota = 101 })
  }

  expect_failures = [var.tuning]
}

run "max_runtime" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_runtime_seconds = 60 })
  }

  expect_failures = [var.tuning]
}

run "ranges_1_to_30" {
  command = plan

  variables {
    tuning = merge(var.tuning, { ranges = {} })
  }

  expect_failures = [var.tuning]
}

run "range_type_and_scaling" {
  command = plan

  variables {
    tuning = merge(var.tuning, { ranges = { depth = { type = "Integer", min = 2, max = 6, scaling = "Cubic" } } })
  }

  expect_failures = [var.tuning]
}

run "range_of_numbers" {
  command = plan

  variables {
    tuning = merge(var.tuning, { ranges = { depth = { type = "Integer", min = 6, max = 2 } } })
  }

  expect_failures = [var.tuning]
}

run "range_scaling" {
  command = plan

  variables {
    tuning = merge(var.tuning, { ranges = { rate = { type = "Continuous", min = 0, max = 0.5, scaling = "Logarithmic" } } })
  }

  expect_failures = [var.tuning]
}

run "range_values" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = 2, ranges = { optimizer = { type = "Categorical", values = ["adam", "adam"] } } })
  }

  expect_failures = [var.tuning]
}

run "range_credential" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = 2, ranges = { hub = { type = "Categorical", values = ["hf_abcdefghijklmnopqrstuvwx", "none"] } } })
  }

  expect_failures = [var.tuning]
}

run "grid" {
  command = plan

  variables {
    tuning = merge(var.tuning, { strategy = "Grid" })
  }

  expect_failures = [var.tuning]
}

run "enough_combinations" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = 11, ranges = { depth = { type = "Integer", min = 2, max = 6 }, optimizer = { type = "Categorical", values = ["adam", "sgd"] } } })
  }

  expect_failures = [var.tuning]
}

run "as_many_training_jobs_as_combinations" {
  command = plan

  variables {
    tuning = merge(var.tuning, { max_jobs = 10, ranges = { depth = { type = "Integer", min = 2, max = 6 }, optimizer = { type = "Categorical", values = ["adam", "sgd"] } } })
  }

  assert {
    condition     = output.definition.States["first: submit"].Parameters.HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs == 10
    error_message = "each combination is tried once"
  }
}

run "hyperband_without_early_stopping" {
  command = plan

  variables {
    tuning = merge(var.tuning, { strategy = "Hyperband", early_stopping = true })
  }

  expect_failures = [var.tuning]
}

run "hyperband_needs_epochs" {
  command = plan

  variables {
    hyperparameters = {}
    tuning          = merge(var.tuning, { strategy = "Hyperband" })
  }

  expect_failures = [var.tuning]
}

run "range_or_hyperparameter" {
  command = plan

  variables {
    hyperparameters = { depth = "3" }
  }

  expect_failures = [var.tuning]
}

run "hyperparameters_at_most_100" {
  command = plan

  variables {
    hyperparameters = { for n in range(94) : "h${n}" => "1" }
  }

  expect_failures = [var.tuning]
}

run "environment_at_most_47" {
  command = plan

  variables {
    environment = { for n in range(48) : "V${n}" => "1" }
  }

  expect_failures = [var.tuning]
}

run "arguments_in_one_hyperparameter" {
  command = plan

  variables {
    code = { source_dir = "tests/fixtures/code", entry_point = "train.py", arguments = [for n in range(10) : join("", [for _ in range(250) : "a"])] }
  }

  expect_failures = [var.tuning]
}

run "name_at_most_15" {
  command = plan

  variables {
    name = "handwritten-digits"
  }

  expect_failures = [var.tuning]
}

run "schedule" {
  command = plan

  variables {
    schedule = { expression = "rate(1 day)" }
  }

  expect_failures = [var.tuning]
}

run "warm_instances" {
  command = plan

  variables {
    attempts = [{ name = "first", instance_type = "ml.m5.large", keep_alive_seconds = 600 }]
  }

  expect_failures = [var.tuning]
}

run "remote_debug" {
  command = plan

  variables {
    resources = { remote_debug = true }
  }

  expect_failures = [var.tuning]
}

run "profiler" {
  command = plan

  variables {
    resources = { profiler = true }
  }

  expect_failures = [var.tuning]
}
