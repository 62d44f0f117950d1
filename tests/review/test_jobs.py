"""A job in a plan: read back from its definition, with fit, attempts and price."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from review.plans import change, found, reviewed
from sagefit.machine.definition import read_definition
from sagefit.reviewing import as_json, markdown

ARN = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/vendedlogs/states/x:*"


def definition(
    name: str = "bert-finetune", batch: str = "32", types: tuple[str, ...] = ("ml.g6e.xlarge", "ml.g6e.2xlarge")
) -> dict[str, Any]:
    """A state machine of the form that modules/training-job writes, cut to what is read. The corpus has whole ones."""
    names = ["main", "larger"][: len(types)]
    states: dict[str, Any] = {
        "again": {"Type": "Choice", "Choices": [{"StringEquals": each, "Next": f"{each}: submit"} for each in names]},
    }
    for each, ml_type in zip(names, types, strict=True):
        states[f"{each}: submit"] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:createTrainingJob",
            "Comment": f"1 x {ml_type}: why",
            "Parameters": {
                "RoleArn": "arn:aws:iam::123456789012:role/r",
                "AlgorithmSpecification": {"TrainingImage": "1.dkr.ecr.us-east-1.amazonaws.com/i:1"},
                "HyperParameters": {
                    "model_name": "bert-large-uncased", "max_length": "512", "per_device_train_batch_size": batch,
                    "gradient_accumulation_steps": "1", "gradient_checkpointing": "false",
                    "dataloader_num_workers": "4", "bf16": "true", "learning_rate": "2e-05", "num_train_epochs": "3",
                },
                "ResourceConfig": {"InstanceType": ml_type, "InstanceCount": 1, "VolumeSizeInGB": 30},
                "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            },
        }  # fmt: skip
        states[f"{each}: ended"] = {"Type": "Pass"}
    if len(names) > 1:
        choices = [{"Variable": "$.class", "StringEquals": "gpu_memory", "Next": "larger: submit"}]
        states["main: next"] = {"Type": "Choice", "Choices": choices}
    return {"Comment": f"Sagefit job {name}: words", "StartAt": "begin", "TimeoutSeconds": 9000, "States": states}


def machine(before: Any, after: Any) -> dict[str, Any]:
    def values(of: Any) -> Any:
        return (
            None if of is None else {"definition": json.dumps(of), "logging_configuration": [{"log_destination": ARN}]}
        )

    return change("module.job.aws_sfn_state_machine.this", values(before), values(after), module_address="module.job")


def test_fit_attempts_and_price_before_and_after() -> None:
    report = as_json(reviewed(machine(definition(), definition(batch="16"))))
    (job,) = report["jobs"]
    assert job["job"] == "bert-finetune"
    assert job["region"] == "us-east-1"
    assert job["verdict"] == "FITS"
    assert [a["name"] for a in job["attempts"]] == ["main", "larger"]
    assert job["attempts"][0]["next"] == {"gpu_memory": "larger"}
    before, after = (job[side][0]["gpu_gib"]["upper"] for side in ("attempts_before", "attempts"))
    assert after < before, "half the batch needs less"
    assert job["cost"] == job["cost_before"]
    assert job["cost"]["worst_case_usd"] == report["cost"]["worst_case"]["after_usd"] > job["cost"]["expected_usd"] > 0
    assert job["changes"] == [{"field": "hyperparameters.per_device_train_batch_size", "before": "32", "after": "16"}]


def test_attempts_are_a_picture_in_which_a_name_stays_a_name() -> None:
    text = markdown(reviewed(machine(None, definition())))
    assert "```mermaid\nflowchart LR\n" in text
    assert '  a0 -- "gpu_memory" --> a1\n' in text
    hostile = json.loads(json.dumps(definition()).replace("larger", "l```</details>];click a0 href x"))
    text = markdown(reviewed(machine(None, hostile)))
    assert '  a1["l_____details___click a0 href x<br/>' in text
    alone = markdown(reviewed(machine(None, definition(types=("ml.g5.xlarge",)))))
    assert "mermaid" not in alone
    assert "After a failure it ends." in alone


def test_an_attempt_that_does_not_fit_is_a_finding() -> None:
    assert ("job-does-not-fit", "high") in found(machine(definition(), definition(batch="512")))
    text = markdown(reviewed(machine(definition(), definition(batch="512"))))
    assert "| fits in memory | FITS: GPU" in text
    assert "| OOM: GPU" in text


def test_without_a_job_file_the_fit_is_unknown_and_says_why() -> None:
    text = markdown(reviewed(machine(None, definition(name="no-such-job"))))
    assert "UNKNOWN: `no job file jobs/no-such-job.yaml here`" in text


def test_a_price_that_is_not_known_is_not_invented() -> None:
    rules = found(machine(definition(), definition(types=("ml.x99.large",))))
    assert ("job-price-unknown", "medium") in rules
    assert "price not found" in markdown(reviewed(machine(definition(), definition(types=("ml.x99.large",)))))


def test_a_definition_that_is_not_known_yet_is_for_people() -> None:
    entry = machine(definition(), definition())
    del entry["change"]["after"]["definition"]
    entry["change"]["after_unknown"] = {"definition": True}
    assert found(entry) == [("job-unreadable", "high")]


@pytest.mark.parametrize("what", ["task", "state", "request", "target"])
def test_what_sagefit_does_not_write_is_told(what: str) -> None:
    changed = copy.deepcopy(definition())
    if what == "task":
        changed["States"]["classify"] = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke"}
    elif what == "state":
        changed["States"]["sneak"] = {"Type": "Pass"}
    elif what == "request":
        changed["States"]["larger: submit"]["Parameters"]["RoleArn"] = "arn:aws:iam::123456789012:role/admin"
    else:
        changed["States"]["main: next"]["Choices"][0]["Next"] = "elsewhere"
    assert "job-unreadable" in [rule for rule, _ in found(machine(definition(), changed))]


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", '{"Comment": "Sagefit job x"}', '{"Comment": "Sagefit job x", "States": {"again": 1}}'],
)
def test_what_is_no_definition_is_not_read(text: str) -> None:
    assert read_definition(text) is None


def test_a_removed_job_is_told() -> None:
    text = markdown(reviewed(machine(definition(), None)))
    assert "### Job `bert-finetune`: removed" in text
    assert "state-machine-destroy" in text


def test_other_state_machines_are_no_jobs() -> None:
    other = {"Comment": "mine", "StartAt": "a", "States": {"a": {"Type": "Succeed"}}}
    assert as_json(reviewed(machine(other, other | {"Comment": "yours"})))["jobs"] == []


KEY = "arn:aws:kms:us-east-1:123456789012:key/22222222-3333-4444-5555-666666666666"
EC2 = "arn:aws:ec2:us-east-1"


def wishes() -> dict[str, Any]:
    """A definition whose request names subnets, a group and a key, and opens a shell."""
    changed = definition(types=("ml.g6e.xlarge",))
    changed["States"]["main: submit"]["Parameters"] |= {
        "VpcConfig": {"Subnets": ["subnet-0a", "subnet-0b"], "SecurityGroupIds": ["sg-0a"]},
        "OutputDataConfig": {"S3OutputPath": "s3://artifacts/x", "KmsKeyId": KEY},
        "RemoteDebugConfig": {"EnableRemoteDebug": True},
    }
    return changed


def rights(*more: dict[str, Any]) -> dict[str, Any]:
    given = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::data/*"]}
    return {"policy": json.dumps({"Version": "2012-10-17", "Statement": [given, *more]})}


def grant(action: str | list[str], resource: str | list[str], **condition: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, "Condition": condition}


ITS_GROUP = f"{EC2}:*:security-group/sg-0a"
INTERFACES = f"{EC2}:123456789012:network-interface/*"
OF_ITS_SUBNETS = {"ArnLike": {"ec2:Subnet": [f"{EC2}:*:subnet/subnet-0a", f"{EC2}:*:subnet/subnet-0b"]}}
OF_OTHERS = {"ArnLike": {"ec2:Subnet": [f"{EC2}:*:subnet/subnet-0a", f"{EC2}:*:subnet/*"]}}
TO_SERVICES = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
SHELL = [f"ssmmessages:{verb}{noun}Channel" for verb in ("Create", "Open") for noun in ("Control", "Data")]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (grant("ec2:CreateNetworkInterface", [INTERFACES, f"{EC2}:*:subnet/subnet-0b", ITS_GROUP]), True),
        (grant("ec2:CreateNetworkInterface", [INTERFACES, f"{EC2}:*:subnet/subnet-0c"]), False),
        (grant("ec2:CreateNetworkInterface", "*"), False),
        (grant("ec2:DeleteNetworkInterface", INTERFACES, **OF_ITS_SUBNETS), True),
        (grant("ec2:DeleteNetworkInterface", INTERFACES, **OF_OTHERS), False),
        (grant("ec2:DeleteNetworkInterface", INTERFACES), False),
        (grant("ec2:DescribeSubnets", "*"), True),
        (grant("ec2:RunInstances", "*"), False),
        (grant(["kms:Decrypt", "kms:Encrypt"], KEY), True),
        (grant("kms:Decrypt", KEY[:-1] + "7"), False),
        (grant("kms:CreateGrant", KEY, **TO_SERVICES), True),
        (grant("kms:CreateGrant", KEY), False),
        (grant(SHELL, "*"), True),
        (grant([*SHELL, "ssm:StartSession"], "*"), False),
    ],
)  # fmt: skip
def test_what_the_role_needs_for_what_the_job_names_is_no_alarm(statement: dict[str, Any], expected: bool) -> None:
    """It follows from the job, whose own finding and words say it; anything beyond is an alarm."""
    policy = change(
        "module.job.aws_iam_role_policy.execution", rights(), rights(statement), module_address="module.job"
    )
    review = reviewed(machine(definition(types=("ml.g6e.xlarge",)), wishes()), policy)
    told = [finding for finding in review.findings if finding.address == policy["address"]]
    assert told
    assert all(finding.severity == "low" for finding in told) == expected


def test_without_the_wish_the_same_rights_are_an_alarm() -> None:
    policy = change(
        "module.job.aws_iam_role_policy.execution", rights(), rights(grant(SHELL, "*")), module_address="module.job"
    )
    job = definition(types=("ml.g6e.xlarge",))
    review = reviewed(machine(job, job | {"TimeoutSeconds": 9001}), policy)
    assert [f.severity for f in review.findings if f.address == policy["address"]] != ["low"]
