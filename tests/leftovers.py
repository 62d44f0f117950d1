"""What a session of the tests leaves behind is named at its end, and makes the session fail.

The process that started the session judges: the controller of pytest-xdist, or the only one. It looks at three things.

The checkout
    Since the start no tracked file has changed, and there is no new file that Git does not ignore. Outside of Git
    nothing is judged, and that is said.
Processes
    None is left. A process belongs to the session if it descends from this one, or if its temporary directory is the
    session's: the variable is inherited, also by the embedded cloud and its containers, and tests that clear the
    environment keep it. One that was given no environment and has outlived its parent is not seen. What is left is
    ended once it is named.
The temporary directory
    The session has one of its own, ``sf-...`` in the system's. Only pytest's own files may be left in it. Its name is
    short, because a socket in it may have a name of 108 bytes at most. It is removed, unless the session failed: then
    it stays, and the end says where. The last few that stayed are kept.

The last line says what the session has cost, where there is ``/proc``. A run of the whole suite that costs more than
the limits gets a line of warning, no failure: how much it takes differs between machines.

Written
    ``write_bytes`` of ``/proc/PID/io``: what was given to disks, also where it was removed again before it reached
    them. Files in memory do not count. The kernel adds to a process what the children have written that it has waited
    for, so this process has all at the end but what belongs to nobody: of processes that have left their parents, as
    the embedded cloud does, the last reading counts, which is up to two seconds old.
Memory
    The sum of all processes at one moment, at the highest of the moments that were looked at, one every two seconds.
    What counts is what belongs to one process alone; pages of files, such as programs, which several share and the
    system can read again, do not. Forks of a process share what none of them has changed. Each is counted for its part
    of it, but only at a moment that would be the highest if each had all of it: to ask for the part takes long.
Work
    Seconds of a processor that one process took which a test has started. One that goes round and round, long after
    its test, is no leftover, and makes all others slow.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil
import pytest
from _pytest.pathlib import rm_rf  # also removes what a test has made read-only

import limits
import preloaded
import second_try
from sagefit.processes import running

MOST_WRITTEN, MOST_MEMORY = 3e9, 4e9  # bytes, of the whole suite
MOST_WORK = 60.0  # seconds of a processor, of one process
GRACE = 10.0  # seconds in which processes may end
PAUSE = 2.0  # seconds between two looks at all processes
KEPT = 2  # folders of earlier sessions that failed
_PREFIX = "sf-"
_LOCK, _TESTS = "lock", "t"  # in the session's folder: held as long as the session lasts; pytest's own folder
_PYTEST = "pytest-of-"  # of sessions inside of the session
_VARIABLE = "TMPDIR"
_IO = Path("/proc/self/io")


@dataclass
class Left:
    """Things of one kind that were left, and what to do about them."""

    where: str
    things: list[str]
    advice: str


class Meter(threading.Thread):
    """Looks at all processes of a session again and again."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="meter", daemon=True)
        self.peak = 0  # bytes of memory
        self.largest = self.busiest = ""  # the process with the most of them at that moment, and with the most work
        self.work = 0.0  # seconds of that process
        self._folder = folder
        self._highest = 0  # bytes of memory, if no process shared any
        self._alone: dict[psutil.Process, int] = {}  # who has no parent in the session, and bytes they have written
        self._over = threading.Event()

    def run(self) -> None:
        """Look until the end."""
        while not self._over.wait(PAUSE):
            self.look()

    def end(self) -> None:
        """Look once more, and no more."""
        self._over.set()
        if self.is_alive():
            self.join()
        self.look()

    def look(self) -> None:
        """Take what the processes use now."""
        here = psutil.Process()
        found = [here, *processes(self._folder)]
        memory = {process: _memory(process) for process in found}
        if sum(memory.values()) > self._highest:
            self._highest = sum(memory.values())
            self._keep(memory | {process: _part(process) for process in found if preloaded.is_fork(process)})
        inside = {process.pid for process in found}
        for process in found[1:]:
            with contextlib.suppress(psutil.Error):
                if process.ppid() not in inside:
                    self._alone[process] = _written(process)
                if process.ppid() != here.pid:  # its own children run the tests, or serve them all
                    self._look_at_work(process)

    def _keep(self, memory: dict[psutil.Process, int]) -> None:
        if sum(memory.values()) > self.peak:
            self.peak, most = sum(memory.values()), max(memory, key=lambda process: memory[process])
            self.largest = f"{memory[most] / 1e9:.2f} GB of it: {described(most)}"

    def _look_at_work(self, process: psutil.Process) -> None:
        times = process.cpu_times()
        if times.user + times.system > self.work:
            self.work, self.busiest = times.user + times.system, described(process)

    def written(self) -> int:
        """Bytes that the session has written up to the last look."""
        return _written(psutil.Process()) + sum(self._alone.values())


@dataclass
class Own:
    """What a session has for itself, and what it finds at its end."""

    root: Path  # the checkout
    folder: Path
    lock: IO[str]
    whole: bool  # all of the suite
    directory_before: str | None  # the variable outside of the session
    writes: bool = False  # it was asked to write files of the checkout
    before: dict[str, str] | None = None
    meter: Meter | None = None
    left: list[Left] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stays: bool = False

    def start(self) -> None:
        """Remember what is there, and begin to look at processes."""
        self.before = changes(self.root)
        if _IO.exists():
            self.meter = Meter(self.folder)
            self.meter.start()

    def judge(self) -> None:
        """Find what is left."""
        if self.meter:
            self.meter.end()
        self._judge_processes()
        self._judge_checkout()
        self._judge_folder()
        if self.meter:
            self.notes += costs(self.meter, self.whole)

    def _judge_processes(self) -> None:
        found = left_running(self.folder)
        said = [described(process) for process in found]
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=GRACE)
        self._add("processes, ended now", said, "end each where it was started: at the end of its fixture or test")

    def _judge_checkout(self) -> None:
        if self.writes:
            return
        after = changes(self.root)
        if self.before is None or after is None:
            self.notes.append(f"{self.root} is no checkout of Git: what changed in it is not judged")
            return
        changed = [name for name, digest in sorted(after.items()) if self.before.get(name) != digest]
        self._add("changed or new in the checkout", changed, "let the test work on a copy in tmp_path")

    def _judge_folder(self) -> None:
        names = [path.name for path in sorted(self.folder.iterdir()) if path.name not in (_LOCK, _TESTS)]
        others = [name for name in names if not name.startswith(_PYTEST)]
        advice = "use tmp_path, or remove it where it was made; TMPDIR is for programs that leave files"
        self._add("in the temporary directory", others, advice)

    def _add(self, where: str, things: list[str], advice: str) -> None:
        if things:
            self.left.append(Left(where, things, advice))

    def close(self) -> None:
        """Give the temporary directory back."""
        if self.directory_before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = self.directory_before
        tempfile.tempdir = None
        if not self.stays:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # after an interrupt, what is left may still write there
                rm_rf(self.folder)
        self.lock.close()


_OWN = pytest.StashKey[Own]()
_NOTHING_TO_SEE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.USAGE_ERROR)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses its own folder
def pytest_configure(config: pytest.Config) -> None:
    """Give the session a temporary directory of its own."""
    if hasattr(config, "workerinput"):  # it has that of the controller
        return
    outside = Path(tempfile.gettempdir())
    forget(outside)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=outside)).resolve()
    lock = (folder / _LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    writes = bool(config.getoption("update_snapshots", default=False))
    config.stash[_OWN] = Own(config.rootpath, folder, lock, is_whole(config), os.environ.get(_VARIABLE), writes)
    os.environ[_VARIABLE] = str(folder)
    tempfile.tempdir = None  # to be read anew
    if not config.option.basetemp:
        config.option.basetemp = str(folder / _TESTS)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember what is there before the first test."""
    if own := session.config.stash.get(_OWN, None):
        own.start()


@pytest.hookimpl(trylast=True)  # when all fixtures and workers have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Judge, and let the session fail if something is left."""
    own = session.config.stash.get(_OWN, None)
    if own is None:
        return
    own.judge()
    if own.left:
        second_try.add_left([thing for left in own.left for thing in left.things])
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if session.exitstatus not in _NOTHING_TO_SEE:
        own.stays = True
        own.notes.insert(0, f"the session failed, so its temporary files stay: {own.folder}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was found."""
    own = config.stash.get(_OWN, None)
    if own is None:
        return
    if own.left:
        terminalreporter.section("left behind", red=True, bold=True)
    for line in (line for left in own.left for line in _told(left)):
        terminalreporter.line(line)
    for note in own.notes:
        terminalreporter.line(note)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the session's temporary directory."""
    if own := config.stash.get(_OWN, None):
        own.close()


def _told(left: Left) -> Iterator[str]:
    yield f"{left.where}:"
    yield from (f"  {thing}" for thing in left.things)
    yield f"  -> {left.advice}"


def is_whole(config: pytest.Config) -> bool:
    """Whether nothing was chosen: no path, no name, no marker, no level."""
    options = (config.getoption(name, default=False) for name in ("keyword", "markexpr", "lf", "changed"))
    chosen = any(options) or config.getoption("level", default=None) in ("fast", "full")
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen


def costs(meter: Meter, whole: bool) -> list[str]:
    """What a session has cost, the last line, after a warning for each limit of the whole suite that it is over."""
    written = meter.written()
    said = f"this session wrote {written / 1e9:.2f} GB and had at most {meter.peak / 1e9:.2f} GB of memory in use"
    over = []
    if written > MOST_WRITTEN:
        over.append(f"wrote {written / 1e9:.2f} GB, more than {MOST_WRITTEN / 1e9:g} GB")
    if meter.peak > MOST_MEMORY:
        over.append(f"had in memory {meter.peak / 1e9:.2f} GB, more than {MOST_MEMORY / 1e9:g} GB; {meter.largest}")
    if meter.work > MOST_WORK:
        over.append(f"kept a processor busy for {meter.work:.0f} s, more than {MOST_WORK:g} s, with {meter.busiest}")
    return [*(f"warning: the suite {each}" for each in over if whole), said]


def changes(root: Path) -> dict[str, str] | None:
    """The changed and the new files of a checkout, with what tells their contents; None where Git knows of none."""
    status = ("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--", ".")
    top, listed = _git(root, "rev-parse", "--show-toplevel"), _git(root, *status)
    if top is None or listed is None:
        return None
    names = [entry[3:] for entry in listed.split("\0") if entry]
    return {name: _digest(Path(top.rstrip("\n"), name)) for name in names}


def _git(root: Path, *arguments: str) -> str | None:
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # somebody may be at work in the checkout
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:  # it was removed, or is no file
        return str(error.errno)


def processes(folder: Path) -> list[psutil.Process]:
    """The processes of the session with this folder, without the one that asks."""
    below = psutil.Process().children(recursive=True)
    marked = (process for process in running() if _is_marked(process, folder))
    return [process for process in dict.fromkeys([*below, *marked]) if process.pid != os.getpid()]


def _is_marked(process: psutil.Process, folder: Path) -> bool:
    found = limits.environment(process) or {}
    return folder in (path := Path(found.get(_VARIABLE, "/")), *path.parents)


def left_running(folder: Path) -> list[psutil.Process]:
    """The processes that have not ended after some time."""
    end = time.monotonic() + GRACE
    while found := [process for process in processes(folder) if _lives(process)]:
        if time.monotonic() > end:
            break
        time.sleep(0.1)
    return found


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def described(process: psutil.Process) -> str:
    """The number of a process, its command line, and the test that started it, as far as it says so."""
    try:
        words = " ".join(" ".join(process.cmdline()).split())[:400] or process.name()
    except psutil.Error:
        words = "has ended meanwhile"
    test = (limits.environment(process) or {}).get(limits.CURRENT)
    return f"{process.pid}: {words}" + (f" (of {test})" if test else "")


def _memory(process: psutil.Process) -> int:
    try:
        found = process.memory_info()
        return int(found.rss - found.shared)
    except (psutil.Error, OSError):  # it has ended, or is somebody else's
        return 0


def _part(process: psutil.Process) -> int:
    """Its proportional set size; of pages that several processes share each has a part. It takes milliseconds."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError):
        return 0


def _written(process: psutil.Process) -> int:
    return int(process.io_counters().write_bytes)


def forget(outside: Path) -> None:
    """Remove the folders of sessions that are over, but for the newest."""
    for folder in sorted(_folders(outside), key=_age)[KEPT:]:
        with contextlib.suppress(OSError), (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails as long as its session lasts
            rm_rf(folder)


def _folders(outside: Path) -> Iterable[Path]:
    for folder in outside.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if not folder.is_symlink() and folder.is_dir() and folder.lstat().st_uid == os.getuid():
                yield folder


def _age(folder: Path) -> float:
    try:
        return -folder.stat().st_mtime
    except OSError:  # removed meanwhile
        return 0.0
