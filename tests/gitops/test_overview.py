"""The text about a whole change: what one sees first, what is folded, and what is left out where there is no room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from gitops.changes import brief, failed, planned, reviewer
from sagefit.cli import app
from sagefit.errors import SagefitError
from sagefit.gitops.normalised import KEY_VARIABLE
from sagefit.gitops.overview import overview
from sagefit.reviewing.briefs import JobBrief

A, B, PLATFORM = "dev/jobs/a", "dev/jobs/b", "dev/platform"
UNTIL = "This holds until 2026-12-01 09:30 UTC."


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")
    for name in ("GITLAB_CI", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)


def text(out: Path, **options: Any) -> str:
    return overview(out, "fedcba9876543210").text(**options)


def job(name: str = "a", **fields: Any) -> JobBrief:
    known: dict[str, Any] = {"fit": "FITS", "share": 0.871, "run": 12.4, "run_before": 9.3}
    return JobBrief(name, **(known | fields))


def test_one_job_needs_no_table(tmp_path: Path) -> None:
    decision = "- **high** `module.job.x`: Ends network isolation"
    planned(tmp_path, A, brief(dangers={"high": 1, "medium": 2}, jobs=[job()], decisions=[decision]))
    lines = text(tmp_path).splitlines()
    assert lines[0] == "## Plan: `dev/jobs/a`: review needed"
    assert lines[2] == (
        "**1 add, 2 change · a run costs at most 12.40 USD (+3.10) · fits (87% of memory) · 1 high, 2 medium**"
    )
    assert lines[4:7] == ["### Needs a decision", "", decision]
    assert not [line for line in lines if line.startswith("|")]
    assert UNTIL in "\n".join(lines)
    assert "Planned from `0123456789ab`." in lines
    fold = ["<details><summary>dev/jobs/a: review needed</summary>", "", "The page of dev/jobs/a.", "", "</details>"]
    assert lines[-5:] == fold


def test_a_row_for_each_stack_with_the_columns_that_say_something(tmp_path: Path) -> None:
    planned(tmp_path, A, brief(jobs=[job(month=372.0, month_before=0.0)], dangers={"high": 1}))
    planned(tmp_path, B, brief("nothing dangerous found", jobs=[job("b", fit="OOM", share=1.2, run=1.0, is_new=True)]))
    planned(tmp_path, PLATFORM, brief("blocked", "0 add, 1 change, 0 destroy"), blocked=("iam-admin:x",))
    shown = text(tmp_path)
    assert shown.splitlines()[0] == "## Plan: 3 stacks: blocked"
    assert "| stack | plan | dangers | a run, at most | a month | memory |" in shown
    assert "| `dev/platform` | 1 change |  |  |  |  |" in shown
    assert "| `dev/jobs/a` | 1 add, 2 change | 1 high | 12.40 USD (+3.10) | 372.00 USD (+372.00) |" in shown
    assert "does not fit (120% of memory)" in shown
    assert "**a run costs at most 13.40 USD (+4.10) · a month 372.00 USD (+372.00) · does not fit" in shown
    assert "approves each finding by name: `iam-admin:x`." in shown
    assert "Jobs of `dev` are planned against the platform as it is now." in shown
    assert [line for line in shown.splitlines() if "<summary>" in line] == [
        "<details><summary>dev/platform: blocked</summary>",
        "<details><summary>dev/jobs/a: review needed</summary>",
        "<details><summary>dev/jobs/b: nothing dangerous found</summary>",
    ]


def test_stacks_with_nothing_to_do_are_quiet(tmp_path: Path) -> None:
    planned(tmp_path, A, brief("nothing dangerous found", jobs=[job(run=9.3)]))
    for name in "bcdef":
        planned(tmp_path, f"dev/jobs/{name}", brief("nothing to apply", "0 add, 0 change, 0 destroy"))
    shown = text(tmp_path)
    assert "**1 add, 2 change · a run costs" in shown
    assert "Nothing to do for `dev/jobs/b`, `dev/jobs/c`, `dev/jobs/d` and 2 more." in shown
    assert "a run costs at most 9.30 USD ·" in shown
    assert shown.count("<details>") == 1
    assert "### Needs a decision" not in shown
    assert "nothing found" not in shown


def test_where_nothing_is_to_do_that_is_all(tmp_path: Path) -> None:
    planned(tmp_path, A, brief("nothing to apply", "0 add, 0 change, 0 destroy"))
    assert text(tmp_path) == (
        "## Plan: nothing to apply\n\nNothing to do for `dev/jobs/a`.\n\nPlanned from `0123456789ab`.\n"
    )
    assert text(tmp_path / "none") == "## Plan: touches no job and no platform\n"


def test_decisions_are_said_once_unless_the_page_has_more(tmp_path: Path) -> None:
    page = "## Plan\n\nA table.\n\n### Needs a decision\n\n{}\n\n### Job `a`: update\n"
    one, other = "- **high** `a`: one", "- **high** `a`: other"
    planned(tmp_path / "all", A, brief(decisions=[one, other]), page=page.format(f"{one}\n{other}"))
    assert text(tmp_path / "all").count(one) == 1
    assert "A table.\n\n### Job `a`: update" in text(tmp_path / "all")
    planned(tmp_path / "none", A, brief("nothing dangerous found"), page=page.format("Nothing."))
    assert "### Needs a decision" not in text(tmp_path / "none")
    planned(
        tmp_path / "more", A, brief(decisions=[one, "- and 1 more, on the page"]), page=page.format(f"{one}\n{other}")
    )
    assert text(tmp_path / "more").count(other) == 1


def test_what_could_not_be_planned_comes_first(tmp_path: Path) -> None:
    planned(tmp_path, A, brief("blocked"))
    failed(tmp_path, "files/jobs/b%20c.yaml", "error: jobs/b c.yaml:4: colour: unknown key\nhint: `x`\n")
    shown = text(tmp_path)
    assert shown.splitlines()[0] == "## Plan: `jobs/b c.yaml` not planned"
    assert "| `jobs/b c.yaml` | **not planned** |" in shown
    assert "- **not planned** `jobs/b c.yaml`: `jobs/b c.yaml:4: colour: unknown key`" in shown
    assert "correct it and push again" in shown
    assert "<details><summary>jobs/b c.yaml: why it was not planned</summary>" in shown


def test_what_reviews_the_change_is_not_folded(tmp_path: Path) -> None:
    planned(tmp_path, A, brief("nothing dangerous found"))
    reviewer(tmp_path, "python/sagefit/deploy.py", blocked=True)
    shown = text(tmp_path)
    assert shown.splitlines()[0] == "## Plan: `dev/jobs/a`: blocked"
    assert "### This change alters what reviews it: blocked" in shown
    assert shown.index("`python/sagefit/deploy.py`") < shown.index("<details>")


def test_pages_that_have_no_room_are_named(tmp_path: Path) -> None:
    planned(tmp_path, A, brief("blocked"), page="## Plan\n\n" + "x" * 3_000)
    planned(tmp_path, B, brief(), page="## Plan\n\n" + "y" * 3_000)
    whole = text(tmp_path)
    assert "xxx" in whole
    assert "yyy" in whole
    short = text(tmp_path, limit=6_000, address="https://host/run/1")
    assert len(short) <= 6_000
    assert "xxx" in short
    assert "yyy" not in short
    assert "There is no room here for `dev/jobs/b`: the pages are in [the run](https://host/run/1)." in short
    assert "beside the records" in text(tmp_path, limit=6_000)


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([job(run=None)], "not known"),
        ([job(run_before=None)], "12.40 USD"),
        ([job(is_new=True, run_before=None)], "12.40 USD"),
        ([job(run=9.3)], "9.30 USD"),
        ([job(run=1.0)], "1.00 USD (-8.30)"),
        ([job(estimated=True)], "about 12.40 USD (+3.10)"),
        ([job(), job("b", is_new=True, run=2.0, run_before=None)], "14.40 USD (+5.10)"),
    ],
)
def test_what_a_run_costs(tmp_path: Path, jobs: list[JobBrief], said: str) -> None:
    planned(tmp_path, A, brief(jobs=jobs))
    assert f"a run costs at most {said} ·" in text(tmp_path)


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([job(fit="RISKY", share=0.96)], "may not fit (96% of memory)"),
        ([job(fit="UNKNOWN", share=None)], "memory not known"),
        ([job(), job("b", fit="UNKNOWN", share=None)], "memory not known"),
        ([job(), job("b", share=0.95)], "fits (95% of memory)"),
    ],
)
def test_the_worst_fit_counts(tmp_path: Path, jobs: list[JobBrief], said: str) -> None:
    planned(tmp_path, A, brief(jobs=jobs))
    assert said in text(tmp_path)


def test_runs_in_progress_are_counted_where_something_happens_to_them(tmp_path: Path) -> None:
    planned(tmp_path, A, brief(jobs=[job()], running=2))
    assert "fits (87% of memory) · 2 runs in progress**" in text(tmp_path)
    planned(tmp_path, PLATFORM, brief(running=3, sharing=7))
    planned(tmp_path, B, brief("nothing to apply", "0 add, 0 change, 0 destroy", running=9))
    shown = text(tmp_path)
    assert "5 runs in progress" in shown
    assert "| runs in progress |" in shown
    assert "`dev/platform` is shared by 7 jobs: the page names them." in shown


@pytest.mark.parametrize("host", [{"GITHUB": "1"}, {"GITLAB_CI": "true"}], ids=["github", "gitlab"])
def test_a_file_that_cannot_be_read_is_a_link_to_its_line(
    tmp_path: Path, host: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"GITHUB_SERVER_URL": "https://host", "GITHUB_REPOSITORY": "ada/models", "CI_PROJECT_URL": "https://host/ml"}
    for name, value in {**own, **host}.items():
        monkeypatch.setenv(name, value)
    failed(tmp_path, "files/jobs/b%20c.yaml", "error: jobs/b c.yaml:4: colour: unknown key\n")
    failed(tmp_path, "files/jobs/x.yaml", "error: jobs/other.yaml:4: twice\n")
    shown = text(tmp_path)
    start = "https://host/ml/-/blob" if "GITLAB_CI" in host else "https://host/ada/models/blob"
    assert f"[`jobs/b c.yaml:4`]({start}/fedcba9876543210/jobs/b%20c.yaml#L4): `jobs/b c.yaml:4: colour" in shown
    assert f"[`jobs/x.yaml`]({start}/fedcba9876543210/jobs/x.yaml): `jobs/other.yaml:4: twice`" in shown


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    failed(tmp_path, "files/jobs/%3C%2Fdetails%3E%7C%40all.yaml", "error: </details> | @everyone ``` `x`\n")
    shown = text(tmp_path)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(shown)
    assert html.count("<details>") == html.count("</details>") == 1
    assert html.count("<code>jobs/&lt;/details&gt;|@all.yaml</code>") == 2
    assert "````text" in shown


def test_the_pipeline_of_a_region_says_nothing_of_plans_for_another(tmp_path: Path) -> None:
    planned(tmp_path, "dev/platform", brief())
    assert overview(tmp_path, "0" * 40, "us-east-1").text().startswith("## Plan (us-east-1): `dev/platform`")
    with pytest.raises(
        SagefitError, match="dev/platform was planned for us-east-1, and this is the pipeline of eu-wes"
    ):
        overview(tmp_path, "0" * 40, "eu-west-1")


def test_the_command_takes_a_region_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(tmp_path, "dev/platform", brief())
    for region, title in (("", "## Plan: "), ("us-east-1", "## Plan (us-east-1): ")):
        monkeypatch.setenv("SAGEFIT_REVIEW_REGION", region)
        app(["comment", str(tmp_path), "--sha", "0" * 40, "--print"], standalone_mode=False)
        assert capsys.readouterr().out.startswith(title)
    with pytest.raises(SagefitError, match="'a --> b' is no region"):
        app(["comment", str(tmp_path), "--region", "a --> b", "--print"], standalone_mode=False)
