"""Diffusion models: published parameters, what is refused, the changes that help, and what must never happen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy import lomo, runs
from job_files import auto_job, write_job
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.job.memory_model import Sharding
from sagefit.memory import Diffusion, Placement, Workload, diffusion, host, vision
from sagefit.memory.diffusion_models import Moment, table
from sagefit.memory.overhead import peak
from sagefit.memory.presets import presets
from sagefit.memory.read import described
from sagefit.memory.workload import Kronecker
from sagefit.planning.changes import changes_of

ONE = Placement(1, 1, "A100")
FLUX = Workload(
    model=Diffusion("flux", encoders="cached"),
    method="lora",
    precision="bf16-mixed",
    gradient_checkpointing=True,
    stack="plain-torch",
)
DENOISERS = sorted({each.name for each in table().values()})


def total(workload: Workload, place: Placement = ONE) -> float:
    return peak(diffusion.gpu_phases(workload, place))


def job_of(model: Any, **memory: Any) -> Any:
    return auto_job({"memory": {"model": model, **memory}, "hyperparameters": None})


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("stable-diffusion-v1-5/stable-diffusion-v1-5", 859_520_964),
        ("stabilityai/stable-diffusion-xl-base-1.0", 2_567_463_684),
        ("black-forest-labs/FLUX.1-dev", 11_901_408_320),
        ("Wan-AI/Wan2.1-T2V-14B", 14_288_491_584),
        ("HiDream-ai/HiDream-I1-Full", 17.1e9),
        ("Tongyi-MAI/Z-Image-Turbo", 6.15e9),
        ("baidu/ERNIE-Image", 8.03e9),
        ("Alpha-VLLM/Lumina-Image-2.0", 2.61e9),
        ("kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers", 2.01e9),
        ("black-forest-labs/FLUX.2-klein-4B", 3.88e9),
    ],
)
def test_parameters_are_those_that_were_published(name: str, parameters: float) -> None:
    assert diffusion.resolve(Diffusion(name)).parameters == pytest.approx(parameters, rel=2e-3)


def test_samples_taken_one_by_one_are_counted_for_each() -> None:
    """Lumina and Z-Image cut each sample out of the batch: what that makes must grow with the batch alone."""
    for name in ("lumina-image-2.0", "z-image"):
        of = table()[name]
        for moment in of.moments["lora-attention", False]:
            assert moment.position == 0
            assert moment.constant < 0.01 * moment.activations(1, of.positions(512, 512, 1))


def test_states_of_a_whole_denoiser_by_hand() -> None:
    """AdamW beside fp32 weights takes 4 + 4 + 8 bytes a parameter in the step."""
    count = diffusion.resolve(Diffusion("sdxl")).parameters
    full = Workload(model=Diffusion("sdxl"), precision="bf16-mixed", stack="plain-torch")
    parts = diffusion.tensor_phases(full, ONE)["step"]
    assert parts["weights"] + parts["gradients"] + parts["optimizer"] == pytest.approx(16 * count, rel=1e-3)
    frozen = diffusion.tensor_phases(FLUX, ONE)["step"]
    assert frozen["weights"] == pytest.approx(2 * 11_901_408_320, rel=5e-3)


def test_products_have_the_parameters_that_lycoris_gives_them() -> None:
    """Sana has 160 layers of 2240 x 2240 in its attention; a factor that does not divide is the next smaller divisor.

    With 4, a meta model of LyCORIS 4.1.3 had 50,178,560 parameters.
    """
    sana = replace(FLUX, model=Diffusion("sana-1.6b", encoders="cached"), lokr=Kronecker(4))
    of = diffusion.resolve(Diffusion("sana-1.6b"))
    assert diffusion.parameters(sana) == (of.parameters, 160 * (560 * 560 + 4 * 4))
    assert diffusion.parameters(replace(sana, lokr=Kronecker(2)))[1] == 160 * (1120 * 1120 + 2 * 2)
    assert diffusion.parameters(replace(sana, lokr=Kronecker(9)))[1] == 160 * (280 * 280 + 8 * 8)
    kandinsky = replace(sana, model=Diffusion("kandinsky-5.0-t2i-lite"), lokr=Kronecker(4, 4))
    assert diffusion.parameters(kandinsky)[1] == 337_518_592


def test_states_of_products_by_hand() -> None:
    """In bf16: 2 bytes of weight, and of each of three states; in mixed precision 4, and a copy in 16 bits."""
    job = job_of(
        {"family": "diffusion", "name": "sana-1.6b", "encoders": "cached"},
        method="lora",
        lokr={"attention": 4},
        precision="bf16",
        optimizer="adamw-kahan",
        stack="plain-torch",
    )
    workload = described(job)
    trained = 50_178_560
    of = diffusion.resolve(Diffusion("sana-1.6b"))
    phases = diffusion.tensor_phases(workload, ONE)
    assert phases["step"]["weights"] == 2 * of.parameters + of.buffers + 2 * trained
    assert phases["step"]["optimizer"] == 3 * 2 * trained
    mixed = diffusion.tensor_phases(replace(workload, precision="bf16-mixed"), ONE)
    assert mixed["step"]["optimizer"] == 3 * 4 * trained
    assert mixed["backward"]["activations"] - phases["backward"]["activations"] == 2 * trained


def test_positions_of_a_video_by_hand() -> None:
    """CogVideoX: a latent has one position for 8 x 8 pixels; the first frame has its own, then four share one."""
    assert diffusion.resolve(Diffusion("cogvideox-2b")).positions(480, 720, 49) == 13 * 60 * 90
    assert diffusion.resolve(Diffusion("sdxl")).positions(1024, 1024, 1) == 128 * 128


def test_a_moment_is_a_sum_of_its_terms() -> None:
    moment = Moment(gradients=0.5, constant=7, position=3, sample=11, sample_position=2)
    assert moment.activations(4, 10) == 7 + 3 * 10 + 4 * (11 + 2 * 10)


def test_every_denoiser_is_traced_in_every_way() -> None:
    for name in DENOISERS:
        of = table()[name]
        assert of.moments.keys() == {
            (way, checkpointed)
            for way in ("full-mixed", "full-bf16", "lora-attention", "lora-all-linear", "lokr-attention")
            for checkpointed in (True, False)
        } | ({("lokr-feed-forward", True), ("lokr-feed-forward", False)} if of.adapts_feed_forward else set())
        assert sum(each.number for each in of.layers if each.kind == "attention") > 10
        assert 0 < of.ranked["attention"] < of.ranked["all-linear"]
        assert of.encoders > 0


def test_a_name_means_one_model() -> None:
    assert not table().keys() & {name.lower() for name in presets()}
    assert not [name for name in table() if vision.known(name)]
    assert all(name == name.lower() for name in table())


def test_published_runs_are_under_their_bounds() -> None:
    """Two sources that nothing was made with: half within a tenth, none above its bound."""
    found = lomo.gpu_outcomes([run for run in runs.other_runs() if isinstance(run.workload.model, Diffusion)])
    score = lomo.score(found)
    assert score.runs == 75
    assert score.median < 0.1
    assert score.above == 0


def test_own_runs_are_predicted() -> None:
    score = lomo.score(lomo.gpu_outcomes([run for run in runs.gpu_runs() if isinstance(run.workload.model, Diffusion)]))
    assert score.runs > 150
    assert score.median < 0.05
    assert score.above < 0.02


def test_encoders_are_where_the_job_says() -> None:
    kinds = ("resident", "unloaded", "cached")
    need = {kind: described(job_of({"family": "diffusion", "name": "flux", "encoders": kind})) for kind in kinds}
    phases = {kind: diffusion.gpu_phases(workload, ONE) for kind, workload in need.items()}
    assert phases["resident"]["backward"]["encoders"] == phases["unloaded"]["load"]["encoders"] == 2 * 5.0e9
    assert phases["unloaded"]["backward"]["encoders"] == phases["cached"]["load"]["encoders"] == 0
    assert "encoding" not in phases["cached"]
    on_host = {kind: host.phases(workload, ONE)["load"]["model"] for kind, workload in need.items()}
    assert on_host["resident"] == on_host["unloaded"] == pytest.approx(on_host["cached"] + 4 * 5.0e9)


@pytest.mark.parametrize(
    ("model", "memory", "said"),
    [
        ({"name": "fluxx"}, {}, ("memory.model.name", "no denoiser is known as 'fluxx'", "did you mean")),
        ({"name": "sdxl", "image_size": 512, "height": 512, "width": 512}, {}, ("memory.model.image_size", "and one")),
        ({"name": "sdxl", "height": 512}, {}, ("memory.model.height", "width is not", "image_size for a square")),
        ({"name": "sdxl", "width": 512}, {}, ("memory.model.width", "height is not")),
        ({"name": "sdxl", "frames": 16}, {}, ("memory.model.frames", "sdxl makes images")),
        ({"name": "sdxl", "image_size": 32}, {}, ("memory.model", "image_size", "64")),
        ({"name": "sdxl", "encoders": "gone"}, {}, ("encoders", "resident", "unloaded", "cached")),
        ({"name": "sdxl"}, {"method": "qlora"}, ("memory.method", "4-bit", "lora has the frozen denoiser")),
        ({"name": "sdxl"}, {"attention": "eager"}, ("memory.attention", "eager", "sdpa")),
        ({"name": "sdxl"}, {"lokr": {"attention": 2}}, ("memory.lokr", "method is full", "method: lora")),
        (
            {"name": "sdxl"},
            {"method": "lora", "lora_rank": 8, "lokr": {"attention": 2}},
            ("memory.lora_rank", "no rank", "remove it, or lokr"),
        ),
        (
            {"name": "sana-1.6b"},
            {"method": "lora", "lokr": {"attention": 2, "feed_forward": 4}},
            ("memory.lokr.feed_forward", "sana-1.6b has no feed-forward layers that LoKr would find", "remove it"),
        ),
        ({"name": "sdxl"}, {"method": "lora", "lokr": {"attention": 0}}, ("memory.lokr.attention", "1")),
        ({"name": "sdxl"}, {"method": "lora", "lokr": {"feed_forward": 4}}, ("memory.lokr.attention",)),
    ],
)
def test_what_is_refused(tmp_path: Path, model: dict[str, Any], memory: dict[str, Any], said: tuple[str, ...]) -> None:
    changes = {"memory": {"model": {"family": "diffusion", **model}, **memory}}
    with pytest.raises(SagefitError) as caught:
        described(load_job(str(write_job(tmp_path, changes))))
    for each in ("digits.yaml:", *said):
        assert each in caught.value.message


def test_products_are_for_denoisers_only() -> None:
    with pytest.raises(
        SagefitError, match=r"(?s)memory\.lokr: .* for denoisers of diffusion models only.*give lora_rank"
    ):
        described(job_of("llama-3.1-8b", method="lora", lokr={"attention": 4}))


def test_a_bare_name_is_enough() -> None:
    model = described(job_of("black-forest-labs/FLUX.1-dev", method="lora", lora_rank=16)).model
    assert isinstance(model, Diffusion)
    assert diffusion.size(model) == (1024, 1024, 1)
    with pytest.raises(SagefitError, match=r"flux\.1-dev"):
        described(job_of("flux.1-devv"))


def test_its_changes_say_what_a_denoiser_can_do() -> None:
    job = job_of("flux", micro_batch=2)
    found = {change.kind: change for change in changes_of(job, described(job))}
    assert "cached" in found["encoders"].text
    assert found["method"].workload == {"method": "lora"}
    assert {"batch", "checkpointing", "optimizer", "sharding"} <= found.keys()
    assert not {"attention", "length", "base"} & found.keys()
    written = job_of({"family": "diffusion", "name": "flux", "image_size": 512, "encoders": "unloaded"})
    kinds = [change for change in changes_of(written, described(written)) if change.kind == "encoders"]
    assert [change.workload["model"] for change in kinds] == [Diffusion("flux", 512, 512, 0, "cached")]


workloads = st.builds(
    Workload,
    model=st.builds(
        Diffusion,
        st.sampled_from(DENOISERS),
        height=st.integers(4, 24).map(lambda n: 64 * n),
        width=st.integers(4, 24).map(lambda n: 64 * n),
        encoders=st.sampled_from(["resident", "unloaded", "cached"]),
    ),
    method=st.sampled_from(["full", "lora"]),
    lora_rank=st.sampled_from([4, 16, 128]),
    lora_targets=st.sampled_from([None, "attention", "all-linear"]),
    lokr=st.sampled_from([None, None, Kronecker(2), Kronecker(16)]),
    precision=st.sampled_from(["fp32", "bf16-mixed", "bf16"]),
    optimizer=st.sampled_from(["adamw", "sgd", "lion", "adafactor", "adamw-8bit"]),
    micro_batch=st.integers(1, 40),
    accumulation=st.integers(1, 3),
    gradient_checkpointing=st.booleans(),
    sharding=st.sampled_from(["none", "zero2", "zero3", "fsdp"]),
    stack=st.sampled_from(["plain-torch", "deepspeed", "unknown"]),
)
places = st.builds(Placement, st.integers(1, 2), st.sampled_from([1, 4, 8]), st.just("A100"))


@settings(max_examples=200)
@given(workloads, places, st.integers(1, 8), st.integers(1, 8))
def test_more_images_or_larger_images_never_need_less(
    workload: Workload, place: Placement, more: int, larger: int
) -> None:
    need = total(workload, place)
    assert total(replace(workload, micro_batch=workload.micro_batch + more), place) >= need
    model = workload.model
    assert isinstance(model, Diffusion)
    assert total(replace(workload, model=replace(model, height=model.height + 64 * larger)), place) >= need


@settings(max_examples=200)
@given(workloads, places)
def test_what_saves_memory_never_needs_more(workload: Workload, place: Placement) -> None:
    need = total(workload, place)
    assert total(replace(workload, gradient_checkpointing=True), place) <= need
    assert total(replace(workload, accumulation=1), place) <= need
    model = workload.model
    assert isinstance(model, Diffusion)
    assert total(replace(workload, model=replace(model, encoders="cached")), place) <= need
    if model.encoders == "resident":
        assert total(replace(workload, model=replace(model, encoders="unloaded")), place) <= need
    if workload.lokr and workload.method == "lora":
        smaller = replace(workload, lokr=Kronecker(2 * workload.lokr.attention))
        assert total(smaller, place) <= need
    if workload.optimizer == "adamw":
        assert total(replace(workload, optimizer="adamw-8bit"), place) <= need


@settings(max_examples=200)
@given(workloads, st.sampled_from(["zero2", "zero3", "fsdp"]), st.sampled_from([2, 4]))
def test_more_shards_never_need_more(workload: Workload, sharding: Sharding, ranks: int) -> None:
    stack = "unknown" if sharding == "fsdp" else workload.stack
    sharded = replace(workload, sharding=sharding, world_size=ranks, stack=stack)
    assert total(replace(sharded, world_size=2 * ranks), Placement(1, 8)) <= total(sharded, Placement(1, 8)) * 1.0001


@settings(max_examples=100)
@given(workloads, places)
def test_parts_are_not_negative(workload: Workload, place: Placement) -> None:
    assert all(size >= 0 for parts in diffusion.gpu_phases(workload, place).values() for size in parts.values())
