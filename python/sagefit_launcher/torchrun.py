"""Starts the script with torchrun, one process for each GPU of each host, where that is wanted."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from .environment import CannotStartError, Job

SWITCH = "SAGEFIT_TORCHRUN"  # true, false; without it the toolkits' hyperparameter, without that by the job
SETTING = "sagemaker_torch_distributed_enabled"
PROCESSES = "SAGEFIT_PROCESSES_PER_HOST"
_WORDS = {"true": True, "1": True, "false": False, "0": False}
_NAMES_KNOWN_AFTER = 120.0  # seconds: the other hosts may still be starting
_INTERFACE_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")


def is_wanted(job: Job, script: Path) -> bool:
    """Whether to use torchrun: as asked, else for a Python script on several hosts whose image has torch.

    Hosts of several instance groups play parts of their own, so there it has to be asked for.
    """
    asked, name = os.environ.get(SWITCH), SWITCH
    if not asked:
        asked, name = job.settings.get(SETTING), SETTING
    if not asked:
        alike = len(job.hosts) > 1 and len(job.groups) < 2
        return alike and script.suffix == ".py" and _has_torchrun(script.parent)
    wanted = _WORDS.get(asked.lower())
    if wanted is None:
        raise CannotStartError(f"{name} is {asked!r}: give true or false")
    if wanted and not (script.suffix == ".py" and _has_torchrun(script.parent)):
        raise CannotStartError(
            f"{name} asks for torchrun, which needs a Python script as code.entry_point and torch 1.9 or newer in the "
            f"image or in requirements.txt: remove {name}, or give it these"
        )
    return wanted


def command(job: Job, script: Path, words: Sequence[str], variables: dict[str, str]) -> list[str]:
    """The command of this host. Ranks follow the hosts in alphabetical order, as all hosts see it."""
    hosts = sorted(job.hosts)
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        f"--nnodes={len(hosts)}",
        f"--node_rank={hosts.index(job.host)}",
        f"--nproc_per_node={_processes(variables)}",
        f"--master_addr={variables['SM_MASTER_ADDR'] if len(hosts) > 1 else '127.0.0.1'}",
        f"--master_port={variables['SM_MASTER_PORT']}",
        str(script),
        *words,
    ]


def network(job: Job) -> dict[str, str]:
    """Which network the libraries are to use, unless the job says so itself."""
    names = [name for name in _INTERFACE_VARIABLES if name not in os.environ]
    return dict.fromkeys(names, job.network_interface) if job.network_interface else {}


def wait_for_name(host: str, is_stopped: Callable[[], bool]) -> None:
    """Waits until the name of a host is known, which takes some seconds after the start of a job."""
    end = time.monotonic() + _NAMES_KNOWN_AFTER
    while time.monotonic() < end and not is_stopped():
        try:
            socket.getaddrinfo(host, None)
            return
        except OSError:
            time.sleep(0.5)


def _processes(variables: dict[str, str]) -> int:
    asked = os.environ.get(PROCESSES)
    if asked and not (asked.isdigit() and int(asked)):
        raise CannotStartError(f"{PROCESSES} is {asked!r}: give the number of processes on each host, or leave it out")
    return int(asked or variables["SM_NUM_GPUS"]) or 1


def _has_torchrun(code: Path) -> bool:
    importlib.invalidate_caches()  # pip may just have installed it
    spec = PathFinder.find_spec("torch", [str(code), *sys.path])
    folders = spec.submodule_search_locations if spec else None
    return any((Path(folder) / "distributed" / "run.py").is_file() for folder in folders or ())
