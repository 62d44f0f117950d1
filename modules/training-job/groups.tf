# What each attempt runs on: its instance groups, or one kind of instance.
locals {
  _machines = [
    for a in var.attempts : length(a.instance_groups) > 0 ? a.instance_groups : tolist([
      { name = "", instance_type = coalesce(a.instance_type, "-"), instance_count = a.instance_count },
    ])
  ]
  _machine_types = [for machines in local._machines : distinct(machines[*].instance_type)]
  _machine_words = [for machines in local._machines : join(" + ", [for m in machines : "${m.instance_count} x ${m.instance_type}"])]
}
