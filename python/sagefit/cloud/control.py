"""The embedded cloud from outside: start it, find it, point AWS clients at it, end it."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from sagefit.cloud import faults as faults_file
from sagefit.cloud import paths, record, scratch
from sagefit.cloud.aws_environment import NO_FILES, PROXIES, REGION, UNSET, aws_variables, no_proxy
from sagefit.errors import FAILED, SagefitError
from sagefit.paths import home

DEFAULT_MEMORY_SCALE = 1 / 16
MEMORY_SCALE_VARIABLE = "SAGEFIT_MEMORY_SCALE"
_OF_THE_SERVER = ("sagefit_cloud", "moto", "flask_cors")
# Of the caller's environment the server gets what it needs to run Python and pip, and nothing that could be a secret.
_INHERITED = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "XDG_CACHE_HOME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_INHERITED_PREFIXES = ("LC_", "SAGEFIT_", "PIP_")
_PROGRAM = ["-m", "sagefit_cloud.server"]  # what Python runs
# Kept, so that a caller that lives on can reap the server it started.
_servers: list[subprocess.Popen[bytes]] = []
_START_SECONDS = 60.0
_END_SECONDS = 15.0


@dataclass(frozen=True)
class CloudStatus:
    """A running embedded cloud. ``instance`` is new with every start, as is all that the cloud holds."""

    instance: str
    pid: int
    port: int
    endpoint: str
    region: str
    home: Path
    memory_scale: float
    start_seconds: float
    clock: float
    faults: str | None
    uptime_seconds: float
    training_jobs: int
    running_jobs: int
    calls: int


def status() -> CloudStatus | None:
    """The running cloud, or None. A record without its process counts as none."""
    found = record.load()
    if found is None or record.process_of(found) is None:
        return None
    answer = record.ask(found)
    if answer is None:
        return None
    return CloudStatus(
        instance=found.instance,
        pid=found.pid,
        port=found.port,
        endpoint=found.endpoint,
        region=REGION,
        home=paths.cloud_home(),
        memory_scale=found.memory_scale,
        start_seconds=found.start_seconds,
        clock=found.clock,
        faults=found.faults,
        uptime_seconds=found.process.age(),
        training_jobs=int(answer["training_jobs"]),
        running_jobs=int(answer["running_jobs"]),
        calls=int(answer["calls"]),
    )


def is_there(instance: str) -> bool:
    """Whether this very cloud still runs, by its process alone: it may be too busy to answer."""
    found = record.load()
    return found is not None and found.instance == instance and record.process_of(found) is not None


def environment() -> dict[str, str]:
    """Variables that point every AWS client at the running cloud. The ones in ``UNSET`` must not be set beside them."""
    found = record.load()
    if found is None or status() is None:
        raise SagefitError("the embedded cloud is not running", hint="start it with: sagefit cloud up")
    return aws_variables(found.endpoint, found.key) | no_proxy(os.environ)


def clean_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """A whole environment for a child process that talks to the running cloud."""
    kept = {key: value for key, value in (os.environ if base is None else base).items() if key not in UNSET}
    return kept | environment()


def up(
    *,
    port: int = 0,
    faults: Path | None = None,
    memory_scale: float | None = None,
    start_seconds: float | None = None,
    clock: float | None = None,
    foreground: bool = False,
) -> tuple[CloudStatus, bool]:
    """Start the cloud; returns its status and whether this call started it (False: it ran already)."""
    wanted = str(faults.resolve()) if faults else None
    if faults:
        faults_file.load(faults)
    scale = _default_memory_scale() if memory_scale is None else memory_scale
    if not 0 < scale <= 1:
        raise SagefitError(f"--memory-scale: {scale} is not above 0 and at most 1")
    with _startup_lock():
        running = status()
        if running is not None:
            _refuse_other_options(running, port, wanted, memory_scale, start_seconds, clock)
            return running, False
        clean_up(record.load())
        with _listen(port) as listener:
            server = _launch(listener, wanted, scale, start_seconds or 0.0, clock or 1.0, foreground=foreground)
        started = _wait_until_up(server)
    if foreground:
        with contextlib.suppress(KeyboardInterrupt):
            server.wait()
        down()
    return started, True


def down() -> bool:
    """End the cloud and everything it started; returns whether there was one."""
    found = record.load()
    if found is None:
        return False
    process = record.process_of(found)
    alive = process is not None and _is_ours(process, found)
    if process is not None and alive:
        process.terminate()
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(_END_SECONDS)
    _servers[:] = [server for server in _servers if server.poll() is None]
    clean_up(found)
    return alive


def clean_up(found: record.Record | None) -> None:
    """Remove what an ended cloud left behind: record, processes that carry its mark, states, temporary files."""
    if found is not None:
        record.sweep(found.instance)
        shutil.rmtree(paths.terraform_folder(found.instance), ignore_errors=True)
    scratch.end()
    record.remove()


def _default_memory_scale() -> float:
    text = os.environ.get(MEMORY_SCALE_VARIABLE) or DEFAULT_MEMORY_SCALE
    try:
        return float(text)
    except ValueError as error:
        raise SagefitError(f"{MEMORY_SCALE_VARIABLE}: {text} is no number") from error


def _is_ours(process: psutil.Process, found: record.Record) -> bool:
    if record.ask(found) is not None:
        return True
    try:  # it may hang; then its own environment says whose it is
        return process.environ().get(record.INSTANCE_VARIABLE) == found.instance
    except psutil.Error:
        return False


def _refuse_other_options(
    now: CloudStatus,
    port: int,
    faults: str | None,
    memory_scale: float | None,
    start_seconds: float | None,
    clock: float | None,
) -> None:
    asked: list[tuple[str, object, object]] = [
        ("--port", port or now.port, now.port),
        ("--faults", faults or now.faults, now.faults),
        ("--memory-scale", memory_scale or now.memory_scale, now.memory_scale),
        ("--start-seconds", now.start_seconds if start_seconds is None else start_seconds, now.start_seconds),
        ("--clock", clock or now.clock, now.clock),
    ]
    for option, wanted, has in asked:
        if wanted != has:
            raise SagefitError(
                f"the embedded cloud already runs with {option} {has}, not {wanted}",
                hint="end it first with: sagefit cloud down (what was applied to it is lost)",
            )


@contextlib.contextmanager
def _startup_lock() -> Iterator[None]:
    with open(paths.cloud_home() / "lock", "w", opener=paths.private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_installed() -> None:
    missing = [package for package in _OF_THE_SERVER if importlib.util.find_spec(package) is None]
    if missing:
        raise SagefitError(
            f"the embedded cloud needs packages that are not installed: {', '.join(missing)}",
            hint="install them with Sagefit: pip install 'sagefit[local]'; in a clone of it: make setup",
            exit_code=FAILED,
        )


def _listen(port: int) -> socket.socket:
    """A listening socket. The server inherits it, so nobody can take the port in between."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise SagefitError(
            f"--port: 127.0.0.1:{port} cannot be used: {error.strerror}",
            hint="name another port, or none to get a free one",
        ) from error
    return listener


def _launch(
    listener: socket.socket,
    faults: str | None,
    memory_scale: float,
    start_seconds: float,
    clock: float,
    *,
    foreground: bool,
) -> subprocess.Popen[bytes]:
    _check_installed()
    port = listener.getsockname()[1]
    command = [sys.executable, *_PROGRAM, "--fd", str(listener.fileno()), "--port", str(port)]
    command += ["--memory-scale", repr(memory_scale), "--start-seconds", repr(start_seconds)]
    command += ["--clock", repr(clock)]
    if faults:
        command += ["--faults", faults]
    with open(paths.cloud_home() / "cloud.log", "ab", opener=paths.private) as log:
        server = subprocess.Popen(
            command,
            env=_server_environment(port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
            start_new_session=not foreground,
        )
    _servers.append(server)
    return server


def _server_environment(port: int) -> dict[str, str]:
    return (
        {key: value for key, value in os.environ.items() if _is_inherited(key)}
        | no_proxy(os.environ)
        | {
            "MOTO_PORT": str(port),  # read when moto is imported
            "MOTO_DISABLE_GLOBAL_CORS": "true",  # no web page may read an answer
            "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",  # a second of start-up for images nobody here asks for
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            "PYTHONUNBUFFERED": "1",
            "MALLOC_MMAP_THRESHOLD_": "262144",  # glibc: what S3 was sent goes back to the system once it is on disk
            "SAGEFIT_HOME": str(home()),
            record.INSTANCE_VARIABLE: secrets.token_hex(8),
        }
        | NO_FILES  # the server is an AWS client too: of itself
    )


def _is_inherited(name: str) -> bool:
    return name in _INHERITED or name in PROXIES or name.startswith(_INHERITED_PREFIXES)


def _wait_until_up(server: subprocess.Popen[bytes]) -> CloudStatus:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if record.path().exists() and (now := status()) is not None:
            return now
        time.sleep(0.05)
    ended = server.poll()
    server.kill()
    server.wait()
    log = paths.cloud_home() / "cloud.log"
    last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing was logged"]
    how = f"ended with exit code {ended}" if ended is not None else f"did not answer within {_START_SECONDS:.0f} s"
    raise SagefitError(f"the embedded cloud {how}: {last[0]}", hint=f"see {log}", exit_code=FAILED)
