"""The ledger: reports of the flight recorder as they are recorded, and what is told of each attempt."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from rich.console import Console

from job_files import auto_job
from running.test_watch import RUN
from sagefit.failures import REMEDIES, REMEDIES_OF_PATTERN, decided, diagnose, table
from sagefit.memory.peaks import Record
from sagefit.planning import JobPlan
from sagefit.running import AttemptRecord, Run, RunRecord, clients, expected, following, reports, view
from sagefit.running.ledger import _linked, _routed
from sagefit.running.names import attempt_index
from sagefit.running.peaks import record_of
from sagefit.target import Target
from sagefit_launcher import vocabulary

GIB = 1024**3
OUTPUT = "s3://outputs/jobs/tune/tune-261121-120000-0/output"
REPORT: dict[str, Any] = {
    "schema": 1,
    "host_memory": {"peak_bytes": 6 * GIB, "limit_bytes": 16 * GIB, "source": "cgroup"},
    "gpus": [
        {"index": 0, "name": "NVIDIA A10G", "peak_bytes": 11 * GIB, "total_bytes": 22 * GIB},
        {"index": 1, "name": "NVIDIA A10G", "peak_bytes": 12 * GIB, "total_bytes": 22 * GIB},
    ],
    "torch": [{"pid": 9, "rank": 0, "device": 0, "peak_allocated_bytes": 9 * GIB, "peak_reserved_bytes": 10 * GIB}],
}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3 of this process alone."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    clients.s3.cache_clear()
    with mock_aws():
        s3: Any = boto3.client("s3")
        s3.create_bucket(Bucket="outputs")
        yield s3
    clients.s3.cache_clear()


def put(s3: Any, name: str, body: bytes) -> None:
    s3.put_object(Bucket="outputs", Key=f"jobs/tune/tune-261121-120000-0/output/{name}", Body=body)


def archive(**members: Any) -> bytes:
    """An output.tar.gz with ``members`` as JSON."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in members.items():
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            info = tarfile.TarInfo(f"{name}.json")
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return file.getvalue()


def test_the_reports_of_all_hosts_are_read_from_the_archive(bucket: Any) -> None:
    other = REPORT | {"host_memory": {"peak_bytes": 7 * GIB, "source": "cgroup"}}
    put(bucket, "output.tar.gz", archive(**{"big": {"x": 1}, "sagefit": REPORT, "sagefit-algo-2": other}))
    found = reports.read(OUTPUT)
    assert len(found) == 2
    assert (reports.host_peak_gib(found), reports.gpu_peak_gib(found), reports.gpus_per_host(found)) == (7, 12, 2)


def test_reports_that_are_not_packed_are_read_too(bucket: Any) -> None:
    put(bucket, "data/sagefit.json", json.dumps(REPORT).encode())
    put(bucket, "data/sagefit-notes.txt", b"x")
    assert reports.read(OUTPUT) == [REPORT]


@pytest.mark.parametrize(
    "body",
    [b"", b"no archive", archive(sagefit=REPORT)[:60], archive(sagefit={"schema": 2}), archive(sagefit=b"{")],
    ids=["empty", "no archive", "cut off", "another schema", "no JSON"],  # archives hold the time they were made
)
def test_what_is_no_report_is_none(bucket: Any, body: bytes) -> None:
    put(bucket, "output.tar.gz", body)
    assert reports.read(OUTPUT) == []


def test_a_large_archive_is_left_alone_unless_asked_for(bucket: Any) -> None:
    put(bucket, "output.tar.gz", archive(sagefit=REPORT))
    assert reports.read(OUTPUT, largest=10) == []
    assert reports.read(OUTPUT) == [REPORT]


def test_missing_keys_and_buckets_are_no_failure(bucket: Any) -> None:  # noqa: ARG001
    assert reports.read(OUTPUT) == []
    assert reports.read(OUTPUT.replace("outputs", "elsewhere")) == []
    assert reports.read("") == []
    assert reports.host_peak_gib([{"schema": 1}]) is None
    assert reports.host_peak_gib([{"host_memory": {"source": "none", "peak_bytes": 5}}]) is None
    assert reports.gpu_peak_gib([{"gpus": None, "torch": None}]) is None


def test_a_limit_is_that_of_the_fullest() -> None:
    """Hosts of groups differ."""
    small = REPORT | {
        "host_memory": {"peak_bytes": 7 * GIB, "limit_bytes": 8 * GIB, "source": "cgroup"},
        "gpus": [{"index": 0, "peak_bytes": 11 * GIB, "total_bytes": 80 * GIB}],
    }
    assert (reports.host_limit_gib([REPORT, small]), reports.gpu_limit_gib([REPORT, small])) == (8, 22)
    unknown = REPORT | {"host_memory": {"peak_bytes": 9 * GIB, "limit_bytes": None}, "gpus": None}
    assert (reports.host_limit_gib([small, unknown]), reports.gpu_limit_gib([unknown])) == (None, None)
    assert (reports.host_limit_gib([]), reports.gpu_limit_gib([{"schema": 1}])) == (None, None)


def test_torchs_own_peak_counts_where_samples_missed_it() -> None:
    short = REPORT | {"torch": [REPORT["torch"][0] | {"peak_reserved_bytes": 15 * GIB}]}
    assert reports.gpu_peak_gib([short]) == 15


def test_the_fullest_host_counts() -> None:
    other = {
        "host_memory": {"peak_bytes": 15 * GIB, "limit_bytes": 16 * GIB},
        "shared_memory": {"peak_bytes": 1, "total_bytes": 4},
        "gpus": [{"peak_bytes": 21 * GIB, "total_bytes": 22 * GIB}],
        "disks": [{"path": "/", "peak_bytes": 5, "total_bytes": 50}, {"path": "/tmp", "peak_bytes": None}],
    }
    assert reports.utilisation([REPORT, other]) == {
        "host_memory": 93.75,
        "gpu_memory": pytest.approx(95.45, abs=0.01),
        "shared_memory": 25,
        "disk": 10,
    }
    assert reports.utilisation([{"host_memory": {"peak_bytes": 5, "limit_bytes": None}, "disks": [{}]}]) == {}


def saved(seconds: float, at: float | None, files: int | None = None) -> dict[str, Any]:
    model = None if files is None else {"files": files, "bytes": files}
    return {"seconds": seconds, "checkpoints": {"files": 1, "bytes": 1, "saved_seconds": at}, "model": model}


@pytest.mark.parametrize(
    ("hosts", "kept", "lost"),
    [
        ([saved(100, 70)], True, 30),
        ([saved(100, None)], True, 100),
        ([saved(100, 70)], False, 100),  # a folder that nothing brings to S3
        ([saved(100, 70), saved(110, None)], True, 40),
        ([saved(100, 101)], True, 0),
        ([{"seconds": 100}], True, None),  # of an older launcher
        ([], True, None),
    ],
)
def test_what_came_after_the_last_checkpoint_is_lost(hosts: list[Any], kept: bool, lost: float | None) -> None:
    assert reports.lost_seconds(hosts, kept=kept) == lost


def test_a_model_of_one_host_is_a_model() -> None:
    assert reports.has_model([saved(1, 1, 0), saved(1, 1, 1)])
    assert not reports.has_model([saved(1, 1, 0), saved(1, 1)])
    assert reports.has_model([saved(1, 1)])
    assert reports.has_model([])


@pytest.mark.parametrize(
    ("hosts", "wrote"),
    [
        ([saved(100, 70)], True),
        ([saved(100, None)], False),
        ([saved(100, None), saved(100, 70)], True),
        ([{"seconds": 100}], True),  # of an older launcher
        ([], True),
    ],
)
def test_a_script_without_a_checkpoint_is_told_from_one_with(hosts: list[Any], wrote: bool) -> None:
    assert reports.has_saved(hosts) is wrote
    told = view.lost(attempt(outcome="code", usd=0.4, billable_seconds=200, lost_seconds=50.0), saved=wrote)
    assert told == f"50 s of training {'after its last' if wrote else 'without a'} checkpoint, 0.1000 USD"


def test_the_ledger_tells_what_was_lost_and_that_a_model_is_empty() -> None:
    failed = attempt(outcome="code", usd=0.4, billable_seconds=200, lost_seconds=50.0, interruptions=2)
    unpriced = attempt(outcome="code", usd=None, estimated_usd=0.1, billable_seconds=100, lost_seconds=50.0)
    quick = attempt(outcome="code", usd=0.4, billable_seconds=200, lost_seconds=0.4)
    done = attempt(outcome="completed", model="s3://a/model.tar.gz", model_is_empty=True)
    record = RunRecord(RUN, "SUCCEEDED", datetime.now(timezone.utc), None, [failed, unpriced, quick, done])
    told = [str(line) for line in view.story(record)]
    assert [line for line in told if "lost" in line] == [
        "  lost: 50 s of training after its last checkpoint, 0.1000 USD",
        "  lost: 50 s of training after its last checkpoint, ~0.0500 USD",
    ]
    assert "  interrupted 2 times: SageMaker started it again" in told
    assert "model: empty, the script wrote nothing to SM_MODEL_DIR: s3://a/model.tar.gz" in view.results(record)
    assert [each["lost_usd"] for each in view.as_json(record)["attempts"]] == [0.1, 0.05, pytest.approx(0.0008), None]


def attempt(**changes: Any) -> AttemptRecord:
    own: dict[str, Any] = {
        "index": 0,
        "name": "main",
        "instance_type": "ml.g5.12xlarge",
        "training_job": "tune-261121-120000-0",
        "status": "Completed",
        "outcome": "completed",
        "billable_seconds": 3600,
        "host_peak_gib": 6.0,
        "gpu_peak_gib": 12.0,
        "code": "0123456789abcdef",
        "hyperparameters": {"b": "2", "a": "1"},
        "output": OUTPUT,
    }
    return AttemptRecord(**own | changes)


def test_a_record_holds_what_the_planner_needs(bucket: Any) -> None:
    four = [REPORT["gpus"][0] | {"index": n} for n in range(4)]
    put(bucket, "output.tar.gz", archive(sagefit=REPORT | {"gpus": four}))
    assert record_of(attempt(), "aws", reports.read(OUTPUT)) == Record(
        training_job="tune-261121-120000-0",
        outcome="completed",
        cloud="aws",
        instance_type="ml.g5.12xlarge",
        instance_count=1,
        gpus_per_host=4,
        gpu="A10G",
        code="0123456789abcdef",
        hyperparameters={"a": "1", "b": "2"},
        gpu_gib=11.0,
        host_gib=6.0,
    )


def test_a_gpu_instance_without_its_gpus_measured_nothing(bucket: Any) -> None:
    put(bucket, "output.tar.gz", archive(sagefit=REPORT | {"gpus": []}))
    assert record_of(attempt(), "local", reports.read(OUTPUT)) is None


def test_the_log_will_do_for_a_host_without_a_report(bucket: Any) -> None:  # noqa: ARG001
    found = record_of(attempt(instance_type="ml.m5.large"), "aws", reports.read(OUTPUT))
    assert found
    assert (found.host_gib, found.gpu_gib) == (6.0, None)


def story() -> RunRecord:
    died = diagnose("AlgorithmError: sagefit: gpu_memory: CUDA out of memory. Tried to allocate 2.00 GiB, exit code: 1")
    stopped = diagnose("InternalServerError: We encountered an internal error. Please try again.")
    attempts = [
        attempt(outcome="internal", diagnosis=stopped, spot=True, usd=None, estimated_usd=1.25, gpu_peak_gib=None),
        attempt(outcome="gpu_memory", diagnosis=died, usd=None, training_job="tune-261121-120000-0b"),
        attempt(
            index=1,
            name="accumulate-2",
            usd=5.5,
            training_job="tune-261121-120000-1",
            host_limit_gib=189.2,
            gpu_limit_gib=22.49,
        ),
    ]
    ended = datetime(2026, 11, 21, 15, tzinfo=timezone.utc)
    return RunRecord(RUN, "SUCCEEDED", ended - timedelta(hours=3), ended, _linked(attempts))


def printed(width: int) -> str:
    """The ledger as a terminal of ``width`` columns shows it."""
    file = io.StringIO()
    console, record = Console(width=width, file=file, highlight=False), story()
    console.print(view.totals(record))
    console.print(view.ledger(record))
    for line in view.story(record):
        console.print(line)
    assert max(map(len, file.getvalue().splitlines())) <= width
    return " ".join(file.getvalue().split())


@pytest.mark.parametrize("width", [80, 100])
def test_the_ledger_tells_the_story(width: int) -> None:
    text = printed(width)
    assert "0 main: the first attempt internal: InternalServerError" in text
    assert "next: tried again 0 main: internal of main gpu_memory: CUDA out of memory." in text
    assert "next: on to accumulate-2 1 accumulate-2: gpu_memory of main" in text
    assert "~6.7500 USD (~ is by estimated prices) and attempts without a known price" in text


def test_the_ledger_has_a_line_for_each_attempt() -> None:
    text = printed(100)
    assert "0 main ml.g5.12xlarge spot internal - 6.00 1 h ~1.2500" in text
    assert "0 main ml.g5.12xlarge gpu_memory 12.00 6.00 1 h no price" in text
    assert "1 accumulate-2 ml.g5.12xlarge completed 12.00 of 22.49 6.00 of 189 1 h 5.5000" in text


def test_what_a_failed_run_ends_with_says_what_to_do() -> None:
    died = diagnose("ClientError: Please use an instance type with more memory, or reduce the size of job data.")
    (last,) = _linked([attempt(outcome="host_memory", diagnosis=died)])
    assert last.diagnosis
    assert last.next_step == last.diagnosis.remedies[0]


LOST = "AlgorithmError: sagefit: code: train.py ended with exit code 1: ncclRemoteError, exit code: 1"
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


def test_a_launcher_speaks_for_its_own_host_only() -> None:
    """Of several hosts one may have run out of memory, and SageMaker tells what another one said."""
    concluded = "sagefit: code: train.py ended with exit code 1: ncclRemoteError"
    assert decided(LOST) is None  # nothing shows that the code is wrong: what the recorder saw has a say
    assert decided(LOST.replace("ncclRemoteError", "KeyError: 'x'"))
    assert decided(LOST.replace("ncclRemoteError", "KeyError: 'x'"), hosts=2) is None
    assert decided(LOST.replace("code", "disk", 1), hosts=2)
    two = {"algo-1": ["Traceback (most recent call last):", "ncclRemoteError", concluded], "algo-2": ["step 3", FULL]}
    assert diagnose(LOST, log=two).failure_class == "gpu_memory"
    assert diagnose(LOST, log=[FULL]).failure_class == "code"
    found = diagnose(LOST, log={**two, "algo-2": ["step 3"]}, utilisation={"gpu_memory": 99})
    assert (found.failure_class, found.evidence) == ("code", "train.py ended with exit code 1: ncclRemoteError")


def test_a_run_goes_on_by_what_it_took_a_failure_for() -> None:
    """The state machine reads the reason alone: the log came later, and to other eyes."""
    reason = "AlgorithmError: , exit code: 1"
    died = attempt(outcome="gpu_memory", diagnosis=diagnose(reason, log=[FULL]), failure_reason=reason)
    first, second = _linked([_routed(died, note("code")), attempt(index=1, name="larger")])
    assert (first.outcome, first.routed_by, second.started_by) == ("gpu_memory", "code", "code of main")
    assert _routed(died, note("gpu_memory")).routed_by == ""
    assert _routed(died, note("code", training_job="tune-261121-120000-0b")) is died
    record = RunRecord(RUN, "FAILED", datetime.now(timezone.utc), None, [first], error="Sagefit.code")
    assert view.results(record) == [f"failed: Sagefit.code, which was gpu_memory: {FULL}"]


@pytest.mark.parametrize(("cause", "told"), [("not so named", ": not so named"), ("{}", ""), ("", "")])
def test_a_run_that_started_nothing_says_what_step_functions_says(cause: str, told: str) -> None:
    record = RunRecord(RUN, "FAILED", datetime.now(timezone.utc), None, [], error="Sagefit.name", cause=cause)
    assert view.results(record) == [f"failed: Sagefit.name{told}"]


def note(failure: str, training_job: str = "tune-261121-120000-0") -> dict[str, Any]:
    """What a state machine notes of a failure."""
    return {"class": failure, "training_job": training_job}


def test_an_attempt_is_looked_at_once_more_after_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last lines of a log can come late; after that a watch knows the attempt and asks for nothing."""
    ended = RunRecord(RUN, "RUNNING", datetime.now(timezone.utc), None, [attempt(outcome="code")])
    asked: list[set[str]] = []

    def read(run: Run, *, known: dict[str, AttemptRecord], **_: object) -> RunRecord:  # noqa: ARG001
        asked.append(set(known))
        return ended

    monkeypatch.setattr(following, "read_run", read)
    reader = following._Reader(RUN, Target("aws", tmp_path), logs=False)
    for _ in range(3):
        reader.read()
    assert asked == [set(), set(), {"tune-261121-120000-0"}]


def test_a_watch_says_once_what_became_of_a_repeated_attempt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    lost = attempt(outcome="internal", diagnosis=diagnose("InternalServerError: no"))
    again = attempt(outcome="", status="Training", training_job="tune-261121-120000-0b")
    now = datetime.now(timezone.utc)
    records = [RunRecord(RUN, status, now, None, [lost, again]) for status in ("RUNNING", "RUNNING", "SUCCEEDED")]
    reader: Any = SimpleNamespace(read=lambda: records.pop(0))
    following._lines(reader, 0)
    assert capsys.readouterr().err.splitlines() == [
        "attempt 0 main on ml.g5.12xlarge: internal: InternalServerError: no",
        "attempt 0 main again on ml.g5.12xlarge: Training",
    ]


def test_throttling_has_remedies_of_its_own() -> None:
    error = "SageMaker.ThrottlingException: Rate exceeded (Service: SageMaker, Status Code: 400)"
    throttled = diagnose(create_error=error)
    assert (throttled.failure_class, throttled.remedies) == ("internal", REMEDIES_OF_PATTERN["*Throttling*"])
    assert diagnose(create_error="SageMaker.InternalFailure: x").remedies == REMEDIES["internal"]
    meant = {f"words: {words}" for _, _, words in vocabulary._OTHERS}
    assert REMEDIES_OF_PATTERN.keys() <= {row.glob for row in table()} | meant


def test_predictions_are_of_what_ran() -> None:
    job = auto_job()
    ran = {"per_device_train_batch_size": "32", "gradient_accumulation_steps": "1"}
    half = ran | {"per_device_train_batch_size": "16"}
    record = RunRecord(
        RUN,
        "SUCCEEDED",
        datetime.now(timezone.utc),
        None,
        [
            attempt(instance_type="ml.g5.xlarge", hyperparameters=ran),
            attempt(instance_type="ml.g5.xlarge", hyperparameters=half),
            attempt(instance_type="ml.unknown.large", hyperparameters=half),
            attempt(instance_type="ml.g5.xlarge", hyperparameters={"dataloader_num_workers": "many"}),
        ],
    )
    first, second, unknown, unreadable = expected(record, JobPlan(job)).attempts
    assert first.predicted_gpu_gib
    assert second.predicted_gpu_gib
    assert first.predicted_gpu_gib > second.predicted_gpu_gib
    assert first.predicted_host_gib
    assert unknown.predicted_host_gib is unreadable.predicted_host_gib is None
    assert expected(record, None) is record
    assert expected(record, JobPlan(auto_job({"memory": None}))) is record
    assert any(
        "predicted by the job file as it is now: GPU " in str(line)
        for line in view.story(expected(record, JobPlan(job)))
    )


def test_the_json_has_what_the_ledger_shows() -> None:
    (first, *_) = view.as_json(story())["attempts"]
    assert json.loads(json.dumps(first)) == first
    assert (first["started_by"], first["next_step"]) == ("the first attempt", "tried again")
    assert (first["usd"], first["estimated_usd"]) == (None, 1.25)
    assert first.keys() >= {"gpu_peak_gib", "predicted_gpu_gib", "predicted_host_gib", "diagnosis", "evidence"}


def test_a_repeated_attempt_keeps_its_index() -> None:
    assert [attempt_index(f"tune-261121-120000-{name}") for name in ("0", "0b", "12c")] == [0, 0, 12]
