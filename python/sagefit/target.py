"""Which cloud the commands talk to: the AWS account of the environment, or the embedded cloud."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sagefit.cloud import control, paths
from sagefit.cloud.aws_environment import UNSET
from sagefit.console import AWS, LOCAL, command
from sagefit.errors import SagefitError
from sagefit.paths import home


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

    Raises SagefitError when the embedded cloud is named and does not run, or for an unknown name.
    """
    if name == AWS:
        folder = home() / "state" / AWS
        if folder.exists():
            folder.chmod(0o700)  # an earlier version left it open to others, and states hold sensitive data
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
