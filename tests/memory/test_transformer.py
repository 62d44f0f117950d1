"""The closed form for transformers: hand-checked numbers, published anchors, and what must never happen."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy import loso
from accuracy.lomo import ratios, score, table
from accuracy.runs import cpu_runs, published_runs, transformer_runs
from accuracy.verdicts import lived, verdicts
from drawn import FSDP, ZERO, gpu, models, never_more, never_more_sharded, placements, workloads
from sagefit.memory import GIB, Measured, Placement, Transformer, Workload, bounds
from sagefit.memory.architecture import count_params
from sagefit.memory.bounds import Bound
from sagefit.memory.stacks import stacks_with

LLAMA_3B = Transformer(
    params=3_212_749_824, layers=28, hidden=3072, heads=24, kv_heads=8, head_dim=128, ffn=8192, vocab=128256, tied=True
)
TRAIN_3B = Workload(
    model=LLAMA_3B, precision="bf16", micro_batch=2, sequence_length=4096, stack="torchtune", loss="standard"
)


def test_llama_3b_by_hand() -> None:
    """Published: 60.0 GiB of active memory (torchtune, bf16, batch 2 x 4096, no checkpointing)."""
    parts = gpu(TRAIN_3B).parts
    assert parts["weights"] * GIB == 2 * 3_212_749_824
    assert parts["optimizer"] * GIB == 4 * 3_212_749_824
    # 2 norms of 8h, q and output 2 x 2h, repeated k and v 2 x 2h, 4 of 2F, log-sum-exp 4 x 24 heads; for each token.
    each = 2 * 8 * 3072 + 4 * 2 * 3072 + 8 * 8192 + 4 * 24
    assert parts["activations"] * GIB == each * 28 * 2 * 4096
    assert parts["logits"] * GIB == 14 * 128256 * 2 * 4096
    active = sum(size for part, size in parts.items() if part not in ("allocator", "framework"))
    assert active == pytest.approx(60.0, rel=0.03)


def test_bert_large_rows_are_met() -> None:
    """Published for BERT-large at length 512 on a V100 (nvidia-smi), nine configurations."""
    rows = [run for run in transformer_runs() if run.model == "BERT-large"]
    assert len(rows) == 9
    for run in rows:
        assert run.comparable() == pytest.approx(run.measured, rel=0.13), run.id


def test_nothing_that_ran_out_of_memory_would_have_been_called_fits() -> None:
    judged = verdicts()
    assert sum(each.happened == "OOM" for each in judged) >= 32
    assert [each.id for each in judged if each.happened == "OOM" and each.verdict == "FITS"] == []


def test_bounds_hold_for_sources_that_were_left_out() -> None:
    found = loso.outcomes([run for run in published_runs() if isinstance(run.workload.model, Transformer)])
    everything = score(found)
    assert everything.runs > 300
    assert everything.above < 0.05
    assert everything.median < 0.12
    assert everything.upper < 1.35
    assert loso.decision(found).small < 0.01
    sources = loso.by(found, lambda run: run.project)
    assert len(sources) == 8
    assert loso.mean([score(each) for each in sources.values()])[1] < 0.08
    said = lived(found)
    assert said["OOM"] < 0.05 * said.total()
    assert said["FITS"] > said["RISKY"] > 0


def test_the_bounds_and_what_is_behind_them_are_those_of_the_published_runs() -> None:
    on_gpu = {name: ratio for name, ratio in bounds.load().items() if not name.startswith("cpu/")}
    assert on_gpu == ratios(published_runs())
    assert bounds.table() == table(published_runs(), cpu_runs())


def test_what_is_behind_a_bound_is_told() -> None:
    known = bounds.table()
    trainer = bounds.evidence(replace(TRAIN_3B, method="lora", stack="hf-trainer"), on_gpu=True)
    assert trainer
    assert trainer.group == trainer.own_group == "decoder/lora/hf-trainer"
    assert trainer.behind == trainer.own == known["decoder/lora/hf-trainer"]
    assert trainer.own.runs >= bounds.ENOUGH
    assert trainer.own.sources >= bounds.SOURCES
    swift = bounds.evidence(replace(TRAIN_3B, method="lora", stack="ms-swift"), on_gpu=True)
    assert swift
    assert swift.own.runs >= bounds.ENOUGH  # of one source, which is too few
    assert swift.group != swift.own_group
    other = bounds.evidence(replace(TRAIN_3B, method="lora", stack="torchtune"), on_gpu=True)
    assert other
    assert (other.ratio, other.group) == (known["decoder/lora"].ratio, "decoder/lora")
    assert other.behind == known["decoder/lora"]
    assert other.own_group == "decoder/lora/torchtune"
    assert 0 < other.own.runs < bounds.ENOUGH
    nobody = bounds.evidence(replace(TRAIN_3B, stack="litgpt"), on_gpu=True)
    assert nobody
    assert nobody.own == Bound(None, 0, 0, 0)
    cpu = bounds.evidence(TRAIN_3B, on_gpu=False)
    assert cpu
    assert cpu.group == cpu.own_group == "cpu/transformer"
    assert bounds.evidence(replace(TRAIN_3B, model=Measured(host_gib=1)), on_gpu=True) is None


def test_a_conformal_quantile_counts_one_more_than_it_has() -> None:
    assert bounds.quantile([1.0] * 18 + [2.0, 3.0]) == 3.0  # ceil(21 x 0.95) = 20
    assert bounds.quantile([1.0] * 38 + [2.0]) == 1.0  # ceil(40 x 0.95) = 38
    assert bounds.quantile([5.0]) == 5.0


def test_a_bound_is_what_the_worst_source_would_have_needed() -> None:
    """However many runs the others have: a job is of a source that nobody measured."""
    many, few = [1.0] * 1000, [1.4] * 3
    assert bounds.by_source([many, few]) == 1.4
    assert bounds.by_source([many, [*([1.0] * 38), 9.0]]) == 1.0  # one run in forty is no source
    assert bounds.by_source([[2.0], *([[1.0]] * 18)]) == 1.0  # nor is one source in nineteen; of nine it is
    assert bounds.by_source([[2.0], *([[1.0]] * 8)]) == 2.0


@given(st.lists(st.lists(st.floats(0.1, 5), min_size=1, max_size=30), min_size=1, max_size=8))
def test_a_source_more_never_makes_a_bound_narrower_while_sources_are_few(sources: list[list[float]]) -> None:
    assert bounds.by_source([*sources, sources[0]]) >= bounds.by_source(sources)
    assert bounds.by_source(sources) == max(map(bounds.quantile, sources))


def test_a_family_of_few_sources_has_at_least_a_margin() -> None:
    known = bounds.table()
    for family, margin in bounds.MARGINS.items():
        ratio = known[family].ratio
        assert ratio
        assert ratio >= margin or not known[family].few
    assert {family for family in bounds.MARGINS if known[family].few} == {*("diffusion", "segmentation", "vision")}


def test_a_borrowed_bound_is_no_narrower_than_that_of_all_runs() -> None:
    table = {"decoder/full": 1.1, "transformer": 1.3, "decoder/full/litgpt": 1.05, "decoder/full/ms-swift": 2.0}
    assert bounds.gpu_ratio(replace(TRAIN_3B, stack="torchtune"), table) == 1.3
    assert bounds.gpu_ratio(replace(TRAIN_3B, stack="litgpt"), table) == 1.05
    assert bounds.gpu_ratio(replace(TRAIN_3B, stack="unknown"), table) == 2.0


# --- What must hold for any model --------------------------------------------------------------------------------


@given(workloads(), placements)
def test_parts_sum_to_the_point_and_the_bound_is_above(workload: Workload, where: Placement) -> None:
    estimate = gpu(workload, where)
    assert math.isclose(sum(estimate.parts.values()), estimate.point)
    assert estimate.point == pytest.approx(max(estimate.phases.values()))
    assert estimate.upper >= estimate.point > 0
    assert all(size >= 0 for size in estimate.parts.values())


@given(workloads(), placements, st.integers(1, 64))
def test_more_work_never_needs_less(workload: Workload, where: Placement, more: int) -> None:
    never_more(workload, replace(workload, micro_batch=workload.micro_batch + more), where)
    never_more(workload, replace(workload, sequence_length=workload.sequence_length + more), where)
    never_more(workload, replace(workload, lora_rank=workload.lora_rank + more), where)
    never_more(replace(workload, accumulation=1), replace(workload, accumulation=more + 1), where)


@given(workloads(), placements, st.integers(1, 8))
def test_a_larger_model_never_needs_less(workload: Workload, where: Placement, more: int) -> None:
    model = workload.model
    assert isinstance(model, Transformer)
    for larger in (
        replace(model, layers=model.layers + more),
        replace(model, vocab=model.vocab + 1000 * more),
        replace(model, ffn=model.ffn + 64 * more),
        replace(model, hidden=model.hidden + 64 * more),
    ):
        never_more(workload, replace(workload, model=replace(larger, params=count_params(larger))), where)


@given(workloads(), placements)
def test_what_saves_memory_never_costs_any(workload: Workload, where: Placement) -> None:
    for saving, without in (
        ({"gradient_checkpointing": True}, {"gradient_checkpointing": False}),
        ({"attention": "flash"}, {"attention": "sdpa"}),
        ({"attention": "sdpa"}, {"attention": "eager"}),
        ({"optimizer": "adamw-8bit"}, {"optimizer": "adamw"}),
        ({"cpu_offload": "optimizer"}, {"cpu_offload": "none"}),
        ({"cpu_offload": "parameters"}, {"cpu_offload": "optimizer"}),
        ({"loss": "chunked"}, {"loss": "standard"}),
        ({"loss": "fused"}, {"loss": "chunked"}),
    ):
        never_more(replace(workload, **saving), replace(workload, **without), where)


@given(workloads(), placements)
def test_full_checkpointing_needs_least(workload: Workload, where: Placement) -> None:
    selective = replace(workload, gradient_checkpointing=True, checkpointing="selective")
    never_more(replace(selective, checkpointing="full"), selective, where)
    never_more(selective, replace(workload, gradient_checkpointing=False), where)


def test_an_encoder_of_fixed_length_leaves_the_logits_to_the_decoder() -> None:
    whisper = Transformer(
        params=37_760_640, layers=4, encoder_layers=4, hidden=384, heads=6, kv_heads=6, head_dim=64, ffn=1536,
        vocab=51865, architecture="encoder-decoder", gated=False, norm="layer", tied=True,
    )  # fmt: skip
    workload = Workload(
        model=whisper, micro_batch=16, sequence_length=225, encoder_length=1500, precision="fp16-mixed",
        stack="plain-torch",
    )  # fmt: skip
    parts = gpu(workload).parts
    assert parts["logits"] * GIB == 14 * 16 * 225 * 51865
    shorter = gpu(replace(workload, encoder_length=750)).parts
    assert shorter["activations"] < parts["activations"]
    assert shorter["logits"] == parts["logits"]


@given(workloads(), st.sampled_from([2, 4, 8]))
def test_sharding_never_costs_memory(workload: Workload, gpus: int) -> None:
    """In mixed precision and fp32; what a job calls pure bf16 gets fp32 masters from DeepSpeed's ZeRO."""
    if workload.precision == "bf16":
        workload = replace(workload, precision="bf16-mixed")
    for stage in ZERO:
        never_more_sharded(replace(workload, sharding=stage), replace(workload, sharding="none"), Placement(1, gpus))


@given(workloads(), st.sampled_from([2, 4, 8]))
def test_fsdp_never_costs_memory(workload: Workload, gpus: int) -> None:
    """But for LoRA under Accelerate's FSDP, whose stream between layers was measured to be fp32."""
    if workload.stack not in stacks_with("fsdp") or workload.method == "lora":
        workload = replace(workload, stack="plain-torch")
    whole = replace(workload, sharding="none")
    for kind in FSDP:
        never_more_sharded(replace(workload, sharding=kind), whole, Placement(1, gpus))
    never_more(replace(workload, sharding="fsdp"), replace(workload, sharding="fsdp-shard-grad-op"), Placement(1, gpus))


@given(workloads(), st.integers(2, 64), st.integers(1, 64))
def test_more_ranks_never_cost_memory(workload: Workload, ranks: int, more: int) -> None:
    where = Placement(1, 8)
    never_more(replace(workload, world_size=ranks + more), replace(workload, world_size=ranks), where)


@given(workloads(), placements)
def test_an_unknown_stack_needs_as_much_as_any(workload: Workload, where: Placement) -> None:
    """But for those that do not train such a model at all."""
    unknown = replace(workload, stack="unknown")
    assert isinstance(workload.model, Transformer)
    for stack in stacks_with(workload.sharding, workload.model.architecture):
        never_more(replace(workload, stack=stack), unknown, where)


@given(workloads(), placements)
def test_what_software_is_not_known_to_do_never_costs_less(workload: Workload, where: Placement) -> None:
    never_more(replace(workload, torch=(2, 6)), replace(workload, torch=None), where)
    never_more(replace(workload, step="fused"), replace(workload, step="foreach"), where)
    never_more(replace(workload, accumulation=1), replace(workload, accumulation=4), where)


@given(workloads(), placements, st.integers(2, 32))
def test_accumulation_leaves_activations_alone(workload: Workload, where: Placement, steps: int) -> None:
    one, many = (gpu(replace(workload, accumulation=each), where) for each in (1, steps))
    if one.phase == many.phase == "forward":
        assert one.parts["activations"] == many.parts["activations"]


@settings(max_examples=50)
@given(models())
def test_an_encoder_decoder_needs_more_than_its_decoder(model: Transformer) -> None:
    if model.architecture != "encoder-decoder":
        return
    alone = replace(model, architecture="decoder", encoder_layers=0)
    never_more(Workload(model=replace(alone, params=count_params(alone))), Workload(model=model))
