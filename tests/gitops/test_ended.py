"""What is said on a pull request when its apply has ended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gitops.changes import brief, planned
from sagefit.errors import REFUSED, SagefitError
from sagefit.gitops import ended
from sagefit.gitops.apply import replanned
from sagefit.gitops.binding import PAGE
from sagefit.gitops.ended import Ended
from sagefit.gitops.hosts import Comment, Host
from sagefit.gitops.normalised import KEY_VARIABLE

A, B, PLATFORM = "dev/jobs/a", "dev/jobs/b", "dev/platform"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path))
    for name in ("GITLAB_CI", "GITHUB_RUN_ID", "CI_JOB_ID"):
        monkeypatch.delenv(name, raising=False)


class Kept(Host):
    """A host that keeps comments here; what the two hosts do is asked in test_comment.py."""

    name, limit, author = "here", 2_000, "us"

    def __init__(self) -> None:
        self.kept: list[Comment] = []

    def comments(self) -> Any:
        return iter(list(self.kept))

    def create(self, body: str) -> None:
        self.kept.append(Comment(len(self.kept), "us", body))

    def update(self, comment: Comment, body: str) -> None:
        self.kept[comment.id] = Comment(comment.id, "us", body)

    def status(self, *_: Any, **__: Any) -> None:
        raise AssertionError

    def _comment(self, item: dict[str, Any]) -> Comment:  # noqa: ARG002
        raise AssertionError


def test_what_was_applied_is_said_and_that_nothing_runs_yet() -> None:
    shown = ended.text([Ended(PLATFORM, ended.NOTHING), Ended(A, ended.APPLIED)], address="https://host/run")
    assert shown.splitlines()[0] == "## Applied: `dev/jobs/a`"
    assert "| `dev/platform` | nothing to do |" in shown
    assert "An apply starts no run: `sagefit start JOB` does" in shown
    assert "[The run](https://host/run)" in shown
    assert ended.text([Ended(A, ended.NOTHING)]).startswith("## Applied: nothing to do\n")
    assert ended.text([]) == "## Applied: nothing was planned\n"
    assert ended.text([Ended(A, ended.APPLIED), Ended(B, ended.APPLIED)]).startswith("## Applied: 2 stacks\n")


def test_why_the_rest_was_not_applied_comes_in_the_words_of_the_refusal() -> None:
    found = [Ended(PLATFORM, ended.REFUSED, "error: </details> ``` @ada\nhint: plan again"), Ended(A, ended.LEFT, "x")]
    shown = ended.text(found)
    assert shown.splitlines()[0] == "## Not applied: `dev/platform` refused and 1 more"
    assert "| `dev/platform` | **refused** |" in shown
    assert "````text\nerror: </details> ``` @ada\nhint: plan again\n````" in shown
    assert "starts no run" not in shown


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "applies it"),
        ({"GITHUB_RUN_ID": "77"}, "starts the workflow `apply` by hand, with `77` as `replanned`"),
        ({"GITLAB_CI": "true", "CI_JOB_ID": "88"}, "a pipeline on the default branch with `SAGEFIT_REPLANNED=88`"),
    ],
)
def test_a_plan_that_does_something_else_is_shown_with_the_way_to_have_it(
    environment: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    planned(replanned(), A, brief())
    planned(replanned(), B, brief())  # of an earlier apply
    found = [Ended(A, ended.REFUSED, "a plan made now does not do what was reviewed")]
    shown = ended.text(found)
    assert said in shown
    assert "<details><summary>dev/jobs/a: what a plan made now would do</summary>\n\nThe page of dev/jobs/a." in shown
    assert "dev/jobs/b" not in shown
    assert "The page of" not in ended.text(found, limit=200)
    (replanned() / A / PAGE).write_text("harmless", encoding="utf-8")
    with pytest.raises(SagefitError, match="is not the page") as caught:
        ended.text(found)
    assert caught.value.exit_code == REFUSED


def test_each_apply_has_a_comment_and_a_second_try_replaces_it() -> None:
    host = Kept()
    assert ended.post(host, [Ended(A, ended.FAILED, "error: no access")], 5) == "posted"
    assert ended.post(host, [Ended(A, ended.APPLIED)], 5) == "edited"
    assert ended.post(host, [Ended(B, ended.APPLIED)], 6) == "posted"
    assert [comment.body.splitlines()[1] for comment in host.kept] == [
        "## Applied: `dev/jobs/a`", "## Applied: `dev/jobs/b`",
    ]  # fmt: skip
    assert ended.post(host, [Ended(A, ended.FAILED, "x" * 5_000)], 7) == "posted"
    assert len(host.kept[-1].body) == host.limit


def test_what_is_kept_is_of_the_last_apply(tmp_path: Path) -> None:
    with pytest.raises(SagefitError, match="no apply is noted there"):
        ended.load()
    found = [Ended(A, ended.APPLIED), Ended(B, ended.LEFT, "why")]
    ended.keep(found)
    assert ended.load() == found
    assert (tmp_path / "gitops" / "applied.json").stat().st_mode & 0o077 == 0
    ended.forget()
    with pytest.raises(SagefitError, match="no apply is noted there"):
        ended.load()
    shutil.rmtree(tmp_path / "gitops")


def test_the_pipelines_of_two_regions_do_not_replace_each_others_words() -> None:
    host = Kept()
    for region in ("eu-west-1", "us-east-1", ""):
        assert ended.post(host, [Ended(A, ended.APPLIED)], 7, region=region) == "posted"
    assert [comment.body.splitlines()[:2] for comment in host.kept] == [
        ["<!-- sagefit:applied run=7 region=eu-west-1 v=1 -->", "## Applied (eu-west-1): `dev/jobs/a`"],
        ["<!-- sagefit:applied run=7 region=us-east-1 v=1 -->", "## Applied (us-east-1): `dev/jobs/a`"],
        ["<!-- sagefit:applied run=7 v=1 -->", "## Applied: `dev/jobs/a`"],
    ]
    for region in ("us-east-1", ""):
        assert ended.post(host, [Ended(A, ended.REFUSED)], 7, region=region) == "edited"
    assert [comment.body.splitlines()[1] for comment in host.kept] == [
        "## Applied (eu-west-1): `dev/jobs/a`",
        "## Not applied (us-east-1): `dev/jobs/a` refused",
        "## Not applied: `dev/jobs/a` refused",
    ]
