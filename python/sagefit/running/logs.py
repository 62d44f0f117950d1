"""The log of training jobs, as CloudWatch has it."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from sagefit.running.clients import logs

GROUP = "/aws/sagemaker/TrainingJobs"
HOSTS = 20  # logs that are read of a training job to explain it; the default quota allows no more instances
_LINES = 2000  # of a host's log: no more is judged, and one call gets them


class LogReader:
    """Reads the logs of training jobs, each line once."""

    def __init__(self, group: str = GROUP) -> None:
        self._group = group
        self._since: dict[str, int] = {}
        self._seen: set[str] = set()

    def new_lines(self, training_job: str) -> Iterator[str]:
        """The lines of a training job that no earlier call has returned; none while it has no log yet."""
        since = self._since.get(training_job, 0)
        try:
            streams = logs().describe_log_streams(logGroupName=self._group, logStreamNamePrefix=f"{training_job}/")
            names = [stream["logStreamName"] for stream in streams["logStreams"]]
            if not names:
                return
            pages = logs().get_paginator("filter_log_events")
            for page in pages.paginate(logGroupName=self._group, logStreamNames=names, startTime=since):
                for event in page["events"]:
                    if event["eventId"] not in self._seen:
                        self._seen.add(event["eventId"])
                        # Lines may come late within one millisecond, so that one is asked for again.
                        self._since[training_job] = max(event["timestamp"], self._since.get(training_job, 0))
                        yield event["message"].rstrip("\n")
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise


def last_lines(training_job: str, count: int = 15) -> list[str]:
    """The end of a training job's log."""
    return list(LogReader().new_lines(training_job))[-count:]


def tails(training_job: str, group: str = GROUP) -> dict[str, list[str]]:
    """The last lines of each host's log, by the host's name; of a host that was launched again, those of the last time.

    One call for each of at most 20 hosts. Raises ClientError where the logs may not be read.
    """
    try:
        listed = logs().describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{training_job}/")["logStreams"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return {}
        raise
    names = sorted(stream["logStreamName"] for stream in listed)  # <job>/algo-<n>-<time of the launch>
    newest = {name.rpartition("/")[2].rpartition("-")[0]: name for name in names}
    return {host: _last(name, group) for host, name in list(newest.items())[:HOSTS]}


def _last(stream: str, group: str) -> list[str]:
    page = logs().get_log_events(logGroupName=group, logStreamName=stream, limit=_LINES, startFromHead=False)
    return [event["message"].rstrip("\n") for event in page["events"]]
