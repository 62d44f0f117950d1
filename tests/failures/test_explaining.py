"""What is proposed for each class of failure, and what the planner says of it; memory over time; how far a log came."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from job_files import AUTO, write_job
from running.test_watch import PLATFORM
from sagefit.errors import SagefitError
from sagefit.explaining.applying import apply
from sagefit.explaining.explanation import Explanation
from sagefit.explaining.progress import reached
from sagefit.explaining.proposals import Failed
from sagefit.explaining.timeline import BLOCKS, HEIGHT, PLAIN_BLOCKS, WIDTH, Timeline, of_class, of_hosts, picture
from sagefit.explaining.tried import MOST, Remedy, remedies
from sagefit.failures import diagnose
from sagefit.job import load_job
from sagefit.memory.code_digest import code_digest
from sagefit.memory.peaks import Record, load
from sagefit.planning import JobPlan
from sagefit.running.records import AttemptRecord, StepRecord

GIB = 1024**3
ONE: dict[str, Any] = {"attempts": [{"name": "main"}]}
STEP = {
    "name": "prepare",
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "outputs": ["rows"],
    "resources": {"instance_type": "ml.m5.large", "max_runtime": "10m"},
}


def failed(path: Path, failure: str, *, also: tuple[Record, ...] = (), **record: Any) -> tuple[Failed, JobPlan]:
    plan = JobPlan(load_job(path))
    own: dict[str, Any] = {"index": 0, "name": "main", "instance_type": "ml.m5.large", "outcome": failure}
    attempt = AttemptRecord(**own | record)
    return Failed(replace_plan(plan, also), attempt, failure, learned=bool(also)), plan


def replace_plan(plan: JobPlan, also: tuple[Record, ...]) -> JobPlan:
    return JobPlan(plan.job, also) if also else plan


def found(path: Path, failure: str, platform: Any = PLATFORM, **given: Any) -> list[Remedy]:
    what, now = failed(path, failure, **given)
    return remedies(what, path.read_text(encoding="utf-8"), platform, now)


def changed(remedy: Remedy) -> list[str]:
    return [line for line in remedy.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def of_type(folder: Path, ml_type: str = "ml.m5.large", **changes: Any) -> Path:
    return write_job(folder, ONE | {"resources.instance_type": ml_type} | changes)


@pytest.mark.parametrize(
    ("failure", "changes", "expected"),
    [
        ("time", {}, [["-  max_runtime: 20m", "+  max_runtime: 40m"]]),
        ("disk", {}, [["+  volume_size_gb: 60"]]),
        ("disk", {"resources.volume_size_gb": 50}, [["-  volume_size_gb: 50", "+  volume_size_gb: 100"]]),
        ("capacity", {}, [["-  instance_type: ml.m5.large", "+  instance_type: ml.m5a.large"]]),
        ("quota", {}, [["-  instance_type: ml.m5.large", "+  instance_type: ml.m5a.large"]]),
        ("host_memory", {}, [["-  instance_type: ml.m5.large", "+  instance_type: ml.r6i.large"]]),
        (
            "spot",
            {"resources.spot": True, "resources.max_wait": "20m"},
            [["+  spot: false"], ["-  max_wait: 20m", "+  max_wait: 40m"]],
        ),
        ("code", {}, []),
        ("permission", {}, []),
        ("internal", {}, []),
    ],
)
def test_each_class_has_its_changes(
    tmp_path: Path, failure: str, changes: dict[str, Any], expected: list[list[str]]
) -> None:
    path = of_type(tmp_path, **changes)
    given = found(path, failure)
    told = [changed(remedy) for remedy in given]
    if failure in ("capacity", "quota"):  # which type depends on prices
        assert [line[:17] for line in told[0]] == ["-  instance_type:", "+  instance_type:"]
        assert told[0][0] != told[0][1]
    else:
        assert told == expected
    for remedy in given:
        assert remedy.text
        assert remedy.effect.startswith(("a run costs", "not predicted"))


def test_an_nvme_disk_is_not_made_larger_but_changed_for_a_larger_one(tmp_path: Path) -> None:
    path = of_type(tmp_path, "ml.g5.xlarge", image={"framework": "pytorch", "version": "2.6"})
    (remedy,) = found(path, "disk", instance_type="ml.g5.xlarge")
    assert remedy.proposal.words == "450 GB of NVMe disk instead of 250"
    assert changed(remedy)[0] == "-  instance_type: ml.g5.xlarge"


def test_what_belongs_to_one_of_several_attempts_is_written_there(tmp_path: Path) -> None:
    path = write_job(tmp_path, {"resources.max_runtime": "10m"})
    (remedy,) = found(path, "time", name="large")
    assert changed(remedy) == ["+  max_runtime: 20m"]
    assert yaml.safe_load(remedy.text or "")["attempts"][1] == {
        "name": "large",
        "instance_type": "ml.m5.xlarge",
        "max_runtime": "20m",
    }


def test_an_attempt_that_the_job_file_has_no_more_has_no_changes(tmp_path: Path) -> None:
    assert found(write_job(tmp_path), "time", name="gone") == []


def test_a_step_changes_its_own_fields(tmp_path: Path) -> None:
    path = of_type(tmp_path, processing=[STEP])
    plan = JobPlan(load_job(path))
    for failure, line in (
        ("host_memory", "+    instance_type: ml.r6i.large"),
        ("disk", "+    volume_size_gb: 60"),
        ("time", "+    max_runtime: 20m"),
    ):
        step = StepRecord(0, "prepare", instance_type="ml.m5.large", outcome=failure)
        (remedy,) = remedies(Failed(plan, step, failure), path.read_text(encoding="utf-8"), PLATFORM, plan)
        assert line in changed(remedy)


def test_what_the_platform_does_not_allow_is_not_proposed(tmp_path: Path) -> None:
    only = PLATFORM.model_copy(update={"allowed_instance_types": ["ml.m5.large"]})
    assert found(of_type(tmp_path), "host_memory", only) == []
    assert len(found(of_type(tmp_path), "host_memory")) == 1


def test_a_host_that_a_leak_filled_gets_no_larger_one(tmp_path: Path) -> None:
    assert found(of_type(tmp_path), "host_memory", growth="host memory grew") == []


def test_more_than_max_price_is_said(tmp_path: Path) -> None:
    (remedy,) = found(of_type(tmp_path, max_price=0.04), "host_memory")
    assert remedy.refused.startswith("raise max_price first: a run can cost ")


GPU = {
    "attempts": [{"name": "main", "instance_type": "ml.g5.xlarge"}],
    "memory": {"model": "Qwen/Qwen2.5-0.5B", "method": "lora", "precision": "bf16", "sequence_length": 512},
    "hyperparameters.gradient_checkpointing": False,
}


def gpu_job(folder: Path, **changes: Any) -> Path:
    (folder / "src").mkdir(exist_ok=True)
    return write_job(folder, copy.deepcopy(GPU) | changes, job=AUTO, file="tune.yaml")


def test_a_batch_is_halved_until_it_fits_and_keeps_its_effect(tmp_path: Path) -> None:
    path = gpu_job(tmp_path)
    given = found(path, "gpu_memory", instance_type="ml.g5.xlarge")
    batch = given[0]
    values = {edit.field[-1]: edit.value for edit in batch.proposal.edits}
    micro, steps = values["per_device_train_batch_size"], values["gradient_accumulation_steps"]
    assert micro * steps == 32
    assert batch.fits is True
    assert "instead of" in batch.effect
    text = path.read_text(encoding="utf-8").replace(
        "per_device_train_batch_size: 32", f"per_device_train_batch_size: {2 * micro}"
    )
    before = JobPlan(load_job(path, text=text)).attempts[0].fit
    assert before
    assert before.verdict != "FITS"
    assert [remedy.proposal.kind for remedy in given].count("accumulate") == 1
    assert all(remedy.fits for remedy in given)
    assert len(given) <= MOST


def test_a_knob_that_the_script_does_not_have_is_not_turned(tmp_path: Path) -> None:
    path = gpu_job(tmp_path, **{"hyperparameters": {"lr": 1}, "memory.micro_batch": 32})
    for remedy in found(path, "gpu_memory", instance_type="ml.g5.xlarge"):
        assert {edit.field[-1] for edit in remedy.proposal.edits} == {"instance_type"}


LOSS = {"metric": "loss", "type": "Minimize"}
BATCH = "per_device_train_batch_size"


@pytest.mark.parametrize(
    ("searched", "expected"),
    [
        ([2, 4, 32], ["-    - 2", "-    - 4", "-    - 32", "+      [2, 4]"]),
        ({"min": 2, "max": 64}, ["-      max: 64", "+      max: 4"]),
    ],
    ids=["a list", "a range"],
)
def test_a_search_leaves_out_its_largest_batches(searched: Any, expected: list[str], tmp_path: Path) -> None:
    tuning = {"objective": LOSS, "max_jobs": 4, "ranges": {"rate": [0.1, 0.2], BATCH: searched}}
    search = {"metrics": [{"name": "loss", "regex": "loss=([0-9.]+)"}], "tuning": tuning}
    path = gpu_job(tmp_path, **search, **{f"hyperparameters.{BATCH}": None})
    given = found(path, "gpu_memory", instance_type="ml.g5.xlarge")
    assert expected in [changed(remedy) for remedy in given]
    assert all(remedy.fits for remedy in given)


def test_what_a_run_measured_counts_when_attempts_are_chosen_again(tmp_path: Path) -> None:
    path = gpu_job(tmp_path, **{"attempts": "auto", "hyperparameters.per_device_train_batch_size": 4})
    plan = JobPlan(load_job(path))
    first = plan.attempts[0]
    fit = first.fit
    assert fit
    died = Record(
        training_job="tune-1-0",
        outcome="gpu_memory",
        cloud="aws",
        instance_type=first.instance_type,
        instance_count=1,
        gpus_per_host=1,
        gpu=fit.instance.accelerator,
        code="",
        hyperparameters={name: str(value) for name, value in plan.job.hyperparameters.items()},
        gpu_gib=fit.usable_gpu_gib,
        host_gib=4.0,
    )
    died = replace(died, code=code_digest(plan.job))
    given = found(path, "gpu_memory", also=(died,), name=first.name, instance_type=first.instance_type)
    learned = given[0]
    assert learned.text is None
    assert learned.proposal.words == "choose the attempts again, by what this run measured"
    assert f"fits on {first.instance_type}" not in learned.effect
    assert learned.fits is True
    told = Explanation("attempt 0", failed(path, "gpu_memory")[0].record, diagnose("x"), None, remedies=(learned,))
    before = path.read_text(encoding="utf-8")
    written = apply(replace(told, record=died), 1, plan.job)
    assert written.name == "tune.peaks.json"
    assert load(plan.job) == (died,)
    assert path.read_text(encoding="utf-8") == before


def test_a_change_keeps_the_mode_of_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = of_type(tmp_path)
    path.chmod(0o640)
    beside = sorted(tmp_path.iterdir())
    told = Explanation("attempt 0", failed(path, "time")[0].record, diagnose("x"), None)
    told = replace(told, remedies=tuple(found(path, "time")))
    job = load_job(path)
    with pytest.raises(SagefitError, match="--apply 2: the changes are 1 to 1"):
        apply(told, 2, job)
    with pytest.raises(SagefitError, match="--apply 1: there is no change to apply"):
        apply(replace(told, remedies=()), 1, job)
    assert apply(told, 1, job) == path.resolve()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == beside
    assert load_job(path).resources.max_runtime == 2400


# --- Memory over time ------------------------------------------------------------------------------------------------


def report(host: str, *gib: float, limit: float | None = 8.0, saved: float | None = None, **own: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "host": host,
        "host_memory": {"limit_bytes": None if limit is None else limit * GIB},
        "history": {"every_seconds": 2.0, "host_bytes": [value * GIB for value in gib], "gpu_bytes": None},
        "checkpoints": {"saved_seconds": saved},
    } | own


def test_the_fullest_host_is_drawn() -> None:
    hosts = [report("algo-1", 1, 2), report("algo-2", 1, 7, saved=2.0), report("algo-3", 3, 3)]
    line = of_class(of_hosts(hosts), "host_memory")
    assert line == Timeline("host memory", "algo-2", 2.0, (1.0, 7.0), 8.0, 2.0)
    assert line.share == 7 / 8


def test_a_gpu_is_drawn_after_a_lack_of_its_memory() -> None:
    history = {"every_seconds": 1.0, "host_bytes": [GIB], "gpu_bytes": [GIB, 21 * GIB]}
    gpus = [{"total_bytes": 22 * GIB}, {"total_bytes": 22 * GIB}]
    line = of_class(of_hosts([report("algo-1", 1, history=history, gpus=gpus)]), "gpu_memory")
    assert line == Timeline("GPU memory", "algo-1", 1.0, (1.0, 21.0), 22.0, None, gpu=True)
    assert of_class(of_hosts([report("algo-1", 1)]), "gpu_memory") is None


@pytest.mark.parametrize(
    "history",
    [
        None,
        [],
        {},
        {"every_seconds": 0, "host_bytes": [1]},
        {"every_seconds": 1, "host_bytes": "x"},
        {"every_seconds": 1, "host_bytes": []},
        {"every_seconds": 1, "host_bytes": [None, "a"]},
    ],
)
def test_a_report_that_says_nothing_is_no_picture(history: Any) -> None:
    assert of_class(of_hosts([report("algo-1", history=history)]), "host_memory") is None


@pytest.mark.parametrize("blocks", [BLOCKS, PLAIN_BLOCKS], ids=["utf-8", "ascii"])
@pytest.mark.parametrize("many", [1, 2, 17, 60, 61, 120])
@pytest.mark.parametrize("width", [10, WIDTH])
def test_a_picture_is_as_high_as_memory_and_no_wider_than_the_screen(blocks: str, many: int, width: int) -> None:
    values = tuple(8 * (at + 1) / many for at in range(many))
    lines = [*picture(Timeline("host memory", "algo-1", 2.0, values, 8.0, 1.0), blocks=blocks, width=width)]
    head, *rows, saved = lines
    assert head.startswith("host memory of algo-1 over ")
    assert head.endswith(": up to 8.00 of 8.00 GiB")
    drawn = [row.partition("|")[2] for row in rows]
    assert len(rows) == HEIGHT
    assert all(len(row) <= width for row in drawn)
    assert drawn[0][-1] == blocks[-1]
    assert [len(row.replace(" ", "")) for row in drawn] == sorted(len(row.replace(" ", "")) for row in drawn)
    assert "^ last checkpoint, at 1 s" in saved
    assert blocks.isascii() is head.isascii() or not blocks.isascii()


def test_what_is_above_the_limit_is_drawn_too() -> None:
    lines = [*picture(Timeline("host memory", "", 1.0, (4.0, 9.0), 8.0))]
    assert lines[0] == "host memory over 2 s: up to 9.00 of 8.00 GiB"
    assert lines[1].startswith("   9.00 |")
    assert lines[-1].startswith("      0 |")


# --- How far a log came ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["step 1/10", "step 2/10", "Traceback (most recent call last):"], "step 2 of 10"),
        (["Epoch 3: loss 0.2"], "epoch 3"),
        (["epoch 1 step 40/100 loss 0.3"], "epoch 1, step 40 of 100"),
        (["{'loss': 2.1, 'global_step': 512}"], "step 512"),
        (["iter 7 of 9"], "step 7 of 9"),
        ([" 12%|#2        | 61/500 [00:41<04:58,  1.47it/s]"], "step 61 of 500"),
        (["2026-11-21T10:00:00Z step 4"], "step 4"),
        (["max_steps: 100", "num_epochs=3", "total steps: 4"], ""),
        (["epochs 3", "step2vec 4", "multistep 5", "step 1.5"], ""),
        ([], ""),
    ],
)
def test_the_last_step_of_a_log(lines: list[str], expected: str) -> None:
    assert reached({"algo-1": lines}) == expected


def test_of_several_hosts_the_one_that_came_farthest() -> None:
    assert reached({"algo-1": ["step 9"], "algo-2": ["step 10"], "algo-3": []}) == "step 10"
