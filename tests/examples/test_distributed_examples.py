"""The training code of the examples for several ranks, run with torchrun on two real process groups of this machine."""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sagefit.job import load_job
from sagefit.memory import Vision, vision
from sagefit.memory.read import read
from sagefit.paths import ROOT
from torch_environment import torch_python

EXAMPLES = ROOT / "examples"
DIGITS = EXAMPLES / "quickstart" / "data"
OF_FILES = pytest.mark.of_files(
    *("examples/**/*.py", "examples/quickstart/data"),
    *("python/sagefit/cloud/images", "tests/examples/test_distributed_examples.py"),
)
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
#: Without a buffer, as in SageMaker's images.
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
ENVIRONMENT = os.environ | LOOPBACK | UNBUFFERED | {"OMP_NUM_THREADS": "1", "SM_CHANNEL_TRAIN": str(DIGITS / "train")}


def ranks(count: int, example: str, folder: Path, *words: str) -> str:
    """What ``count`` ranks of an example's script say; its checkpoints and model are in ``folder``."""
    command = [torch_python(), "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"]
    folders = {"SM_CHECKPOINT_DIR": str(folder / "checkpoints"), "SM_MODEL_DIR": str(folder / "model")}
    with tempfile.TemporaryDirectory(prefix="ranks-") as temporary:  # torchrun never removes its own
        done = subprocess.run(
            [*command, str(EXAMPLES / example / "code" / "train.py"), *words],
            env=ENVIRONMENT | folders | {"SM_CHANNEL_TEST": str(DIGITS / "test"), "TMPDIR": temporary},
            capture_output=True,
            text=True,
            timeout=500,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def losses(said: str) -> list[float]:
    return [float(found) for found in re.findall(r"loss=([0-9.]+)", said)]


def test_ranks_write_a_line_in_one_piece() -> None:
    scripts = [path for path in EXAMPLES.glob("*/code/*.py") if "torch.distributed" in path.read_text(encoding="utf-8")]
    assert len(scripts) >= 4
    for path in scripts:
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        assert "say" in names, path
        assert "print" not in names, path


@OF_FILES
def test_two_ranks_learn_as_one_with_the_same_batch(tmp_path: Path) -> None:
    alone = ranks(1, "distributed", tmp_path / "one", "--epochs", "2", "--batch_size", "64")
    together = ranks(2, "distributed", tmp_path / "two", "--epochs", "2", "--batch_size", "32")
    assert losses(together) == pytest.approx(losses(alone), rel=2e-3)
    assert len(losses(alone)) == 2
    assert losses(alone)[1] < 0.3
    # What the ranks share is written by one of them, and what each has of its own under its own name.
    names = {path.name for path in (tmp_path / "two" / "checkpoints").iterdir()}
    assert names == {"model.pt", "rank-0.pt", "rank-1.pt"}
    resumed = ranks(2, "distributed", tmp_path / "two", "--epochs", "3", "--batch_size", "32")
    assert {f"rank {rank} resumed: 2 epochs are done" for rank in (0, 1)} <= set(resumed.splitlines())
    assert len(losses(resumed)) == 1
    assert losses(resumed)[0] < losses(together)[1]


@pytest.mark.full(
    witness="tests/examples/test_distributed_examples.py::test_two_ranks_learn_as_one_with_the_same_batch"
)
def test_fsdp_keeps_a_part_on_each_rank_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    small = ("--width", "64", "--layers", "2")
    said = ranks(2, "fsdp", tmp_path, *small, "--steps", "2", "--save_steps", "1")
    kept = [tuple(map(int, pair)) for pair in re.findall(r"keeps (\d+) of (\d+) parameters", said)]
    assert len(kept) == 2
    assert sum(own for own, _ in kept) == kept[0][1]
    assert all(own < 0.55 * total for own, total in kept)
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"1", "2"}
    names = {path.name for path in (tmp_path / "checkpoints" / "2").iterdir()}
    assert names == {".metadata", "__0_0.distcp", "__1_0.distcp"}
    resumed = ranks(2, "fsdp", tmp_path, *small, "--steps", "3")
    assert {f"rank {rank} resumed after step 2" for rank in (0, 1)} <= set(resumed.splitlines())
    assert len(losses(resumed)) == 1


READ = """
import sys
sys.path[:0] = sys.argv[1:2]
import train
train.PlainReader(sys.argv[2]).read_metadata()
"""


class _Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.folder),)


@OF_FILES
def test_fsdp_refuses_a_checkpoint_that_calls_a_function(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(pickle.dumps(_Trap(tmp_path / "ran")))
    command = [torch_python(), "-c", READ, str(EXAMPLES / "fsdp" / "code"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "a checkpoint must not name posix.mkdir" in done.stderr
    assert not (tmp_path / "ran").exists()
    pickle.loads((tmp_path / ".metadata").read_bytes())
    assert (tmp_path / "ran").exists()  # it was a trap


@pytest.mark.full(
    witness="tests/examples/test_distributed_examples.py::test_two_ranks_learn_as_one_with_the_same_batch"
)
def test_a_layer_split_over_two_ranks_computes_what_a_whole_one_does(tmp_path: Path) -> None:
    small = ("--width", "128", "--layers", "2", "--steps", "3")
    alone = ranks(1, "model-parallel", tmp_path / "one", *small)
    together = ranks(2, "model-parallel", tmp_path / "two", *small)
    assert losses(together) == pytest.approx(losses(alone), rel=1e-3)
    assert len(losses(alone)) == 3
    kept = [tuple(map(int, pair)) for pair in re.findall(r"keeps (\d+) of (\d+) parameters", together)]
    assert all(own < 0.55 * total for own, total in kept)


COUNT = """
import json, sys
sys.path[:0] = sys.argv[1:]
import torch
from train import MODELS
print(json.dumps({name: sum(part.numel() for part in make().parameters()) for name, make in MODELS.items()}))
"""


def test_the_networks_to_choose_from_are_those_that_the_planner_knows() -> None:
    command = [torch_python(), "-c", COUNT, str(EXAMPLES / "model-choice" / "code")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    last = {"resnet18": 512, "resnet50": 2048, "mobilenet_v3_small": 1024}  # inputs of the last layer
    for name, parameters in json.loads(done.stdout).items():
        thousand = vision.resolve(Vision(f"torchvision/{name}", 224)).model.parameters
        assert parameters == thousand - 990 * (last[name] + 1)  # ten classes instead of a thousand


@pytest.mark.parametrize("name", ["224-resnet50", "bert"])
def test_a_smaller_architecture_is_predicted_to_need_less(name: str) -> None:
    other = {"224-resnet50": "224-mobilenet", "bert": "distilbert"}[name]
    parameters = []
    for each in (name, other):
        job = load_job(str(EXAMPLES / "model-choice" / f"model-choice-{each}.yaml"))
        model = read(job).model
        parameters.append(vision.resolve(model).model.parameters if isinstance(model, Vision) else model.params)  # type: ignore[union-attr]
    assert parameters[1] < 0.7 * parameters[0]
