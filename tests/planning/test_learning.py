"""What runs measured, kept beside the job file, and what the planner makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli_runner import Sagefit
from job_files import AUTO, auto_job, write_job
from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.memory import Peak, Placement, Prediction, Workload, bounds, predict
from sagefit.memory.code_digest import code_digest
from sagefit.memory.peaks import MOST, Record, load, path_of, save
from sagefit.memory.read import read
from sagefit.planning import JobPlan, plan
from sagefit.size import as_json, size_job
from sagefit.size.measured import saving_of

ONE_GPU = Placement(1, 1, "")
REGION = "us-east-1"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return load_job(str(write_job(tmp_path, {"name": None}, file="tune.yaml", job=AUTO)))


def record(job: Job, **changes: Any) -> Record:
    """A completed attempt of ``job`` as it is now, on one GPU."""
    texts = {name: str(value).lower() for name, value in job.hyperparameters.items()}
    own = Record(
        training_job="tune-261121-120000-0",
        outcome="completed",
        cloud="aws",
        instance_type="ml.g5.xlarge",
        instance_count=1,
        gpus_per_host=1,
        gpu="A10G",
        code=code_digest(job),
        hyperparameters=texts,
        gpu_gib=10.0,
        host_gib=5.0,
    )
    return replace(own, **changes)


def predicted(job: Job, hyperparameters: dict[str, Any] | None = None, placement: Placement = ONE_GPU) -> Prediction:
    found = predict(read(job, job.hyperparameters | (hyperparameters or {})), placement)
    assert found
    assert found.gpu
    return found


def gpu(job: Job, hyperparameters: dict[str, Any] | None = None) -> float:
    estimate = predicted(job, hyperparameters).gpu
    assert estimate
    return estimate.point


def test_a_measured_peak_replaces_the_prediction_of_the_same(job: Job) -> None:
    before = predicted(job)
    save(job, [record(job)])
    after = predicted(job)
    assert before.gpu
    assert after.gpu
    assert after.gpu.point == pytest.approx(10)
    assert after.host.point == pytest.approx(5)
    assert after.gpu.upper == pytest.approx(10 * bounds.MEASURED)
    assert sum(after.gpu.parts.values()) == pytest.approx(10)
    assert (before.source, after.source) == ("formula", "measured")
    assert any(f"measured in tune-261121-120000-0, {before.gpu.point:.2f} predicted" in a for a in after.assumptions)


def test_of_several_measurements_the_highest_counts(job: Job) -> None:
    save(job, [record(job), record(job, training_job="tune-261121-120100-0", gpu_gib=11.0)])
    assert gpu(job) == pytest.approx(11)


@pytest.mark.parametrize("harmless", [{"epochs": 9}, {"learning_rate": 0.1}, {"gradient_accumulation_steps": 1}])
def test_what_leaves_memory_alone_does_not_matter(job: Job, harmless: dict[str, Any]) -> None:
    save(job, [record(job)])
    assert gpu(job, harmless) == pytest.approx(10)


def test_more_accumulation_is_the_same_as_some(job: Job) -> None:
    texts = record(job).hyperparameters | {"gradient_accumulation_steps": "2"}
    save(job, [record(job, hyperparameters=texts)])
    assert gpu(job, {"gradient_accumulation_steps": 8}) == pytest.approx(10)
    assert predicted(job, {"gradient_accumulation_steps": 8}).source == "measured"
    assert predicted(job, {"gradient_accumulation_steps": 1}).source == "formula"


def test_the_ratio_corrects_another_batch(job: Job) -> None:
    full, half = gpu(job), gpu(job, {"per_device_train_batch_size": 16})
    save(job, [record(job, gpu_gib=full * 0.8)])
    corrected = predicted(job, {"per_device_train_batch_size": 16})
    assert corrected.gpu
    assert corrected.gpu.point == pytest.approx(half * 0.8)
    assert corrected.source == "formula"
    assert any("x 0.80, as tune-261121-120000-0 measured" in note for note in corrected.assumptions)


@pytest.mark.parametrize(("measured", "applied"), [(0.1, 0.5), (9, 4)])
def test_a_ratio_beyond_reason_is_limited_and_said(job: Job, measured: float, applied: float) -> None:
    full, double = gpu(job), gpu(job, {"per_device_train_batch_size": 64})
    save(job, [record(job, gpu_gib=full * measured)])
    assert gpu(job) == pytest.approx(full * measured, abs=1e-4)
    assert gpu(job, {"per_device_train_batch_size": 64}) == pytest.approx(double * applied)
    notes = predicted(job, {"per_device_train_batch_size": 64}).assumptions
    assert any("whether the memory block describes what ran" in note for note in notes)


@pytest.mark.parametrize(
    "other",
    [
        {"code": "0" * 16},
        {"hyperparameters": {"hidden_size": "4096"}},
        {"outcome": "spot"},
        {"gpus_per_host": 0},
    ],
    ids=str,
)
def test_other_runs_do_not_count(job: Job, other: dict[str, Any]) -> None:
    before = gpu(job)
    save(job, [record(job, **other)])
    assert gpu(job) == before


def test_what_the_job_file_cannot_describe_any_more_does_not_count(job: Job) -> None:
    before = gpu(job)
    unreadable = record(job).hyperparameters | {"dataloader_num_workers": "many"}
    save(job, [record(job, hyperparameters=unreadable)])
    assert gpu(job) == before


def test_measurements_of_other_code_are_counted_out_loud(job: Job) -> None:
    save(job, [record(job, code="0" * 16)])
    assert "1 of 1 measured attempts had other code or hyperparameters and do not count" in read(job).notes


def test_a_changed_script_is_other_code(job: Job) -> None:
    save(job, [record(job)])
    (job.path.parent / "src" / "train.py").write_text("print('other')\n", encoding="utf-8")
    assert gpu(job) != pytest.approx(10)


def test_an_attempt_that_died_is_a_lower_bound_for_that_memory_alone(job: Job) -> None:
    before = predicted(job)
    assert before.gpu
    died = record(job, outcome="gpu_memory", gpu_gib=before.gpu.point + 3, host_gib=before.host.point + 3)
    save(job, [died])
    after = predicted(job)
    assert after.gpu
    assert after.gpu.point == pytest.approx(before.gpu.point + 3, abs=1e-4)
    assert after.host.point == before.host.point
    assert any("died of it at" in note for note in after.assumptions)
    assert gpu(job, {"per_device_train_batch_size": 64}) >= after.gpu.point
    smaller = {"per_device_train_batch_size": 1}
    assert gpu(job, smaller) < before.gpu.point  # it needs less, so nothing follows for it
    save(job, [replace(died, gpu_gib=0.5)])
    assert gpu(job) == before.gpu.point


PEAKS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 8, 32, 64]),
        st.floats(0.5, 200),
        st.floats(0.5, 200),
        st.sampled_from(["", "gpu", "host"]),
    ),
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(PEAKS, st.sampled_from([1, 4, 8, 16, 64]), st.sampled_from([1, 4]))
def test_whatever_was_measured_a_prediction_stays_one(found: list[Any], batch: int, gpus: int) -> None:
    base = read(auto_job())
    peaks = tuple(
        Peak(f"run-{n}", replace(base, micro_batch=size), Placement(1, 1, ""), used, host, died)
        for n, (size, used, host, died) in enumerate(found)
    )
    plain, learned = (
        predict(replace(base, micro_batch=batch, peaks=told), Placement(1, gpus, "")) for told in ((), peaks)
    )
    assert plain
    assert learned
    for estimate, formula in ((learned.gpu, plain.gpu), (learned.host, plain.host)):
        assert estimate
        assert formula
        assert estimate.upper >= estimate.point > 0
        assert sum(estimate.parts.values()) == pytest.approx(estimate.point)
        assert set(estimate.parts) == set(formula.parts)
    assert learned.assumptions[: len(plain.assumptions)] == plain.assumptions


@settings(max_examples=60, deadline=None)
@given(st.floats(0.3, 6), st.booleans())
def test_one_measurement_keeps_the_order_of_batches(ratio: float, died: bool) -> None:
    base: Workload = read(auto_job())
    formula = predict(base, ONE_GPU)
    assert formula
    assert formula.gpu
    used, host = formula.gpu.point * ratio, formula.host.point * ratio
    peak = Peak("run-0", base, ONE_GPU, used, host, "gpu" if died else "")
    batches = [1, 8, 31, 32, 33, 64]
    found = [predict(replace(base, micro_batch=batch, peaks=(peak,)), ONE_GPU) for batch in batches]
    points = [p.gpu.point for p in found if p and p.gpu]
    if 0.5 <= ratio <= 4:
        assert points == sorted(points)
        uppers = [p.gpu.upper for p in found if p and p.gpu]
        assert all(a <= b * 1.0000001 for a, b in pairwise(uppers))


def test_without_a_model_a_measurement_is_one(tmp_path: Path) -> None:
    plain = load_job(str(write_job(tmp_path)))
    assert read(plain).model is None
    own = {"epochs": "3", "cache": "true"}
    cpu = {"instance_type": "ml.m5.large", "gpus_per_host": 0, "gpu": "", "gpu_gib": None, "host_gib": 0.4}
    save(plain, [record(plain, hyperparameters=own, **cpu)])
    sizing = size_job(JobPlan(plain), REGION)
    assert (sizing.verdict, sizing.workload.model is not None) == ("FITS", True)
    assert sizing.saving
    assert sizing.saving.usd > 0
    answer = as_json(sizing)
    assert answer["source"] == "measured"
    assert answer["host_gib"]["point"] == pytest.approx(0.4)
    assert answer["saving"]["percent_less"] == pytest.approx(
        100 * sizing.saving.usd / sizing.saving.usd_before, abs=0.1
    )
    assert "less (" in sizing.saving.text
    other = load_job(str(write_job(tmp_path, {"hyperparameters.cache": False})))
    assert read(other).model is None


def test_without_a_model_a_death_is_told(tmp_path: Path) -> None:
    plain = load_job(str(write_job(tmp_path)))
    own = {"epochs": "3", "cache": "true"}
    save(plain, [record(plain, hyperparameters=own, outcome="host_memory", gpus_per_host=0, gpu_gib=None, host_gib=7)])
    assert read(plain).model is None
    assert any("needs more than 7.00 GiB" in note for note in read(plain).notes)


def test_what_uses_its_memory_gets_no_cheaper_suggestion(job: Job) -> None:
    chosen = size_job(JobPlan(job), REGION).chosen
    assert chosen
    assert chosen.usable_gpu_gib
    save(job, [record(job, gpu_gib=chosen.usable_gpu_gib * 0.7)])
    assert size_job(JobPlan(job), REGION).saving is None


def test_a_measured_gpu_job_on_too_large_an_instance_is_told_what_it_could_save(tmp_path: Path) -> None:
    file = write_job(tmp_path, {"name": None, "resources.instance_type": "ml.g6e.xlarge"}, file="tune.yaml", job=AUTO)
    large = load_job(str(file))
    save(large, [record(large, instance_type="ml.g6e.xlarge", gpu_gib=6.0, host_gib=4.0)])
    saving = size_job(JobPlan(large), REGION).saving
    assert saving
    assert saving.fit.placement.gpus == 1
    assert saving.usd_after < saving.usd_before


def test_a_run_alone_tells_what_it_could_save(job: Job) -> None:
    saving = saving_of(JobPlan(job), "main", ("ml.g5.12xlarge", 1), (10.0, 5.0), REGION)
    assert saving
    assert saving.fit.placement.gpus == 4
    assert saving_of(JobPlan(job), "main", ("ml.g5.12xlarge", 1), (10.0, 15.0), REGION) is None  # its GPUs are in use
    assert (
        saving_of(JobPlan(job), "main", ("ml.g5.12xlarge", 1), (10.0, None), REGION) is None
    )  # nothing is known of them
    assert (
        saving_of(JobPlan(job), "main", ("ml.g4dn.xlarge", 1), (1.0, 1.0), REGION) is None
    )  # there is nothing cheaper


def test_the_same_file_renders_the_same_and_size_needs_no_cloud(job: Job, tmp_path: Path) -> None:
    save(job, [record(job)])
    sagefit = Sagefit(tmp_path / "home", AWS_ENDPOINT_URL="http://127.0.0.1:1")
    (answer,) = [json.loads(line) for line in sagefit("size", "--json", job.path).out.splitlines()]
    assert answer["gpu_gib"]["point"] == pytest.approx(10)
    assert answer["measured"][0]["gpu_gib"] == 10
    assert answer["measured"][0]["predicted_gpu_gib"] > 0
    page = sagefit("size", job.path).out
    assert "measured in" in page
    assert "tune-261121-120000-0" in page
    texts = [sagefit("render", "--stdout", job.path, CLOUD=cloud).out for cloud in ("aws", "local")]
    assert texts[0] == texts[1]
    assert plan(job).attempts[0].fit


def test_the_file_keeps_the_newest_and_is_written_only_when_it_changes(job: Job) -> None:
    many = [record(job, training_job=f"tune-261121-12{n:04}-0") for n in range(MOST + 5)]
    assert save(job, many)
    assert load(job) == tuple(many[5:])
    assert not save(job, many[5:])
    assert load(job) == load(load_job(str(job.path)))


@pytest.mark.parametrize("text", ["<<<<<<< ours", "[]", '{"schema": 9, "peaks": []}', '{"schema": 1, "peaks": [{}]}'])
def test_a_broken_file_is_refused_and_not_replaced(job: Job, text: str) -> None:
    path_of(job).write_text(text, encoding="utf-8")
    with pytest.raises(SagefitError, match=r"tune\.peaks\.json: not a file of measured peaks"):
        read(job)
    with pytest.raises(SagefitError):
        save(job, [record(job)])
    assert path_of(job).read_text(encoding="utf-8") == text


# As Terraform's fileset, filesha256 and jsonencode have it for these files.
DIGESTS = {
    "data/**": "6db97df8e5d3df72",
    "*.md": "1f35026a8cffcc61",
    "**/*.md": "6cd4770fa6b887ba",
    "v[12].py": "39828ae90bfae886",
    "{train,v1}.py": "98fced5f5b66926e",
    "a/*": "58f65bcafacbc0c6",
    "?1.py": "918c79363c92e43b",
    "**/x/*": "a6222b0aadf6329b",
    ".hidden": "2a8da280e712e8cd",
    "nothing": "d3598b36866cf03f",
}


@pytest.mark.parametrize("glob", DIGESTS)
def test_the_digest_of_the_code_is_terraforms(tmp_path: Path, glob: str) -> None:
    names = "train.py a/b/c.txt a/z.md r.md data/x/q.csv data/l.csv v1.py v2.py x{1}.y .hidden __pycache__/x.pyc"
    for name in [*names.split(), "we<ird & é.py"]:
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("hi\n" if name == "train.py" else "", encoding="utf-8")
    found = auto_job({"code.exclude": [glob]})
    found._path = tmp_path / "tune.yaml"
    assert code_digest(found) == DIGESTS[glob]
    assert code_digest(auto_job({"code": None})) == ""
