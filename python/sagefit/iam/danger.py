"""How dangerous a grant is, by what it lets somebody do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from sagefit.iam.policy import Part, Statement, matches, overlap

# With one of these actions an identity can give itself more rights, or act as another identity.
ESCALATION = tuple(
    action.lower()
    for action in (
        "iam:AddUserToGroup",
        "iam:AttachGroupPolicy",
        "iam:AttachRolePolicy",
        "iam:AttachUserPolicy",
        "iam:CreateAccessKey",
        "iam:CreateLoginProfile",
        "iam:CreatePolicyVersion",
        "iam:CreateServiceSpecificCredential",
        "iam:DeactivateMFADevice",
        "iam:DeleteRolePermissionsBoundary",
        "iam:DeleteUserPermissionsBoundary",
        "iam:PassRole",
        "iam:PutGroupPolicy",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
        "iam:PutUserPermissionsBoundary",
        "iam:PutUserPolicy",
        "iam:ResetServiceSpecificCredential",
        "iam:SetDefaultPolicyVersion",
        "iam:UpdateAssumeRolePolicy",
        "iam:UpdateLoginProfile",
        "iam:CreateSAMLProvider",
        "iam:UpdateSAMLProvider",
        "iam:CreateOpenIDConnectProvider",
        "sts:AssumeRole",
        "kms:CreateGrant",
        "kms:PutKeyPolicy",
        "lambda:AddPermission",
        "lambda:UpdateFunctionCode",
        "lambda:UpdateFunctionConfiguration",
        "cloudformation:CreateStack",
        "cloudformation:UpdateStack",
        "cloudformation:SetStackPolicy",
        "codebuild:CreateProject",
        "codebuild:UpdateProject",
        "codebuild:StartBuild",
        "ec2:AssociateIamInstanceProfile",
        "ec2:ReplaceIamInstanceProfileAssociation",
        "ec2-instance-connect:SendSSHPublicKey",
        "ecs:RegisterTaskDefinition",
        "ecs:ExecuteCommand",
        "glue:CreateDevEndpoint",
        "glue:UpdateDevEndpoint",
        "glue:CreateJob",
        "glue:UpdateJob",
        "organizations:*",
        "sagemaker:CreatePresignedNotebookInstanceUrl",
        "sagemaker:CreatePresignedDomainUrl",
        "sagemaker:CreateNotebookInstance",
        "sagemaker:CreateProcessingJob",
        "s3:PutBucketPolicy",
        "s3:DeleteBucketPolicy",
        "s3:PutBucketAcl",
        "s3:PutBucketPublicAccessBlock",
        "s3:PutAccountPublicAccessBlock",
        "secretsmanager:PutResourcePolicy",
        "ssm:SendCommand",
        "ssm:StartSession",
        "sso:AttachManagedPolicyToPermissionSet",
        "sso:PutInlinePolicyToPermissionSet",
        "sso:CreateAccountAssignment",
        "states:UpdateStateMachine",
        "cloudtrail:StopLogging",
        "cloudtrail:DeleteTrail",
        "guardduty:DeleteDetector",
        "kms:ScheduleKeyDeletion",
        "kms:DisableKey",
    )
)

# Read actions that return stored content, not only the list of what exists.
_CONTENT = tuple(
    action.lower()
    for action in (
        "dynamodb:GetItem",
        "dynamodb:Scan",
        "dynamodb:Query",
        "dynamodb:BatchGetItem",
        "ecr:GetDownloadUrlForLayer",
        "kms:Decrypt",
        "s3:GetObject",
        "secretsmanager:GetSecretValue",
        "secretsmanager:BatchGetSecretValue",
        "ssm:GetParameter",
        "ssm:GetParameters",
        "ssm:GetParametersByPath",
        "rds-data:ExecuteStatement",
        "sqs:ReceiveMessage",
        "kinesis:GetRecords",
    )
)

_READS = re.compile(
    r"[\w-]+:(get|list|describe|batchget|batchdescribe|head|view|lookup|search|query|scan|filter|test)\w*\*?$"
)
# These grant by what follows in the condition; on all resources they are the normal form.
_HARMLESS_ON_ALL = re.compile(
    r"(ecr:getauthorizationtoken|cloudwatch:putmetricdata|logs:\w+logdelivery|logs:putresourcepolicy|sts:getcalleridentity|"
    r"ec2:(create|delete)networkinterface(permission)?|logs:create(loggroup|logstream)|logs:putlogevents|xray:put\w+)$"
)

ADMINISTRATORS = re.compile(
    r"/(AdministratorAccess|IAMFullAccess|PowerUserAccess|SystemAdministrator|DatabaseAdministrator|"
    r"AWSOrganizationsFullAccess|AWSSSOMasterAccountAdministrator)(-\w+)?$"
)
READERS = re.compile(r"/(service-role/|aws-service-role/)|(ReadOnly(Access)?|ViewOnlyAccess|SecurityAudit)$")


def escalations(actions: Iterable[str]) -> list[str]:
    """Those of ``actions``, in lower case, with which an identity can give itself more rights."""
    return [text for text in actions if _escalates(text)]


@lru_cache(maxsize=4096)
def _escalates(text: str) -> bool:
    return any(matches(text, action) or matches(action, text) for action in ESCALATION)


def severity_of(actions: Iterable[str], resources: Part, *, but_actions: bool) -> str:
    """How dangerous it is that ``actions`` become possible on ``resources``."""
    texts = list(actions)
    broad = resources.but or any(is_broad(pattern) for pattern in resources.patterns)
    if but_actions or "*" in texts:
        return "critical" if broad else "high"
    if escalations(texts):
        return "critical" if broad else "high"
    if any(text.endswith(":*") for text in texts) or resources.but:
        return "high"
    if broad:
        if any(overlap(text, action) for text in texts for action in _CONTENT):
            return "high"
        if all(_READS.match(text) or _HARMLESS_ON_ALL.match(text) for text in texts):
            return "medium"
        return "high"
    return "medium" if all(_READS.match(text) for text in texts) else "high"


def is_broad(resource: str) -> bool:
    """Whether a resource pattern takes in all of a service."""
    if resource == "*":
        return True
    parts = resource.split(":", 5)
    return len(parts) == 6 and parts[5] in (
        "*",
        "*/*",
        "role/*",
        "user/*",
        "policy/*",
        "function:*",
        "secret:*",
        "key/*",
    )


def is_absolute(statement: Statement) -> bool:
    """Whether a grant is dangerous for any identity: all actions, whole services, a way to get more rights."""
    broad = statement.resources.but or any(is_broad(pattern) for pattern in statement.resources.patterns)
    if statement.actions.but or "*" in statement.actions.patterns:
        return True
    service = any(text.endswith(":*") for text in statement.actions.patterns)
    return broad and (service or bool(_dangerous(statement)))


def _dangerous(statement: Statement) -> list[str]:
    """Escalations without a condition. With one such as iam:PassedToService, a grant on all resources is usual."""
    return [] if statement.conditions else escalations(statement.actions.patterns)


# Conditions that limit a grant to everyone to the identities of one account, organisation, network or resource.
_NARROW = {
    "aws:principalaccount",
    "aws:principalarn",
    "aws:principalorgid",
    "aws:principalorgpaths",
    "aws:sourceaccount",
    "aws:sourcearn",
    "aws:sourceorgid",
    "aws:sourceowner",
    "aws:sourcevpc",
    "aws:sourcevpce",
    "aws:userid",
    "aws:username",
    "kms:calleraccount",
    "aws:vpcsourceip",
    "s3:dataaccesspointaccount",
    "elasticfilesystem:accesspointarn",
    "elasticfilesystem:accessedviamounttarget",
    "lambda:functionurlauthtype",
    "sns:endpoint",
}


def is_public(statement: Statement) -> bool:
    """Whether it grants something to anybody at all."""
    if not statement.allows or not (statement.principals.but or "*" in statement.principals.patterns):
        return False
    for operator, key, values in statement.conditions:
        if "not" in operator or operator.endswith("ifexists") or "null" in operator:
            continue
        if key in _NARROW and not values & {"*", "arn:aws:*"}:
            return False
        if key == "aws:sourceip" and not values & {"0.0.0.0/0", "::/0", "*"}:
            return False
    return True
