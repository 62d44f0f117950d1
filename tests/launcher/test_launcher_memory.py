"""Limits, use and OOM kills as the kernel shows them, on copies of its files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sagefit_launcher import memory
from sagefit_launcher.memory import Limit
from sagefit_launcher.recorder import Gauge

GIB = 1024**3


@pytest.fixture(autouse=True)
def no_limit_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAGEFIT_MEMORY_LIMIT_BYTES", raising=False)


def machine(folder: Path, cgroup: str, **groups: dict[str, str]) -> tuple[Path, Path]:
    """``/proc`` and ``/sys/fs/cgroup`` of a machine with 16 GiB and these control groups (``__`` for ``/``)."""
    proc, cgroups = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(cgroup)
    (proc / "meminfo").write_text(f"MemTotal:       {16 * 1024**2} kB\nMemFree: 1 kB\n")
    cgroups.mkdir()
    for name, files in groups.items():
        group = cgroups / name.replace("__", "/").replace("top", ".")
        group.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (group / file).write_text(text)
    return proc, cgroups


def v2(limit: str, used: int = 0, kills: int = 0) -> dict[str, str]:
    return {
        "memory.max": f"{limit}\n",
        "memory.current": f"{used}\n",
        "memory.peak": f"{used + 7}\n",
        "memory.stat": f"anon 5\ninactive_file {GIB}\nactive_file 3\n",
        "memory.events": f"low 0\noom 2\noom_kill {kills}\n",
    }


def v1(limit: int, used: int = 0, kills: int = 0) -> dict[str, str]:
    return {
        "memory.limit_in_bytes": f"{limit}\n",
        "memory.usage_in_bytes": f"{used}\n",
        "memory.max_usage_in_bytes": f"{used + 7}\n",
        "memory.stat": f"cache 7\ntotal_inactive_file {GIB}\n",
        "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
    }


def test_version_2_with_a_view_of_its_own(tmp_path: Path) -> None:
    proc, cgroups = machine(tmp_path, "0::/\n", top=v2(str(4 * GIB), 3 * GIB, kills=1))
    groups = memory.find_groups(proc, cgroups)
    limit = memory.find_limit(groups, proc)
    assert limit.size == 4 * GIB
    assert limit.group
    assert memory.group_usage(limit.group) == 2 * GIB  # file cache that can be dropped is no need
    assert memory.group_peak(limit.group) == 3 * GIB + 7
    assert memory.group_kills(groups) == 1


def test_a_group_above_may_be_the_tighter_one(tmp_path: Path) -> None:
    proc, cgroups = machine(tmp_path, "0::/pod/box\n", pod=v2(str(2 * GIB)), pod__box=v2("max"))
    groups = memory.find_groups(proc, cgroups)
    assert groups == [cgroups / "pod" / "box", cgroups / "pod"]
    assert memory.find_limit(groups, proc) == Limit(2 * GIB, cgroups / "pod")


def test_version_1_seen_under_the_name_it_has_outside(tmp_path: Path) -> None:
    cgroup = "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/\n"
    proc, cgroups = machine(tmp_path, cgroup, memory=v1(GIB, 2 * GIB, kills=3))
    groups = memory.find_groups(proc, cgroups)
    assert memory.find_limit(groups, proc) == Limit(GIB, cgroups / "memory")
    assert memory.group_usage(cgroups / "memory") == GIB
    assert memory.group_peak(cgroups / "memory") == 2 * GIB + 7
    assert memory.group_kills(groups) == 3


def test_no_limit_means_the_machine(tmp_path: Path) -> None:
    proc, cgroups = machine(tmp_path, "4:memory:/\n", memory=v1(9223372036854771712))
    assert memory.find_limit(memory.find_groups(proc, cgroups), proc) == Limit(16 * GIB, None)


def test_the_smallest_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc, cgroups = machine(tmp_path, "0::/\n", top=v2(str(4 * GIB)))
    groups = memory.find_groups(proc, cgroups)
    monkeypatch.setenv("SAGEFIT_MEMORY_LIMIT_BYTES", str(GIB // 2))
    assert memory.find_limit(groups, proc) == Limit(GIB // 2, None)
    monkeypatch.setenv("SAGEFIT_MEMORY_LIMIT_BYTES", str(8 * GIB))
    assert memory.find_limit(groups, proc).size == 4 * GIB


def test_an_older_kernel_keeps_no_peak(tmp_path: Path) -> None:
    _, cgroups = machine(tmp_path, "0::/\n", top=v2("max"))
    (cgroups / "memory.peak").unlink()
    assert memory.group_peak(cgroups) is None


def test_a_gauge_knows_its_peak_and_its_last_seconds() -> None:
    gauge = Gauge()
    for seconds, value in ((0.0, 9), (1.0, 5), (3.0, 2)):
        gauge.add(seconds, value)
    assert (gauge.peak, gauge.lately, gauge.now) == (9, 5, 2)


def test_another_system_has_no_limit_and_no_use(tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert memory.find_groups(nowhere, nowhere) == []
    assert memory.find_limit([], nowhere) == Limit(None, None)
    assert memory.group_kills([]) == 0
    assert memory.tree(os.getpid(), nowhere) == memory.children(os.getpid(), nowhere) == []
    assert memory.tree_usage([], nowhere) == (0, 0, 0)


def test_a_tree_of_processes_counts_shared_pages_once() -> None:
    script = (
        "import os, time\nheld = b'x' * 120 * 1024**2\n"
        "workers = [os.fork() for _ in range(1)]\n"
        "os.write(1, b'ready\\n')\ntime.sleep(60)"  # one write each: print may need two, and they interleave
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert child.stdout
        assert [child.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        used, shared, peak = memory.tree_usage(memory.tree(child.pid))
        own = psutil.Process().memory_full_info().pss
    finally:
        os.killpg(child.pid, 9)
        child.communicate()
    assert 120 * 1024**2 < used - own < 200 * 1024**2  # two copies of one block are one block
    assert peak > 120 * 1024**2
    assert shared < 1024**2
    assert memory.tree_usage(memory.tree(child.pid)) == (0, 0, 0)


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_mapped_is_of_the_same_moment_as_the_size(tmp_path: Path, workers: int) -> None:
    """Both come out of one reading of one file, so that a process which ends in between counts its batches once."""
    rolled = "Pss: 60 kB\nPss_Dirty: 9 kB\nPss_Shmem: 40 kB\n"
    for pid in (7, 8)[: 1 + workers]:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text("Name: x\nVmHWM: 90 kB\nVmRSS: 80 kB\nRssShmem: 50 kB\n")
        (tmp_path / str(pid) / "smaps_rollup").write_text(rolled)
    found = memory.tree_usage([7, 8][: 1 + workers], tmp_path)
    assert found == ((80 * 1024, 50 * 1024, 90 * 1024) if not workers else (120 * 1024, 80 * 1024, 90 * 1024))
    (tmp_path / "7/smaps_rollup").unlink()  # an older kernel, or one that is ending
    found = memory.tree_usage([7, 8][: 1 + workers], tmp_path)
    assert found == ((80 * 1024, 50 * 1024, 90 * 1024) if not workers else (140 * 1024, 90 * 1024, 90 * 1024))
