# Whether attempts find the kept instances of a pool, and what prevents it.
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
    kms_key_arn    = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000001"
    network        = { subnet_ids = ["subnet-b", "subnet-a"], security_group_ids = ["sg-a"] }
    warm_pools = {
      small = { instance_type = "ml.m5.large", keep_alive_seconds = 1800 }
      pair  = { instance_type = "ml.m5.large", instance_count = 2, keep_alive_seconds = 1800 }
    }
  }
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "tests/fixtures/code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

run "nothing_is_told_where_nothing_is_kept" {
  command = plan

  assert {
    condition     = output.warm_pool == null
    error_message = "a job without a pool has nothing to match"
  }
}

run "each_attempt_is_compared_with_the_pool" {
  command = plan

  variables {
    resources = { warm_pool = "small" }
    attempts = [
      { name = "first", instance_type = "ml.m5.large", next = { host_memory = "larger", disk = "volume", capacity = "spot" } },
      { name = "larger", instance_type = "ml.m5.xlarge" },
      { name = "volume", instance_type = "ml.m5.large", volume_size_gb = 60 },
      { name = "spot", instance_type = "ml.m5.large", spot = true, max_wait_seconds = 86400 },
      { name = "two", instance_type = "ml.m5.large", instance_count = 2 },
    ]
  }

  assert {
    condition = output.warm_pool == {
      first  = "hits the pool small"
      larger = "misses the pool small: InstanceType is 1 x ml.m5.xlarge, the pool has 1 x ml.m5.large"
      volume = "misses the pool small: VolumeSizeInGB is 60, the pool has 30"
      spot   = "misses the pool small: EnableManagedSpotTraining is true, the pool has false"
      two    = "misses the pool small: InstanceType is 2 x ml.m5.large, the pool has 1 x ml.m5.large"
    }
    error_message = "each attempt says whether it hits the pool, and if not, why"
  }
}

run "settings_of_the_job_are_compared_too" {
  command = plan

  variables {
    resources = {
      warm_pool                       = "pair"
      subnet_ids                      = ["subnet-a", "subnet-b"]
      security_group_ids              = ["sg-b"]
      network_isolation               = true
      encrypt_inter_container_traffic = true
      volume_kms_key_arn              = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000002"
    }
    attempts = [{ name = "first", instance_type = "ml.m5.large", instance_count = 2 }]
  }

  assert {
    condition = output.warm_pool.first == join("; ", [
      "misses the pool pair: EnableInterContainerTrafficEncryption is true, the pool has false",
      "EnableNetworkIsolation is true, the pool has false",
      "SecurityGroupIds is [\"sg-b\"], the pool has [\"sg-a\"]",
      "VolumeKmsKeyId is \"arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000002\", the pool has \"arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000001\"",
    ])
    error_message = "every key that differs is named, and the order of subnets is none of them"
  }
}

run "local_disks_take_no_key_of_job_or_pool" {
  command = plan

  variables {
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
      kms_key_arn    = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000001"
      warm_pools     = { gpu = { instance_type = "ml.g5.xlarge", keep_alive_seconds = 1800 } }
    }
    image     = { framework = "pytorch", version = "2.6" }
    resources = { warm_pool = "gpu" }
    attempts  = [{ name = "first", instance_type = "ml.g5.xlarge" }]
  }

  assert {
    condition     = output.warm_pool == { first = "hits the pool gpu" }
    error_message = "the key of the platform is no difference where neither side takes it"
  }
}

run "a_job_may_keep_instances_for_itself" {
  command = plan

  variables {
    attempts = [
      { name = "first", instance_type = "ml.m5.large", keep_alive_seconds = 600, next = { host_memory = "larger" } },
      { name = "larger", instance_type = "ml.m5.xlarge" },
    ]
  }

  assert {
    condition = output.warm_pool == {
      first  = "finds what an earlier run of this job kept in the last 600 s"
      larger = "starts cold and keeps nothing"
    }
    error_message = "without a pool of the platform only earlier runs keep something"
  }
}
