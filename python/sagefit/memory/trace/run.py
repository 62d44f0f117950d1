"""Runs the tracing program in a process of its own: without network, credentials or the user's home."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sagefit.errors import FAILED, SagefitError
from sagefit.job.model import Job
from sagefit.job.values import as_text, duration
from sagefit.memory import knobs
from sagefit.memory.trace.inputs import inputs_of
from sagefit.memory.trace.store import Record, save, untraceable
from sagefit.memory.workload import Workload
from sagefit.paths import display, home

CLOSED_FORM = "size goes on with the closed form"
_CHILD = Path(__file__).with_name("child")
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
#: A network namespace of its own, in a user namespace so that nobody has to be root (util-linux 2.34 or newer).
_UNSHARE = ["unshare", "--user", "--map-current-user", "--net", "--"]
_POLL = 0.1  # seconds between looks at the child

Progress = Callable[[str, float], None]


def trace(
    job: Job,
    workload: Workload,
    hyperparameters: Mapping[str, Any],
    *,
    timeout: float | None = None,
    progress: Progress = lambda stage, seconds: None,  # noqa: ARG005
) -> Record:
    """Trace the function of ``job`` for ``workload`` and keep the outcome; ``progress`` gets a stage and seconds.

    Raises SagefitError (exit code 2) for what its author has to correct, and (exit code 1) for a model that cannot be
    traced, a timeout or a crash.
    """
    settings, code = job.memory.trace if job.memory else None, job.code
    if settings is None or code is None:
        raise SagefitError(
            f"{display(job.path)}: memory.trace is not set, so there is nothing to trace",
            hint="memory.trace.function names a function of the code that builds the model, such as train.py:build",
        )
    if reason := untraceable(workload):
        raise SagefitError(f"{display(job.path)}: {reason}", hint=CLOSED_FORM, exit_code=FAILED)
    python = interpreter(job)
    inputs = inputs_of(job, workload, hyperparameters)
    request = {
        "function": settings.function,
        "method": workload.method,
        "precision": workload.precision,
        "batches": batches(workload.micro_batch),
        # A model without checkpointing may get it as a remedy; nobody takes it away again.
        "checkpointing": [True] if workload.gradient_checkpointing else [False, True],
        "batch_hyperparameter": knobs.name_of(job, "micro_batch", hyperparameters),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2,
        "arguments": {
            "precision": workload.precision,
            "sequence_length": workload.sequence_length,
            "image_size": inputs.image_size,
            "hyperparameters": dict(hyperparameters),
        },
    }
    variables = {name: as_text(value) for name, value in job.environment.items()}
    log = home() / "trace" / job.name / "log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started, own_network = time.monotonic(), _own_network()
    outcome = _run_child(
        [*own_network, python],
        request,
        job.local(code.source_dir),
        variables,
        log=log,
        timeout=timeout or settings.timeout,
        progress=progress,
    )
    error = outcome.get("error", {})
    if error.get("kind") == "protocol":
        raise SagefitError(
            f"{settings.function}: {error['message']}", hint=f"traced with {python}; log: {display(log)}"
        )
    record = Record(
        inputs=asdict(inputs),
        result=outcome.get("result"),
        refusal=error.get("message", ""),
        seconds=round(time.monotonic() - started, 1),
        network="none (its own network namespace)" if own_network else "closed inside Python only",
    )
    save(job, record)
    if record.result is None:
        message = f"{settings.function} cannot be traced: {record.refusal}"
        raise SagefitError(message, hint=f"{CLOSED_FORM}; log: {display(log)}", exit_code=FAILED)
    return record


def batches(micro_batch: int) -> list[int]:
    """Two batches to trace: the one that is used, and one as small as remedies may make it, but not 1 if possible:
    some models (BatchNorm over one pixel) cannot train on a single sample."""
    return [micro_batch, max(2, micro_batch // 4) if micro_batch > 2 else 3 - micro_batch if micro_batch == 1 else 4]


def interpreter(job: Job) -> str:
    """The Python that has torch. Raises SagefitError that names the knobs when none is known."""
    settings = job.memory.trace if job.memory else None
    named = settings.python if settings else None
    variable = os.environ.get("SAGEFIT_TRACE_PYTHON")
    if named:  # not resolved: the python of a virtual environment is a link, and is told by where the link lies
        wanted, knob = os.path.abspath(job.path.parent / named), "memory.trace.python"  # noqa: PTH100
    elif variable:
        wanted, knob = variable, "SAGEFIT_TRACE_PYTHON"
    elif importlib.util.find_spec("torch"):
        return sys.executable
    else:
        raise SagefitError(
            "trace: no Python with torch is known, and Sagefit itself has none",
            hint="set memory.trace.python in the job file, or SAGEFIT_TRACE_PYTHON, to the python of an environment "
            "that has what the training code imports",
        )
    found = shutil.which(wanted)
    if found is None:
        raise SagefitError(f"trace: {wanted} is no program", hint=f"{knob} must name a python")
    return found


def _run_child(
    python: list[str],
    request: Mapping[str, Any],
    source: Path,
    variables: Mapping[str, str],
    *,
    log: Path,
    timeout: float,
    progress: Progress,
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="sagefit-trace-") as name, log.open("wb") as output:
        temporary = Path(name).resolve()
        code = temporary / "code"  # a copy, which the function may write to
        shutil.copytree(source, code, ignore=shutil.ignore_patterns("__pycache__", ".git"))
        (temporary / "home").mkdir()
        request_file, result_file = temporary / "request.json", temporary / "result.json"
        request_file.write_text(json.dumps({**request, "code": str(code)}), encoding="utf-8")
        process = subprocess.Popen(
            [*python, "-I", str(_CHILD), str(request_file), str(result_file)],
            cwd=code,
            env=_environment(temporary, variables),
            stdin=subprocess.PIPE,  # held open: the child ends when it closes
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            _wait(process, timeout, lambda seconds: progress(_stage(temporary / "progress"), seconds))
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdin  # noqa: S101 - it is a pipe
            process.stdin.close()
        try:
            outcome: dict[str, Any] = json.loads(result_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            code_ = process.returncode
            how = f"was killed by signal {-code_}" if code_ < 0 else f"ended with exit code {code_}"
            raise SagefitError(
                f"the tracing program {how} and left no result",
                hint=f"{CLOSED_FORM}; log: {display(log)}",
                exit_code=FAILED,
            ) from None
        return outcome


def _wait(process: subprocess.Popen[bytes], timeout: float, tick: Callable[[float], None]) -> None:
    started = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL)
            return
        seconds = time.monotonic() - started
        if seconds > timeout:
            raise SagefitError(
                f"the trace was not done after {duration(timeout)}",
                hint=f"raise memory.trace.timeout or --timeout; {CLOSED_FORM}",
                exit_code=FAILED,
            )
        tick(seconds)


def _stage(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "starting"


def _environment(temporary: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The job's own variables and little else: no credentials, no proxies, no home. Hub files already on this machine
    may be read, so that a model can be built by its name."""
    hub = os.environ.get("HF_HUB_CACHE") or str(
        Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub"
    )
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        **variables,
        "HOME": str(temporary / "home"),
        "TMPDIR": str(temporary),
        "HF_HUB_CACHE": hub,
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }


def _own_network() -> list[str]:
    """The command before Python that takes its network away; empty where the system does not allow it."""
    if sys.platform != "linux" or shutil.which(_UNSHARE[0]) is None:
        return []
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False)
    return [] if tried.returncode else _UNSHARE
