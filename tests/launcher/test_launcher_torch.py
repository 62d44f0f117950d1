"""Torch's own peak of GPU memory: noted in every process that uses CUDA, without changing the script."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import OF_FILES, PYTHON, Container, interpreters

pytestmark = OF_FILES

# The parts of torch.cuda that are used, as torch has them: what is queued runs when CUDA is initialised, and a process
# that was forked from one which had initialised it has not.
CUDA = """
import os
_queued, _pid, _peaks = [], None, {}
def is_initialized(): return _pid == os.getpid()
def _lazy_call(call): _queued.append(call)
def device_count(): return 2
def max_memory_allocated(device): return _peaks.get(device, (0, 0))[0]
def max_memory_reserved(device): return _peaks.get(device, (0, 0))[1]
def use(device, allocated, reserved):
    global _pid
    if not is_initialized():
        for call in _queued: call()
        _pid = os.getpid()
    _peaks[device] = (allocated, reserved)
"""
UNTIL_NOTED = """
import glob, json, os, time
def until_noted(value):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for path in glob.glob(os.environ['SAGEFIT_TORCH_PEAKS'] + '/*.json'):
            if str(value) in open(path).read(): return
        time.sleep(0.05)
"""


@pytest.fixture
def torch(container: Container) -> Container:
    """A container whose image has torch."""
    library = container.root.parent / "library" / "torch"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("from . import cuda\n")
    (library / "cuda.py").write_text(CUDA)
    container.environment["PYTHONPATH"] = str(library.parent)
    return container


def peaks(report: dict[str, Any]) -> list[tuple[int | None, int, int, int]]:
    """Rank, device, allocated, reserved."""
    keys = ("rank", "device", "peak_allocated_bytes", "peak_reserved_bytes")
    assert all(set(peak) == {"pid", *keys} for peak in report["torch"])
    return [tuple(peak[key] for key in keys) for peak in report["torch"]]


@pytest.mark.parametrize("python", interpreters())
def test_the_peak_of_a_script(torch: Container, python: str) -> None:
    outcome = torch.run("import torch.cuda\ntorch.cuda.use(0, 5, 7)\ntorch.cuda.use(1, 2, 3)", python=python)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert peaks(outcome.report) == [(None, 0, 5, 7), (None, 1, 2, 3)]


@pytest.mark.parametrize("python", interpreters())
@pytest.mark.parametrize(
    "end",
    ["raise ValueError('diverged')", "os._exit(3)", "until_noted(5)\nos.kill(os.getpid(), 9)",
     "until_noted(5)\nos.kill(os.getpid(), 15)"],
)  # fmt: skip
def test_it_outlives_every_end(torch: Container, python: str, end: str) -> None:
    outcome = torch.run(UNTIL_NOTED + "import torch\ntorch.cuda.use(0, 5, 7)\n" + end, python=python)
    assert outcome.exit_code in (1, 3, 128 + 9, 128 + 15)
    assert peaks(outcome.report) == [(None, 0, 5, 7)]


def test_a_peak_that_the_script_resets(torch: Container) -> None:
    outcome = torch.run(
        UNTIL_NOTED + "import torch\ntorch.cuda.use(0, 500, 700)\nuntil_noted(500)\ntorch.cuda.use(0, 2, 800)"
    )
    assert peaks(outcome.report) == [(None, 0, 500, 800)]


@pytest.mark.parametrize("python", interpreters())
def test_processes_of_all_kinds(torch: Container, python: str) -> None:
    """Ranks that torchrun or multiprocessing starts have peaks of their own; workers that only load data have none."""
    torch.code("rank.py", "import torch, os\ntorch.cuda.use(0, 10 + int(os.environ['RANK']), 20)")
    outcome = torch.run(
        "import multiprocessing, os, subprocess, sys\n"
        "import torch\n"
        "def load(): pass\n"
        "def train(size): torch.cuda.use(1, size, size)\n"
        "if __name__ == '__main__':\n"
        "    for rank in (0, 1):\n"
        "        variables = {**os.environ, 'RANK': str(rank)}\n"
        "        subprocess.run([sys.executable, 'rank.py'], env=variables, check=True)\n"
        "    for method in ('fork', 'spawn'):\n"
        "        process = multiprocessing.get_context(method).Process(target=train, args=(30,))\n"
        "        process.start(); process.join(); assert process.exitcode == 0\n"
        "    torch.cuda.use(0, 1, 1)\n"
        "    for method in ('fork', 'spawn'):\n"
        "        process = multiprocessing.get_context(method).Process(target=load)\n"
        "        process.start(); process.join(); assert process.exitcode == 0\n",
        python=python,
    )
    assert outcome.exit_code == 0, outcome.stderr
    own = [(None, 0, 1, 1), (None, 1, 30, 30), (None, 1, 30, 30)]
    assert sorted(peaks(outcome.report), key=str) == sorted([*own, (0, 0, 10, 20), (1, 0, 11, 20)], key=str)


@pytest.mark.parametrize("python", interpreters())
def test_without_cuda_there_is_none(torch: Container, python: str) -> None:
    outcome = torch.run(
        "import sys, threading\nassert 'torch' not in sys.modules\nimport torch\n"
        "assert threading.active_count() == 1\nassert type(torch.__loader__).__name__ == 'SourceFileLoader'",
        python=python,
    )
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.report["torch"] == []


@pytest.mark.parametrize("python", interpreters())
def test_torch_that_is_absent_or_broken_fails_as_ever(torch: Container, python: str) -> None:
    torch.code("broken/torch/__init__.py", "raise OSError('libcudart.so: cannot open shared object file')")
    outcome = torch.run(
        "import sys, importlib.util\n"
        "sys.path = [folder for folder in sys.path if 'library' not in folder]\n"
        "assert importlib.util.find_spec('torch') is None\n"
        "try:\n    import torch\nexcept ModuleNotFoundError as error:\n    print(error)\n"
        "sys.path.insert(0, 'broken')\nimport torch",
        python=python,
    )
    assert "No module named 'torch'\n" in outcome.stdout
    assert outcome.failure
    assert outcome.failure.endswith("OSError: libcudart.so: cannot open shared object file")


@pytest.mark.parametrize("python", interpreters())
def test_a_sitecustomize_of_the_user_still_runs(torch: Container, python: str) -> None:
    torch.code("sitecustomize.py", "import builtins\nbuiltins.mine = __file__")
    outcome = torch.run(
        "import sitecustomize, sys, torch\ntorch.cuda.use(0, 5, 7)\n"
        "assert mine == sitecustomize.__file__\nassert not [path for path in sys.path if 'sagefit-torch' in path]\n"
        "print('ran', mine)",
        python=python,
    )
    assert f"ran {torch.root / 'code' / 'sitecustomize.py'}\n" in outcome.stdout, outcome.stderr
    assert peaks(outcome.report) == [(None, 0, 5, 7)]


@pytest.mark.parametrize("python", interpreters())
def test_a_sitecustomize_that_fails_is_reported_as_by_python(torch: Container, python: str) -> None:
    torch.code("sitecustomize.py", "import not_there_at_all")
    outcome = torch.run("print('ran on')", python=python)
    assert "ran on\n" in outcome.stdout
    assert "No module named 'not_there_at_all'" in outcome.stderr or "Error in sitecustomize" in outcome.stderr


def test_nothing_is_left_behind(torch: Container) -> None:
    temporary = torch.root.parent / "temporary"
    temporary.mkdir()
    torch.environment["TMPDIR"] = str(temporary)
    outcome = torch.run("import os, sys, torch\nprint(os.listdir(os.environ['TMPDIR']))\ntorch.cuda.use(0, 1, 1)")
    assert "sagefit-torch-" in outcome.stdout
    assert list(temporary.iterdir()) == []


def test_it_is_no_part_of_the_script_s_own_python(torch: Container) -> None:
    """The interpreter runs as it did: same modules, apart from those that Python itself loads at its start."""
    script = (
        "import sys\nprint(sorted(set(sys.modules) & {'json', 'pathlib', 'threading', 'typing', 'importlib.util'}))"
    )
    assert "[]\n" in torch.run(script, python=PYTHON).stdout
