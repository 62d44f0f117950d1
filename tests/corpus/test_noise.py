"""What is around the telling lines of a log changes nothing: prefixes, exports, progress bars, and the teardown."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus import OF_FILES
from corpus.scoring import SPLITS, Text, load
from sagefit.failures import diagnose, read_log
from sagefit_launcher import patterns, report

pytestmark = OF_FILES

Lines = list[str]
TEXTS = [text for split in SPLITS for text in load(split) if text.log and "Killed" not in text.log][::7]
TEARDOWN = (
    "[rank3]:[E1121 10:00:00.0 ProcessGroupNCCL.cpp:1414] [PG 0 Rank 3] Process group watchdog thread terminated with "
    "exception: NCCL error: remote process exited",
    "Exception raised from checkForNCCLErrorsInternal at ProcessGroupNCCL.cpp:1723 (most recent call first):",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f1 in libc10.so)",
    "[W socket.cpp:464] [c10d] The server socket has failed to listen on port 29500.",
    "algo-2:98:412 [1] NCCL INFO [Service thread] Connection closed by localRank 1",
    "W0501 12:00:00.0 139 torch/distributed/elastic/api.py:851] Sending process 98 closing signal SIGTERM",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>",
)
SUMMARY = """Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Failures:
  <NO_OTHER_FAILURES>
Root Cause (first observed failure):
[0]:
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 412)
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html""".splitlines()
METRIC_LINE = report.metric_line(2**29, 2**30, 2**31, 12.5, 12.5)
BAR = [f"{n:3}%|{'#' * (n // 10):10}| {n}/100 [00:01<00:10, 9.1it/s]" for n in range(40)]


def _events(lines: Lines) -> dict[str, object]:
    return {
        "events": [{"timestamp": 1, "message": line, "ingestionTime": 2} for line in lines],
        "nextForwardToken": "f",
    }


def _teardown(lines: Lines) -> Lines:
    noise = random.Random(3)
    return [*lines, *(noise.choice(TEARDOWN) for _ in range(100)), *SUMMARY]


AROUND: dict[str, Callable[[Lines], Lines]] = {
    "line ends of Windows": lambda lines: [f"{line}\r" for line in lines],
    "colours": lambda lines: [f"\x1b[31m{line}\x1b[0m" for line in lines],
    "ranks of torchrun": lambda lines: [f"[rank1]: {line}" for line in lines],
    "hosts of Docker Compose": lambda lines: [f"algo-1-abc_1  | {line}" for line in lines],
    "times": lambda lines: [f"2024-05-01T12:00:00.000000Z {line}" for line in lines],
    "aws logs tail": lambda lines: [f"2024-05-01T12:00:00.0+00:00 my-job/algo-1-1714564800 {line}" for line in lines],
    "Docker's JSON": lambda lines: [json.dumps({"log": f"{line}\n", "stream": "stderr"}) for line in lines],
    "CloudWatch's JSON": lambda lines: json.dumps(_events(lines), indent=4).splitlines(),
    "CloudWatch's JSON in one line": lambda lines: [json.dumps(_events(lines))],
    "CloudWatch's CSV": lambda lines: [f'1714564800000,"{line}"' for line in lines],
    "a progress bar": lambda lines: [*(f"{step}\r" for step in BAR), *lines],
    "a progress bar in one line": lambda lines: ["\r".join(BAR), *lines],
    "the launcher's line before each": lambda lines: [METRIC_LINE + line for line in lines],
    "the launcher's line behind each": lambda lines: [line + METRIC_LINE for line in lines],
    "thousands of lines before": lambda lines: [*(f"loading part {n}" for n in range(2500)), *lines],
}


def _told(text: Text, lines: Lines) -> str:
    return diagnose(text.reason, log=lines, exit_code=text.exit_code).failure_class


@pytest.mark.parametrize("name", AROUND)
def test_what_is_around_changes_nothing(name: str) -> None:
    for text in TEXTS:
        assert _told(text, AROUND[name](text.log.splitlines())) == text.diagnosis().failure_class, text.source


def test_the_teardown_of_a_job_is_no_sign_of_life() -> None:
    # A text that is cut off within a traceback would take what follows for its exception.
    whole = [text for text in TEXTS if not text.log.splitlines()[-1].startswith(" ")]
    memory = [text for text in whole if text.label.endswith("_memory")]
    assert len(memory) > 20
    for text in memory:
        assert _told(text, _teardown(text.log.splitlines())) == text.diagnosis().failure_class, text.source


def test_a_long_teardown_hides_nothing() -> None:
    noise = random.Random(5)
    log = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    step()", "MemoryError"]
    log += [f"{noise.choice(TEARDOWN)} {number}" for number in range(5000)]
    assert diagnose("AlgorithmError: , exit code: 1", log=log).failure_class == "host_memory"


def test_what_the_launcher_says_within_a_line_hides_no_pattern() -> None:
    for row in patterns.load():
        for example in row.examples if row.where in (patterns.LOG, patterns.LINE, patterns.EXCEPTION) else ():
            whole = diagnose(log=[example]).failure_class
            for joined in (METRIC_LINE + example, example + METRIC_LINE):
                assert diagnose(log=[joined]).failure_class == whole, joined


@pytest.mark.parametrize("between", range(1, 4))
def test_ranks_that_break_each_others_lines_are_read(between: int) -> None:
    """Without a buffer Python writes an exception's name, its message and its line feed apart."""
    rank = ["RuntimeError", ": ", "CUDA out of memory. Tried to allocate 2.00 GiB", "\n"]
    head = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    step()\n'
    log = head + "".join([*rank[:between], *rank, *rank[between:]])
    diagnosis = diagnose(log=log.splitlines())
    assert diagnosis.failure_class == "gpu_memory"
    assert "CUDA out of memory" in diagnosis.evidence


def test_a_message_that_comes_after_its_exception_s_name_belongs_to_it() -> None:
    head = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    step()\n'
    log = f"{head}OSError\n: [Errno 28] No space left on device\n"
    assert diagnose(log=log.splitlines()).failure_class == "disk"


def test_interleaved_ranks_are_told_apart() -> None:
    log = [
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "a.py", line 1, in f',
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "a.py", line 1, in f',
        "[rank0]:     self._semlock = SemLock(kind)",
        "[rank1]:     step()",
        "[rank0]: OSError: [Errno 28] No space left on device",
        "[rank1]: ncclRemoteError: A call failed possibly due to a network error",
    ]
    assert diagnose(log="\n".join(log).splitlines()).failure_class == "shared_memory"


def test_json_within_a_log_is_no_export() -> None:
    answer = ["HTTP 500", "{", '  "code": 500,', '  "message": "try again"', "}"]
    error = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    step()", "MemoryError"]
    assert diagnose(log=[*error, *answer]).failure_class == "host_memory"
    assert diagnose(log=[*answer, *error]).failure_class == "host_memory"


def test_the_end_of_a_very_long_line_counts() -> None:
    assert diagnose(
        log=["x" * 10_000_000 + " RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"]
    ).failure_class == ("gpu_memory")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8-sig"])
def test_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for text in TEXTS:
        if text.log.isascii():
            log.write_bytes(text.log.encode(encoding))
            assert _told(text, read_log(log)) == text.diagnosis().failure_class, text.source
