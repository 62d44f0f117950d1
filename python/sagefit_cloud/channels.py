"""A training job's input: each channel as its mode gives it to a host, and what the host is told about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sagefit_cloud import pipes, storage
from sagefit_cloud.container import Container
from sagefit_cloud.jobs import TrainingJob


def fill(job: TrainingJob, container: Container) -> list[pipes.Stream]:
    """Give a host its part of every channel that its group reads; returns the streams of those in Pipe mode."""
    streams = []
    data = container.ml / "input" / "data"
    for channel in job.request.get("InputDataConfig", []):
        readers = readers_of(job, channel)
        if container.name not in readers:
            continue
        mode, name = mode_of(job, channel), str(channel["ChannelName"])
        host, hosts = readers.index(container.name), len(readers)
        if mode == "Pipe":
            streams.append(pipes.Stream(pipes.Channel(job.s3, channel, host, hosts), data))
        elif mode == "FastFile":
            beside = container.folder.with_name(f"{container.name}-fastfile") / name
            storage.download_channel(job.s3, channel, beside, host, hosts)
            _mount(beside, data / name)
        else:
            storage.download_channel(job.s3, channel, data / name, host, hosts)
    return streams


def _mount(source: Path, target: Path) -> None:
    """What FastFile shows: files that can be read only, and take no room on the host's volume."""
    for path in storage.files_in(source):
        path.chmod(0o444)
    target.symlink_to(source, target_is_directory=True)


def mode_of(job: TrainingJob, channel: dict[str, Any]) -> str:
    """How a channel's data reaches a host: its own mode, or the job's."""
    return str(channel.get("InputMode") or job.request["AlgorithmSpecification"]["TrainingInputMode"])


def readers_of(job: TrainingJob, channel: dict[str, Any]) -> list[str]:
    """The hosts that get a channel: those of its instance groups, or all. A sharded channel is shared among them."""
    groups = channel["DataSource"].get("S3DataSource", {}).get("InstanceGroupNames")
    return [name for name, group in job.hosts if not groups or group.name in groups]


def configuration(job: TrainingJob, host: str) -> dict[str, Any]:
    """The content of a host's ``inputdataconfig.json``."""
    return {
        channel["ChannelName"]: {
            "TrainingInputMode": mode_of(job, channel),
            "S3DistributionType": channel["DataSource"]
            .get("S3DataSource", {})
            .get("S3DataDistributionType", "FullyReplicated"),
            "RecordWrapperType": channel.get("RecordWrapperType", "None"),
            "ContentType": channel.get("ContentType", ""),
        }
        for channel in job.request.get("InputDataConfig", [])
        if host in readers_of(job, channel)
    }
