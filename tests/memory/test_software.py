"""What the releases of torch and transformers in a job's image, and the kernels of its optimizer, do to memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drawn import gpu
from job_files import write_job
from sagefit.job import load_job
from sagefit.job.memory_model import Step
from sagefit.memory import GIB, Placement, Transformer, Workload
from sagefit.memory.read import read
from sagefit.memory.software import fuses_by_default, torch, transformers
from sagefit.memory.trace import tensor_phases as trace_phases
from sagefit.memory.workload import Traced, TracedPoint

P = 1_235_814_400
LLAMA_1B = Transformer(
    params=P, layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128256, tied=True
)
FULL = Workload(
    LLAMA_1B,
    precision="bf16-mixed",
    micro_batch=4,
    sequence_length=1024,
    gradient_checkpointing=True,
    stack="hf-trainer",
)
NEWEST = {"framework": "huggingface", "version": "4.56"}
PYTORCH = {"framework": "pytorch", "version": "2.6"}


def job_of(folder: Path, image: dict[str, str], requirements: str = "", **changes: Any) -> Any:
    memory = {"model": "meta-llama/Llama-3.2-1B", "precision": "bf16-mixed", "stack": "hf-trainer"}
    hyperparameters = changes.pop("hyperparameters", None)
    of_job: dict[str, Any] = {
        "image": image,
        "memory": memory | changes,
        "hyperparameters": hyperparameters or {"epochs": 1},
        "resources.instance_type": "auto" if image["framework"] == "sklearn" else "ml.g5.xlarge",
        "attempts": None,
    }
    path = write_job(folder, of_job)
    if requirements:
        (folder / "src" / "requirements.txt").write_text(requirements, encoding="utf-8")
    return load_job(str(path))


@pytest.mark.parametrize(
    ("image", "requirements", "of_torch", "of_transformers"),
    [
        (NEWEST, "", (2, 8), (4, 56)),
        ({"framework": "huggingface", "version": "4.26"}, "", (1, 13), (4, 26)),
        (PYTORCH, "", (2, 6), None),
        ({"framework": "sklearn", "version": "1.2-1"}, "", None, None),
        (NEWEST, "transformers==4.40.0\ntorch-geometric==2.0\n", (2, 8), None),
        (NEWEST, "transformers[torch]>=4.40  # newer\nTorch>=2.0; python_version > '3'\npeft\n", (2, 8), (4, 56)),
        (NEWEST, "transformers\ntorch<2.0  # older\n", None, (4, 56)),
        (PYTORCH, "torch~=1.13\n", None, None),
    ],
)
def test_releases_are_those_of_the_image_unless_another_is_asked_for(
    tmp_path: Path, image: dict[str, str], requirements: str, of_torch: Any, of_transformers: Any
) -> None:
    job = job_of(tmp_path, image, requirements)
    assert (torch(job), transformers(job)) == (of_torch, of_transformers)
    assert fuses_by_default(job) is (torch(job) == (2, 8) and transformers(job) == (4, 56))


@pytest.mark.parametrize(
    ("optim", "step"),
    [
        ("adamw_torch", "foreach"),
        ("adamw_torch_fused", "fused"),
        ("adamw_apex_fused", "fused"),
        ("paged_adamw_32bit", "bitsandbytes"),
        ("lion_32bit", "bitsandbytes"),
        ("adamw_bnb_8bit", "foreach"),
        ("galore_adamw", "foreach"),
    ],
)
def test_the_name_of_the_optimizer_tells_whose_kernels_update_weights(tmp_path: Path, optim: str, step: Step) -> None:
    workload = read(job_of(tmp_path, NEWEST, hyperparameters={"optim": optim}))
    assert workload.step == step
    assert any("paged states are counted on the GPU" in note for note in workload.notes) is optim.startswith("paged")


@pytest.mark.parametrize(
    ("image", "changes", "step"),
    [
        (NEWEST, {}, "fused"),
        (NEWEST, {"stack": "hf-liger"}, "fused"),
        (NEWEST, {"stack": "plain-torch"}, "foreach"),
        (NEWEST, {"stack": "unknown"}, "foreach"),
        (NEWEST, {"optimizer": "adamw"}, "foreach"),
        (NEWEST, {"sharding": "zero2"}, "foreach"),
        ({"framework": "huggingface", "version": "4.55"}, {}, "foreach"),
        (PYTORCH, {}, "foreach"),
    ],
)
def test_the_trainer_has_a_fused_default_with_new_releases(
    tmp_path: Path, image: dict[str, str], changes: dict[str, Any], step: Step
) -> None:
    workload = read(job_of(tmp_path, image, **changes))
    assert workload.step == step
    assert any("adamw_torch_fused" in note for note in workload.notes) is (step == "fused")


def test_only_foreach_copies_the_weights_in_its_step() -> None:
    work = replace(FULL, torch=(2, 8))
    by = {step: gpu(replace(work, step=step)).phases["step"] for step in ("foreach", "fused", "bitsandbytes")}
    assert by["foreach"] - by["fused"] == pytest.approx(4 * P * 1.06 / GIB)
    assert by["bitsandbytes"] == by["fused"]
    half = replace(work, precision="bf16")
    more = gpu(replace(half, step="bitsandbytes")).phases["step"] - gpu(replace(half, step="fused")).phases["step"]
    assert more == pytest.approx(4 * P / GIB)  # moments of fp32 instead of bf16


def test_a_traced_model_has_no_copy_either() -> None:
    zero = {"weights": 0.0, "activations": 0.0}
    point = TracedPoint(1, False, {"single": {"forward": zero, "backward": zero}})
    optimizers = {"adamw": {"state": 8, "temporaries": 4}}
    points = (point, replace(point, batch=2))
    traced = Traced("", "transformer", 1, 1, 4, 0, 4, optimizers, points)
    steps: dict[Step, float] = {"foreach": 4.0, "fused": 0.0, "bitsandbytes": 0.0}
    for step, expected in steps.items():
        assert trace_phases(Workload(traced, step=step))["step"]["temporaries"] == expected


def test_gradients_are_freed_before_the_forward_pass_where_torch_is_new() -> None:
    old, new = replace(FULL, step="fused"), replace(FULL, step="fused", torch=(2, 0))
    assert gpu(old).parts["gradients"] * GIB == pytest.approx(4 * P)
    assert gpu(new).phases["forward"] < gpu(old).phases["forward"]
    assert gpu(replace(new, torch=(1, 13))).phases == gpu(old).phases
    kept = [gpu(replace(one, accumulation=4)).phases["forward"] for one in (old, new)]
    assert kept[0] == kept[1] == gpu(old).phases["forward"]


def test_what_freed_gradients_leave_is_no_reason_to_die() -> None:
    new = replace(FULL, step="fused", torch=(2, 8))
    estimate = gpu(new)
    assert (estimate.phase, "gradients" in estimate.parts) == ("forward", False)
    assert 0 < estimate.spare <= estimate.parts["pools"] * 1.001
    assert gpu(replace(new, expandable_segments=True)).parts.get("pools") is None
    assert gpu(new, Placement(1, 1, "L4")).point == estimate.point
