"""A model's numbers from its ``config.json``, as Hugging Face's configuration classes write them.

Families differ in the names of fields and in what a file leaves out: ``model_types.csv`` holds what each
``model_type`` of transformers means when its file is silent (tied: is the head the embedding; position_bias: are
positions added to attention scores; positions: learned tables of positions).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sagefit.memory.architecture import count_params
from sagefit.memory.workload import Transformer, VisionTower

_CSV = Path(__file__).with_name("model_types.csv")
_UNSEEN = ("audio_config", "speech_config", "talker_config", "token2wav_config")
_OTHER_TOWERS = ("visual", "vit_config", "vision_tower", "mm_vision_tower", "vision_encoder_config")
_MERGED = 4  # patches of a token of Qwen-VL
_NESTED = ("text_config", "llm_config", "language_config", "decoder_config")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers")
_HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model", "dim")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
_HEAD_DIM = ("v_head_dim", "head_dim", "d_kv", "kv_channels")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_FFN = ("intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "ffn_dim", "decoder_ffn_dim", "hidden_dim")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_DROPOUTS = (
    *("attention_dropout", "attention_probs_dropout_prob", "attn_dropout_prob", "attn_pdrop", "dropout"),
    *("dropout_rate", "embd_pdrop", "hidden_dropout", "hidden_dropout_prob", "resid_pdrop", "residual_dropout"),
)


class ConfigError(ValueError):
    """A configuration that is no transformer, or lacks a number that nothing else tells."""


def transformer(config: Mapping[str, Any]) -> tuple[Transformer, list[str]]:
    """The transformer that ``config`` describes, and what a reader should know about the reading.

    ``params`` is computed from the numbers. Raises ConfigError.
    """
    notes: list[str] = []
    seen = _tower(config)
    nested = _nested(config)
    if nested:
        others = [name for name in _UNSEEN if isinstance(config.get(name), Mapping)]
        if others:
            notes.append(f"config.json: {' and '.join(others)} not counted")
        config = {"tie_word_embeddings": config.get("tie_word_embeddings"), **config[nested]}
    kind = str(config.get("model_type", ""))
    if kind not in _model_types():
        notes.append(f"config.json: model_type {kind!r} is not known; what it leaves out is taken as in Llama")
    model = _mixture(_numbers(config, _model_types().get(kind) or _model_types()["llama"]), config)
    repeated = replace(model, layers=1) if kind == "albert" else model  # ALBERT has one layer, many times over
    params = count_params(repeated) + _positions(config, kind) * model.hidden
    if seen:
        seen = replace(seen, params=seen.params + _projector(seen, model))
        return replace(model, params=params + seen.params, tower=seen), notes
    return replace(model, params=params), notes


def _tower(config: Mapping[str, Any]) -> VisionTower | None:
    """The vision tower of a multimodal configuration, in the terms of Qwen-VL, CLIP and SigLIP; None without one.

    Raises ConfigError for one in other terms: a model that sees is not answered as one that only reads.
    """
    given = config.get("vision_config")
    if not isinstance(given, Mapping):
        if other := next((name for name in _OTHER_TOWERS if config.get(name)), None):
            raise ConfigError(f"{other} is a vision tower whose numbers are not known here")
        return None
    layers, heads = _number(given, ("depth", *_LAYERS)), _number(given, ("num_heads", *_HEADS))
    hidden = _number(given, ("embed_dim", *_HIDDEN))
    ratio = given.get("mlp_ratio")
    ffn = _number(given, ("intermediate_size",)) or (
        round(hidden * ratio) if hidden and isinstance(ratio, (int, float)) else None
    )
    if layers is None or hidden is None or heads is None or ffn is None or hidden % heads:
        raise ConfigError("vision_config is in terms that are not known, so what the model needs is not known")
    gated = "qwen2_5" in str(given.get("model_type", config.get("model_type", "")))
    merged = _number(given, ("spatial_merge_size",)) or 1
    return VisionTower(
        layers=layers,
        hidden=hidden,
        heads=heads,
        ffn=ffn,
        params=layers * (4 * hidden * hidden + (3 if gated else 2) * hidden * ffn),
        gated=gated,
        norm="rms" if gated else "layer",
        patches=_merged(config, given) or merged**2,
    )


def _merged(config: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    """Patches of one token where the configuration counts tokens of an image (Gemma 3); 0 where it does not."""
    tokens = _number(config, ("mm_tokens_per_image",))
    size, patch = _number(given, ("image_size",)), _number(given, ("patch_size",))
    return max(1, (size // patch) ** 2 // tokens) if tokens and size and patch else 0


def _projector(tower: VisionTower, model: Transformer) -> int:
    """Two linear layers from the tower's width, merged, to that of the language model."""
    if tower.patches == _MERGED:  # Qwen-VL joins neighbours before the first
        width = tower.hidden * tower.patches
        return width * width + width * model.hidden
    return tower.hidden * model.hidden + model.hidden**2


def longest(config: Mapping[str, Any], model: Transformer) -> int:
    """The most tokens that the model (its decoder, if it has one) has positions for; 0 where there is no such limit.

    Scaled rotary positions (``rope_scaling``) and relative ones reach further than the number says.
    """
    nested = _nested(config)
    text = config[nested] if nested else config
    if model.position_bias or text.get("rope_scaling"):
        return 0
    given = _first(text, ("max_target_positions", "max_position_embeddings", "n_positions"))
    return given if isinstance(given, int) and 1 < given < 10**9 else 0


def is_4_bit(config: Mapping[str, Any]) -> bool:
    """Whether the checkpoint is stored, or meant to be loaded, with 4-bit weights."""
    given = config.get("quantization_config")
    if not isinstance(given, Mapping):
        return False
    return given.get("load_in_4bit") is True or given.get("bits") == 4 or given.get("quant_method") == "mxfp4"


def _nested(config: Mapping[str, Any]) -> str | None:
    """Where the language model of a multimodal configuration is."""
    if _first(config, _HIDDEN) is not None:
        return None
    return next((key for key in _NESTED if isinstance(config.get(key), Mapping)), None)


@cache
def _model_types() -> dict[str, dict[str, str]]:
    with _CSV.open(newline="", encoding="utf-8") as file:
        return {row["model_type"]: row for row in csv.DictReader(file)}


def _numbers(config: Mapping[str, Any], family: Mapping[str, str]) -> Transformer:
    """The dense model; ``params`` is still 0."""
    hidden, heads, layers = (_need(config, names) for names in (_HIDDEN, _HEADS, _LAYERS))
    given_dim, kv_heads = _number(config, _HEAD_DIM), _kv_heads(config, heads)
    head_dim = given_dim or hidden // heads
    if given_dim is None and hidden % heads:
        raise ConfigError(f"{heads} heads do not divide hidden size {hidden}, and head_dim is not given")
    if heads % kv_heads:
        raise ConfigError(f"hidden size {hidden}, {heads} heads and {kv_heads} key-value heads do not fit together")
    architecture: Any = "encoder-decoder" if config.get("is_encoder_decoder") is True else family["architecture"]
    both = architecture == "encoder-decoder"
    dropouts = [config[name] for name in _DROPOUTS if isinstance(config.get(name), (int, float))]
    projection, tied = config.get("feed_forward_proj"), config.get("tie_word_embeddings")
    return Transformer(
        params=0,
        layers=(_number(config, ("decoder_layers", "num_decoder_layers")) or layers) if both else layers,
        encoder_layers=(_number(config, ("encoder_layers",)) or layers) if both else 0,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=_ffn(config, hidden),
        vocab=_need(config, ("vocab_size", "padded_vocab_size")),
        name=str(config.get("_name_or_path") or config.get("model_type") or "config.json"),
        architecture=architecture,
        gated=str(projection).startswith("gated") if projection else family["mlp"] == "gated",
        norm=_norm(config, family),
        dropout=any(value > 0 for value in dropouts) if dropouts else family["dropout"] == "1",
        tied=tied if isinstance(tied, bool) else family["tied"] == "1",
        position_bias=family["position_bias"] == "1" or config.get("alibi") is True,
    )


def _mixture(model: Transformer, config: Mapping[str, Any]) -> Transformer:
    """``model`` with experts, if ``config`` has any; its width is that of the layers without experts then."""
    experts = _number(config, _EXPERTS) or 1
    if experts == 1:
        return model
    width = _number(config, ("moe_intermediate_size",)) or model.ffn
    shared = _number(config, ("shared_expert_intermediate_size",))
    named = config.get("mlp_only_layers")
    step = _number(config, ("decoder_sparse_step",)) or 1
    dense = (_number(config, ("first_k_dense_replace",)) or 0) + (len(named) if isinstance(named, list) else 0)
    dense = min(model.layers - 1, dense + model.layers - model.layers // step)
    return replace(
        model,
        experts=experts,
        experts_per_token=_number(config, ("num_experts_per_tok", "moe_topk")) or 1,
        ffn=width,
        shared_ffn=shared or width * (_number(config, ("n_shared_experts",)) or 0),
        dense_layers=dense,
        dense_ffn=model.ffn if dense else 0,
    )


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((config[name] for name in names if config.get(name) is not None), None)


def _number(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of ``names`` that is given, as a whole number of at least 1; 0 and null count as not given."""
    value = _first(config, names)
    if value is None or value == 0:
        return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float) and value.is_integer())
    if not whole or not 0 < value <= 10**9:
        raise ConfigError(f"{' or '.join(n for n in names if n in config)} is {value!r}, no whole number from 1 to 1e9")
    return int(value)


def _need(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    value = _number(config, names)
    if value is None:
        raise ConfigError(f"none of {', '.join(names)} is given")
    return value


def _kv_heads(config: Mapping[str, Any], heads: int) -> int:
    kind, attention = config.get("model_type"), config.get("attn_config")
    if isinstance(attention, Mapping) and (grouped := _number(attention, ("kv_n_heads",))):  # MPT
        return grouped
    if kind in ("falcon", "RefinedWebModel", "gpt_bigcode"):
        if config.get("multi_query", True) and not config.get("new_decoder_architecture"):
            return 1
    elif kind == "chatglm":
        return (config.get("multi_query_attention") and _number(config, ("multi_query_group_num",))) or heads
    return _number(config, _KV_HEADS) or heads


def _ffn(config: Mapping[str, Any], hidden: int) -> int:
    given = _number(config, _FFN)
    if given is None:
        return (_number(config, ("expansion_ratio",)) or 4) * hidden
    return given // 2 if config.get("model_type") == "qwen" else given  # the first Qwen counts gate and up as one


def _norm(config: Mapping[str, Any], family: Mapping[str, str]) -> Literal["rms", "layer"]:
    return "rms" if "rms_norm_eps" in config or config.get("rmsnorm") or family["norm"] == "rms" else "layer"


def _positions(config: Mapping[str, Any], kind: str) -> int:
    """Rows of learned position tables; other families have rotary, relative or computed positions."""
    tables = int(_model_types()[kind]["positions"]) if kind in _model_types() else 0
    return tables * (_number(config, ("n_positions", "max_position_embeddings")) or 0)
