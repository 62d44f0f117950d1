"""One table tells what ended a job, and everybody reads it the same way."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

from sagefit.failures import CLASSES, REMEDIES, classify, table
from sagefit.launcher import patterns, verdict
from sagefit.launcher.patterns import CREATE_ERROR, FAILURE_REASON, LOG, SECONDARY_STATUS, Pattern

EXAMPLES = [(row, example) for row in table() for example in row.examples]


def known(where: str, text: str) -> dict[str, Any]:
    """The argument of ``classify`` that a text of this kind is for."""
    return {where: text.splitlines() if where == LOG else text}


@pytest.mark.parametrize(("row", "example"), EXAMPLES, ids=[f"{row.where}:{row.glob}" for row, _ in EXAMPLES])
def test_every_example_is_told_by_its_own_row(row: Pattern, example: str) -> None:
    diagnosis = classify(**known(row.where, example))
    assert (diagnosis.failure_class, diagnosis.pattern) == (row.failure_class, row.glob)
    assert diagnosis.confidence == row.confidence
    assert diagnosis.evidence


@pytest.mark.parametrize(
    ("row", "example"),
    [(row, example) for row, example in EXAMPLES if row.where in (LOG, FAILURE_REASON) and "\n" not in example],
)
def test_the_launcher_tells_the_same(row: Pattern, example: str) -> None:
    assert verdict.last_words([example])[0] == row.failure_class == classify(log=[example]).failure_class


@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_globs_mean_the_same_to_the_state_machine(row: Pattern, example: str) -> None:
    """The embedded cloud's interpreter matches with fnmatch, to which more than ``*`` is special."""
    assert not set(row.glob) & set("?[]\\")
    assert fnmatch.fnmatchcase(example, row.glob)
    first = next(other for other in table() if other.where == row.where and fnmatch.fnmatchcase(example, other.glob))
    assert first == row


def test_the_table_is_complete_and_moderate() -> None:
    assert set(REMEDIES) == set(CLASSES)
    assert {row.failure_class for row in table()} == set(CLASSES)
    assert {row.where for row in table()} == {FAILURE_REASON, CREATE_ERROR, SECONDARY_STATUS, LOG}
    assert {row.confidence for row in table()} == {"A", "B", "C"}
    assert all(row.source and row.examples for row in table())
    keys = [(row.where, row.glob) for row in table()]
    assert len(keys) == len(set(keys))
    assert sum(row.where == FAILURE_REASON for row in table()) <= 45  # each is a rule in every attempt
    for row in table():
        if row.where == SECONDARY_STATUS:
            assert "*" not in row.glob


@pytest.mark.parametrize("failure_class", CLASSES)
def test_the_launchers_own_text_comes_first(failure_class: str) -> None:
    first = [row for row in table() if row.where == FAILURE_REASON][: len(CLASSES)]
    assert f"*sagefit: {failure_class}: *" in [row.glob for row in first]
    reason = f"AlgorithmError: sagefit: {failure_class}: it said CUDA out of memory. Tried to allocate, exit code: 137"
    diagnosis = classify(reason)
    assert diagnosis.failure_class == failure_class
    assert diagnosis.evidence == "it said CUDA out of memory. Tried to allocate"


@pytest.mark.parametrize(
    "reason",
    [
        "AlgorithmError: ValueError: pin_memory needs a GPU, exit code: 1",
        "AlgorithmError: RuntimeError: tensors must be in channels_last memory format, exit code: 1",
        "AlgorithmError: Epoch 137 of 200 failed, exit code: 1",
        "AlgorithmError: IndexError: index 137 is out of range, exit code: 1",
        "AlgorithmError: RuntimeError: out of range integral type conversion attempted, exit code: 1",
        "AlgorithmError: TypeError: __init__() got an unexpected keyword argument 'memory_limit', exit code: 2",
        "AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"KeyError: 'no_memory'\"\n"
        'Command "/usr/local/bin/python train.py --low_cpu_mem_usage True"',
        "AlgorithmError: , exit code: 139",
        "AlgorithmError: Exit Code: 132",
        "AlgorithmError: , exit code: 134",
        "AlgorithmError: ValueError: could not load CapacityError: unknown name, exit code: 1",
        "",
        "something nobody has seen before",
    ],
)
def test_text_that_only_mentions_memory_is_no_lack_of_it(reason: str) -> None:
    assert classify(reason).failure_class == "code"


def test_order_of_what_is_known() -> None:
    both = "AlgorithmError: sagefit: stopped: after a request to stop, exit code: 143"
    assert classify(both, secondary_status="MaxRuntimeExceeded").failure_class == "time"
    assert classify(both, secondary_status="Failed").failure_class == "stopped"
    assert classify("", secondary_status="MaxWaitTimeExceeded").evidence == "MaxWaitTimeExceeded"
    assert classify(create_error="SageMaker.NewError: never seen").failure_class == "code"
    assert classify(exit_code=137).failure_class == "host_memory"
    assert classify(exit_code=139).evidence == "exit code 139"


def test_a_reason_that_says_little_leaves_room_for_the_log() -> None:
    log = ["epoch 1", "Traceback (most recent call last):", '  File "train.py", line 1', "MemoryError"]
    little = 'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""'
    assert classify(little, log=log).failure_class == "host_memory"
    assert classify("AlgorithmError: , exit code: 1", log=log).failure_class == "host_memory"
    assert classify("AlgorithmError: sagefit: code: it read the log, exit code: 1", log=log).failure_class == "code"
    assert classify(little, log=["all is well"]).pattern == "*ExecuteUserScriptError:*ExitCode 1\n*"
    assert classify(log=["all is well"]).evidence == "all is well"


def traceback(error: str) -> list[str]:
    return ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    step()", error]


CAUSE = ["", "The above exception was the direct cause of the following exception:", ""]
CONTEXT = ["", "During handling of the above exception, another exception occurred:", ""]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
LOADER = "RuntimeError: DataLoader worker (pid(s) 3216) exited unexpectedly"
BUS = "RuntimeError: DataLoader worker (pid 3216) is killed by signal: Bus error. "
TORCHRUN = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "


@pytest.mark.parametrize(
    ("log", "failure_class", "told"),
    [
        (traceback(OOM), "gpu_memory", OOM),
        ([f"[rank1]: {line}" for line in traceback(OOM)], "gpu_memory", OOM),
        # Survived: the last exception counts.
        ([*traceback(OOM), "trying half the batch", *traceback("KeyError: 'loss'")], "code", "KeyError: 'loss'"),
        ([f"WARNING {OOM}", *traceback("KeyError: 'loss'")], "code", "KeyError: 'loss'"),
        ([*traceback(OOM), *(f"step {n}" for n in range(60))], "code", "step 59"),
        # Raised from it: it is the cause.
        ([*traceback(OOM), *CAUSE, *traceback("TrainerError: step failed")], "gpu_memory", OOM),
        # In its handler something else went wrong.
        ([*traceback(OOM), *CONTEXT, *traceback("KeyError: 'loss'")], "code", "KeyError: 'loss'"),
        # A vague text makes room for the precise one before it.
        ([*traceback(BUS), *CONTEXT, *traceback(LOADER)], "shared_memory", BUS.strip()),
        (traceback(LOADER), "host_memory", LOADER),
        # torchrun only repeats that a child failed.
        ([*traceback(OOM), *traceback(TORCHRUN), "train.py FAILED", "  exitcode  : 1 (pid: 12)"], "gpu_memory", OOM),
        (
            [*traceback(TORCHRUN), "train.py FAILED", "  traceback : Signal 9 (SIGKILL) received by PID 412"],
            "host_memory",
            "traceback : Signal 9 (SIGKILL) received by PID 412",
        ),
        # Source lines of a traceback are no message.
        ([*traceback("")[:2], f"    raise MemoryError('{OOM}')", "KeyError: 1"], "code", "KeyError: 1"),
        # The message may have several lines.
        ([*traceback("ResourceExhaustedError: Graph execution error:"), "", "OOM when allocating tensor with shape[9]"],
         "gpu_memory", "OOM when allocating tensor with shape[9]"),
        (["train.sh: line 2", "Killed"], "host_memory", "Killed"),
        ([], "code", ""),
    ],
)  # fmt: skip
def test_last_words(log: list[str], failure_class: str, told: str) -> None:
    match, said = patterns.last_words(table(), log)
    assert (match.pattern.failure_class if match else "code", said) == (failure_class, told)


def test_the_object_of_diagnose() -> None:
    diagnosis = classify("CapacityError: Unable to provision requested ML compute capacity.")
    assert diagnosis.as_json() == {
        "class": "capacity",
        "confidence": "A",
        "evidence": "CapacityError: Unable to provision requested ML compute capacity.",
        "pattern": "CapacityError: *",
        "remedies": list(REMEDIES["capacity"]),
    }
