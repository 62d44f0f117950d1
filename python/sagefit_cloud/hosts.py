"""The hosts of one launch of a job: containers, each with its log stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sagefit_cloud import ends, telemetry
from sagefit_cloud.container import Container
from sagefit_cloud.ends import JobFailedError
from sagefit_cloud.pipes import Stream

TICK = 0.05
FLUSH_SECONDS = 0.5
UTILISATION_SECONDS = 2.0


class Hosts:
    """Containers that start, are watched and end together."""

    def __init__(self, region: str, role: str, job: str, log_group: str = telemetry.LOG_GROUP) -> None:
        self._region, self._role, self._job, self._log_group = region, role, job, log_group
        self._logs: list[telemetry.JobLog] = []
        self.containers: list[Container] = []
        self.streams: list[Stream] = []

    def __iter__(self) -> Iterator[Container]:
        return iter(self.containers)

    def log(self, stream: str, scan: Callable[[str], None]) -> Callable[[str], None]:
        """A new log stream: what to call with each line, which ``scan`` gets too."""
        log = telemetry.JobLog(self._region, self._role, stream, self._log_group)
        self._logs.append(log)

        def listen(line: str) -> None:
            log.add(line)
            scan(line)

        return listen

    def say(self, line: str) -> None:
        """Put a line of our own into the first host's log."""
        self._logs[0].add(line)

    def ended(self) -> tuple[Container, int] | bool:
        """The first host that failed with its exit code; else whether all have ended."""
        codes = [container.poll() for container in self.containers]
        for container, code in zip(self.containers, codes, strict=True):
            if code:
                return container, code
        return None not in codes

    def stop(self, seconds: float, closing: Callable[[float], bool]) -> None:
        """SIGTERM, so many seconds to save work, SIGKILL; sooner where ``closing``, a wait, says so."""
        for container in self.containers:
            container.terminate()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(container.poll() is None for container in self.containers):
            if closing(TICK):
                break
        self.kill()

    def kill(self) -> None:
        """Kill everything in them."""
        for container in self.containers:
            container.kill()

    def close(self) -> None:
        """Kill what runs, end the streams to it, and remove what is outside of their folders."""
        self.kill()
        for stream in self.streams:
            stream.stop()
        for container in self.containers:
            container.close()

    def check_streams(self) -> None:
        """Raises where the data of a channel in Pipe mode could not be read."""
        for stream in self.streams:
            if stream.error:
                self.kill()
                raise JobFailedError(f"ClientError: {stream.error}")

    def check_disks(self) -> None:
        """Raises where files outgrew a volume that has no file system of its own."""
        for container in self.containers:
            if container.disk_is_full:
                self.kill()
                raise ends.disk_full(container)

    def publish_utilisation(self) -> None:
        """Tell CloudWatch how much of each host is in use."""
        for container in self.containers:
            shares = container.shares()
            if shares:
                shares["DiskUtilization"] = telemetry.disk_percent(str(container.folder))
                used = telemetry.utilisation(f"{self._job}/{container.name}", shares)
                telemetry.publish(self._region, self._role, used)

    def flush(self) -> None:
        """Write what was logged."""
        for log in self._logs:
            log.flush()
