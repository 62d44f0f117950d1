"""What Sagefit adds to bare Terraform: ``make bench``.

Both sides do the same on the same embedded cloud, in turn: bring an applied, unchanged job up to date and start a run.
Bare is what a careful person types: init, plan to a file, apply of that file, one StartExecution by boto3.
Ours is ``make job`` up to the line that says the run has started; what follows, watching, only waits.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sagefit.paths import ROOT
from sagefit.target import activate

sys.path.insert(0, str(ROOT / "tests"))
from cli_runner import Sagefit

ROUNDS = 5
GOAL = 1.15
JOB = "quickstart"
START = "import boto3, sys; boto3.client('stepfunctions').start_execution(stateMachineArn=sys.argv[1])"


def ours(sagefit: Sagefit) -> float:
    """Seconds of ``make job`` until the run has started."""
    began = time.perf_counter()
    with subprocess.Popen(
        ["make", "--no-print-directory", "job", f"NAME={JOB}", "CLOUD=local", "YES=1"],
        cwd=ROOT,
        env=sagefit.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        said = []
        for line in process.stderr:
            said.append(line)
            if line.endswith("started\n"):
                seconds = time.perf_counter() - began
                process.stderr.read()
                return seconds
    raise RuntimeError("".join(said))


def bare(environment: dict[str, str], state: Path, plan: Path, machine: str) -> float:
    """Seconds of the same work by hand."""
    terraform = ["terraform", "-chdir=job"]
    began = time.perf_counter()
    for command in (
        [*terraform, "init", "-input=false", f"-backend-config=path={state}"],
        [*terraform, "plan", "-input=false", f"-var-file=../jobs/{JOB}.tfvars", f"-out={plan}"],
        [*terraform, "apply", "-input=false", str(plan)],
        [sys.executable, "-c", START, machine],
    ):
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Print both times and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        sagefit = Sagefit(Path(folder) / "home", CLOUD="local")
        sagefit("cloud", "up")
        try:
            sagefit("platform", "apply", "--yes")
            sagefit("run", JOB, "--yes", check=None)
            os.environ["SAGEFIT_HOME"] = str(sagefit.home)
            state = next((activate("local").folder / "states").rglob(f"{JOB}.tfstate"))
            machine = json.loads(state.read_text(encoding="utf-8"))["outputs"]["state_machine_arn"]["value"]
            config = sagefit.home / "terraformrc"
            environment = sagefit.environment | sagefit.aws_environment() | {"TF_DATA_DIR": f"{folder}/data"}
            environment |= {"TF_CLI_CONFIG_FILE": str(config)} if config.exists() else {}
            pairs = []
            for number in range(ROUNDS):
                pairs.append((ours(sagefit), bare(environment, state, Path(folder) / "plan", machine)))
                print(f"round {number + 1}: ours {pairs[-1][0]:.2f} s, bare {pairs[-1][1]:.2f} s", flush=True)
        finally:
            sagefit("cloud", "down")
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"make job until the run has started / bare terraform + StartExecution: {ratio:.2f} (goal: at most {GOAL})")


if __name__ == "__main__":
    main()
