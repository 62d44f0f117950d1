# Legal, but seldom meant: warnings that stop nothing.

check "default_runtime_quota" {
  assert {
    condition     = alltrue([for a in var.attempts : a.max_runtime_seconds <= 432000])
    error_message = "attempts[*].max_runtime_seconds: above 432000 (5 days), the default quota of an account. Raise the quota before the run, or lower it."
  }
}

check "pending_limit_without_effect" {
  assert {
    condition = alltrue([
      for i, a in var.attempts : a.max_pending_seconds == null || anytrue([for t in local._machine_types[i] : try(local.instances[t].accelerator, "-") != ""])
    ])
    error_message = "attempts[*].max_pending_seconds: acts on accelerated instances only; CPU instances ignore it."
  }
}

check "encryption_between_one" {
  assert {
    condition     = !local._encrypt_traffic || anytrue([for machines in local._machines : sum(machines[*].instance_count) > 1])
    error_message = "resources.encrypt_inter_container_traffic: no attempt has two instances, so it encrypts nothing and changes the warm pool's match key."
  }
}

check "remote_debug_opens_a_way_in" {
  assert {
    condition     = !var.resources.remote_debug || !(local._isolated || local._in_vpc)
    error_message = "resources.remote_debug: opens a shell through Systems Manager into a job whose network is restricted."
  }
}
