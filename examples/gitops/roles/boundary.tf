# What the roles of the platforms and of their jobs can ever have, whatever their policies say. Whoever may write policies
# of a role may write any policy; with this boundary on each of them, that is no way to more than a job needs.
locals {
  _boundary_arn = coalesce(var.permissions_boundary_arn, "${local._iam}:policy/${var.name}-boundary")

  _work = {
    Sid    = "Work"
    Effect = "Allow"
    Action = sort(concat(
      [
        "cloudwatch:PutMetricData",
        "ec2:CreateNetworkInterface",
        "ec2:CreateNetworkInterfacePermission",
        "ec2:DeleteNetworkInterface",
        "ec2:DeleteNetworkInterfacePermission",
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:GetAuthorizationToken",
        "ecr:GetDownloadUrlForLayer",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey",
        "logs:CreateLogDelivery",
        "logs:CreateLogGroup",
        "logs:CreateLogStream",
        "logs:DeleteLogDelivery",
        "logs:DescribeLogGroups",
        "logs:DescribeLogStreams",
        "logs:DescribeResourcePolicies",
        "logs:GetLogDelivery",
        "logs:ListLogDeliveries",
        "logs:PutLogEvents",
        "logs:PutResourcePolicy",
        "logs:UpdateLogDelivery",
        "s3:AbortMultipartUpload",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
        "sagemaker:AddTags",
        "sagemaker:CreateHyperParameterTuningJob",
        "sagemaker:CreateProcessingJob",
        "sagemaker:CreateTrainingJob",
        "sagemaker:DescribeHyperParameterTuningJob",
        "sagemaker:DescribeProcessingJob",
        "sagemaker:DescribeTrainingJob",
        "sagemaker:ListHyperParameterTuningJobs",
        "sagemaker:ListProcessingJobs",
        "sagemaker:ListTrainingJobs",
        "sagemaker:ListTrainingJobsForHyperParameterTuningJob",
        "sagemaker:StopHyperParameterTuningJob",
        "sagemaker:StopProcessingJob",
        "sagemaker:StopTrainingJob",
        "sagemaker:UpdateTrainingJob",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
        "states:DescribeExecution",
        "states:StartExecution",
        "xray:GetSamplingRules",
        "xray:GetSamplingTargets",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
      ],
      var.boundary_actions,
    ))
    Resource = "*"
  }

  # Only a service of AWS is given leave to use a key, never somebody.
  _grant_to_services = {
    Sid       = "GrantToServices"
    Effect    = "Allow"
    Action    = "kms:CreateGrant"
    Resource  = "*"
    Condition = { Bool = { "kms:GrantIsForAWSResource" = "true" } }
  }

  # A role that may be passed to a job gives the job what it may do, so no role of others is passed.
  _pass_to_jobs = {
    Sid       = "PassToJobs"
    Effect    = "Allow"
    Action    = "iam:PassRole"
    Resource  = concat(local._roles, var.boundary_role_arns)
    Condition = { StringEquals = { "iam:PassedToService" = "sagemaker.amazonaws.com" } }
  }

  # Whoever writes a state decides what the next apply does.
  _not_the_state = {
    Sid      = "NotTheState"
    Effect   = "Deny"
    Action   = "s3:*"
    Resource = "${local._state_objects}/*"
  }

  _boundary_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [local._work, local._grant_to_services, local._pass_to_jobs, local._not_the_state]
  })
}
