"""The one door to Terraform: python-terraform, used thinly.

A plan is saved and exactly that plan is applied. Terraform's own ``-json`` stream is read instead of its prose, and
every failure comes out as one SagefitError that keeps Terraform's words and adds the knob.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from python_terraform import IsFlagged
from python_terraform import Terraform as PythonTerraform

from sagefit import toolchain
from sagefit.cloud.aws_environment import REGION
from sagefit.console import err
from sagefit.errors import FAILED, INVALID, REFUSED, SagefitError
from sagefit.paths import ROOT, display, home
from sagefit.target import Target

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
        self.binary = toolchain.terraform_binary(home())

    @property
    def plan_path(self) -> Path:
        """Where the plan of this root and key is saved."""
        return self.target.folder / "plans" / f"{self.key}.tfplan"

    def plan(self, *, destroy: bool = False) -> Plan:
        """Plan and save; nothing is written to the cloud."""
        self._init()
        self.plan_path.parent.mkdir(parents=True, exist_ok=True)
        options: dict[str, Any] = {"out": str(self.plan_path), "detailed_exitcode": IsFlagged, "json": IsFlagged}
        if destroy:
            options["destroy"] = IsFlagged
        if self.variables:
            options["var_file"] = str(self.variables)
        code, out, error = self._run("planning", "plan", input=False, **options)
        if code not in (_OK, _CHANGES):
            raise self._failure(code, out, error)
        changes = [
            Change(event["change"]["action"], event["change"]["resource"]["addr"])
            for event in _events(out)
            if event.get("type") == "planned_change" and event["change"]["action"] not in ("noop", "read")
        ]
        self.plan_path.chmod(0o600)
        return Plan(self.plan_path, changes, outputs_change=code == _CHANGES and not changes)

    def apply(self, plan: Plan) -> None:
        """Apply exactly this saved plan. A plan that no longer fits the state is refused (exit code 4)."""
        self._init()
        code, out, error = self._run("applying", "apply", str(plan.path), input=False, json=IsFlagged)
        if code != _OK:
            raise self._failure(code, out, error)
        plan.path.unlink(missing_ok=True)

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
        code, out, error = self._run("reading", command, *args, **options)
        if code != _OK:
            raise self._failure(code, out, error)
        return out

    def _init(self) -> None:
        """``terraform init``, skipped while nothing that it reads has changed."""
        stamp, fingerprint = self._data / "sagefit-init", self._fingerprint()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint:
            return
        options = {"backend_config": self._backend(), "reconfigure": IsFlagged, "no_color": IsFlagged}
        code, out, error = self._run("initialising", "init", input=False, **options)
        if code != _OK:
            raise self._failure(code, out, error)
        stamp.write_text(fingerprint, encoding="utf-8")

    def _backend(self) -> dict[str, str]:
        """The state's place: the team's own backend where the root overrides it, else a file of this target."""
        if (self.root / "backend_override.tf").exists():
            remote = {"key": f"sagefit/{self.key}.tfstate"}
            return remote | _embedded_state_bucket() if self.target.is_local else remote
        path = self.target.folder / "states" / f"{self.key}.tfstate"
        path.parent.mkdir(parents=True, exist_ok=True)
        return {"path": str(path)}

    def _fingerprint(self) -> str:
        """What ``init`` depends on: required providers, module calls, backend and the provider mirror."""
        overlay = toolchain.terraform_environment(home())
        config = Path(overlay.get("TF_CLI_CONFIG_FILE", ""))
        parts = [self.binary, self._backend(), config.read_text(encoding="utf-8") if config.is_file() else ""]
        files = [*self.root.glob("*.tf"), *(ROOT / "modules").glob("*/versions.tf")]
        return repr(parts) + "".join(f"{file}{file.read_text(encoding='utf-8')}" for file in sorted(files))

    def _run(self, doing: str, command: str, *args: str, **options: Any) -> tuple[int, str, str]:
        """One Terraform command. Ctrl-C reaches Terraform too, and we wait until it has let go of its lock."""
        overlay = toolchain.terraform_environment(home()) | {"TF_DATA_DIR": str(self._data)}
        self._data.mkdir(parents=True, exist_ok=True)
        result: list[tuple[int, str, str]] = []
        ended = threading.Event()  # Thread.join cannot be waited on again once it was interrupted

        def call() -> None:
            door: Any = PythonTerraform
            try:
                result.append(door(str(self.root), terraform_bin_path=str(self.binary)).cmd(command, *args, **options))
            finally:
                ended.set()

        worker = threading.Thread(target=call, name=f"terraform {command}")
        interrupted = False
        with _environment(overlay), err.status(f"Terraform is {doing} {self.key}"):
            worker.start()
            while not ended.is_set():
                try:
                    ended.wait()
                except KeyboardInterrupt:
                    interrupted = True
                    err.print("interrupted: waiting for Terraform to stop and release its state")
        if interrupted:
            raise KeyboardInterrupt
        if not result:  # the thread has printed why
            raise SagefitError(f"Terraform could not be run: {self.binary}", exit_code=FAILED)
        return result[0]

    def _failure(self, code: int, out: str, error: str) -> SagefitError:
        diagnostics = [e["diagnostic"] for e in _events(out) if e.get("type") == "diagnostic"]
        texts = [_diagnostic(d) for d in diagnostics if d["severity"] == "error"] or [_prose(error or out)]
        text = "\n".join(dict.fromkeys(texts))
        for pattern, hint, exit_code in _KNOWN:
            if re.search(pattern, text, re.IGNORECASE):
                return SagefitError(
                    text, hint=hint.format(key=self.key, data=self._data, root=self.root), exit_code=exit_code
                )
        return SagefitError(
            text, hint=f"Terraform ended with exit code {code} in {display(self.root)}", exit_code=FAILED
        )


_KNOWN = [
    (
        r"Error acquiring the state lock",
        "somebody else is planning or applying {key}; wait. If that process is dead: "
        "TF_DATA_DIR={data} terraform -chdir={root} force-unlock ID",
        INVALID,
    ),
    (r"Saved plan is stale", "the state changed after this plan was made; plan again and have it reviewed", REFUSED),
    (
        r"Failed to query available provider packages|Could not retrieve the list of available versions|"
        r"provider registry\.\S+ was not found in any of the search locations",
        "no provider could be found: point SAGEFIT_PLUGIN_MIRROR at a filesystem mirror that holds hashicorp/aws, "
        "or allow access to the provider registry",
        INVALID,
    ),
    (
        r"No valid credential sources found|ExpiredToken|InvalidClientTokenId",
        "log in to AWS, or use the embedded cloud: sagefit cloud up, then CLOUD=local",
        INVALID,
    ),
    (
        r"Invalid value for variable|Resource precondition failed|Invalid variable|Check block",
        "correct the job file",
        INVALID,
    ),
]


@contextmanager
def _environment(overlay: Mapping[str, str]) -> Iterator[None]:
    """What Terraform gets on top of this process's environment, which is its own again afterwards."""
    before = dict(os.environ)
    os.environ.update(overlay)
    try:
        yield
    finally:
        for name in overlay:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _embedded_state_bucket() -> dict[str, str]:
    """Settings that turn a team's S3 backend to a bucket of the embedded cloud, which is made if need be."""
    bucket = "sagefit-terraform-state"
    boto3.client("s3").create_bucket(Bucket=bucket)
    return {"bucket": bucket, "region": REGION, "use_path_style": "true"}


def _block(address: str) -> str:
    """The address without the key or number of the instance."""
    return re.sub(r'\[("(?:[^"\\]|\\.)*"|\d+)\]$', "", address)


def _events(stream: str) -> Iterator[dict[str, Any]]:
    for line in stream.splitlines():
        if line.startswith("{"):
            event = json.loads(line)
            if isinstance(event, dict):
                yield event


def _diagnostic(diagnostic: dict[str, Any]) -> str:
    place = diagnostic.get("range") or {}
    where = f" ({place['filename']}:{place['start']['line']})" if place else ""
    return f"{diagnostic['summary']}{where}: {diagnostic.get('detail') or ''}".strip().rstrip(":")


def _prose(text: str) -> str:
    """Terraform's boxed error without the box and the colour."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.strip("╷│╵ ").rstrip() for line in plain.splitlines()]
    return "\n".join(line for line in lines if line)
