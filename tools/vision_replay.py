"""From the events of traced steps to the table: what PyTorch's allocator reserves for them at a few batches.

Three steps are replayed, because the optimizer's state appears at the end of the first and then lies between the blocks
that activations had. Convolutions get a workspace while they run: for dense kernels larger than 1x1, cuDNN's engines
copy input and output into another layout or transform them (Winograd F(4x4, 3x3) makes 36/16 of each, and the layout
another copy), which is WORKSPACE times both together. Published runs show 5.5 to 6.8 times the largest 3x3 feature map
beyond the tensors of VGG and small ResNets; of the factors 1 to 4 on timm models, 3 was best, if not by much.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

from vision_allocator import MIB, Allocator, Block

WORKSPACE = 3.0
BATCHES = (1, 8, 32, 128)  # the planner interpolates between them
STEPS = 3
KINDS = {"fp32": "", "autocast": "half_", "checkpointed": "checkpointed_"}
HEADER = [
    *("name", "library", "size", "parameters", "buffers", "saved", "half_saved", "attention", "evaluation"),
    *(f"{prefix}{batch}" for prefix in KINDS.values() for batch in BATCHES),
]


def _workspace(kernel: list[int], groups: int, elements: int, element_bytes: int) -> float:
    dense = groups == 1 and max(kernel[2:]) > 1 and min(kernel[:2]) >= 8
    return WORKSPACE * elements * element_bytes if dense else 0.0


def replay(model: dict[str, Any], kind: str, batch: int, *, once: bool = False) -> int:
    """Bytes reserved in steps of ``batch`` images beyond fp32 weights and one optimizer state of their size.

    ``once`` says that the events were traced at this very batch.
    """
    events = model[kind]["events"]
    end = len(events)
    while end and events[end - 1][0] < 0:
        end -= 1
    # What is alive after the last allocation and does not grow with the batch are the gradients.
    alive = {number: (grows, constant) for number, grows, constant in events[:end] if number > 0}
    for number, *_ in events[:end]:
        alive.pop(-number, None)
    gradients = {number for number, (grows, constant) in alive.items() if not grows and constant > 4}
    at = {c[0]: _workspace(*c[1:]) * (1 if once else batch) for c in model[kind]["convolutions"]}

    allocator = Allocator()
    for elements in model["parameters"]:
        allocator.allocate(4 * elements)
    momentum: list[Block] = []
    for _ in range(STEPS):
        live: dict[int, Block] = {}
        for index, (number, grows, constant) in enumerate(events[:end], start=1):
            if number > 0:
                live[number] = allocator.allocate(grows * batch + constant)
            elif -number in live:
                allocator.release(live.pop(-number))
            if at.get(index):
                allocator.release(allocator.allocate(int(at[index])))
        for number in [number for number in live if number not in gradients]:
            allocator.release(live.pop(number))
        if not momentum:
            momentum = [allocator.allocate(4 * elements) for elements in model["parameters"]]
        for block in live.values():
            allocator.release(block)
    return allocator.reserved - 2 * 4 * sum(model["parameters"])


def saved(model: dict[str, Any], kind: str) -> int:
    """Bytes of tensors for each image at the peak of a large batch."""
    total = peak = 0
    for number, grows, _ in model[kind]["events"]:
        total += grows if number > 0 else -grows
        peak = max(peak, total)
    return peak


def row(model: dict[str, Any]) -> dict[str, object]:
    """One row of the table; sizes in MiB, those that grow with the batch for one image."""

    def mib(size: float) -> str:
        return f"{size / MIB:.2f}"

    cells: dict[str, object] = {
        "name": model["name"],
        "library": model["library"],
        "size": model["size"][0],
        "parameters": sum(model["parameters"]),
        "buffers": mib(model["buffers"]),
        "saved": mib(saved(model, "fp32")),
        "half_saved": mib(saved(model, "autocast")),
        "attention": mib(model["fp32"]["attention"]),
        "evaluation": mib(model["evaluation"]),
    }
    for kind, prefix in KINDS.items():
        most = 0
        for batch in BATCHES if kind in model else ():
            most = max(most, replay(model, kind, batch))  # rounding may let a larger batch need a little less
            cells[f"{prefix}{batch}"] = f"{most / MIB:.0f}"
    return cells


def load(file: Path) -> dict[str, Any]:
    """One traced model."""
    loaded: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return loaded


def table(folder: Path, target: Path) -> None:
    """Write the table of all models traced into ``folder``."""
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADER, restval="", lineterminator="\n")
        writer.writeheader()
        for traced in sorted(folder.glob("*.json.gz")):
            model = load(traced)
            if "error" in model:
                print(f"left out: {model['library']} {model['name']}: {model['error']}")
            else:
                writer.writerow(row(model))
