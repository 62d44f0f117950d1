"""``attempts: auto``: what a run may do is decided beforehand, ends, and makes sense at every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from job_files import auto_job, changed, write_job
from sagefit.catalog import instances, price
from sagefit.errors import DOES_NOT_FIT, INVALID, REFUSED, SagefitError
from sagefit.job import Job, load_job
from sagefit.memory.read import read
from sagefit.planning import PlannedAttempt, allowed_problems, check_max_price, plan, repeats_note, worst_case_usd
from sagefit.planning.advice import advise, nearest
from sagefit.planning.changes import changes_of
from sagefit.planning.cost import worst_path
from sagefit.planning.limits import LOOKS
from sagefit.planning.market import choices

REGION = "us-east-1"
MOST = 10
MODELS: list[dict[str, Any] | None] = [
    auto_job().model_dump()["memory"]["model"],
    {
        "family": "transformer",
        "params": 1.2e9,
        "layers": 16,
        "hidden_size": 2048,
        "heads": 32,
        "kv_heads": 8,
        "vocab_size": 128256,
    },
    {"family": "measured", "gpu_gib": 9.5, "host_gib": 21},
    {"family": "measured", "host_gib": 40},
    {"family": "tabular", "library": "xgboost", "rows": 40_000_000, "columns": 40},
    None,
]
TYPES = [
    "auto",
    "ml.g5.xlarge",
    "ml.g6e.12xlarge",
    "ml.m5.2xlarge",
    "ml.p3.2xlarge",
    ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.g6e.2xlarge", "ml.m5.4xlarge"],
]


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Jobs of all kinds that leave their attempts to Sagefit."""
    model = draw(st.sampled_from(MODELS))
    types = draw(st.sampled_from(TYPES if model else [kind for kind in TYPES if str(kind).startswith("ml.")]))
    spot = draw(st.booleans())
    changes: dict[str, Any] = {
        "memory.model": model,
        "memory.sequence_length": draw(st.sampled_from([64, 256, 1024])),
        "memory.method": draw(st.sampled_from(["full", "lora"])),
        "memory.sharding": draw(st.sampled_from(["none", "none", "zero3"])),
        "resources.instance_type": types,
        "resources.instance_count": draw(st.sampled_from([1, 1, 2])),
        "resources.volume_size_gb": draw(st.sampled_from([30, 400, 10_000, 16_384])),
        "resources.spot": spot,
        "resources.max_wait": "8h" if spot else None,
        "hyperparameters.per_device_train_batch_size": draw(st.sampled_from([None, 1, 6, 8, 33, 64])),
        "hyperparameters.gradient_accumulation_steps": draw(st.sampled_from([None, 1, 3])),
        "hyperparameters.gradient_checkpointing": draw(st.sampled_from([None, False, True])),
        "hyperparameters.dataloader_num_workers": draw(st.sampled_from([None, 0, 1, 16])),
    }
    return auto_job(changes)


def planned(job: Job) -> list[PlannedAttempt]:
    """The attempts; jobs that fit nowhere are none of a property's business."""
    try:
        return plan(job).attempts
    except SagefitError as error:
        assume(error.exit_code != DOES_NOT_FIT)
        raise


def paths(attempts: list[PlannedAttempt]) -> Iterator[list[PlannedAttempt]]:
    """Every run there can be: each way from the first attempt to one that no edge leaves, or that ends the run."""
    by_name = {attempt.name: attempt for attempt in attempts}

    def walk(path: list[PlannedAttempt]) -> Iterator[list[PlannedAttempt]]:
        yield path
        for name in set(path[-1].next.values()):
            yield from walk([*path, by_name[name]])

    yield from walk([attempts[0]])


def edges(attempts: list[PlannedAttempt]) -> Iterator[tuple[PlannedAttempt, str, PlannedAttempt]]:
    by_name = {attempt.name: attempt for attempt in attempts}
    for attempt in attempts:
        for kind, name in attempt.next.items():
            yield attempt, kind, by_name[name]


def gpus(attempt: PlannedAttempt) -> int:
    return attempt.instance_count * instances()[attempt.instance_type].gpu_count


def disk_gb(attempt: PlannedAttempt) -> int:
    return instances()[attempt.instance_type].nvme_gb or attempt.volume_size_gb


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_every_run_ends_and_every_attempt_can_be_reached(job: Job) -> None:
    attempts = planned(job)
    names = [attempt.name for attempt in attempts]
    assert names[0] == "main"
    assert len(set(names)) == len(names) <= MOST
    for attempt, _, target in edges(attempts):
        assert names.index(target.name) > names.index(attempt.name)
    assert {attempt.name for path in paths(attempts) for attempt in path} == set(names)


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_whatever_is_predicted_for_an_attempt_fits(job: Job) -> None:
    for attempt in planned(job):
        assert attempt.fit is None or attempt.fit.verdict in ("FITS", "UNKNOWN")
        if isinstance(job.resources.instance_type, list):
            assert attempt.instance_type in job.resources.instance_type


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_the_effective_batch_stays_exactly_the_same(job: Job) -> None:
    def effective(attempt: PlannedAttempt) -> int:
        workload = read(job, {**job.hyperparameters, **attempt.hyperparameters})
        return workload.micro_batch * workload.accumulation * max(gpus(attempt), 1)

    attempts = planned(job)
    assert {effective(attempt) for attempt in attempts} == {effective(attempts[0])}


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_after_a_memory_failure_an_attempt_needs_less_or_has_more(job: Job) -> None:
    for attempt, kind, target in edges(planned(job)):
        if kind not in ("gpu_memory", "host_memory"):
            continue
        if attempt.fit and target.fit and attempt.fit.prediction and target.fit.prediction:
            before, after = attempt.fit.prediction, target.fit.prediction
            if kind == "gpu_memory":
                assert before.gpu
                assert after.gpu
                has_more = (target.fit.usable_gpu_gib or 0) > (attempt.fit.usable_gpu_gib or 0)
                assert after.gpu.upper < before.gpu.upper or has_more
                shares, needs = (attempt.fit.gpu_share, target.fit.gpu_share), (before.gpu, after.gpu)
            else:
                has_more = target.fit.usable_host_gib > attempt.fit.usable_host_gib
                assert after.host.upper < before.host.upper or has_more
                shares, needs = (attempt.fit.host_share, target.fit.host_share), (before.host, after.host)
            remedied = target.hyperparameters != attempt.hyperparameters
            less = remedied and needs[1].upper <= needs[0].upper * 0.98
            assert less or (shares[1] or 0) <= (shares[0] or 0) / 1.1
        else:
            before_type, after_type = instances()[attempt.instance_type], instances()[target.instance_type]
            if kind == "gpu_memory":
                assert (after_type.usable_gpu_gib or 0) > (before_type.usable_gpu_gib or 0)
            else:
                assert after_type.memory_gib > before_type.memory_gib


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_no_edge_undoes_what_an_earlier_one_cured(job: Job) -> None:
    for attempt, _, target in edges(planned(job)):
        assert not target.spot
        if attempt.fit and target.fit:
            assert (target.fit.gpu_share or 0) <= (attempt.fit.gpu_share or 0)
            assert (target.fit.host_share or 0) <= (attempt.fit.host_share or 0)


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_capacity_and_spot_move_sideways(job: Job) -> None:
    for attempt, kind, target in edges(planned(job)):
        if kind in ("spot", "capacity", "quota"):
            assert target.hyperparameters == attempt.hyperparameters
            assert gpus(target) == gpus(attempt)
        if kind == "spot":
            fit = attempt.fit and attempt.fit._replace(spot=False)
            assert replace(target, name="", reason="", next={}) == replace(
                attempt, name="", reason="", next={}, spot=False, max_wait_seconds=None, fit=fit
            )
        if kind == "disk":
            assert disk_gb(target) > disk_gb(attempt)
        assert kind not in ("time", "stopped", "data", "permission", "internal", "code")


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_the_worst_case_is_the_dearest_path(job: Job) -> None:
    def usd(attempt: PlannedAttempt) -> float:
        known = price(attempt.instance_type, REGION)
        assert known
        return known.usd_per_hour * attempt.instance_count * (attempt.max_runtime_seconds + 120) / 3600

    attempts = planned(job)
    if any(price(attempt.instance_type, REGION) is None for attempt in attempts):
        assert worst_case_usd(attempts, REGION) is None
        return
    assert worst_case_usd(attempts, REGION) == pytest.approx(max(sum(map(usd, path)) for path in paths(attempts)))
    assert worst_case_usd(attempts, "mars-north-1") is None


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_the_same_job_gives_the_same_attempts(job: Job) -> None:
    again = Job.model_validate(job.model_dump(exclude_unset=True))  # what is not written is said to be taken
    again._path = job.path
    assert planned(job) == plan(again).attempts


def names(job: Job) -> list[str]:
    return [attempt.name for attempt in plan(job).attempts]


def test_free_remedies_come_before_hardware() -> None:
    job = auto_job({"resources.spot": True, "resources.max_wait": "8h", "resources.instance_type": "ml.g5.4xlarge"})
    attempts = {attempt.name: attempt for attempt in plan(job).attempts}
    main = attempts["main"]
    assert list(attempts)[:4] == ["main", "on-demand", "accumulate-2", "checkpointing"]
    assert main.next["gpu_memory"] == "accumulate-2"
    assert attempts["accumulate-2"].hyperparameters == {
        "per_device_train_batch_size": "16",
        "gradient_accumulation_steps": "2",
    }
    assert attempts["accumulate-2"].next["gpu_memory"] == "checkpointing"
    assert attempts["checkpointing"].hyperparameters["gradient_checkpointing"] == "true"
    assert attempts["checkpointing"].next["gpu_memory"] == "larger-gpu"
    assert attempts["larger-gpu"].hyperparameters == attempts["checkpointing"].hyperparameters
    assert main.next["spot"] == main.next["capacity"] == "on-demand"
    assert attempts["on-demand"].next["capacity"] == "other-capacity"


def test_without_a_gpu_the_remedies_of_tensors_relieve_the_host() -> None:
    job = auto_job({"resources.instance_type": "ml.m5.4xlarge", "hyperparameters.dataloader_num_workers": None})
    attempts = {attempt.name: attempt for attempt in plan(job).attempts}
    path = [attempts["main"]]
    while path[-1].next.get("host_memory"):
        path.append(attempts[path[-1].next["host_memory"]])
    assert [attempt.name for attempt in path] == ["main", "accumulate-2", "checkpointing", "larger-host"]
    assert path[1].hyperparameters == {"per_device_train_batch_size": "16", "gradient_accumulation_steps": "2"}
    assert (
        path[2].hyperparameters
        == path[3].hyperparameters
        == path[1].hyperparameters | {"gradient_checkpointing": "true"}
    )
    shares = [attempt.fit.host_share or 0 for attempt in path if attempt.fit]
    assert shares == sorted(shares, reverse=True)
    assert not any(kind == "gpu_memory" for _, kind, _ in edges(list(attempts.values())))


def test_on_a_gpu_they_do_not() -> None:
    attempts = plan(auto_job({"resources.instance_type": "ml.g5.4xlarge"})).attempts
    cures = {target.name for _, kind, target in edges(attempts) if kind == "host_memory"}
    assert cures == {"fewer-workers", "larger-host"}


def test_a_memory_failure_is_not_answered_by_as_much_memory() -> None:
    types = ["ml.g5.2xlarge", "ml.g6.2xlarge", "ml.g4dn.2xlarge"]  # 32 GiB each
    job = auto_job({"memory.model": {"family": "measured", "gpu_gib": 9, "host_gib": 12}})
    job = job.model_copy(update={"resources": job.resources.model_copy(update={"instance_type": types})})
    attempts = plan(job).attempts
    assert "other-capacity" in attempts[0].next.values()
    assert not any(kind == "host_memory" for _, kind, _ in edges(attempts))


def test_a_script_without_knobs_gets_hardware_only() -> None:
    job = auto_job({"hyperparameters": {"epochs": 3}, "memory.micro_batch": 32})
    attempts = plan(job).attempts
    assert attempts[0].next["gpu_memory"] == "larger-gpu"
    assert not any(attempt.hyperparameters for attempt in attempts)


def test_a_batch_that_cannot_be_halved_is_left_alone() -> None:
    assert "accumulate-2" not in names(auto_job({"hyperparameters.per_device_train_batch_size": 33}))
    assert "accumulate-2" not in names(auto_job({"hyperparameters.gradient_accumulation_steps": None}))
    fixed = {"hyperparameters.per_device_train_batch_size": None, "memory.micro_batch": 32}
    assert "accumulate-2" not in names(auto_job(fixed))


def test_named_knobs_are_used() -> None:
    job = auto_job(
        {
            "hyperparameters": {"bs": 64, "steps": 2},
            "memory.knobs": {"micro_batch": "bs", "accumulation": "steps", "gradient_checkpointing": "recompute"},
        }
    )
    attempts = {attempt.name: attempt for attempt in plan(job).attempts}
    assert attempts["accumulate-2"].hyperparameters == {"bs": "32", "steps": "4"}
    assert attempts["checkpointing"].hyperparameters == {"bs": "32", "steps": "4", "recompute": "true"}


def test_one_type_and_no_memory_block_is_hardware_knowledge() -> None:
    job = auto_job({"memory": None, "resources.instance_type": "ml.m5.large", "hyperparameters": {}})
    attempts = {attempt.name: attempt for attempt in plan(job).attempts}
    assert set(attempts) == {"main", "larger-volume", "other-capacity", "larger-host"}
    assert attempts["larger-volume"].volume_size_gb == 60
    assert not any(attempt.fit for attempt in attempts.values())


def test_a_written_list_is_never_left() -> None:
    only = ["ml.g5.4xlarge"]
    assert {attempt.instance_type for attempt in plan(auto_job({"resources.instance_type": only})).attempts} == {*only}


def test_gpus_that_cannot_compute_in_bf16_are_not_chosen_for_it() -> None:
    small = {"memory.sequence_length": 32, "hyperparameters.per_device_train_batch_size": 8}
    assert plan(auto_job(small)).attempts[0].instance_type == "ml.g4dn.xlarge"
    attempts = plan(auto_job(small | {"memory.precision": "bf16-mixed"})).attempts
    assert all(instances()[attempt.instance_type].bf16 for attempt in attempts)


def test_nvme_disks_grow_with_the_type() -> None:
    attempts = {a.name: a for a in plan(auto_job({"resources.instance_type": "ml.g5.4xlarge"})).attempts}
    target = attempts[attempts["main"].next["disk"]]
    assert instances()[target.instance_type].nvme_gb > instances()["ml.g5.4xlarge"].nvme_gb
    assert "larger-volume" not in attempts


def test_the_largest_volume_does_not_grow() -> None:
    changes = {"memory": None, "resources.instance_type": "ml.m5.large", "resources.volume_size_gb": 16384}
    assert "larger-volume" not in names(auto_job(changes))
    changes["resources.volume_size_gb"] = 9000
    (volume,) = [a.volume_size_gb for a in plan(auto_job(changes)).attempts if a.name == "larger-volume"]
    assert volume == 16384


HUGE = {"memory.model.params": 7e10, "memory.model.layers": 80, "memory.model.hidden_size": 8192}
TIGHT = {"resources.instance_type": ["ml.g5.xlarge"], "memory.sequence_length": 512}


def test_what_fits_nowhere_is_refused_with_what_would_help() -> None:
    with pytest.raises(SagefitError, match="no instance that the job may use is sure to hold it") as caught:
        plan(auto_job(TIGHT))
    assert caught.value.exit_code == DOES_NOT_FIT
    assert "resources.instance_type" in caught.value.message
    assert "what would make it fit:" in (caught.value.hint or "")


def risky() -> dict[str, Any]:
    """A job that its only type holds by the prediction, and not by the upper bound."""
    for length in range(64, 512, 4):
        changes = TIGHT | {"memory.sequence_length": length}
        job = auto_job(changes)
        (only,) = choices(job, read(job))
        if only.verdict == "RISKY":
            return changes
    raise AssertionError("there is none")


def test_a_risk_is_taken_where_the_job_accepts_it() -> None:
    changes = risky()
    with pytest.raises(SagefitError, match="no instance that the job may use is sure to hold it") as caught:
        plan(auto_job(changes))
    assert "or memory.accept_risky: true, to run it on ml.g5.xlarge all the same" in (caught.value.hint or "")
    made = plan(auto_job(changes | {"memory.accept_risky": True}))
    first = made.attempts[0]
    assert (first.instance_type, first.fit and first.fit.verdict) == ("ml.g5.xlarge", "RISKY")
    assert first.reason.startswith("It comes nearest to fitting")
    assert made.advice  # what would make it fit is told all the same
    assert "gpu_memory" in first.next


def test_no_risk_is_taken_with_what_does_not_fit_by_the_prediction() -> None:
    with pytest.raises(SagefitError, match="no instance that the job may use is sure to hold it") as caught:
        plan(auto_job(TIGHT | {"memory.sequence_length": 4096, "memory.accept_risky": True}))
    assert "accept_risky" not in (caught.value.hint or "")


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_risks_are_accepted_only_where_nothing_fits(job: Job) -> None:
    assert job.memory
    accepting = job.model_copy(update={"memory": job.memory.model_copy(update={"accept_risky": True})})
    found = choices(job, read(job))
    try:
        attempts = plan(job).attempts
    except SagefitError as error:
        assume(error.exit_code == DOES_NOT_FIT)
    else:
        assert plan(accepting).attempts == attempts
        return
    near = [each for each in found if each.verdict == "RISKY" and not each.too_few_gpus]
    if not near:
        with pytest.raises(SagefitError, match="no instance that the job may use is sure to hold it"):
            plan(accepting)
        return
    attempts = plan(accepting).attempts
    first = attempts[0].fit
    assert first in near
    assert max(first.gpu_share or 0, first.host_share or 0) <= 0.01 + min(
        max(each.gpu_share or 0, each.host_share or 0) for each in near
    )
    assert {attempt.fit.verdict for attempt in attempts if attempt.fit} <= {"RISKY", "FITS"}
    for attempt, _, target in edges(attempts):
        assert attempt.fit
        assert target.fit
        assert (target.fit.gpu_share or 0) <= (attempt.fit.gpu_share or 0)
        assert (target.fit.host_share or 0) <= (attempt.fit.host_share or 0)


def test_advice_holds_when_it_is_taken() -> None:
    job = auto_job(TIGHT)
    workload = read(job)
    advice = advise(job, workload, choices(job, workload))
    kinds = [change.kind for found in advice for change in found.changes]
    assert "batch" in kinds
    assert sorted((found.gpu_gib + found.host_gib for found in advice), reverse=True) == [
        found.gpu_gib + found.host_gib for found in advice
    ]
    for found in advice:
        if len(found.changes) == 1 and found.changes[0].kind == "batch":
            values = found.changes[0].workload
            taken = {
                "hyperparameters.per_device_train_batch_size": values["micro_batch"],
                "hyperparameters.gradient_accumulation_steps": values["accumulation"],
            }
            assert values["micro_batch"] * values["accumulation"] == 32
            assert plan(auto_job(TIGHT | taken)).attempts[0].fit == found.fit


def test_the_nearest_miss_is_one_whose_memory_is_known() -> None:
    llama = {"memory.model": "meta-llama/Llama-3.1-8B", "memory.method": "lora", "memory.sequence_length": 2048}
    job = auto_job(llama)
    workload = read(job)
    found = choices(job, workload)
    near = nearest(found)
    assert any(candidate.unknown for candidate in found)
    assert near
    assert not near.unknown
    assert advise(job, workload, found)


def test_changes_that_change_nothing_are_not_tried() -> None:
    def kinds(changes: dict[str, Any]) -> dict[str, str]:
        job = auto_job(changes)
        return {change.kind: change.text for change in changes_of(job, read(job))}

    assert kinds({})["length"] == "memory.sequence_length: 64"
    assert kinds({"memory.sequence_length": None, "hyperparameters.max_length": 128})["length"] == (
        "hyperparameters.max_length: 64"
    )
    both = {"hyperparameters.max_length": 128, "memory.sequence_length": 128}  # one alone would contradict the other
    assert kinds(both)["length"] == "hyperparameters.max_length: 64 and memory.sequence_length: 64"
    assert kinds({"hyperparameters.per_device_train_batch_size": 7})["batch"].endswith("gradient_accumulation_steps: 7")
    assert kinds({"hyperparameters.bf16": False, "memory.precision": None})["precision"] == "hyperparameters.bf16: true"
    assert kinds({"hyperparameters.optim": "adamw_torch"})["optimizer"] == "hyperparameters.optim: adamw_bnb_8bit"


@pytest.mark.parametrize("stack", ["tensorflow", "megatron", "torchtitan"])
def test_stacks_without_quantised_weights_are_not_told_to_use_them(stack: str) -> None:
    job = auto_job({"memory.stack": stack})
    assert not any(change.workload.get("method") == "qlora" for change in changes_of(job, read(job)))
    job = auto_job()
    assert any(change.workload.get("method") == "qlora" for change in changes_of(job, read(job)))


def test_a_remedy_says_what_it_costs_in_other_memory() -> None:
    job = auto_job(TIGHT)
    workload = read(job)
    (first, *_) = advise(job, workload, choices(job, workload))
    text = replace(first, gpu_gib=9.2, host_gib=-197).text
    assert "(9.2 GiB less per GPU, 197.0 GiB more per host)" in text


def test_too_few_gpus_are_never_chosen_and_more_instances_are_advised() -> None:
    changes = {"memory.world_size": 4, "resources.instance_type": "ml.g6.4xlarge", "memory.sequence_length": 32}
    job = auto_job(changes)
    with pytest.raises(SagefitError, match=r"world_size 4 needs 4 GPUs, 1 x ml\.g6\.4xlarge has 1") as caught:
        plan(job)
    assert caught.value.exit_code == DOES_NOT_FIT
    assert "resources.instance_count: 4: fits on 4 x ml.g6.4xlarge" in (caught.value.hint or "").replace(
        " (0.0 GiB less per GPU)", ""
    )
    assert gpus(plan(auto_job(changes | {"resources.instance_type": "auto"})).attempts[0]) >= 4
    assert gpus(plan(auto_job(changes | {"resources.instance_count": 4})).attempts[0]) == 4


@pytest.mark.parametrize(("length", "least"), [(256, 2), (2048, 3)])
def test_several_changes_are_tried_when_no_single_one_is_enough(length: int, least: int) -> None:
    large = {"memory.model": "meta-llama/Llama-3.1-8B", "memory.sequence_length": length}
    job = auto_job(large | {"resources.instance_type": ["ml.g6e.4xlarge"]})
    workload = read(job)
    advice = advise(job, workload, choices(job, workload))
    assert advice
    assert min(len(found.changes) for found in advice) >= least


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_no_change_that_is_advised_makes_another_effective_batch(job: Job) -> None:
    workload = read(job)
    for change in changes_of(job, workload):
        after = replace(workload, **change.workload)
        assert after.micro_batch * after.accumulation == workload.micro_batch * workload.accumulation


def test_attempts_take_what_they_leave_out_from_resources(tmp_path: Path) -> None:
    changes = {"resources.warm_pool": "10m", "resources.volume_size_gb": 77, "attempts.1.instance_count": 2}
    small, large = plan(load_job(str(write_job(tmp_path, changes)))).attempts
    assert (small.keep_alive_seconds, small.volume_size_gb, small.instance_count) == (600, 77, 1)
    assert (large.instance_count, large.max_runtime_seconds, large.next) == (2, 1200, {})


def test_written_attempts_are_judged_with_their_own_hyperparameters() -> None:
    written = [
        {"name": "full", "instance_type": "ml.g6e.xlarge", "next": {"gpu_memory": "half"}},
        {
            "name": "half",
            "instance_type": "ml.g6e.xlarge",
            "hyperparameters": {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 2},
        },
    ]
    full, half = plan(auto_job({"attempts": written})).attempts
    assert full.fit
    assert half.fit
    assert (half.fit.gpu_share or 0) < (full.fit.gpu_share or 0)


def test_an_attempt_that_no_edge_reaches_costs_nothing(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path, {"attempts.0.next": None})))
    attempts = plan(job).attempts
    assert worst_path(attempts, REGION) == attempts[:1]


def test_the_worst_case_of_a_chain_is_every_attempt_to_its_limit(tmp_path: Path) -> None:
    attempts = plan(load_job(str(write_job(tmp_path)))).attempts
    assert worst_case_usd(attempts, REGION) == pytest.approx((0.115 + 0.23) * (20 + 2) / 60, abs=0.001)


def test_a_job_over_its_max_price_is_refused(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path, {"max_price": 0.01})))
    with pytest.raises(SagefitError, match=r"can cost .* by way of small > large") as caught:
        check_max_price(plan(job), REGION)
    assert caught.value.exit_code == REFUSED
    with pytest.raises(SagefitError, match=r"no price of ml\.m5\.large in mars-north-1"):
        check_max_price(plan(job), "mars-north-1")


def test_repeats_after_errors_of_aws_are_told_beside_the_worst_case(tmp_path: Path) -> None:
    """Each attempt of the dearest path may be lost twice at its time limit; a limit on the price is about the path."""
    job = load_job(str(write_job(tmp_path, {"max_price": 0.13})))
    usd = worst_case_usd(plan(job).attempts, REGION)
    assert usd
    check_max_price(plan(job), REGION)
    assert repeats_note(usd) == f"repeats after internal errors of AWS could add at most {2 * usd:.2f} USD"


LONG = {f"parameter_{index}": "v" * 2500 for index in range(60)}


@pytest.mark.parametrize(
    ("changes", "field", "rule", "knob"),
    [
        (
            {"attempts.0.max_runtime_seconds": LOOKS - 1200 + 1},
            "resources.poll_interval",
            "2,600 times; every 1 s that is 43 min 20 s, and its steps and attempts may take 43 min 21 s",
            "raise it to 2 s or more, remove it",
        ),
        ({"hyperparameters": LONG}, "attempts[0]", "the request of attempt small has 15", "a file of the code"),
        (
            {"attempts.1.hyperparameters": {f"parameter_{index}": 1 for index in range(99)}},
            "attempts[1]",
            "attempt large has 101 entries in hyperparameters, the job's own included; a training job takes 100",
            "a file of the code",
        ),
        (
            {"environment": {"A": 1, "B": 2}, "attempts.0.environment": {f"V{index}": 1 for index in range(98)}},
            "attempts[0]",
            "attempt small has 100 entries in environment, the job's own included; a training job takes 99",
            "a file of the code",
        ),
        (
            {
                "hyperparameters": dict(list(LONG.items())[:40]),
                "resources": {"max_runtime": "20m"},
                "attempts": [{"name": f"attempt-{index}", "instance_type": "ml.m5.large"} for index in range(11)],
            },
            "attempts",
            "11 attempts repeat the request, and the definition of the state machine has 1,1",
            "remove attempts",
        ),
    ],
    ids=["looks", "request", "hyperparameters", "environment", "definition"],
)
def test_what_the_services_would_refuse_of_all_together_is_refused(
    tmp_path: Path, changes: dict[str, Any], field: str, rule: str, knob: str
) -> None:
    job = load_job(str(write_job(tmp_path, changes)))
    with pytest.raises(SagefitError) as caught:
        plan(job)
    assert caught.value.exit_code == INVALID
    assert f": {field}: " in caught.value.message
    assert rule in caught.value.message
    assert knob in caught.value.message


def test_what_the_services_just_take_is_taken(tmp_path: Path) -> None:
    changes = {
        "attempts.0.max_runtime_seconds": LOOKS - 1200,
        "hyperparameters": dict(list(LONG.items())[:50]),
        "attempts.1.hyperparameters": {f"number_{index}": 1 for index in range(50)},
    }
    assert len(plan(load_job(str(write_job(tmp_path, changes)))).attempts) == 2


def test_a_type_that_the_platform_does_not_allow_is_refused(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path)))
    assert not list(allowed_problems(plan(job), []))
    assert not list(allowed_problems(plan(job), ["ml.m5.large", "ml.m5.xlarge"]))
    (problem,) = allowed_problems(plan(job), ["ml.m5.large"])
    assert problem.field == ("attempts", 1, "instance_type")
    assert "attempt large runs on ml.m5.xlarge" in problem.message
    assert "resources.instance_type" in problem.knob


def test_changed_leaves_its_argument_alone() -> None:
    before = {"a": {"b": 1}}
    assert changed(before, {"a.b": 2, "a.c.d": 3}) == {"a": {"b": 2, "c": {"d": 3}}}
    assert before == {"a": {"b": 1}}
