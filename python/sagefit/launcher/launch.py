"""Runs one training job: prepare, start, watch, report."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import environment, patterns, report
from .process import Console, Ended, Program, Stop
from .recorder import Recorder

CANNOT_START = 2


def main(command_line: Sequence[str] | None = None) -> int:
    """Runs the job described by the configuration files and returns the script's exit code."""
    options = _options(command_line)
    root = Path(os.environ.get("SAGEFIT_ML_ROOT") or "/opt/ml")
    (root / "output").mkdir(parents=True, exist_ok=True)
    stale = root / "output" / "failure"  # of a run that was interrupted and is now restarted here
    if stale.exists():
        stale.unlink()
    run = _Run(root, options)
    try:
        return run.run()
    except environment.Problem as problem:
        return run.fail(Ended(CANNOT_START, None), "code", str(problem))


class _Run:
    def __init__(self, root: Path, options: argparse.Namespace) -> None:
        self._options = options
        self._output = root / "output"
        self._root = root
        self._console = Console()
        self._stop = Stop()
        self._recorder: Recorder | None = None
        self._job: environment.Job | None = None
        self._started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def run(self) -> int:
        job = self._job = environment.read_job(self._root)
        script = environment.unpack_code(job, self._options.entry_point)
        words = [*environment.arguments(job.hyperparameters), *self._options.arguments]
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", **environment.variables(job, words)}
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(job.code), os.environ.get("PYTHONPATH")]))
        self._install(job.code / "requirements.txt", variables)
        if self._stop.requested:
            return self.fail(Ended(128 + signal.SIGTERM, signal.SIGTERM), "stopped", "stopped before the script began")
        interpreter = "/bin/sh" if script.suffix == ".sh" else sys.executable
        program = Program([interpreter, str(script), *words], job.code, variables, self._console)
        self._stop.watch(program)
        self._recorder = Recorder(program.pid, self._console, lambda: self._write(None, None, None))
        self._recorder.start()
        self._write(None, None, None)
        ended = program.wait()
        self._recorder.stop()
        if ended.exit_code == 0:
            self._write(ended, None, None)
            return 0
        return self.fail(ended, *self._judge(ended, program.last_lines))

    def fail(self, ended: Ended, failure_class: str, evidence: str) -> int:
        """Writes down why, and returns the exit code."""
        self._write(ended, failure_class, evidence)
        self._console.line(report.write_failure(self._output, failure_class, evidence))
        return ended.exit_code

    def _install(self, requirements: Path, variables: dict[str, str]) -> None:
        if not requirements.is_file():
            return
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        command += ["--no-index"] if self._options.isolated else []  # what the image already has is still accepted
        program = Program([*command, "-r", str(requirements)], requirements.parent, variables, self._console)
        self._stop.watch(program)
        ended = program.wait()
        if ended.exit_code and not self._stop.requested:
            _, said = patterns.last_words(patterns.load(), program.last_lines, quiet=1)
            raise environment.Problem(
                "requirements.txt could not be installed"
                + (
                    " because the job has no network: put the packages into the image, or set resources.network_isolation to false"
                    if self._options.isolated
                    else ""
                )
                + f" ({said})"
            )

    def _judge(self, ended: Ended, lines: list[str]) -> tuple[str, str]:
        assert self._recorder  # noqa: S101 -- a script that ended was recorded
        name = self._options.entry_point
        how = f"{name} ended with exit code {ended.exit_code}"
        if ended.signal:
            verb = "killed" if ended.signal == signal.SIGKILL else "ended"
            how = f"{name} was {verb} (signal {int(ended.signal)})"
        if self._stop.requested:
            return "stopped", how + " after a request to stop (SIGTERM)"
        if ended.signal == signal.SIGKILL:
            how += f" with the host at {self._recorder.describe()}"
            if self._recorder.killed_for_memory():
                return "host_memory", how
        match, said = patterns.last_words(patterns.load(), [*lines, *self._own_words()], quiet=5 if ended.signal else 1)
        if match and ended.signal != signal.SIGKILL:
            return match.pattern.failure_class, f"{how}: {said}"
        if self._recorder.kernel_killed():
            return "host_memory", f"{how} after the kernel killed one of its processes for memory: {said}"
        return "code", f"{how}: {said}" if said else how

    def _own_words(self) -> list[str]:
        """What the script itself wrote into the failure file, which is its right."""
        path = self._output / "failure"
        return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []

    def _write(self, ended: Ended | None, failure_class: str | None, evidence: str | None) -> None:
        job = self._job
        host = job.host if job else "algo-1"
        content: dict[str, Any] = {
            "schema": 1,
            "entry_point": self._options.entry_point,
            "training_job": job.name if job else os.environ.get("TRAINING_JOB_NAME", ""),
            "host": host,
            "exit_code": ended.exit_code if ended else None,
            "signal": ended.signal if ended else None,
            "class": failure_class,
            "evidence": evidence,
            "started": self._started,
        }
        if self._recorder:
            content.update(self._recorder.summary())
        report.write_report(self._output, host, job.hosts[0] if job else host, content)


def _options(command_line: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sagefit", description=__doc__)
    parser.add_argument("--entry-point", required=True, help="script to run, relative to the channel 'code'")
    parser.add_argument("--isolated", action="store_true", help="the job has no network: install nothing from outside")
    parser.add_argument("arguments", nargs="*", help="after --: more arguments for the script")
    return parser.parse_args(command_line)
