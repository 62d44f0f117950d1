"""What a plan takes from runs in progress, and what it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit import deploy
from sagefit.errors import REFUSED, SagefitError
from sagefit.job import load_job
from sagefit.platform import NoPlatformError
from sagefit.running import Run
from sagefit.taken import may_take, taken
from sagefit.terraform import Plan

CODE = 'module.job.aws_s3_object.code["train.py"]'
MACHINE = "module.job.aws_sfn_state_machine.this"
MACHINE_ROLE = "module.job.aws_iam_role.state_machine"
RIGHTS = "module.job.aws_iam_role_policy.state_machine"
ATTACHED = 'module.job.aws_iam_role_policy_attachment.execution["images"]'
JOBS = "arn:aws:sagemaker:us-east-1:123456789012:training-job/"


def change(address: str, actions: list[str], before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    """A resource of a plan, as ``terraform show -json`` has it."""
    kind = address.removeprefix("module.job.").removeprefix("module.role.").split(".")[0]
    inner = {"actions": actions, "before": before, "after": after, **more}
    return {"address": address, "mode": "managed", "type": kind, "change": inner}


def policy(**statement: Any) -> str:
    """A policy of one statement that lets a machine create jobs."""
    one = {"Effect": "Allow", "Action": ["sagemaker:CreateTrainingJob"], "Resource": [f"{JOBS}bert-??????-??????-?"]}
    return json.dumps({"Version": "2012-10-17", "Statement": [one | statement]})


def rights(before: str, after: str | None, address: str = RIGHTS) -> dict[str, Any]:
    """An update of the policy of a role; without ``after`` it is known only after the apply."""
    values = {"role": "sagefit-dev-bert", "policy": after}
    unknown = {} if after else {"policy": True}
    return change(address, ["update"], {"role": "sagefit-dev-bert", "policy": before}, values, after_unknown=unknown)


TYPES = {"ForAllValues:StringEquals": {"sagemaker:InstanceTypes": ["ml.g5.xlarge"]}}
MORE_TYPES = {"ForAllValues:StringEquals": {"sagemaker:InstanceTypes": ["ml.g5.xlarge", "ml.g5.2xlarge"]}}
OTHER_TYPES = {"ForAllValues:StringEquals": {"sagemaker:InstanceTypes": ["ml.g5.2xlarge"]}}
SCHEDULED = [f"{JOBS}bert-??????-??????-?", f"{JOBS}bert-*"]
ROLE = {"name": "sagefit-dev-bert", "assume_role_policy": policy(Principal={"Service": "states.amazonaws.com"})}
NARROW = "role sagefit-dev-bert: sagemaker:createtrainingjob"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([change(CODE, ["delete", "create"], {"key": "a"}, {"key": "b"})], ["files of its code or data (1)"]),
        ([change(CODE, ["create"], None, {"key": "b"}), change(MACHINE, ["update"], {}, {})], []),
        ([change(MACHINE, ["delete"], {}), change(CODE, ["delete"], {})], ["the state machine that runs it"]),
        ([change(MACHINE_ROLE, ["delete"], ROLE), rights(policy(), policy())], ["role sagefit-dev-bert"]),
        ([change(MACHINE_ROLE, ["update"], ROLE, ROLE | {"tags": {"a": "b"}})], []),
        (
            [change(MACHINE_ROLE, ["update"], ROLE, ROLE | {"permissions_boundary": "arn:b"})],
            ["role sagefit-dev-bert: what its new boundary arn:b does not allow"],
        ),
        ([change(MACHINE_ROLE, ["update"], ROLE | {"permissions_boundary": "arn:b"}, ROLE)], []),
        (  # a role that the first apply makes
            [change(MACHINE_ROLE, ["create"], None, ROLE), change(RIGHTS, ["create"], None, {"policy": policy()})],
            [],
        ),
        (  # another input
            [
                rights(
                    policy(Action=["s3:GetObject"], Resource=["old/*"]),
                    policy(Action=["s3:GetObject"], Resource=["new/*"]),
                )
            ],
            ["role sagefit-dev-bert: s3:getobject on old/*"],
        ),
        ([rights(policy(Condition=TYPES), policy(Condition=MORE_TYPES))], []),
        (
            [rights(policy(Condition=TYPES), policy(Condition=OTHER_TYPES))],
            [f"{NARROW} under other conditions (sagemaker:instancetypes)"],
        ),
        ([rights(policy(), policy(Resource=SCHEDULED))], []),  # a schedule comes
        ([rights(policy(Resource=SCHEDULED), policy())], [f"{NARROW} on {JOBS}bert-*"]),  # and goes
        ([rights(policy(), None)], ["role sagefit-dev-bert: what it allows is known only after the apply"]),
        (  # a right that moves to another policy of the role
            [
                change(RIGHTS, ["delete"], {"role": "r", "policy": policy()}),
                change(f"{RIGHTS}_2", ["create"], None, {"role": "r", "policy": policy()}),
            ],
            [],
        ),
        (
            [change(RIGHTS, ["no-op"], {"role": "r", "policy": policy()}, {"role": "r", "policy": policy()})],
            [],
        ),
        ([change(ATTACHED, ["delete"], {"role": "r", "policy_arn": "arn:p"})], ["policy arn:p of role r"]),
        (  # under another key
            [
                change(ATTACHED, ["delete"], {"role": "r", "policy_arn": "arn:p"}),
                change(f"{ATTACHED}_2", ["create"], None, {"role": "r", "policy_arn": "arn:p"}),
            ],
            [],
        ),
        (  # of a schedule, which only starts runs
            [
                change("module.job.aws_iam_role.schedule[0]", ["delete"], ROLE),
                change("module.job.aws_iam_role_policy.schedule[0]", ["delete"], {"role": "s", "policy": policy()}),
            ],
            [],
        ),
        (  # a denial that comes takes as well
            [rights(policy(), policy(Effect="Deny"))],
            [
                "role sagefit-dev-bert: a denial of sagemaker:createtrainingjob",
                f"{NARROW} on {JOBS}bert-??????-??????-?",
            ],
        ),
    ],
)
def test_what_a_plan_takes_from_runs(changes: list[dict[str, Any]], told: list[str]) -> None:
    found = taken({"resource_changes": changes})
    assert sorted(found) == sorted(told)
    if found:  # what the quick look leaves out is never looked at
        assert may_take((each["address"], each["change"]["actions"]) for each in changes)


@pytest.mark.parametrize(
    ("address", "actions", "may"),
    [
        (CODE, ["replace"], True),
        (CODE, ["create"], False),
        (MACHINE, ["update"], False),
        (MACHINE, ["delete"], True),
        (RIGHTS, ["update"], True),
        (RIGHTS, ["create"], False),
        ("module.job.aws_iam_role.schedule[0]", ["delete"], False),
        ("module.run_cleanup[0].aws_iam_role_policy.this[0]", ["update"], False),
        ("module.job.aws_cloudwatch_log_group.runs", ["delete"], False),
        ("module.role.aws_iam_policy.jobs[0]", ["update"], True),
        ("data.aws_iam_policy_document.this", ["read"], False),
    ],
)
def test_only_some_plans_are_looked_into(address: str, actions: list[str], may: bool) -> None:
    assert may_take([(address, actions)]) == may


class _Shown:
    """A Terraform that shows one plan, and counts how often it is asked."""

    def __init__(self, *changes: dict[str, Any]) -> None:
        self.asked, self.text = 0, json.dumps({"resource_changes": changes})

    def show_json(self, _plan: Plan) -> str:
        self.asked += 1
        return self.text


def _running(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    found = [Run(name, "bert", None) for name in names]  # type: ignore[arg-type]
    monkeypatch.setattr(deploy, "running_runs", lambda _job, _platform: found)
    monkeypatch.setattr(deploy, "load_platform", lambda _name: None)
    monkeypatch.setattr(deploy, "applied_jobs", lambda _name: iter(["bert"]))


NARROWED = rights(policy(Resource=SCHEDULED), policy())


def test_a_refusal_names_runs_what_is_taken_and_the_ways_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = load_job(write_job(tmp_path))
    _running(monkeypatch, "bert-261128-120000", "bert-261128-130000")
    with pytest.raises(SagefitError) as told:
        deploy.refuse_under_runs(job, _Shown(NARROWED), Plan(tmp_path))  # type: ignore[arg-type]
    assert told.value.exit_code == REFUSED
    assert "bert-261128-120000, bert-261128-130000 are in progress" in told.value.message
    assert f"- {NARROW} on {JOBS}bert-*" in told.value.message
    assert "stop bert-261128-120000" in (told.value.hint or "")
    assert "watch bert-261128-120000" in (told.value.hint or "")
    wider = rights(policy(), policy(Resource=SCHEDULED))
    deploy.refuse_under_runs(job, _Shown(wider), Plan(tmp_path))  # type: ignore[arg-type]


def test_a_plan_is_not_read_where_no_run_is_in_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _running(monkeypatch)
    shown = _Shown(NARROWED)
    deploy.refuse_under_runs(load_job(write_job(tmp_path)), shown, Plan(tmp_path))  # type: ignore[arg-type]
    assert shown.asked == 0


def test_what_a_platform_takes_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = "module.role.aws_iam_policy.jobs[0]"
    less = change(
        shared, ["update"], {"name": "p", "policy": policy()}, {"name": "p", "policy": policy(Action=["a:B"])}
    )
    terraform: Any = _Shown(less)
    _running(monkeypatch, *(f"bert-{number}" for number in range(7)))
    said = deploy.platform_remark("dev", terraform, Plan(tmp_path))
    assert said is not None
    assert "bert-4 and 2 more are in progress" in said
    assert "- policy p: sagemaker:createtrainingjob on" in said
    _running(monkeypatch)
    assert deploy.platform_remark("dev", terraform, Plan(tmp_path)) is None

    def gone(_name: str) -> None:
        raise NoPlatformError("no platform")

    monkeypatch.setattr(deploy, "load_platform", gone)
    assert deploy.platform_remark("dev", terraform, Plan(tmp_path)) is None

    def denied(_name: str) -> None:
        raise SagefitError("may not read it")

    monkeypatch.setattr(deploy, "load_platform", denied)
    said = deploy.platform_remark("dev", terraform, Plan(tmp_path))
    assert said is not None
    assert "not known (may not read it)" in said
