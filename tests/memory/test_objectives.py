"""Preference and reinforcement training: what it needs beside a plain step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import never_more, never_more_sharded, placements, workloads
from job_files import auto_job, write_job
from sagefit.catalog.instance_table import instances
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.job.memory_model import Loss, Objective, Sampler
from sagefit.memory import Placement, Transformer, Workload, predict
from sagefit.memory.objectives import NEEDS
from sagefit.memory.presets import presets
from sagefit.memory.read import described
from sagefit.memory.workload import GIB
from sagefit.planning.changes import changes_of

LLAMA = "meta-llama/Llama-3.1-8B"
PARAMS = presets()[LLAMA.lower()].model.params
ONE, EIGHT = Placement(1, 1, "H100", 80.0), Placement(1, 8, "H100", 80.0)
FULL = {"model": LLAMA, "precision": "bf16-mixed", "gradient_checkpointing": True, "stack": "hf-trainer"}
COMPARING: list[Objective] = [name for name in NEEDS if name != "supervised"]


def of(hyperparameters: dict[str, Any] | None = None, **memory: Any) -> Workload:
    """The workload of a memory block."""
    return described(auto_job({"memory": FULL | memory, "hyperparameters": hyperparameters}))


def on_gpu(workload: Workload, where: Placement = EIGHT) -> dict[str, float]:
    """Parts of the peak of one GPU, in GiB."""
    prediction = predict(workload, where)
    assert prediction is not None
    assert prediction.gpu is not None
    return prediction.gpu.parts


def phases(workload: Workload, where: Placement = EIGHT) -> dict[str, float]:
    """Sums of the phases of one GPU, in GiB."""
    prediction = predict(workload, where)
    assert prediction is not None
    assert prediction.gpu is not None
    return prediction.gpu.phases


@pytest.mark.parametrize(
    ("memory", "bytes_each"),
    [
        ({}, 4.0),
        ({"precision": "bf16"}, 2.0),
        ({"sharding": "zero2"}, 2.0),  # DeepSpeed casts it, and shards it at stage 3 only
        ({"sharding": "zero3"}, 2.0 / 8),
        ({"sharding": "fsdp"}, 4.0 / 8),
        ({"sharding": "zero3", "cpu_offload": "parameters"}, 0.0),
        ({"method": "lora"}, 0.0),
        ({"reference_model": False}, 0.0),
        ({"method": "lora", "reference_model": True, "base_dtype": "fp32"}, 4.0),
    ],
)
def test_a_reference_is_a_frozen_copy_of_the_model(memory: dict[str, Any], bytes_each: float) -> None:
    parts = on_gpu(of(objective="dpo", **memory))
    assert parts.get("second model", 0.0) * GIB == pytest.approx(bytes_each * PARAMS)


@pytest.mark.parametrize("objective", ["supervised", "orpo", "cpo", "reward"])
def test_other_objectives_have_no_reference(objective: Objective) -> None:
    assert "second model" not in on_gpu(of(objective=objective))


def test_a_pair_of_answers_is_two_sequences() -> None:
    plain, pair = (on_gpu(of(objective=o, method="lora", sequence_length=1024)) for o in ("kto", "dpo"))
    assert pair["activations"] == pytest.approx(2 * plain["activations"])


def test_a_reward_model_has_no_vocabulary_at_its_end() -> None:
    assert "logits" not in on_gpu(of(objective="reward", micro_batch=8))


def test_a_teacher_has_numbers_of_its_own() -> None:
    parts = on_gpu(of(objective="gkd", teacher_model="meta-llama/Llama-3.1-70B", sharding="zero3", sampler="elsewhere"))
    teacher = presets()["meta-llama/llama-3.1-70b"].model
    assert parts["second model"] * GIB == pytest.approx(2 * teacher.params / 8)


def test_a_teacher_that_nobody_knows_is_refused() -> None:
    with pytest.raises(SagefitError, match=r"(?si)memory\.teacher_model.*did you mean.*meta-llama/Llama-3\.1-70B"):
        of(objective="gkd", teacher_model="meta-llama/Llama-3.1-70")


def test_a_teacher_that_only_the_script_finds_is_said() -> None:
    workload = of({"rlhf_type": "gkd", "teacher_model": "mine/secret"}, sampler="elsewhere")
    assert workload.teacher is None
    assert any("mine/secret" in note and "as large as the model" in note for note in workload.notes)


def test_grpo_samples_all_answers_of_a_step_at_once() -> None:
    few, many = (phases(of(objective="grpo", micro_batch=4, accumulation=n)) for n in (1, 16))
    model = presets()[LLAMA.lower()].model
    keys = 2 * 2 * model.layers * model.kv_heads * model.head_dim * 512
    more = (keys + 31 * model.vocab) * 4 * 15 * 1.06  # the allocator's share included
    assert (many["sampling"] - few["sampling"]) * GIB == pytest.approx(more)


def test_a_sharded_model_is_gathered_to_sample() -> None:
    found = phases(of(objective="grpo", sharding="zero3", reference_model=False))
    assert found["sampling"] > found["step"] - 4  # weights of the whole model beside the shards
    assert found["sampling"] * GIB > 2 * PARAMS


def test_vllm_takes_its_share_of_each_gpu() -> None:
    there = of(objective="grpo", sampler="vllm", sampler_share=0.4)
    assert on_gpu(there, ONE)["sampler"] == pytest.approx(32.0)
    assert on_gpu(replace(there, sampler_share=0.2), ONE)["sampler"] == pytest.approx(16.0)
    asleep = of(objective="grpo", sampler="vllm-sleeping", sampler_share=0.4)
    assert phases(there, ONE)["sampling" if "sampling" in phases(there, ONE) else "step"] > phases(asleep, ONE)["step"]
    assert phases(asleep, ONE)["sampling"] > phases(asleep, ONE)["checkpoint"]
    assert "sampler" not in on_gpu(of(objective="grpo", sampler="elsewhere"), ONE)


def test_vllm_asks_for_more_of_a_larger_gpu() -> None:
    """Two types with one name of GPU and another memory are judged apart."""
    workload = of(objective="grpo", sampler="vllm", method="qlora", sharding="none")
    small, large = (Placement.on(instances()[name]) for name in ("ml.p4d.24xlarge", "ml.p4de.24xlarge"))
    assert small.gpu == large.gpu
    assert on_gpu(workload, small)["sampler"] < on_gpu(workload, large)["sampler"]


def test_deepspeed_computes_the_loss_in_16_bits() -> None:
    mixed, engine = (on_gpu(of(objective="dpo", sharding=s, method="lora")) for s in ("none", "zero2"))
    assert mixed["logits"] / engine["logits"] == pytest.approx(NEEDS["dpo"].mixed / NEEDS["dpo"].half)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (
            {"objective": "orpo", "reference_model": True},
            r"memory\.reference_model.*objective is orpo.*dpo or kto or grpo",
        ),
        ({"objective": "dpo", "sampler": "vllm"}, r"memory\.sampler.*objective is dpo, which samples no answers"),
        ({"objective": "dpo", "teacher_model": LLAMA}, r"memory\.teacher_model.*which has no teacher"),
        ({"sampler_share": 0.3}, r"memory\.sampler_share.*objective is supervised"),
        ({"objective": "grpo", "sampler": "elsewhere", "sampler_share": 0.3}, r"only vLLM takes a share"),
        ({"objective": "reward", "head": "lm"}, r"memory\.head.*one value"),
        ({"objective": "simpo"}, r"memory\.objective.*cpo"),
        ({"objective": "dpo", "model": "bert-base-uncased"}, r"memory\.objective.*no decoder"),
        ({"objective": "kto", "model": {"family": "vision", "name": "resnet50"}}, r"memory\.objective.*no decoder"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, memory: dict[str, Any], message: str) -> None:
    with pytest.raises(SagefitError, match=f"(?s){message}"):
        described(load_job(write_job(tmp_path, {"memory": FULL | memory})))


@pytest.mark.parametrize(
    ("told", "objective", "also"),
    [
        ({"rlhf_type": "dpo"}, "dpo", {"reference": True}),
        ({"rlhf_type": "simpo"}, "cpo", {"reference": False}),
        ({"stage": "rm"}, "reward", {}),
        ({"stage": "sft"}, "supervised", {}),
        ({"rlhf_type": "dpo", "precompute_ref_log_probs": "true"}, "dpo", {"reference": False}),
        ({"rlhf_type": "grpo", "beta": 0.0}, "grpo", {"reference": False, "sampler": "transformers"}),
        ({"rlhf_type": "grpo", "use_vllm": True, "vllm_mode": "server"}, "grpo", {"sampler": "elsewhere"}),
        (
            {"rlhf_type": "grpo", "use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.5},
            "grpo",
            {"sampler": "vllm", "sampler_share": 0.5},
        ),
        (
            {"rlhf_type": "grpo", "use_vllm": "true", "vllm_mode": "colocate", "sleep_level": 1},
            "grpo",
            {"sampler": "vllm-sleeping", "sampler_share": 0.3},
        ),
        ({"rlhf_type": "gkd", "teacher_model": "Qwen/Qwen2.5-14B-Instruct"}, "gkd", {}),
    ],
)
def test_what_the_script_is_told_is_read(told: dict[str, Any], objective: str, also: dict[str, Any]) -> None:
    workload = of(told)
    assert workload.objective == objective
    for field, value in also.items():
        assert getattr(workload, field) == value


def test_a_known_teacher_is_read() -> None:
    teacher = of({"rlhf_type": "gkd", "teacher_model": "Qwen/Qwen2.5-14B-Instruct"}).teacher
    assert isinstance(teacher, Transformer)
    assert teacher.layers == 48


def test_what_contradicts_the_script_is_refused() -> None:
    with pytest.raises(SagefitError, match=r"(?s)memory\.objective.*is kto.*rlhf_type.*is dpo"):
        of({"rlhf_type": "dpo"}, objective="kto")


def test_what_is_not_known_is_said() -> None:
    assert any("ppo" in note and "not known" in note for note in of({"rlhf_type": "ppo"}).notes)


def test_ways_that_need_less_are_offered() -> None:
    job = auto_job({"memory": FULL | {"objective": "dpo"}, "hyperparameters": None})
    kinds = {change.kind: change for change in changes_of(job, described(job))}
    assert kinds["reference"].workload == {"reference": False}
    assert "precompute_ref_log_probs" in kinds["reference"].text
    assert kinds["method"].workload["reference"] is False
    rl = auto_job({"memory": FULL | {"objective": "grpo", "sampler": "vllm"}, "hyperparameters": None})
    assert any(change.workload == {"sampler": "vllm-sleeping"} for change in changes_of(rl, described(rl)))


# --- What must hold for any model --------------------------------------------------------------------------------


@st.composite
def comparing(draw: st.DrawFn) -> Workload:
    """A decoder with an objective, with or without a copy of it."""
    workload = draw(workloads())
    assert isinstance(workload.model, Transformer)
    model = replace(workload.model, architecture="decoder", encoder_layers=0)
    objective = draw(st.sampled_from(COMPARING))
    reference = NEEDS[objective].reference and draw(st.booleans())
    samplers: list[Sampler] = ["transformers", "vllm", "elsewhere"]
    sampler = draw(st.sampled_from(samplers)) if NEEDS[objective].samples else "elsewhere"
    return replace(workload, model=model, objective=objective, reference=reference, sampler=sampler, sampler_share=0.3)


@given(comparing(), placements)
def test_more_never_needs_less(workload: Workload, where: Placement) -> None:
    for more in (
        {"micro_batch": 2 * workload.micro_batch},
        {"sequence_length": 2 * workload.sequence_length},
        {"accumulation": 2 * workload.accumulation},
        {"reference": True},
    ):
        never_more(workload, replace(workload, **more), where)
    never_more(replace(workload, sampler="elsewhere"), workload, where)
    never_more(replace(workload, sampler="vllm-sleeping"), replace(workload, sampler="vllm"), where)


@given(comparing(), placements)
def test_less_never_needs_more(workload: Workload, where: Placement) -> None:
    never_more(replace(workload, gradient_checkpointing=True), replace(workload, gradient_checkpointing=False), where)
    orders: tuple[tuple[Loss, Loss], ...] = (("fused", "chunked"), ("chunked", "default"))
    for less, more in orders:
        never_more(replace(workload, loss=less), replace(workload, loss=more), where)


@given(comparing(), st.sampled_from([2, 4, 8]))
def test_sharding_never_costs_memory_but_where_it_samples(workload: Workload, gpus: int) -> None:
    """A sharded model is gathered to sample, beside its shards."""
    if workload.sampler == "transformers":
        workload = replace(workload, sampler="elsewhere")
    if workload.precision == "bf16":
        workload = replace(workload, precision="bf16-mixed")
    for stage in ("zero1", "zero2", "zero3"):
        never_more_sharded(replace(workload, sharding=stage), replace(workload, sharding="none"), Placement(1, gpus))


def test_the_page_has_the_figures_that_the_planner_uses() -> None:
    page = (Path(__file__).parents[2] / "docs" / "memory.md").read_text(encoding="utf-8")
    for name in COMPARING:
        needs = NEEDS[name]
        assert f"| `{name}` | {needs.sequences} | {needs.mixed:g} | {needs.half:g} | {needs.whole:g} |" in page


ENCODER = {"model": "sentence-transformers/all-mpnet-base-v2", "precision": "fp16-mixed", "stack": "hf-trainer"}


def embedding(hyperparameters: dict[str, Any] | None = None, **memory: Any) -> Workload:
    """The workload of an encoder."""
    return described(auto_job({"memory": ENCODER | memory, "hyperparameters": hyperparameters}))


@pytest.mark.parametrize(("objective", "texts"), [("contrastive", 2), ("triplet", 3)])
def test_each_text_of_an_example_goes_through_a_model_of_embeddings(objective: Objective, texts: int) -> None:
    compared = on_gpu(embedding(objective=objective, micro_batch=32, sequence_length=256))
    plain = on_gpu(embedding(head="classification", micro_batch=32 * texts, sequence_length=256))
    assert compared == pytest.approx(plain)
    assert "logits" not in compared


def test_decoders_embed_too_and_need_no_vocabulary(tmp_path: Path) -> None:
    workload = of(objective="contrastive", micro_batch=4)
    assert workload.model is not None
    assert isinstance(workload.model, Transformer)
    assert workload.model.head == "classification"
    with pytest.raises(SagefitError, match="puts a vector where a language model has its vocabulary"):
        load_job(str(write_job(tmp_path, {"memory": FULL | {"objective": "triplet", "head": "lm"}})))


@pytest.mark.parametrize(
    ("loss", "objective"),
    [
        ("MultipleNegativesRankingLoss", "contrastive"),
        ("CoSENTLoss", "contrastive"),
        ("triplet", "triplet"),
        ("sigmoid", "supervised"),
    ],
)
@pytest.mark.parametrize("name", ["loss", "loss_type"])
def test_a_loss_of_sentence_transformers_is_read(name: str, loss: str, objective: Objective) -> None:
    workload = embedding({name: loss})
    assert workload.objective == objective
    hint = any("with objective: contrastive two do" in note for note in workload.notes)
    assert hint is (objective == "supervised")


def test_an_image_model_s_loss_is_none_of_texts() -> None:
    resnet = {"model": {"family": "vision", "name": "resnet50"}}
    assert described(auto_job({"memory": resnet, "hyperparameters": {"loss": "triplet"}})).objective == "supervised"


@pytest.mark.parametrize("architecture", ["t5-small", "google/flan-t5-base"])
def test_what_an_encoder_with_a_decoder_embeds_is_not_known(architecture: str) -> None:
    with pytest.raises(SagefitError, match="no decoder or encoder"):
        embedding(model=architecture, objective="contrastive")
