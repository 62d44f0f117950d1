"""Which runs `measure_gpu` measures: series in which one thing changes, and combinations drawn by lot.

A series shows what a term of the formula is worth; the combinations are what the bound is judged on, for nobody chose
them. Needs neither torch nor Sagefit.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

CONFIGURATION = [
    *("kind", "model", "method", "lora_rank", "lora_targets", "base_dtype", "precision", "optimizer", "micro_batch"),
    *(
        "sequence_length",
        "lengths",
        "image_size",
        "frames",
        "accumulation",
        "gradient_checkpointing",
        "attention",
        "sharding",
    ),
    *("world_size", "reshard", "load", "stack", "allocator", "trained_stages", "steps", "series", "limit_gib"),
]
MEASURED = [
    *("outcome", "retries", "allocated_gib", "reserved_gib", "outside_gib", "static_gib", "forward_gib"),
    *("backward_gib", "optimizer_gib", "step_seconds", "params", "trained", "gpu", "torch", "library"),
]
COLUMNS = CONFIGURATION + MEASURED

DEFAULTS: Row = {
    "kind": "text",
    "method": "full",
    "lora_rank": 16,
    "lora_targets": "all-linear",
    "base_dtype": "default",
    "precision": "bf16-mixed",
    "optimizer": "adamw",
    "micro_batch": 1,
    "sequence_length": 1024,
    "lengths": "fixed",
    "image_size": 0,
    "frames": "",  # of a video; empty: an image
    "accumulation": 1,
    "gradient_checkpointing": "no",
    "attention": "sdpa",
    "sharding": "none",
    "world_size": 1,
    "reshard": "",
    "load": "",
    "stack": "hf-trainer",
    "allocator": "default",
    "trained_stages": "",
    "steps": 4,
    "limit_gib": "",  # what the allocator may reserve once the model is there; empty: all there is
}
LIMITS = (1.02, 1.05, 1.1, 1.2)  # of what a run allocates at its peak where nothing limits it
# Billions of parameters, for choosing and for sharing a GPU.
SIZES = {
    "HuggingFaceTB/SmolLM2-135M": 0.135,
    "HuggingFaceTB/SmolLM2-360M": 0.36,
    "HuggingFaceTB/SmolLM2-1.7B": 1.7,
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": 1.1,
    "meta-llama/Llama-3.2-1B": 1.24,
    "meta-llama/Llama-3.2-3B": 3.2,
    "meta-llama/Llama-3.1-8B": 8.0,
    "meta-llama/Llama-2-7b-hf": 6.7,
    "mistralai/Mistral-7B-v0.1": 7.2,
    "Qwen/Qwen2.5-0.5B": 0.5,
    "Qwen/Qwen2.5-1.5B": 1.5,
    "Qwen/Qwen2.5-3B": 3.1,
    "Qwen/Qwen2.5-7B": 7.6,
    "Qwen/Qwen3-0.6B": 0.6,
    "Qwen/Qwen3-1.7B": 1.7,
    "Qwen/Qwen3-4B": 4.0,
    "Qwen/Qwen3-8B": 8.2,
    "google/gemma-2b": 2.5,
    "google/gemma-2-2b": 2.6,
    "google/gemma-3-1b-pt": 1.0,
    "microsoft/phi-2": 2.8,
    "microsoft/Phi-3-mini-4k-instruct": 3.8,
    "allenai/OLMo-2-1124-7B": 7.3,
    "bigcode/starcoder2-3b": 3.0,
    "stabilityai/stablelm-2-1_6b": 1.6,
    "EleutherAI/pythia-410m": 0.4,
    "EleutherAI/pythia-1.4b": 1.4,
    "openai-community/gpt2": 0.124,
    "openai-community/gpt2-large": 0.77,
    "facebook/opt-1.3b": 1.3,
}
# Denoisers: billions of parameters, and how many of what follows a run has: images, or frames of a video.
DENOISERS = {
    "stable-diffusion-1.5": (0.86, 1),
    "stable-diffusion-2.1": (0.87, 1),
    "stable-diffusion-xl": (2.57, 1),
    "kolors": (2.58, 1),
    "stable-cascade-prior": (3.6, 1),
    "stable-diffusion-3-medium": (2.0, 1),
    "stable-diffusion-3.5-medium": (2.24, 1),
    "stable-diffusion-3.5-large": (8.1, 1),
    "flux.1-dev": (11.9, 1),
    "chroma": (8.9, 1),
    "pixart-sigma": (0.61, 1),
    "sana-1.6b": (1.6, 1),
    "auraflow": (6.8, 1),
    "lumina-image-2.0": (2.6, 1),
    "qwen-image": (20.4, 1),
    "cogview4-6b": (6.4, 1),
    "cogvideox-2b": (1.7, 17),
    "cogvideox-5b": (5.6, 17),
    "wan2.1-1.3b": (1.4, 17),
    "wan2.1-14b": (14.3, 17),
    "wan2.2-5b": (5.0, 33),
    "ltx-video-2b": (1.9, 49),
    "hunyuan-video": (12.8, 17),
    "mochi-1": (10.0, 19),
}
SIZES_OF_OTHERS = {
    "meta-llama/Llama-2-13b-hf": 13.0,
    "meta-llama/Llama-2-70b-hf": 69.0,
    "Qwen/Qwen2.5-32B": 32.8,
    "google-bert/bert-base-uncased": 0.11,
    "google-bert/bert-large-uncased": 0.34,
    "FacebookAI/roberta-base": 0.125,
    "google/electra-base-discriminator": 0.11,
    "distilbert/distilbert-base-uncased": 0.067,
    "answerdotai/ModernBERT-base": 0.15,
    "google-t5/t5-base": 0.22,
    "google/flan-t5-base": 0.25,
    "google-t5/t5-large": 0.74,
    "facebook/bart-base": 0.14,
    "facebook/bart-large": 0.41,
    "openai/whisper-small": 0.24,
    "openai/whisper-medium": 0.77,
    "openai/whisper-large-v3": 1.55,
    **{name: size for name, (size, _) in DENOISERS.items()},
    "Qwen/Qwen2.5-VL-3B-Instruct": 3.75,
}
ENCODERS = [
    "google-bert/bert-base-uncased",
    "google-bert/bert-large-uncased",
    "FacebookAI/roberta-base",
    "google/electra-base-discriminator",
    "distilbert/distilbert-base-uncased",
    "answerdotai/ModernBERT-base",
]
PAIRS = ["google-t5/t5-base", "google/flan-t5-base", "google-t5/t5-large", "facebook/bart-base", "facebook/bart-large"]
SPEECH = ["openai/whisper-small", "openai/whisper-medium", "openai/whisper-large-v3"]
LIGER = ("llama", "Llama", "SmolLM2", "TinyLlama", "Qwen2.5", "Qwen3", "Mistral", "gemma", "Phi-3", "OLMo")
CLASSIFIERS = [
    *("resnet18", "resnet50", "resnet101", "convnext_tiny", "efficientnet_b0", "efficientnet_b4", "densenet121"),
    *("mobilenetv3_large_100", "regnety_032", "vgg16", "vit_small_patch16_224", "vit_base_patch16_224"),
    *("vit_large_patch16_224", "deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "swin_base_patch4_window7_224"),
]

_SMALL: Row = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "ffn": 128, "vocab": 512}
LORA: Row = {"method": "lora", "base_dtype": "16-bit"}
QLORA: Row = {"method": "qlora", "base_dtype": "16-bit"}
YES: Row = {"gradient_checkpointing": "yes"}


def configurations() -> Iterator[Row]:
    """The rows to measure, without what is measured; each once."""
    seen = set()
    for row in _all():
        key = tuple(row[name] for name in CONFIGURATION if name != "series")
        if key not in seen:
            seen.add(key)
            yield row


def limited(measured: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Runs again with less memory than they reserved, and more than they allocated: do they live?

    An allocator gives back what no tensor needs before a run dies, so what a run needs lies between the two.
    """
    for row in measured:
        allocated, reserved = (float(row.get(f"{name}_gib") or 0) for name in ("allocated", "reserved"))
        if not asked(row):
            continue
        configuration = {name: row.get(name, "") for name in CONFIGURATION}
        numbers = {name: int(configuration[name]) for name in DEFAULTS if str(configuration[name]).isdigit()}
        for limit in LIMITS:
            if limit * allocated < reserved:
                yield configuration | numbers | {"series": "limited", "limit_gib": f"{limit * allocated:.2f}"}


def asked(row: Mapping[str, Any]) -> bool:
    """Whether a measured run is asked how little memory it lives with.

    Half of the runs drawn by lot and of the sharded ones, chosen by a checksum, with 1 to 40 GiB of tensors.
    """
    configuration = [str(row.get(name, "")) for name in CONFIGURATION if name != "frames"]  # a later column
    if row.get("limit_gib") or row["series"] not in ("drawn", "sharded") or row["outcome"] != "ended":
        return False
    return zlib.crc32(repr(configuration).encode()) % 2 == 0 and 1 < float(row["allocated_gib"]) * LIMITS[0] < 40


@dataclass(frozen=True)
class Needed:
    """What a run reserved where nothing limited it, and whether it lived with each of `LIMITS`.

    All are multiples of what its tensors needed at the peak.
    """

    reserved: float
    lives: dict[float, bool]


def needed(rows: Sequence[Row]) -> Iterator[tuple[Row, Needed]]:
    """Each run of ``rows`` that was asked how little memory it lives with, where all limits below were measured."""
    known = {tuple(str(row[name]) for name in CONFIGURATION): row["outcome"] == "ended" for row in rows}
    for row in filter(asked, rows):
        again = [tuple(str(each[name]) for name in CONFIGURATION) for each in limited([row])]
        if all(each in known for each in again):
            lived = dict(zip(LIMITS, (known[each] for each in again), strict=False))
            ratio = float(row["reserved_gib"]) / float(row["allocated_gib"])
            yield row, Needed(ratio, {limit: lived.get(limit, True) for limit in LIMITS})


def tries() -> Iterator[Row]:
    """A small run of each way to train, for a machine without a GPU: that the programs work, not what they measure."""
    llama, loop = "meta-llama/Llama-3.2-1B", {"stack": "plain-torch"}
    for model, changes in (
        (llama, {"lengths": "varied", "accumulation": 2}),
        (llama, loop | LORA | YES),
        (llama, loop | YES | {"sharding": "fsdp2", "world_size": 4, "reshard": "yes", "load": "device"}),
        (llama, {"sharding": "ddp", "world_size": 2}),
        ("google-bert/bert-base-uncased", loop),
        ("google-t5/t5-base", YES),
    ):
        row = _row("try", model, micro_batch=2, sequence_length=64, **changes)
        yield row | {"shape": _SMALL | {"encoder_layers": 2}}


def _all() -> Iterator[Row]:
    yield from _tokens()
    yield from _one_by_one()
    yield from _sharded()
    yield from _images()
    yield from _diffusion()
    yield from _seeing()
    yield from _drawn()
    yield from _speed()


def _row(series: str, model: str, **changes: Any) -> Row:
    row = DEFAULTS | changes | {"model": model, "series": series}
    return row | ({"attention": "eager"} if "gemma-2-" in model else {})  # it has no other


def _tokens() -> Iterator[Row]:
    """Tokens of a batch, for the way each kind of training grows with them."""
    kinds: list[Row] = [{}, {"precision": "bf16"}, LORA, QLORA]
    for model in ("meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-1.5B", "mistralai/Mistral-7B-v0.1"):
        for kind in kinds:
            for checkpointing in ("no", "yes"):
                for stack in ("hf-trainer", "hf-liger"):
                    for micro_batch, length in ((1, 512), (1, 2048), (4, 1024), (1, 4096), (2, 4096)):
                        full = kind.get("method", "full") == "full"
                        if full and model.startswith("mistral"):
                            continue
                        changes = kind | {"gradient_checkpointing": checkpointing, "stack": stack}
                        yield _row("tokens", model, micro_batch=micro_batch, sequence_length=length, **changes)


def _one_by_one() -> Iterator[Row]:
    """One thing changes, on small models."""
    for model in ("Qwen/Qwen2.5-0.5B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "EleutherAI/pythia-410m"):
        start: Row = {"micro_batch": 4, "sequence_length": 1024}
        for change in (
            {},
            YES,
            {"precision": "fp32"},
            {"precision": "fp16-mixed"},
            {"precision": "bf16"},
            {"optimizer": "adafactor"},
            {"optimizer": "sgd"},
            {"optimizer": "lion"},
            {"optimizer": "adamw-8bit"},
            {"optimizer": "paged-adamw-8bit"},
            {"accumulation": 4},
            {"attention": "eager"},
            {"attention": "eager"} | YES,
            {"stack": "plain-torch"},
            {"stack": "plain-torch"} | YES,
            {"stack": "plain-torch", "accumulation": 4},
            {"stack": "plain-torch", "precision": "bf16"},
            {"stack": "plain-torch", "precision": "fp32"},
            LORA,
            LORA | YES,
            LORA | {"lora_rank": 64},
            LORA | {"lora_rank": 256},
            LORA | {"lora_targets": "attention"},
            LORA | {"base_dtype": "fp32"},
            LORA | {"precision": "bf16"},
            QLORA,
            QLORA | YES,
            QLORA | YES | {"optimizer": "paged-adamw-8bit"},
        ):
            if "pythia" in model and change.get("lora_targets"):
                continue
            yield _row("one by one", model, **start | change)
    for model in ("Qwen/Qwen2.5-1.5B", "meta-llama/Llama-3.2-1B"):  # lengths and the allocator
        for kind in ({}, YES, LORA, LORA | YES, QLORA | YES):
            for allocator in ("default", "expandable"):
                for micro_batch, length in ((4, 1024), (2, 4096)):
                    changes = kind | {"micro_batch": micro_batch, "sequence_length": length, "allocator": allocator}
                    yield _row("allocator", model, lengths="varied", steps=16, **changes)
                    yield _row("allocator", model, **changes)


def _sharded() -> Iterator[Row]:
    """Sharding over several GPUs, seen from rank 0 of them."""
    plain: Row = {"stack": "plain-torch"}
    for model, load in (
        ("HuggingFaceTB/SmolLM2-1.7B", "device"),
        ("meta-llama/Llama-3.2-3B", "device"),
        ("mistralai/Mistral-7B-v0.1", "meta"),
        ("meta-llama/Llama-2-13b-hf", "meta"),
        ("Qwen/Qwen2.5-32B", "meta"),
        ("meta-llama/Llama-2-70b-hf", "meta"),
    ):
        size = {**SIZES, **SIZES_OF_OTHERS}[model]
        for version in ("fsdp1", "fsdp2"):
            for ranks in (2, 4, 8, 32):
                for precision in ("bf16-mixed", "bf16"):
                    for reshard in ("yes", "no"):
                        each = 16 if precision == "bf16-mixed" else 8
                        whole = 0 if reshard == "yes" else 2
                        if size * (each / ranks + whole) > 60 or (ranks == 4 and reshard == "no"):
                            continue
                        common = plain | YES | {"world_size": ranks, "precision": precision, "load": load}
                        more = {"sharding": version, "reshard": reshard}
                        yield _row("sharded", model, micro_batch=2, sequence_length=2048, **common | more)
                        if ranks == 8 and reshard == "yes":
                            yield _row("sharded", model, micro_batch=1, sequence_length=1024, **common | more)
                            no = {"gradient_checkpointing": "no"}
                            yield _row("sharded", model, micro_batch=1, sequence_length=1024, **common | more | no)
    for model in ("HuggingFaceTB/SmolLM2-360M", "meta-llama/Llama-3.2-1B"):
        for precision in ("bf16-mixed", "bf16", "fp32"):
            for ranks in (2, 8):
                changes = {"precision": precision, "world_size": ranks, "micro_batch": 2}
                yield _row("sharded", model, sharding="ddp", **plain | changes)
                yield _row("sharded", model, sharding="ddp", **changes)
    for model in ("HuggingFaceTB/SmolLM2-1.7B", "meta-llama/Llama-3.2-3B"):
        for version in ("fsdp1", "fsdp2"):
            for precision in ("bf16-mixed", "bf16"):
                for ranks in (2, 8):
                    changes = {"precision": precision, "world_size": ranks, "micro_batch": 2, "sequence_length": 2048}
                    yield _row("sharded", model, sharding=version, reshard="yes", load="device", **changes | YES)


def _images() -> Iterator[Row]:
    """Classification, detection and segmentation."""
    loop: Row = {"kind": "vision", "stack": "plain-torch", "sequence_length": 0, "optimizer": "sgd-momentum"}
    for number, model in enumerate(CLASSIFIERS):
        for precision in ("fp32", "bf16-mixed", "fp16-mixed"):
            for micro_batch in (8, 32, 128):
                optimizer = "adamw" if (number + micro_batch) % 3 == 0 else "sgd-momentum"
                changes = {"precision": precision, "micro_batch": micro_batch, "optimizer": optimizer}
                yield _row("images", model, image_size=224, **loop | changes)
    for model in ("resnet50", "convnext_tiny", "vit_base_patch16_224", "efficientnet_b4"):
        yield _row("images", model, image_size=384, **loop | {"micro_batch": 32})
        yield _row("images", model, image_size=224, **loop | {"micro_batch": 32} | YES)
    for model, sides in (
        ("fasterrcnn_resnet50_fpn", (640, 800, 1024)),
        ("maskrcnn_resnet50_fpn", (800,)),
        ("retinanet_resnet50_fpn", (640, 800)),
        ("fcos_resnet50_fpn", (800,)),
        ("ssd300_vgg16", (300,)),
        ("detr_resnet50", (640, 800)),
        ("yolos_small", (512, 800)),
        ("rtdetr_r50", (640,)),
        ("deeplabv3_resnet50", (512,)),
        ("fcn_resnet50", (512,)),
        ("segformer-b0", (512,)),
        ("segformer-b2", (512,)),
        ("segformer-b5", (512, 640)),
    ):
        for side in sides:
            for micro_batch in (2, 4, 8):
                for precision in ("fp32", "bf16-mixed"):
                    changes = {"precision": precision, "micro_batch": micro_batch}
                    stages = 3 if "rcnn" in model or "retina" in model or "fcos" in model else ""
                    yield _row("images", model, image_size=side, trained_stages=stages, **loop | changes)
    for stages in (1, 5):
        for model in ("fasterrcnn_resnet50_fpn", "retinanet_resnet50_fpn"):
            yield _row("images", model, image_size=800, trained_stages=stages, **loop | {"micro_batch": 4})


def _diffusion() -> Iterator[Row]:
    """Denoisers, with text and images encoded beforehand."""
    loop: Row = {"kind": "diffusion", "stack": "plain-torch", "sequence_length": 0}
    for model, sides, full in (
        ("stable-diffusion-1.5", (512, 768), True),
        ("stable-diffusion-xl", (1024,), True),
        ("stable-diffusion-3-medium", (1024,), True),
        ("flux.1-dev", (512, 1024), False),
    ):
        for side in sides:
            for micro_batch in (1, 4):
                for checkpointing in ("no", "yes"):
                    changes = {"micro_batch": micro_batch, "gradient_checkpointing": checkpointing}
                    yield _row(
                        "diffusion", model, image_size=side, **loop | LORA | changes | {"lora_targets": "attention"}
                    )
                    if full:
                        yield _row("diffusion", model, image_size=side, **loop | changes)
                        yield _row("diffusion", model, image_size=side, **loop | changes | {"optimizer": "adamw-8bit"})
    for name, (size, frames) in DENOISERS.items():
        sides = (256, 512) if frames > 1 else (512, 1024)
        for number, side in enumerate(sides):
            common = loop | {"image_size": side, "frames": frames if frames > 1 else ""}
            for checkpointing in ("no", "yes"):
                more = {"gradient_checkpointing": checkpointing, "micro_batch": 1 if number else 2}
                yield _row("denoisers", name, **common | LORA | more | {"lora_targets": "attention"})
                if size < 7:
                    yield _row("denoisers", name, **common | {"precision": "bf16"} | more)
            if number and size < 15:
                yield _row("denoisers", name, **common | LORA | YES | {"lora_rank": 64, "micro_batch": 2})


def _seeing() -> Iterator[Row]:
    """Vision-language models: one image a sequence."""
    loop: Row = {"kind": "vision-language", "stack": "plain-torch"}
    for side in (448, 896):
        for micro_batch in (1, 4):
            for kind in (LORA, LORA | YES, LORA | {"lora_targets": "attention"} | YES, {"precision": "bf16"} | YES):
                changes = {"image_size": side, "micro_batch": micro_batch, "sequence_length": 2048}
                yield _row("seeing", "Qwen/Qwen2.5-VL-3B-Instruct", **loop | kind | changes)


def _drawn() -> Iterator[Row]:
    """Combinations drawn by lot, as far as they are likely to hold on 80 GB."""
    draw = random.Random(2026)
    found = 0
    while found < 260:
        model = draw.choice([*SIZES, *ENCODERS, *PAIRS, *SPEECH])
        row = _row(
            "drawn",
            model,
            method=draw.choice(["full", "lora", "lora", "qlora"]) if model in SIZES else "full",
            lora_rank=draw.choice([8, 16, 32, 64, 128]),
            lora_targets=draw.choice(["all-linear", "all-linear", "attention"]),
            base_dtype=draw.choice(["16-bit", "16-bit", "fp32"]),
            precision=draw.choice(["bf16-mixed", "bf16-mixed", "bf16", "fp32", "fp16-mixed"]),
            optimizer=draw.choice(["adamw", "adamw", "adamw", "adafactor", "sgd", "adamw-8bit", "paged-adamw-8bit"]),
            micro_batch=draw.choice([1, 2, 4, 8, 16, 32]),
            sequence_length=draw.choice([128, 256, 512, 1024, 2048, 4096, 8192]),
            lengths=draw.choice(["fixed", "varied"]),
            accumulation=draw.choice([1, 1, 2, 4]),
            gradient_checkpointing=draw.choice(["yes", "no"]),
            attention=draw.choice(["sdpa", "sdpa", "sdpa", "eager"]),
            stack=draw.choice(["hf-trainer", "hf-trainer", "hf-liger", "plain-torch"]),
            allocator=draw.choice(["default", "default", "expandable"]),
        )
        if row["lengths"] == "varied":
            row["steps"] = 12
        if row["method"] == "full":
            row |= {"lora_rank": 16, "lora_targets": "all-linear", "base_dtype": "default"}
        if row["method"] == "qlora":
            row["base_dtype"] = "16-bit"
        if _sensible(row):
            found += 1
            yield row


def _sensible(row: Row) -> bool:
    """A run that somebody would start, that its software takes and that holds on 80 GB."""
    model, tokens = row["model"], row["micro_batch"] * row["sequence_length"]
    if model in ENCODERS + PAIRS and row["sequence_length"] > 512:
        return False
    if model in SPEECH and (row["sequence_length"] > 256 or row["micro_batch"] > 16):
        return False
    if (row["sequence_length"] > 1024 and "gpt2" in model) or (row["sequence_length"] > 2048 and "opt" in model):
        return False
    if row["stack"] == "hf-liger" and (model not in SIZES or not any(each in model for each in LIGER)):
        return False
    if row["stack"] == "plain-torch" and row["optimizer"] == "adafactor":
        return False  # torch's own has other states than transformers'
    if row["lora_targets"] == "attention" and any(each in model for each in ("pythia", "gpt2", "phi", "Phi", "bloom")):
        return False
    if (row["attention"] == "eager" and row["sequence_length"] > 2048) or (
        row["accumulation"] > 1 and row["steps"] > 4
    ):
        return False
    if row["precision"] == "fp16-mixed" and row["base_dtype"] == "16-bit":
        return False
    if row["precision"] == "bf16" and row["base_dtype"] == "fp32":
        return False
    return 256 <= tokens <= 32768 and _guess(row) < 70


def _speed() -> Iterator[Row]:
    """Runs whose time counts: alone on the GPU, a batch that fills it."""
    for model in ("Qwen/Qwen2.5-0.5B", "meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.1-8B"):
        for kind in ({}, {"precision": "bf16"}, LORA, QLORA):
            for checkpointing in ("no", "yes"):
                size = SIZES[model]
                if kind.get("method", "full") == "full" and size * (16 if not kind else 8) > 55:
                    continue
                changes = kind | {"gradient_checkpointing": checkpointing, "micro_batch": 2, "sequence_length": 2048}
                yield _row("speed", model, steps=8, **changes)
    for model in ("google-bert/bert-base-uncased", "google-bert/bert-large-uncased"):
        for precision in ("fp32", "bf16-mixed"):
            yield _row("speed", model, precision=precision, micro_batch=32, sequence_length=512, steps=8)
    for model in ("resnet50", "vit_base_patch16_224", "convnext_tiny"):
        for precision in ("fp32", "bf16-mixed"):
            loop = {"kind": "vision", "stack": "plain-torch", "sequence_length": 0, "optimizer": "sgd-momentum"}
            yield _row("speed", model, image_size=224, precision=precision, micro_batch=128, steps=12, **loop)


def expected_gib(row: Row) -> float:
    """A rough guess of the peak in GiB, for sharing a GPU between runs; what it misses is repeated alone."""
    return float(row["limit_gib"]) + 1 if row["limit_gib"] else 0.6 * _guess(row)


def _guess(row: Row) -> float:
    size: float = (SIZES | SIZES_OF_OTHERS).get(row["model"], 0.05)
    states = size * _state_bytes(row) + (0 if row["method"] == "full" else 0.5)
    checkpointed = row["gradient_checkpointing"] == "yes"
    batch: int = row["micro_batch"]
    if row["kind"] == "vision":
        heavy = "fpn" in row["model"] or "former" in row["model"]
        pixels: float = batch * max(row["image_size"], 32) ** 2 / 224**2
        return 2 + states + pixels * (0.35 if heavy else 0.22)
    if row["kind"] == "diffusion":
        latents: float = batch * (row["image_size"] / 512) ** 2
        latents *= (
            int(row["frames"] or 1) + 7
        ) // 8  # most autoencoders join four frames; tokens are dearer than pixels
        return 2 + states + latents * (1.5 + 0.1 * size if checkpointed else 4 + 2 * size)
    tokens: int = batch * (2000 if "whisper" in row["model"] else row["sequence_length"])
    layers: float = 3.2e-3 * max(size, 0.1) ** 0.67 * (0.15 if checkpointed else 1.6)
    scores: float = 2.88e-7 * row["sequence_length"] * (1 if checkpointed else 16) if row["attention"] == "eager" else 0
    return 2 + states + tokens * (layers + scores + (0 if row["stack"] == "hf-liger" else 1.5e-3))


def _state_bytes(row: Row) -> float:
    """Bytes of weights, gradients and optimizer states for each parameter of the model."""
    if row["method"] == "qlora":
        return 0.9
    if row["method"] == "lora":
        return 4.0 if row["base_dtype"] == "fp32" else 2.0
    each = 8 if row["precision"] == "bf16" else 16
    gathered = {"ddp": 4.0}.get(row["sharding"], 2.0 if row["reshard"] == "no" else 0.0)
    return gathered + each / (row["world_size"] if "fsdp" in row["sharding"] else 1)
