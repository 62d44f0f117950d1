"""Terraform, for one root module with a state of its own.

A plan is saved and exactly that plan is applied. Terraform's own ``-json`` stream is read instead of its prose, and
every failure comes out as one SagefitError that keeps Terraform's words and adds the knob.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from python_terraform import IsFlagged

from sagefit import toolchain
from sagefit.cloud.aws_environment import REGION
from sagefit.console import err
from sagefit.errors import FAILED, SagefitError
from sagefit.paths import ROOT, home, private_folder
from sagefit.target import Target
from sagefit.terraform.at_work import Work, at_work
from sagefit.terraform.messages import events, failure
from sagefit.terraform.session import Ended, Session

_OK, _CHANGES = 0, 2


@dataclass(frozen=True)
class Change:
    """One planned change: what Terraform does to which resource."""

    action: str
    address: str


@dataclass(frozen=True)
class Plan:
    """A saved plan: the file that will be applied, and what is in it."""

    path: Path
    changes: list[Change] = field(default_factory=list)
    outputs_change: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether applying it would do nothing at all."""
        return not self.changes and not self.outputs_change

    def summary(self) -> list[str]:
        """A line for each resource block; instances of one block, such as uploaded files, are counted."""
        blocks = Counter((_block(change.address), change.action) for change in self.changes)
        alone = {(_block(change.address), change.action): change.address for change in self.changes}
        return [
            f"{action:<8} {alone[block, action] if count == 1 else f'{block} ({count})'}"
            for (block, action), count in sorted(blocks.items())
        ]

    def count(self, *actions: str) -> int:
        """How many resources the plan treats in one of these ways."""
        return sum(change.action in actions for change in self.changes)


class Terraform:
    """One root module with its own state, on one cloud.

    ``key`` tells states of one root apart (the path of the state inside the backend); ``variables`` is a tfvars file.
    """

    def __init__(self, root: Path, key: str, target: Target, *, variables: Path | None = None) -> None:
        self.root = root
        self.key = key
        self.target = target
        self.variables = variables
        self._data = target.folder / "data" / key
        self._work = target.folder / "work" / key
        self.binary = toolchain.terraform_binary(home())

    @property
    def plan_path(self) -> Path:
        """Where the plan of this root and key is saved."""
        return self.target.folder / "plans" / f"{self.key}.tfplan"

    def plan(self, *, destroy: bool = False) -> Plan:
        """Plan and save; nothing is written to the cloud."""
        self._init()
        private_folder(self.plan_path.parent)
        options: dict[str, Any] = {"out": str(self.plan_path), "detailed_exitcode": IsFlagged, "json": IsFlagged}
        if destroy:
            options["destroy"] = IsFlagged
        if self.variables:
            options["var_file"] = str(self.variables)
        done = self._check(self._run("planning", "plan", input=False, **options), _OK, _CHANGES)
        changes = [
            Change(event["change"]["action"], event["change"]["resource"]["addr"])
            for event in events(done.out)
            if event.get("type") == "planned_change" and event["change"]["action"] not in ("noop", "read")
        ]
        return Plan(self.plan_path, changes, outputs_change=done.code == _CHANGES and not changes)

    def apply(self, plan: Plan) -> None:
        """Apply exactly this saved plan. A plan that no longer fits the state is refused (exit code 4)."""
        self._init()
        ended = self._run("applying", "apply", str(plan.path), input=False, json=IsFlagged)
        if ended.code == _OK:  # also where it was asked to stop too late
            plan.path.unlink(missing_ok=True)
        self._check(ended)

    def show(self, plan: Plan) -> str:
        """The plan in Terraform's words, as a reviewer reads it."""
        return self._read("show", str(plan.path), no_color=IsFlagged)

    def show_json(self, plan: Plan) -> str:
        """The plan as the JSON of ``terraform show -json``."""
        return self._read("show", str(plan.path), json=IsFlagged)

    def outputs(self) -> dict[str, Any]:
        """The outputs in the state, by name."""
        self._init()
        return {name: output["value"] for name, output in json.loads(self._read("output", json=IsFlagged)).items()}

    def state(self) -> dict[str, Any]:
        """The state as Terraform keeps it; one that was never written has no lineage and serial 0."""
        self._init()
        text = self._read("state pull")
        return dict(json.loads(text)) if text.strip() else {"lineage": "", "serial": 0}

    def _read(self, command: str, *args: str, **options: Any) -> str:
        return self._check(self._run("reading", command, *args, **options)).out

    def _init(self) -> None:
        """``terraform init``, skipped while nothing that it reads has changed."""
        stamp, fingerprint = self._data / "sagefit-init", self._fingerprint()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint:
            return
        stamp.unlink(missing_ok=True)  # one that is killed leaves a half
        options = {"backend_config": self._backend(), "reconfigure": IsFlagged, "no_color": IsFlagged}
        self._check(self._run("initialising", "init", input=False, **options))
        stamp.write_text(fingerprint, encoding="utf-8")

    def _backend(self) -> dict[str, str]:
        """The state's place: the team's own backend where the root overrides it, else a file of this target."""
        if (self.root / "backend_override.tf").exists():
            remote = {"key": f"sagefit/{self.key}.tfstate"}
            return remote | _embedded_state_bucket() if self.target.is_local else remote
        path = self.target.folder / "states" / f"{self.key}.tfstate"
        private_folder(path.parent)
        return {"path": str(path)}

    def _fingerprint(self) -> str:
        """What ``init`` depends on: required providers, module calls, backend and the provider mirror."""
        overlay = toolchain.terraform_environment(home())
        config = Path(overlay.get("TF_CLI_CONFIG_FILE", ""))
        parts = [self.binary, self._backend(), config.read_text(encoding="utf-8") if config.is_file() else ""]
        files = [*self.root.glob("*.tf"), *(ROOT / "modules").glob("*/versions.tf")]
        return repr(parts) + "".join(f"{file}{file.read_text(encoding='utf-8')}" for file in sorted(files))

    @contextmanager
    def held(self) -> Iterator[Work]:
        """Keep all others off this stack: from a plan to its apply, it is one piece of work. May be nested."""
        with at_work(self._work / "lock", self.key) as work:
            yield work

    def _run(self, doing: str, command: str, *args: str, **options: Any) -> Ended:
        """One Terraform command; what signals do meanwhile, `Session` says."""
        private_folder(self._data)
        environment = os.environ | toolchain.terraform_environment(home()) | {"TF_DATA_DIR": str(self._data)}
        done: Counter[str] = Counter()
        with self.held() as work, err.status(f"Terraform is {doing} {self.key}") as status:

            def tell(printed: str) -> None:
                done.update(str(event.get("type")) for event in events(printed))
                if made := done["apply_complete"]:
                    status.update(f"Terraform is {doing} {self.key}: {made} done")

            session = Session(self.root, self.binary, environment=environment, folder=self._work, work=work, tell=tell)
            try:
                return session.cmd(command, *args, **options)
            except OSError as error:
                raise SagefitError(f"Terraform could not be run: {self.binary}: {error}", exit_code=FAILED) from error

    def _check(self, ended: Ended, *good: int) -> Ended:
        """What ended well. Raises SagefitError for what did not, and KeyboardInterrupt where it was asked to stop."""
        if ended.stopped:
            err.print(f"{self.key}: Terraform has stopped and released its state; plan again to go on", soft_wrap=True)
            raise KeyboardInterrupt
        if ended.code not in (good or (_OK,)):
            raise self._failure(ended.code, ended.out, ended.error)
        return ended

    def _failure(self, code: int, out: str, error: str) -> SagefitError:
        return failure(code, out, error, key=self.key, data=self._data, root=self.root)


def _embedded_state_bucket() -> dict[str, str]:
    """Settings that turn a team's S3 backend to a bucket of the embedded cloud, which is made if need be."""
    bucket = "sagefit-terraform-state"
    boto3.client("s3").create_bucket(Bucket=bucket)
    return {"bucket": bucket, "region": REGION, "use_path_style": "true"}


def _block(address: str) -> str:
    """The address without the key or number of the instance."""
    return re.sub(r'\[("(?:[^"\\]|\\.)*"|\d+)\]$', "", address)
