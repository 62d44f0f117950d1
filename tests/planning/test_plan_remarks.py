"""What to look at again in a plan: a batch that nobody gave, GPUs that are not there, retired types."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from planning.test_launch import SHARDED, said
from sagefit.job import load_job
from sagefit.memory import Transformer, predict
from sagefit.memory.stacks import stacks_with
from sagefit.planning.candidate import judge
from sagefit.planning.changes import changes_of
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.remarks import plan_remarks
from sagefit.size import size_job
from sagefit.size.view import page

BERT = {"model": "bert-base-uncased", "sequence_length": 128}
ON_ONE = {"instance_type": "ml.g5.xlarge"}


def plan_of(folder: Path, changes: dict[str, Any]) -> JobPlan:
    base = {"memory": BERT, "hyperparameters": None, "resources": ON_ONE, "attempts": "auto"}
    image = {"framework": "pytorch", "version": "2.6"}
    return JobPlan(load_job(str(write_job(folder, {"image": image, **base, **changes}))))


def told(folder: Path, changes: dict[str, Any]) -> list[str]:
    plan = plan_of(folder, changes)
    return plan.job.told(plan_remarks(plan))


def test_an_answer_for_a_batch_of_one_says_what_else_fits(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {})
    (found,) = plan.job.told(plan_remarks(plan))
    assert "no batch is given, so FITS on ml.g5.xlarge is the answer for a batch of 1" in found
    most = int(found.partition("up to ")[2].split()[0])
    assert most > 1
    chosen = plan.chosen
    assert chosen is not None
    for batch, fits in ((most, True), (2 * most, False)):
        prediction = predict(replace(plan.workload(), micro_batch=batch), chosen.placement)
        verdict, _ = judge(prediction, chosen.usable_host_gib, chosen.usable_gpu_gib, chosen.head_room, "")
        assert (verdict == "FITS") == fits


@pytest.mark.parametrize(
    "changes",
    [
        {"memory": {**BERT, "micro_batch": 1}},
        {"memory": {**BERT, "stack": "hf-trainer"}},
        {"hyperparameters": {"train_batch_size": 1}},
        {"memory": {**BERT, "knobs": {"micro_batch": "n"}}, "hyperparameters": {"n": 1}},
        {"attempts": [{"name": "one", "instance_type": "ml.g5.xlarge", "hyperparameters": {"batch_size": 1}}]},
        {"memory": {"model": {"family": "measured", "gpu_gib": 2, "host_gib": 2}}},
    ],
)
def test_a_batch_that_is_given_or_known_is_no_remark(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert not [each for each in told(tmp_path, changes) if "no batch" in each]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hyperparameters": {"devices": 4}}, "devices: asks for 4 GPUs, and ml.g5.xlarge has 1"),
        ({"hyperparameters": {"devices": "0,1"}}, "asks for 2 GPUs"),
        ({"hyperparameters": {"nproc_per_node": 8}}, "lower it to 1"),
        ({"hyperparameters": {"num_processes": 2}}, "asks for 2 GPUs"),
        ({"hyperparameters": {"devices": 1}}, ""),
        ({"hyperparameters": {"devices": "auto"}}, ""),
        ({"hyperparameters": {"device": "0,1"}}, ""),
        ({"memory": {"model": "yolov8m"}, "hyperparameters": {"device": "0,1", "batch": 8}}, "asks for 2 GPUs"),
        ({"memory": {"model": "yolov8m"}, "hyperparameters": {"device": 3, "batch": 8}}, ""),
        (
            {"hyperparameters": {"devices": 2}, "resources": {"instance_type": "ml.g5.12xlarge"}},
            "asks for 2 of 4 GPUs of ml.g5.12xlarge, and the prediction counts 4",
        ),
        (
            {
                "hyperparameters": {"devices": 2},
                "resources": {"instance_type": "ml.g5.12xlarge"},
                "memory": {**BERT, "world_size": 2},
            },
            "",
        ),
    ],
)
def test_a_number_of_gpus_that_the_script_is_told(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    found = [each for each in told(tmp_path, changes) if "asks for" in each]
    assert len(found) == bool(words)
    assert all(words in each for each in found)


def test_the_processes_of_accelerates_configuration_are_those_of_all_hosts(tmp_path: Path) -> None:
    given = {"accelerate_config": json.dumps({"num_processes": 8, "distributed_type": "MULTI_GPU"})}
    two = {"hyperparameters": given, "resources": {"instance_type": "ml.g5.12xlarge", "instance_count": 2}}
    assert not [each for each in told(tmp_path, two) if "asks for" in each]
    one = {"hyperparameters": given, "resources": {"instance_type": "ml.g5.12xlarge"}}
    assert [each for each in told(tmp_path, one) if "asks for 8 GPUs, and ml.g5.12xlarge has 4" in each]


def test_a_retired_type_that_is_named(tmp_path: Path) -> None:
    found = told(tmp_path, {"resources": {"instance_type": ["ml.g5.xlarge", "ml.p3.2xlarge"]}})
    assert any("ml.p3.2xlarge is retired: AWS has taken it off" in each for each in found)
    assert not any("ml.g5.xlarge is retired" in each for each in found)


def test_processes_are_named_where_nothing_fits(tmp_path: Path) -> None:
    changes = {"memory.model": "meta-llama/Llama-3.1-70B", "resources.instance_type": "ml.g6e.12xlarge"}
    found = said(tmp_path, {**SHARDED, **changes, "memory.sharding": "none"})
    assert any("the closest, ml.g6e.12xlarge, has 4 GPUs on one host" in each for each in found)


def test_advice_names_the_hyperparameter_that_a_trainer_is_known_to_take(tmp_path: Path) -> None:
    def texts(hyperparameters: dict[str, Any], stack: str = "hf-trainer") -> dict[str, str]:
        memory = {"model": "meta-llama/Llama-3.2-1B", "stack": stack, "micro_batch": 2}
        plan = plan_of(tmp_path, {"memory": memory, "hyperparameters": hyperparameters})
        return {change.kind: change.text for change in changes_of(plan.job, plan.workload())}

    arguments = texts({"num_train_epochs": 1})
    assert arguments["checkpointing"] == "hyperparameters.gradient_checkpointing: true"
    assert arguments["precision"] == "hyperparameters.bf16: true"
    assert arguments["optimizer"] == "hyperparameters.optim: adamw_bnb_8bit"
    assert arguments["stack"] == "hyperparameters.use_liger_kernel: true"
    assert "hyperparameters.gradient_accumulation_steps: 2" in arguments["batch"]
    for other in (texts({"epochs": 1}), texts({"num_train_epochs": 1}, "plain-torch")):
        assert other["checkpointing"] == "memory.gradient_checkpointing: true"
        assert other.get("stack", "memory.stack: hf-liger") == "memory.stack: hf-liger"


def first_line(folder: Path, changes: dict[str, Any]) -> str:
    return str(next(iter(page(size_job(plan_of(folder, changes), "us-east-1")))))


def test_the_first_line_says_whether_it_may_fit(tmp_path: Path) -> None:
    def of(gib: float) -> str:
        return first_line(tmp_path, {"memory": {"model": {"family": "measured", "gpu_gib": gib, "host_gib": 2}}})

    assert "FITS on ml.g5.xlarge" in of(10)
    assert "RISKY, no allowed instance is sure to hold it; the closest is ml.g5.xlarge" in of(19.7)
    assert "OOM, it fits on no allowed instance; the closest is ml.g5.xlarge" in of(30)


def test_the_first_line_proposes_the_model_that_the_script_is_told(tmp_path: Path) -> None:
    found = first_line(tmp_path, {"memory": None, "hyperparameters": {"model_id": "bert-base-uncased"}})
    assert "UNKNOWN" in found
    assert "hyperparameters.model_id names one that is known: memory: { model: bert-base-uncased }" in found
    assert "memory: {" not in first_line(tmp_path, {"memory": None, "hyperparameters": {"model_id": "my/own"}})


def test_an_assumption_of_the_environment_has_its_line(tmp_path: Path) -> None:
    changes = {"memory": {**BERT, "micro_batch": 1}, "environment": {"ACCELERATE_MIXED_PRECISION": "bf16"}}
    plan = plan_of(tmp_path, changes)
    (row,) = [str(part) for part in page(size_job(plan, "us-east-1")) if "environment.ACCELERATE" in str(part)]
    line = plan.job.line_exactly(("environment", "ACCELERATE_MIXED_PRECISION"))
    assert f":{line}: environment.ACCELERATE_MIXED_PRECISION is mixed_precision bf16" in row


def test_unknown_stacks_of_encoders_are_those_that_train_encoders(tmp_path: Path) -> None:
    decoder = {"model": "gpt2", "micro_batch": 1}
    able = {}
    for name, memory in (("encoder", {**BERT, "micro_batch": 1}), ("decoder", decoder)):
        workload = plan_of(tmp_path, {"memory": memory}).workload()
        assert isinstance(workload.model, Transformer)
        able[name] = stacks_with(workload.sharding, workload.model.architecture)
    assert set(able["decoder"]) - set(able["encoder"]) == {"torchtune", "litgpt", "torchtitan"}


def test_a_model_in_16_bits_throughout_is_not_said_to_be_loaded_in_32(tmp_path: Path) -> None:
    for precision, said_so in (("bf16-mixed", True), ("bf16", False)):
        memory = {"model": "gpt2", "stack": "hf-trainer", "method": "lora", "precision": precision}
        chosen = plan_of(tmp_path, {"memory": memory}).chosen
        assert chosen is not None
        assert chosen.prediction is not None
        assert any("is loaded in fp32" in note for note in chosen.prediction.assumptions) == said_so
