"""What Sagefit adds to bare Terraform: ``make bench``.

Both sides do the same on the same embedded cloud, in turn: bring an applied job up to date and start a run, once with
nothing changed and once with new code. Bare is what a careful person types: init, plan to a file, apply of that file,
one StartExecution by boto3. Ours is ``make job`` up to the line that says the run has started; after it we only watch.
Medians of five rounds. ``--smoke`` goes one round and asks for no goal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sagefit.paths import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from cli_runner import Sagefit
from job_files import write_job

ROUNDS = 5
GOAL = 1.15
START = """
import boto3, sys, time
name = time.strftime("digits-%y%m%d-%H%M%S", time.gmtime())
boto3.client("stepfunctions").start_execution(stateMachineArn=sys.argv[1], name=name)
"""
# New code takes the old away, which no run may still need.
WAIT = """
import boto3, sys, time
machine, end = boto3.client("stepfunctions"), time.monotonic() + 60
while machine.list_executions(stateMachineArn=sys.argv[1], statusFilter="RUNNING")["executions"]:
    assert time.monotonic() < end, "the run does not end"
    time.sleep(0.2)
"""


def ours(sagefit: Sagefit, job: Path) -> float:
    """Seconds of ``make job`` until the run has started."""
    began = time.perf_counter()
    with subprocess.Popen(
        ["make", "--no-print-directory", "job", f"NAME={job}", "CLOUD=local", "YES=1"],
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


def bare(environment: dict[str, str], state: Path, job: Path, machine: str) -> float:
    """Seconds of the same work by hand."""
    terraform, plan = ["terraform", "-chdir=job"], job.with_suffix(".plan")
    began = time.perf_counter()
    for command in (
        [*terraform, "init", "-input=false", f"-backend-config=path={state}"],
        [*terraform, "plan", "-input=false", f"-var-file={job.with_suffix('.tfvars')}", f"-out={plan}"],
        [*terraform, "apply", "-input=false", str(plan)],
        [sys.executable, "-c", START, machine],
    ):
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    subprocess.run([sys.executable, "-c", WAIT, machine], env=environment, check=True)
    return seconds


def main() -> int:
    """Print the times of both sides and the ratios; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="one round: does it run at all?")
    smoke = parser.parse_args().smoke
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        job = write_job(Path(folder))
        script = job.with_name("src") / "train.py"
        sagefit = Sagefit(Path(folder) / "home", CLOUD="local")
        sagefit("cloud", "up")
        try:
            sagefit("platform", "apply", "--yes")
            sagefit("run", job, "--yes")
            (state,) = sagefit.home.rglob("digits.tfstate")
            machine = json.loads(state.read_text(encoding="utf-8"))["outputs"]["state_machine_arn"]["value"]
            environment = sagefit.environment | sagefit.aws_environment() | {"TF_DATA_DIR": f"{folder}/terraform"}
            for what in ("nothing changed", "new code"):
                ratios = []
                for number in range(1 if smoke else ROUNDS):
                    times = []
                    for side in ("ours", "bare"):
                        if what == "new code":
                            script.write_text(f"print('{side} {number}')\n", encoding="utf-8")
                        seconds = ours(sagefit, job) if side == "ours" else bare(environment, state, job, machine)
                        times.append(seconds)
                    ratios.append(times[0] / times[1])
                    print(f"{what}, round {number + 1}: ours {times[0]:.2f} s, bare {times[1]:.2f} s", flush=True)
                ratio = statistics.median(ratios)
                missed = missed or ratio > GOAL
                print(f"{what}: make job / bare Terraform and StartExecution: {ratio:.2f}", flush=True)
            print(f"goal: at most {GOAL}")
        finally:
            sagefit("cloud", "down")
    return int(missed and not smoke)


if __name__ == "__main__":
    sys.exit(main())
