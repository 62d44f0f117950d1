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
      for a in var.attempts : a.max_pending_seconds == null || try(local.instances[a.instance_type].accelerator, "-") != ""
    ])
    error_message = "attempts[*].max_pending_seconds: acts on accelerated instances only; CPU instances ignore it."
  }
}

check "encryption_between_one" {
  assert {
    condition     = !local._encrypt_traffic || anytrue([for a in var.attempts : a.instance_count > 1])
    error_message = "resources.encrypt_inter_container_traffic: no attempt has two instances, so it encrypts nothing and changes the warm pool's match key."
  }
}

check "remote_debug_opens_a_way_in" {
  assert {
    condition     = !var.resources.remote_debug || !(local._isolated || local._in_vpc)
    error_message = "resources.remote_debug: opens a shell through Systems Manager into a job whose network is restricted."
  }
}

check "polls_fit_into_the_history" {
  assert {
    condition     = local.worst_case_seconds / local.poll_seconds <= 2770
    error_message = "resources.poll_seconds: an execution holds about 2770 looks at a training job (25,000 events), fewer than this job's time limits may need. Raise it, or leave it out to have it computed."
  }
}
