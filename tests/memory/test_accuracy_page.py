"""The published figures are those that the code has now."""

import subprocess
import sys

from sagefit.paths import ROOT


def test_the_accuracy_page_and_the_bounds_are_up_to_date() -> None:
    script = ROOT / "tests" / "bench" / "bench_memory.py"
    checked = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
