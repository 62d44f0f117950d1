"""Counts bytes of one training step with PyTorch's MemTracker, by phase and part."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from . import device
from .protocol import Task

#: The names that MemTracker gives to what a tensor is for.
_PARTS = {
    "Parameter": "weights",
    "Buffer": "buffers",
    "Gradient": "gradients",
    "Activation": "activations",
    "Temp": "temporaries",
    "Optstate": "optimizer",
    "Other": "batch",
}
_MEASURED = ("sgd", "sgd-momentum", "adamw")
_LARGE = 4096  # bitsandbytes keeps the state of smaller tensors in 32 bits (min_8bit_size)
_BLOCK = 256  # ... and one fp32 constant for each block of this many (blocksize of its 8-bit optimizers)


_Snapshot = dict[torch.device, dict[Any, int]]


class _Tracker(MemTracker):  # type: ignore[misc]
    """MemTracker without the peaks of every module, which take most of its time; it looks for one after another."""

    _peak_mem_snap: _Snapshot

    def _update_peak_stats(self, peak_state: Any) -> None:  # noqa: ARG002
        if _total(self._curr_mem_snap) > _total(self._peak_mem_snap):
            self._peak_mem_snap = self.get_tracker_snapshot("current")

    def _pre_fw_hook(self, module: torch.nn.Module, inputs: Any) -> None:
        if not self._mod_tracker.is_bw:  # a model may be called several times for one loss
            self.memory_tracking.pop(module, None)
        super()._pre_fw_hook(module, inputs)

    def peak(self) -> dict[str, int]:
        """The parts at the peak since the last call."""
        peak = _parts(self.get_tracker_snapshot("peak"))
        self._peak_mem_snap = self.get_tracker_snapshot("current")
        return peak


def training(task: Task, precision: str) -> dict[str, dict[str, dict[str, int]]]:
    """Peaks of forward, backward and evaluation: ``accumulating`` says whether gradients of a batch before are held.

    Without optimizer state, which the caller adds: it is held throughout, whatever the batch.
    """
    tracker = _tracker(task.model, task.batch)
    found = {}
    with tracker:
        for accumulating in ("single", "accumulating"):
            with device.precision(precision):
                loss, output = task.forward()
            forward = tracker.peak()
            loss.backward()
            del loss, output
            found[accumulating] = {"forward": forward, "backward": tracker.peak()}
    return found


def evaluation(task: Task, precision: str) -> dict[str, int]:
    """The peak of a forward pass that keeps nothing for backward."""
    task.model.zero_grad(set_to_none=True)
    task.model.eval()
    tracker = _tracker(task.model, task.batch)
    with tracker, torch.no_grad(), device.precision(precision):
        task.forward()
    task.model.train()
    return tracker.peak()


def _optimizers(model: torch.nn.Module) -> dict[str, dict[str, int]]:
    """Bytes of state, and of temporaries in the step, for every optimizer."""
    trained = [p for p in model.parameters() if p.requires_grad and p.grad is not None]
    found = {name: _step(model, _optimizer(name, trained)) for name in _MEASURED}
    sizes = [(p.numel(), p.element_size()) for p in trained]
    largest = max((count * size for count, size in sizes), default=0)
    eight = {"state": sum(_eight_bit(count) for count, _ in sizes), "temporaries": 0}
    return found | {
        "adamw-8bit": eight,
        "paged-adamw-8bit": eight,
        "lion": {"state": sum(count * size for count, size in sizes), "temporaries": largest},
        # Rows and columns of the second moment (Shazeer & Stern 2018, section 4); the update of one tensor at a time,
        # with its square, in fp32.
        "adafactor": {
            "state": sum(_factored(p.shape) for p in trained),
            "temporaries": 2 * 4 * max((count for count, _ in sizes), default=0),
        },
    }


def states(model: torch.nn.Module) -> dict[str, Any]:
    """What is there whatever the batch; gradients have to be there too."""
    parameters = list(model.parameters())
    return {
        "parameters": sum(p.numel() for p in parameters),
        "trained": sum(p.numel() for p in parameters if p.requires_grad),
        "weights": sum(p.numel() * p.element_size() for p in parameters),
        "buffers": sum(b.numel() * b.element_size() for b in model.buffers()),
        "gradients": sum(p.grad.numel() * p.grad.element_size() for p in parameters if p.grad is not None),
        "optimizers": _optimizers(model),
    }


def _tracker(model: torch.nn.Module, batch: Any) -> _Tracker:
    tracker = _Tracker()
    tracker.track_external(model, *(leaf for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor)))
    none = RemovableHandle(OrderedDict())
    for frozen in (p for p in model.parameters() if not p.requires_grad):  # takes no hook, and MemTracker gives it one
        tracker._param_to_grad_hook_handles[frozen] = (none, none)
    return tracker


def _total(snapshot: _Snapshot) -> int:
    return sum(place["Total"] for place in snapshot.values())


def _parts(snapshot: _Snapshot) -> dict[str, int]:
    parts: dict[str, int] = {}
    for place in snapshot.values():
        for kind, count in place.items():
            if kind != "Total":
                part = _PARTS[kind.value]
                parts[part] = parts.get(part, 0) + count
    return parts


def _step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, int]:
    tracker = _tracker(model, ())
    with tracker:
        optimizer.step()
        before = _parts(tracker.get_tracker_snapshot("current"))
        tracker.peak()
        optimizer.step()
        peak = tracker.peak()
    return {"state": before.get("optimizer", 0), "temporaries": sum(peak.values()) - sum(before.values())}


def _optimizer(name: str, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """``foreach`` is what torch chooses on a GPU."""
    if name == "adamw":
        return torch.optim.AdamW(parameters, foreach=True)
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9 if name == "sgd-momentum" else 0.0, foreach=True)


def _eight_bit(count: int) -> int:
    return 2 * count + 2 * 4 * -(-count // _BLOCK) if count >= _LARGE else 8 * count


def _factored(shape: Sequence[int]) -> int:
    count = math.prod(shape)
    return 4 * (count // shape[-1] + count // shape[-2]) if len(shape) > 1 else 4 * count
