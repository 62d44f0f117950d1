"""The models that `measure_gpu` trains: how each is built with random weights, and its batches of random data.

Runs where there is torch and no Sagefit. Shapes come from the planner's own presets, or from the libraries' own
defaults where a family is not in them yet.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import denoisers

Row = dict[str, Any]
Batch = dict[str, Any]

PRESETS = Path(__file__).parents[2] / "python" / "sagefit" / "memory" / "presets.csv"
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

# transformers' name for the kind of model, and what its configuration calls what the presets have otherwise.
_USUAL = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "ffn": "intermediate_size",
    "vocab": "vocab_size",
}
_GROUPED = _USUAL | {"kv_heads": "num_key_value_heads"}
_HEADED = _GROUPED | {"head_dim": "head_dim"}
_T5 = {"layers": "num_decoder_layers", "encoder_layers": "num_layers", "hidden": "d_model", "heads": "num_heads"} | {
    "head_dim": "d_kv",
    "ffn": "d_ff",
    "vocab": "vocab_size",
}
_BART = {"hidden": "d_model", "vocab": "vocab_size", "layers": "decoder_layers", "encoder_layers": "encoder_layers"}
_NAMES: dict[str, dict[str, str]] = {
    "llama": _GROUPED,
    "mistral": _GROUPED,
    "qwen2": _GROUPED,
    "qwen3": _HEADED,
    "gemma": _HEADED,
    "gemma2": _HEADED,
    "gemma3_text": _HEADED,
    "phi": _USUAL,
    "phi3": _GROUPED,
    "olmo2": _GROUPED,
    "starcoder2": _GROUPED,
    "stablelm": _GROUPED,
    "gpt_neox": _USUAL,
    "gpt2": {"layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "vocab": "vocab_size"},
    "opt": _USUAL | {"ffn": "ffn_dim"},
    "bert": _USUAL,
    "roberta": _USUAL,
    "electra": _USUAL,
    "modernbert": _USUAL,
    "distilbert": {
        "layers": "n_layers",
        "hidden": "dim",
        "heads": "n_heads",
        "ffn": "hidden_dim",
        "vocab": "vocab_size",
    },
    "t5": _T5,
    "bart": _BART,
    "whisper": _BART,
}
TEXT: dict[str, tuple[str, Row]] = {
    "HuggingFaceTB/SmolLM2-135M": ("llama", {}),
    "HuggingFaceTB/SmolLM2-360M": ("llama", {}),
    "HuggingFaceTB/SmolLM2-1.7B": ("llama", {}),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": ("llama", {}),
    "meta-llama/Llama-3.2-1B": ("llama", {}),
    "meta-llama/Llama-3.2-3B": ("llama", {}),
    "meta-llama/Llama-3.1-8B": ("llama", {}),
    "meta-llama/Llama-2-7b-hf": ("llama", {}),
    "meta-llama/Llama-2-13b-hf": ("llama", {}),
    "meta-llama/Llama-2-70b-hf": ("llama", {}),
    "mistralai/Mistral-7B-v0.1": ("mistral", {"sliding_window": None}),
    "Qwen/Qwen2.5-0.5B": ("qwen2", {}),
    "Qwen/Qwen2.5-1.5B": ("qwen2", {}),
    "Qwen/Qwen2.5-3B": ("qwen2", {}),
    "Qwen/Qwen2.5-7B": ("qwen2", {}),
    "Qwen/Qwen2.5-32B": ("qwen2", {}),
    "Qwen/Qwen3-0.6B": ("qwen3", {}),
    "Qwen/Qwen3-1.7B": ("qwen3", {}),
    "Qwen/Qwen3-4B": ("qwen3", {}),
    "Qwen/Qwen3-8B": ("qwen3", {}),
    "google/gemma-2b": ("gemma", {}),
    "google/gemma-2-2b": ("gemma2", {}),
    "google/gemma-3-1b-pt": ("gemma3_text", {}),
    "microsoft/phi-2": ("phi", {}),
    "microsoft/Phi-3-mini-4k-instruct": ("phi3", {"pad_token_id": 0}),
    "allenai/OLMo-2-1124-7B": ("olmo2", {}),
    "bigcode/starcoder2-3b": ("starcoder2", {}),
    "stabilityai/stablelm-2-1_6b": ("stablelm", {"use_qkv_bias": True}),
    "EleutherAI/pythia-410m": ("gpt_neox", {}),
    "EleutherAI/pythia-1.4b": ("gpt_neox", {}),
    "openai-community/gpt2": ("gpt2", {}),
    "openai-community/gpt2-large": ("gpt2", {}),
    "facebook/opt-1.3b": ("opt", {}),
    "google-bert/bert-base-uncased": ("bert", {}),
    "google-bert/bert-large-uncased": ("bert", {}),
    "FacebookAI/roberta-base": ("roberta", {"max_position_embeddings": 514, "type_vocab_size": 1}),
    "google/electra-base-discriminator": ("electra", {}),
    "distilbert/distilbert-base-uncased": ("distilbert", {}),
    "answerdotai/ModernBERT-base": ("modernbert", {}),
    "google-t5/t5-base": ("t5", {}),
    "google/flan-t5-base": ("t5", {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "google-t5/t5-large": ("t5", {}),
    "facebook/bart-base": ("bart", {}),
    "facebook/bart-large": ("bart", {}),
    "openai/whisper-small": ("whisper", {"num_mel_bins": 80}),
    "openai/whisper-medium": ("whisper", {"num_mel_bins": 80}),
    "openai/whisper-large-v3": ("whisper", {"num_mel_bins": 128}),
}
_ENCODERS = {"bert", "roberta", "electra", "modernbert", "distilbert"}
_FRAMES = 3000  # of Whisper's input: 30 seconds


def preset(name: str) -> Row:
    """The planner's numbers for a model, counts as numbers."""
    with PRESETS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if name in row["names"].split():
                return {key: int(value) if value.isdigit() else value for key, value in row.items()}
    raise SystemExit(f"no preset is called {name}")


def text_config(row: Row) -> Any:
    """The configuration of a model of transformers; ``shape`` of a row changes it for a quick try."""
    kind, more = TEXT[row["model"]]
    shape = preset(row["model"]) | row.get("shape", {})
    fields = {theirs: shape[ours] for ours, theirs in _NAMES[kind].items()}
    if kind in ("bart", "whisper"):
        for side in ("encoder", "decoder"):
            fields |= {f"{side}_attention_heads": shape["heads"], f"{side}_ffn_dim": shape["ffn"]}
    if kind == "opt":
        fields["word_embed_proj_dim"] = shape["hidden"]
    if kind == "electra":
        fields["embedding_size"] = shape["hidden"]
    if kind not in (*_ENCODERS, "t5", "bart", "whisper", "gpt2", "opt"):
        fields |= {"tie_word_embeddings": bool(shape["tied"])}
    if kind not in ("t5", "whisper", "bart", "modernbert") and "max_position_embeddings" not in more:
        fields["max_position_embeddings"] = max(row["sequence_length"], 512)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "use_cache": False}
    if kind in ("t5", "bart", "whisper"):
        special["decoder_start_token_id"] = 1
    return importlib.import_module("transformers").AutoConfig.for_model(kind, **special | fields | more)


def text_class(row: Row) -> Any:
    """The class of transformers that trains such a model."""
    hf = importlib.import_module("transformers")
    kind = TEXT[row["model"]][0]
    if kind in _ENCODERS:
        return hf.AutoModelForSequenceClassification
    if kind == "whisper":
        return hf.AutoModelForSpeechSeq2Seq
    return hf.AutoModelForSeq2SeqLM if kind in ("t5", "bart") else hf.AutoModelForCausalLM


def text_model(row: Row, device: str) -> Any:
    """A model of transformers on ``device``, in the dtype that the row says, before adapters."""
    attention = {"attn_implementation": row["attention"]}
    with torch.device(device):
        return text_class(row).from_config(text_config(row), dtype=_DTYPES[weights_dtype(row)], **attention)


def weights_dtype(row: Row) -> str:
    """The dtype in which weights are loaded: pure 16 bits, or a frozen base that the row says is 16-bit."""
    if row["precision"] == "bf16" or (row["method"] != "full" and row["base_dtype"] == "16-bit"):
        return "bf16"
    return "fp32"


def text_batch(row: Row, length: int, generator: torch.Generator) -> Batch:
    """One batch of ``length`` tokens a sequence, on the CPU; Whisper hears 30 seconds and writes ``length`` tokens."""
    kind = TEXT[row["model"]][0]
    vocab = (preset(row["model"]) | row.get("shape", {}))["vocab"]
    size = row["micro_batch"]
    ids = torch.randint(3, vocab, (size, length), generator=generator)
    if kind == "whisper":
        mel = TEXT[row["model"]][1]["num_mel_bins"]
        return {"input_features": torch.randn(size, mel, _FRAMES, generator=generator), "labels": ids}
    if kind in _ENCODERS:
        labels = torch.zeros(size, dtype=torch.long)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


# --- models that look at images ---------------------------------------------------------------------------------------

_DETECTORS = {
    "fasterrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
    "retinanet_resnet50_fpn",
    "fcos_resnet50_fpn",
    "ssd300_vgg16",
}
_SEGMENTERS = {"deeplabv3_resnet50", "fcn_resnet50"}
_SEGFORMERS = {
    "segformer-b0": {},
    "segformer-b2": {"depths": [3, 4, 6, 3], "hidden_sizes": [64, 128, 320, 512], "decoder_hidden_size": 768},
    "segformer-b5": {"depths": [3, 6, 40, 3], "hidden_sizes": [64, 128, 320, 512], "decoder_hidden_size": 768},
}
_CLASSES, _BOXES = 80, 12


def vision_model(row: Row, device: str) -> Any:
    """A classifier of timm, a detector or segmenter of torchvision, or one of transformers, with random weights."""
    name = row["model"]
    with torch.device(device):
        if name in _DETECTORS:
            detection = importlib.import_module("torchvision.models.detection")
            more = {"trainable_backbone_layers": row["trained_stages"]} if row["trained_stages"] else {}
            sizes = {} if name.startswith("ssd") else {"min_size": row["image_size"], "max_size": row["image_size"]}
            return getattr(detection, name)(weights=None, weights_backbone=None, num_classes=_CLASSES, **more, **sizes)
        if name in _SEGMENTERS:
            segmentation = importlib.import_module("torchvision.models.segmentation")
            return getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=21)
        hf = importlib.import_module("transformers")
        if name in _SEGFORMERS:
            config = hf.SegformerConfig(num_labels=21, **_SEGFORMERS[name])
            return hf.SegformerForSemanticSegmentation(config)
        if name == "detr_resnet50":
            config = hf.DetrConfig(use_pretrained_backbone=False, num_labels=_CLASSES)
            return hf.DetrForObjectDetection(config)
        if name == "yolos_small":
            size = [row["image_size"], row["image_size"]]
            config = hf.YolosConfig(
                hidden_size=384, num_attention_heads=6, intermediate_size=1536, image_size=size, num_labels=_CLASSES
            )
            return hf.YolosForObjectDetection(config)
        if name == "rtdetr_r50":
            return hf.RTDetrForObjectDetection(hf.RTDetrConfig(num_labels=_CLASSES))
        extra = {"img_size": row["image_size"]} if name.startswith(("vit", "deit", "swin")) else {}
        model = importlib.import_module("timm").create_model(name, **extra)
    if row["gradient_checkpointing"] == "yes":
        model.set_grad_checkpointing()
    return model


def vision_batch(row: Row, generator: torch.Generator) -> Batch:
    """Images, and what the task asks for, on the CPU."""
    size, image, name = row["micro_batch"], row["image_size"], row["model"]
    images = torch.randn(size, 3, image, image, generator=generator)
    if name in _SEGMENTERS or name in _SEGFORMERS:
        side = image
        return {"images": images, "labels": torch.randint(21, (size, side, side), generator=generator)}
    if name in _DETECTORS or name in ("detr_resnet50", "yolos_small", "rtdetr_r50"):
        targets = []
        for _ in range(size):
            corner = torch.rand(_BOXES, 2, generator=generator) * 0.6
            sides = 0.1 + torch.rand(_BOXES, 2, generator=generator) * 0.3
            classes = torch.randint(1, _CLASSES, (_BOXES,), generator=generator)
            if name in _DETECTORS:
                target = {"boxes": torch.cat([corner, corner + sides], 1) * image, "labels": classes}
                if name.startswith("mask"):
                    target["masks"] = torch.randint(2, (_BOXES, image, image), generator=generator).to(torch.uint8)
            else:
                target = {"boxes": torch.cat([corner + sides / 2, sides], 1), "class_labels": classes}
            targets.append(target)
        return {"images": images, "targets": targets}
    return {"images": images, "labels": torch.randint(1000, (size,), generator=generator)}


def vision_loss(model: Any, row: Row, batch: Batch) -> Any:
    """The loss of a batch that is on the model's device."""
    name, functional = row["model"], torch.nn.functional
    if name in _DETECTORS:
        return sum(model(list(batch["images"]), batch["targets"]).values())
    if name in _SEGMENTERS:
        return functional.cross_entropy(model(batch["images"])["out"], batch["labels"])
    if name in _SEGFORMERS:
        return model(pixel_values=batch["images"], labels=batch["labels"]).loss
    if "targets" in batch:
        return model(pixel_values=batch["images"], labels=batch["targets"]).loss
    return functional.cross_entropy(model(batch["images"]), batch["labels"])


# --- diffusion --------------------------------------------------------------------------------------------------------


def diffusion_model(row: Row, device: str) -> Any:
    """The denoiser alone: text encoders and autoencoder are not in memory, their outputs are cached."""
    of = denoisers.BY_NAME[row["model"]]
    model = denoisers.build(of, device, _DTYPES[weights_dtype(row)], **row.get("shape", {}))
    if row["gradient_checkpointing"] == "yes":
        model.enable_gradient_checkpointing()
    return model


def diffusion_batch(row: Row, generator: torch.Generator) -> Batch:
    """Noisy latents of square images or videos, their time steps and the cached outputs of the text encoders."""
    of = denoisers.BY_NAME[row["model"]]
    size = denoisers.Size(row["image_size"], row["image_size"], int(row["frames"] or 1))
    return of.inputs(of, size, row["micro_batch"], denoisers.Maker("cpu", generator))


def diffusion_loss(model: Any, batch: Batch) -> Any:
    """The mean squared error of the noise that the model tells."""
    told = denoisers.predicted(model, batch)
    return torch.nn.functional.mse_loss(told.float(), torch.randn(told.shape, device=told.device))


# --- models that see and read -----------------------------------------------------------------------------------------


def seeing_model(row: Row, device: str) -> Any:
    """A vision-language model of transformers with its published shape."""
    hf = importlib.import_module("transformers")
    if row["model"] == "Qwen/Qwen2.5-VL-3B-Instruct":
        text = {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16}
        text |= {"num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}
        tower = {"out_hidden_size": 2048, "hidden_size": 1280, "intermediate_size": 3420, "depth": 32, "num_heads": 16}
        rope = {"rope_type": "default", "mrope_section": [16, 24, 24], "rope_theta": 1e6}
        config = hf.Qwen2_5_VLConfig(
            text_config=text | {"rope_parameters": rope} | row.get("shape", {}),
            vision_config=tower | row.get("tower", {}),
            tie_word_embeddings=True,
        )
        chosen = hf.Qwen2_5_VLForConditionalGeneration
    else:
        raise SystemExit(f"no model is called {row['model']}")
    with torch.device(device):
        return chosen._from_config(config, dtype=_DTYPES[weights_dtype(row)], attn_implementation=row["attention"])


def seeing_batch(row: Row, generator: torch.Generator) -> Batch:
    """One square image a sequence: patches of 14 pixels, of which four become one token; text fills the rest."""
    size, length = row["micro_batch"], row["sequence_length"]
    side = row["image_size"] // 28 * 2
    patches, tokens = side * side, side * side // 4
    ids = torch.randint(3, 1000, (size, length), generator=generator)
    ids[:, 4 : 4 + tokens] = 151655
    kinds = (ids == 151655).long()
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": kinds,
        "labels": ids.clone(),
        "pixel_values": torch.randn(size * patches, 3 * 2 * 14 * 14, generator=generator),
        "image_grid_thw": torch.tensor([[1, side, side]] * size),
    }


def batches(row: Row, lengths: list[int]) -> Iterator[Batch]:
    """A batch for each of the lengths."""
    generator = torch.Generator().manual_seed(7)
    of: dict[str, Callable[..., Batch]] = {
        "vision": vision_batch,
        "diffusion": diffusion_batch,
        "vision-language": seeing_batch,
    }
    for length in lengths:
        yield text_batch(row, length, generator) if row["kind"] == "text" else of[row["kind"]](row, generator)
