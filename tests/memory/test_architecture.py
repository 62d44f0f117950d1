"""Models by name, by config.json and by their numbers: what is known is right, what is inferred explains the count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagefit.job.memory_model import TransformerModel
from sagefit.memory.architecture import adapter_params, count_params
from sagefit.memory.hub_config import ConfigError, transformer
from sagefit.memory.inline import from_numbers
from sagefit.memory.presets import Preset, presets

PRESETS = {preset.model.name: preset for preset in presets().values()}


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.model.name)
def test_the_numbers_of_a_preset_explain_its_published_parameters(preset: Preset) -> None:
    counted = count_params(preset.model) + preset.positions + preset.other
    assert counted == pytest.approx(preset.model.params, rel=0.03)
    assert preset.model.heads % preset.model.kv_heads == 0


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("meta-llama/Llama-2-7b-hf", 6_738_415_616),
        ("bert-large-uncased", 335_141_888),
        ("gpt2", 124_439_808),
        ("mixtral-8x7b", 46_702_792_704),
        ("T5-Small", 60_506_624),
        ("google/gemma-7b", 8_537_680_896),
        ("openai/whisper-large-v3", 1_543_490_560),
    ],
)
def test_published_parameters(name: str, params: int) -> None:
    assert presets()[name.lower()].model.params == params


@pytest.mark.parametrize(
    "name", ["meta-llama/llama-2-7b-hf", "gpt2", "pythia-1b", "gemma-7b", "mixtral-8x7b", "opt-125m"]
)
def test_families_without_extras_are_counted_to_the_last_parameter(name: str) -> None:
    preset = presets()[name]
    assert count_params(preset.model) + preset.positions == preset.model.params


def test_every_name_means_one_model() -> None:
    named: dict[str, str] = {}
    text = (Path(__file__).parents[2] / "python/sagefit/memory/presets.csv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        first, *others = line.split(",")[0].split()
        for name in (first, *others):
            for spelling in {name.lower(), name.lower().rpartition("/")[2]}:
                assert named.setdefault(spelling, first) == first, spelling


LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": 32000,
}
CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("llama-2-7b", LLAMA),
    (
        "gpt2",
        {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
    ),
    (
        "bert-large-uncased",
        {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "max_position_embeddings": 512,
            "vocab_size": 30522,
        },
    ),
    (
        "distilbert-base-uncased",
        {
            "model_type": "distilbert",
            "dim": 768,
            "hidden_dim": 3072,
            "n_heads": 12,
            "n_layers": 6,
            "max_position_embeddings": 512,
            "vocab_size": 30522,
        },
    ),
    (
        "flan-t5-base",
        {
            "model_type": "t5",
            "is_encoder_decoder": True,
            "d_model": 768,
            "d_kv": 64,
            "d_ff": 2048,
            "num_layers": 12,
            "num_decoder_layers": 12,
            "num_heads": 12,
            "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
            "vocab_size": 32128,
        },
    ),
    (
        "t5-3b",
        {
            "model_type": "t5",
            "d_model": 1024,
            "d_kv": 128,
            "d_ff": 16384,
            "num_layers": 24,
            "num_heads": 32,
            "vocab_size": 32128,
        },
    ),
    (
        "falcon-7b",
        {
            "model_type": "RefinedWebModel",
            "hidden_size": 4544,
            "n_layer": 32,
            "n_head": 71,
            "multi_query": True,
            "vocab_size": 65024,
        },
    ),
    (
        "falcon-40b",
        {
            "model_type": "falcon",
            "hidden_size": 8192,
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_kv_heads": 8,
            "new_decoder_architecture": True,
            "vocab_size": 65024,
        },
    ),
    (
        "bloom-7b1",
        {"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32, "vocab_size": 250880},
    ),
    (
        "mpt-7b",
        {
            "model_type": "mpt",
            "d_model": 4096,
            "n_layers": 32,
            "n_heads": 32,
            "expansion_ratio": 4,
            "vocab_size": 50432,
        },
    ),
    (
        "opt-1.3b",
        {
            "model_type": "opt",
            "hidden_size": 2048,
            "ffn_dim": 8192,
            "num_hidden_layers": 24,
            "num_attention_heads": 32,
            "max_position_embeddings": 2048,
            "dropout": 0.1,
            "attention_dropout": 0.0,
            "vocab_size": 50272,
        },
    ),
    (
        "chatglm3-6b",
        {
            "model_type": "chatglm",
            "hidden_size": 4096,
            "ffn_hidden_size": 13696,
            "num_layers": 28,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "padded_vocab_size": 65024,
            "rmsnorm": True,
        },
    ),
    (
        "qwen-7b",
        {
            "model_type": "qwen",
            "hidden_size": 4096,
            "intermediate_size": 22016,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "attn_dropout_prob": 0.0,
            "vocab_size": 151936,
        },
    ),
    (
        "gemma-7b",
        {
            **LLAMA,
            "model_type": "gemma",
            "hidden_size": 3072,
            "intermediate_size": 24576,
            "num_attention_heads": 16,
            "num_hidden_layers": 28,
            "head_dim": 256,
            "vocab_size": 256000,
        },
    ),
    (
        "mixtral-8x7b",
        {
            **LLAMA,
            "model_type": "mixtral",
            "intermediate_size": 14336,
            "num_key_value_heads": 8,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
        },
    ),
    (
        "qwen1.5-moe-a2.7b",
        {
            **LLAMA,
            "model_type": "qwen2_moe",
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "vocab_size": 151936,
        },
    ),
    (
        "deepseek-v2-lite",
        {
            **LLAMA,
            "model_type": "deepseek_v2",
            "hidden_size": 2048,
            "intermediate_size": 10944,
            "num_hidden_layers": 27,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "v_head_dim": 128,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1,
            "vocab_size": 102400,
        },
    ),
    (
        "facebook/bart-base",
        {
            "model_type": "bart",
            "is_encoder_decoder": True,
            "d_model": 768,
            "encoder_layers": 6,
            "decoder_layers": 6,
            "num_hidden_layers": 6,
            "decoder_attention_heads": 12,
            "decoder_ffn_dim": 3072,
            "max_position_embeddings": 1024,
            "vocab_size": 50265,
        },
    ),
]


@pytest.mark.parametrize(("name", "config"), CONFIGS, ids=[name for name, _ in CONFIGS])
def test_a_config_reads_as_its_preset(name: str, config: dict[str, Any]) -> None:
    model, notes = transformer(config)
    known = presets()[name].model
    assert notes == []
    assert model.params == pytest.approx(known.params, rel=0.03)
    for field in known.__dataclass_fields__:
        if field not in ("name", "params"):
            assert getattr(model, field) == getattr(known, field), field


CLIP = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
QWEN_VL = {
    "model_type": "qwen2_5_vl",
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
    "vision_config": {
        "model_type": "qwen2_5_vl",
        "depth": 32,
        "hidden_size": 1280,
        "num_heads": 16,
        "intermediate_size": 3420,
        "spatial_merge_size": 2,
    },
}
QWEN2_VL = {
    **QWEN_VL,
    "model_type": "qwen2_vl",
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "num_heads": 16, "mlp_ratio": 4}
    | {"spatial_merge_size": 2},
}
SIGLIP = {"hidden_size": 1152, "num_hidden_layers": 27, "num_attention_heads": 16, "intermediate_size": 4304}
GEMMA = {
    "model_type": "gemma3",
    "mm_tokens_per_image": 256,
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
    },
    "vision_config": {**SIGLIP, "image_size": 896, "patch_size": 14},
}


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("llava-hf/llava-1.5-7b-hf", {"text_config": {**LLAMA, "vocab_size": 32064}, "vision_config": CLIP}),
        ("qwen/qwen2.5-vl-3b-instruct", QWEN_VL),
        ("qwen/qwen2-vl-2b-instruct", QWEN2_VL),
        ("google/gemma-3-4b-pt", GEMMA),
    ],
)
def test_a_config_of_a_model_that_sees_reads_as_its_preset(name: str, config: dict[str, Any]) -> None:
    model, notes = transformer(config)
    known = presets()[name].model
    assert notes == []
    assert model.params == pytest.approx(known.params, rel=0.005)
    assert model.tower is not None
    assert known.tower is not None
    assert replace(model.tower, params=0) == replace(known.tower, params=0)
    assert model.tower.params == pytest.approx(known.tower.params, rel=0.05)


@pytest.mark.parametrize(
    "seeing",
    [{"vision_config": {"hidden_size": 1024}}, {"visual": {"width": 1664}}, {"mm_vision_tower": "openai/clip"}],
)
def test_a_model_that_sees_in_other_terms_is_not_answered_as_one_that_reads(seeing: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="not known"):
        transformer({**LLAMA, **seeing})


def test_what_hears_is_said_not_to_be_counted() -> None:
    _, notes = transformer({"text_config": LLAMA, "audio_config": {"d_model": 1280}})
    assert notes == ["config.json: audio_config not counted"]


def test_a_family_that_nobody_knows_is_read_like_a_llama_and_said_so() -> None:
    model, notes = transformer({**LLAMA, "model_type": "newest"})
    assert model.params == 6_738_415_616
    assert "'newest' is not known" in notes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": None}, "none of hidden_size"),
        ({"hidden_size": "big"}, "hidden_size is 'big'"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"vocab_size": float("nan")}, "vocab_size is nan"),
        ({"vocab_size": 10**400}, "vocab_size is 1000"),
        ({"intermediate_size": -1}, "intermediate_size is -1"),
        ({"num_key_value_heads": 5}, "do not fit together"),
        ({"hidden_size": 16}, "32 heads do not divide hidden size 16, and head_dim is not given"),
        ({"num_attention_heads": 30}, "30 heads do not divide hidden size 4096"),
    ],
)
def test_a_broken_config_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        transformer({**LLAMA, **change})


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda x: st.dictionaries(st.text(), x)
    ),
    st.sampled_from(sorted(LLAMA)),
)
def test_whatever_a_config_holds_is_read_or_refused(value: object, key: str) -> None:
    for config in ({**LLAMA, key: value}, {**json.loads(json.dumps(LLAMA)), "text_config": value}):
        try:
            model, _ = transformer(config)
        except ConfigError:
            continue
        assert model.params > 0


def inline(**given_: Any) -> TransformerModel:
    numbers = {"params": 6.74e9, "layers": 32, "hidden_size": 4096, "heads": 32, "vocab_size": 32000}
    return TransformerModel.model_validate({"family": "transformer", **numbers, **given_})


def test_inline_numbers_infer_what_the_count_tells() -> None:
    model, notes = from_numbers(inline(ffn_size=11008))
    assert (model.gated, model.norm, model.tied, model.kv_heads) == (True, "rms", False, 32)
    assert any("mlp: gated, tie_embeddings: false" in note for note in notes)


def test_inline_gpt2_is_plain_and_tied() -> None:
    numbers = {"params": 124e6, "layers": 12, "hidden_size": 768, "heads": 12, "ffn_size": 3072, "vocab_size": 50257}
    model, _ = from_numbers(inline(**numbers))
    assert (model.gated, model.norm, model.tied) == (False, "layer", True)


def test_a_missing_width_is_what_the_parameters_leave() -> None:
    model, notes = from_numbers(inline(params=6_738_415_616, kv_heads=32))
    assert model.ffn == 11008
    assert any("ffn_size: 11008" in note for note in notes)


def test_an_inline_encoder_is_like_bert() -> None:
    numbers = {"params": 110e6, "layers": 12, "hidden_size": 768, "heads": 12, "ffn_size": 3072, "vocab_size": 30522}
    model, notes = from_numbers(inline(**numbers, architecture="encoder"))
    assert (model.gated, model.norm, model.dropout) == (False, "layer", True)
    assert notes == []


def test_numbers_that_contradict_each_other_are_noted_with_both_values() -> None:
    model, notes = from_numbers(inline(params=13e9, ffn_size=11008))
    assert model.params == 13e9
    assert any("1.3e+10" in note and "6.738e+09" in note and "-48%" in note for note in notes)


def test_numbers_that_agree_are_not_noted() -> None:
    _, notes = from_numbers(inline(params=7.0e9, ffn_size=11008, kv_heads=32, mlp="gated", tie_embeddings=False))
    assert notes == []


def test_adapters_of_llama_2_7b() -> None:
    llama = presets()["llama-2-7b"].model
    # PEFT counts 39,976,960 trainable parameters with rank 16 on all linear layers of Llama-2-7B.
    assert adapter_params(llama, 16, "all-linear") == 39_976_960
    assert adapter_params(llama, 8, "attention") == 32 * 8 * 4 * 2 * 4096
