"""The end of a log names what ended the script, not what it survived, nor what others died of."""

from __future__ import annotations

import json
import random

import pytest

from sagefit.failures import diagnose, table
from sagefit_launcher import log_lines
from sagefit_launcher.last_words import last_words, last_words_of_all


def traceback(error: str) -> list[str]:
    return ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    step()", error]


CAUSE = ["", "The above exception was the direct cause of the following exception:", ""]
CONTEXT = ["", "During handling of the above exception, another exception occurred:", ""]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
LOADER = "RuntimeError: DataLoader worker (pid(s) 3216) exited unexpectedly"
BUS = "RuntimeError: DataLoader worker (pid 3216) is killed by signal: Bus error. "
TORCHRUN = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited"
FATAL = "Fatal Python error: Bus error"
WHERE = ['  File "train.py", line 9 in <module>', "", "Extension modules: numpy._core._multiarray_umath (total: 1)"]
STEPS = [f"step {n} loss 0.{n}" for n in range(5)]
NO_SPACE = "OSError: [Errno 28] No space left on device"
PICKLING = "_pickle.PicklingError: Could not pickle the task to send it to the workers."
STAMP = "2024-05-01T12:00:00.0+00:00 my-job/algo-1-1714564800"
ADVICE = "NOTE: use a smaller batch if CUDA runs out of memory"


@pytest.mark.parametrize(
    ("log", "failure_class", "told"),
    [
        (traceback(OOM), "gpu_memory", OOM),
        ([f"[rank1]: {line}" for line in traceback(OOM)], "gpu_memory", OOM),
        ([f"{line}\r" for line in traceback(OOM)], "gpu_memory", OOM),
        ([f"\x1b[31m{line}\x1b[0m" for line in traceback(OOM)], "gpu_memory", OOM),
        ([f"[1,0]<stderr>:{line}" for line in traceback(OOM)], "gpu_memory", OOM),
        # Survived: the last exception counts, or the progress after it.
        ([*traceback(OOM), "trying half the batch", *traceback("KeyError: 'loss'")], "code", "KeyError: 'loss'"),
        ([f"WARNING {OOM}", *traceback("KeyError: 'loss'")], "code", "KeyError: 'loss'"),
        ([*traceback(OOM), *STEPS], "code", STEPS[-1]),
        ([*traceback(OOM), "batch size 8 -> 4", *STEPS, *traceback("KeyError: 1")], "code", "KeyError: 1"),
        ([f"| WARNING: ran out of memory: {OOM}, retrying batch", *STEPS, "Killed"], "host_memory", "Killed"),
        ([*traceback(OOM), "Training finished"], "code", "Training finished"),
        # Objects: what they say beside their message counts.
        ([json.dumps({"level": "error", "msg": "ended", "stack": "\n".join(traceback(OOM))})], "gpu_memory", OOM),
        ([json.dumps({"message": "ended", "error": OOM, "exception": None})], "gpu_memory", OOM),
        ([json.dumps({"msg": "stage failed", "exc": "MemoryError", "detail": ""})], "host_memory", "MemoryError"),
        ([json.dumps({"message": "ended", "error": OOM})[:-1]], "code", "ended"),
        # Where each thread was when the interpreter crashed is no traceback of an exception.
        ([FATAL, "", "Current thread 0x7f01 (most recent call first):", *WHERE], "shared_memory", FATAL),
        # A warning counts where nothing else is said.
        (["WARNING Worker exceeded 95% memory budget", "WARNING restarting worker"], "host_memory", ""),
        (["WARNING Worker exceeded 95% memory budget", *traceback("KeyError: 1")], "code", "KeyError: 1"),
        (["WARNING Worker exceeded 95% memory budget", *STEPS], "code", STEPS[-1]),
        (
            ["could not reserve the table", f"{OOM}, going on in chunks", "chunk 1", *traceback("KeyError: 1")],
            "code",
            "KeyError: 1",
        ),
        # Giving up within an epoch is no sign of life.
        (["ERROR the time limit of 4 s is used up in epoch 6; giving up"], "time", ""),
        (["epoch 5", "ERROR the time limit of 4 s is used up in epoch 6"], "time", ""),
        # Who lost a peer, or points to what stands above, says nothing of the cause. A guess is no fact.
        (
            [*traceback(OOM), *traceback("ConnectionError: at step 7: peer rank 1 closed the connection")],
            "gpu_memory",
            OOM,
        ),
        (traceback("ConnectionError: at step 7: rank 1 has died"), "code", ""),
        (
            [*traceback(OOM), *traceback("RuntimeError: Engine failed to start. See the cause above.")],
            "gpu_memory",
            OOM,
        ),
        (
            [
                *traceback("IndexError: 3"),
                *traceback("RuntimeError: Connection closed by peer. Maybe it ran out of memory"),
            ],
            "code",
            "IndexError: 3",
        ),
        # Advice is no step that was taken.
        (["It said CUDA out of memory. Tried to allocate 2 GiB. Try reducing it", "all failed"], "gpu_memory", ""),
        (["It said CUDA out of memory. Tried to allocate 2 GiB. Reducing it", "all failed"], "code", ""),
        # Somebody ended what hung after it.
        ([*traceback(OOM), *traceback("KeyboardInterrupt")], "gpu_memory", OOM),
        ([*STEPS, *traceback("KeyboardInterrupt")], "stopped", "KeyboardInterrupt"),
        # A stop that comes while an exception is handled is no failure of what handles it.
        ([*traceback("IndexError: pop"), *CONTEXT, *traceback("KeyboardInterrupt")], "stopped", "KeyboardInterrupt"),
        ([*traceback(OOM), *CONTEXT, *traceback("KeyboardInterrupt")], "gpu_memory", OOM),
        ([*traceback("KeyError: 1"), *traceback("KeyboardInterrupt")], "code", "KeyError: 1"),
        # Who does not end when asked to is killed.
        (["Received SIGTERM", "step 9", "run.sh: line 8: 4242 Killed python train.py"], "stopped", "Received SIGTERM"),
        (["step 9", "run.sh: line 8: 4242 Killed python train.py"], "host_memory", ""),
        # joblib hands batches to its workers through /dev/shm.
        ([*traceback(NO_SPACE), *CAUSE, *traceback(PICKLING)], "shared_memory", NO_SPACE),
        ([*traceback(NO_SPACE), *CAUSE, *traceback("SaveError: could not save")], "disk", NO_SPACE),
        # A line that is only a time is an empty one.
        ([f"{STAMP} {line}" for line in [*traceback(OOM), *CAUSE, *traceback("E: 1")]], "gpu_memory", OOM),
        # Raised from it: it is the cause.
        ([*traceback(OOM), *CAUSE, *traceback("TrainerError: step failed")], "gpu_memory", OOM),
        # That its handler failed, too, is no sign that it was survived.
        ([*traceback(OOM), *CONTEXT, *traceback("KeyError: 'loss'")], "gpu_memory", OOM),
        ([*traceback("KeyError: 1"), *CONTEXT, *traceback("ValueError: 2")], "code", "ValueError: 2"),
        # What led to it says the same in other words.
        (
            [
                *traceback("TypeError: Cannot convert 'two weeks' to float"),
                *CONTEXT,
                *traceback("CatBoostError: Bad value for num_feature[3]: Cannot convert 'two weeks' to float"),
            ],
            "data",
            "TypeError: Cannot convert 'two weeks' to float",
        ),
        # A remark makes no remark of the error before it.
        (
            [
                "ERROR epoch aborted: [Errno 2] No such file or directory: 'masks/04393.npy'",
                "INFO stopping prefetcher",
                "INFO closing writer",
            ],
            "data",
            "",
        ),
        # Who spoke with a process that is gone only knows that it is gone.
        (
            [
                "Terminating due to java.lang.OutOfMemoryError: Java heap space",
                *traceback("py4j.protocol.Py4JNetworkError: Answer from Java side is empty"),
                *CONTEXT,
                *traceback("ConnectionRefusedError: [Errno 111] Connection refused"),
            ],
            "host_memory",
            "",
        ),
        # The text ends within a traceback, whose last frame says what is raised.
        ([*traceback("")[:2], '    raise ReadError("unexpected end of data")'], "data", ""),
        ([*traceback("")[:2], "    raise MemoryError('no memory left') from error"], "host_memory", ""),
        ([*traceback("")[:2], "    raise error"], "code", ""),
        # An exception in a thread ends no script: what ended it may stand before it. Steps after it are a sign of life.
        ([*traceback(OOM), "Exception in thread Thread-8:", *traceback("ValueError: closed file")], "gpu_memory", OOM),
        (["Exception in thread Thread-8:", *traceback("ValueError: closed file")], "code", "ValueError: closed file"),
        (
            [
                'Exception in thread "main" org.acme.JobException: stage 0 failed',
                "    at org.acme.Job.run(Job.java:12)",
                "Caused by: java.lang.RuntimeException: file:/a/b.parquet is not a Parquet file. Expected magic number",
                "    at org.acme.Reader.open(Reader.java:7)",
                "    ... 3 more",
                *(f"12:00:0{n} INFO Context: part {n} is stopped" for n in range(5)),
            ],
            "data",
            "java.lang.RuntimeException: file:/a/b.parquet is not a Parquet file. Expected magic number",
        ),
        (
            [*traceback(OOM), *STEPS, "Exception in thread Thread-8:", *traceback("ValueError: 1")],
            "code",
            "ValueError: 1",
        ),
        # A GPU that is broken, whatever errno was left by another call.
        (["CUDA Error: uncorrectable ECC error encountered: Cannot allocate memory"], "internal", ""),
        # "Not retrying" is no sign of life.
        (["ERROR Not retrying, killed due to the wall clock limit", "finished"], "time", ""),
        # A message that a terminal has broken; a name that was cut off.
        (
            [*traceback(BUS.partition(" error")[0]), "error. It is possible that", "memory is short"],
            "shared_memory",
            "",
        ),
        (["x failed (exitcode: -9) local_rank: 2", *traceback("torch.distributed.elastic.Child")], "host_memory", ""),
        (["x failed (exitcode: -9) local_rank: 2", *traceback("torch.distributed.elastic.")], "host_memory", ""),
        (["x failed (exitcode: -9) local_rank: 2", *traceback("my.own.Error")], "code", "my.own.Error"),
        # What is called a memory, or to be switched, is none that was short.
        (traceback("ValueError: replay memory is full: call memory.pop()"), "code", ""),
        (traceback("ValueError: it is read-only; out-of-memory mode disabled"), "code", ""),
        # A vague text makes room for the precise one before it.
        ([*traceback(BUS), *CONTEXT, *traceback(LOADER)], "shared_memory", BUS.strip()),
        (traceback(LOADER), "host_memory", LOADER),
        # What only repeats that something failed.
        ([*traceback(OOM), *traceback(TORCHRUN), "train.py FAILED", "  exitcode  : 1 (pid: 12)"], "gpu_memory", OOM),
        ([*traceback(OOM), *traceback(NCCL)], "gpu_memory", OOM),
        (traceback(NCCL), "code", NCCL),
        (
            [*traceback(TORCHRUN), "train.py FAILED", "  traceback : Signal 9 (SIGKILL) received by PID 412"],
            "host_memory",
            "traceback : Signal 9 (SIGKILL) received by PID 412",
        ),
        # Source lines of a traceback, help texts and advice are no message.
        ([*traceback("")[:2], f"    raise MemoryError('{OOM}')", "KeyError: 1"], "code", "KeyError: 1"),
        (["usage: train.py", "  --low_mem  use it if CUDA runs out of memory"], "code", ""),
        (traceback("AttributeError: module 'torch' has no attribute 'OutOfMemoryError'"), "code", ""),
        (["AssertionError: expected 'CUDA out of memory'"], "code", ""),
        ([ADVICE, *traceback("ValueError: no data")], "code", "ValueError: no data"),
        (["loading with mmap: memory-mapped file", *traceback("OSError: corrupt")], "code", "OSError: corrupt"),
        # The message may have several lines.
        (
            [
                *traceback("ResourceExhaustedError: Graph execution error:"),
                "",
                "OOM when allocating tensor with shape[9]",
            ],
            "gpu_memory",
            "OOM when allocating tensor with shape[9]",
        ),
        (["train.sh: line 2", "Killed"], "host_memory", "Killed"),
        ([], "code", ""),
    ],
)
def test_last_words(log: list[str], failure_class: str, told: str) -> None:
    match, said = last_words(table(), log)
    assert (match.pattern.failure_class if match else "code") == failure_class
    assert said == told or not told


@pytest.mark.parametrize("folder", ["/opt/ml/code", "/data/algo-1/ml/code", "/data/pid=12/code", "/[rank1]/code"])
@pytest.mark.parametrize("prefix", ["", "[rank1]: ", "[1,mpirank:0,algo-1]<stderr>:", "[default0]:", "algo-1-x1y2z | "])
def test_who_speaks_is_read_from_a_prefix_alone(folder: str, prefix: str) -> None:
    """Also where the script lies in a folder whose name is like that of a host or a process."""
    outer = ["Traceback (most recent call last):", f'  File "{folder}/train.py", line 9, in <module>', "    main()"]
    inner = ["Traceback (most recent call last):", f'  File "{folder}/train.py", line 3, in step', "    step()", OOM]
    log = [f"{prefix}{line}" for line in [*inner, *CAUSE, *outer, "TrainerError: step failed"]]
    match, said = last_words(table(), log)
    assert match
    assert (match.pattern.failure_class, said) == ("gpu_memory", OOM)


@pytest.mark.parametrize(
    ("logs", "failure_class"),
    [
        ({"algo-1": traceback(NCCL), "algo-2": traceback(OOM)}, "gpu_memory"),
        ({"algo-1": traceback(OOM), "algo-2": traceback(NCCL), "algo-3": traceback(NCCL)}, "gpu_memory"),
        ({"algo-1": traceback(NCCL), "algo-2": ["step 3", "Killed"]}, "host_memory"),
        ({"algo-1": traceback("ConnectionResetError: [Errno 104]"), "algo-2": traceback("KeyError: 'x'")}, "code"),
        ({"algo-1": traceback(NCCL), "algo-2": traceback(NCCL)}, "code"),
        ({"algo-1": STEPS, "algo-2": traceback("MemoryError")}, "host_memory"),
        ({"algo-1": [], "algo-2": []}, "code"),
        ({}, "code"),
    ],
)
def test_the_host_that_failed_first_decides(logs: dict[str, list[str]], failure_class: str) -> None:
    diagnosis = diagnose("AlgorithmError: , exit code: 1", log=logs)
    assert diagnosis.failure_class == failure_class
    match, _ = last_words_of_all(table(), reversed(list(logs.values())))
    assert (match.pattern.failure_class if match else "code") == failure_class


def test_an_exception_of_one_host_stands_above_the_echo_of_another() -> None:
    logs = {"algo-1": traceback(NCCL), "algo-2": traceback("KeyError: 'x'")}
    assert diagnose(log=logs).evidence == "KeyError: 'x'"


@pytest.mark.parametrize(
    "filler", ["a", "a\u0301\U0001f980", "\0", " ", "*", "(", "[1,0]<stderr>:", "a.", "\x1b[", "ERROR "]
)
def test_long_lines_are_cut_before_they_are_read(filler: str) -> None:
    log = [filler * 500_000, *traceback(OOM)]
    assert diagnose(log=log).failure_class == "gpu_memory"
    assert max(len(line.raw) for line in log_lines.read(log)) <= log_lines.LONGEST + 10
    assert diagnose(log=[filler * 500_000]).failure_class == "code"
    assert (
        diagnose(log=[f"RuntimeError: CUDA out of memory. Tried to allocate {filler * 3000}"]).failure_class
        == "gpu_memory"
    )


def test_only_the_end_of_many_lines_is_read() -> None:
    lines = [*traceback(OOM), *(f"line {n}" for n in range(log_lines.TAIL))]
    assert OOM not in [line.text for line in log_lines.read(lines)]
    assert diagnose(log=lines).failure_class == "code"


def test_any_bytes_are_read() -> None:
    noise = random.Random(7)
    for _ in range(50):
        garbage = bytes(noise.randrange(256) for _ in range(2000)).decode("utf-8", "replace")
        assert diagnose(log=[*garbage.splitlines(), *traceback(OOM)]).failure_class == "gpu_memory"
        assert diagnose(garbage, log=garbage.splitlines()).evidence
