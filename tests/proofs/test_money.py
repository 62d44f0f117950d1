"""The published costs of running out of memory are those of the planner as it is."""

from __future__ import annotations

import subprocess
import sys

from sagefit.paths import ROOT


def test_the_money_page_is_up_to_date() -> None:
    script = ROOT / "tests" / "bench" / "bench_money.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
