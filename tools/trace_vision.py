"""Make ``python/sagefit/memory/vision_models.csv``: what a training step of each vision model keeps in GPU memory.

Run it in an environment ENV of its own, which needs no GPU; FOLDER keeps what was traced:

    python3 -m venv ENV && ENV/bin/pip install torch==2.13.0 torchvision==0.28.0 timm==1.0.31
    ENV/bin/python tools/trace_vision.py trace FOLDER  # about half an hour; goes on where it stopped
    ENV/bin/python tools/trace_vision.py table FOLDER python/sagefit/memory/vision_models.csv

``trace`` runs a step of every classification model of timm and torchvision on the meta device (vision_timeline.py). The
batch is a large prime, so that what grows with it is what it divides. ``table`` replays PyTorch's allocator
(vision_allocator.py, vision_replay.py) and writes the table; it needs neither torch nor timm. 1,000 classes throughout.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from pathlib import Path
from typing import Any

BATCH = 997
TORCHVISION_SIZES = {  # crop sizes of the training recipes, where they are not 224 (torchvision weights' meta data)
    "efficientnet_b1": 240,
    "efficientnet_b2": 288,
    "efficientnet_b3": 300,
    "efficientnet_b4": 380,
    "efficientnet_b5": 456,
    "efficientnet_b6": 528,
    "efficientnet_b7": 600,
    "efficientnet_v2_s": 384,
    "efficientnet_v2_m": 480,
    "efficientnet_v2_l": 480,
    "inception_v3": 299,
    "swin_v2_t": 256,
    "swin_v2_s": 256,
    "swin_v2_b": 256,
}


def _checkpoint_without_random_state() -> None:
    """Let torch.utils.checkpoint run on the meta device, which has no random state, wherever it was imported."""
    import torch.utils.checkpoint as module

    real = module.checkpoint

    def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs |= {"use_reentrant": False, "preserve_rng_state": False}
        return real(function, *args, **kwargs)

    for other in list(sys.modules.values()):
        if getattr(other, "checkpoint", None) is real:
            other.checkpoint = checkpoint  # type: ignore[attr-defined]


def _build(library: str, name: str) -> tuple[Any, tuple[int, int]]:
    """The model on the meta device and the size of its images."""
    import timm
    import torch
    import torchvision

    def make() -> Any:
        if library == "timm":
            return timm.create_model(name, num_classes=1000)
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        return torchvision.models.get_model(name, weights=None, **options)

    try:
        with torch.device("meta"):
            model = make()
    except (NotImplementedError, RuntimeError):  # torch's, where a constructor reads values that meta tensors lack
        model = make().to("meta")
    height = width = TORCHVISION_SIZES.get(name, 224)
    if library == "timm":
        height, width = timm.data.resolve_data_config({}, model=model)["input_size"][1:]
    return model.train(), (height, width)


def _measure(model: Any, size: tuple[int, int], autocast: bool) -> dict[str, Any]:
    """Events of a step with bytes for each image and bytes whatever the batch: [number, per image, constant]."""
    from vision_timeline import step

    timeline = step(model, size, BATCH, autocast)
    model.zero_grad(set_to_none=True)  # so that the events end with the release of the gradients
    return {
        "events": [
            (number, nbytes // BATCH, 0) if nbytes % BATCH == 0 else (number, 0, nbytes)
            for number, nbytes in timeline.events
        ],
        "attention": timeline.attention // BATCH,
        "convolutions": [
            (c.at, c.kernel, c.groups, c.elements // BATCH, c.element_bytes) for c in timeline.convolutions
        ],
    }


def trace_model(library: str, name: str) -> dict[str, Any]:
    """Everything the table needs of one model."""
    from vision_timeline import evaluation

    model, size = _build(library, name)
    result: dict[str, Any] = {
        "library": library,
        "name": name,
        "size": size,
        "parameters": [p.numel() for p in model.parameters()],
        "buffers": sum(b.numel() * b.element_size() for b in model.buffers()),
        "fp32": _measure(model, size, autocast=False),
        "autocast": _measure(model, size, autocast=True),
    }
    result["evaluation"] = evaluation(model.eval(), size, BATCH).peak // BATCH
    model.train()
    try:
        model.set_grad_checkpointing(True)
    except (AttributeError, AssertionError):
        return result  # the model has no such switch
    try:
        result["checkpointed"] = _measure(model, size, autocast=False)
    except Exception as error:
        result["checkpointed_error"] = repr(error)
    return result


def trace(folder: Path) -> None:
    """Trace every model into a file of its own in ``folder``, leaving out those that are there."""
    import timm
    import torchvision

    warnings.filterwarnings("ignore")
    _checkpoint_without_random_state()
    folder.mkdir(parents=True, exist_ok=True)
    names = [("torchvision", name) for name in torchvision.models.list_models(module=torchvision.models)]
    names += [("timm", name) for name in timm.list_models() if not name.startswith("test_")]
    for library, name in names:
        file = folder / f"{library}-{name}.json.gz"
        if file.exists():
            continue
        try:
            result = trace_model(library, name)
        except Exception as error:
            result = {"library": library, "name": name, "error": repr(error)}
        part = file.with_suffix(".part")
        part.write_bytes(gzip.compress(json.dumps(result).encode(), 4, mtime=0))
        part.rename(file)


if __name__ == "__main__":
    if sys.argv[1] == "trace":
        trace(Path(sys.argv[2]))
    else:
        from vision_replay import table

        table(Path(sys.argv[2]), Path(sys.argv[3]))
