"""Terraform, for one root module with a state of its own.

A plan is saved and exactly that plan is applied. Terraform's own ``-json`` stream is read instead of its prose, and
every failure comes out as one SagefitError that keeps Terraform's words and adds the knob.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from python_terraform import IsFlagged

from sagefit import toolchain
from sagefit.cloud import control
from sagefit.cloud.aws_environment import REGION
from sagefit.console import command, err
from sagefit.errors import FAILED, SagefitError
from sagefit.paths import ROOT, home, private_folder
from sagefit.target import Target
from sagefit.terraform.at_work import Begun, Work, at_work
from sagefit.terraform.backend import OVERRIDE, embedded_bucket
from sagefit.terraform.messages import events, failure
from sagefit.terraform.session import Ended, Session
from sagefit.terraform.state_lock import StateLock

_OK, _CHANGES = 0, 2
_UNSAVED = "errored.tfstate"  # Terraform's name for a state that it could not write
_NOTES_OF_INIT = ("terraform.tfstate", "modules/modules.json")  # backend and modules, written anew by every `init`
_READ_BY_TERRAFORM = (".tf", ".tf.json", ".tfvars", ".tfvars.json")


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

    ``key`` tells states of one root apart (the path of the state inside the backend); ``variables`` is a tfvars file;
    ``called`` is how a user names the stack in a command, if not by its key. ``suffix`` is asked once, when a state is
    needed: what its path has after the key, where stacks of one key are in several regions.
    """

    def __init__(
        self,
        root: Path,
        key: str,
        target: Target,
        *,
        variables: Path | None = None,
        called: str | None = None,
        suffix: Callable[[], str] = str,
    ) -> None:
        self.root = root
        self.key = key
        self.target = target
        self.variables = variables
        self.called = called or key
        self._suffix = cache(suffix)
        self.plan_path = target.folder / "plans" / f"{key}.tfplan"  # where the plan of this root and key is saved
        self._data = target.folder / "data" / key
        self._work = target.folder / "work" / key
        self.binary = toolchain.terraform_binary(home())

    def plan(self, *, destroy: bool = False, targets: Sequence[str] = ()) -> Plan:
        """Plan and save; nothing is written to the cloud. With ``targets``, these addresses and what they need."""
        self._init()
        private_folder(self.plan_path.parent)
        options: dict[str, Any] = {"out": str(self.plan_path), "detailed_exitcode": IsFlagged, "json": IsFlagged}
        options["target"] = list(targets)
        if destroy:
            options["destroy"] = IsFlagged
        if self.variables:
            options["var_file"] = str(self.variables)
        done = self._check(self._run("planning", "plan", input=False, **options), _OK, _CHANGES)
        planned = [event["change"] for event in events(done.out) if event.get("type") == "planned_change"]
        changes = [
            Change("import" if change.get("importing") else change["action"], change["resource"]["addr"])
            for change in planned
            if change.get("importing") or change["action"] not in ("noop", "read")
        ]
        return Plan(self.plan_path, changes, outputs_change=done.code == _CHANGES and not changes)

    def apply(self, plan: Plan) -> None:
        """Apply exactly this saved plan. A plan that no longer fits the state is refused (exit code 4)."""
        self._init()
        ended = self._run("applying", "apply", str(plan.path), input=False, json=IsFlagged)
        if ended.code == _OK:  # also where it was asked to stop too late
            plan.path.unlink(missing_ok=True)
        self._keep_unsaved_state()
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

    def unlock(self, lock: StateLock) -> None:
        """Release a lock of the state, whoever holds it."""
        self._init()
        self._check(self._run("unlocking", "force-unlock", lock.id, force=IsFlagged))

    def push_unsaved_state(self) -> bool:
        """Write the state that an apply could not write, and Terraform left in a file; whether there was one.

        Raises SagefitError where the state has gone on since.
        """
        if not self.unsaved_state.exists():
            return False
        self._init()
        self._check(self._run("writing the state of", "state push", str(self.unsaved_state)))
        self.unsaved_state.unlink()
        return True

    @property
    def unsaved_state(self) -> Path:
        """Where such a state is kept."""
        return self._work / _UNSAVED

    def _keep_unsaved_state(self) -> None:
        """Terraform leaves it in the root, which is other stacks' too."""
        if (left := self.root / _UNSAVED).exists():
            shutil.move(left, self.unsaved_state)
            self.unsaved_state.chmod(0o600)

    @property
    def state_file(self) -> Path | None:
        """The file of the state, where it is a file of this machine."""
        path = self._backend().get("path")
        return Path(path) if path else None

    @contextmanager
    def aside(self) -> Iterator[Terraform]:
        """The same stack with a root of its own beside this one, whose files are links, and which is gone afterwards.

        What is added there is seen by nobody else. Its plan is another one, too.
        """
        with self.held():
            other = copy.copy(self)
            name = hashlib.sha256(self.key.encode()).hexdigest()[:8]
            # Below a root that has modules, else beside it: its paths, `./modules/` or `../`, lead to the same files.
            other.root = (self.root if (self.root / "modules").is_dir() else self.root.parent) / f".recover-{name}"
            other.plan_path, other._data = self._work / "recover" / "plan", self._work / "recover" / "data"
            shutil.rmtree(other.root, ignore_errors=True)
            private_folder(other.root)
            try:
                for file in self.root.iterdir():
                    if file.name.endswith(_READ_BY_TERRAFORM) or file == self.root / "modules":
                        (other.root / file.name).symlink_to(file)
                yield other
            finally:
                shutil.rmtree(other.root, ignore_errors=True)
                shutil.rmtree(self._work / "recover", ignore_errors=True)

    def begun(self) -> tuple[Begun, ...]:
        """The Terraform commands of this stack that did not end well since the last one that did."""
        with self.held() as work:
            return work.note.begun

    def _read(self, verb: str, *args: str, **options: Any) -> str:
        return self._check(self._run("reading", verb, *args, **options)).out

    def _init(self) -> None:
        """``terraform init``, skipped while nothing that it reads has changed."""
        stamp, fingerprint = self._data / "sagefit-init", self._fingerprint()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint:
            return
        stamp.unlink(missing_ok=True)
        for note in _NOTES_OF_INIT:  # one that is killed leaves a half, which Terraform then refuses to read
            (self._data / note).unlink(missing_ok=True)
        options = {"backend_config": self._backend(), "reconfigure": IsFlagged, "no_color": IsFlagged}
        self._check(self._run("initialising", "init", input=False, **options))
        stamp.write_text(fingerprint, encoding="utf-8")

    def _backend(self) -> dict[str, str]:
        """The state's place: the team's own backend where the root overrides it, else a file of this target."""
        name = f"{self.key}{self._suffix()}.tfstate"
        if (self.root / OVERRIDE).exists():
            remote = {"key": f"sagefit/{name}"}
            if self.target.is_local:
                remote |= {"bucket": embedded_bucket(), "region": REGION, "use_path_style": "true"}
            return remote
        path = self.target.folder / "states" / name
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

    def _run(self, doing: str, verb: str, *args: str, **options: Any) -> Ended:
        """One Terraform command; what signals do meanwhile, `Session` says."""
        private_folder(self._data)
        # The embedded cloud expires nothing, and to make the rules for it takes a minute.
        rules = ("TF_VAR_checkpoint_days", "TF_VAR_unfinished_upload_days") if self.target.is_local else ()
        apart = dict.fromkeys(rules, "0")
        environment = apart | os.environ | toolchain.terraform_environment(home()) | {"TF_DATA_DIR": str(self._data)}
        done: Counter[str] = Counter()
        with self.held() as work, err.status(f"Terraform is {doing} {self.key}") as status:

            def tell(printed: str) -> None:
                done.update(str(event.get("type")) for event in events(printed))
                if made := done["apply_complete"]:
                    status.update(f"Terraform is {doing} {self.key}: {made} done")

            session = Session(
                self.root,
                self.binary,
                environment=environment,
                folder=self._work,
                work=work,
                tell=tell,
                is_there=lambda: not self.target.is_local or control.is_there(self.target.folder.name),
            )
            try:
                return session.cmd(verb, *args, **options)
            except OSError as error:
                raise SagefitError(f"Terraform could not be run: {self.binary}: {error}", exit_code=FAILED) from error

    def _check(self, ended: Ended, *good: int) -> Ended:
        """What ended well. Raises SagefitError for what did not, and KeyboardInterrupt where it was asked to stop."""
        if ended.alone:
            raise SagefitError(
                f"{self.key}: the embedded cloud stopped, and what was made in it is lost",
                hint=f"start again: {command('cloud', 'up')}; then apply the platform",
                exit_code=FAILED,
            )
        if ended.stopped:
            err.print(f"{self.key}: Terraform has stopped and released its state; plan again to go on", soft_wrap=True)
            raise KeyboardInterrupt
        if ended.code not in (good or (_OK,)):
            raise self._failure(ended.code, ended.out, ended.error)
        return ended

    def _failure(self, code: int, out: str, error: str) -> SagefitError:
        return failure(code, out, error, root=self.root, key=self.key, recover=command("recover", self.called))


def _block(address: str) -> str:
    """The address without the key or number of the instance."""
    return re.sub(r'\[("(?:[^"\\]|\\.)*"|\d+)\]$', "", address)
