"""The container engine of this machine: Docker, Podman or Finch, by the commands that all three have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sagefit.errors import FAILED, SagefitError

ENGINES = ("docker", "podman", "finch")
_ANSWER_SECONDS = 60

# SageMaker's instances are x86, whatever this machine is. A plain image manifest instead of an index with
# attestations (BuildKit) and Docker's format instead of OCI's (Buildah) is what the oldest reader understands.
_PLATFORM = "linux/amd64"
_SETTINGS = {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1", "BUILDAH_FORMAT": "docker"}


@dataclass(frozen=True)
class Engine:
    """An engine that answered."""

    program: str

    def build(self, folder: Path, reference: str) -> None:
        """Build the Dockerfile of ``folder`` and name the image."""
        self._run("build", "--platform", _PLATFORM, "--tag", reference, str(folder))

    def login(self, host: str, user: str, password: str) -> None:
        """Log in to a registry. The password goes through standard input: arguments are visible to all."""
        self._run("login", "--username", user, "--password-stdin", host, stdin=password)

    def push(self, reference: str) -> None:
        """Push what was built under this name."""
        self._run("push", reference)

    def _run(self, *arguments: str, stdin: str | None = None) -> None:
        """Run a command, its words on our standard error. Raises SagefitError where it fails."""
        done = subprocess.run(
            [self.program, *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=sys.stderr.fileno(),
            text=True,
            env=os.environ | _SETTINGS,
            check=False,
        )
        if done.returncode:
            raise SagefitError(
                f"{Path(self.program).name} {arguments[0]} ended with {done.returncode}; its own words stand above",
                exit_code=FAILED,
            )


def find() -> Engine:
    """The first engine on PATH that answers. Raises SagefitError that says what to install or to start."""
    silent = []
    for name in ENGINES:
        program = shutil.which(name)
        if program is None:
            continue
        why = _silence(program)
        if why is None:
            return Engine(program)
        silent.append(f"{name} does not answer ({why})")
    if silent:
        raise SagefitError(
            f"no container engine answers: {'; '.join(silent)}",
            hint="start it (docker: the daemon; podman and finch on macOS: the machine); planning works without one",
            exit_code=FAILED,
        )
    raise SagefitError(
        f"no container engine is installed: none of {', '.join(ENGINES)} is on PATH",
        hint="install Docker, Podman or Finch, or push the image elsewhere and give its digest in image.digest; "
        "planning works without one",
        exit_code=FAILED,
    )


def _silence(program: str) -> str | None:
    """Why an engine does not answer, in its own words; None where it does."""
    try:
        done = subprocess.run(
            [program, "info"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {_ANSWER_SECONDS} s"
    except OSError as error:
        return str(error)
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return None if done.returncode == 0 else said[-1][:200]
