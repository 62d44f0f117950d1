"""What a file of variables says, in Terraform's own reading."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from sagefit.errors import SagefitError
from sagefit.paths import display, home
from sagefit.toolchain import terraform_binary


def read_variables(path: Path, declared: Mapping[str, tuple[str, str]], hint: str) -> dict[str, Any]:
    """The values of variables in the tfvars file ``path``: each with its type and default, as HCL writes them.

    Raises SagefitError, with ``hint``, for a file that Terraform cannot read so.
    """
    return dict(_read(path, path.stat().st_mtime_ns, tuple(declared.items()), hint))


@lru_cache(maxsize=16)
def _read(path: Path, _modified: int, declared: tuple[tuple[str, tuple[str, str]], ...], hint: str) -> dict[str, Any]:
    """A configuration of variables alone needs no ``terraform init``."""
    names = [name for name, _ in declared]
    blocks = [
        f'variable "{name}" {{\n  type    = {kind}\n  default = {value}\n}}\n' for name, (kind, value) in declared
    ]
    with tempfile.TemporaryDirectory(prefix="sagefit-") as folder:
        (Path(folder) / "main.tf").write_text("".join(blocks), encoding="utf-8")
        done = subprocess.run(
            [terraform_binary(home()), "console", f"-var-file={path}"],
            input=f"jsonencode({{{', '.join(f'{name} = var.{name}' for name in names)}}})\n",
            cwd=folder,
            env={**os.environ, "TF_DATA_DIR": folder, "TF_CLI_ARGS": "", "TF_CLI_ARGS_console": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        told = f"{display(path)}: {', '.join(names)} cannot be read: {done.stderr.strip()[:500]}"
        raise SagefitError(told, hint=hint)
    found: dict[str, Any] = json.loads(json.loads(done.stdout.strip().splitlines()[-1]))
    return found
