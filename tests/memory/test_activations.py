"""What a layer keeps for each token: the sums of the page, the same in code, and what runs on a GPU show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from accuracy.runs import Run, gpu_rows, gpu_runs
from drawn import gpu
from sagefit.memory import GIB, Transformer, Workload, activations
from sagefit.memory.stacks import PROFILES
from sagefit.memory.states import INT8, NF4
from sagefit.paths import ROOT

# Bytes of each h, q, kv and F for a token, with flash attention.
KEPT = {
    "full, bf16": ({"precision": "bf16"}, (16, 4, 4, 8), (8, 4, 4, 6)),
    "full, autocast over fp32 weights": ({"precision": "bf16-mixed"}, (26, 4, 4, 8), (18, 4, 4, 6)),
    "LoRA on a 16-bit base": (
        {"precision": "bf16-mixed", "method": "lora", "base_dtype": "16-bit"},
        (23, 7, 4, 9),
        (19, 7, 4, 7),
    ),
    "QLoRA, prepared for k-bit training": (
        {"precision": "bf16-mixed", "method": "qlora", "base_dtype": "16-bit"},
        (23, 7, 4, 15),
        (23, 7, 4, 11),
    ),
}
STACKS = ("hf-trainer", "hf-liger")
LLAMA_1B = Transformer(
    params=1_235_814_400, layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128256, tied=True
)


def workload(**fields: Any) -> Workload:
    given: dict[str, Any] = {"model": LLAMA_1B, "sequence_length": 512, "attention": "flash"} | fields
    return Workload(**given)


def layer(given: Workload) -> float:
    """Bytes of a token and layer."""
    model, profile = given.model, PROFILES[given.stack]
    assert isinstance(model, Transformer)
    return activations.layer(model, given, profile, activations.towers(model, given)[0])


def by_hand(model: Transformer, terms: tuple[int, int, int, int]) -> int:
    """The sum of the page, with 4 bytes a head for the log-sum-exp."""
    h, q, kv, ffn = terms
    sizes = (model.hidden, model.heads * model.head_dim, model.kv_heads * model.head_dim, model.ffn)
    return sum(a * b for a, b in zip((h, q, kv, ffn), sizes, strict=True)) + 4 * model.heads


@pytest.mark.parametrize("name", KEPT)
def test_a_layer_keeps_what_the_page_says(name: str) -> None:
    fields, *stacks = KEPT[name]
    for stack, terms in zip(STACKS, stacks, strict=True):
        assert layer(workload(stack=stack, **fields)) == by_hand(LLAMA_1B, terms)
    sums = (" + ".join(f"{n} {what}" for n, what in zip(terms, ("h", "q", "kv", "F"), strict=True)) for terms in stacks)
    row = f"| {name} | {' | '.join(sums)} |"
    assert row in (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")


def growths(name: str) -> Iterator[tuple[Run, float]]:
    """What a batch of two needs more than one at the end of forward, in bytes of a token and layer, without logits."""
    fields, _, _ = KEPT[name]
    method = fields.get("method", "full")
    pairs: dict[tuple[str, int], dict[int, tuple[Run, float]]] = {}
    rows = gpu_rows()
    for run in gpu_runs():
        row, work = rows[int(run.id[1:]) - 1], run.workload
        if row["series"] != "tokens" or work.stack != "hf-liger" or work.gradient_checkpointing:
            continue
        if (work.method, work.precision) == (method, fields["precision"]):
            same = pairs.setdefault((run.model, work.sequence_length), {})
            same[work.micro_batch] = (run, float(row["forward_gib"]) * GIB)
    for of_length in pairs.values():
        if not {1, 2} <= set(of_length):
            continue
        (run, one), (_, two) = of_length[1], of_length[2]
        model, tokens = run.workload.model, run.workload.sequence_length
        assert isinstance(model, Transformer)
        logits = 0.5 * model.vocab
        yield run, ((two - one) / tokens - logits) / model.layers


@pytest.mark.parametrize("name", KEPT)
def test_a_gpu_shows_the_sums(name: str) -> None:
    """Liger's loss is all but free there, and keys are not repeated."""
    found = list(growths(name))
    assert len(found) >= 2
    for run, measured in found:
        assert isinstance(run.workload.model, Transformer)
        assert measured == pytest.approx(by_hand(run.workload.model, KEPT[name][2]), rel=0.04), run.id


def test_dropout_of_adapters_costs_a_copy_and_a_mask() -> None:
    """Without it, an adapter shares its input with the layer that it adapts."""
    lora = workload(stack="hf-trainer", method="lora", precision="bf16")
    profile = replace(PROFILES["hf-trainer"], lora_dropout=False)
    tower = activations.towers(LLAMA_1B, lora)[0]
    without = activations.layer(LLAMA_1B, lora, profile, tower)
    # Five adapters read the output of a norm in 3 bytes, not one shared copy of 2; one reads attention, one the MLP.
    h, q, ffn = 2048, 32 * 64, 8192
    assert layer(lora) - without == (5 * 3 - 2 * 2) * h + 3 * q + 1 * ffn


@pytest.mark.parametrize(
    ("fields", "wide"),
    [
        ({"precision": "fp32"}, True),
        ({"precision": "bf16"}, False),
        ({"precision": "bf16-mixed"}, True),
        ({"precision": "bf16-mixed", "sharding": "zero3"}, False),
        ({"precision": "bf16-mixed", "method": "lora"}, True),
        ({"precision": "bf16-mixed", "method": "lora", "base_dtype": "16-bit"}, False),
        ({"precision": "bf16-mixed", "method": "qlora", "base_dtype": "16-bit"}, True),
        ({"precision": "bf16-mixed", "stack": "deepspeed"}, False),
        ({"precision": "bf16-mixed", "stack": "ms-swift", "method": "lora"}, False),
    ],
)
def test_checkpointing_keeps_the_stream_in_its_own_dtype(fields: dict[str, Any], wide: bool) -> None:
    given = workload(**({"stack": "hf-trainer"} | fields))
    profile = PROFILES[given.stack]
    assert activations.layer_input(LLAMA_1B, given, profile) == (4 if wide else 2) * 2048


def test_gradients_of_an_mlp_live_five_at_a_time() -> None:
    assert activations.mlp_gradients(LLAMA_1B, workload(precision="bf16")) == 5 * 2 * 8192
    assert activations.mlp_gradients(replace(LLAMA_1B, gated=False), workload(precision="bf16")) == 3 * 2 * 8192


def test_8_bit_weights_keep_their_inputs_twice() -> None:
    """bitsandbytes saves the input of such a layer, and that in 8 bits, though nothing is computed from them."""
    nf4 = workload(method="qlora", lora_rank=8, precision="bf16-mixed", stack="hf-trainer")
    int8 = replace(nf4, method="lora", base_dtype="8-bit")
    profile = PROFILES["hf-trainer"]
    (tower,) = activations.towers(LLAMA_1B, int8)
    besides = activations.layer(LLAMA_1B, int8, profile, tower) - activations.layer(LLAMA_1B, nf4, profile, tower)
    h, f, q = LLAMA_1B.hidden, LLAMA_1B.ffn, LLAMA_1B.heads * LLAMA_1B.head_dim
    # In 8 bits q, k, v, gate and up have h, the output q, and down f; norms and product are fp32 as prepared.
    assert besides == pytest.approx((5 * h + q + f) + 4 * (2 * h + f))
    assert activations.is_prepared(int8, profile)
    assert not activations.is_prepared(replace(int8, base_dtype="16-bit"), profile)


def test_8_bit_weights_are_a_byte_each() -> None:
    lora = workload(method="lora", lora_rank=8, precision="bf16-mixed", stack="hf-trainer")
    told = {dtype: gpu(replace(lora, base_dtype=dtype)).parts["weights"] for dtype in ("8-bit", "16-bit")}
    nf4 = gpu(replace(lora, method="qlora")).parts["weights"]
    assert nf4 < told["8-bit"] < told["16-bit"]
    linear = (told["8-bit"] - nf4) * GIB / (INT8 - NF4)
    assert linear == pytest.approx(LLAMA_1B.params - LLAMA_1B.vocab * LLAMA_1B.hidden, rel=0.01)
