"""One comment about a change, and a status, against a small server that behaves like the two hosts' APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitops.server import OTHER, TOKEN, Server, serving
from sagefit.errors import FAILED, SagefitError
from sagefit.gitops.comment import body, post
from sagefit.gitops.hosts import GitHub, from_environment, run_address, status_name
from sagefit.gitops.overview import Overview, Part
from sagefit.gitops.parallel import headline


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def about(text: str = "page", *stacks: str) -> Overview:
    """A change of one stack whose page is ``text``."""
    return Overview("0123abc", tuple(Part(stack, error=text) for stack in stacks or ("dev/jobs/digits",)))


NOTHING = Overview("0123abc", ())


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_one_comment_for_the_change_is_posted_and_then_edited(server: Server, name: str) -> None:
    host = server.github() if name == "github" else server.gitlab()
    assert post(host, about("one", "dev/jobs/digits", "dev/platform"), 1) == "posted"
    (text,) = server.bodies()
    assert re.match(r"<!-- sagefit:plan stack=change sha=0123abc plan=[0-9a-f]{16} run=1 v=1 -->\n## Plan: ", text)
    assert post(host, about("two"), 2) == "edited"
    assert "two" in server.bodies()[0]
    assert "run=2" in server.bodies()[0]
    assert post(host, about("two"), 2) == "unchanged"
    assert len(server.bodies()) == 1


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_comment_is_found_on_any_page(server: Server, name: str) -> None:
    for number in range(205):
        server.add(f"remark {number}", OTHER)
    host = server.github() if name == "github" else server.gitlab()
    post(host, about(), 1)
    for number in range(205):
        server.add(f"remark {number}", OTHER)
    assert post(host, about("new"), 2) == "edited"
    assert len(server.bodies()) == 1


def test_the_pipelines_of_two_regions_keep_a_comment_each(server: Server) -> None:
    """The numbers of their runs have nothing to do with each other."""
    host = server.github()
    eu, us = (replace(about(where), region=where) for where in ("eu-west-1", "us-east-1"))
    assert [post(host, eu, 40), post(host, us, 2), post(host, about("one region"), 1)] == ["posted"] * 3
    titles = [text.splitlines()[1] for text in server.bodies()]
    assert [title.partition("`")[0] for title in titles] == [
        "## Plan (eu-west-1): ",
        "## Plan (us-east-1): ",
        "## Plan: ",
    ]
    newer = Overview("0123abc", (), region="us-east-1")
    assert [post(host, us, 3), post(host, newer, 4), post(host, about("again"), 2)] == ["edited"] * 3
    markers = [re.findall(r"stack=(\S+) .* run=(\d+)", text)[0] for text in server.bodies()]
    assert markers == [("change@eu-west-1", "40"), ("change@us-east-1", "4"), ("change", "2")]
    assert "eu-west-1" in server.bodies()[0]


def test_duplicates_and_comments_of_single_stacks_are_removed(server: Server) -> None:
    server.add("<!-- sagefit:plan stack=dev/platform sha=1 plan=2 run=1 v=1 -->\nof an earlier version")
    for number in range(3):
        server.add(body(about(f"old {number}"), number))
    first = server.comments[1]["id"]
    assert post(server.github(), about("new"), 3) == "edited"
    assert [(comment["id"], comment["body"]) for comment in server.comments] == [
        (first, body(about("new"), 3, limit=65_536))
    ]


def test_a_comment_of_an_earlier_version_is_taken_over(server: Server) -> None:
    server.add("<!-- sagefit:plan stack=dev/platform sha=1 plan=2 run=1 v=1 -->\nof an earlier version")
    assert post(server.github(), about("new"), 3) == "edited"
    assert [text.split(" sha=")[0] for text in server.bodies()] == ["<!-- sagefit:plan stack=change"]


def test_what_a_newer_run_wrote_stays(server: Server) -> None:
    server.add(body(about("newer"), 10))
    assert post(server.github(), about("older"), 9) == "left as a newer run wrote it"
    assert server.bodies() == [body(about("newer"), 10)]
    assert server.writes() == []


def test_a_marker_in_somebody_elses_comment_or_further_down_is_no_marker(server: Server) -> None:
    server.add(body(about("forged"), 99), OTHER)
    server.add(f"I quote:\n{body(about(), 99)}")
    assert post(server.github(), about(), 1) == "posted"
    assert len(server.comments) == 3
    assert server.bodies(OTHER) == [body(about("forged"), 99)]


def test_where_there_is_nothing_to_say_nothing_is_posted(server: Server) -> None:
    assert post(server.github(), NOTHING, 1) == "nothing to say"
    assert server.writes() == []
    post(server.github(), about(), 2)
    assert post(server.github(), NOTHING, 3) == "edited"
    assert "## Plan: touches no job and no platform" in server.bodies()[0]


def test_pages_are_left_out_until_the_comment_fits_the_host(server: Server) -> None:
    long = about("x" * 60_000, "a/platform", "b/platform")
    post(server.github(), long, 1, "https://host/run")
    assert len(server.bodies()[0]) < 65_536
    assert "There is no room here for `b/platform`: the pages are in [the run](https://host/run)." in server.bodies()[0]
    post(server.gitlab(), long, 2)
    assert len(server.bodies()[0]) > 120_000


def test_a_comment_that_is_too_long_without_pages_is_refused_before_anything_is_written(server: Server) -> None:
    with pytest.raises(SagefitError, match="takes 65,536"):
        post(server.github(), about("x" * 300, *(f"dev/jobs/{number}" for number in range(400))), 1)
    assert server.asked == []


def test_a_busy_host_is_asked_again(server: Server) -> None:
    server.fail = [(503, {}), (429, {"Retry-After": "0"}), (403, {"Retry-After": "0"})]
    assert post(server.github(), about(), 1) == "posted"


def test_a_post_that_may_have_worked_is_not_repeated(server: Server) -> None:
    host = server.github()
    server.fail = [(502, {})]
    with pytest.raises(SagefitError, match="answered 502"):
        host.create("page")
    assert server.writes() == ["POST"]


@pytest.mark.parametrize(("code", "hint"), [(403, "pull-requests: write"), (404, "number"), (422, "words")])
def test_errors_keep_the_hosts_words_and_name_the_knob(server: Server, code: int, hint: str) -> None:
    host = server.github()
    server.fail = [(code, {})]
    with pytest.raises(SagefitError, match=f"GitHub answered {code} to POST .*: not now") as caught:
        host.create("page")
    assert hint in str(caught.value.hint)
    assert caught.value.exit_code == FAILED


def test_the_token_is_never_said(server: Server) -> None:
    wrong = f"{TOKEN}-wrong"
    with pytest.raises(SagefitError) as caught:
        post(server.github(wrong), about(), 1)
    assert "401" in caught.value.message
    assert wrong not in str(caught.value)
    assert TOKEN not in "".join(path for _, path in server.asked)


def test_the_token_follows_no_redirect_and_no_plain_http(server: Server) -> None:
    server.fail = [(302, {"Location": f"{server.api}/user"})]
    with pytest.raises(SagefitError, match="answered 302"):
        list(server.github().comments())
    assert len(server.asked) == 1
    with pytest.raises(SagefitError, match="no https"):
        GitHub("http://example.com", "ada/models", 7, TOKEN)


def test_a_host_that_does_not_answer(server: Server) -> None:
    host = GitHub("http://127.0.0.1:9", "ada/models", 7, TOKEN)
    with pytest.raises(SagefitError, match="see whether the host answers"):
        host.create("page")
    assert server.asked == []


def test_a_pipeline_says_where_it_runs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITLAB_CI", "GITHUB_REF", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    github = {"GITHUB_API_URL": server.api, "GITHUB_REPOSITORY": "ada/models", "GITHUB_RUN_NUMBER": "12"}
    for name, value in github.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SagefitError, match="GITHUB_REF"):
        from_environment()
    monkeypatch.setenv("GITHUB_REF", "refs/pull/7/merge")
    with pytest.raises(SagefitError, match="GITHUB_TOKEN is not set"):
        from_environment()
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    host, run = from_environment()
    assert run == 12
    host.create("page")
    gitlab = {"GITLAB_CI": "true", "CI_API_V4_URL": server.api, "CI_PROJECT_ID": "ml/ada/models"}
    gitlab |= {"CI_MERGE_REQUEST_IID": "7", "CI_PIPELINE_IID": "13", "GITLAB_TOKEN": TOKEN}
    for name, value in gitlab.items():
        monkeypatch.setenv(name, value)
    host, run = from_environment()
    assert (host.name, run) == ("GitLab", 13)
    assert [comment.body for comment in host.comments()] == ["page"]


SHA = "5" * 40


@pytest.mark.parametrize("name", ["github", "gitlab"])
@pytest.mark.parametrize("passed", [True, False])
def test_a_status_says_in_words_whether_something_blocks(
    server: Server, name: str, passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_PIPELINE_ID", "99")
    host = server.github() if name == "github" else server.gitlab()
    host.status(SHA, passed=passed, text="x" * 300, url="https://host/run/1")
    ((sha, said),) = server.statuses
    assert sha == SHA
    assert said["target_url"] == "https://host/run/1"
    assert said["description"].endswith("x…")
    assert said.get("context", said.get("name")) == "sagefit/review"
    host.status(SHA, passed=passed, text="x", name=status_name("eu-west-1"))
    assert [said.get("context", said.get("name")) for _, said in server.statuses] == [
        "sagefit/review",
        "sagefit/review/eu-west-1",
    ]
    assert said.get("pipeline_id") == ("99" if name == "gitlab" else None)


def _stack(key: str, code: int = 0, summary: str = "2 to create") -> dict[str, Any]:
    return {"stack": key, "code": code, "summary": summary}


@pytest.mark.parametrize(
    ("stacks", "passed", "said"),
    [
        ([], True, "touches no job and no platform"),
        ([_stack("dev/jobs/a")], True, "dev/jobs/a: 2 to create"),
        ([_stack("dev/jobs/a"), _stack("dev/platform")], True, "2 stacks planned, nothing blocks"),
        (
            [_stack("dev/jobs/a", 5, "blocked by 1 findings, 2 to create"), _stack("dev/platform")],
            False,
            "blocked: dev/jobs/a: by 1 findings, 2 to create",
        ),
        (
            [_stack("dev/jobs/a", 5, "blocked by 1 findings"), _stack("files/jobs/a%20b.yaml", 2, "line 3: no job")],
            False,
            "not planned: files/jobs/a b.yaml: line 3: no job",
        ),
        (
            [_stack("a/platform", 1, "no access"), _stack("b/platform", 1, "no access")],
            False,
            "not planned: a/platform and 1 more: no access",
        ),
        (
            [_stack("change", 5, "blocked, alters what reviews it: packages (1 files)")],
            False,
            "blocked: change: alters what reviews it: packages (1 files)",
        ),
    ],
)
def test_the_headline(stacks: list[dict[str, Any]], passed: bool, said: str, tmp_path: Path) -> None:
    (tmp_path / "stacks.json").write_text(json.dumps({"stacks": stacks}), encoding="utf-8")
    assert headline(tmp_path) == (passed, said)


def test_without_what_was_planned_there_is_no_headline(tmp_path: Path) -> None:
    for text in (None, "{", '{"stacks": [1]}', "[]"):
        if text is not None:
            (tmp_path / "stacks.json").write_text(text, encoding="utf-8")
        with pytest.raises(SagefitError, match="not what plan or seal wrote"):
            headline(tmp_path)


def test_where_a_run_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITLAB_CI", "CI_JOB_URL", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    assert run_address() is None
    for name, value in (("SERVER_URL", "https://github.com"), ("REPOSITORY", "ada/models"), ("RUN_ID", "7")):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    assert run_address() == "https://github.com/ada/models/actions/runs/7"
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab/job/8")
    assert run_address() == "https://gitlab/job/8"
