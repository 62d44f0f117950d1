"""Widely used models by their name on the Hugging Face Hub, from ``presets.csv``.

Columns are the fields of `Transformer` in the terms of each model's public ``config.json``, and:
``positions``: rows of learned position tables; ``other``: parameters that are no transformer (vision tower, audio
convolutions); ``sequence``: positions that every sample has, whatever the job says (Whisper hears 30 s always).
``params`` is what the published checkpoint holds: for encoders the base model, for the others with the head that
generates text. Provenance: transformers 5.23 built each architecture with the row's numbers on the meta device, and the
parameters it has are the published ones to the last, but for DeepSeek-V3 (14,848 buffers of its router more), ChatGLM3
(no class in transformers; by the formula), and MPT-30B and Qwen2-57B-A14B, whose exact count is the built one. T5 heads
that are not tied were added, because transformers 5 ties them. Heads, groups and widths of 62 rows were compared with
LitGPT's configurations, and are equal. ``vision_towers.csv`` has the shapes of the towers of vision-language models,
whose parameters are ``other``. transformers 5.24 built these models on the meta device with the shapes as they are
written there; only the count of Qwen2.5-VL-3B was compared with a model that ran.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from sagefit.memory.workload import Transformer, VisionTower

_CSV = Path(__file__).with_name("presets.csv")
_TOWERS = Path(__file__).with_name("vision_towers.csv")
_TEXT = {"architecture", "norm"}
_FLAGS = {"gated", "dropout", "tied", "position_bias"}


@dataclass(frozen=True)
class Preset:
    """A known model. ``positions`` and ``other`` are parameters that `count_params` does not see."""

    model: Transformer
    positions: int
    other: int
    sequence: int


@cache
def presets() -> dict[str, Preset]:
    """All presets by lower-case name: hub ids, their last parts, and short names."""
    table: dict[str, Preset] = {}
    with _CSV.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            names = row["names"].split()
            preset = _preset(names[0], row)
            for name in names:
                table[name.lower()] = preset
                table.setdefault(name.lower().rpartition("/")[2], preset)
    return table


@cache
def _towers() -> dict[str, dict[str, Any]]:
    """Shapes of vision towers by the first name of their models, in lower case."""
    found: dict[str, dict[str, Any]] = {}
    with _TOWERS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            counts = {name: int(row[name]) for name in ("layers", "hidden", "heads", "ffn", "patches")}
            shape = {**counts, "gated": row["gated"] == "1", "norm": row["norm"]}
            found |= {name.lower(): shape for name in row["names"].split()}
    return found


def _preset(name: str, row: dict[str, str]) -> Preset:
    known: dict[str, Any] = {}
    for field in fields(Transformer):
        if field.name in _TEXT:
            known[field.name] = row[field.name]
        elif field.name in _FLAGS:
            known[field.name] = row[field.name] == "1"
        elif field.name in row:
            known[field.name] = int(row[field.name])
    if shape := _towers().get(name.lower()):
        known["tower"] = VisionTower(params=int(row["other"]), **shape)
    model = Transformer(name=name, **known)
    return Preset(model, int(row["positions"]) * model.hidden, int(row["other"]), int(row["sequence"]))
