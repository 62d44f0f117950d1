"""What the hosts of this cloud are made of: their memory, their volumes, their packages and variables."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from sagefit.catalog import instances
from sagefit.cloud import images
from sagefit.cloud.aws_environment import aws_variables
from sagefit.cloud.record import INSTANCE_VARIABLE
from sagefit_cloud import clients
from sagefit_cloud.container import Container
from sagefit_cloud.ends import JobFailedError

#: Seconds between SIGTERM and SIGKILL. AWS gives 120.
GRACE_VARIABLE = "SAGEFIT_STOP_GRACE_SECONDS"
_GRACE_SECONDS = 120.0
_GIB = 1024**3
_PORTS = range(20000, 32000)
_RANDOM = random.SystemRandom()  # two clouds must not draw alike
_DISK_SHARE = 4  # a host's volume may take this part of the machine's free memory


@dataclass(frozen=True)
class Machine:
    """The machine all hosts share.

    ``memory_scale`` is the part of an instance's memory that a host gets here, ``start_seconds`` how long it takes to
    get one that is not warm. ``scratch`` is for what containers keep while they run, by default the system's temporary
    folder.
    """

    folder: Path
    memory_scale: float
    instance: str
    scratch: Path | None = None
    own_mounts: bool = False
    start_seconds: float = 0.0
    grace_seconds: float = field(default_factory=lambda: float(os.environ.get(GRACE_VARIABLE, _GRACE_SECONDS)))

    def host(
        self,
        name: str,
        folder: Path,
        *,
        instance_type: str,
        volume_gb: int,
        on_line: Callable[[str], None],
        measure: bool = False,
    ) -> Container:
        """A host of an instance type with a volume of so many GB, whose memory is measured if nothing in it does."""
        instance = instances().get(instance_type)
        if instance is None:
            raise JobFailedError(f"ClientError: the embedded cloud does not know {instance_type}")
        memory = int(instance.memory_gib * self.memory_scale * _GIB)
        disk = int(volume_gb * self.memory_scale * 1000**3)
        return Container(name, folder, memory, on_line, disk, self._own_disk(disk), measure, self.scratch)

    def _own_disk(self, size: int) -> bool:
        """Whether a host gets a file system of its own, which lies in memory."""
        room = psutil.virtual_memory().available / _DISK_SHARE
        return self.own_mounts and 0 < size <= room

    def pool(self, name: str) -> Path:
        """What stays on the kept instances of a warm pool from one job to the next."""
        return self.folder / "pools" / name

    def packages(
        self,
        framework: str,
        folder: Path,
        requirements: Path | None,
        say: Callable[[str], None],
        *,
        kept: bool = False,
    ) -> Path:
        """An environment in ``folder`` with what the framework's image brings, and the requirements on top.

        Each job gets a new one; ``kept`` takes the one that is there, if it is of the same packages and nobody has
        written to it.
        """
        wanted = requirements.read_bytes() if requirements and requirements.is_file() else None
        try:
            base = images.environment(framework)
        except images.ImageError as error:
            raise JobFailedError(f"ClientError: image: {error}") from error
        if wanted:
            try:
                base = images.environment(framework, wanted)
            except images.ImageError as error:  # the job's own installer tries again, and says so in its own words
                say(f"requirements.txt: {error}")
        own = folder.with_name(f"{folder.name}-{base.name}") if kept else folder
        if kept and own.exists():
            if images.is_pristine(own):
                return own
            shutil.rmtree(own)
        return images.layer(base, own)

    def variables(
        self,
        container: Container,
        packages: Path,
        asked: Mapping[str, str],
        *,
        region: str,
        role: str | None,
        port: int,
    ) -> dict[str, str]:
        """The environment of a host's command: what the job asked for, between what it may and may not replace.

        With ``role``, its ARN, the command asks this cloud in its name. ``port`` is for the hosts of a job to meet at.
        """
        credentials = {} if role is None else aws_variables(clients.endpoint(), clients.ROLES.of(role), region)
        return {
            "PATH": f"{packages / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(container.folder / "home"),
            "TMPDIR": container.temporary,
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "OMP_WAIT_POLICY": "PASSIVE",  # hosts share processors here: threads that wait must not keep them busy
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "AWS_REGION": region,
            GRACE_VARIABLE: f"{self.grace_seconds:g}",
            **credentials,
            **asked,
            "SAGEFIT_ML_ROOT": str(container.ml),
            "SAGEFIT_MEMORY_LIMIT_BYTES": str(container.memory_limit),
            # Hosts are processes here, and their names are in no name service.
            "SAGEFIT_MASTER_ADDRESS": "127.0.0.1",
            "SAGEFIT_MASTER_PORT": str(port),
            INSTANCE_VARIABLE: self.instance,
        }

    def grace_of(self, asked: Mapping[str, str]) -> float:
        """Seconds from a request to stop until a job is killed: its own where its environment names them.

        SageMaker gives every job 120 s, so a job that names more finds out on AWS alone.
        """
        try:
            own = float(asked.get(GRACE_VARIABLE) or self.grace_seconds)
        except ValueError:
            return self.grace_seconds
        return own if 0 <= own < float("inf") else self.grace_seconds


def framework_of(image: str) -> str:
    """Name of the list of packages that stands in for an image; a job whose image has none fails."""
    try:
        return images.framework_of(image)
    except images.ImageError as error:
        raise JobFailedError(f"ClientError: {error}") from error


def free_port() -> int:
    """A port for the hosts of one job to meet at: several jobs share this machine.

    It is outside of the range from which systems take ports of their own accord (from 32768 on Linux, 49152 elsewhere):
    the script listens seconds later, and nobody may have it until then.
    """
    for port in _RANDOM.sample(_PORTS, len(_PORTS)):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise JobFailedError(f"InternalServerError: no port from {_PORTS.start} to {_PORTS.stop - 1} is free here")
