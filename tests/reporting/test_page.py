"""The page: one well-formed file that says everything, escapes what is a stranger's, and asks nobody."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reporting.stories import LACK, attempt, step, story, told
from sagefit.errors import SagefitError
from sagefit.failures import Excerpt
from sagefit.reporting import page_of_job, page_of_run, write
from sagefit.reporting.gathering import Chapter, Story

FAILED = attempt(outcome="gpu_memory", lost_seconds=12.0, gpu_peak_gib=21.9, started_by="the first attempt")
RECOVERED = story(step(), FAILED, attempt(1, begin=70, metrics={"loss": 0.5}, model="s3://a/model.tar.gz"))
ENDED = story(FAILED, status="FAILED")
GOING = story(attempt(outcome="", status="Training", ended=None), status="RUNNING")
REFUSED = story(attempt(outcome="quota", created=None, ended=None, training_job="", usd=None), status="FAILED")
KINDS = {"recovered": RECOVERED, "ended": ENDED, "going": GOING, "refused": REFUSED, "empty": story(status="RUNNING")}


def parsed(page: str) -> ElementTree.Element:
    """The page as XML, which is stricter than HTML: every tag is closed, every text is escaped."""
    return ElementTree.fromstring(page)


def text_of(page: str) -> str:
    return " ".join(" ".join(parsed(page).itertext()).split()).replace(" :", ":")


def pages(name: str) -> list[str]:
    return [page_of_run(KINDS[name], "aws"), page_of_job("job", [KINDS[name]], "local")]


@pytest.mark.parametrize("name", KINDS)
def test_a_page_needs_nothing_but_itself(name: str) -> None:
    for page in pages(name):
        root = parsed(page)
        tags = {element.tag for element in root.iter()}
        assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "image", "use"}
        named = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(named) == len(set(named))
        links = [element.get("href", "") for element in root.iter() if element.tag == "a"]
        assert all(link[0] == "#" and link[1:] in named for link in links)
        for element in root.iter():
            assert not [key for key in element.attrib if key == "style" or key.startswith("on")]
        assert "http" not in re.sub(r"http-equiv", "", page)
        style = root.findtext("head/style") or ""
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = next(meta.get("content", "") for meta in root.iter("meta") if meta.get("http-equiv"))
        assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
        assert "url(" not in style
        assert "@import" not in style


def test_every_class_has_a_style() -> None:
    style = parsed(page_of_run(RECOVERED, "aws")).findtext("head/style") or ""
    for name in KINDS:
        for page in pages(name):
            used = {each for element in parsed(page).iter() for each in (element.get("class") or "").split()}
            assert [each for each in sorted(used - {"start"}) if f".{each}" not in style] == []


def test_a_run_that_went_on_is_told() -> None:
    page = text_of(page_of_run(RECOVERED, "aws"))
    for words in (
        "job-261121-120000 succeeded",
        "platform dev in us-east-1",
        "metrics: loss=0.5",
        "model: s3://a/model.tar.gz",
        "0 try-0: gpu_memory on ml.g5.xlarge",
        f"Cause: {LACK} (confidence B, seen in public reports)",
        "algo-1, rank 0, line 9:",
        "8 | step 7/500",
        "Reached: step 7 of 500",
        "Saved: checkpoint-4/state.json",
        "Lost: 12 s of training after its last checkpoint, 0.0047 USD",
        "p0 processing prepare-0: completed on ml.m5.large",
        "GPU memory of algo-1 over 30 s: up to 21.90 of 22.00 GiB",
        "21.90",
    ):
        assert words in page
    assert "What helps in general" not in page  # it went on by itself
    assert "To see it on a terminal" not in page


def test_a_run_that_failed_says_what_to_change() -> None:
    page = text_of(page_of_run(ENDED, "aws"))
    assert "Change 1: Micro-batch 4 instead of 16 fits: at most 18 of 22 GiB" in page
    assert "hyperparameters: - batch: 16 + batch: 4" in page
    assert "@@" not in page
    assert "Apply it: sagefit diagnose job-261121-120000 --apply 1" in page
    assert "What helps in general halve hyperparameters" in page
    assert "To see it on a terminal: sagefit diagnose job-261121-120000" in page
    assert "<code>sagefit size JOB</code>" in page_of_run(ENDED, "aws")


def test_a_run_that_goes_on_or_began_nothing_has_a_page() -> None:
    assert "0 try-0: Training on ml.g5.xlarge" in text_of(page_of_run(GOING, "aws"))
    assert "Nothing was begun yet." in text_of(page_of_run(KINDS["empty"], "aws"))
    assert "quota: refused, so nothing ran" in text_of(page_of_run(REFUSED, "aws"))
    assert "there never was a training job" in text_of(page_of_run(REFUSED, "aws"))


def test_the_page_of_a_job_has_its_runs_the_newest_open() -> None:
    older = story(attempt(), name="job-261120-120000")
    root = parsed(page_of_job("job", [RECOVERED, older], "aws"))
    assert [(run.get("id"), run.get("open")) for run in root.iter("details")] == [
        ("at-job-261121-120000", ""),
        ("at-job-261120-120000", None),
    ]
    assert "price in USD of each run" in text_of(page_of_job("job", [RECOVERED, older], "aws"))
    assert "billed time of each run" in text_of(page_of_job("job", [story(attempt(usd=None))], "aws"))


def test_a_column_of_gpus_only_where_there_are_any() -> None:
    assert "GPU GiB" in page_of_run(RECOVERED, "aws")
    assert "GPU GiB" not in page_of_run(GOING, "aws")


def test_what_is_not_known_is_said() -> None:
    assert "The job file was not here" in text_of(page_of_run(replace(ENDED, has_file=False), "aws"))
    assert "on the embedded cloud" in text_of(page_of_run(ENDED, "local"))
    assert "on the embedded cloud" not in text_of(page_of_run(ENDED, "aws"))
    saving = replace(RECOVERED, saving="ml.c7i.large would hold it")
    assert "cheaper: ml.c7i.large would hold it" in text_of(page_of_run(saving, "aws"))


def with_log(*lines: str) -> Story:
    found = told(FAILED, around=Excerpt("algo-1", "", 1, lines, 0), reached=lines[0])
    return replace(ENDED, chapters=(Chapter(FAILED, found, ()),))


def test_a_log_cannot_write_the_page() -> None:
    bad = "</pre><script>alert(1)</script>\"'&<!-- {{ 7 * 7 }}"
    page = page_of_run(with_log(bad), "aws")
    assert "script" not in {element.tag for element in parsed(page).iter()}
    assert f"1 | {bad}" in "".join(parsed(page).itertext())


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("login with hf_" + "Aa1" * 12, "login with (secret)"),
        ("aws AKIA" + "ABCDEFGH" * 2 + " used", "aws (secret) used"),
        ('{"api_key": "0123456789abcdef"}', '{"api_key": "(secret)"}'),
        ("WANDB_API_KEY=0123456789abcdef0123", "WANDB_API_KEY=(secret)"),
        ("max_tokens=1234567890", "max_tokens=1234567890"),
        ("loss: 0.123456789012", "loss: 0.123456789012"),
        ("model_id: meta-llama/Llama-3.1-8B", "model_id: meta-llama/Llama-3.1-8B"),
    ],
)
def test_credentials_of_a_log_are_not_handed_on(line: str, shown: str) -> None:
    page = "".join(parsed(page_of_run(with_log(line), "aws")).itertext())
    assert f"1 | {shown}\n" in page
    assert f"Reached: {shown}" in page


def test_only_a_report_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "run.html"
    write(page_of_run(GOING, "aws"), path)
    write(page_of_run(ENDED, "aws"), path)
    assert path.read_text(encoding="utf-8") == page_of_run(ENDED, "aws")
    mine = tmp_path / "mine.html"
    mine.write_text("<html>mine</html>", encoding="utf-8")
    for other in (mine, tmp_path):
        with pytest.raises(SagefitError) as refused:
            write("page", other)
        assert str(other) in refused.value.message
        assert "--out" in str(refused.value.hint)
    assert mine.read_text(encoding="utf-8") == "<html>mine</html>"


def test_a_browser_shows_it(browser: list[str], tmp_path: Path) -> None:
    """No complaint of a real browser; and it would complain, had the style another digest than the page says."""
    page = page_of_job("job", [RECOVERED, ENDED], "aws")
    complaints = {}
    for name, text in {"page": page, "changed": page.replace("<style>", "<style> ")}.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        command = [*browser, "--enable-logging=stderr", "--dump-dom", (tmp_path / f"{name}.html").as_uri()]
        seen = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert "try-0" in seen.stdout
        complaints[name] = [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
    assert complaints["page"] == []
    assert "Content Security Policy" in "".join(complaints["changed"])
