"""Models that see and read: a vision tower beside a language model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accuracy.runs import gpu_rows, gpu_runs
from drawn import gpu, never_more, placements, workloads
from job_files import auto_job
from sagefit.errors import SagefitError
from sagefit.memory import GIB, Placement, Transformer, Workload, bounds, predict
from sagefit.memory.bounds import gpu_ratio
from sagefit.memory.presets import presets
from sagefit.memory.read import described
from sagefit.memory.workload import VisionTower

QWEN = "Qwen/Qwen2.5-VL-3B-Instruct"
SEES = presets()[QWEN.lower()].model
READS = presets()["qwen/qwen2.5-3b"].model
BLOCK = {"model": QWEN, "precision": "bf16-mixed", "stack": "hf-trainer", "sequence_length": 2048, "image_tokens": 256}
EIGHT = Placement(1, 8, "H100")


def of(hyperparameters: dict[str, Any] | None = None, **memory: Any) -> Workload:
    """The workload of a memory block."""
    return described(auto_job({"memory": BLOCK | memory, "hyperparameters": hyperparameters}))


def test_runs_that_saw_are_met_without_a_constant_of_their_own() -> None:
    """This project's own runs of Qwen2.5-VL-3B: tensors within 6 %, and no run above its bound."""
    runs = [run for run in gpu_runs() if run.model == QWEN]
    rows = [row for row in gpu_rows() if row["kind"] == "vision-language"]
    assert len(runs) == len(rows) == 9
    for run, row in zip(runs, rows, strict=True):
        estimate = gpu(run.workload, run.placement)
        tensors = sum(size for part, size in estimate.parts.items() if part not in ("framework", "allocator"))
        assert tensors == pytest.approx(float(row["allocated_gib"]), rel=0.06)
        assert run.measured < run.comparable() * gpu_ratio(run.workload)


def test_adapters_are_those_that_were_trained() -> None:
    """41,363,456 parameters on all linear layers, 278,528 of them in the two layers between tower and model."""
    lora = of(method="lora", lora_rank=16, lora_targets="all-linear")
    seeing, reading = (gpu(replace(lora, vision_tower=tower)).parts["optimizer"] for tower in ("trained", "frozen"))
    in_tower = 41_363_456 - 278_528 - 16 * 36 * (2 * 4096 + 2 * 2304 + 3 * 13056)
    assert (seeing - reading) * GIB == pytest.approx(8 * in_tower)


def test_a_frozen_tower_has_weights_and_nothing_else() -> None:
    assert SEES.tower is not None
    trained, frozen = (gpu(of(vision_tower=tower)).parts for tower in ("trained", "frozen"))
    assert frozen["vision tower"] * GIB == 4 * SEES.tower.params
    assert (trained["weights"] - frozen["weights"]) * GIB == pytest.approx(4 * SEES.tower.params)
    assert (trained["optimizer"] - frozen["optimizer"]) * GIB == pytest.approx(8 * SEES.tower.params)
    shared = predict(of(vision_tower="frozen", sharding="zero3"), EIGHT)
    assert shared is not None
    assert shared.gpu is not None
    assert shared.gpu.parts["vision tower"] * GIB == pytest.approx(2 * SEES.tower.params / 8)


def test_a_tower_works_on_patches_of_which_a_token_has_several() -> None:
    lora = of(method="lora", lora_targets="all-linear", image_tokens=0, micro_batch=1)
    none, some = (gpu(replace(lora, image_tokens=tokens)).parts["activations"] for tokens in (0, 256))
    h, f = 1280, 3420
    each = 23 * h + 7 * h + 4 * h + 9 * f + 4 * 16  # LoRA on a 16-bit base, as a language model has it
    assert (some - none) * GIB == pytest.approx(32 * 4 * 256 * each, rel=0.2)


def test_a_frozen_tower_under_checkpointing_keeps_inputs_where_there_are_adapters() -> None:
    lora = of(method="lora", gradient_checkpointing=True, vision_tower="frozen")
    none, some = (gpu(replace(lora, image_tokens=tokens)).phases["forward"] for tokens in (0, 1024))
    assert (some - none) * GIB >= 32 * 4 * 1024 * 2 * 1280
    full = of(gradient_checkpointing=True, vision_tower="frozen")
    assert gpu(full).phases["forward"] == gpu(replace(full, image_tokens=1024)).phases["forward"]


@pytest.mark.parametrize(
    ("told", "memory", "tower", "note"),
    [
        ({}, {}, "trained", "the vision tower is trained too;"),
        ({}, {"method": "lora"}, "trained", "by adapters"),
        ({}, {"stack": "ms-swift"}, "frozen", "as ms-swift does"),
        ({}, {"vision_tower": "frozen"}, "frozen", ""),
        ({"freeze_vit": True}, {}, "frozen", "freeze_vit"),
        ({"freeze_vision_tower": "false"}, {"stack": "ms-swift"}, "trained", "freeze_vision_tower"),
    ],
)
def test_whether_the_tower_is_trained(told: dict[str, Any], memory: dict[str, Any], tower: str, note: str) -> None:
    workload = of(told, **memory)
    assert workload.vision_tower == tower
    assert any(note in each for each in workload.notes)


def test_without_image_tokens_every_token_is_one() -> None:
    workload = of(image_tokens=None)
    assert workload.image_tokens == 2048
    assert any("every token is taken to come from an image" in note for note in workload.notes)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"image_tokens": 2049}, r"memory\.image_tokens.*2049 tokens of a sequence of 2048"),
        ({"model": "Qwen/Qwen2.5-3B", "image_tokens": 5}, r"memory\.image_tokens.*no vision tower"),
        (
            {"model": "Qwen/Qwen2.5-3B", "image_tokens": None, "vision_tower": "frozen"},
            r"memory\.vision_tower.*no vision",
        ),
    ],
)
def test_what_no_model_can_see_is_refused(memory: dict[str, Any], message: str) -> None:
    with pytest.raises(SagefitError, match=f"(?s){message}"):
        of(**memory)


def test_its_bound_is_no_narrower_than_that_of_all_runs() -> None:
    for method in ("full", "lora", "qlora"):
        workload = of(method=method)
        assert gpu_ratio(workload) >= bounds.load()["transformer"]
        evidence = bounds.evidence(workload, on_gpu=True)
        assert evidence is not None
        assert evidence.own_group == f"decoder/{method}/vision-language"


def test_a_name_of_a_model_that_sees_is_not_one_that_reads() -> None:
    assert SEES.params > READS.params
    assert gpu(of(vision_tower="frozen")).point > gpu(of(model="Qwen/Qwen2.5-3B", image_tokens=None)).point


def test_every_tower_belongs_to_a_model() -> None:
    folder = Path(__file__).parents[2] / "python/sagefit/memory/vision_towers.csv"
    for line in folder.read_text(encoding="utf-8").splitlines()[1:]:
        for name in line.split(",")[0].split():
            assert presets()[name.lower()].model.tower is not None


@st.composite
def seeing(draw: st.DrawFn) -> Workload:
    """A decoder with a vision tower."""
    workload = draw(workloads())
    assert isinstance(workload.model, Transformer)
    hidden, layers = draw(st.sampled_from([256, 1024])), draw(st.integers(1, 32))
    ffn, gated = draw(st.integers(256, 4096)), draw(st.booleans())
    norm: Literal["rms", "layer"] = draw(st.sampled_from(["rms", "layer"]))
    params = layers * (4 * hidden * hidden + 3 * hidden * ffn)
    tower = VisionTower(layers, hidden, hidden // 64, ffn, params, gated, norm, draw(st.sampled_from([1, 4])))
    model = replace(workload.model, architecture="decoder", encoder_layers=0, tower=tower)
    model = replace(model, params=model.params + params)
    tokens = draw(st.integers(0, workload.sequence_length))
    return replace(
        workload, model=model, image_tokens=tokens, vision_tower=draw(st.sampled_from(["frozen", "trained"]))
    )


@given(seeing(), placements)
def test_seeing_more_never_needs_less(workload: Workload, where: Placement) -> None:
    never_more(workload, replace(workload, image_tokens=workload.image_tokens + 100), where)
    never_more(replace(workload, vision_tower="frozen"), replace(workload, vision_tower="trained"), where)
    never_more(workload, replace(workload, micro_batch=2 * workload.micro_batch), where)
    never_more(
        replace(workload, gradient_checkpointing=True, vision_tower="trained"),
        replace(workload, gradient_checkpointing=False, vision_tower="trained"),
        where,
    )
