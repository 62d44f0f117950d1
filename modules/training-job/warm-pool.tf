# Whether an attempt will find kept instances, told in the plan. SageMaker gives
# them to a job that is equal in all of these keys (guide, "SageMaker AI managed
# warm pools"). What a pool's profile does not say is the platform's own setting.
locals {
  _pool_keys = [
    for i, a in var.attempts : local._pool == null ? {} : {
      EnableManagedSpotTraining             = [tostring(a.spot), "false"]
      InstanceType                          = [local._machine_words[i], "${local._pool.instance_count} x ${local._pool.instance_type}"]
      VolumeSizeInGB                        = [tostring(local._attempts[i].volume_size_gb), tostring(local._pool.volume_size_gb)]
      VolumeKmsKeyId                        = [jsonencode(local._attempts[i].volume_kms_key), jsonencode(local._pool_kms_keys[i])]
      RoleArn                               = [local.execution_role_arn, var.platform.role_arn]
      Subnets                               = [jsonencode(sort(local._subnet_ids)), jsonencode(sort(local._network.subnet_ids))]
      SecurityGroupIds                      = [jsonencode(sort(local._security_group_ids)), jsonencode(sort(local._network.security_group_ids))]
      EnableNetworkIsolation                = [tostring(local._isolated), tostring(local._network.isolation)]
      EnableInterContainerTrafficEncryption = [tostring(local._encrypt_traffic), tostring(local._network.encrypt_inter_container_traffic)]
    }
  ]
  # Where local disks take no key of the job, they take none of the pool.
  _pool_kms_keys = [for a in local._attempts : a.volume_kms_key == null && local._volume_kms_key != null ? null : var.platform.kms_key_arn]
  _pool_misses   = [for keys in local._pool_keys : [for key, sides in keys : "${key} is ${sides[0]}, the pool has ${sides[1]}" if sides[0] != sides[1]]]

  warm_pool = length([for a in local._attempts : a if a.keep_alive_seconds > 0]) == 0 && local._pool == null ? null : {
    for i, a in var.attempts : a.name => (
      local._pool == null
      ? local._attempts[i].keep_alive_seconds > 0 ? "finds what an earlier run of this job kept in the last ${local._attempts[i].keep_alive_seconds} s" : "starts cold and keeps nothing"
      : length(local._pool_misses[i]) == 0 ? "hits the pool ${var.resources.warm_pool}"
      : "misses the pool ${var.resources.warm_pool}: ${join("; ", local._pool_misses[i])}"
    )
  }
}
