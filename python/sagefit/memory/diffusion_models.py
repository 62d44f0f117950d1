"""Denoisers of diffusion models by name, from ``denoisers.csv`` and ``diffusion_models.csv``.

``denoisers.csv`` is written by hand: ``names`` are those on the Hugging Face Hub; a latent has a position for
``shrink`` x ``shrink`` pixels and for ``slow`` frames, the first of which has its own; ``height``, ``width`` and
``frames`` are what the model was made for; ``encoders`` are billions of parameters of its text encoders and its
autoencoder (published sizes, rounded up). ``diffusion_models.csv`` is made by ``tools/trace_diffusion.py``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from sagefit.memory.workload import Diffusion


@dataclass(frozen=True)
class Moment:
    """A moment of a training step that is the peak for some batch and size, without weights and optimizer state.

    ``gradients`` is the share of all gradients that is there. The rest is bytes: whatever the batch (``constant``,
    ``position`` for each position of a latent), and for each sample (``sample``, ``sample_position``).
    """

    gradients: float
    constant: float
    position: float
    sample: float
    sample_position: float

    def activations(self, batch: int, positions: float, copied: float = 1.0) -> float:
        """Bytes beside gradients with ``batch`` samples of ``positions``, and ``copied`` times what does not grow."""
        each = self.sample + self.sample_position * positions
        return max(0.0, copied * self.constant + self.position * positions + batch * each)


class Layers(NamedTuple):
    """``number`` linear layers of one size, in modules of attention or feed-forward ones."""

    kind: Literal["attention", "feed_forward"]
    inputs: int
    outputs: int
    number: int


@dataclass(frozen=True)
class Denoiser:
    """One denoiser: ``buffers`` and ``encoders`` are bytes, the latter in 16 bits.

    ``moments`` are by way of training and whether activations are checkpointed; ``ranked`` are the parameters that
    adapters have for each rank, by the layers that are adapted, and ``layers`` those that Kronecker products adapt.
    """

    name: str
    shrink: float
    slow: int
    height: int
    width: int
    frames: int
    encoders: float
    parameters: int
    buffers: int
    ranked: dict[str, int] = field(compare=False)
    layers: tuple[Layers, ...] = field(compare=False)
    moments: dict[tuple[str, bool], tuple[Moment, ...]] = field(compare=False)

    @property
    def adapts_feed_forward(self) -> bool:
        """Whether Kronecker products can adapt feed-forward layers: some denoisers have them within others."""
        return any(each.kind == "feed_forward" for each in self.layers)

    def positions(self, height: int, width: int, frames: int) -> int:
        """Positions of the latent of one sample."""
        return ((frames - 1) // self.slow + 1) * round(height / self.shrink) * round(width / self.shrink)


@cache
def table() -> dict[str, Denoiser]:
    """All denoisers by lower-case name: those of the Hub, their last parts, and short names."""
    traced = _traced()
    found: dict[str, Denoiser] = {}
    with Path(__file__).with_name("denoisers.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows = traced[row["name"]]
            denoiser = Denoiser(
                name=row["name"],
                shrink=float(row["shrink"]),
                slow=int(row["slow"]),
                height=int(row["height"]),
                width=int(row["width"]),
                frames=int(row["frames"]),
                encoders=2e9 * float(row["encoders"]),
                parameters=int(rows[0]["parameters"]),
                buffers=int(rows[0]["buffers"]),
                ranked={
                    each["way"].removeprefix("lora-"): int(each["adapted"])
                    for each in rows
                    if each["way"].startswith("lora-")
                },
                layers=max(
                    (_layers(each["adapted"]) for each in rows if each["way"].startswith("lokr-")), key=len, default=()
                ),
                moments={(each["way"], each["checkpointed"] == "yes"): _moments(each["moments"]) for each in rows},
            )
            for name in (row["name"], *row["names"].split()):
                found.setdefault(name, denoiser)
                found.setdefault(name.rpartition("/")[2], denoiser)
    return found


def _traced() -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = {}
    with Path(__file__).with_name("diffusion_models.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["name"], []).append(row)
    return rows


def _layers(text: str) -> tuple[Layers, ...]:
    """Such as ``a2240x2240:160``: letter of the kind, inputs, outputs and how many."""
    found = []
    for each in text.split():
        shape, _, count = each[1:].partition(":")
        inputs, _, outputs = shape.partition("x")
        kind: Literal["attention", "feed_forward"] = "attention" if each[0] == "a" else "feed_forward"
        found.append(Layers(kind, int(inputs), int(outputs), int(count)))
    return tuple(found)


def _moments(text: str) -> tuple[Moment, ...]:
    return tuple(Moment(*(float(number) for number in each.split(":"))) for each in text.split())


def known(name: str) -> bool:
    """Whether a denoiser is known by ``name``, in any case."""
    return name.lower() in table()


def resolve(model: Diffusion) -> Denoiser:
    """The denoiser of a workload; raises KeyError for a name that is not `known`."""
    return table()[model.name.lower()]


def size(model: Diffusion) -> tuple[int, int, int]:
    """Height and width in pixels, and frames, of what a workload makes: its own or those of the denoiser."""
    of = resolve(model)
    return model.height or of.height, model.width or of.width, model.frames or of.frames
