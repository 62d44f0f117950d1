"""One table tells what ended a job, and everybody reads it the same way."""

from __future__ import annotations

import fnmatch
import io
import json
import os
import re
import threading
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sagefit.cli import app
from sagefit.failures import (
    CLASSES,
    OF_A_STEP,
    REMEDIES,
    TAIL_BYTES,
    Diagnosis,
    around,
    diagnose,
    read_log,
    read_stream,
    table,
)
from sagefit.job.processing_model import Step, StepInput, StepResources
from sagefit.job.values import Code
from sagefit_launcher import patterns, verdict
from sagefit_launcher.last_words import last_words
from sagefit_launcher.patterns import (
    CREATE_ERROR,
    ECHO,
    EXCEPTION,
    FAILURE_REASON,
    LINE,
    LOG,
    SECONDARY_STATUS,
    SUMMARY,
    TRACEBACK,
    WEAK,
    Pattern,
)

EXAMPLES = [(row, example) for row in table() for example in row.examples]
TEXTS = (FAILURE_REASON, CREATE_ERROR, SECONDARY_STATUS, LOG, LINE)  # kinds that diagnose takes one by one
NAMES = {
    FAILURE_REASON: "failure_reason",
    SUMMARY: "failure_reason",
    CREATE_ERROR: "create_error",
    SECONDARY_STATUS: "secondary_status",
}


def of(*kinds: str) -> pytest.MarkDecorator:
    """The examples of some kinds of rows, as parameters."""
    chosen = [(row, example) for row, example in EXAMPLES if row.where in kinds]
    return pytest.mark.parametrize(("row", "example"), chosen, ids=[f"{row.where}:{row.glob}" for row, _ in chosen])


def known(where: str, text: str) -> dict[str, Any]:
    """The argument of ``diagnose`` that a text of this kind is for."""
    return {NAMES[where]: text} if where in NAMES else {"log": text.splitlines()}


@of(*TEXTS, SUMMARY)
def test_every_example_is_told_by_its_own_row(row: Pattern, example: str) -> None:
    diagnosis = diagnose(**known(row.where, example))
    assert (diagnosis.failure_class, diagnosis.pattern) == (row.failure_class, row.glob)
    assert diagnosis.confidence == row.confidence
    assert diagnosis.evidence


@of(EXCEPTION)
def test_an_exception_that_says_it_is_told(row: Pattern, example: str) -> None:
    log = ["Traceback (most recent call last):", '  File "train.py", line 1, in <module>', "    step()", example]
    assert diagnose(log=log).failure_class == row.failure_class
    assert patterns.first(table(), [EXCEPTION], example.lower()) == (row, example.lower())


@of(TRACEBACK)
def test_a_message_with_its_source_line_is_told(row: Pattern, example: str) -> None:
    message, source = example.split(" in ")
    log = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', f"    x = {source}", message]
    diagnosis = diagnose(log=log)
    assert (diagnosis.failure_class, diagnosis.pattern) == (row.failure_class, row.glob)


@of(ECHO)
def test_an_echo_leaves_the_word_to_what_was_before(row: Pattern, example: str) -> None:
    assert row.failure_class == "code"
    assert diagnose(log=["CUDA error: out of memory", example]).failure_class == "gpu_memory"
    a_process_is_gone = "BrokenProcessPool" in example  # which has a witness of its own
    alone = "host_memory" if a_process_is_gone else "code"
    assert diagnose(log=["all is well", example]).failure_class == alone


@of(SUMMARY)
def test_words_of_a_reason_are_not_asked_of_a_line(row: Pattern, example: str) -> None:
    """In a log they may be advice, or survived: there the vocabulary reads the whole sentence."""
    assert row.confidence == WEAK
    match, _ = last_words(table(), ["epoch 1", example])
    assert match is None or match.pattern.where != SUMMARY


@of(LOG, LINE, FAILURE_REASON)
def test_the_launcher_tells_the_same(row: Pattern, example: str) -> None:
    assert verdict.last_words(example.splitlines())[0] == diagnose(log=example.splitlines()).failure_class
    if "\n" not in example:
        assert verdict.last_words([example])[0] == row.failure_class


@of(*TEXTS, SUMMARY, EXCEPTION, TRACEBACK, ECHO)
def test_globs_mean_the_same_to_the_state_machine(row: Pattern, example: str) -> None:
    """The embedded cloud's interpreter matches with fnmatch, to which more than ``*`` is special."""
    assert not set(row.glob) & set("?[]\\")
    example = example.lower() if row.where == EXCEPTION else example
    assert fnmatch.fnmatchcase(example, row.glob)
    same_kind = (other for other in table() if other.where == row.where)
    assert next(other for other in same_kind if fnmatch.fnmatchcase(example, other.glob)) == row
    assert next(other for other in table() if other.where == row.where and other.matches(example)) == row


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("a*", "ab", True),
        ("*a", "ba", True),
        ("*a", "ab", False),
        ("a*a", "a", False),
        ("*ab*bc", "abc", False),
        ("*ab*bc", "abbc", True),
        ("*", "", True),
        ("*a*", "x\na\ny", True),
        ("*exit code: 137", "exit code: 137 exit code: 137", True),
    ],
)
def test_a_glob(glob: str, text: str, matches: bool) -> None:
    assert Pattern("code", LOG, glob, "B", "", ()).matches(text) is matches is fnmatch.fnmatchcase(text, glob)


def test_the_table_is_complete() -> None:
    assert set(REMEDIES) == set(CLASSES)
    assert {row.failure_class for row in table()} == set(CLASSES)
    assert {row.where for row in table()} == {*TEXTS, SUMMARY, EXCEPTION, TRACEBACK, ECHO}
    assert {row.confidence for row in table()} == {"A", "B", WEAK}
    assert all(row.source and row.examples for row in table())
    keys = [(row.where, row.glob) for row in table()]
    assert len(keys) == len(set(keys))
    assert not [row.glob for row in table() if row.where == SECONDARY_STATUS and "*" in row.glob]
    assert not [row.glob for row in table() if row.where == EXCEPTION and row.glob != row.glob.lower()]


@pytest.mark.parametrize("failure_class", CLASSES)
def test_the_launchers_own_text_comes_first(failure_class: str) -> None:
    reasons = [row for row in table() if row.where == FAILURE_REASON]
    first = list(takewhile(lambda row: row.glob.startswith("*sagefit: "), reasons))
    assert f"*sagefit: {failure_class}: *" in [row.glob for row in first]
    reason = f"AlgorithmError: sagefit: {failure_class}: it said CUDA out of memory. Tried to allocate, exit code: 137"
    full = {} if failure_class == "code" else {"host_memory": 99}  # to which a code that nothing shows yields
    diagnosis = diagnose(reason, log=["MemoryError"], exit_code=137, utilisation=full)
    assert diagnosis.failure_class == failure_class
    assert diagnosis.evidence == "it said CUDA out of memory. Tried to allocate"


@pytest.mark.parametrize(
    "reason",
    [
        "AlgorithmError: ValueError: pin_memory needs a GPU, exit code: 1",
        "AlgorithmError: RuntimeError: tensors must be in channels_last memory format, exit code: 1",
        "AlgorithmError: ValueError: cannot reopen a memory-mapped array, exit code: 1",
        "AlgorithmError: Epoch 137 of 200 failed, exit code: 1",
        "AlgorithmError: ValueError: found 137 samples, exit code: 1",
        "AlgorithmError: IndexError: index 137 is out of range, exit code: 1",
        "AlgorithmError: RuntimeError: out of range integral type conversion attempted, exit code: 1",
        "AlgorithmError: RuntimeError: CUDA error: device-side assert triggered, exit code: 1",
        "AlgorithmError: RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
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
    assert diagnose(reason).failure_class == "code"
    assert diagnose(log=reason.splitlines()).failure_class == "code"


def test_order_of_what_is_known() -> None:
    both = "AlgorithmError: sagefit: stopped: after a request to stop, exit code: 143"
    assert diagnose(both, secondary_status="MaxRuntimeExceeded").failure_class == "time"
    assert diagnose(both, secondary_status="Failed").failure_class == "stopped"
    assert diagnose("", secondary_status="MaxWaitTimeExceeded").evidence == "MaxWaitTimeExceeded"
    assert diagnose(create_error="SageMaker.NewError: never seen").failure_class == "code"
    assert diagnose("ResourceLimitExceeded: The account-level service limit").failure_class == "quota"
    assert diagnose(exit_code=139).evidence == "exit code 139"
    assert diagnose().evidence == "no reason"


@pytest.mark.parametrize("exit_code", [137, -9, 247])
def test_a_kill_is_weighed_against_how_full_the_host_was(exit_code: int) -> None:
    def told(**utilisation: float) -> tuple[str, str]:
        diagnosis = diagnose(exit_code=exit_code, utilisation=utilisation)
        return diagnosis.failure_class, diagnosis.confidence

    assert told() == told(host_memory=90) == ("host_memory", "C")
    assert told(host_memory=99) == ("host_memory", "B")
    assert told(host_memory=31, gpu_memory=99) == ("code", "C")
    log = ["MemoryError"]
    assert diagnose(log=log, exit_code=exit_code, utilisation={"host_memory": 31}).failure_class == "host_memory"
    reason = "AlgorithmError: , exit code: 137"
    assert diagnose(reason, utilisation={"host_memory": 31}).failure_class == "code"
    assert "host memory at most 31 % full" in diagnose(reason, utilisation={"host_memory": 31}).evidence


@pytest.mark.parametrize(
    ("exit_code", "failure_class"),
    [(124, "time"), (135, "shared_memory"), (-7, "shared_memory"), (143, "stopped"), (129, "stopped")],
)
def test_an_exit_code_says_what_nothing_else_does(exit_code: int, failure_class: str) -> None:
    found = diagnose(log=["step 1", "step 2"], exit_code=exit_code)
    assert (found.failure_class, found.confidence) == (failure_class, "C")
    assert str(exit_code) in found.evidence
    stronger = ["step 1", "MemoryError: Unable to allocate the index"]
    assert diagnose(log=stronger, exit_code=exit_code).failure_class == "host_memory"


@pytest.mark.parametrize(
    "notice",
    [
        '{"msg": "imds", "path": "/latest/meta-data/spot/instance-action", "body": {"action": "terminate"}}',
        'http://169.254.169.254:80 "GET /latest/meta-data/spot/instance-action HTTP/1.1" 200 None',
        '12:00:01 WARN events: {"Events":[{"EventId":"1","EventType":"Preempt","EventStatus":"Scheduled"}]}',
        "INFO computeMetadata/v1/instance/preempted: TRUE",
    ],
)
def test_a_notice_of_the_cloud_says_why_a_signal_came(notice: str) -> None:
    log = ["step 1", notice, "checkpoint written"]
    found = diagnose(log=log, exit_code=143)
    assert (found.failure_class, found.evidence) == ("spot", notice)
    assert diagnose(log=[*log, "Received SIGTERM"], exit_code=1).failure_class == "spot"
    assert diagnose(log=[*log, "KeyError: 'loss'"], exit_code=1).failure_class == "code"
    assert diagnose(log=log, exit_code=1).failure_class == "code"
    assert diagnose(log=log, exit_code=75).failure_class == "spot"  # the script left, to be tried again
    assert diagnose(log=[*log, "KeyError: 'loss'"], exit_code=75).failure_class == "code"
    assert diagnose(log=["GET /latest/meta-data/spot/instance-action: 404"], exit_code=143).failure_class == "stopped"
    asked = 'http://169.254.169.254:80 "GET /latest/meta-data/spot/instance-action HTTP/1.1" 404 None'
    assert diagnose(log=[asked], exit_code=143).failure_class == "stopped"
    old = [notice, *(f"line {n}" for n in range(300))]
    assert diagnose(log=old, exit_code=143).failure_class == "stopped"


def test_a_pool_that_lost_a_process_was_short_of_memory_as_far_as_is_known() -> None:
    gone = "BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running."
    log = ["Traceback (most recent call last):", f"concurrent.futures.process.{gone}"]
    found = diagnose(log=log)
    assert (found.failure_class, found.confidence) == ("host_memory", "C")
    assert diagnose(log=log, utilisation={"host_memory": 31}).failure_class == "code"
    told = f"AlgorithmError: sagefit: code: train.py ended with exit code 1: {gone}, exit code: 1"
    assert diagnose(told, log=log).failure_class == "code"  # the launcher has looked at the host's memory


def test_what_no_text_explains_is_told_by_what_was_full() -> None:
    plain = "AlgorithmError: , exit code: 1"
    for resource in ("host_memory", "gpu_memory", "disk"):
        diagnosis = diagnose(plain, utilisation={resource: 99.0})
        assert (diagnosis.failure_class, diagnosis.confidence, diagnosis.pattern) == (resource, "C", None)
        assert diagnose(plain, utilisation={resource: 90.0}).failure_class == "code"
    full = {"gpu_memory": 99.0}
    vague = ["RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"]
    assert diagnose(plain, log=vague, utilisation=full).failure_class == "gpu_memory"
    assert diagnose(plain, log=vague).failure_class == "code"
    assert diagnose(plain, log=["KeyError: 'loss'"], utilisation=full).failure_class == "code"


def test_a_reason_that_says_little_leaves_room_for_the_log() -> None:
    log = ["epoch 1", "Traceback (most recent call last):", '  File "train.py", line 1', "MemoryError"]
    little = 'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""'
    assert diagnose(little, log=log).failure_class == "host_memory"
    assert diagnose("AlgorithmError: , exit code: 1", log=log).failure_class == "host_memory"
    assert diagnose("AlgorithmError: sagefit: code: it read the log, exit code: 1", log=log).failure_class == "code"
    assert diagnose(little, log=["all is well"]).failure_class == "code"
    assert diagnose(log=["all is well"]).evidence == "all is well"


def test_a_large_log_is_read_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(100_000_000)  # sparse: 100 MB of NUL
        file.seek(0, 2)
        file.write(b"\n\xff\xfe\x00binary\r\nloss \xe2\x82\xac 0.5\r\n\x1b[31mMemoryError\x1b[0m\r\n")
    lines = read_log(log)
    assert sum(map(len, lines)) <= TAIL_BYTES
    assert diagnose(log=lines).failure_class == "host_memory"
    log.write_bytes(b"MemoryError")
    assert read_log(log) == ["MemoryError"]
    log.write_bytes(b"")
    assert read_log(log) == []


def test_the_object_of_diagnose() -> None:
    diagnosis = diagnose("CapacityError: Unable to provision requested ML compute capacity.")
    assert diagnosis.as_json() == {
        "class": "capacity",
        "confidence": "A",
        "evidence": "CapacityError: Unable to provision requested ML compute capacity.",
        "pattern": "CapacityError: *",
        "remedies": list(REMEDIES["capacity"]),
        "rejected": [],
    }


def launchers(said: str) -> str:
    """The failure reason in which the launcher says that the script failed."""
    return f"AlgorithmError: sagefit: code: train.py ended with exit code 1: {said}, exit code: 1"


@pytest.mark.parametrize("said", ["RuntimeError: worker 1797 went away with status 9", "OSError: [Errno 5]", "bye"])
def test_a_code_that_nothing_shows_yields_to_a_host_that_was_full(said: str) -> None:
    assert diagnose(launchers(said)).confidence == "C"
    assert diagnose(launchers(said), utilisation={"host_memory": 94, "gpu_memory": 99}).failure_class == "code"
    found = diagnose(launchers(said), utilisation={"host_memory": 105})
    assert (found.failure_class, found.confidence) == ("host_memory", "C")
    assert found.evidence.endswith(f"{said}; host memory 105 % full")
    assert [(each.failure_class, each.why) for each in found.rejected] == [
        ("code", "no pattern knows it, and host memory 105 % full")
    ]
    counted = diagnose(launchers(said), kernel_kills=2)
    assert (counted.failure_class, counted.evidence) == ("host_memory", "the kernel killed 2 processes for memory")


@pytest.mark.parametrize("said", ["KeyError: 'loss'", "ValueError: bad shape", "RuntimeError: illegal memory access"])
def test_a_code_that_something_shows_does_not(said: str) -> None:
    found = diagnose(launchers(said), kernel_kills=1, utilisation={"host_memory": 105})
    assert (found.failure_class, found.confidence) == ("code", "A")
    assert [each.why for each in found.rejected] == ["it is only likely, and the launcher is certain"]


def test_what_was_considered_is_kept_with_the_reason_against_it() -> None:
    def rejected(**known: Any) -> list[tuple[str, str]]:
        return [(each.failure_class, each.why) for each in diagnose(**known).rejected]

    kill = rejected(exit_code=137, utilisation={"host_memory": 31})
    assert kill == [("host_memory", "host memory at most 31 % full")]
    full = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"]
    assert rejected(log=full, exit_code=137) == [("host_memory", "it is only likely, and the log is certain")]
    assert rejected(failure_reason="CapacityError: none", log=full) == [
        ("gpu_memory", "the failure reason is believed first")
    ]
    head = ["Traceback (most recent call last):", '  File "a.py", line 1', "    step()"]
    went_on = [*head, *full, *(f"step {n} loss 0.{n}" for n in range(9)), *head, "KeyError: 'x'"]
    assert rejected(log=went_on) == [("gpu_memory", "the script went on after it")]
    skipped = [f"ERROR {full[0]}", "skipping this batch", *head, "KeyError: 'x'"]
    assert rejected(log=skipped) == [("gpu_memory", "the script went on after it")]
    ended = ["It said CUDA out of memory. Tried to allocate 2 GiB. Reducing it", "all failed"]
    assert rejected(log=ended) == [("gpu_memory", "the script says that it goes on")]


HEAD = ["Traceback (most recent call last):", '  File "a.py", line 3, in step', "    step()"]
FULL_GPU = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


def test_the_lines_around_the_cause_have_host_and_rank() -> None:
    lines = [f"step {n}" for n in range(20)]
    cause = [f"[rank3]: \x1b[31m{line}\x1b[0m" for line in (*HEAD, FULL_GPU)]
    logs = {"algo-1": [*lines, "ncclRemoteError"], "algo-2": [*lines, *cause, "bye\x07\r", "bye", "bye"]}
    found = around(logs, diagnose(log=logs))
    assert found
    assert (found.host, found.rank, found.first + found.at, len(found.lines)) == ("algo-2", "rank3", 24, 7)
    assert found.lines[found.at] == f"[rank3]: {FULL_GPU}"
    assert all(line.isprintable() for line in found.lines)
    assert found.as_json()["line"] == 24


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        (None, FULL_GPU),
        (launchers(FULL_GPU).replace("code", "gpu_memory", 1), FULL_GPU),
        (launchers("RuntimeError: a worker went away"), "RuntimeError: a worker went away"),
        ("AlgorithmError: , exit code: 137", None),
    ],
)
def test_the_cause_is_found_in_the_log_whoever_told_it(reason: str | None, line: str | None) -> None:
    log = ["epoch 1", *HEAD, FULL_GPU, "epoch 2", *HEAD, line or "ValueError", "x" * 3000]
    found = around({"log": log}, diagnose(reason, log=log, utilisation={"host_memory": 99}))
    assert (found.lines[found.at] if found else None) == line
    assert found is None or max(map(len, found.lines)) <= 400
    assert around({}, diagnose(reason)) is None


def test_a_step_is_told_to_change_its_own_fields() -> None:
    """Each field that is named exists, and hyperparameters, attempts and spot, which a step has not, are not."""
    for name in CLASSES:
        told = Diagnosis(name, "", None, "C", step="prepare").remedies
        assert told
        for field in re.findall(r"processing\[prepare\]\.([\w.<>]+)", " ".join(told)):
            kind: Any = Step
            for part in field.split("."):
                if part == "<name>":
                    kind = StepInput
                    continue
                assert part in kind.model_fields, field
                kind = {"resources": StepResources, "code": Code}.get(part, kind)
        if name in OF_A_STEP:
            assert not re.search(r"hyperparameters\.|memory\.model|next\.|max_pending", " ".join(told))
    assert Diagnosis("code", "", None, "C", step="prepare").remedies == REMEDIES["code"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "newer GPUs"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "newer GPUs"),
        ("ValueError: Your setup doesn't support bf16/gpu. You need Ampere GPU with cuda>=11.0", "newer GPUs"),
        ("socket.gaierror: [Errno -2] Name or service not known", "resources.network_isolation"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url x.", "licence"),
        ("ValueError: No available memory for the cache blocks. Try increasing it.", "gpu_memory_utilization"),
        ("xgboost.core.XGBoostError: cudaErrorMemoryAllocation: out of memory", "max_bin"),
        ("MemoryError: Unable to allocate 37.3 GiB for an array with shape (100000, 50000)", "numpy.memmap"),
    ],
)
def test_a_cause_of_its_own_has_remedies_of_its_own(line: str, told: str) -> None:
    """Another instance helps where a GPU is too old. A smaller batch is no help for trees, or for one large array."""
    log = f'Traceback (most recent call last):\n  File "/opt/ml/code/train.py", line 3, in <module>\n{line}\n'
    remedies = " ".join(diagnose(log=log.splitlines()).remedies)
    assert told in remedies
    assert "another instance would fail alike" not in remedies
    assert "per_device_train_batch_size" not in remedies


def test_of_lines_that_repeat_one_another_the_first_is_shown() -> None:
    """The watchdog's line has the operation and the rank; torchrun's summary only says that a child failed."""
    said = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4211, OpType=ALLREDUCE)"
    log = [
        "step 100 loss 2.31",
        f"[rank1]:[E1130 10:00:01.123456789 ProcessGroupNCCL.cpp:632] [Rank 1] {said}",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        f"  what():  [PG ID 0 Rank 1] Process group watchdog thread terminated with exception: [Rank 1] {said}",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    ]
    found = diagnose(log=log)
    assert (found.failure_class, found.pattern) == ("code", None)
    assert found.evidence.startswith("Watchdog caught collective operation timeout")
    assert "did not come to the operation" in found.remedies[0]


def test_a_log_through_a_pipe_is_read_from_its_end() -> None:
    many = io.BytesIO(b"step 1\n" * 2_000_000 + b"MemoryError\n")
    lines = read_stream(many)
    assert (lines[0], lines[-1]) == ("step 1", "MemoryError")
    assert sum(map(len, lines)) <= TAIL_BYTES + 1_000_000
    assert read_stream(io.BytesIO("Killed\n".encode("utf-16"))) == ["\ufeffKilled"]
    assert read_stream(io.BytesIO(b"")) == []


def test_a_log_may_be_a_named_pipe(tmp_path: Path) -> None:
    """As ``--log <(aws logs tail ...)`` of a shell is one."""
    os.mkfifo(pipe := tmp_path / "pipe")
    writing = threading.Thread(target=pipe.write_text, args=("step 1\nMemoryError\n",))
    writing.start()
    assert read_log(pipe) == ["step 1", "MemoryError"]
    writing.join()


def test_diagnose_reads_any_log_through_a_pipe() -> None:
    log = "\n".join(["epoch 1", *(f"[rank3]: {line}" for line in (*HEAD, FULL_GPU))])
    said = CliRunner().invoke(app, ["diagnose", "-"], input=log)
    assert said.exit_code == 0, said.output
    assert said.stdout.splitlines()[:4] == [
        "gpu_memory",
        f"evidence: {FULL_GPU}",
        "confidence: B, seen in public reports",
        "standard input, rank3, line 5:",
    ]
    assert f"> 5 | [rank3]: {FULL_GPU}" in said.stdout
    both = CliRunner().invoke(app, ["diagnose", "-", "--json", "--exit-code", "137"], input="step 1\nKilled\n")
    found = json.loads(both.stdout)
    assert (found["class"], found["around"]["lines"]) == ("host_memory", ["step 1", "Killed"])
