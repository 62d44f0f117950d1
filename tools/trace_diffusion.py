"""Make ``python/sagefit/memory/diffusion_models.csv``: what a training step of each denoiser keeps in GPU memory.

Run it in an environment ENV of its own, which needs no GPU; FOLDER keeps what was traced:

    python3 -m venv ENV
    ENV/bin/pip install torch==2.14.1 torchvision==0.29.1 diffusers==0.42.1 transformers==5.24.0 peft==0.21.2
    ENV/bin/pip install lycoris-lora==4.1.3
    ENV/bin/python tools/trace_diffusion.py trace FOLDER  # about half an hour on two cores; goes on where it stopped
    ENV/bin/python tools/trace_diffusion.py table FOLDER python/sagefit/memory/diffusion_models.csv

``trace`` runs a step of every denoiser (denoisers.py) on the meta device (vision_timeline.py), in each way to train it
and at two sizes of the latent. The batch is a large prime, so that what grows with it is what it divides; in models
that take samples one by one it is a smaller one, and so is what is made that many times. What differs between the two
sizes grows with the positions of the latent. ``table`` keeps, of all moments of a step, those that are the peak for
some batch and size.
"""

from __future__ import annotations

import collections
import contextlib
import csv
import gzip
import importlib
import json
import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WAYS = ("full-mixed", "full-bf16", "lora-attention", "lora-all-linear", "lokr-attention", "lokr-feed-forward")
ATTENTION = ("to_q", "to_k", "to_v", "to_out.0", "to_query", "to_key", "to_value")
COLUMNS = ("name", "way", "checkpointed", "parameters", "buffers", "adapted", "moments")
RANK = 16
FACTOR = 4


def main() -> None:
    """Trace, or make the table of what was traced."""
    if sys.argv[1] == "trace":
        trace(Path(sys.argv[2]))
    else:
        table(Path(sys.argv[2]), Path(sys.argv[3]))


def trace(folder: Path) -> None:
    """Trace every denoiser in every way into a file of its own in ``folder``, leaving out those that are there."""
    import denoisers

    folder.mkdir(parents=True, exist_ok=True)
    wanted = [
        (of.name, way, checkpointed, folder / f"{of.name}-{way}-{'yes' if checkpointed else 'no'}.json.gz")
        for of in denoisers.DENOISERS
        for way in WAYS
        for checkpointed in (False, True)
    ]
    missing = [each for each in wanted if not each[3].exists()]
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=8) as pool:
        for number, said in enumerate(pool.imap_unordered(_trace_one, missing), 1):
            print(f"{number} of {len(missing)}: {said}", flush=True)


def _trace_one(what: tuple[str, str, bool, Path]) -> str:
    import torch
    from denoisers import BY_NAME, build

    name, way, checkpointed, file = what
    autocast = torch.autocast
    torch.autocast = lambda device_type, *args, **how: (  # type: ignore[assignment,misc]
        contextlib.nullcontext() if device_type == "meta" else autocast(device_type, *args, **how)  # which has none
    )
    warnings.filterwarnings("ignore")
    of = BY_NAME[name]
    dtype = torch.float32 if way == "full-mixed" else torch.bfloat16
    try:
        model = build(of, "meta", dtype)
        told: dict[str, Any] = {
            "parameters": sum(each.numel() for each in model.parameters()),
            "bytes": sum(each.numel() * each.element_size() for each in model.buffers()),
        }
        if checkpointed:
            model.enable_gradient_checkpointing(gradient_checkpointing_func=_Checkpoint(way != "full-bf16"))
        if way.startswith("lora"):
            model, told["adapted"], told["linear"] = _adapted(model, way.removeprefix("lora-"))
        if way.startswith("lokr"):
            told["adapted"], told["trained"] = _kronecker(model, way.removeprefix("lokr-"))
            if way == "lokr-feed-forward" and not any(each.startswith("f") for each in told["adapted"]):
                return f"{file.name}: it has no feed-forward layers"
        sizes = _sizes(of)
        runs = [_events(of, model, size, autocast=way != "full-bf16") for size in sizes]
        if len(runs[0]) != len(runs[1]):  # a table of positions that the first step made and kept
            runs[0] = _events(of, model, sizes[0], autocast=way != "full-bf16")
        if len(runs[0]) != len(runs[1]):
            raise RuntimeError(f"the two sizes have other steps: {len(runs[0])} and {len(runs[1])}")
        told["samples"] = of.samples
        told["positions"] = [_positions(of, size) for size in sizes]
        told["events"] = list(zip(*runs, strict=True))
    except Exception as error:
        return f"{file.name}: {error!r}"
    part = file.with_suffix(".part")
    part.write_bytes(gzip.compress(json.dumps(told).encode(), 4, mtime=0))
    part.rename(file)
    return file.name


class _Checkpoint:
    """torch's checkpoint on the meta device, which has no random state; what is recomputed has an autocast of its own.

    (The engine recomputes on a thread that a mode around the call of backward does not reach.)
    """

    def __init__(self, autocast: bool) -> None:
        self.autocast = autocast

    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        from torch.utils.checkpoint import checkpoint

        more = {"use_reentrant": False, "preserve_rng_state": False, "context_fn": self.contexts}
        return checkpoint(function, *args, **more, **kwargs)

    def contexts(self) -> tuple[Any, Any]:
        """Those of the forward pass and of its repetition."""
        from vision_timeline import Autocast

        nothing = contextlib.nullcontext()
        return nothing, Autocast(keeps=False) if self.autocast else nothing


def _adapted(model: Any, targets: str) -> tuple[Any, int, int]:
    """The model with adapters of rank 16 in fp32, what one rank of them has as parameters, and adapted layers."""
    import peft
    from torch import nn

    names = sorted(
        name
        for name, each in model.named_modules()
        if isinstance(each, nn.Linear) and (targets == "all-linear" or name.endswith(ATTENTION))
    )
    layers = [model.get_submodule(name) for name in names]
    config = peft.LoraConfig(r=RANK, lora_alpha=RANK, target_modules=names)
    adapted = peft.get_peft_model(model, config)
    for name, each in adapted.named_parameters():
        if "lora_" in name:
            each.data = each.data.float()
    return adapted, sum(each.in_features + each.out_features for each in layers), len(layers)


def _kronecker(model: Any, targets: str) -> tuple[dict[str, int], int]:
    """Put adapters of LoKr (LyCORIS) on the model's own attention, or on its feed-forward layers too.

    They are in bf16, with the larger factor whole and in LyCORIS's bypass mode (nothing as large as a weight is made).
    Returns how many layers of each kind and shape were adapted, as ``a2240x2240``, and the adapters' parameters.
    """
    import torch
    from torch import nn

    lokr = importlib.import_module("lycoris.modules.lokr")
    kinds = {"a": "Attention", "f": "FeedForward"} if targets == "feed-forward" else {"a": "Attention"}
    shapes: collections.Counter[str] = collections.Counter()
    model.requires_grad_(False)
    adapters, found = nn.ModuleList(), set()
    for module in list(model.modules()):
        kind = next((kind for kind, name in kinds.items() if type(module).__name__.endswith(name)), None)
        for layer in module.modules() if kind else ():
            if isinstance(layer, nn.Linear) and layer not in found:
                found.add(layer)
                shapes[f"{kind}{layer.in_features}x{layer.out_features}"] += 1
                how = {"lora_dim": 10_000, "factor": FACTOR, "full_matrix": True, "bypass_mode": True}
                with torch.device("meta"):
                    adapter = lokr.LokrModule("lokr", layer, **how).to(torch.bfloat16)
                adapter.apply_to()
                adapters.append(adapter)
    model.adapters = adapters
    return dict(sorted(shapes.items())), sum(each.numel() for each in adapters.parameters())


def _sizes(of: Any) -> tuple[Any, Any]:
    """Two sizes of what it makes; the second has four times the positions of the first."""
    from denoisers import Size

    if of.slow > 1:
        return Size(256, 256, 2 * of.slow + 1), Size(512, 512, 2 * of.slow + 1)
    if of.kind.startswith("PixArt"):  # which has the positions of 1024 pixels ready, and computes others
        return Size(768, 768), Size(1536, 1536)
    return Size(512, 512), Size(1024, 1024)


def _positions(of: Any, size: Any) -> int:
    frames, height, width = of.latent(size)
    return int(frames * height * width)


def _events(of: Any, model: Any, size: Any, *, autocast: bool) -> list[tuple[int, int, int]]:
    """Every storage that a step makes or lets go of: its number, its bytes, and 1 if it is a gradient."""
    import torch
    from denoisers import Maker, predicted
    from vision_timeline import Autocast, Timeline, attention

    model.train()
    model.zero_grad(set_to_none=True)
    timeline = Timeline(model)
    attention.autocast = autocast
    dtype = torch.float32 if autocast else torch.bfloat16
    with timeline, torch.device("meta"):
        batch = of.inputs(of, size, of.samples, Maker("meta"))
        batch = {name: _cast(each, dtype) for name, each in batch.items()}
        with Autocast() if autocast else contextlib.nullcontext():
            told = predicted(model, batch)
            loss = torch.nn.functional.mse_loss(told.float(), torch.empty(told.shape))
        del told
        loss.backward()
        keys = {each.grad.untyped_storage()._cdata for each in model.parameters() if each.grad is not None}
        gradients = {timeline.numbers[key] for key in keys}
        del loss, batch
        events = [(number, nbytes, int(abs(number) in gradients)) for number, nbytes in timeline.events]
    model.zero_grad(set_to_none=True)
    return events


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cast(each, dtype) for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_cast(each, dtype) for each in value)
    return value.to(dtype) if hasattr(value, "is_floating_point") and value.is_floating_point() else value


def table(folder: Path, target: Path) -> None:
    """Write the table of everything in ``folder``."""
    import denoisers

    with target.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for of in denoisers.DENOISERS:
            for way in WAYS:
                for checkpointed in ("no", "yes"):
                    traced = folder / f"{of.name}-{way}-{checkpointed}.json.gz"
                    if traced.exists():
                        told = json.loads(gzip.decompress(traced.read_bytes()))
                        rows.writerow([of.name, way, checkpointed, *_row(told, way)])


def _row(told: dict[str, Any], way: str) -> Iterator[object]:
    adapted = told.get("adapted", 0)
    if way.startswith("lokr"):
        gradients = 2 * told["trained"]
        adapted = " ".join(f"{shape}:{layers}" for shape, layers in adapted.items())
    else:
        full = {"full-mixed": 4 * told["parameters"], "full-bf16": 2 * told["parameters"]}
        gradients = full.get(way, 4 * RANK * adapted)
    yield from (told["parameters"], told["bytes"], adapted or "")
    found = {(round(min(1.0, first / gradients), 4), *(round(each) for each in rest)) for first, *rest in moments(told)}
    yield " ".join(
        ":".join(f"{each:g}" if isinstance(each, float) else str(each) for each in one) for one in sorted(found)
    )


def moments(told: dict[str, Any]) -> list[tuple[int, float, float, float, float]]:
    """The moments of a step that are its peak for some batch and size.

    Of each: bytes of gradients, bytes whatever the batch, the same for each position of the latent, and both again for
    each sample of a batch. Once gradients count as they come to be, once as if all were there (accumulation).
    """
    curve = list(_alive(told["events"], told["positions"], told.get("samples", 997)))
    first = told["positions"][0]
    return sorted(
        {
            max(curve, key=lambda at: counts * at[0] + at[1] + at[2] * many + batch * (at[3] + at[4] * many))
            for counts in (1, 0)
            for batch in (1, 2, 4, 8, 16, 32, 64)
            for many in (first / 4, first, first * 4, first * 16, first * 64)
        }
    )


def _alive(events: list[Any], positions: list[int], samples: int) -> Iterator[tuple[int, float, float, float, float]]:
    """What is alive after each event in which something was made."""
    first, second = positions
    made = collections.Counter((small, large) for (number, small, _), (_, large, _) in events if number > 0)
    gradients, alive = 0, [0.0, 0.0, 0.0, 0.0]
    for (number, small, is_gradient), (_, large, _) in events:
        sign = 1 if number > 0 else -1
        slope = (large - small) / (second - first)
        if is_gradient:
            gradients += sign * small
        else:
            one_by_one = made[small, large] % samples == 0 or (small != large and made[small, large] > samples)
            each = one_by_one or (small % samples == 0 and large % samples == 0)
            at, share = (2, samples) if each else (0, 1)
            alive[at] += sign * (small - slope * first) / share
            alive[at + 1] += sign * slope / share
        if sign > 0:
            constant, position, sample, each_position = (round(one, 3) for one in alive)
            yield gradients, constant, position, sample, each_position


if __name__ == "__main__":
    main()
