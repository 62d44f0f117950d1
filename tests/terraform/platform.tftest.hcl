# The platform as a whole, without an account: every data source and resource is mocked.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }

  mock_data "aws_region" {
    defaults = { id = "eu-west-1", name = "eu-west-1" }
  }
}

run "default_platform_is_called_dev" {
  command = plan

  assert {
    condition     = output.document_parameter == "/sagefit/dev" && aws_ssm_parameter.document.name == "/sagefit/dev"
    error_message = "Without variables the platform must be dev."
  }

  assert {
    condition     = output.kms_key_arn == null && length(aws_kms_key.this) == 0
    error_message = "The default platform must make no key of its own."
  }
}

run "document_is_complete_and_known_at_plan" {
  command = plan

  assert {
    condition = jsondecode(aws_ssm_parameter.document.value) == {
      schema                   = 1
      name                     = "dev"
      partition                = "aws"
      region                   = "eu-west-1"
      account_id               = "123456789012"
      role_arn                 = "arn:aws:iam::123456789012:role/sagefit-dev-execution"
      permissions_boundary_arn = null
      buckets = {
        artifacts   = "sagefit-dev-123456789012-eu-west-1-artifacts"
        checkpoints = "sagefit-dev-123456789012-eu-west-1-checkpoints"
        data        = "sagefit-dev-123456789012-eu-west-1-data"
      }
      kms_key_arn            = null
      repository_url         = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/sagefit-dev"
      network                = { subnet_ids = [], security_group_ids = [], isolation = false, encrypt_inter_container_traffic = false }
      allowed_instance_types = []
      max_keep_alive_seconds = 3600
      warm_pools             = {}
      log_retention_days     = 30
      topic_arn              = "arn:aws:sns:eu-west-1:123456789012:sagefit-dev-alarms"
      job_policy_arns        = { jobs = "arn:aws:iam::123456789012:policy/sagefit/sagefit-dev-jobs" }
      tags                   = { "sagefit:platform" = "dev" }
    }
    error_message = "The published document must hold every field that jobs read."
  }
}

run "document_tells_what_jobs_share" {
  command = plan

  variables {
    buckets = { extra = { inbox = {}, models = { access = "write" } } }
    execution_role = {
      buckets             = { corpora = { name = "corpora", access = "sync", prefixes = ["a/", "b/"] }, texts = { name = "texts" } }
      managed_policy_arns = { team = "arn:aws:iam::123456789012:policy/team" }
    }
    kms = { create = true }
  }

  assert {
    condition = local.document.shared_data == {
      "sagefit-dev-123456789012-eu-west-1-inbox/"  = "read"
      "sagefit-dev-123456789012-eu-west-1-models/" = "write"
      "corpora/a/"                                 = "write"
      "corpora/b/"                                 = "write"
      "texts/"                                     = "read"
    }
    error_message = "A job's own role is made of what it names among these."
  }

  assert {
    condition     = keys(local.document.job_policy_arns) == ["job-keys", "jobs", "team"]
    error_message = "Keys and the team's own policies go to the jobs' roles too."
  }
}

run "one_role_for_all_jobs_is_possible" {
  command = plan

  variables {
    execution_role = { per_job = false, buckets = { texts = { name = "texts" } } }
  }

  assert {
    condition     = !can(local.document.job_policy_arns) && !can(local.document.shared_data)
    error_message = "Without policies to attach, jobs have the platform's role."
  }
}

run "role_reads_data_and_writes_below_jobs" {
  command = plan

  assert {
    condition     = { for key, bucket in local._buckets : key => bucket.versioning } == { artifacts = true, checkpoints = false, data = true }
    error_message = "Data and models must survive being overwritten."
  }

  assert {
    condition = jsonencode({
      for statement in module.role.policies.storage : statement.Sid => statement.Resource
      }) == jsonencode({
      ListArtifacts   = "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-artifacts"
      ListCheckpoints = "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-checkpoints"
      ListData        = "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-data"
      ReadObjects = [
        "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-artifacts/jobs/*",
        "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-checkpoints/jobs/*",
        "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-data/*",
      ]
      WriteObjects = [
        "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-artifacts/jobs/*",
        "arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-checkpoints/jobs/*",
      ]
      DeleteCheckpoints = ["arn:aws:s3:::sagefit-dev-123456789012-eu-west-1-checkpoints/jobs/*"]
    })
    error_message = "Jobs may read data, write artifacts and checkpoints below jobs/, and delete checkpoints only."
  }
}

run "role_pulls_own_and_framework_images" {
  command = plan

  assert {
    condition = alltrue([
      for arn in [
        "arn:aws:ecr:eu-west-1:123456789012:repository/sagefit-dev",
        "arn:aws:ecr:eu-west-1:763104351884:repository/pytorch-training",
      ] : contains(module.role.policies.images[1].Resource, arn)
    ])
    error_message = "Own images and the framework images of the Region must be in reach."
  }
}

run "engineers_start_runs_and_no_training_jobs" {
  command = plan

  assert {
    condition = length(setintersection(
      ["iam:PassRole", "sagemaker:CreateTrainingJob", "s3:PutObject", "states:CreateStateMachine"],
      flatten([for statement in jsondecode(output.engineer_policy_json).Statement : statement.Action])
    )) == 0
    error_message = "Engineers must not create training jobs, pass roles, or write."
  }

  assert {
    condition = {
      for statement in jsondecode(output.engineer_policy_json).Statement : statement.Sid => jsonencode(statement.Resource)
      if contains(["StartRuns", "FollowAndStopRuns", "ReadPlatform"], statement.Sid)
      } == {
      StartRuns         = jsonencode("arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-dev-*")
      FollowAndStopRuns = jsonencode("arn:aws:states:eu-west-1:123456789012:execution:sagefit-dev-*:*")
      ReadPlatform      = jsonencode("arn:aws:ssm:eu-west-1:123456789012:parameter/sagefit/dev")
    }
    error_message = "Engineers must reach this platform's runs and document only."
  }

  assert {
    condition = {
      for statement in jsondecode(output.engineer_policy_json).Statement : statement.Sid => jsonencode(flatten([statement.Action]))
      } == {
      StartRuns               = jsonencode(["states:DescribeStateMachine", "states:ListExecutions", "states:StartExecution"])
      FollowAndStopRuns       = jsonencode(["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"])
      FollowTrainingJobs      = jsonencode(["sagemaker:DescribeHyperParameterTuningJob", "sagemaker:DescribeProcessingJob", "sagemaker:DescribeTrainingJob", "sagemaker:ListTrainingJobsForHyperParameterTuningJob"])
      StopTrainingJobs        = jsonencode(["sagemaker:StopHyperParameterTuningJob", "sagemaker:StopProcessingJob", "sagemaker:StopTrainingJob"])
      ListJobsAndTrainingJobs = jsonencode(["sagemaker:ListHyperParameterTuningJobs", "sagemaker:ListProcessingJobs", "sagemaker:ListTrainingJobs", "states:ListStateMachines"])
      ReadLogs                = jsonencode(["logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"])
      ReadMetrics             = jsonencode(["cloudwatch:GetMetricData"])
      ReadPlatform            = jsonencode(["ssm:GetParameter"])
      ListArtifacts           = jsonencode(["s3:ListBucket"])
      ReadArtifacts           = jsonencode(["s3:GetObject"])
    }
    error_message = "Engineers start, follow and stop, and change nothing."
  }

  assert {
    condition = [
      for statement in jsondecode(output.engineer_policy_json).Statement : jsonencode(statement.Condition) if statement.Sid == "StopTrainingJobs"
    ] == [jsonencode({ StringEquals = { "aws:ResourceTag/sagefit:platform" = "dev" } })]
    error_message = "Engineers must stop training jobs of their platform only."
  }

  assert {
    condition     = [for statement in jsondecode(output.engineer_policy_json).Statement : statement.Sid if statement.Resource == "*"] == ["ListJobsAndTrainingJobs", "ReadMetrics"]
    error_message = "Only lists and metrics, which take no resource, may be on *."
  }

  assert {
    condition     = length(output.engineer_policy_json) <= 6144
    error_message = "A managed policy may have 6,144 characters (IAM)."
  }
}

run "own_key_is_used_everywhere" {
  command = plan

  variables {
    kms = { create = true }
  }

  override_resource {
    target          = aws_kms_key.this[0]
    override_during = plan
    values          = { arn = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111" }
  }

  assert {
    condition     = output.document.kms_key_arn == "arn:aws:kms:eu-west-1:123456789012:key/0000-1111"
    error_message = "The document must name the key."
  }

  assert {
    condition     = length(module.role.policies.keys) == 2
    error_message = "The role must be able to use the key."
  }

  assert {
    condition     = contains([for statement in jsondecode(output.engineer_policy_json).Statement : statement.Sid], "DecryptArtifacts")
    error_message = "Engineers must be able to read encrypted artifacts."
  }

  assert {
    condition = aws_kms_key.this[0].enable_key_rotation && [
      for statement in jsondecode(aws_kms_key.this[0].policy).Statement : jsonencode(statement.Condition) if statement.Sid == "LogsOfRunsEncrypt"
    ] == [jsonencode({ ArnLike = { "kms:EncryptionContext:aws:logs:arn" = "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/vendedlogs/states/sagefit-dev-*" } })]
    error_message = "The key must be rotated, and serve no logs but those of the platform's runs."
  }

  assert {
    condition     = length(setsubtract(["cloudwatch.amazonaws.com", "events.amazonaws.com", "logs.eu-west-1.amazonaws.com"], flatten([for statement in jsondecode(aws_kms_key.this[0].policy).Statement : try(statement.Principal.Service, [])]))) == 0
    error_message = "Alarms, events and logs must be able to use the key."
  }
}

run "given_key_makes_none" {
  command = plan

  variables {
    kms = { key_arn = "arn:aws:kms:eu-west-1:123456789012:key/2222-3333" }
  }

  assert {
    condition     = length(aws_kms_key.this) == 0 && output.document.kms_key_arn == "arn:aws:kms:eu-west-1:123456789012:key/2222-3333"
    error_message = "A given key must be used and no other made."
  }
}

run "a_key_of_the_same_configuration_is_used" {
  command = plan

  variables {
    kms = { key = { arn = "arn:aws:kms:eu-west-1:123456789012:key/4444-5555" } }
  }

  assert {
    condition     = length(aws_kms_key.this) == 0 && output.document.kms_key_arn == "arn:aws:kms:eu-west-1:123456789012:key/4444-5555"
    error_message = "The object says that there is a key, and its ARN which."
  }
}

run "unfinished_upload_days_are_whole" {
  command = plan

  variables {
    unfinished_upload_days = 1.5
  }

  expect_failures = [var.unfinished_upload_days]
}

run "checkpoints_are_kept_for_as_long_as_a_job_may_take" {
  command = plan

  variables {
    checkpoint_days = 27
  }

  expect_failures = [var.checkpoint_days]
}

run "ended_runs_are_cleaned_up_unless_it_is_turned_off" {
  command = plan

  variables {
    run_cleanup = { enabled = false }
  }

  assert {
    condition     = length(module.run_cleanup) == 0
    error_message = "No state machine unless it is wanted."
  }
}

run "cleanup_is_of_this_platform" {
  command = plan

  assert {
    condition     = module.run_cleanup[0].state_machine_arn == "arn:aws:states:eu-west-1:123456789012:stateMachine:sagefit-dev_cleanup" && contains(keys(module.alarms.event_rule_arns), "cleanups")
    error_message = "It stops what runs, and its own failure is told."
  }
}

run "network_reaches_role_and_document" {
  command = plan

  variables {
    network = { subnet_ids = ["subnet-0b", "subnet-0a"], security_group_ids = ["sg-0a"], isolation = true }
  }

  assert {
    condition     = output.document.network.subnet_ids == tolist(["subnet-0a", "subnet-0b"]) && output.document.network.isolation
    error_message = "The document must hold the network, sorted."
  }

  assert {
    condition     = length(module.role.policies.network) == 3
    error_message = "The role must be able to attach interfaces."
  }
}

run "extra_buckets_and_grants_reach_the_role" {
  command = plan

  variables {
    buckets        = { extra = { raw = { access = "write" } } }
    execution_role = { buckets = { lake = { name = "company-lake" } } }
  }

  assert {
    condition     = output.buckets["raw"] == "sagefit-dev-123456789012-eu-west-1-raw"
    error_message = "An extra bucket must be made and published."
  }

  assert {
    condition     = length(setsubtract(["ListLake", "ListRaw"], [for statement in module.role.policies.storage : statement.Sid])) == 0
    error_message = "The role must reach extra and existing buckets."
  }
}

run "warm_pools_are_published" {
  command = plan

  variables {
    warm_pools = { small = { instance_type = "ml.g5.xlarge", keep_alive_seconds = 600 } }
  }

  assert {
    condition     = output.document.warm_pools == { small = { instance_type = "ml.g5.xlarge", instance_count = 1, volume_size_gb = 30, keep_alive_seconds = 600 } }
    error_message = "Pools must be published with their shape."
  }

  assert {
    condition     = length(output.warm_pool_guards["small"]) == 2
    error_message = "Each pool must come with its guards."
  }
}

run "upload_folders_are_published" {
  command = plan

  variables {
    upload_folders = ["/mnt/data", "/data/shared"]
  }

  assert {
    condition     = jsondecode(aws_ssm_parameter.document.value).upload_folders == ["/data/shared", "/mnt/data"]
    error_message = "Sagefit's commands read the folders in the document."
  }
}

run "upload_folders_are_absolute" {
  command = plan

  variables {
    upload_folders = ["data/../.."]
  }

  expect_failures = [var.upload_folders]
}

run "ordinary_platform_fits_the_parameter" {
  command = plan

  variables {
    name                   = "a-platform-of-twenty"
    allowed_instance_types = ["ml.m5.xlarge", "ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"]
    network                = { subnet_ids = [for index in range(16) : "subnet-0123456789abcde0${index}"], security_group_ids = [for index in range(5) : "sg-0123456789abcde0${index}"] }
    tags                   = { for index in range(10) : "Tag${index}" => "a value of an ordinary length" }
    warm_pools             = { for index in range(4) : "pool-${index}" => { instance_type = "ml.g5.2xlarge" } }
  }

  assert {
    condition     = length(aws_ssm_parameter.document.value) < 4096
    error_message = "An ordinary platform must fit into one standard parameter."
  }
}

run "choices_reach_their_modules" {
  command = plan

  variables {
    name                     = "prod"
    log_retention_days       = 365
    max_keep_alive_seconds   = 7200
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
    tags                     = { Team = "vision" }
    buckets = {
      force_destroy = true
      retention     = { data = { expire_days = 90 } }
      access_log    = { bucket = "company-logs", prefix = "sagefit/" }
    }
    repository = { force_delete = true, untagged_days = 3, keep_images = 5 }
    execution_role = {
      repository_arns     = ["arn:aws:ecr:eu-west-1:210987654321:repository/shared"]
      managed_policy_arns = { store = "arn:aws:iam::123456789012:policy/store" }
    }
    alarms = {
      emails     = ["team@example.com"]
      thresholds = { host_memory = 80, container_memory = 92, gpu_memory = 0, disk = 0 }
      events     = { stopped_attempts = false }
      dashboard  = false
    }
    warm_pools = { small = { instance_type = "ml.g5.xlarge", keep_alive_seconds = 7200, pool_count = 2, quota = { request = 2 } } }
  }

  assert {
    condition     = output.document.log_retention_days == 365 && output.document.max_keep_alive_seconds == 7200 && output.document.permissions_boundary_arn == "arn:aws:iam::123456789012:policy/boundary" && jsonencode(output.document.tags) == jsonencode({ Team = "vision", "sagefit:platform" = "prod" })
    error_message = "What jobs obey is in the document."
  }
  assert {
    condition     = aws_ssm_parameter.document.tags == tomap({ Team = "vision", "sagefit:platform" = "prod" })
    error_message = "The document carries the platform's tags."
  }
  assert {
    condition     = contains(module.role.policies.images[1].Resource, "arn:aws:ecr:eu-west-1:210987654321:repository/shared")
    error_message = "Further repositories are in reach."
  }
  assert {
    condition     = output.dashboard_name == null
    error_message = "Without a dashboard none is named."
  }
}

# Rules

run "document_over_4096_bytes_is_refused" {
  command = plan

  variables {
    tags = { for index in range(40) : "Tag${index}" => "a value that is as long as somebody who explains too much would like it to be ${index}" }
  }

  expect_failures = [aws_ssm_parameter.document]
}

run "name_fits_the_bucket_names_of_the_region" {
  command = plan

  variables {
    name = "a-platform-of-twenty"
  }

  override_data {
    target = data.aws_region.this
    values = { id = "ap-southeast-1" }
  }

  expect_failures = [var.name]
}

run "name_is_lower_case" {
  command = plan

  variables {
    name = "Dev"
  }

  expect_failures = [var.name]
}

run "name_is_none_of_another_platforms_topic" {
  command = plan

  variables {
    name = "dev-alarms"
  }

  expect_failures = [var.name]
}

run "name_has_twenty_characters_at_most" {
  command = plan

  variables {
    name = "a-platform-of-twenty1"
  }

  expect_failures = [var.name]
}

run "allowed_instance_types_are_of_sagemaker" {
  command = plan

  variables {
    allowed_instance_types = ["g5.2xlarge"]
  }

  expect_failures = [var.allowed_instance_types]
}

run "retention_names_buckets" {
  command = plan

  variables {
    buckets = { retention = { models = {} } }
  }

  expect_failures = [var.buckets]
}

run "extra_buckets_are_new" {
  command = plan

  variables {
    buckets = { extra = { data = {} } }
  }

  expect_failures = [var.buckets]
}

run "extra_bucket_access_is_a_grade" {
  command = plan

  variables {
    buckets = { extra = { raw = { access = "admin" } } }
  }

  expect_failures = [var.buckets]
}

run "granted_buckets_have_keys_of_their_own" {
  command = plan

  variables {
    execution_role = { buckets = { data = { name = "company-lake" } } }
  }

  expect_failures = [var.execution_role]
}

run "key_is_made_or_given" {
  command = plan

  variables {
    kms = { key = { arn = "arn:aws:kms:eu-west-1:123456789012:key/4444-5555" }, key_arn = "arn:aws:kms:eu-west-1:123456789012:key/0000-1111" }
  }

  expect_failures = [var.kms]
}

run "key_is_no_alias" {
  command = plan

  variables {
    kms = { key_arn = "arn:aws:kms:eu-west-1:123456789012:alias/team" }
  }

  expect_failures = [var.kms]
}

run "log_retention_is_a_period_of_cloudwatch" {
  command = plan

  variables {
    log_retention_days = 31
  }

  expect_failures = [var.log_retention_days]
}

run "max_keep_alive_is_within_the_api" {
  command = plan

  variables {
    max_keep_alive_seconds = 21601
  }

  expect_failures = [var.max_keep_alive_seconds]
}

run "subnets_are_sixteen_at_most" {
  command = plan

  variables {
    network = { subnet_ids = [for index in range(17) : "subnet-${index}"], security_group_ids = ["sg-0a"] }
  }

  expect_failures = [var.network]
}

run "security_groups_are_five_at_most" {
  command = plan

  variables {
    network = { subnet_ids = ["subnet-0a"], security_group_ids = [for index in range(6) : "sg-${index}"] }
  }

  expect_failures = [var.network]
}

run "tags_are_forty_at_most" {
  command = plan

  variables {
    tags = { for index in range(41) : "Tag${index}" => "" }
  }

  expect_failures = [var.tags]
}

run "tag_keys_are_not_reserved" {
  command = plan

  variables {
    tags = { "aws:team" = "vision" }
  }

  expect_failures = [var.tags]
}

run "tag_values_are_short" {
  command = plan

  variables {
    tags = { Team = join("", [for index in range(257) : "x"]) }
  }

  expect_failures = [var.tags]
}

run "warm_pools_use_allowed_types" {
  command = plan

  variables {
    warm_pools             = { small = { instance_type = "ml.g5.xlarge" } }
    allowed_instance_types = ["ml.m5.xlarge"]
  }

  expect_failures = [var.warm_pools]
}

run "max_keep_alive_is_whole" {
  command = plan

  variables {
    max_keep_alive_seconds = 1.5
  }

  expect_failures = [var.max_keep_alive_seconds]
}

run "subnets_and_groups_come_together" {
  command = plan

  variables {
    network = { subnet_ids = ["subnet-0a"] }
  }

  expect_failures = [var.network]
}

run "tags_hold_no_special_characters" {
  command = plan

  variables {
    tags = { Team = "vision*" }
  }

  expect_failures = [var.tags]
}

run "tag_keys_are_not_empty" {
  command = plan

  variables {
    tags = { "" = "vision" }
  }

  expect_failures = [var.tags]
}

run "warm_pools_keep_within_the_platform_limit" {
  command = plan

  variables {
    warm_pools = { small = { instance_type = "ml.g5.xlarge", keep_alive_seconds = 3601 } }
  }

  expect_failures = [var.warm_pools]
}
