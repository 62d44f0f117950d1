"""Runs that died, explained: cause, evidence, what was lost, next command. The page has what is said of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from scenarios.conftest import Cloud
from scenarios.explanations import CASES, FOLDER, PAGE, explained, page, run_of, shape, tidy

pytestmark = pytest.mark.xdist_group("scenarios")

USUAL = ("lora", "pair")
TEST = "tests/scenarios/test_explanations.py::test_a_run_that_died_is_explained"


def rows() -> list[Any]:
    """Two run with every change: a GPU's memory, and a host's of two hosts."""
    full = pytest.mark.full(witness=f"{TEST}[{USUAL[0]}]")
    return [name if name in USUAL else pytest.param(name, marks=full) for name in CASES]


@pytest.fixture(scope="module")
def told(cloud: Cloud, request: pytest.FixtureRequest) -> dict[str, str]:
    """What diagnose says of each case that is asked for."""
    items: list[Any] = request.session.items
    asked = [
        item.callspec.params["name"]
        for item in items
        if getattr(item, "originalname", None) == "test_a_run_that_died_is_explained"
    ]
    return {name: tidy(text, cloud.jobs) for name, text in explained(cloud, asked or list(USUAL)).items()}


def on_the_page() -> dict[str, str]:
    """The explanation of each case on the page."""
    parts = PAGE.read_text(encoding="utf-8").split("```text\n")[1:]
    return dict(zip(CASES, (part.partition("\n```")[0] for part in parts), strict=True))


@pytest.mark.parametrize("name", rows())
def test_a_run_that_died_is_explained(told: dict[str, str], name: str) -> None:
    text, case = told[name], CASES[name]
    assert text.splitlines()[0] == case.failure_class
    assert text.splitlines()[1].startswith("evidence: ")
    assert [words for words in case.words if words not in text] == [], text


def test_the_page_has_what_is_said(told: dict[str, str]) -> None:
    on_page = on_the_page()
    assert PAGE.read_text(encoding="utf-8") == page(on_page)
    for name, text in told.items():
        firm = [line for line in shape(text) if line.startswith(("change ", "try: ", "    ", "not "))]
        assert firm == [line for line in shape(on_page[name]) if line in firm]
    for name, case in CASES.items():
        assert [words for words in case.words if words not in on_page[name]] == []


def test_a_change_is_written_into_the_job_file(told: dict[str, str], cloud: Cloud) -> None:
    assert told["lora"]
    file = cloud.job(f"{FOLDER}/lora")
    before = file.read_text(encoding="utf-8")
    found = json.loads(cloud.sagefit("diagnose", file, "--json").out)
    assert (found["class"], found["reached"], found["saved"]) == (
        "gpu_memory",
        "step 7 of 500",
        "checkpoint-4/state.json",
    )
    assert found["changes"][0]["fits"] is True
    assert found["memory"] is None  # there is no GPU here
    refused = cloud.sagefit("diagnose", file, "--apply", "9", check=2)
    assert "--apply 9: the changes are 1 to " in refused.err
    try:
        done = cloud.sagefit("diagnose", file, "--apply", "1")
        after = file.read_text(encoding="utf-8")
        assert "written. To see it: " in done.err
        assert f"--resume {run_of('lora')}" in done.err
        changed = [line for line in done.out.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        assert changed == [
            "-  per_device_train_batch_size: 16 # as in the paper",
            "-  gradient_accumulation_steps: 1",
            "+  per_device_train_batch_size: 4 # as in the paper",
            "+  gradient_accumulation_steps: 4",
        ]
        given = yaml.safe_load(before)
        given["hyperparameters"] |= {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4}
        assert yaml.safe_load(after) == given
        assert len(after.splitlines()) == len(before.splitlines())
        assert json.loads(cloud.sagefit("size", file, "--json").out)["attempts"][0]["verdict"] == "FITS"
    finally:
        file.write_text(before, encoding="utf-8")


def test_a_report_has_what_diagnose_says(told: dict[str, str], cloud: Cloud, tmp_path: Path) -> None:
    """All lines of the explanation are on the page of the job; the run's own name finds no job file in jobs/."""
    file, page = cloud.job(f"{FOLDER}/lora"), tmp_path / "lora.html"
    done = cloud.sagefit("report", file, "--out", page)
    assert done.out.strip() == str(page)
    assert f"reading {run_of('lora')} (1 of 1)" in done.err
    root = ElementTree.fromstring(page.read_text(encoding="utf-8"))
    shown = tidy("".join(root.itertext()), cloud.jobs)
    for line in told["lora"].splitlines():
        words = re.sub(r"^>?\s*(?:(?:evidence|reached|saved|lost|change \d|apply it|try|confidence): )?", "", line)
        assert words.replace("`", "") in shown, line
    assert [run.get("open") for run in root.iter("details")] == [""]
    assert any(rect.get("class") == "memory lost" for rect in root.iter("rect"))
    piped = cloud.sagefit("report", run_of("lora"), "--out", "-")
    assert "the job file of lora is not here" in piped.err
    assert ElementTree.fromstring(piped.out).findtext("head/title") == run_of("lora")
    mine = tmp_path / "mine.html"
    mine.write_text("mine", encoding="utf-8")
    assert "is no report" in cloud.sagefit("report", file, "--out", mine, check=2).err
    assert mine.read_text(encoding="utf-8") == "mine"
    assert "--open takes a file" in cloud.sagefit("report", file, "--out", "-", "--open", check=2).err
    other = cloud.job("rich").with_name("other.yaml")
    other.write_text(cloud.job("rich").read_text(encoding="utf-8").replace("name: rich", "name: other"))
    assert "other has no runs yet" in cloud.sagefit("report", other, check=2).err


def test_only_a_run_has_changes_to_apply(cloud: Cloud) -> None:
    assert "--apply takes a run" in cloud.sagefit("diagnose", "--reason", "x", "--apply", "1", check=2).err
