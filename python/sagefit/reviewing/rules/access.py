"""Who may do what, by the policies of identities and of resources; and what is open to everybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sagefit.documents import UNKNOWN
from sagefit.iam import Lost, Policy, Statement, widened
from sagefit.iam.danger import escalations, is_absolute, is_public, severity_of
from sagefit.iam.policy import ANY, EMPTY, NOT_KNOWN, Part
from sagefit.reviewing.jobs.limits import follows, with_limits_of
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import SEVERITIES, Hit, Severity
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.rules.documents import BINDING, conditions, of_others, policies, told, unknown
from sagefit.reviewing.values import will_be

# Attributes that hold policies. The second attribute names the identity that a policy is attached to.
IDENTITY = {
    "aws_iam_policy": ("policy", ""),
    "aws_iam_role_policy": ("policy", "role:aws_iam_role"),
    "aws_iam_user_policy": ("policy", "user:aws_iam_user"),
    "aws_iam_group_policy": ("policy", "group:aws_iam_group"),
    "aws_iam_role": ("inline_policy.policy", ""),
    "aws_ssoadmin_permission_set_inline_policy": ("inline_policy", ""),
    "aws_iot_policy": ("policy", ""),
    "aws_organizations_policy": ("content", ""),
}
RESOURCE = {
    "aws_api_gateway_rest_api": "policy",
    "aws_api_gateway_rest_api_policy": "policy",
    "aws_backup_vault_policy": "policy",
    "aws_cloudwatch_event_bus_policy": "policy",
    "aws_cloudwatch_log_destination_policy": "access_policy",
    "aws_cloudwatch_log_resource_policy": "policy_document",
    "aws_codeartifact_domain_permissions_policy": "policy_document",
    "aws_codeartifact_repository_permissions_policy": "policy_document",
    "aws_dynamodb_resource_policy": "policy",
    "aws_ecr_registry_policy": "policy",
    "aws_ecr_repository_policy": "policy",
    "aws_ecrpublic_repository_policy": "policy",
    "aws_efs_file_system_policy": "policy",
    "aws_elasticsearch_domain": "access_policies",
    "aws_elasticsearch_domain_policy": "access_policies",
    "aws_glacier_vault": "access_policy",
    "aws_glue_resource_policy": "policy",
    "aws_kinesis_resource_policy": "policy",
    "aws_kms_external_key": "policy",
    "aws_kms_key": "policy",
    "aws_kms_key_policy": "policy",
    "aws_kms_replica_key": "policy",
    "aws_media_store_container_policy": "policy",
    "aws_opensearch_domain": "access_policies",
    "aws_opensearch_domain_policy": "access_policies",
    "aws_opensearchserverless_access_policy": "policy",
    "aws_s3_access_point": "policy",
    "aws_s3_bucket": "policy",
    "aws_s3_bucket_policy": "policy",
    "aws_s3control_access_point_policy": "policy",
    "aws_sagemaker_model_package_group_policy": "resource_policy",
    "aws_schemas_registry_policy": "policy",
    "aws_secretsmanager_secret": "policy",
    "aws_secretsmanager_secret_policy": "policy",
    "aws_ses_identity_policy": "policy",
    "aws_sns_topic": "policy",
    "aws_sns_topic_policy": "policy",
    "aws_sqs_queue": "policy",
    "aws_sqs_queue_policy": "policy",
    "aws_vpc_endpoint": "policy",
    "aws_vpc_endpoint_policy": "policy",
}
# Without a policy of its own an endpoint lets everybody in the network through; what they may do is said elsewhere.
_OPEN_BY_DEFAULT = ("aws_vpc_endpoint", "aws_vpc_endpoint_policy")
# Resources that go with their policy: their own loss is another rule's.
_OWN_POLICY = {kind for kind, attribute in RESOURCE.items() if not kind.endswith(("policy", "access_policies"))}
_TLS_KEYS = {"aws:securetransport", "s3:tlsversion"}


def judge(change: Change, context: Context) -> Iterator[Hit]:
    """What a policy of this resource allows beyond what it allowed before."""
    if change.kind not in ("create", "update", "replace", "delete") or change.deposed:
        return
    if change.type in IDENTITY:
        yield from _identity(change, context)
    if change.type in RESOURCE:
        yield from _resource(change, context)


def _identity(change: Change, context: Context) -> Iterator[Hit]:
    attribute, owner = IDENTITY[change.type]
    if _left_to_aws(change, attribute, context):
        return
    if change.kind == "delete" and context.goes_with_its_owner(change):
        return
    before, after = policies(change, attribute, context)
    name, _, of_type = owner.partition(":")
    fresh = change.kind == "create" and (not owner or context.is_new(change, name, of_type))
    if after is None or not after.whole:
        yield unknown(attribute, before)
    if after is None:
        return
    if not fresh:
        job = context.jobs.get(change.module_address) if change.type == "aws_iam_role_policy" else None
        for lost in widened(with_limits_of(job, before, after) if job else before, after):
            needed = job and follows(job, context.asked[change.module_address], lost)
            yield replace(_widening(lost), severity="low") if needed else _widening(lost)
        return
    for statement in after.allowing:
        if is_absolute(statement):
            yield _grant(_all_of(statement), "iam-widened")


def _left_to_aws(change: Change, attribute: str, context: Context) -> bool:
    """Whether the configuration has no policy: an unknown value is then the default that AWS fills in."""
    unknown = any(value is UNKNOWN for value in will_be(change, attribute))
    return unknown and not context.references.gives(change.address, attribute.split(".")[0])


def _all_of(statement: Statement) -> Lost:
    actions, resources, principals = statement.actions, statement.resources, statement.principals
    return Lost(statement, tuple(actions.listed), tuple(resources.listed), tuple(principals.listed))


def _widening(lost: Lost) -> Hit:
    if not lost.statement.allows:
        return _denial(lost)
    if lost.condition:
        words = "{} on {} is allowed under {}"
        return Hit("iam-condition-lost", say(words, lost.actions, lost.resources, conditions(lost)))
    return _grant(lost, "iam-widened")


def _grant(lost: Lost, rule: str) -> Hit:
    resources = Part(frozenset(text.removeprefix("not ") for text in lost.resources), lost.statement.resources.but)
    severity = severity_of(lost.actions, resources, but_actions=lost.statement.actions.but)
    more = escalations(lost.actions)
    if any(action == "*" for action in lost.actions) or lost.statement.actions.but:
        rule = "iam-admin"
    elif more and (severity == "critical" or not all(text.endswith(":*") for text in more)):
        rule = "iam-escalation"
    if lost.statement.conditions and severity == "critical":
        severity = "high"
    return Hit(rule, told("allows {} on {}", lost, lost.actions, lost.resources), _severity(severity))


def _severity(text: str) -> Severity:
    return next(severity for severity in SEVERITIES if severity == text)


def _denial(lost: Lost) -> Hit:
    keys = lost.statement.condition_keys
    message = told("{} on {} is no longer denied", lost, lost.actions, lost.resources)
    if keys & _TLS_KEYS:
        return Hit("tls-off", message)
    if any("encryption" in key for key in keys):
        return Hit("encryption-off", message)
    return Hit("iam-deny-lost", message)


def _resource(change: Change, context: Context) -> Iterator[Hit]:
    attribute = RESOURCE[change.type]
    if _left_to_aws(change, attribute, context):
        return
    before, after = policies(change, attribute, context)
    if change.kind == "delete":
        if change.type not in _OWN_POLICY and not context.goes_with_its_owner(change):
            yield from (_denial(lost) for lost in widened(Policy(tuple(before.denying)), EMPTY))
        return
    if after is None or not after.whole:
        yield unknown(attribute, before)
    if after is None:
        return
    if not before.statements:  # what a new policy gives to named ones is what it is made for
        yield from (_public(_all_of(s)) for s in after.allowing if is_public(s) and change.type not in _OPEN_BY_DEFAULT)
        yield from (hit for statement in after.allowing for hit in _to_strangers(statement, context))
        return
    for lost in widened(before, after):
        if not lost.statement.allows:
            yield _denial(lost)
        elif is_public(lost.statement) and change.type not in _OPEN_BY_DEFAULT:
            yield _public(lost)
        elif lost.condition:
            words = "{} may do {} under {}"
            yield Hit("iam-condition-lost", say(words, _who(lost), lost.actions, conditions(lost)))
        else:
            yield Hit("iam-widened", told("{} may do {}", lost, _who(lost), lost.actions))


def _to_strangers(statement: Statement, context: Context) -> Iterator[Hit]:
    """What a policy that was not there gives to another account, without a condition that binds it."""
    strangers = of_others(tuple(statement.principals.listed), context)
    if context.accounts and strangers and not is_public(statement) and not statement.condition_keys & BINDING:
        words = "{}, of another account, may do {}"
        yield Hit("iam-widened", say(words, strangers, tuple(statement.actions.listed)), "medium")


def _public(lost: Lost) -> Hit:
    return Hit("public-access", told("anybody may do {} on {}", lost, lost.actions, lost.resources))


def _who(lost: Lost) -> tuple[str, ...]:
    return tuple("anybody" if text in ANY else text for text in lost.principals if text != NOT_KNOWN) or (NOT_KNOWN,)
