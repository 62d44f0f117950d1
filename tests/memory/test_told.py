"""What a script is told of sharding, kernels and quantization is read and compared; what is not understood is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.memory import Workload
from sagefit.memory.read import read

MEMORY: dict[str, Any] = {
    "model": "meta-llama/Llama-3.2-1B",
    "precision": "bf16-mixed",
    "micro_batch": 1,
    "sequence_length": 512,
    "stack": "hf-trainer",
}


def told(
    folder: Path,
    hyperparameters: dict[str, Any] | None = None,
    *,
    memory: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
) -> Workload:
    changes: dict[str, Any] = {
        "memory": {name: value for name, value in {**MEMORY, **(memory or {})}.items() if value is not None},
        "hyperparameters": hyperparameters or None,
        "environment": environment or None,
        "image": {"framework": "pytorch", "version": "2.6"},
    }
    path = write_job(folder, changes)
    for name, content in (files or {}).items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(content, encoding="utf-8")
    return read(load_job(str(path)))


def refusal(folder: Path, *args: Any, **named: Any) -> str:
    with pytest.raises(SagefitError) as caught:
        told(folder, *args, **named)
    return f"{caught.value}\n{caught.value.hint}"


@pytest.mark.parametrize(
    ("raw", "sharding", "offload"),
    [
        ("full_shard auto_wrap", "fsdp", "none"),
        ("full_shard auto_wrap offload", "fsdp", "parameters"),
        ("['full_shard', 'auto_wrap']", "fsdp", "none"),
        ("shard_grad_op", "fsdp-shard-grad-op", "none"),
        ("hybrid_shard auto_wrap", "fsdp-hybrid-shard", "none"),
        ("hybrid_shard_zero2", "fsdp-hybrid-shard", "none"),
        ("no_shard", "none", "none"),
        ("", "none", "none"),
        (True, "fsdp", "none"),
        (False, "none", "none"),
    ],
)
def test_the_fsdp_argument(tmp_path: Path, raw: object, sharding: str, offload: str) -> None:
    workload = told(tmp_path, {"fsdp": raw})
    assert (workload.sharding, workload.cpu_offload) == (sharding, offload)
    said = any("sharding is taken as" in note for note in workload.notes)
    assert said is (sharding != "none")


def test_the_fsdp_config_says_the_rest(tmp_path: Path) -> None:
    config = {"reshard_after_forward": False, "activation_checkpointing": True}
    inline = told(tmp_path, {"fsdp": "full_shard", "fsdp_config": json.dumps(config)})
    assert (inline.sharding, inline.gradient_checkpointing) == ("fsdp-shard-grad-op", True)
    old = {"fsdp_reshard_after_forward": "true", "fsdp_activation_checkpointing": "true"}
    file = told(
        tmp_path, {"fsdp": "full_shard", "fsdp_config": "conf/fsdp.json"}, files={"conf/fsdp.json": json.dumps(old)}
    )
    assert (file.sharding, file.gradient_checkpointing) == ("fsdp", True)


@pytest.mark.parametrize(
    ("zero", "sharding", "offload"),
    [
        (
            {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}},
            "zero3",
            "parameters",
        ),
        ({"stage": 2, "offload_optimizer": {"device": "cpu"}}, "zero2", "optimizer"),
        ({"stage": 3, "offload_optimizer": {"device": "none"}}, "zero3", "none"),
        ({"stage": 1}, "zero1", "none"),
        ({"stage": 0}, "none", "none"),
    ],
)
@pytest.mark.parametrize("place", ["file", "absolute", "inline"])
def test_a_deepspeed_configuration(
    tmp_path: Path, zero: dict[str, Any], sharding: str, offload: str, place: str
) -> None:
    content = json.dumps({"zero_optimization": zero, "train_batch_size": "auto"})
    given = {"file": "ds/zero.json", "absolute": "/opt/ml/code/ds/zero.json", "inline": content}[place]
    workload = told(tmp_path, {"deepspeed": given}, files={"ds/zero.json": content})
    assert (workload.sharding, workload.cpu_offload, workload.stack) == (sharding, offload, "hf-trainer")


@pytest.mark.parametrize(
    ("hyperparameters", "environment", "written", "precision"),
    [
        ({"deepspeed": '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'}, {}, None, "bf16-mixed"),
        ({"deepspeed": '{"zero_optimization": {"stage": 2}, "fp16": {"enabled": true}}'}, {}, None, "fp16-mixed"),
        ({"deepspeed": '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}'}, {}, None, "fp32"),
        ({"deepspeed": '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'}, {}, "bf16", "bf16"),
        ({}, {"ACCELERATE_MIXED_PRECISION": "bf16"}, None, "bf16-mixed"),
        ({}, {"ACCELERATE_MIXED_PRECISION": "no"}, None, "fp32"),
        ({"fp16": True}, {"ACCELERATE_MIXED_PRECISION": "bf16"}, None, "fp16-mixed"),
        ({"accelerate_config": "a.yaml"}, {}, None, "fp16-mixed"),
    ],
)
def test_precision(
    tmp_path: Path, hyperparameters: dict[str, Any], environment: dict[str, str], written: str | None, precision: str
) -> None:
    files = {"a.yaml": "distributed_type: MULTI_GPU\nmixed_precision: fp16\n"}
    memory = {"precision": written}
    workload = told(tmp_path, hyperparameters, memory=memory, environment=environment, files=files)
    assert workload.precision == precision


def test_deepspeed_replaces_a_stack_that_would_shard_with_fsdp(tmp_path: Path) -> None:
    content = json.dumps({"zero_optimization": {"stage": 2}})
    assert "stack: deepspeed" in refusal(tmp_path, {"deepspeed": content}, memory={"stack": "plain-torch"})


@pytest.mark.parametrize(
    ("environment", "sharding", "offload", "checkpointing"),
    [
        ({"ACCELERATE_USE_FSDP": "true"}, "fsdp", "none", False),
        ({"ACCELERATE_USE_FSDP": "true", "FSDP_SHARDING_STRATEGY": "2"}, "fsdp-shard-grad-op", "none", False),
        ({"ACCELERATE_USE_FSDP": "1", "FSDP_SHARDING_STRATEGY": "HYBRID_SHARD"}, "fsdp-hybrid-shard", "none", False),
        (
            {
                "ACCELERATE_USE_FSDP": "true",
                "FSDP_RESHARD_AFTER_FORWARD": "false",
                "FSDP_OFFLOAD_PARAMS": "true",
                "FSDP_ACTIVATION_CHECKPOINTING": "true",
            },
            "fsdp-shard-grad-op",
            "parameters",
            True,
        ),
        ({"FSDP_SHARDING_STRATEGY": "FULL_SHARD"}, "none", "none", False),
        ({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}, "zero3", "none", False),
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, "zero2", "none", False),
        (
            {
                "ACCELERATE_USE_DEEPSPEED": "true",
                "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3",
                "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE": "cpu",
            },
            "zero3",
            "parameters",
            False,
        ),
        (
            {
                "ACCELERATE_USE_DEEPSPEED": "true",
                "ACCELERATE_DEEPSPEED_CONFIG_FILE": '{"zero_optimization": {"stage": 1}}',
            },
            "zero1",
            "none",
            False,
        ),
    ],
)
def test_accelerates_environment(
    tmp_path: Path, environment: dict[str, str], sharding: str, offload: str, checkpointing: bool
) -> None:
    workload = told(tmp_path, environment=environment)
    found = (workload.sharding, workload.cpu_offload, workload.gradient_checkpointing)
    assert found == (sharding, offload, checkpointing)


@pytest.mark.parametrize(
    ("content", "sharding", "offload"),
    [
        ("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n", "fsdp", "none"),
        (
            "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"
            "  fsdp_offload_params: true\n",
            "fsdp-shard-grad-op",
            "parameters",
        ),
        ("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n", "zero3", "none"),
        (
            "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: cpu\n",
            "zero2",
            "optimizer",
        ),
        (
            "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n",
            "zero1",
            "none",
        ),
        (
            "distributed_type: FSDP\nfsdp_config:\n  fsdp_reshard_after_forward: SHARD_GRAD_OP\n",
            "fsdp-shard-grad-op",
            "none",
        ),
        ("distributed_type: MULTI_GPU\n", "none", "none"),
    ],
)
def test_an_accelerate_configuration(tmp_path: Path, content: str, sharding: str, offload: str) -> None:
    files = {"accelerate.yaml": content, "ds.json": json.dumps({"zero_optimization": {"stage": 1}})}
    workload = told(tmp_path, {"accelerate_config": "accelerate.yaml"}, files=files)
    assert (workload.sharding, workload.cpu_offload) == (sharding, offload)


@pytest.mark.parametrize(
    ("written", "shards"), [("SHARDED_STATE_DICT", True), ("FULL_STATE_DICT", False), (None, False)]
)
def test_each_rank_saves_its_own_shard_where_it_is_told_to(tmp_path: Path, written: str | None, shards: bool) -> None:
    line = f"  fsdp_state_dict_type: {written}\n" if written else ""
    files = {"a.yaml": f"distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 1\n{line}"}
    assert told(tmp_path, {"accelerate_config": "a.yaml"}, files=files).saves_shards is shards
    environment = {"ACCELERATE_USE_FSDP": "true"} | ({"FSDP_STATE_DICT_TYPE": written} if written else {})
    assert told(tmp_path, environment=environment).saves_shards is shards


@pytest.mark.parametrize(
    ("hyperparameters", "memory", "stack", "method", "rank"),
    [
        ({"use_liger_kernel": True}, {}, "hf-liger", "full", 16),
        ({"use_liger_kernel": "true"}, {"stack": None}, "hf-liger", "full", 16),
        ({"use_liger_kernel": False}, {}, "hf-trainer", "full", 16),
        ({"load_in_4bit": True, "lora_r": 8}, {}, "hf-trainer", "qlora", 8),
        ({"use_peft": True, "lora_r": 32}, {}, "hf-trainer", "lora", 32),
        ({"lora_r": 64}, {}, "hf-trainer", "lora", 64),
        ({"lora_r": 64, "use_peft": False}, {}, "hf-trainer", "full", 16),
        ({"lora_r": 64}, {"method": "full"}, "hf-trainer", "full", 16),
        ({"use_peft": True}, {"method": "qlora"}, "hf-trainer", "qlora", 16),
    ],
)
def test_kernels_and_adapters(
    tmp_path: Path, hyperparameters: dict[str, Any], memory: dict[str, Any], stack: str, method: str, rank: int
) -> None:
    workload = told(tmp_path, hyperparameters, memory=memory)
    assert (workload.stack, workload.method, workload.lora_rank) == (stack, method, rank)


def test_8_bit_weights_are_told(tmp_path: Path) -> None:
    workload = told(tmp_path, {"load_in_8bit": True, "lora_r": 8})
    assert (workload.method, workload.base_dtype, workload.lora_rank) == ("lora", "8-bit", 8)
    assert any("so base_dtype is taken as 8-bit" in note for note in workload.notes)
    message = refusal(tmp_path, {"load_in_8bit": True, "fsdp": "full_shard"})
    assert "hyperparameters.load_in_8bit: what weights of 8 bits need" in message
    assert "leave hyperparameters.fsdp out, or take load_in_4bit: true" in message
    message = refusal(tmp_path, {"load_in_8bit": True}, memory={"sharding": "zero3"})
    assert "sharding is zero3" in message
    assert "set sharding: none, zero1 or zero2, or take load_in_4bit: true" in message


@pytest.mark.parametrize(
    ("hyperparameters", "memory", "field", "said"),
    [
        ({"fsdp": "full_shard"}, {"sharding": "none"}, "memory.sharding", "set sharding: fsdp"),
        ({"fsdp": "full_shard"}, {"sharding": "zero3"}, "memory.sharding", "which is fsdp"),
        ({"load_in_4bit": True}, {"method": "lora"}, "memory.method", "set method: qlora"),
        ({"load_in_8bit": True}, {"method": "full"}, "memory.method", "set method: lora"),
        (
            {"load_in_8bit": True},
            {"method": "lora", "base_dtype": "16-bit"},
            "memory.base_dtype",
            "set base_dtype: 8-bit",
        ),
        ({"use_liger_kernel": False}, {"stack": "hf-liger"}, "memory.stack", "set stack: hf-trainer"),
        (
            {"fsdp": "full_shard offload"},
            {"sharding": "fsdp", "cpu_offload": "none"},
            "memory.cpu_offload",
            "set cpu_offload: parameters",
        ),
        ({"fsdp": "full_shard"}, {"stack": "deepspeed"}, "memory.sharding", "stack deepspeed does not train"),
    ],
)
def test_a_contradiction_names_both_places(
    tmp_path: Path, hyperparameters: dict[str, Any], memory: dict[str, Any], field: str, said: str
) -> None:
    message = refusal(tmp_path, hyperparameters, memory=memory)
    assert field in message
    assert said in message
    if "stack" not in said or "liger" in message:
        assert "hyperparameters." in message
        assert "(line " in message


def test_zero3_of_a_stack_that_shards_with_fsdp_is_the_same(tmp_path: Path) -> None:
    workload = told(tmp_path, {"fsdp": "full_shard"}, memory={"sharding": "zero3", "stack": "torchtune"})
    assert workload.sharding == "fsdp"


@pytest.mark.parametrize(
    ("hyperparameters", "files", "said"),
    [
        ({"fsdp": "full_shard simple_wrap"}, {}, "'simple_wrap' is not known"),
        ({"deepspeed": "ds.json"}, {}, "no file 'ds.json' in code.source_dir"),
        ({"deepspeed": "../../etc/ds.json"}, {}, "no file"),
        ({"deepspeed": "ds.json"}, {"ds.json": "[1, 2"}, "is no DeepSpeed configuration"),
        ({"deepspeed": "ds.json"}, {"ds.json": '{"zero_optimization": {"stage": "auto"}}'}, "stage 'auto' of ZeRO"),
        ({"deepspeed": "ds.json"}, {"ds.json": "[" * 50_000}, "is no DeepSpeed configuration"),
        ({"deepspeed": "ds.json"}, {"ds.json": " " * 200_000 + "{}"}, "no file"),
        ({"accelerate_config": "a.yaml"}, {"a.yaml": "distributed_type: XLA\n"}, "'xla' is not known"),
        ({"torch_compile": True}, {}, "what compiled code keeps is not known"),
    ],
)
def test_what_is_not_understood_is_said(
    tmp_path: Path, hyperparameters: dict[str, Any], files: dict[str, str], said: str
) -> None:
    workload = told(tmp_path, hyperparameters, files=files)
    assert [note for note in workload.notes if said in note], workload.notes


def test_liger_under_another_stack_is_said(tmp_path: Path) -> None:
    workload = told(tmp_path, {"use_liger_kernel": True}, memory={"stack": "ms-swift"})
    assert workload.stack == "ms-swift"
    assert any("does not know ms-swift with Liger" in note for note in workload.notes)


def test_a_script_that_is_told_nothing_is_read_as_before(tmp_path: Path) -> None:
    workload = told(tmp_path, {"epochs": 3})
    assert (workload.sharding, workload.cpu_offload, workload.method, workload.stack) == (
        "none", "none", "full", "hf-trainer",
    )  # fmt: skip
    assert not [note for note in workload.notes if "taken as" in note or "considered" in note]
