"""What ended a script: the launcher tells a lack of memory from a kill, a stop and a mistake."""

from __future__ import annotations

import re
import signal

import pytest

from sagefit.failures import diagnose
from sagefit_launcher.report import LONGEST_FAILURE

from .conftest import DECIDES, LAUNCHER, Container, Killer, ship

pytestmark = pytest.mark.of_files(*DECIDES, "python/sagefit/failures", "python/sagefit/job/model.py")

GROW = """
import time
held = []
while True:
    held.append(bytearray(4 * 1024**2))
    print(f"holding {len(held)}")
    time.sleep(0.01)
"""


def test_a_kill_at_the_limit_is_for_host_memory(container: Container) -> None:
    container.limit(160)
    container.code("train.py", GROW)
    process = container.start()
    Killer(process.pid, 160).start()
    outcome = container.end(process)
    assert "holding 10\n" in outcome.stdout
    assert outcome.exit_code == 128 + signal.SIGKILL
    assert outcome.failure
    found = re.fullmatch(
        r"sagefit: host_memory: train\.py was killed \(signal 9\) with the host at (0\.\d\d) of 0\.16 GiB",
        outcome.failure,
    )
    assert found, outcome.failure
    assert 0.13 <= float(found[1]) <= 0.18
    report = outcome.report
    assert (report["exit_code"], report["signal"], report["class"]) == (137, 9, "host_memory")
    assert report["evidence"] in outcome.failure
    assert report["host_memory"]["peak_bytes"] > 0.85 * 160 * 1024**2
    diagnosis = diagnose(f"AlgorithmError: {outcome.failure}, exit code: 137")
    assert (diagnosis.failure_class, diagnosis.confidence) == ("host_memory", "A")
    assert diagnosis.evidence == report["evidence"]


def test_growth_between_two_samples_is_seen_by_the_kernels_own_account(container: Container) -> None:
    container.limit(220)
    outcome = container.run("import os\nheld = b'x' * 200 * 1024**2\nos.kill(os.getpid(), 9)")
    assert outcome.report["class"] == "host_memory"
    assert outcome.report["host_memory"]["peak_bytes"] > 200 * 1024**2


def test_a_kill_far_from_the_limit_is_not_for_memory(container: Container) -> None:
    container.limit(1024)
    outcome = container.run("import os\nprint('MemoryError is what I fear')\nos.kill(os.getpid(), 9)")
    assert outcome.exit_code == 137
    assert outcome.failure
    assert re.fullmatch(
        r"sagefit: code: train\.py was killed \(signal 9\) with the host at 0\.\d\d of 1\.00 GiB", outcome.failure
    )


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ("os._exit(137)", "ended with exit code 137, as after a kill (signal 9), with the host at 0."),
        ("os._exit(139)", "ended with exit code 139, as after signal 11"),
        ("os.kill(os.getpid(), 11)", "was ended by signal 11"),
    ],
)
def test_an_exit_code_that_stands_for_a_signal_is_called_one(container: Container, ends: str, says: str) -> None:
    """A script that starts others may hand on how they ended; it was not killed itself."""
    outcome = container.run(f"import os\n{ends}")
    assert f"train.py {says}" in str(outcome.failure)


def test_a_script_that_is_over_before_it_was_looked_at_has_a_peak(container: Container) -> None:
    """As on a busy host. It needed no more than children before it, of which the kernel keeps one account with it."""
    source = (LAUNCHER / "memory.py").read_text(encoding="utf-8")
    for name in ("tree(top: int, proc: Path = PROC) -> list[int]", "children_peak() -> int"):
        known = "[]" if name.startswith("tree") else "20 * 1024**2"
        assert f"def {name}:" in source
        source = source.replace(f"def {name}:", f"def {name}:\n    return {known}\n\n\ndef _unused_{name}:")
    ship(container.shipped, {"memory.py": source})
    outcome = container.run("print('hello')")
    assert outcome.report["host_memory"]["peak_bytes"] == 20 * 1024**2
    assert "host_memory_peak_gib=0.020" in outcome.stdout


def test_memory_that_was_given_back_long_before_a_kill_is_no_evidence(container: Container) -> None:
    container.limit(220)
    outcome = container.run(
        "import os, time\nheld = bytearray(200 * 1024**2)\ntime.sleep(0.5)\ndel held\n"
        "time.sleep(2.5)\nos.kill(os.getpid(), 9)"
    )
    assert outcome.report["class"] == "code"
    assert outcome.report["host_memory"]["peak_bytes"] > 200 * 1024**2


@pytest.mark.parametrize(
    ("error", "when_full", "otherwise"),
    [
        ("RuntimeError('worker 1797 went away with status 9')", "host_memory", "code"),
        ("OSError(5, 'Input/output error')", "host_memory", "internal"),
        ("KeyError('loss')", "code", "code"),
        ("RuntimeError('CUDA error: an illegal memory access was encountered')", "code", "code"),
        ("RuntimeError('NVLink error')", "internal", "internal"),
    ],
)
def test_a_failure_that_nothing_explains_was_for_memory_at_its_limit(
    container: Container, error: str, when_full: str, otherwise: str
) -> None:
    container.limit(220)
    script = f"import time\nheld = bytearray(215 * 1024**2)\ntime.sleep(1)\nraise {error}"
    outcome = container.run(script)
    assert outcome.report["class"] == when_full
    assert (" with the host at 0.2" in outcome.report["evidence"]) is (when_full == "host_memory")
    container.limit(4096)
    assert container.run(script).report["class"] == otherwise


def test_a_worker_that_was_killed_counts_for_its_parent(container: Container) -> None:
    outcome = container.run(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import os; os.kill(os.getpid(), 9)'], check=True)"
    )
    assert outcome.exit_code == 1
    assert outcome.report["class"] == "host_memory"
    assert "died with <Signals.SIGKILL: 9>" in outcome.report["evidence"]


@pytest.mark.parametrize(
    ("script", "failure_class", "evidence"),
    [
        (
            "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')",
            "gpu_memory",
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        ),
        ("held = bytearray(10**16)", "host_memory", "MemoryError"),
        ("raise OSError(28, 'No space left on device')", "disk", "OSError: [Errno 28] No space left on device"),
        (
            "raise RuntimeError('DataLoader worker (pid 7) is killed by signal: Bus error. It is possible')",
            "shared_memory",
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible",
        ),
        ("raise IndexError('index 4096 is out of range')", "code", "IndexError: index 4096 is out of range"),
        ("raise ValueError('pin_memory needs a GPU')", "code", "ValueError: pin_memory needs a GPU"),
        ("import sys; sys.exit('no data in the channel')", "code", "no data in the channel"),
        # Survived, then something else.
        (
            "print('WARNING: CUDA out of memory. Tried to allocate 9 GiB, trying half of it')\nraise KeyError('loss')",
            "code",
            "KeyError: 'loss'",
        ),
        (
            "import sys, traceback\n"
            "try:\n    raise MemoryError('too big')\n"
            "except MemoryError:\n    traceback.print_exc()\n"
            "import time; time.sleep(0.2)\n"
            "for epoch in range(135, 138):\n    print('Epoch', epoch)\n"
            "print('diverged')\nsys.exit(3)",
            "code",
            "diverged",
        ),
        # A source line of the traceback is no message.
        ("x = 'MemoryError: CUDA error: out of memory'; raise ValueError(len(x))", "code", "ValueError: 38"),
        # What the script wrote into the failure file itself.
        (
            "import os, pathlib, sys\n"
            "path = pathlib.Path(os.environ['SM_OUTPUT_DIR']) / 'failure'\n"
            "path.write_text('RuntimeError: CUDA error: out of memory')\nsys.exit(1)",
            "gpu_memory",
            "RuntimeError: CUDA error: out of memory",
        ),
    ],
)
def test_last_words(container: Container, script: str, failure_class: str, evidence: str) -> None:
    outcome = container.run(script)
    assert outcome.exit_code in (1, 3)
    how = f"train.py ended with exit code {outcome.exit_code}: {evidence}"
    assert outcome.failure == f"sagefit: {failure_class}: {how}"
    assert outcome.report["class"] == failure_class
    diagnosis = diagnose(f"AlgorithmError: {outcome.failure}, exit code: {outcome.exit_code}")
    assert (diagnosis.failure_class, diagnosis.evidence) == (failure_class, how)


def test_a_crash_in_native_code_has_a_signal(container: Container) -> None:
    outcome = container.run("import os, sys\nprint('last word', file=sys.stderr)\nos.abort()")
    assert outcome.exit_code == 128 + signal.SIGABRT
    assert outcome.failure == "sagefit: code: train.py was ended by signal 6: last word"
    assert outcome.report["signal"] == signal.SIGABRT


def test_cpp_code_without_memory(container: Container) -> None:
    text = "terminate called after throwing an instance of 'std::bad_alloc'\\n  what():  std::bad_alloc\\n"
    outcome = container.run(f'import os, sys\nsys.stderr.write("{text}")\nsys.stderr.flush()\nos.abort()')
    assert outcome.report["class"] == "host_memory"


def test_long_and_broken_text_fits_into_a_failure_reason(container: Container) -> None:
    outcome = container.run("raise ValueError('é' * 5000 + '\\n' + 'second line')")
    assert outcome.failure
    assert outcome.failure.endswith("...")
    assert len(outcome.failure) == LONGEST_FAILURE
    assert "\n" not in outcome.failure


def test_output_that_is_no_text_does_no_harm(container: Container) -> None:
    outcome = container.run(r"import os; os.write(2, b'\xff\xfe broken \x00\r' * 1000); os._exit(5)")
    assert outcome.exit_code == 5
    assert outcome.failure == "sagefit: code: train.py ended with exit code 5: \ufffd\ufffd broken"


AUDIT = """
import os, sys
log = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(event, arguments):
    if event in ("open", "os.rename"):
        os.write(log, f"{event} {os.path.basename(str(arguments[0]))}\\n".encode())
sys.addaudithook(note)
"""


def test_the_failure_file_comes_before_the_report(container: Container) -> None:
    """The launcher's own Python says which files it opens and renames, in order."""
    library = container.root.parent / "library"
    library.mkdir()
    (library / "sitecustomize.py").write_text(AUDIT)
    log = container.root.parent / "audit.log"
    container.environment |= {"PYTHONPATH": str(library), "AUDIT_LOG": str(log)}
    outcome = container.run("raise ValueError('diverged')")
    assert outcome.failure == "sagefit: code: train.py ended with exit code 1: ValueError: diverged"
    assert outcome.report["class"] == "code"
    last = {line: number for number, line in enumerate(log.read_text().splitlines())}
    assert last["open failure"] < last["os.rename sagefit.json.part"]


@pytest.mark.parametrize("what", ["a FIFO", "a link to a FIFO", "a link to nothing", "a socket"])
def test_what_stands_in_the_place_of_a_record_makes_room(container: Container, what: str) -> None:
    make = {
        "a FIFO": "os.mkfifo(path)",
        "a link to a FIFO": "path.symlink_to(fifo)",
        "a link to nothing": "path.symlink_to('nothing')",
        "a socket": "socket.socket(socket.AF_UNIX).bind(os.path.relpath(path))",
    }[what]
    outcome = container.run(
        "import os, pathlib, socket\n"
        "fifo = pathlib.Path('fifo').resolve()\nos.mkfifo(fifo)\n"
        "for name in ('failure', 'data/sagefit.json', 'data/sagefit.json.part', '.sagefit-reserve'):\n"
        "    path = pathlib.Path(os.environ['SM_OUTPUT_DIR']) / name\n"
        "    for _ in range(1000):  # the launcher may write its record anew in between\n"
        "        path.unlink() if path.is_file() else None\n"
        f"        try:\n            {make}\n            break\n        except OSError:\n            pass\n"
        "raise ValueError('diverged')"
    )
    assert outcome.exit_code == 1
    assert outcome.failure == "sagefit: code: train.py ended with exit code 1: ValueError: diverged"
    assert outcome.report["class"] == "code"


IN_THE_WAY = """
import os, pathlib, time
data = pathlib.Path(os.environ['SM_OUTPUT_DATA_DIR'])
for number in range(1000):  # the launcher may make the folder anew in between
    try:
        data.rename(data.with_name(f'was-{number}'))
        data.write_text('in the way')
        break
    except OSError:
        time.sleep(0.001)
time.sleep(2.5)
print('finished')
raise SystemExit(4)
"""


def test_a_report_that_cannot_be_written_does_not_end_the_training(container: Container) -> None:
    outcome = container.run(IN_THE_WAY)
    assert (container.root / "output" / "data").read_text() == "in the way"
    assert "finished\n" in outcome.stdout
    assert outcome.exit_code == 4
    assert outcome.failure == "sagefit: code: train.py ended with exit code 4: finished"
