"""Measures the peak resident memory of small training runs on the CPU, and writes ``cpu.csv``.

``python tests/accuracy/measure_cpu.py`` measures what is not in the table yet, ``--again`` everything. Each run is a
process of its own with the packages of a training image of the embedded cloud, three optimizer steps on random data,
two threads. Its peak is what the kernel counts (``ru_maxrss``), which the flight recorder takes for one process too.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sagefit.cloud.images import environment

HERE = Path(__file__).parent
TABLE = HERE / "cpu.csv"
COLUMNS = [
    *("id", "measured_gib", "family", "image", "model", "params", "architecture", "layers", "encoder_layers"),
    *("hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "mlp", "norm", "head", "dropout", "tied"),
    *("position_bias", "method", "lora_rank", "precision", "optimizer", "micro_batch", "sequence_length"),
    *("image_size", "accumulation", "gradient_checkpointing", "attention", "sharding", "stack", "loss", "malloc"),
    "torch",
]

Row = dict[str, Any]

_GPT: Row = {"image": "pytorch", "mlp": "plain", "norm": "layer", "architecture": "decoder"}
_HF: Row = {"image": "huggingface", "kv_heads": 6}
MODELS: dict[str, Row] = {
    "gpt-11m": _GPT | {"layers": 6, "hidden": 384, "heads": 6, "ffn": 1536, "vocab": 256, "sequence_length": 256},
    "gpt-34m": _GPT | {"layers": 8, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 8192, "sequence_length": 256},
    "gpt-57m": _GPT | {"layers": 8, "hidden": 768, "heads": 12, "ffn": 3072, "vocab": 256, "sequence_length": 128},
    # Tensors of more than 32 MiB, which malloc gives back at once.
    "gpt-4m": _GPT | {"layers": 2, "hidden": 384, "heads": 6, "ffn": 1536, "vocab": 256, "sequence_length": 1536},
    "llama-12m": _HF
    | {"layers": 6, "hidden": 384, "heads": 6, "kv_heads": 2, "ffn": 1024, "vocab": 4096, "sequence_length": 256},
    "llama-39m": _HF
    | {"layers": 12, "hidden": 512, "heads": 8, "kv_heads": 8, "ffn": 1408, "vocab": 256, "sequence_length": 128},
    "bert-14m": _HF
    | {
        "architecture": "encoder",
        "mlp": "plain",
        "norm": "layer",
        "head": "classification",
        "dropout": "yes",
        "layers": 6,
        "hidden": 384,
        "heads": 6,
        "ffn": 1536,
        "vocab": 8192,
        "sequence_length": 128,
    },
}
DEFAULTS: Row = {
    "family": "transformer",
    "architecture": "decoder",
    "encoder_layers": 0,
    "mlp": "gated",
    "norm": "rms",
    "head": "lm",
    "dropout": "no",
    "tied": "no",
    "position_bias": "no",
    "method": "full",
    "lora_rank": 16,
    "precision": "fp32",
    "optimizer": "adamw",
    "accumulation": 1,
    "gradient_checkpointing": "no",
    "attention": "sdpa",
    "sharding": "none",
    "stack": "plain-torch",
    "loss": "default",
    "malloc": "default",
}
CHECKPOINTING: Row = {"gradient_checkpointing": "yes"}
BF16: Row = {"precision": "bf16-mixed"}
FIXED: Row = {"malloc": "fixed"}  # freed blocks of 128 KiB and more go back to the kernel, as before anything was freed
LORA: Row = {"method": "lora"}
TRAINER: Row = {"stack": "hf-trainer"}
GROUPS: dict[str, list[tuple[tuple[int, ...], Row]]] = {
    "gpt-11m": [
        ((4, 8, 16, 32), {}),
        ((8, 16, 32), CHECKPOINTING),
        ((16,), {"accumulation": 2}),
        ((8,), {"accumulation": 4}),
        ((4,), {"accumulation": 8}),
        ((8, 16), {"optimizer": "sgd"}),
        ((16,), {"optimizer": "sgd-momentum"}),
        ((8, 16, 32), BF16),
        ((32,), BF16 | CHECKPOINTING),
        ((8, 16), {"dropout": "yes"}),
        ((16,), {"dropout": "yes"} | CHECKPOINTING),
        ((8, 16), FIXED),
        ((16,), FIXED | CHECKPOINTING),
        ((8,), FIXED | {"accumulation": 2}),
        ((16,), FIXED | BF16),
    ],
    "gpt-34m": [
        ((2, 8, 16), {}),
        ((8, 16), CHECKPOINTING),
        ((4,), {"accumulation": 4}),
        ((8,), BF16),
        ((8,), {"optimizer": "sgd"}),
        ((2,), {"sequence_length": 1024}),
    ],
    "gpt-4m": [((16,), {})],
    "gpt-57m": [
        ((1, 4), {}),
        ((4,), CHECKPOINTING),
        ((1,), {"accumulation": 4}),
        ((4,), {"optimizer": "sgd"}),
    ],
    "llama-12m": [
        ((4, 8), {}),
        ((8,), CHECKPOINTING),
        ((4,), {"accumulation": 2}),
        ((8,), BF16),
        ((8,), LORA),
        ((8,), LORA | CHECKPOINTING),
        ((8,), LORA | FIXED),
        ((8,), TRAINER),
        ((4,), TRAINER | {"accumulation": 2}),
        ((8,), TRAINER | CHECKPOINTING),
    ],
    "llama-39m": [
        ((2, 4), {}),
        ((4,), CHECKPOINTING),
        ((2, 4), LORA),
        ((4,), TRAINER | LORA),
        ((4,), TRAINER),
    ],
    "bert-14m": [((8, 16), {}), ((16,), CHECKPOINTING), ((8,), TRAINER)],
    "resnet18": [((4, 8), {"optimizer": "sgd-momentum"}), ((4,), {"accumulation": 2})],
    "resnet50": [((4,), {"optimizer": "sgd-momentum"})],
    "mobilenetv2_100": [((4, 8), {})],
    "deit_tiny_patch16_224": [((4, 8), {}), ((4,), {"accumulation": 2})],
}


def configurations() -> Iterator[Row]:
    """The rows to measure, without what is measured."""
    for model, groups in GROUPS.items():
        shape = MODELS.get(model) or {"family": "vision", "image": "huggingface", "image_size": 224}
        for batches, changes in groups:
            for micro_batch in batches:
                row = DEFAULTS | shape | changes | {"model": model, "micro_batch": micro_batch}
                if row["family"] == "transformer":
                    heads, hidden = row["heads"], row["hidden"]
                    row = row | {"head_dim": hidden // heads, "kv_heads": row.get("kv_heads", heads)}
                yield row


def measure(row: Row) -> Row:
    """``row`` with the peak in GiB, the number of parameters and the release of torch."""
    python = environment(row["image"]) / "bin" / "python"
    command = [str(python), str(HERE / "cpu_training.py"), json.dumps(row)]
    settings = {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"}  # threads that wait leave the machine to others
    if row["malloc"] == "fixed":
        settings["MALLOC_MMAP_THRESHOLD_"] = "131072"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | settings)
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{row} failed")
    learned: Row = json.loads(told.splitlines()[-1])
    return row | learned | {"measured_gib": f"{usage.ru_maxrss / 1024**2:.4f}"}


def main(arguments: list[str]) -> None:
    """Measure what is missing and write the table."""
    kept: dict[str, Row] = {}
    if TABLE.is_file() and "--again" not in arguments:
        with TABLE.open(newline="", encoding="utf-8") as file:
            kept = {_identity(row): dict(row) for row in csv.DictReader(file)}
    rows = []
    for number, wanted in enumerate(configurations(), 1):
        row = kept.get(_identity(wanted)) or measure(wanted)
        rows.append(row | {"id": f"C{number:03}"})
        print(*(rows[-1].get(name, "") for name in COLUMNS), flush=True)
        with TABLE.open("w", newline="", encoding="utf-8") as file:  # after each, for it takes a while
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


def _identity(row: Row) -> str:
    told = ("id", "measured_gib", "params", "torch")
    return " ".join(str(row.get(name, "")) for name in COLUMNS if name not in told)


if __name__ == "__main__":
    main(sys.argv[1:])
