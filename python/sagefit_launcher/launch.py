"""Runs one training job: prepare, start, watch, report."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import cuda_compat, cut_off, environment, evidence, host_name, patterns, report, saves, torchrun, verdict
from .process import Console, Ended, Program
from .recorder import Recorder
from .stop import Deadline, Stop
from .torch_peaks import TorchPeaks

CONTAINER = "/opt/ml"  # where SageMaker has a container's files
CANNOT_START = Ended(2, None)
REPORT_WAIT = 5.0  # seconds for the report before to be written
KEEP = "SAGEFIT_CUT_OFF"  # an environment variable: keep leaves cut off checkpoints where they are
LONGEST_QUOTE = 500  # characters of what another program said, to leave room for the advice


def main(command_line: Sequence[str] | None = None) -> int:
    """Runs the job described by the configuration files and returns the script's exit code."""
    options = _options(command_line)
    root = Path(os.environ.get("SAGEFIT_ML_ROOT") or CONTAINER)
    run = _Run(root, options.entry_point, options.isolated)
    try:
        return run.run(options.arguments)
    except environment.CannotStartError as problem:
        return run.fail(CANNOT_START, problem.failure_class, str(problem))
    except Exception as fault:
        code = run.fail(CANNOT_START, "internal", f"the launcher failed: {type(fault).__name__}: {fault}")
        traceback.print_exc()  # last: it reads files again that a script may have touched
        return code
    finally:
        run.close()


class _Run:
    """One run of the script, and what is known of it so far."""

    def __init__(self, root: Path, entry_point: str, isolated: bool) -> None:
        self._root = root
        self._entry_point = entry_point
        self._isolated = isolated
        self._console = Console()
        self._stop = Stop(self._console)
        self._deadline = Deadline()
        self._reporting = threading.Lock()
        self._job: environment.Job | None = None
        self._recorder: Recorder | None = None
        self._model: dict[str, int] | None = None
        self._cut_off: list[str] = []
        self._started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def run(self, arguments: Sequence[str]) -> int:
        patterns.load()  # now, for a script can touch the file
        report.forget_failure(self._root)
        job = self._job = environment.read_job(self._root)
        script = environment.unpack_code(job, self._entry_point)
        environment.make_folders(job)
        self._look_at_checkpoints(job)
        words = [*environment.arguments(job.hyperparameters), *arguments]
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", **environment.variables(job, words)}
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(job.code), os.environ.get("PYTHONPATH")]))
        variables.update(cuda_compat.variables(variables))
        if len(job.hosts) > 1:
            variables.update(host_name.variables(variables, job.host))
        self._install(job.code, variables)
        if torchrun.is_wanted(job, script):
            command, wrapper = torchrun.command(job, script, words, variables), True
            variables.update(torchrun.network(job))
            if len(job.hosts) > 1:
                torchrun.wait_for_name(variables["SM_MASTER_ADDR"], lambda: self._stop.requested)
        else:
            wrapper = script.suffix == ".sh"
            command = ["/bin/sh" if wrapper else sys.executable, str(script), *words]
        if self._stop.requested:
            return self.fail(Ended(128 + signal.SIGTERM, signal.SIGTERM), "stopped", "stopped before the script began")
        report.reserve(self._root)
        torch = TorchPeaks()
        variables.update(torch.variables(variables["PYTHONPATH"]))
        program = Program(command, job.code, variables, self._console, wrapper=wrapper)
        self._stop.watch(program)
        recorder = self._recorder = Recorder(
            program.pid, self._root, job.checkpoints, job.keeps_checkpoints, torch, self._console, self._report
        )
        recorder.start()
        ended = program.wait()
        self._deadline.begin(ended.exit_code)
        recorder.stop()
        try:
            if ended.exit_code:
                return self.fail(ended, *self._judge(ended, program, recorder))
            report.release(self._root)
            recorder.close()
            made = saves.look(self._root / "model")
            self._model = {"files": made.files, "bytes": made.bytes}
            if not made.files and job.host == job.first_host:
                self._console.line("[sagefit] look again: the script ended well, and wrote nothing to SM_MODEL_DIR")
            self._report(ended)
            return 0
        finally:
            torch.close()

    def close(self) -> None:
        """Says what still waits for the end of a line: a process that was left behind may write one."""
        self._console.settle()

    def fail(self, ended: Ended, failure_class: str, words: str) -> int:
        """Writes down why, first where SageMaker looks for it, and returns the exit code."""
        self._deadline.begin(ended.exit_code)
        words = report.one_line(words)
        text = report.failure_text(failure_class, words)
        report.release(self._root)
        report.write_failure(self._root, text)
        self._console.line(text)
        if self._recorder:
            self._recorder.close()
        self._report(ended, failure_class, words)
        return ended.exit_code

    def _judge(self, ended: Ended, program: Program, recorder: Recorder) -> tuple[str, str]:
        # Where the container's folder lies elsewhere, its name is what the patterns know.
        lines = [line.replace(str(self._root), CONTAINER) for line in (*program.last_lines, *self._own_words())]
        failure_class, words = verdict.judge(self._entry_point, ended, lines, recorder, self._stop.requested)
        failure_class, words = evidence.weigh(failure_class, words, ended, recorder)
        failure_class, words = evidence.weigh_growth(failure_class, words, recorder)
        hint = evidence.network_hint(words, lines) if self._isolated else ""
        return failure_class, f"{hint}: {words}" if hint else words

    def _look_at_checkpoints(self, job: environment.Job) -> None:
        """Takes what an earlier attempt was killed in the middle of out of the script's way."""
        if os.environ.get(KEEP) == "keep":
            return
        for name in cut_off.move_away(job.checkpoints, self._root / "cut-off"):
            self._cut_off.append(report.one_line(name))
            self._console.line(
                f"[sagefit] the checkpoint {self._cut_off[-1]} is cut off: whoever wrote it was killed. It is now in "
                f"{CONTAINER}/cut-off, out of the script's way ({KEEP}=keep leaves it)"
            )
        if self._cut_off and not saves.look(job.checkpoints).files:
            self._console.line("[sagefit] no other checkpoint is there: the script begins anew")

    def _install(self, code: Path, variables: dict[str, str]) -> None:
        requirements = code / "requirements.txt"
        if not requirements.is_file():
            return
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        command += ["--no-index"] if self._isolated else []  # what the image already has still counts as installed
        program = Program([*command, "-r", str(requirements)], code, variables, self._console)
        self._stop.watch(program)
        ended = program.wait()
        if ended.exit_code and not self._stop.requested:
            failure_class, said = verdict.last_words(program.last_lines)
            hint = (
                "The job has network_isolation true, so pip reaches no package index: put the packages into the image, "
                "or set resources.network_isolation: false"
                if self._isolated
                else "A network without a way to the package index needs the packages in the image"
            )
            raise environment.CannotStartError(
                f"requirements.txt could not be installed: {said[:LONGEST_QUOTE]}. {hint}.", failure_class
            )

    def _own_words(self) -> list[str]:
        """What the script itself wrote into the failure file, which is its right."""
        with contextlib.suppress(OSError):
            return report.read_failure(self._root).splitlines()
        return []

    def _report(self, ended: Ended | None = None, failure_class: str | None = None, words: str | None = None) -> None:
        job = self._job
        host = job.host if job else "algo-1"
        content: dict[str, Any] = {
            "schema": report.SCHEMA,
            "entry_point": self._entry_point,
            "training_job": os.environ.get("TRAINING_JOB_NAME", ""),
            "host": host,
            "exit_code": ended.exit_code if ended else None,
            "signal": ended.signal if ended else None,
            "class": failure_class,
            "evidence": words,
            "started": self._started,
            "model": self._model,
            "cut_off": self._cut_off,
            **(self._recorder.summary() if self._recorder else report.NOTHING),
        }
        if not self._reporting.acquire(timeout=REPORT_WAIT):
            return  # the disk does not answer: training is worth more than its record
        try:
            with contextlib.suppress(OSError):
                report.write_report(self._root, host, job.first_host if job else host, content)
        finally:
            self._reporting.release()


def _options(command_line: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sagefit", description=__doc__)
    parser.add_argument("--entry-point", required=True, help="script to run, relative to the channel 'code'")
    parser.add_argument("--isolated", action="store_true", help="the job has no network: install nothing from outside")
    parser.add_argument("arguments", nargs="*", help="after --: more arguments for the script")
    return parser.parse_args(command_line)
