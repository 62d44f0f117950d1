"""The commands of the page about the embedded cloud, as they are printed there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from docs.pages import blocks
from sagefit.paths import ROOT


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    page = blocks(ROOT / "docs/cloud.md")
    (script,) = [block.text for block in page if block.language == "shell"]
    (faults,) = [block.text for block in page if block.way == "as faults"]
    (tmp_path / "faults.yaml").write_text(faults, encoding="utf-8")
    # What a reader may do between the last two commands; a call must be there to be printed.
    commands = script.replace("sagefit cloud calls", 'echo "endpoint $AWS_ENDPOINT_URL"\nsagefit cloud calls')
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SAGEFIT_", "CLOUD"))}
    kept |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}", "SAGEFIT_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=tmp_path, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    endpoint = done.stdout.split("endpoint ", 1)[1].split()[0]
    assert endpoint.startswith("http://127.0.0.1:")
    assert done.stdout.count(endpoint) >= 2  # cloud status says it, too
    assert not list((tmp_path / "home").rglob("cloud.json"))
