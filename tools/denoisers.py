"""Denoisers of diffusion models: the class of diffusers, its published configuration, and a batch for it.

``trace_diffusion`` counts their memory on the meta device, ``tests/accuracy/measure_gpu.py`` measures it on a GPU.
What the text encoders and the autoencoder make is in the batch: only the denoiser is trained. Configurations are those
published with each model (``config.json`` on the Hugging Face Hub); where that is the class's default, nothing is
written. All were checked by the number of parameters.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Config = dict[str, Any]
Batch = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """Pixels on a side of a square image, or height, width and frames of a video."""

    height: int
    width: int
    frames: int = 1


@dataclass(frozen=True)
class Denoiser:
    """One denoiser.

    ``channels`` are those of a latent, which has a position for ``shrink`` x ``shrink`` pixels and ``slow`` frames
    (the first frame has its own). ``text`` is how many tokens the text encoders make, ``wide`` how wide each is.
    """

    name: str
    kind: str
    inputs: Callable[[Denoiser, Size, int, Maker], Batch]
    config: Config = field(default_factory=dict)
    channels: int = 16
    shrink: float = 8
    slow: int = 1
    text: int = 77
    wide: int = 4096
    pooled: int = 0
    parameters: float = 0.0  # billions, as published: a check of the configuration
    samples: int = 997  # of the batch that is traced, a prime; fewer where samples are taken one by one

    def latent(self, size: Size) -> tuple[int, int, int]:
        """Frames, height and width of a latent."""
        return (size.frames - 1) // self.slow + 1, round(size.height / self.shrink), round(size.width / self.shrink)


class Maker:
    """Makes tensors of a batch on one device, floats in one dtype."""

    def __init__(self, device: str, generator: torch.Generator | None = None) -> None:
        self.device, self.generator = device, generator

    def noise(self, *shape: int) -> torch.Tensor:
        """Normal floats."""
        if self.device == "meta":
            return torch.empty(*shape, device="meta")
        return torch.randn(*shape, generator=self.generator)

    def whole(self, *shape: int, below: int = 1000) -> torch.Tensor:
        """Whole numbers from 0 on."""
        if self.device == "meta":
            return torch.empty(*shape, dtype=torch.long, device="meta")
        return torch.randint(below, shape, generator=self.generator)

    def ones(self, *shape: int, dtype: torch.dtype = torch.long) -> torch.Tensor:
        """A mask that leaves nothing out."""
        return torch.ones(*shape, dtype=dtype, device="meta" if self.device == "meta" else None)


def _image(of: Denoiser, size: Size, batch: int, make: Maker) -> torch.Tensor:
    _, height, width = of.latent(size)
    return make.noise(batch, of.channels, height, width)


def _video(of: Denoiser, size: Size, batch: int, make: Maker) -> torch.Tensor:
    return make.noise(batch, of.channels, *of.latent(size))


def _text(of: Denoiser, batch: int, make: Maker) -> torch.Tensor:
    return make.noise(batch, of.text, of.wide)


def _unet(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    said = {"sample": _image(of, size, batch, make), "timestep": make.whole(batch)}
    said["encoder_hidden_states"] = _text(of, batch, make)
    if of.pooled:
        said["added_cond_kwargs"] = {"text_embeds": make.noise(batch, of.pooled), "time_ids": make.noise(batch, 6)}
    return said


def _cascade(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    return {
        "sample": _image(of, size, batch, make),
        "timestep_ratio": make.noise(batch),
        "clip_text_pooled": make.noise(batch, 1, of.pooled),
        "clip_text": _text(of, batch, make),
        "clip_img": make.noise(batch, 1, 768),
    }


def _plain(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    said = {"hidden_states": _image(of, size, batch, make), "timestep": make.whole(batch)}
    said["encoder_hidden_states"] = _text(of, batch, make)
    if of.pooled:
        said["pooled_projections"] = make.noise(batch, of.pooled)
    return said


def _masked(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    mask = make.ones(batch, of.text)
    more = {"added_cond_kwargs": {"resolution": None, "aspect_ratio": None}} if of.kind.startswith("PixArt") else {}
    return _plain(of, size, batch, make) | {"encoder_attention_mask": mask} | more


def _omnigen(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    """OmniGen: the words are tokens of the same sequence, which has one more for the time; no image is given."""
    _, height, width = of.latent(size)
    tokens = of.text + 1 + (height // 2) * (width // 2)
    return {
        "hidden_states": _image(of, size, batch, make),
        "timestep": make.noise(batch),
        "input_ids": make.whole(batch, of.text),
        "input_img_latents": [],
        "input_image_sizes": {},
        "attention_mask": make.ones(batch, tokens, tokens),
        "position_ids": make.whole(batch, tokens),
    }


def _timed(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    return _plain(of, size, batch, make) | {"timestep": make.noise(batch)}


def _packed(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    """Flux and its relatives: four positions of a latent are one token."""
    _, height, width = of.latent(size)
    tokens = (height // 2) * (width // 2)
    axes = len(of.config.get("axes_dims_rope", (0, 0, 0)))
    said = {
        "hidden_states": make.noise(batch, tokens, of.channels * 4),
        "encoder_hidden_states": _text(of, batch, make),
        "timestep": make.noise(batch),
        "img_ids": make.noise(tokens, axes),
        "txt_ids": make.noise(of.text, axes),
    }
    if of.pooled:
        said["pooled_projections"] = make.noise(batch, of.pooled)
    if of.config.get("guidance_embeds"):
        said["guidance"] = make.noise(batch)
    if of.kind.startswith("Chroma"):
        said["attention_mask"] = make.ones(batch, of.text + tokens, dtype=torch.bool)
    return said


def _qwen(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    _, height, width = of.latent(size)
    return {
        "hidden_states": make.noise(batch, (height // 2) * (width // 2), of.channels * 4),
        "encoder_hidden_states": _text(of, batch, make),
        "encoder_hidden_states_mask": make.ones(batch, of.text),
        "timestep": make.noise(batch),
        "img_shapes": [[(1, height // 2, width // 2)]] * batch,
    }


def _cogview(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    sides = torch.tensor([[size.height, size.width]] * batch, dtype=torch.float32)
    sides = sides.to("meta") if make.device == "meta" else sides
    where = {"original_size": sides, "target_size": sides, "crop_coords": sides * 0}
    return _plain(of, size, batch, make) | where


def _cogvideo(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    frames, height, width = of.latent(size)
    said = {"hidden_states": make.noise(batch, frames, of.channels, height, width), "timestep": make.whole(batch)}
    said["encoder_hidden_states"] = _text(of, batch, make)
    if of.config.get("use_rotary_positional_embeddings"):
        tokens = frames * (height // 2) * (width // 2)
        said["image_rotary_emb"] = (make.noise(tokens, 64), make.noise(tokens, 64))
    return said


def _moving(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    said = {"hidden_states": _video(of, size, batch, make), "timestep": make.whole(batch)}
    said["encoder_hidden_states"] = _text(of, batch, make)
    if of.kind.startswith(("Hunyuan", "Mochi")):
        said["encoder_attention_mask"] = make.ones(batch, of.text)
    if of.pooled:
        said["pooled_projections"] = make.noise(batch, of.pooled)
    if of.config.get("guidance_embeds") or of.kind.startswith("Hunyuan"):
        said["guidance"] = make.noise(batch)
    return said


def _lumina(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    """Its mask holds values even without a GPU: how long each text is decides what is cut out of a sample."""
    mask = torch.ones(batch, of.text, dtype=torch.bool, device="cpu")
    return _plain(of, size, batch, make) | {"encoder_attention_mask": mask}


def _listed(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    """Z-Image takes samples as a list, each with one frame."""
    images = _image(of, size, batch, make).unsqueeze(2)
    return {"x": list(images.unbind()), "t": make.noise(batch), "cap_feats": list(_text(of, batch, make).unbind())}


def _ernie(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    return {
        "hidden_states": _image(of, size, batch, make),
        "timestep": make.noise(batch),
        "text_bth": _text(of, batch, make),
        "text_lens": make.whole(batch, below=of.text),
    }


def _hidream(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    """Every block reads what one layer of a language model makes of the text, beside that of another encoder."""
    return {
        "hidden_states": _image(of, size, batch, make),
        "timesteps": make.noise(batch),
        "encoder_hidden_states_t5": _text(of, batch, make),
        "encoder_hidden_states_llama3": make.noise(32, batch, of.text, of.wide),
        "pooled_embeds": make.noise(batch, of.pooled),
    }


def _kandinsky(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    """Channels come last, and one that also continues a video has its frames and a mask beside the noise."""
    frames, height, width = of.latent(size)
    channels = 2 * of.channels + 1 if of.config.get("visual_cond") else of.channels
    where = [torch.arange(each, device="meta" if make.device == "meta" else None) for each in (frames, height, width)]
    return {
        "hidden_states": make.noise(batch, frames, height, width, channels),
        "encoder_hidden_states": _text(of, batch, make),
        "pooled_projections": make.noise(batch, of.pooled),
        "timestep": make.noise(batch),
        "visual_rope_pos": (where[0], where[1][: height // 2], where[2][: width // 2]),
        "text_rope_pos": torch.arange(of.text, device="meta" if make.device == "meta" else None),
    }


def _ltx(of: Denoiser, size: Size, batch: int, make: Maker) -> Batch:
    frames, height, width = of.latent(size)
    return {
        "hidden_states": make.noise(batch, frames * height * width, of.channels),
        "encoder_hidden_states": _text(of, batch, make),
        "timestep": make.noise(batch),
        "encoder_attention_mask": make.ones(batch, of.text),
        "num_frames": frames,
        "height": height,
        "width": width,
    }


_SDXL = {
    "block_out_channels": (320, 640, 1280),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "transformer_layers_per_block": (1, 2, 10),
    "attention_head_dim": (5, 10, 20),
    "cross_attention_dim": 2048,
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
    "sample_size": 128,
}
_KOLORS = {
    "projection_class_embeddings_input_dim": 5632,
    "encoder_hid_dim": 4096,
    "encoder_hid_dim_type": "text_proj",
}
_SD3 = {
    "num_layers": 24,
    "num_attention_heads": 24,
    "caption_projection_dim": 1536,
    "pos_embed_max_size": 192,
}
_SD35_MEDIUM = _SD3 | {
    "pos_embed_max_size": 384,
    "dual_attention_layers": tuple(range(13)),
    "qk_norm": "rms_norm",
}
_SD35_LARGE = {
    "num_layers": 38,
    "num_attention_heads": 38,
    "caption_projection_dim": 2432,
    "pos_embed_max_size": 192,
    "qk_norm": "rms_norm",
}
_CASCADE = {
    "conditioning_dim": 2048,
    "clip_text_in_channels": 1280,
    "clip_text_pooled_in_channels": 1280,
    "clip_image_in_channels": 768,
    "switch_level": [False],
    "in_channels": 16,
    "out_channels": 16,
}
_KLEIN_4B = {
    "num_layers": 5,
    "num_single_layers": 20,
    "num_attention_heads": 24,
    "joint_attention_dim": 7680,
    "axes_dims_rope": (32, 32, 32, 32),
}
_KLEIN_9B = _KLEIN_4B | {
    "num_layers": 8,
    "num_single_layers": 24,
    "num_attention_heads": 32,
    "joint_attention_dim": 12288,
}
_ERNIE = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_layers": 36,
    "ffn_hidden_size": 12288,
    "text_in_dim": 3072,
}
_HIDREAM = {
    "patch_size": 2,
    "in_channels": 16,
    "caption_channels": [4096, 4096],
    "llama_layers": [*range(32), *[31] * 16],
    "axes_dims_rope": (64, 32, 32),
}
_KANDINSKY_VIDEO = {
    "in_visual_dim": 16,
    "out_visual_dim": 16,
    "model_dim": 1792,
    "ff_dim": 7168,
    "num_text_blocks": 2,
    "num_visual_blocks": 32,
    "axes_dims": (16, 24, 24),
    "visual_cond": True,
}
_KANDINSKY_IMAGE = _KANDINSKY_VIDEO | {
    "model_dim": 2560,
    "ff_dim": 10240,
    "num_visual_blocks": 50,
    "axes_dims": (32, 48, 48),
    "visual_cond": False,
}
_COG_5B = {"num_attention_heads": 48, "num_layers": 42, "use_rotary_positional_embeddings": True}
_WAN_SMALL = {"num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30}
_WAN_22 = {"num_attention_heads": 24, "ffn_dim": 14336, "num_layers": 30, "in_channels": 48, "out_channels": 48}

# Factors of the rotation of each pair of 96 dimensions; they change numbers, not sizes.
_OMNIGEN = {"rope_scaling": {"short_factor": [1.0] * 48, "long_factor": [1.0] * 48, "type": "su"}}

DENOISERS: tuple[Denoiser, ...] = (
    Denoiser(
        "stable-diffusion-1.5",
        "UNet2DConditionModel",
        _unet,
        {"cross_attention_dim": 768, "attention_head_dim": 8, "sample_size": 64},
        channels=4,
        wide=768,
        parameters=0.86,
    ),
    Denoiser(
        "stable-diffusion-2.1",
        "UNet2DConditionModel",
        _unet,
        {
            "cross_attention_dim": 1024,
            "attention_head_dim": (5, 10, 20, 20),
            "sample_size": 96,
            "use_linear_projection": True,
        },
        channels=4,
        wide=1024,
        parameters=0.866,
    ),
    Denoiser(
        "stable-diffusion-xl",
        "UNet2DConditionModel",
        _unet,
        _SDXL,
        channels=4,
        wide=2048,
        pooled=1280,
        parameters=2.567,
    ),
    Denoiser(
        "kolors",
        "UNet2DConditionModel",
        _unet,
        _SDXL | _KOLORS,
        channels=4,
        text=256,
        pooled=4096,
        parameters=2.58,
    ),
    Denoiser(
        "stable-cascade-prior",
        "StableCascadeUNet",
        _cascade,
        _CASCADE,
        shrink=42.67,
        wide=1280,
        pooled=1280,
        parameters=3.6,
    ),
    Denoiser(
        "stable-diffusion-3-medium",
        "SD3Transformer2DModel",
        _plain,
        _SD3,
        text=333,
        pooled=2048,
        parameters=2.03,
    ),
    Denoiser(
        "stable-diffusion-3.5-medium",
        "SD3Transformer2DModel",
        _plain,
        _SD35_MEDIUM,
        text=333,
        pooled=2048,
        parameters=2.24,
    ),
    Denoiser(
        "stable-diffusion-3.5-large",
        "SD3Transformer2DModel",
        _plain,
        _SD35_LARGE,
        text=333,
        pooled=2048,
        parameters=8.06,
    ),
    Denoiser(
        "flux.1-dev",
        "FluxTransformer2DModel",
        _packed,
        {"guidance_embeds": True},
        text=512,
        pooled=768,
        parameters=11.9,
    ),
    Denoiser("flux.1-schnell", "FluxTransformer2DModel", _packed, text=512, pooled=768, parameters=11.9),
    Denoiser(
        "flux.2-dev",
        "Flux2Transformer2DModel",
        _packed,
        {"guidance_embeds": True, "axes_dims_rope": (32, 32, 32, 32)},
        channels=32,
        text=512,
        wide=15360,
        parameters=32.2,
    ),
    Denoiser(
        "flux.2-klein-4b",
        "Flux2Transformer2DModel",
        _packed,
        _KLEIN_4B,
        channels=32,
        text=512,
        wide=7680,
        parameters=3.88,
    ),
    Denoiser(
        "flux.2-klein-9b",
        "Flux2Transformer2DModel",
        _packed,
        _KLEIN_9B,
        channels=32,
        text=512,
        wide=12288,
        parameters=9.08,
    ),
    Denoiser("chroma", "ChromaTransformer2DModel", _packed, text=512, parameters=8.9),
    Denoiser(
        "pixart-sigma",
        "PixArtTransformer2DModel",
        _masked,
        {"caption_channels": 4096, "use_additional_conditions": False},
        channels=4,
        text=300,
        parameters=0.61,
    ),
    Denoiser(
        "sana-1.6b", "SanaTransformer2DModel", _masked, channels=32, shrink=32, text=300, wide=2304, parameters=1.6
    ),
    Denoiser("omnigen-v1", "OmniGenTransformer2DModel", _omnigen, _OMNIGEN, channels=4, text=128, parameters=3.88),
    Denoiser(
        "auraflow",
        "AuraFlowTransformer2DModel",
        _timed,
        {"pos_embed_max_size": 9216},
        channels=4,
        text=256,
        wide=2048,
        parameters=6.8,
    ),
    Denoiser(
        "lumina-image-2.0",
        "Lumina2Transformer2DModel",
        _lumina,
        {"cap_feat_dim": 2304},
        text=256,
        wide=2304,
        parameters=2.6,
        samples=97,
    ),
    Denoiser(
        "z-image",
        "ZImageTransformer2DModel",
        _listed,
        text=512,
        wide=2560,
        parameters=6.15,
        samples=97,
    ),
    Denoiser(
        "ernie-image",
        "ErnieImageTransformer2DModel",
        _ernie,
        _ERNIE,
        channels=128,
        shrink=16,
        text=512,
        wide=3072,
        parameters=8.03,
    ),
    Denoiser(
        "hidream-i1",
        "HiDreamImageTransformer2DModel",
        _hidream,
        _HIDREAM,
        text=128,
        pooled=2048,
        parameters=17.1,
    ),
    Denoiser(
        "kandinsky-5.0-t2i-lite",
        "Kandinsky5Transformer3DModel",
        _kandinsky,
        _KANDINSKY_IMAGE,
        text=256,
        wide=3584,
        pooled=768,
        parameters=6.0,
    ),
    Denoiser(
        "kandinsky-5.0-t2v-lite",
        "Kandinsky5Transformer3DModel",
        _kandinsky,
        _KANDINSKY_VIDEO,
        slow=4,
        text=256,
        wide=3584,
        pooled=768,
        parameters=2.0,
    ),
    Denoiser("qwen-image", "QwenImageTransformer2DModel", _qwen, text=512, wide=3584, parameters=20.4),
    Denoiser(
        "cogview4-6b",
        "CogView4Transformer2DModel",
        _cogview,
        {"num_layers": 28, "num_attention_heads": 32, "attention_head_dim": 128},
        text=224,
        parameters=6.37,
    ),
    Denoiser("cogvideox-2b", "CogVideoXTransformer3DModel", _cogvideo, slow=4, text=226, parameters=1.69),
    Denoiser("cogvideox-5b", "CogVideoXTransformer3DModel", _cogvideo, _COG_5B, slow=4, text=226, parameters=5.57),
    Denoiser("wan2.1-1.3b", "WanTransformer3DModel", _moving, _WAN_SMALL, slow=4, text=512, parameters=1.42),
    Denoiser("wan2.1-14b", "WanTransformer3DModel", _moving, slow=4, text=512, parameters=14.3),
    Denoiser(
        "wan2.2-5b", "WanTransformer3DModel", _moving, _WAN_22, channels=48, shrink=16, slow=4, text=512, parameters=5.0
    ),
    Denoiser(
        "ltx-video-2b",
        "LTXVideoTransformer3DModel",
        _ltx,
        channels=128,
        shrink=32,
        slow=8,
        text=128,
        parameters=1.92,
    ),
    Denoiser("hunyuan-video", "HunyuanVideoTransformer3DModel", _moving, slow=4, text=256, pooled=768, parameters=12.8),
    Denoiser("mochi-1", "MochiTransformer3DModel", _moving, channels=12, slow=6, text=256, parameters=10.0),
)
BY_NAME = {each.name: each for each in DENOISERS}


def build(of: Denoiser, device: str, dtype: torch.dtype, **changes: Any) -> Any:
    """The denoiser with random weights on ``device``."""
    diffusers = importlib.import_module("diffusers")
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = getattr(diffusers, of.kind)(**of.config | changes)
    finally:
        torch.set_default_dtype(before)
    if device == "meta":
        for module in model.modules():
            if type(module).__name__ == "MoEGate":
                module.forward = _Even(module.forward, module.n_routed_experts)
            elif type(module).__name__ == "OmniGenSuScaledRotaryEmbedding":
                module.forward = _Rotations(module.dim)
    return model


class _Even:
    """A gate of experts that sends each the same share of tokens: without values it cannot choose."""

    def __init__(self, gate: Any, experts: int) -> None:
        self.gate, self.experts = gate, experts

    def __call__(self, *args: Any) -> Any:
        chosen, *more = self.gate(*args)
        return torch.arange(chosen.numel(), device="cpu").remainder(self.experts).view(chosen.shape), *more


class _Rotations:
    """Cosines and sines of rotations: without values the largest position, which chooses their scale, is not known."""

    def __init__(self, wide: int) -> None:
        self.wide = wide

    def __call__(self, hidden: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shape = (positions.shape[1], self.wide)
        return hidden.new_empty(shape, dtype=torch.float32), hidden.new_empty(shape, dtype=torch.float32)


def predicted(model: Any, batch: Batch) -> Any:
    """What the denoiser makes of a batch."""
    told = model(**batch, return_dict=False)[0]
    return torch.stack(told) if isinstance(told, list) else told
