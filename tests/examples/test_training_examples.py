"""What the pages of the PyTorch examples promise of their training code, run by the Python of the image.

And what holds for the code of all examples and jobs: loading a checkpoint runs none.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sagefit.paths import ROOT
from torch_environment import torch_python

EXAMPLES = ROOT / "examples"
OF_FILES = pytest.mark.of_files(
    *("examples/**/*.py", "examples/data/handbook"),
    *("python/sagefit/cloud/images", "tests/examples/test_training_examples.py"),
)
SMALL = ["--layers", "1", "--hidden_size", "32", "--max_seq_length", "128"]


def trained(folder: Path, example: str, *runs: list[str]) -> list[tuple[dict[str, Any], str]]:
    """``results.json`` and the output of the example's script with each list of arguments, in one process."""
    code = EXAMPLES / example / "code"
    script = folder / "several.py"
    script.write_text(
        "import json, runpy, sys\n"
        f"for number, words in enumerate(json.loads({json.dumps(json.dumps(runs))})):\n"
        "    folders = ['--model-dir', f'model-{number}']\n"
        "    print('run', number, flush=True)\n"
        f"    sys.argv = ['train.py', '--train', {str(EXAMPLES / 'data' / 'handbook')!r}, *folders, *words]\n"
        f"    runpy.run_path({str(code / 'train.py')!r}, run_name='__main__')\n",
        encoding="utf-8",
    )
    with tempfile.TemporaryDirectory(prefix="train-") as temporary:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": temporary, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [torch_python(), str(script)], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    texts = done.stdout.split("run ")[1:]
    return [
        (json.loads((folder / f"model-{number}" / "results.json").read_text(encoding="utf-8")), text)
        for number, text in enumerate(texts)
    ]


@OF_FILES
def test_accumulated_batches_give_the_losses_of_the_large_one(tmp_path: Path) -> None:
    def parts(micro_batch: int, accumulation: int, name: str) -> list[str]:
        sizes = ["--per_device_train_batch_size", str(micro_batch), "--gradient_accumulation_steps", str(accumulation)]
        return [*SMALL, *sizes, "--num_train_epochs", "2", "--checkpoint-dir", name]

    whole, accumulated, uneven, resumed = trained(
        tmp_path,
        "pytorch-accumulation",
        parts(36, 1, "whole"),
        parts(6, 6, "accumulated"),
        parts(18, 2, "uneven"),
        [*parts(4, 9, "whole"), "--num_train_epochs", "3"],  # goes on after the 2 epochs of the first
    )
    steps = len(whole[0]["losses"])
    assert "micro_batches=6 " in accumulated[1]
    assert "micro_batches=4 " in accumulated[1]  # 239 windows: the last group of an epoch has 23, in 4 micro-batches
    assert accumulated[0]["losses"] == pytest.approx(whole[0]["losses"], rel=1e-3)
    assert uneven[0]["losses"] == pytest.approx(whole[0]["losses"], rel=1e-3)
    assert accumulated[0]["bits_per_byte"] == pytest.approx(whole[0]["bits_per_byte"], rel=1e-3)
    assert whole[0]["losses"][-1] < whole[0]["losses"][0]
    assert f"resumed: {steps} steps are done" in resumed[1]
    assert resumed[0]["losses"][:steps] == whole[0]["losses"]
    assert len(resumed[0]["losses"]) == steps * 3 // 2


@OF_FILES
def test_checkpointing_gives_the_same_losses(tmp_path: Path) -> None:
    def words(switch: str) -> list[str]:
        short = ["--layers", "2", "--batch_size", "4", "--max_steps", "4"]
        return [*SMALL, *short, "--gradient_checkpointing", switch, "--checkpoint-dir", switch]

    without, checkpointed = trained(tmp_path, "gradient-checkpointing", words("false"), words("true"))
    assert checkpointed[0]["losses"] == pytest.approx(without[0]["losses"], rel=1e-5)


@OF_FILES
def test_autocast_halves_what_matrix_products_save(tmp_path: Path) -> None:
    def words(precision: str) -> list[str]:
        wide = ["--layers", "3", "--hidden_size", "128", "--max_seq_length", "64", "--batch_size", "4"]
        return [*wide, "--max_steps", "3", "--mixed_precision", precision]

    full, mixed = trained(tmp_path, "pytorch-mixed-precision", words("no"), words("bf16"))
    assert "output of Linear: float32" in full[1]
    assert "output of Linear: bfloat16" in mixed[1]
    assert "output of LayerNorm: float32" in mixed[1]
    assert "weights stay in float32" in mixed[1]
    assert 0.5 < mixed[0]["saved_mib"] / full[0]["saved_mib"] < 0.8  # logits and norms are much of so small a model
    assert mixed[0]["losses"] == pytest.approx(full[0]["losses"], rel=0.01)


PICKLES = {f"{module}.{name}" for module in ("joblib", "pickle", "cloudpickle", "dill") for name in ("load", "loads")}


def unpickled(code: str) -> Iterator[str]:
    """What in a script would run the code of whoever wrote the file that it loads."""
    tree = ast.parse(code)
    called: dict[str, str] = {}  # by what name a script knows what
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            called |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            called |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}

    def name_of(node: ast.AST) -> str:
        if isinstance(node, ast.Attribute):
            return f"{name_of(node.value)}.{node.attr}"
        return called.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and name_of(node) in PICKLES | {"pandas.read_pickle"}:
            yield name_of(node)
        if isinstance(node, ast.Attribute) and node.attr == "load_states":  # of MXNet's trainer
            yield node.attr
        if isinstance(node, ast.Call):
            said = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
            if said.get("allow_pickle", False) is not False:
                yield "allow_pickle"
            if name_of(node.func) == "torch.load" and said.get("weights_only") is not True:
                yield "torch.load"
            if name_of(node.func) == "torch.distributed.checkpoint.load" and "storage_reader" not in said:
                yield "torch.distributed.checkpoint.load"  # torch's own reader unpickles .metadata


def test_no_example_runs_code_from_a_checkpoint() -> None:
    scripts = [path for folder in ("examples", "jobs") for path in (ROOT / folder).rglob("*.py")]
    assert len(scripts) > 25
    assert {str(path): found for path in scripts if (found := list(unpickled(path.read_text(encoding="utf-8"))))} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import joblib\nmodel = joblib.load(path)", "joblib.load"),
        ("from joblib import load as get\nmodel = get(path)", "joblib.load"),
        ("import pickle as p\nread = p.loads", "pickle.loads"),
        ("import torch\ntorch.load(path)", "torch.load"),
        ("import torch\ntorch.load(path, weights_only=False)", "torch.load"),
        ("from torch import load\nload(path, weights_only=trusted)", "torch.load"),
        ("import numpy as np\nnp.load(path, allow_pickle=True)", "allow_pickle"),
        ("import numpy as np\nnp.load(path, allow_pickle=trusted)", "allow_pickle"),
        ("trainer.load_states(path)", "load_states"),
        (
            "import torch.distributed.checkpoint as dcp\ndcp.load(state, checkpoint_id=path)",
            "torch.distributed.checkpoint.load",
        ),
        ("import numpy, torch\nnumpy.load(path, allow_pickle=False), torch.load(path, weights_only=True)", ""),
    ],
)
def test_what_unpickles_is_found(code: str, found: str) -> None:
    assert ",".join(unpickled(code)) == found
