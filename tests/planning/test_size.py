"""``sagefit size``: what it answers, in which form, with which exit code."""

from __future__ import annotations

import io
import json
import multiprocessing
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from rich.console import Console
from rich.text import Text

from cli_runner import Done, Sagefit
from job_files import AUTO, auto_job, write_job
from planning.test_attempts import HUGE, jobs
from sagefit import signals
from sagefit.catalog import instances, price
from sagefit.errors import DOES_NOT_FIT, DONE, INVALID
from sagefit.job import Job
from sagefit.paths import ROOT
from sagefit.planning import JobPlan
from sagefit.size import as_json, size_job, view
from sagefit.size.view import ROWS, around, page

REGION = "us-east-1"
NUMBER = {"type": "number", "minimum": 0}
BESIDE = r"and 0\.\d\d GiB that a process may hold beside its tensors"
DETECTION = rf"1\.26 x the prediction {BESIDE}, from \d+ measured runs of \d+ models by 3 sources \(detection\)"
OPTIONAL = {"type": ["number", "null"], "minimum": 0}
ESTIMATE = {
    "type": ["object", "null"],
    "required": ["point", "upper", "parts"],
    "properties": {
        "point": NUMBER,
        "upper": NUMBER,
        "parts": {"type": "object", "additionalProperties": NUMBER},
    },
}
CANDIDATE = {
    "type": "object",
    "required": [
        "instance_type",
        "instance_count",
        "usable_gpu_gib",
        "usable_host_gib",
        "fits",
        "gpu_share",
        "host_share",
        "usd_per_hour",
        "price_source",
    ],
    "properties": {
        "instance_type": {"type": "string", "pattern": r"^ml\."},
        "instance_count": {"type": "integer", "minimum": 1},
        "usable_gpu_gib": OPTIONAL,
        "usable_host_gib": NUMBER,
        "fits": {"type": "boolean"},
        "gpu_share": OPTIONAL,
        "host_share": OPTIONAL,
        "usd_per_hour": OPTIONAL,
        "price_source": {"type": ["string", "null"]},
        "price_estimated": {"type": "boolean"},
    },
}
WAY = {
    "type": "object",
    "required": ["changes", "keeps_result", "instance_type", "usd_per_hour", "gpu_gib"],
    "properties": {
        "changes": {"type": "object", "minProperties": 1},
        "keeps_result": {"type": "boolean"},
        "instance_type": {"type": "string", "pattern": r"^ml\."},
        "usd_per_hour": NUMBER,
        "gpu_gib": OPTIONAL,
    },
}
CONTRACT = {
    "type": "object",
    "required": [
        "job",
        "gpu_gib",
        "host_gib",
        "candidates",
        "chosen",
        "attempts",
        "worst_case_usd",
        "assumptions",
        "cheaper",
    ],
    "properties": {
        "job": {"type": "string"},
        "gpu_gib": ESTIMATE,
        "host_gib": ESTIMATE,
        "candidates": {"type": "array", "items": CANDIDATE},
        "chosen": {"type": ["string", "null"]},
        "attempts": {"type": "array", "items": {"type": "object", "required": ["name", "instance_type", "next"]}},
        "worst_case_usd": OPTIONAL,
        "assumptions": {"type": "array", "items": {"type": "string"}},
        "cheaper": {"type": "array", "items": WAY},
    },
}
check: Any = jsonschema.validate


@pytest.fixture
def sagefit(tmp_path: Path) -> Sagefit:
    return Sagefit(tmp_path / "home")


def auto(folder: Path, changes: dict[str, Any] | None = None, *, file: str = "tune.yaml") -> Path:
    return write_job(folder, {"name": None, **(changes or {})}, file=file, job=AUTO)


def objects(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_the_json_keeps_its_contract_and_nothing_is_chosen_that_does_not_fit(job: Job) -> None:
    sizing = size_job(JobPlan(job), REGION)
    answer = as_json(sizing)
    check(json.loads(json.dumps(answer)), CONTRACT)
    for need in (answer["gpu_gib"], answer["host_gib"]):
        if need:
            assert need["upper"] >= need["point"]
            assert sum(need["parts"].values()) == pytest.approx(need["point"], abs=1e-4)
    fitting = [c for c in answer["candidates"] if c["fits"]]
    assert (answer["chosen"] is None) == (not fitting)
    assert sizing.exit_code == (DOES_NOT_FIT if answer["verdict"] in ("RISKY", "OOM") else DONE)
    if answer["chosen"]:
        (chosen,) = [
            c
            for c in fitting
            if (c["instance_type"], c["instance_count"]) == (answer["chosen"], answer["chosen_instance_count"])
        ]
        assert chosen["usd_per_hour"] == min(c["usd_per_hour"] for c in fitting if c["usd_per_hour"] is not None)
        for share in (chosen["gpu_share"], chosen["host_share"]):
            assert share is None or share <= 1 - answer["head_room"]
        assert answer["attempts"][0]["instance_type"] == answer["chosen"]
        assert answer["verdict"] == "FITS"
    elif answer["verdict"] != "UNKNOWN":
        assert not answer["attempts"]


def test_a_job_without_gpus_has_no_gpu_need() -> None:
    job = auto_job({"memory.model": {"family": "measured", "host_gib": 20}})
    answer = as_json(size_job(JobPlan(job), REGION))
    assert answer["gpu_gib"] is None
    assert answer["host_gib"]["point"] == 20
    assert not instances()[answer["chosen"]].gpu_count


def test_prices_are_those_of_the_region_and_the_choice_is_the_same() -> None:
    here, there = (size_job(JobPlan(auto_job()), region) for region in (REGION, "eu-west-1"))
    assert here.chosen
    assert there.chosen
    assert there.chosen.instance_type == here.chosen.instance_type
    assert there.chosen.price == price(here.chosen.instance_type, "eu-west-1")
    assert here.chosen.price != there.chosen.price


def test_written_attempts_choose_the_first_that_fits() -> None:
    written = [
        {"name": "small", "instance_type": "ml.g4dn.xlarge", "next": {"gpu_memory": "large"}},
        {"name": "large", "instance_type": "ml.g6e.xlarge"},
    ]
    sizing = size_job(JobPlan(auto_job({"attempts": written, "memory.sequence_length": 256})), REGION)
    assert [attempt.fit.verdict for attempt in sizing.attempts if attempt.fit] == ["OOM", "FITS"]
    assert sizing.chosen
    assert sizing.chosen.instance_type == "ml.g6e.xlarge"
    assert sizing.exit_code == DONE


def test_the_rows_shown_are_those_around_the_choice() -> None:
    sizing = size_job(JobPlan(auto_job()), REGION)
    rows = around(sizing.candidates, sizing.chosen)
    assert len(rows) == ROWS
    assert any(row is sizing.chosen for row in rows)
    assert [row.order_usd for row in rows] == sorted(row.order_usd for row in rows)
    assert around(sizing.candidates[:3], sizing.candidates[2]) == sizing.candidates[:3]
    assert around([], None) == []


def test_many_jobs_are_one_line_each_in_order(tmp_path: Path, sagefit: Sagefit) -> None:
    good = auto(tmp_path)
    broken = write_job(tmp_path, {"name": None, "colour": "red"}, file="broken.yaml")
    huge = auto(tmp_path, HUGE, file="huge.yaml")
    done = sagefit("size", "--json", good, broken, tmp_path / "missing.yaml", huge, check=DOES_NOT_FIT)
    first, second, third, fourth = objects(done)
    check(first, CONTRACT)
    assert first["job"] == "tune"
    assert second.keys() == third.keys() == {"job", "error"}
    assert "colour: unknown key" in second["error"]
    assert (second["job"], third["job"]) == ("broken", "missing")
    assert "no job file" in third["error"]
    assert (fourth["job"], fourth["chosen"]) == ("huge", None)
    assert fourth["remedies"]
    assert sagefit("size", "--json", broken, good, check=INVALID).err == ""


def test_a_worker_of_a_pool_is_ended_and_not_interrupted() -> None:
    """An exception in it could come while it holds a lock, and the pool would wait for ever."""
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    try:
        signals.listen()
        with multiprocessing.get_context("fork").Pool(1, signals.leave_to_parent) as pool:
            found = pool.map(signal.getsignal, signals.ENDING)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert dict(zip(signals.ENDING, found, strict=True)) == {
        signal.SIGINT: signal.SIG_IGN,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_IGN if before[signal.SIGHUP] is signal.SIG_IGN else signal.SIG_DFL,
    }


def test_so_many_jobs_that_processes_share_them_come_in_order_too(tmp_path: Path, sagefit: Sagefit) -> None:
    files = [auto(tmp_path, file=f"job{number:03}.yaml") for number in range(60)]
    found = objects(sagefit("size", "--json", *files))
    assert [answer["job"] for answer in found] == [file.stem for file in files]


def test_the_page_for_people_is_plain_when_it_is_piped(tmp_path: Path, sagefit: Sagefit) -> None:
    done = sagefit("size", auto(tmp_path), NO_COLOR="", COLUMNS="")
    assert "\x1b" not in done.out + done.err
    for said in (
        "tune: FITS on ml.",
        "read: ",
        "each GPU",
        "each host",
        "chosen",
        "accumulate-2",
        "a run costs at most",
    ):
        assert said in done.out
    assert "prices are those of us-east-1" in done.err
    refused = sagefit("size", auto(tmp_path, {"platform": None}, file="refused.yaml"), check=INVALID)
    assert "platform: is required" in refused.err
    assert "prices" not in refused.out + refused.err + sagefit("size", "--region", "eu-west-1", auto(tmp_path)).err
    every = sagefit("size", "--all", auto(tmp_path)).out
    assert len(every.splitlines()) > len(done.out.splitlines()) + 20


def test_the_page_needs_no_unicode(tmp_path: Path, sagefit: Sagefit) -> None:
    assert "each GPU" in sagefit("size", auto(tmp_path), PYTHONIOENCODING="ascii", PYTHONUTF8="0").out


def test_the_page_of_a_job_that_fits_nowhere_says_what_would_help(tmp_path: Path, sagefit: Sagefit) -> None:
    file = auto(tmp_path, {"resources.instance_type": "ml.g5.xlarge", "memory.sequence_length": 512})
    done = sagefit("size", file, check=DOES_NOT_FIT)
    assert "what would make it fit:" in done.out
    assert "GiB less per GPU" in done.out
    refused = sagefit("render", file, check=DOES_NOT_FIT)
    assert "what would make it fit:" in refused.err
    assert not list(tmp_path.glob("*.tfvars"))


def test_a_job_that_says_nothing_of_its_memory_is_shown_without_a_prediction(sagefit: Sagefit) -> None:
    assert "memory.model does not say what is trained" in sagefit("size", "quickstart").out
    (answer,) = objects(sagefit("size", "--json", "quickstart"))
    check(answer, CONTRACT)
    assert answer["gpu_gib"] is answer["host_gib"] is answer["chosen"] is None
    assert [attempt["name"] for attempt in answer["attempts"]] == ["in-memory", "streaming", "larger"]


def test_the_region_comes_from_the_option_or_the_shell(tmp_path: Path, sagefit: Sagefit) -> None:
    file = auto(tmp_path)

    def region(*options: str, **environment: Any) -> str:
        (answer,) = objects(sagefit("size", "--json", *options, file, **environment))
        return str(answer["region"])

    assert region() == REGION
    assert region(AWS_DEFAULT_REGION="eu-west-1") == "eu-west-1"
    assert region(AWS_DEFAULT_REGION="eu-west-1", AWS_REGION="us-west-2") == "us-west-2"
    assert region("--region", "us-east-2", AWS_REGION="us-west-2") == "us-east-2"


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path, sagefit: Sagefit) -> None:
    files = [str(auto(tmp_path, file=f"job{number}.yaml")) for number in range(8)]
    for option in ([], ["--json"]):
        with subprocess.Popen(
            [sys.executable, "-m", "sagefit", "size", *option, *files],
            cwd=ROOT,
            env=sagefit.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.readline()
            process.stdout.close()
            assert b"Traceback" not in process.stderr.read()
        assert process.returncode == DONE


@pytest.mark.parametrize("option", ["", "--json"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_failure(tmp_path: Path, sagefit: Sagefit, option: str, closed: str) -> None:
    command = f'"{sys.executable}" -m sagefit size {option} "{auto(tmp_path)}" {closed}'
    done = subprocess.run(command, shell=True, cwd=ROOT, env=sagefit.environment, capture_output=True, check=False)
    assert done.returncode == DONE
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["boto3", "botocore", "moto", "jinja2", "psutil"])
def test_nothing_heavy_is_loaded(tmp_path: Path, sagefit: Sagefit, module: str) -> None:
    code = f"import sys; from sagefit.cli import size; size._line({str(auto(tmp_path))!r}, 'us-east-1'); "
    done = subprocess.run(
        [sys.executable, "-c", code + f"sys.exit({module!r} in sys.modules)"], env=sagefit.environment, check=False
    )
    assert done.returncode == 0


def test_a_job_over_its_max_price_is_told_so_in_the_first_line(tmp_path: Path, sagefit: Sagefit) -> None:
    headline, *rest = sagefit("size", auto(tmp_path, {"max_price": 0.5})).out.splitlines()
    assert "over max_price, 0.50" in headline
    assert any("over max_price" in line for line in rest)


def text(job: Job, region: str = REGION, width: int = 200, monkeypatch: pytest.MonkeyPatch | None = None) -> str:
    """The page as a terminal of ``width`` columns shows it."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    if monkeypatch:
        monkeypatch.setattr(view, "out", console)
    with console.capture() as written:
        for part in page(size_job(JobPlan(job), region)):
            console.print(part, soft_wrap=isinstance(part, Text))
    return written.get()


SPOT = {"resources.spot": True, "resources.max_wait": "8h"}


def test_spot_is_shown_as_a_range_and_counted_in_full() -> None:
    job = auto_job(SPOT)
    sizing = size_job(JobPlan(job), REGION)
    answer = as_json(sizing)
    assert sizing.chosen
    assert sizing.chosen.spot_usd_per_hour
    least, usual, most = sizing.chosen.spot_usd_per_hour
    shown = f"{least:.2f} to {most:.2f} USD an hour on spot, {usual:.2f} expected"
    headline, *rest = text(job).splitlines()
    assert shown in headline
    assert any(shown in line for line in rest)
    assert any("spot at the full price" in line for line in rest)
    assert answer["attempts"][0]["spot_usd_per_hour"] == pytest.approx([least, usual, most], abs=1e-3)
    assert answer["attempts"][1]["spot_usd_per_hour"] is None
    assert answer["candidates"][0]["spot_usd_per_hour"][2] == pytest.approx(answer["candidates"][0]["usd_per_hour"] / 2)
    on_demand = as_json(size_job(JobPlan(auto_job()), REGION))["worst_case_usd"]
    assert answer["worst_case_usd"] == pytest.approx(on_demand + answer["attempts"][0]["worst_case_usd"], abs=1e-3)


@pytest.mark.parametrize(("changes", "usage"), [(SPOT, "spot training"), ({}, "training")])
def test_the_quota_and_flags_of_the_choice_are_named(changes: dict[str, Any], usage: str) -> None:
    answer = as_json(size_job(JobPlan(auto_job(changes)), REGION))
    assert answer["chosen_quota"] == {"name": f"{answer['chosen']} for {usage} job usage", "instances": 1}
    assert answer["chosen_flags"] == []
    assert f"check the quota {answer['chosen_quota']['name']}" in text(auto_job(changes))
    plan = auto_job({"resources.instance_type": "ml.p5en.48xlarge", "memory.world_size": 8})
    assert as_json(size_job(JobPlan(plan), REGION))["chosen_flags"] == ["sold mostly through Training Plans"]
    assert "; sold mostly through Training Plans" in text(plan)


def test_a_job_that_accepts_its_risk_is_sized_like_one_that_fits() -> None:
    changes = {"resources.instance_type": ["ml.g5.xlarge"], "memory.accept_risky": True}
    lengths = (auto_job(changes | {"memory.sequence_length": length}) for length in range(64, 512, 4))
    job = next(job for job in lengths if size_job(JobPlan(job), REGION).verdict == "RISKY")
    sizing = size_job(JobPlan(job), REGION)
    answer = as_json(sizing)
    check(json.loads(json.dumps(answer)), CONTRACT)
    assert (sizing.exit_code, answer["chosen"], answer["verdict"]) == (DONE, "ml.g5.xlarge", "RISKY")
    assert answer["attempts"][0]["name"] == "main"
    assert not answer["candidates"][0]["fits"]
    shown = text(job)
    assert shown.splitlines()[0].startswith(f"{job.name}: RISKY on ml.g5.xlarge")
    assert "what would make it fit:" in shown


def test_world_size_is_shown_and_held_against_the_gpus() -> None:
    sharded = {"memory.world_size": 64, "memory.sharding": "zero3"}
    few = auto_job(sharded | {"resources.instance_type": "ml.g6.4xlarge"})
    sizing = size_job(JobPlan(few), REGION)
    answer = as_json(sizing)
    assert (sizing.exit_code, answer["chosen"], answer["candidates"][0]["fits"]) == (DOES_NOT_FIT, None, False)
    assert answer["candidates"][0]["reason"] == "world_size 64 needs 64 GPUs, 1 x ml.g6.4xlarge has 1"
    assert "world_size 64 needs 64 GPUs" in text(few).splitlines()[0]
    enough = auto_job(sharded)
    assert ", world size 64" in text(enough)
    chosen = size_job(JobPlan(enough), REGION).chosen
    assert chosen
    assert chosen.placement.gpus >= 64
    idle = auto_job({"memory.world_size": 2, "resources.instance_type": "ml.g6.12xlarge"})
    assert "world_size 2 of 4 GPUs: the others stay idle" in size_job(JobPlan(idle), REGION).assumptions
    none = size_job(JobPlan(auto_job({"memory.world_size": 100_000})), REGION)
    assert (none.exit_code, none.candidates) == (DOES_NOT_FIT, [])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, [("resources.instance_type", "FlashAttention-2"), ("resources.instance_type", "bf16")]),
        ({"memory.attention": "sdpa"}, [("resources.instance_type", "bf16")]),
        ({"memory.precision": "fp16-mixed"}, [("resources.instance_type", "FlashAttention-2")]),
        ({"memory.precision": "fp32", "memory.attention": "sdpa"}, []),
        ({"resources.instance_type": "ml.g5.xlarge"}, []),
        ({"resources.instance_type": "ml.m5.xlarge", "memory.attention": "sdpa"}, []),
        ({"resources.instance_type": "auto"}, []),
        (
            {"resources.instance_type": ["ml.g5.xlarge", "ml.p3.2xlarge"], "memory.attention": "sdpa"},
            [
                ("resources.instance_type.1", "ml.p3.2xlarge is retired"),
                ("resources.instance_type.1", "the V100 of ml.p3.2xlarge only emulates bf16"),
            ],
        ),
        (
            {
                "attempts": [
                    {"name": "old", "instance_type": "ml.g4dn.xlarge", "hyperparameters": {"fp16": True}},
                    {"name": "older", "instance_type": "ml.p3.2xlarge", "hyperparameters": {"bf16": True}},
                    {"name": "new", "instance_type": "ml.g5.xlarge"},
                ],
                "memory.attention": None,
                "memory.precision": None,
            },
            [("attempts.1.instance_type", "retired"), ("attempts.1.instance_type", "bf16")],
        ),
    ],
)
def test_named_gpus_that_lack_what_the_training_asks_for_are_told(
    changes: dict[str, Any], told: list[tuple[str, str]]
) -> None:
    old = {
        "resources.instance_type": "ml.g4dn.xlarge",
        "memory.attention": "flash",
        "memory.precision": "bf16-mixed",
    }
    sizing = size_job(JobPlan(auto_job(old | changes)), REGION)
    assert [".".join(map(str, remark.field)) for remark in sizing.remarks] == [field for field, _ in told]
    assert all(words in remark.message for remark, (_, words) in zip(sizing.remarks, told, strict=True))


def test_of_trainium_it_is_said_that_its_memory_is_not_predicted() -> None:
    headline = text(auto_job({"resources.instance_type": "ml.trn1.2xlarge"})).splitlines()[0]
    assert "memory of Trainium devices is not predicted" in headline
    assert "memory.model" not in headline


def test_a_price_that_is_not_known_is_said_so() -> None:
    assert ", price not known in ap-southeast-3;" in text(auto_job(), "ap-southeast-3").splitlines()[0]


def test_that_nothing_helps_is_said_in_one_line() -> None:
    job = auto_job({"memory.model": {"family": "measured", "gpu_gib": 4000, "host_gib": 10}})
    sizing = size_job(JobPlan(job), REGION)
    assert (sizing.exit_code, sizing.advice) == (DOES_NOT_FIT, [])
    assert "tensor or pipeline parallelism is not planned" in text(job)
    assert as_json(sizing)["nothing_helps"]
    assert as_json(size_job(JobPlan(auto_job()), REGION))["nothing_helps"] is None


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_terminal_is_too_narrow_for_names_and_numbers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = text(auto_job(SPOT), width=width, monkeypatch=monkeypatch)
    sizing = size_job(JobPlan(auto_job(SPOT)), REGION)
    assert "…" not in shown
    words = set(shown.replace("/", " ").split())
    for candidate in around(sizing.candidates, sizing.chosen):
        assert candidate.instance_type in words
        assert candidate.prediction
        assert f"{candidate.prediction.host.upper:.1f}" in words
    for attempt in sizing.attempts:
        assert attempt.name in words
        assert set(attempt.reason.split()) <= words | {attempt.reason.split()[-1]}
    rows = [line for line in shown.splitlines() if line.strip().startswith((">", "ml."))]
    assert max(map(len, rows)) <= width


@pytest.mark.parametrize("region", ["mars-1", "US-EAST-1", ""])
def test_what_is_no_region_is_refused(tmp_path: Path, sagefit: Sagefit, region: str) -> None:
    done = sagefit("size", "--region", region or " ", auto(tmp_path), check=INVALID)
    assert "no name of an AWS region" in done.err


def test_an_auto_job_renders_with_its_predictions_and_the_same_everywhere(tmp_path: Path, sagefit: Sagefit) -> None:
    file = auto(tmp_path)
    text = sagefit("render", "--stdout", file).out
    assert "# FITS: at most " in text
    assert "USD an hour in us-east-1" in text
    assert "# A run costs at most " in text
    refreshed = {
        "schema": 1,
        "region": REGION,
        "date": "2030-01-01",
        "source": "a refresh",
        "prices": {"ml.p5.48xlarge": 0.01},
        "specs": {"ml.p5.48xlarge": {"vcpus": 1, "memory_gib": 1, "nvme_gb": 0, "efa": False}},
    }
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / f"{REGION}.json").write_text(json.dumps(refreshed), encoding="utf-8")
    elsewhere: dict[str, Any] = {"AWS_REGION": "eu-west-1", "SAGEFIT_CATALOG": str(tmp_path / "prices")}
    assert sagefit("catalog", "show", "p5.48xlarge", "--region", REGION, **elsewhere).out.count("0.01") == 1
    assert text == sagefit("render", "--stdout", file, **elsewhere).out


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (
            "{ model: llama-3.1-8b, method: lora, lora_rank: 16, stack: hf-trainer }",
            r"1\.23 x the prediction, from \d+ measured runs of \d+ models by 3 sources \(decoder/lora/hf-trainer\)",
        ),
        (
            "{ model: llama-3.1-8b, method: lora, lora_rank: 16, stack: ms-swift }",
            r"1\.31 x the prediction, from \d+ measured runs of \d+ models by 5 sources \(decoder/lora\); "
            r"decoder/lora/ms-swift alone has \d+ measured runs of \d+ models by 1 source, too few for a bound of its "
            r"own",
        ),
        (
            "{ model: llama-3.1-8b, stack: litgpt }",
            r"1\.29 x the prediction, from 362 measured runs of 24 models by 8 sources \(transformer\); "
            r"of decoder/full/litgpt alone nothing was measured",
        ),
        (
            "{ model: resnet50 }",
            rf"1\.17 x the prediction {BESIDE}; few sources measured this kind: \d+ measured runs of \d+ models by "
            r"2 sources \(vision\)",
        ),
        ("{ model: { family: vision, name: resnet50, task: detection } }", DETECTION),
        ("{ model: fasterrcnn_resnet50_fpn }", DETECTION),
        ("{ model: yolov8n.pt }", DETECTION),
        (
            "{ model: { family: vision, name: convnext_tiny, task: segmentation } }",
            rf"2\.09 x the prediction {BESIDE}; nothing of this kind was measured \(segmentation by backbone\)",
        ),
        (
            "{ model: flux.1-dev, method: lora, lora_rank: 16 }",
            r"1\.17 x the prediction; few sources measured this kind: 75 measured runs of 13 models by 2 sources "
            r"\(diffusion\); diffusion/lora alone has 67 measured runs of 13 models by 2 sources, too few for a bound "
            r"of its own",
        ),
        ("{ model: { family: measured, gpu_gib: 9, host_gib: 12 } }", None),
    ],
)
def test_what_is_behind_the_bound_is_said(memory: str, said: str | None) -> None:
    job = auto_job({"memory": yaml.safe_load(memory), "resources.instance_type": "auto"})
    sizing = size_job(JobPlan(job), REGION)
    parts = [part.plain for part in page(sizing) if isinstance(part, Text)]
    lines = [part.removeprefix("bound: ") for part in parts if part.startswith("bound: ")]
    assert len(lines) == (said is not None)
    assert said is None or re.fullmatch(said, lines[0])
    behind = as_json(sizing)["bound"]
    assert (behind is None) == (said is None)
    assert behind is None or behind["own_runs"] <= behind["runs"]
