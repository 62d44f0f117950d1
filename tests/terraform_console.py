"""What real Terraform makes of an expression, in a configuration without providers or state."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from sagefit import toolchain
from sagefit.paths import home


def evaluate(folder: Path, expression: str) -> Any:
    """The value of an expression about the configuration in ``folder``, which is initialized for it."""
    _terraform(folder, "init", "-no-color")
    answer = _terraform(folder, "console", stdin=f"base64gzip(jsonencode({expression}))\n")
    return json.loads(gzip.decompress(base64.b64decode(answer.strip().strip('"'))))


def _terraform(folder: Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [toolchain.terraform_binary(home()), *arguments],
        input=stdin,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "TF_CLI_CONFIG_FILE": os.devnull},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
