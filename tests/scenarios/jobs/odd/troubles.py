"""Ways in which a training script goes wrong: each function is one, and its docstring says what happens.

What can really happen on a machine without GPUs happens. Errors of libraries that are not here are raised with their
names and words.
"""

# ruff: noqa: ARG001, B018, E501, PTH123, SIM115

import concurrent.futures
import ctypes
import faulthandler
import json
import logging
import mmap
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path

MIB = 1024**2
MORE_THAN_THE_HOST = 1200  # MiB; what holds it is killed on its way
MORE_THAN_THE_DISK = 400


def named(training_job: str) -> Callable[[Path], None]:
    """The trouble of a training job: its number is in the time of its run's name."""
    return TROUBLES[int(training_job.split("-")[2])]


def fill(mib: int = MORE_THAN_THE_HOST) -> None:
    """Takes host memory, and stays."""
    held = []
    for _ in range(mib // 16):
        held.append(bytearray(16 * MIB))
        time.sleep(0.005)
    time.sleep(600)


def error_of(module: str, name: str, base: type[Exception] = RuntimeError) -> type[Exception]:
    """An error class that prints itself as one of a library's."""
    made = type(name, (base,), {"__module__": module})
    sys.modules.setdefault(module, types.ModuleType(module))
    return made


CUDA = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 21.99 GiB of which 1.12 GiB is free."
)


def cuda_error() -> Exception:
    """The error of torch when a GPU is full."""
    return error_of("torch", "OutOfMemoryError")(CUDA)


# Host memory


def grows_until_killed(root: Path) -> None:
    """Host memory is filled."""
    fill()


def forked_child_is_killed_and_reaped(root: Path) -> None:
    """A forked child fills the host; its parent notices that it is gone and raises an error of its own."""
    child = os.fork()
    if child == 0:
        fill()
    _, status = os.waitpid(child, 0)
    raise RuntimeError(f"worker {child} went away with status {status}")


def helper_in_its_own_session(root: Path) -> None:
    """A helper that left the session fills the host, and its parent waits for it."""
    helper = subprocess.Popen([sys.executable, "-c", "import troubles; troubles.fill()"], start_new_session=True)
    raise SystemExit(f"helper ended with {helper.wait()}")


def pool_loses_a_worker(root: Path) -> None:
    """A worker of a process pool fills the host."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(fill).result()


def grandchild_is_killed(root: Path) -> None:
    """A child of a child fills the host; two programs above it each end with an exit code of their own."""
    inner = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', 'import troubles; troubles.fill()']) and 3)"
    subprocess.run([sys.executable, "-c", inner], check=True)


def asks_for_too_much_at_once(root: Path) -> None:
    """One allocation that no machine has room for."""
    bytearray(1 << 60)


def has_a_limit_of_its_own(root: Path) -> None:
    """The script set itself a limit of address space, and meets it."""
    resource.setrlimit(resource.RLIMIT_AS, (256 * MIB, 256 * MIB))
    held = []
    while True:
        held.append(bytearray(16 * MIB))


def no_room_is_what_another_error_came_from(root: Path) -> None:
    """A library wraps the MemoryError in its own."""
    try:
        bytearray(1 << 60)
    except MemoryError as error:
        raise RuntimeError("cannot build the vocabulary") from error


def handler_of_no_room_fails_itself(root: Path) -> None:
    """The handler of a MemoryError has a mistake."""
    state: dict[str, int] = {}
    try:
        bytearray(1 << 60)
    except MemoryError:
        print(state["step"])


def numpy_has_no_room(root: Path) -> None:
    """numpy's words for it."""
    name = "_ArrayMemoryError"
    kind = error_of("numpy.core._exceptions", name, MemoryError)
    raise kind("Unable to allocate 29.8 GiB for an array with shape (4000000000,) and data type float64")


def fork_has_no_room(root: Path) -> None:
    """The kernel refuses a new process for memory."""
    raise OSError(12, "Cannot allocate memory")


def memory_is_refused_and_survived(root: Path) -> None:
    """A large buffer is refused, a small one does; the run goes on, and a column is missing."""
    try:
        bytearray(1 << 60)
    except MemoryError:
        print("no room for the large buffer, using a small one")
    for step in range(20):
        print(f"step {step} loss 0.1")
    raise KeyError("label")


def memory_was_full_and_is_not(root: Path) -> None:
    """Half a host is held and freed; then the code fails."""
    held = [bytearray(16 * MIB) for _ in range(12)]
    time.sleep(0.5)
    del held
    time.sleep(2.5)
    raise ValueError("Expected input batch_size (32) to match target batch_size (16)")


def kills_itself_in_a_roomy_host(root: Path) -> None:
    """A kill -9 that has nothing to do with memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def loses_a_worker_in_a_roomy_host(root: Path) -> None:
    """A worker is killed by somebody, with all memory free."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(kills_itself_in_a_roomy_host, root).result()


def kernel_log_of_another_machine(root: Path) -> None:
    """The script prints a log that it found, and then fails for a reason of its own."""
    print("from the archive: [81.2] Out of memory: Killed process 4711 (python3) total-vm:912kB")
    for step in range(40):
        print(f"step {step} loss 0.1")
    raise TypeError("unsupported operand type(s) for +: 'int' and 'str'")


# GPU memory, and that of other accelerators


def gpu_is_full(root: Path) -> None:
    """torch's error."""
    raise cuda_error()


def gpu_is_full_in_a_handler(root: Path) -> None:
    """The handler of torch's error has a mistake."""
    try:
        raise cuda_error()
    except RuntimeError:
        print(dict[str, int]()["micro_batch"])


def gpu_was_full_and_the_batch_was_halved(root: Path) -> None:
    """torch's error is caught, the batch halved, and the rest of the training is done."""
    try:
        raise cuda_error()
    except RuntimeError as error:
        print(f"caught {error}; halving the batch")


def gpu_was_full_and_then_the_code_fails(root: Path) -> None:
    """torch's error is caught, the batch halved, steps are done, and then a tensor has a wrong shape."""
    gpu_was_full_and_the_batch_was_halved(root)
    for step in range(20):
        print(f"step {step} loss 0.1")
    raise ValueError("not enough values to unpack (expected 3, got 2)")


def tensorflow_is_full(root: Path) -> None:
    """TensorFlow's error."""
    kind = error_of("tensorflow.python.framework.errors_impl", "ResourceExhaustedError", Exception)
    raise kind(
        "OOM when allocating tensor with shape[64,1024,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0"
    )


def jax_is_full(root: Path) -> None:
    """JAX's error."""
    kind = error_of("jaxlib.xla_extension", "XlaRuntimeError")
    raise kind("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.")


def hip_is_full(root: Path) -> None:
    """torch's error on an AMD GPU."""
    raise error_of("torch", "OutOfMemoryError")(
        "HIP out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 63.98 GiB"
    )


def nccl_is_full(root: Path) -> None:
    """NCCL's warning says it, the error does not."""
    print("algo-1:71:71 [0] include/alloc.h:99 NCCL WARN Cuda failure 'out of memory'")
    raise RuntimeError("NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)")


def cublas_cannot_begin(root: Path) -> None:
    """What cuBLAS says on a full GPU, after torch has said why."""
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB")
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def gpu_does_something_illegal(root: Path) -> None:
    """No lack of memory, though the word is in it."""
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def neuron_is_full(root: Path) -> None:
    """Trainium's device."""
    print("2026-Nov-24 10:11:12 ERROR TDRV:dmem_alloc_internal Failed to alloc DEVICE memory: 1073741824")
    sys.exit(1)


# Shared memory and disks


def shared_memory_is_full(root: Path) -> None:
    """A tensor of a loader worker does not fit into /dev/shm."""
    descriptor = os.open("/dev/shm/segment", os.O_CREAT | os.O_RDWR)
    for _ in range(MORE_THAN_THE_DISK):
        os.write(descriptor, bytes(MIB))
    time.sleep(600)


def shared_memory_ends_under_a_map(root: Path) -> None:
    """A mapped file of /dev/shm has no room left: the kernel sends SIGBUS."""
    size = 2048 * MIB
    descriptor = os.open("/dev/shm/mapped", os.O_CREAT | os.O_RDWR)
    os.ftruncate(descriptor, size)
    with mmap.mmap(descriptor, size) as block:
        for at in range(0, size, 4096):
            block[at] = 1


def loader_worker_gets_a_bus_error(root: Path) -> None:
    """What torch says then."""
    print(
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."
    )
    raise RuntimeError(
        "DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
    )


def disk_is_full(root: Path) -> None:
    """Logs fill the volume."""
    with (root / "output" / "data" / "log").open("wb") as file:
        for _ in range(MORE_THAN_THE_DISK):
            file.write(bytes(MIB))
        file.flush()


def disk_is_full_of_checkpoints(root: Path) -> None:
    """A checkpoint of many files fills the volume; the error is raised anew by the one who saves."""
    time.sleep(5)
    try:
        (root / "checkpoints" / "next").mkdir()
        for number in range(MORE_THAN_THE_DISK):
            (root / "checkpoints" / "next" / str(number)).write_bytes(bytes(MIB))
    except OSError as error:
        raise RuntimeError("the checkpoint could not be saved") from error


def disk_is_full_in_a_child(root: Path) -> None:
    """tar fills the volume, and ends with an exit code."""
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={root}/output/data/big", "bs=1M", f"count={MORE_THAN_THE_DISK}"], check=True
    )


# The code


def has_a_wrong_name(root: Path) -> None:
    """A name that is not there."""
    undefined_name  # type: ignore[name-defined]  # noqa: F821


def imports_what_is_not_there(root: Path) -> None:
    """A package that the image does not have."""
    import a_package_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401


def has_a_syntax_error(root: Path) -> None:
    """A module that does not compile."""
    (root / "code" / "wrong.py").write_text("def f(:\n    pass\n")
    import wrong  # type: ignore[import-not-found]  # noqa: F401


def calls_itself_for_ever(root: Path) -> None:
    """An endless recursion."""
    calls_itself_for_ever(root)


def reads_what_is_no_pointer(root: Path) -> None:
    """A segmentation fault."""
    ctypes.string_at(0)


def faults_with_stacks(root: Path) -> None:
    """The same, with faulthandler's stacks."""
    faulthandler.enable()
    ctypes.string_at(0)


def aborts(root: Path) -> None:
    """An assertion of a C library."""
    os.abort()


def divides_by_zero_in_c(root: Path) -> None:
    """A floating point exception."""
    os.kill(os.getpid(), signal.SIGFPE)


def ends_with_a_code_and_no_word(root: Path) -> None:
    """Exit code 3."""
    sys.exit(3)


def leaves_without_cleaning_up(root: Path) -> None:
    """os._exit in the middle."""
    os._exit(7)


def asserts(root: Path) -> None:
    """An assertion that fails."""
    assert root is None, "loss is nan"


def interrupts_itself(root: Path) -> None:
    """Ctrl-C from within."""
    raise KeyboardInterrupt


def opens_too_many_files(root: Path) -> None:
    """No descriptors are left."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    held = []
    while True:
        held.append(open(__file__))


def raises_without_streams(root: Path) -> None:
    """Its output was closed, so its last words are lost."""
    for descriptor in (1, 2):
        os.close(descriptor)
    raise ValueError("nobody hears this")


def says_memory_and_means_another(root: Path) -> None:
    """An error of a replay buffer."""
    raise ValueError("replay memory is full: call memory.pop()")


def warns_of_memory_and_fails(root: Path) -> None:
    """A warning about memory, and then a mistake."""
    warnings.warn("the dataset may not fit in memory; consider streaming", ResourceWarning, stacklevel=1)
    print("UserWarning: This DataLoader will create 16 worker processes in total, which may run out of memory")
    raise IndexError("list index out of range")


def fails_in_a_thread(root: Path) -> None:
    """A thread fails, and the training goes on without it."""
    thread = threading.Thread(target=has_a_wrong_name, args=(root,))
    thread.start()
    thread.join()


def loses_a_child_and_does_not_look(root: Path) -> None:
    """A child fails, and nobody asks for its exit code."""
    subprocess.run([sys.executable, "-c", "raise SystemExit(3)"], check=False)


# Data, rights, services


def channel_is_not_there(root: Path) -> None:
    """An input that the job file does not name."""
    (root / "input" / "data" / "train" / "part-0.csv").read_text()


def object_is_not_there(root: Path) -> None:
    """boto3's error for a missing object."""
    raise error_of("botocore.errorfactory", "NoSuchKey", Exception)(
        "An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist."
    )


def access_is_denied(root: Path) -> None:
    """boto3's error for a missing right."""
    raise error_of("botocore.exceptions", "ClientError", Exception)(
        "An error occurred (AccessDenied) when calling the GetObject operation: Access Denied"
    )


def service_is_throttled(root: Path) -> None:
    """boto3's error after its tries."""
    raise error_of("botocore.exceptions", "ClientError", Exception)(
        "An error occurred (SlowDown) when calling the PutObject operation (reached max retries: 4): Please reduce your request rate."
    )


def data_is_no_json(root: Path) -> None:
    """A file that was cut off."""
    json.loads('{"a": ')


def peer_is_gone(root: Path) -> None:
    """The connection to another rank breaks."""
    raise ConnectionResetError(104, "Connection reset by peer")


# Output


def says_a_lot(root: Path) -> None:
    """Twenty thousand lines before the error."""
    for number in range(20_000):
        print(f"sample {number} of 20000 was read in 0.01 s")
    raise cuda_error()


def says_it_as_json(root: Path) -> None:
    """Structured logging."""
    logging.basicConfig(level=logging.INFO, format='{"level": "%(levelname)s", "message": "%(message)s"}')
    logging.error("torch.OutOfMemoryError: %s", CUDA)
    sys.exit(1)


def says_it_without_an_end(root: Path) -> None:
    """The last line has no line feed."""
    sys.stderr.write("RuntimeError: CUDA error: out of memory")
    sys.stderr.flush()
    os._exit(1)


def writes_the_failure_file(root: Path) -> None:
    """The script writes SageMaker's failure file itself."""
    (root / "output" / "failure").write_text(f"Exception during training: {CUDA}\n")
    sys.exit(255)


def progress_bar_before_the_error(root: Path) -> None:
    """A progress bar without line feeds."""
    for number in range(200):
        sys.stderr.write(f"\r{number / 2:.0f}%|{'#' * (number // 10)}| {number}/200 [00:10<00:10, 9.9it/s]")
    raise cuda_error()


def leaves_a_process_behind(root: Path) -> None:
    """A daemon keeps the output open after the script has failed."""
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    raise ValueError("no such column")


# What is left


def checkpoints_are_removed(root: Path) -> None:
    """The folder of checkpoints is gone when the host is full."""
    shutil.rmtree(root / "checkpoints")
    time.sleep(2.5)
    fill()


def checkpoint_is_being_written(root: Path) -> None:
    """The next checkpoint is half written, under another name, when the host is full."""
    (root / "checkpoints" / "step.new").write_text("")
    time.sleep(1.5)
    fill()


def checkpoint_is_cut_off(root: Path) -> None:
    """The only checkpoint is half written when the host is full: the next attempt begins anew, and does not fail."""
    (root / "checkpoints" / "step.json").write_text('{"step": ')
    time.sleep(1.5)
    fill()


def ends_early_and_well(root: Path) -> None:
    """The script ends in the middle, without a model, and says that it is done."""
    print("done", flush=True)
    os._exit(0)


def keeps_more_at_every_checkpoint(root: Path) -> None:
    """A leak: the same work is done again and again, and each time a little is kept."""
    held = []
    for epoch in range(60):
        held.append(bytearray(40 * MIB))
        time.sleep(1.2)  # the host is full in here, not while it saves
        (root / "checkpoints" / "epoch").write_text(str(epoch))


TROUBLES = [
    found for found in dict(globals()).values()
    if isinstance(found, types.FunctionType) and found.__code__.co_varnames[:1] == ("root",)
]  # fmt: skip
