"""Host memory: known sums by hand, and that more of anything never needs less."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job_files import auto_job
from sagefit.memory import predict
from sagefit.memory.host import (
    CPU_HUGGING_FACE,
    CPU_PROCESS,
    CPU_TENSORFLOW,
    CUDA,
    PINNED,
    PROCESS,
    WORKER,
    phases,
    shared_memory_bytes,
)
from sagefit.memory.overhead import peak
from sagefit.memory.presets import presets
from sagefit.memory.read import read
from sagefit.memory.stacks import PROFILES
from sagefit.memory.workload import GIB, Placement, Transformer, Vision, Workload

LLAMA = presets()["llama-2-7b"].model
BERT = presets()["bert-base"].model
PARAMS = LLAMA.params
CPU, ONE, EIGHT = Placement(), Placement(1, 1, "A10G"), Placement(1, 8, "A100-40GB")


def needed(workload: Workload, placement: Placement) -> float:
    return peak(phases(workload, placement))


def test_every_rank_loads_a_copy_of_its_own() -> None:
    load = phases(Workload(LLAMA, precision="bf16", stack="hf-trainer"), EIGHT)["load"]
    assert load["model"] == 8 * 2 * PARAMS
    assert load["process"] == 8 * (PROCESS + CUDA)


@pytest.mark.parametrize(
    ("fields", "bytes_per_parameter"),
    [
        ({"precision": "fp32"}, 4),
        ({"precision": "bf16-mixed"}, 4),
        ({"precision": "bf16"}, 2),
        ({"precision": "bf16", "stack": "plain-torch"}, 4),
        ({"precision": "bf16-mixed", "method": "lora"}, 4),
        ({"precision": "bf16-mixed", "method": "lora", "base_dtype": "16-bit"}, 2),
    ],
)
def test_copies_by_precision_and_stack(fields: dict[str, Any], bytes_per_parameter: int) -> None:
    workload = Workload(LLAMA, **{"stack": "hf-trainer", **fields})
    assert phases(workload, ONE)["load"]["model"] == bytes_per_parameter * PARAMS


def test_falcon_40b_under_fsdp_needed_160_gb_for_each_of_eight_ranks() -> None:
    # huggingface/transformers#25107: 8 x 160 GB of host memory without rank-0 loading.
    falcon = presets()["falcon-40b"].model
    each = Workload(falcon, precision="bf16-mixed", sharding="zero3", stack="torchtune")
    assert phases(each, EIGHT)["load"]["model"] == pytest.approx(8 * 160e9, rel=0.05)
    once = replace(each, stack="hf-trainer")
    assert phases(once, EIGHT)["load"]["model"] == pytest.approx(160e9, rel=0.05)


def test_quantized_models_load_file_by_file() -> None:
    assert phases(Workload(LLAMA, method="qlora", stack="hf-trainer"), ONE)["load"]["model"] == 5e9


def test_zero_offload_is_what_deepspeed_estimates() -> None:
    # estimate_zero3_model_states_mem_needs: 18 bytes x params / nodes x 1.5 with both, 16 with the optimizer alone.
    workload = Workload(LLAMA, sharding="zero3", stack="deepspeed", cpu_offload="parameters")
    assert phases(workload, EIGHT)["step"]["offload"] == 27 * PARAMS
    assert phases(workload, replace(EIGHT, hosts=2))["step"]["offload"] == 13.5 * PARAMS
    optimizer = replace(workload, sharding="zero2", cpu_offload="optimizer")
    assert phases(optimizer, EIGHT)["step"]["offload"] == 24 * PARAMS


def offloaded(workload: Workload, placement: Placement = EIGHT) -> float:
    return phases(workload, placement)["step"]["offload"]


def test_fsdp_has_offloaded_weights_twice_in_blocks_of_a_power_of_two() -> None:
    workload = Workload(LLAMA, sharding="fsdp", stack="hf-trainer", cpu_offload="parameters", precision="bf16-mixed")
    locked = 2 / math.log(2)
    assert offloaded(workload) == pytest.approx((locked * 4 + 8) * PARAMS)
    assert offloaded(replace(workload, precision="bf16")) == pytest.approx((locked * 2 + 4) * PARAMS)
    assert offloaded(workload, replace(EIGHT, hosts=2)) == pytest.approx(offloaded(workload) / 2)
    hybrid = replace(workload, sharding="fsdp-hybrid-shard")
    assert offloaded(hybrid, replace(EIGHT, hosts=2)) == offloaded(workload)


def test_offloaded_frozen_weights_have_the_size_that_they_are_stored_in() -> None:
    workload = Workload(
        LLAMA, sharding="fsdp", stack="hf-trainer", cpu_offload="parameters", precision="bf16-mixed", method="qlora"
    )
    embedding = 2 * 32000 * 4096
    adapters = 39_976_960
    quantized = 0.5625 * (PARAMS - embedding) + 2 * embedding
    assert offloaded(workload) == pytest.approx(2 / math.log(2) * (quantized + 4 * adapters) + 8 * adapters)
    assert offloaded(replace(workload, cpu_offload="optimizer")) < offloaded(workload) / 10
    wide, half = (replace(workload, method="lora", base_dtype=dtype) for dtype in ("fp32", "16-bit"))
    assert offloaded(wide) - offloaded(half) == pytest.approx(2 / math.log(2) * 2 * PARAMS)
    by_deepspeed = replace(workload, sharding="zero3", stack="deepspeed")
    assert offloaded(by_deepspeed) == pytest.approx(1.5 * (18 * adapters + quantized))


def test_qlora_of_llama_3_70b_needed_127_gb_on_four_gpus() -> None:
    # P. Schmid's guide of FSDP and QLoRA: 127 GB of host memory, and 22 GB on each of four GPUs of 24 GB.
    job = auto_job(
        {
            "memory": {"model": "meta-llama/Meta-Llama-3-70B", "stack": "hf-trainer", "sequence_length": 3072},
            "hyperparameters": {
                "per_device_train_batch_size": 1,
                "gradient_checkpointing": True,
                "bf16": True,
                "load_in_4bit": True,
                "fsdp": "full_shard auto_wrap offload",
            },
        }
    )
    workload, placement = read(job), Placement(1, 4, "A10G")
    assert sum(phases(workload, placement)["step"].values()) / 1e9 == pytest.approx(127, rel=0.1)
    prediction = predict(workload, placement)
    assert prediction is not None
    assert prediction.gpu is not None
    assert prediction.gpu.point * GIB / 1e9 < 26


@pytest.mark.parametrize(
    ("fields", "bytes_per_parameter"),
    [
        ({"sharding": "fsdp", "stack": "hf-trainer"}, 12),
        ({"sharding": "zero3", "stack": "plain-torch"}, 12),
        ({"sharding": "zero3", "stack": "hf-trainer"}, 2),
        ({"sharding": "zero3", "stack": "ms-swift"}, 2),
        ({"sharding": "zero3", "stack": "deepspeed"}, 2),
        ({"sharding": "none", "stack": "hf-trainer"}, 4),
        ({"sharding": "fsdp", "stack": "hf-trainer", "saves_shards": True}, 4),
        ({"sharding": "zero3", "stack": "hf-trainer", "saves_shards": True}, 2),
    ],
)
def test_what_rank_0_gathers_depends_on_what_shards(fields: dict[str, Any], bytes_per_parameter: int) -> None:
    workload = Workload(LLAMA, precision="bf16-mixed", **fields)
    assert phases(workload, EIGHT)["checkpoint"]["checkpoint"] == bytes_per_parameter * PARAMS


def test_adapters_are_saved_alone() -> None:
    workload = Workload(LLAMA, method="lora", lora_rank=16, stack="hf-trainer")
    assert phases(workload, ONE)["checkpoint"]["checkpoint"] == 4 * 39_976_960


def test_shared_memory_is_ranks_workers_prefetch_and_batch() -> None:
    workload = Workload(BERT, micro_batch=32, workers=4, prefetch=2, sample_bytes=4096)
    assert shared_memory_bytes(workload, EIGHT) == 8 * 4 * 2 * 32 * 4096
    assert shared_memory_bytes(replace(workload, workers=0), EIGHT) == 0
    step = phases(replace(workload, stack="hf-trainer"), EIGHT)["step"]
    assert step["batches"] == 8 * PINNED * 32 * 4096
    assert step["loader workers"] == 8 * 4 * WORKER


def test_samples_have_a_size_even_if_nobody_gives_it() -> None:
    text = Workload(BERT, micro_batch=2, sequence_length=128, workers=1, prefetch=1)
    assert shared_memory_bytes(text, ONE) == 2 * 128 * 3 * 8
    image = Workload(Vision("resnet50", 224), micro_batch=2, workers=1, prefetch=1)
    assert shared_memory_bytes(image, ONE) == 2 * 3 * 224 * 224 * 4


def test_a_dataset_in_memory_is_held_by_every_rank_and_worker() -> None:
    workload = Workload(BERT, dataset_gib=3, dataset_in_memory=True, workers=2, stack="hf-trainer")
    step = phases(workload, EIGHT)["step"]
    assert step["dataset"] == 8 * 3 * GIB
    assert step["loader workers"] == 8 * 2 * (3 * GIB + WORKER)
    assert phases(replace(workload, dataset_in_memory=False), EIGHT)["step"]["dataset"] == 0


def test_evaluation_has_a_loader_of_its_own() -> None:
    workload = Workload(BERT, micro_batch=8, workers=2, evaluation_batch=64, stack="hf-trainer")
    found = phases(workload, ONE)
    assert sum(found["evaluation"].values()) > sum(found["step"].values())
    assert "evaluation" not in phases(replace(workload, evaluation_batch=None), ONE)


def test_a_world_smaller_than_the_hosts_leaves_gpus_idle() -> None:
    workload = Workload(BERT, stack="hf-trainer", world_size=2)
    assert phases(workload, EIGHT)["step"]["process"] == 2 * (PROCESS + CUDA)


@pytest.mark.parametrize(
    ("fields", "process"),
    [
        ({"stack": "plain-torch"}, CPU_PROCESS),
        ({"stack": "plain-torch", "hugging_face": True}, CPU_PROCESS + CPU_HUGGING_FACE),
        ({"stack": "hf-trainer"}, CPU_PROCESS + CPU_HUGGING_FACE),
        ({"stack": "tensorflow"}, CPU_TENSORFLOW),
    ],
)
def test_without_gpus_there_is_one_rank_and_no_cuda(fields: dict[str, Any], process: float) -> None:
    assert phases(Workload(BERT, **fields), CPU)["step"]["process"] == process


workloads = st.builds(
    Workload,
    model=st.sampled_from([BERT, LLAMA, Vision("resnet50", 0)]),
    method=st.sampled_from(["full", "lora", "qlora"]),
    precision=st.sampled_from(["fp32", "bf16-mixed", "bf16"]),
    sharding=st.sampled_from(["none", "zero2", "zero3"]),
    cpu_offload=st.sampled_from(["none", "optimizer"]),
    stack=st.sampled_from([*PROFILES, "unknown"]),
    micro_batch=st.integers(1, 512),
    workers=st.integers(0, 16),
    prefetch=st.integers(0, 8),
    sample_bytes=st.none() | st.integers(1, 10**7),
    dataset_gib=st.floats(0, 100),
    dataset_in_memory=st.booleans(),
    evaluation_batch=st.none() | st.integers(1, 64),
    lora_rank=st.integers(1, 64),
)
placements = st.builds(Placement, hosts=st.integers(1, 4), gpus_per_host=st.integers(0, 8), gpu=st.just("A100"))


@settings(deadline=None)
@given(workloads, placements, st.integers(1, 100))
def test_more_of_anything_never_needs_less(workload: Workload, placement: Placement, more: int) -> None:
    least = needed(workload, placement)
    assert least > 0
    larger: list[Workload] = [
        replace(workload, workers=workload.workers + more),
        replace(workload, prefetch=workload.prefetch + more),
        replace(workload, micro_batch=workload.micro_batch + more),
        replace(workload, dataset_gib=workload.dataset_gib + more),
        replace(workload, dataset_in_memory=True),
        replace(workload, lora_rank=workload.lora_rank + more),
        replace(workload, evaluation_batch=(workload.evaluation_batch or 0) + more),
        replace(workload, stack="unknown"),
    ]
    if workload.sample_bytes is not None:
        larger.append(replace(workload, sample_bytes=workload.sample_bytes + more))
    if isinstance(workload.model, Transformer):
        larger.append(replace(workload, model=replace(workload.model, params=workload.model.params + more * 10**7)))
    for other in larger:
        assert needed(other, placement) >= least - 1
    if placement.gpus_per_host:
        wider = replace(placement, gpus_per_host=placement.gpus_per_host + more)
        assert needed(workload, wider) >= least - 1
