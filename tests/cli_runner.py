"""The command line as a user has it: a process with its own folder, its exit code and its two streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import preloaded
from sagefit.paths import ROOT


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str


class Sagefit:
    """``sagefit`` with a state folder of its own."""

    def __init__(self, home: Path, **environment: str) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SAGEFIT_", "TF_", "CLOUD"))}
        self.home = home
        own = {"SAGEFIT_HOME": str(home), "SAGEFIT_CATALOG": str(home / "catalog")}
        self.environment = kept | own | {"NO_COLOR": "1", "COLUMNS": "200"} | environment

    def __call__(
        self,
        *args: str | Path,
        check: int | None = 0,
        cwd: Path = ROOT,
        program: Sequence[str | Path] = (),
        **environment: str,
    ) -> Done:
        """Run it; ``check`` is the exit code that is expected, None for any. ``program`` is what Python runs."""
        settings = self.environment | environment
        done = subprocess.run(
            [sys.executable, *map(str, (*(program or preloaded.program(settings)), *args))],
            cwd=cwd,
            env=settings,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        result = Done(done.returncode, done.stdout, done.stderr)
        assert check is None or result.code == check, f"{args} ended with {result.code}\n{result.out}\n{result.err}"
        return result

    def aws_environment(self) -> dict[str, str]:
        """The variables that ``cloud env`` prints, for boto3 and for Terraform without Sagefit."""
        lines = self("cloud", "env").out.splitlines()
        pairs = (line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
        return {name: value.strip("'\"") for name, value in pairs}

    def calls(self) -> list[dict[str, Any]]:
        """Every API call since the cloud started."""
        return [json.loads(line) for line in self("cloud", "calls", "--json").out.splitlines()]
