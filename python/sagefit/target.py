"""Which cloud the commands talk to: the AWS account of the environment, or the embedded cloud."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sagefit.answers import understood
from sagefit.cloud import control, paths
from sagefit.cloud.aws_environment import UNSET
from sagefit.console import AWS, LOCAL, command
from sagefit.errors import SagefitError
from sagefit.paths import home

ROLE = "SAGEFIT_ROLE_ARN"
"""The variable that names a role to act as."""


@dataclass(frozen=True)
class Target:
    """A cloud, and the folder for what belongs to it: Terraform's data, plans, and states without a remote backend."""

    name: str
    folder: Path

    @property
    def is_local(self) -> bool:
        """Whether this is the embedded cloud."""
        return self.name == LOCAL


def activate(name: str) -> Target:
    """Point this process, and what it starts, at the cloud ``name`` (``aws`` or ``local``).

    With ``SAGEFIT_ROLE_ARN`` the process acts there as that role, for an hour at most.
    Raises SagefitError when the embedded cloud is named and does not run, for an unknown name, or for a role that may
    not be taken.
    """
    found = _found(name)
    if arn := os.environ.get(ROLE):
        _act_as(arn)
    return found


def _found(name: str) -> Target:
    if name == AWS:
        folder = home() / "state" / AWS
        if folder.exists():
            folder.chmod(0o700)  # an earlier version left it open to others, and states hold sensitive data
        if region := os.environ.get("AWS_REGION"):  # Terraform's first word; boto3 does not read it
            os.environ["AWS_DEFAULT_REGION"] = region
        return Target(AWS, folder)
    if name != LOCAL:
        raise SagefitError(f"CLOUD={name}: the cloud is aws or local", hint="set CLOUD=local, or leave it out for AWS")
    status = control.status()
    if status is None:
        raise SagefitError("the embedded cloud is not running", hint=f"start it: {command('cloud', 'up')}")
    for variable in UNSET:
        os.environ.pop(variable, None)
    os.environ.update(control.environment())
    # Its resources live in memory, so a state must not outlive the process that holds them.
    return Target(LOCAL, paths.terraform_folder(status.instance))


def _act_as(arn: str) -> None:
    """Put a session of a role into the environment of this process, and so of Terraform."""
    import boto3  # most commands need no AWS
    from botocore.exceptions import BotoCoreError, ClientError

    session = boto3.Session()  # one that boto3 keeps would keep the key of before
    try:
        keys = session.client("sts").assume_role(RoleArn=arn, RoleSessionName="sagefit")["Credentials"]
    except (BotoCoreError, ClientError) as error:
        what = f"{ROLE}: {arn} cannot be taken"
        wrong = SagefitError(f"{what}: {error}", hint="correct the ARN, or the trust of the role")
        raise understood(error, what) or wrong from error
    for variable in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):  # some clients would prefer it to the key
        os.environ.pop(variable, None)
    os.environ.update(
        AWS_ACCESS_KEY_ID=keys["AccessKeyId"],
        AWS_SECRET_ACCESS_KEY=keys["SecretAccessKey"],
        AWS_SESSION_TOKEN=keys["SessionToken"],
        **({"AWS_REGION": session.region_name} if session.region_name else {}),
    )
