"""GPUs that had little to do: seen by the launcher, and told by the ledger with what would change it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sagefit.catalog import instances
from sagefit.running import reports
from sagefit.running.idle import filled_disk, in_words
from sagefit_launcher.busy import Busy, Processors, cpu_seconds

REGION = "us-east-1"
GIB = 1024**3


def seen(*samples: tuple[int, float | None, float | None]) -> dict[str, Any]:
    """The report of a host: how often which percentages of GPUs and CPUs were seen."""
    busy = Busy()
    for times, gpu, cpu in samples:
        for _ in range(times):
            busy.add(gpu, cpu)
    return {"busy": busy.as_json()}


def test_shares_are_counted_from_the_first_use_on() -> None:
    assert seen((300, 0, 50), (60, 80, 40), (100, 5, 95), (40, 9, 20), (7, 50, None))["busy"] == {
        "samples_before": 300,
        "samples": 200,
        "idle_samples": 140,
        "waiting_samples": 100,
        "gpu_percent": 28.3,
        "cpu_percent": 63.5,
    }


def test_a_host_whose_gpus_nobody_can_ask_tells_nothing() -> None:
    assert seen((100, None, 50)) == {"busy": None}
    for told in (None, {}, {"samples": 100}, {"samples": "many", "samples_before": 1}, 7):
        assert reports.idle([{"busy": told}]) is None


@pytest.mark.parametrize(
    "report",
    [
        seen((600, 0, 100), (60, 90, 50)),  # it loaded for ten minutes
        seen((59, 5, 95), (0, 0, 0)),  # too short to tell
        seen((1, 100, 5), (50, 5, 95), (8, 100, 5)),
        seen((100, 100, 5), (100, 5, 95)),  # not more than half of the time
        seen((1, 100, 5), (10_000, 11, 99)),  # slow, and not idle
    ],
    ids=["loads", "short", "short with use", "half", "slow"],
)
def test_gpus_that_worked_are_not_called_idle(report: dict[str, Any]) -> None:
    assert reports.idle([report]) is None


def test_gpus_that_waited_for_the_cpus_want_more_of_them() -> None:
    waits = reports.idle([seen((1000, 99, 50)), seen((20, 60, 90), (80, 2, 98))])  # the worse of two hosts
    assert waits == reports.Idle(0.8, 0.8, 13.6, 96.4, never=False)
    assert in_words(waits, instances()["ml.g5.xlarge"], REGION) == (
        "its GPUs were less than 10 % busy for 80 % of the time (GPUs 14 %, CPUs 96 % busy on average), and waited for "
        "the CPUs: prepare the data before the training (processing), or take ml.g5.2xlarge: the same GPUs with 8 "
        "vCPUs instead of 4, for 1.51 USD an hour"
    )
    # Nothing has these GPUs and more vCPUs.
    assert in_words(waits, instances()["ml.p4d.24xlarge"], REGION).endswith("before the training (processing)")


def test_gpus_that_waited_for_something_else_do_not() -> None:
    found = reports.idle([seen((30, 60, 20), (70, 2, 15))])
    assert found
    told = in_words(found, instances()["ml.g5.xlarge"], REGION)
    assert told.endswith("they waited, and not for the CPUs: start more loader workers, or read the data faster")


def test_gpus_that_were_never_used_are_not_needed() -> None:
    found = reports.idle([seen((60, 0, 80))])
    assert found
    assert found.never
    assert "never used" in in_words(found, instances()["ml.g5.xlarge"], REGION)
    assert reports.idle([seen((59, 0, 80))]) is None


def disk(first: int | None, peak: int, total: int = 100, **more: Any) -> dict[str, Any]:
    return {"path": "/opt/ml", "first_bytes": first, "peak_bytes": peak * GIB, "total_bytes": total * GIB, **more}


def test_a_disk_that_was_nearly_full_is_told() -> None:
    volume, own = instances()["ml.m5.large"], instances()["ml.g5.xlarge"]
    host = {"seconds": 7200, "disks": [disk(30 * GIB, 91), disk(0, 10)]}
    assert filled_disk([{"disks": [disk(0, 86)], "seconds": 5}, host], volume) == (
        "/opt/ml was 91 % full (91 GiB), 61 GiB of it written in 2 h: raise resources.volume_size_gb"
    )
    assert filled_disk([host], own).endswith(": take a type with larger disks of its own")
    # Of an earlier launcher, which did not say what was there at first.
    old = {"disks": [{"path": "/", "peak_bytes": 9, "total_bytes": 10}]}
    assert filled_disk([old], None).startswith("/ was 90 % full (")
    for report in (
        {},
        {"disks": None},
        {"disks": [None, {}, {"peak_bytes": 1, "total_bytes": 0}]},
        {"disks": [disk(0, 84)]},
    ):
        assert filled_disk([report], volume) == ""


def test_processes_and_those_they_waited_for_count(tmp_path: Path) -> None:
    for pid, name, times in ((7, "python3", "100 20 300 4"), (8, "a) b (c", "50 0 0 0")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {times} 20 0 1 0\n")
    assert cpu_seconds([7, 8, 9], tmp_path) == pytest.approx(4.74)  # 9 has ended; a tick is a hundredth of a second
    processors = Processors()
    assert processors.percent([7, 8], tmp_path) is None  # the first look
    assert processors.percent([7, 8], tmp_path) == 0
    assert processors.percent([7], tmp_path) is None  # 8 has ended, and nobody waited for it
