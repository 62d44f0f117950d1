"""What two gigabytes of local input cost on the embedded cloud: ``make bench``.

A job is applied, one of its 21 code files is changed, it is applied again, and it is destroyed. What counts is what the
embedded cloud itself takes: the files below its folder and those that it holds open without a name, and the resident
memory of its process, against what it has after the same job with next to no data. Terraform's own memory and the
volumes of containers are not part of it. ``--smoke`` takes 20 MB and asks for no goal.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import boto3
import psutil

from sagefit.cloud import record
from sagefit.paths import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from cli_runner import Sagefit
from job_files import write_job

FILES, MB = 20, 1 << 20
DISK_GOAL, MEMORY_GOAL, LISTING_GOAL = 1.1, 300, 1.5


class Watch(threading.Thread):
    """The most disk and memory that a process takes, in bytes, looked at ten times a second."""

    def __init__(self, pid: int, folder: Path) -> None:
        super().__init__(daemon=True)
        self._process, self._folder, self._ended = psutil.Process(pid), folder, threading.Event()
        self.disk, self.memory, self.idle = 0, 0, self._process.memory_info().rss

    def run(self) -> None:
        """Look until it is stopped."""
        while not self._ended.wait(0.1):
            self.memory = max(self.memory, self._process.memory_info().rss)
            self.disk = max(self.disk, self._named() + self._nameless())

    def stop(self) -> None:
        """End it."""
        self._ended.set()
        self.join()

    def _named(self) -> int:
        total = 0
        for path in self._folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.lstat().st_blocks * 512
        return total

    def _nameless(self) -> int:
        total = 0
        for number in Path(f"/proc/{self._process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                state = number.stat()
                total += state.st_blocks * 512 if state.st_nlink == 0 else 0
        return total


def listing_seconds(s3: Any, bucket: str) -> float:
    """A listing of the versions of one key, the median of 21."""
    times = []
    for _ in range(21):
        began = time.perf_counter()
        s3.list_object_versions(Bucket=bucket, Prefix="no-such-key")
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Print the row, and end with 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="a hundredth of the data: does it run at all?")
    smoke = parser.parse_args().smoke
    size = 1 if smoke else 100  # MB of a file
    with tempfile.TemporaryDirectory() as folder:
        job = write_job(Path(folder))
        for number in range(FILES):
            (job.with_name("src") / f"module_{number}.py").write_text(f"value = {number}\n", encoding="utf-8")
        data = FILES * size * MB
        sagefit = Sagefit(Path(folder) / "home", CLOUD="local")
        sagefit("cloud", "up")
        os.environ["SAGEFIT_HOME"] = str(sagefit.home)
        me = record.load()
        assert me
        sagefit("platform", "apply", "--yes")
        sagefit("plan", job)
        sagefit("apply", job)  # with four bytes of data: everything is loaded that an apply needs
        for number in range(FILES):
            with (job.with_name("data") / f"part-{number}.bin").open("wb") as file:
                for _ in range(size):
                    file.write(os.urandom(MB))
        watch = Watch(me.pid, sagefit.home / "cloud")
        watch.start()
        try:
            for value in ("first", "second"):
                (job.with_name("src") / "module_0.py").write_text(f"value = '{value}'\n", encoding="utf-8")
                began = time.perf_counter()
                sagefit("plan", job)
                sagefit("apply", job)
                print(f"{value} apply: {time.perf_counter() - began:.0f} s", flush=True)
            keys: dict[str, Any] = {"aws_access_key_id": me.access_key, "aws_secret_access_key": me.secret_key}
            s3 = boto3.client("s3", endpoint_url=me.endpoint, region_name="us-east-1", **keys)
            full = max((each["Name"] for each in s3.list_buckets()["Buckets"]), key=lambda name: _size(s3, name))
            s3.create_bucket(Bucket="empty")
            listing = listing_seconds(s3, full) / listing_seconds(s3, "empty")
            sagefit("destroy", job, "--yes")
            left = watch._named() + watch._nameless()
        finally:
            watch.stop()
            sagefit("cloud", "down")
    disk, memory = watch.disk / data, (watch.memory - watch.idle) / MB
    print(
        f"{data / 1e9:.1f} GB of local input: disk {disk:.2f} times the data (goal {DISK_GOAL}), "
        f"memory {memory:.0f} MB above the job without data (goal {MEMORY_GOAL}), "
        f"listing {listing:.2f} times that of an empty bucket (goal {LISTING_GOAL}), "
        f"left after destroy {left / MB:.0f} MB"
    )
    sys.exit(not smoke and (disk > DISK_GOAL or memory > MEMORY_GOAL or listing > LISTING_GOAL))


def _size(s3: Any, bucket: str) -> int:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return sum(item["Size"] for page in pages for item in page.get("Contents", []))


if __name__ == "__main__":
    main()
