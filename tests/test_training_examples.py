"""What the pages of the PyTorch examples promise of their training code, run by the Python of the image."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sagefit.paths import ROOT
from torch_environment import torch_python

EXAMPLES = ROOT / "examples"
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


def test_checkpointing_gives_the_same_losses(tmp_path: Path) -> None:
    def words(switch: str) -> list[str]:
        short = ["--layers", "2", "--batch_size", "4", "--max_steps", "4"]
        return [*SMALL, *short, "--gradient_checkpointing", switch, "--checkpoint-dir", switch]

    without, checkpointed = trained(tmp_path, "gradient-checkpointing", words("false"), words("true"))
    assert checkpointed[0]["losses"] == pytest.approx(without[0]["losses"], rel=1e-5)


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
