"""Make ``python/sagefit/memory/vision_heads.csv``: training steps of detectors and segmenters, with their losses.

Run it in an environment ENV of its own, which needs no GPU; FOLDER keeps what was traced:

    python3 -m venv ENV && ENV/bin/pip install torch==2.13.0 torchvision==0.28.0 transformers==5.24.0 scipy==1.17.1
    ENV/bin/pip install ultralytics==8.4.190
    ENV/bin/python tools/trace_heads.py trace FOLDER  # about half an hour; goes on where it stopped
    ENV/bin/python tools/trace_heads.py table FOLDER python/sagefit/memory/vision_heads.csv

As in trace_vision.py a step runs on the meta device, which knows shapes and no values, but at each batch of the table
itself: some of these models go through their images one by one. Where a loss asks for values (which anchors lie in a
box, what the suppression of overlaps leaves), `Chosen` answers with as many as usual data would have.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import heads

BATCHES = (1, 8, 32, 128)
FEW = 21  # classes of a segmenter with few of them; below, its peak is taken not to fall


def _without_values() -> None:
    """Answer what reads values outside of tensors: matching by cost, suppression of overlaps, sampling of regions."""
    import numpy
    import torch
    import torchvision

    boxes = numpy.arange(heads.BOXES["coco"])
    torch.Tensor.cpu = lambda tensor, *_, **__: tensor
    loss = importlib.import_module("transformers.loss")
    names = [path.stem for path in Path(loss.__path__[0]).glob("loss_*.py")]
    for name in names:
        module = importlib.import_module(f"transformers.loss.{name}")
        if hasattr(module, "linear_sum_assignment"):
            module.linear_sum_assignment = lambda _: (boxes, boxes)
    pool = torchvision.ops.poolers.roi_align  # autocast computes it in fp32
    torchvision.ops.poolers.roi_align = lambda maps, rois, *more, **named: pool(maps.float(), rois, *more, **named)
    regions = importlib.import_module("torchvision.models.detection.roi_heads").RoIHeads
    regions.subsample = lambda _, labels: [torch.empty(heads.REGIONS, dtype=torch.long) for _ in labels]
    torchvision.ops.boxes.nms = lambda boxes, *_: torch.empty(min(len(boxes), 1000), dtype=torch.long)
    torchvision.ops.boxes.batched_nms = lambda boxes, *_: torch.empty(min(len(boxes), 1000), dtype=torch.long)


def _values(head: heads.Head) -> Any:
    """A dispatch mode that answers on the meta device what only values can tell."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten

    class Chosen(TorchDispatchMode):
        """One place in 25 of a mask is chosen: a box of COCO covers that much of its image in the median."""

        share = 25
        truth = (
            head.loss is not heads.detecting
        )  # torchvision asks whether a box is wrong, others whether all are right

        def _places(self, mask: Any) -> int:
            if mask.dim() == 1 and mask.numel() == heads.REGIONS:
                return heads.REGIONS // 4  # what sampling makes objects, at most
            if mask.dim() == 2 and mask.shape[1] == 2 * (100 // heads.BOXES["coco"]) * heads.BOXES["coco"]:
                return mask.numel() // 2  # RT-DETR's groups of noisy boxes: one half positive, the other negative
            return max(1, mask.numel() // self.share)

        def _indices(self, indices: Any) -> list[Any]:
            out: list[Any] = []
            for index in indices:
                if index is not None and index.dtype in (torch.bool, torch.uint8):
                    places = torch.empty(self._places(index), index.dim(), dtype=torch.long, device="meta")
                    out += list(places.unbind(1))
                else:
                    out.append(index)
            return out

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func is aten.nonzero.default:
                return torch.empty(self._places(args[0]), args[0].dim(), dtype=torch.long, device="meta")
            if func is aten.masked_select.default:
                return args[0].new_empty(self._places(args[1]))
            if func is aten.bincount.default:
                return torch.empty(args[2] if len(args) > 2 else kwargs["minlength"], dtype=torch.long, device="meta")
            if func is aten._unique2.default:
                found = args[0].new_empty(max(1, args[0].numel() // 2))
                return found, torch.empty_like(args[0], dtype=torch.long), found.new_empty(0, dtype=torch.long)
            if func in (aten._local_scalar_dense.default, aten.item.default):
                return self.truth if args[0].dtype is torch.bool else 1
            if func is aten.is_nonzero.default:
                return self.truth
            if func in (
                aten.index.Tensor,
                aten.index_put.default,
                aten.index_put_.default,
                aten._index_put_impl_.default,
            ):
                args = (args[0], self._indices(args[1]), *args[2:])
            return func(*args, **kwargs)

    return Chosen()


def _step(head: heads.Head, model: Any, batch: int, *, autocast: bool) -> dict[str, Any]:
    """Events of a step of ``batch`` images, in the form of trace_vision.py: nothing in them grows with the batch."""
    import torch
    import vision_timeline as timeline

    model.zero_grad(set_to_none=True)
    seen = timeline.Timeline(model)
    images = torch.empty(batch, 3, head.size, head.size, device="meta")
    timeline.attention.autocast = autocast
    with _values(head), seen, torch.device("meta"):
        seen.see(images)
        with timeline.Autocast() if autocast else contextlib.nullcontext():
            loss = head.loss(model, images)
        whole = {tuple(sorted(shape)) for shape in seen.scores if shape[0] == batch and shape[3] >= 100}
        scores = sum(size for _, size, shape in seen.live.values() if shape in whole)
        loss.backward()
    del loss, images
    model.zero_grad(set_to_none=True)  # so that the events end with the release of the gradients
    return {
        "events": [(number, 0, size) for number, size in seen.events],
        "attention": scores,
        "peak": seen.peak,
        "convolutions": [(c.at, c.kernel, c.groups, c.elements, c.element_bytes) for c in seen.convolutions],
    }


def _evaluation(head: heads.Head, model: Any, batch: int) -> int:
    """Bytes at the peak of a forward pass of ``batch`` images without gradients, in fp32."""
    import torch
    import vision_timeline as timeline

    seen = timeline.Timeline(model)
    timeline.attention.autocast = False
    images = torch.empty(batch, 3, head.size, head.size, device="meta")
    with _values(head), seen, torch.device("meta"), torch.no_grad():
        seen.see(images)
        head.loss(model, images) if head.loss is heads.detecting else model(images)
    return seen.peak


def trace_head(head: heads.Head) -> dict[str, Any]:
    """Everything the table needs of one model."""
    model = head.build().to("meta").train()
    own = sum(b.numel() * b.element_size() for b in model.buffers())
    numbers = [p.numel() for p in model.parameters()]
    first, more = BATCHES[1:3]
    model.train(head.averaged or head.loss is heads.detecting)  # else what they find is sorted out, which reads values
    evaluated = [_evaluation(head, model, batch) for batch in (first, more)]
    model.train()
    traced = {
        "library": head.library,
        "name": head.name,
        "names": " ".join(name.lower() for name in head.names),
        "task": head.task,
        "size": head.size,
        "parameters": numbers,
        "buffers": own + (own + 4 * sum(numbers) if head.averaged else 0),
        "evaluation": (evaluated[1] - evaluated[0]) // (more - first),
        "fp32": {batch: _step(head, model, max(batch, head.least), autocast=False) for batch in BATCHES},
        "autocast": {batch: _step(head, model, max(batch, head.least), autocast=True) for batch in BATCHES},
        "classes": head.classes,
    }
    if head.of:
        few = FEW if head.classes > FEW else 2
        for name, classes in (("fewer", few), ("more", 2 * head.classes)):
            model = head.of(classes).to("meta").train()
            images = (classes - head.classes) * more
            for kind in ("fp32", "autocast"):
                peak = _step(head, model, more, autocast=kind == "autocast")["peak"]
                traced[f"{kind}_{name}"] = (peak - traced[kind][more]["peak"]) // images
    return traced


def trace(folder: Path, part: int, parts: int) -> None:
    """Trace every model, or every ``parts``-th, into a file of its own in ``folder``, but not those that are there."""
    warnings.filterwarnings("ignore")
    _without_values()
    folder.mkdir(parents=True, exist_ok=True)
    for head in list(heads.heads())[part::parts]:
        file = folder / f"{head.library}-{head.name}.json.gz"
        if not file.exists():
            unfinished = file.with_suffix(".part")
            unfinished.write_bytes(gzip.compress(json.dumps(trace_head(head)).encode(), 4, mtime=0))
            unfinished.rename(file)
            print(head.name, flush=True)


# --- the table --------------------------------------------------------------------------------------------------------

HEADER = (
    *("name", "names", "library", "task", "size", "parameters", "buffers"),
    *("saved", "half_saved", "attention", "evaluation", "classes", "fewer", "half_fewer", "more", "half_more"),
    *(f"{prefix}{batch}" for prefix in ("", "half_") for batch in BATCHES),
)


def row(traced: dict[str, Any]) -> dict[str, object]:
    """One row of the table; sizes in MiB, those that grow with the batch for one image."""
    from vision_replay import MIB, replay

    few, many = BATCHES[1:3]

    def of_one(kind: str, what: str) -> float:
        return float(traced[kind][str(many)][what] - traced[kind][str(few)][what]) / (many - few)

    cells: dict[str, object] = {name: traced[name] for name in ("name", "names", "library", "task", "size")}
    cells["classes"] = traced["classes"]
    cells["parameters"] = sum(traced["parameters"])
    for name, size in (
        ("buffers", traced["buffers"]),
        ("saved", of_one("fp32", "peak")),
        ("half_saved", of_one("autocast", "peak")),
        ("attention", of_one("fp32", "attention")),
        ("evaluation", traced["evaluation"]),
        *(
            (f"{prefix}{name}", traced.get(f"{kind}_{name}", 0))
            for name in ("fewer", "more")
            for kind, prefix in (("fp32", ""), ("autocast", "half_"))
        ),
    ):
        cells[name] = f"{size / MIB:.2f}"
    for kind, prefix in (("fp32", ""), ("autocast", "half_")):
        most = 0
        for batch in BATCHES:
            step = {"parameters": traced["parameters"], kind: traced[kind][str(batch)]}
            most = max(most, replay(step, kind, batch, once=True))
            cells[f"{prefix}{batch}"] = f"{most / MIB:.0f}"
    return cells


def table(folder: Path, target: Path) -> None:
    """Write the table of all models traced into ``folder``."""
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        writer.writeheader()
        for traced in sorted(folder.glob("*.json.gz")):
            writer.writerow(row(json.loads(gzip.decompress(traced.read_bytes()))))


if __name__ == "__main__":
    if sys.argv[1] == "trace":
        part, parts = map(int, sys.argv[3:5] or (0, 1))
        trace(Path(sys.argv[2]), part, parts)
    else:
        table(Path(sys.argv[2]), Path(sys.argv[3]))
