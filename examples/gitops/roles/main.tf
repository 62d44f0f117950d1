# Two roles for the pipeline: one that plans and can change nothing, one that applies and is out of a pull request's
# reach. Neither has a key that could leak: the host's own tokens say which job of which repository asks.

provider "aws" {
  region = var.region
}

locals {
  _partition = startswith(var.region, "cn-") ? "aws-cn" : startswith(var.region, "us-gov-") ? "aws-us-gov" : "aws"
  _arn       = "arn:${local._partition}"
  _here      = "${var.region}:${var.account_id}"
  # kms:ViaService has the domain of the partition, and principals of services have not.
  _via = "${var.region}.${local._partition == "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com"}"

  _hosts = {
    github = { issuer = "token.actions.githubusercontent.com", audience = "sts.amazonaws.com" }
    gitlab = { issuer = "gitlab.com", audience = "https://gitlab.com" }
  }
  _issuer   = local._hosts[var.host].issuer
  _audience = coalesce(var.audience, local._hosts[var.host].audience)
  _provider = coalesce(
    var.oidc_provider_arn,
    "${local._arn}:iam::${var.account_id}:oidc-provider/${local._issuer}",
  )

  # Who may take which role, each subject in full: StringEquals knows no pattern.
  _subjects = {
    github = {
      plan = [
        "repo:${var.repository}:pull_request",
        "repo:${var.repository}:environment:${var.drift_environment}",
      ]
      apply = ["repo:${var.repository}:environment:${var.environment}"]
    }
    gitlab = {
      plan  = [for branch in var.plan_branches : "project_path:${var.repository}:ref_type:branch:ref:${branch}"]
      apply = ["project_path:${var.repository}:ref_type:branch:ref:${var.apply_branch}"]
    }
  }[var.host]

  _trust = {
    for role, subjects in local._subjects : role => jsonencode({
      Version = "2012-10-17"
      Statement = [{
        Sid       = "Pipeline"
        Effect    = "Allow"
        Action    = "sts:AssumeRoleWithWebIdentity"
        Principal = { Federated = local._provider }
        Condition = {
          StringEquals = {
            "${local._issuer}:aud" = local._audience
            "${local._issuer}:sub" = subjects
          }
        }
      }]
    })
  }

  _policies = { plan = local._plan_policy, apply = local._apply_policy }

  # Managed policies, and which roles have them.
  _managed = merge(
    {
      read  = { policy = local._read_policy, roles = ["plan", "apply"] }
      roles = { policy = local._roles_policy, roles = ["apply"] }
    },
    # It bounds the roles of the platforms, which are made elsewhere.
    { for name in ["boundary"] : name => { policy = local._boundary_policy, roles = [] } if var.permissions_boundary_arn == null },
  )
  _attached = merge([
    for name, managed in local._managed : { for role in managed.roles : "${role}-${name}" => { role = role, policy = name } }
  ]...)
}

resource "aws_iam_openid_connect_provider" "this" {
  count = var.oidc_provider_arn == null ? 1 : 0

  url            = "https://${local._issuer}"
  client_id_list = [local._audience]
}

resource "aws_iam_role" "this" {
  for_each = local._trust

  name                 = "${var.name}-${each.key}"
  description          = "Sagefit pipeline of ${var.repository}: ${each.key}"
  assume_role_policy   = each.value
  max_session_duration = 3600

  lifecycle {
    precondition {
      condition     = length(local._subjects[each.key]) > 0
      error_message = "plan_branches: with host = gitlab, name at least one branch whose merge requests may plan."
    }
  }

  depends_on = [aws_iam_openid_connect_provider.this]
}

resource "aws_iam_role_policy" "this" {
  for_each = local._policies

  name   = each.key
  role   = aws_iam_role.this[each.key].name
  policy = each.value

  lifecycle {
    precondition {
      condition     = length(each.value) <= 10240
      error_message = "platforms: the policy of the ${each.key} role would have ${length(each.value)} characters, and a role has 10,240 (IAM). Give some of the platforms to a second pair of roles, with another name."
    }
  }
}

resource "aws_iam_policy" "this" {
  for_each = local._managed

  name        = "${var.name}-${each.key}"
  description = "Sagefit pipeline of ${var.repository}: ${each.key}"
  policy      = each.value.policy

  lifecycle {
    precondition {
      condition     = length(each.value.policy) <= 6144
      error_message = "platforms: the managed policy ${var.name}-${each.key} would have ${length(each.value.policy)} characters, and one has 6,144 (IAM). Give some of the platforms to a second pair of roles, with another name."
    }
  }
}

resource "aws_iam_role_policy_attachment" "this" {
  for_each = local._attached

  role       = aws_iam_role.this[each.value.role].name
  policy_arn = aws_iam_policy.this[each.value.policy].arn
}
