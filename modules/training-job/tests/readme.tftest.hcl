# The example of the README is this one, and it plans.
mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "us-east-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012", arn = "arn:aws:iam::123456789012:root" }
  }
  override_data {
    target = data.aws_ssm_parameter.platform
    values = {
      insecure_value = "{\"schema\":1,\"name\":\"dev\",\"partition\":\"aws\",\"region\":\"us-east-1\",\"account_id\":\"123456789012\",\"role_arn\":\"arn:aws:iam::123456789012:role/sagefit-dev-execution\",\"buckets\":{\"data\":\"d\",\"artifacts\":\"a\",\"checkpoints\":\"c\"}}"
    }
  }
}

run "the_example_plans" {
  command = plan

  module {
    source = "./tests/example"
  }

  assert {
    condition     = [for rule in output.definition.States["cheapest: next"].Choices : rule.Next if rule.StringEquals == "gpu_memory"] == ["half-batch: submit"]
    error_message = "the example's graph is the one its text tells"
  }
  # An assertion must name something of the plan, so each begins with the job.
  assert {
    condition     = output.state_machine_arn != "" && strcontains(file("README.md"), replace(file("tests/example/main.tf"), "source = \"../..\"", "source = \"./modules/training-job\""))
    error_message = "README.md shows tests/example/main.tf; copy it there"
  }
}

run "the_tables_are_complete" {
  command = plan

  module {
    source = "./tests/example"
  }

  assert {
    condition = output.state_machine_arn != "" && alltrue([
      for name in distinct(flatten([
        for f in fileset(".", "{variables*,outputs}.tf") : regexall("(?m)^(?:variable|output) \"(\\w+)\"", file(f))
      ])) : strcontains(file("README.md"), "| `${name}` |")
    ])
    error_message = "README.md lists every variable and output"
  }
}
