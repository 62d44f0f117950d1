"""What would run a job for less: the changes, their prices, and that each way holds what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from job_files import auto_job
from planning.test_attempts import jobs
from sagefit.job import Job
from sagefit.memory import Workload
from sagefit.planning import JobPlan
from sagefit.planning.changes import changes_of
from sagefit.planning.choose import choose
from sagefit.planning.frontier import CHANGING, KEEPING, MOST, WORTH, ways
from sagefit.planning.market import choices
from sagefit.size import as_json, size_job
from sagefit.size.view import page

REGION = "us-east-1"
LLAMA = """
model: llama-3.1-8b
method: lora
lora_rank: 16
precision: bf16-mixed
sequence_length: 2048
stack: hf-trainer
"""
BATCH = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 4,
    "gradient_checkpointing": True,
}
BASE = "memory.base_dtype: 16-bit, and torch_dtype=torch.bfloat16 where the script loads the model"
SMALLER = "hyperparameters.per_device_train_batch_size: 1 with hyperparameters.gradient_accumulation_steps: 16"


def llama(instance_type: str, **memory: Any) -> Job:
    return auto_job(
        {
            "memory": yaml.safe_load(LLAMA) | memory,
            "hyperparameters": BATCH,
            "resources.instance_type": instance_type,
        }
    )


def shown(job: Job) -> list[tuple[str, bool, float, str]]:
    found = as_json(size_job(JobPlan(job), REGION))["cheaper"]
    return [(way["instance_type"], way["keeps_result"], way["usd_per_hour"], way["text"]) for way in found]


def test_a_job_that_fits_is_told_what_costs_less() -> None:
    assert shown(llama("auto")) == [
        ("ml.g6e.xlarge", True, 2.61, BASE),
        ("ml.g6.xlarge", False, 1.127, f"memory.method: qlora; {SMALLER}"),
    ]


def test_a_job_that_does_not_fit_is_told_its_cheapest_ways() -> None:
    anywhere = "resources.instance_type: auto"
    assert shown(llama("ml.g5.2xlarge")) == [
        ("ml.g7e.2xlarge", True, 4.2039, anywhere),
        ("ml.g6e.xlarge", True, 2.61, f"{BASE}; {anywhere}"),
        ("ml.g6.xlarge", False, 1.127, f"memory.method: qlora; {SMALLER}; {anywhere}"),
    ]


def test_what_only_describes_the_script_is_told_apart() -> None:
    written = {"micro_batch": 4, "accumulation": 4, "gradient_checkpointing": False}
    by_the_block = auto_job({"memory": yaml.safe_load(LLAMA) | written, "hyperparameters": {}})
    by_knobs = auto_job(
        {"memory": yaml.safe_load(LLAMA), "hyperparameters": {**BATCH, "gradient_checkpointing": False}}
    )
    told = {
        (change.kind, job is by_the_block): change.described
        for job in (by_the_block, by_knobs)
        for change in changes_of(job, JobPlan(job).workload())
    }
    assert (told["batch", True], told["batch", False]) == (True, False)
    assert (told["checkpointing", True], told["checkpointing", False]) == (True, False)
    assert {kind for (kind, _), described in told.items() if described} >= {"method", "sharding", "stack"}
    assert not any(described for (kind, _), described in told.items() if kind in ("type", "instances", "model"))


def test_the_page_says_that_the_script_has_to_change_too() -> None:
    def told(job: Job) -> bool:
        lines = [str(part) for part in page(size_job(JobPlan(job), REGION))]
        return any("make the same change in the script" in line for line in lines)

    assert told(llama("auto"))  # memory.method: qlora
    resnet = {"model": "resnet50", "precision": "bf16-mixed", "optimizer": "sgd"}
    dear = auto_job({"memory": resnet, "hyperparameters": BATCH, "resources.instance_type": "ml.g6e.4xlarge"})
    assert [way.text for way in size_job(JobPlan(dear), REGION).cheaper] == ["resources.instance_type: auto"]
    assert not told(dear)


def test_states_of_8_bits_are_nearly_the_same() -> None:
    memory = {"model": "llama-3.2-1b", "precision": "fp32", "sequence_length": 1024, "stack": "plain-torch"}
    job = auto_job({"memory": {**memory, "micro_batch": 1, "gradient_checkpointing": True}, "hyperparameters": {}})
    found = ways(job, JobPlan(job).workload(), JobPlan(job).chosen)
    assert [(way.result, [change.kind for change in way.changes]) for way in found] == [
        ("nearly the same result", ["optimizer"]),
        ("another result", ["method"]),
    ]
    assert not any(way.keeps_result for way in found)


def test_a_way_names_its_fields() -> None:
    found = as_json(size_job(JobPlan(llama("auto")), REGION))["cheaper"]
    assert [way["changes"] for way in found] == [
        {"base_dtype": "16-bit"},
        {"method": "qlora", "micro_batch": 1, "accumulation": 16},
    ]
    assert all(0 < way["gpu_gib"] < 44 for way in found)
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("instance_type", "heading"), [("auto", "for less:"), ("ml.g5.2xlarge", "the cheapest ways that fit:")]
)
def test_the_page_shows_them_with_prices(instance_type: str, heading: str) -> None:
    parts = [str(part) for part in page(size_job(JobPlan(llama(instance_type)), REGION))]
    begin = parts.index(f"\n{heading}")
    assert (
        f"  2.61 USD an hour on ml.g6e.xlarge, the same result: {BASE}"
        in parts[begin + 1 :][:3][-2 if "ways" in heading else 0]
    )
    assert "  1.13 USD an hour on ml.g6.xlarge, another result: memory.method: qlora" in "".join(parts[begin:])


def test_what_is_assumed_of_the_frozen_model_is_said_where_it_matters() -> None:
    told = "the frozen model is loaded in fp32, as hf-trainer does: memory.base_dtype: 16-bit"
    assert any(note.startswith(told) for note in size_job(JobPlan(llama("auto")), REGION).assumptions)
    said = size_job(JobPlan(llama("auto", base_dtype="16-bit")), REGION).assumptions
    assert not any("the frozen model" in note for note in said)


def test_a_job_of_the_cheapest_type_and_one_that_is_not_known_have_no_way() -> None:
    assert (
        shown(auto_job({"memory": {"model": "distilbert-base-uncased", "sequence_length": 32}, "hyperparameters": {}}))
        == []
    )
    assert ways(llama("auto"), Workload(model=None), None) == []


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_every_way_costs_less_fits_and_is_of_its_kind(job: Job) -> None:
    plan = JobPlan(job)
    chosen = plan.chosen if job.written_attempts is None else None
    before = float("inf") if chosen is None else chosen.usd_per_hour
    found = ways(job, plan.workload(), chosen)
    assert len(found) <= MOST
    for way in found:
        changed = {name: value for change in way.changes for name, value in change.workload.items()}
        kinds = {change.kind for change in way.changes}
        assert way.keeps_result == kinds.isdisjoint(CHANGING)
        assert kinds <= {*KEEPING, *CHANGING}
        usd = way.fit.usd_per_hour
        assert way.fit.verdict == "FITS"
        assert usd is not None
        assert before is None or usd <= WORTH * before
        if "type" not in kinds:
            again = choose(choices(job, replace(plan.workload(), **changed)))
            assert again
            assert again.instance_type == way.fit.instance_type
    prices = [way.fit.usd_per_hour or 0 for way in found]
    assert prices == sorted(prices, reverse=True)
