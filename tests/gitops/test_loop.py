"""The whole loop as a team lives with it, as on GitHub and as on GitLab: who comes second, late, or once more.

A bare repository, the clone of an author that knows no key, the clone of the pipeline that has it, the server of the
host, and the embedded cloud. The commands are those of the examples' pipelines; what a host keeps for them is a folder.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from cli_runner import Done
from gitops.checkouts import Checkout, clone
from gitops.server import TOKEN, Server, serving
from sagefit.errors import DONE, FAILED, REFUSED

pytestmark = pytest.mark.xdist_group("gitops-loop")

COUNT = "dev/jobs/count"
KEY = "what only the pipeline of main knows"
_AWS = "import boto3, json, sys; from sagefit.target import activate; activate('local');"
_RATE = (
    "machine = [each for each in boto3.client('stepfunctions').list_state_machines()['stateMachines']"
    " if each['name'] == 'sagefit-dev-count'][0]['stateMachineArn'];"
    "text = boto3.client('stepfunctions').describe_state_machine(stateMachineArn=machine)['definition'];"
    "print(json.loads(text)['States']['small: submit']['Parameters']['HyperParameters']['rate'])"
)


@dataclass
class Team:
    """What the pipelines of a host have, and where they keep what they hand on."""

    host: str
    bare: Path
    author: Checkout
    pipeline: Checkout
    server: Server
    kept: Path
    runs: int = 0
    tips: dict[int, str] = field(default_factory=dict)
    said: list[Done] = field(default_factory=list)
    """What the commands printed last that talk to the host."""

    def environment(self, number: int) -> dict[str, str]:
        """The variables that the host sets in a pipeline of a pull request."""
        self.runs += 1
        run = str(self.runs)
        if self.host == "gitlab":
            own = {"GITLAB_CI": "true", "CI_API_V4_URL": self.server.api, "CI_PROJECT_ID": "ml/ada/models"}
            own |= {"CI_PROJECT_URL": "https://host/ml/models", "CI_MERGE_REQUEST_IID": str(number)}
            return own | {"CI_PIPELINE_IID": run, "CI_JOB_ID": run, "GITLAB_TOKEN": TOKEN}
        own = {"GITHUB_API_URL": self.server.api, "GITHUB_REPOSITORY": "ada/models", "GITHUB_RUN_NUMBER": run}
        own |= {"GITHUB_SERVER_URL": "https://host", "GITHUB_RUN_ID": run, "GITHUB_REF": f"refs/pull/{number}/merge"}
        return own | {"GITHUB_TOKEN": TOKEN}

    def open(self, number: int, *, hours: float = 24, code: int = DONE) -> Path:
        """Plan the branch of the author, review it in the other clone, and say it; where its records are kept."""
        self.author.sagefit("render", "count")
        self.author.commit(f"Change {number}")
        self.tips[number] = self.author.git("rev-parse", "HEAD")
        self.author.git("push", "-q", "--force", "origin", f"HEAD:refs/heads/change-{number}")
        plans, handed = self.author.path / ".sagefit" / "plans", self.kept / f"handed-{number}"
        public = self.pipeline.sagefit("seal", "--public-key", SAGEFIT_REVIEW_KEY=KEY).out.strip()
        options = ["--changed", "--base", "origin/main", "--out", str(plans)]
        self.author.sagefit("plan", *options, check=code, CLOUD="local", SAGEFIT_REVIEW_PUBLIC_KEY=public)
        _carry(plans, handed, "handed.bin", "error.txt", "stacks.json")
        return self.review(number, hours=hours, code=code)

    def review(self, number: int, *, hours: float = 24, code: int = DONE) -> Path:
        """Judge what was handed over, set the status, write the comment; nothing of it waits for the last two."""
        self.pipeline.git("fetch", "-q", "origin", f"+change-{number}:refs/change")
        out, kept = self.pipeline.path / ".sagefit" / "reviewed", self.kept / f"reviewed-{number}"
        given = {**self.environment(number), "SAGEFIT_REVIEW_KEY": KEY}
        ends = ["--base", "origin/main", "--head", "refs/change", "--expires", str(hours)]
        self.pipeline.sagefit("seal", self.kept / f"handed-{number}", "--out", out, *ends, check=code, **given)
        _carry(out, kept, "record.json", "page.md", "error.txt", "stacks.json")
        tip = self.tips[number]
        self.said = [
            self.pipeline.sagefit("status", out, "--sha", tip, check=None, **given),
            self.pipeline.sagefit("comment", out, "--sha", tip, check=None, **given),
        ]
        return kept

    def merge(self, number: int) -> None:
        """Merge a branch into main as a host does, and have main where the pipeline applies."""
        work = self.bare.parent / "merging"
        subprocess.run(["git", "clone", "-q", "-b", "main", str(self.bare), str(work)], check=True)
        merging = Checkout(work, self.bare.parent / "home")
        merging.git("merge", "-q", "--no-ff", "-m", f"Merge {number}", f"origin/change-{number}")
        merging.git("push", "-q", "origin", "main")
        shutil.rmtree(work)
        self.pipeline.git("pull", "-q", "--ff-only", "origin", "main")

    def branch(self) -> None:
        """A new branch of the author, from main."""
        self.author.git("fetch", "-q", "origin", "main")
        self.author.git("checkout", "-q", "-B", "work", "origin/main")

    def apply(self, number: int, reviewed: Path, *, code: int = DONE) -> Done:
        """What happens after a merge: apply what was reviewed, and say how it ended."""
        given = {**self.environment(number), "SAGEFIT_REVIEW_KEY": KEY}
        out = self.pipeline.path / ".sagefit" / "to-apply"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(reviewed, out)
        done = self.pipeline.sagefit("apply", "--reviewed", out, "--replan", check=code, CLOUD="local", **given)
        options = ["--applied", "--number", str(number)]
        self.said = [self.pipeline.sagefit("comment", *options, check=None, **given)]
        return done

    def comments(self, number: int) -> list[str]:
        """What is said on a pull request."""
        return self.server.bodies(request=number)

    @property
    def rate(self) -> str:
        """The hyperparameter that the job has in the cloud."""
        return self.pipeline.python("-c", _AWS + _RATE, CLOUD="local").out.strip()


def _carry(start: Path, end: Path, *names: str) -> None:
    """What a pipeline uploads for the next one."""
    shutil.rmtree(end, ignore_errors=True)
    end.mkdir(parents=True)
    for path in start.rglob("*"):
        if path.name in names:
            (end / path.relative_to(start)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, end / path.relative_to(start))


@pytest.fixture(params=["github", "gitlab"])
def team(request: pytest.FixtureRequest, origin: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A team whose job is applied and ran once."""
    folder = tmp_path_factory.mktemp("loop")
    bare = folder / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(origin.path), str(bare)], check=True)
    author, pipeline = (
        clone(bare, folder / "author", folder / "home"),
        clone(bare, folder / "pipeline", folder / "home"),
    )
    pipeline.git("checkout", "-q", "main")
    faults = [{"match": {"job": "*"}, "outcome": {"status": "Completed"}}]  # training itself is not what is tested here
    (folder / "faults.yaml").write_text(yaml.safe_dump(faults), encoding="utf-8")
    _edit(author, rate=1)
    author.write("counting/train.py", "print('hello')\n")
    author.sagefit("render", "count")
    author.commit("A job that counts")
    author.git("push", "-q", "origin", "work:main")
    pipeline.git("pull", "-q", "--ff-only")
    author.sagefit("cloud", "up", "--faults", folder / "faults.yaml")
    try:
        author.sagefit("platform", "apply", "--yes", CLOUD="local")
        author.sagefit("run", "count", "--yes", CLOUD="local")
        with serving() as server:
            yield Team(request.param, bare, author, pipeline, server, folder / "kept")
    finally:
        author.sagefit("cloud", "down")


def _edit(author: Checkout, rate: int) -> None:
    changes = {"name": "count", "code.source_dir": "../counting", "inputs": None, "hyperparameters.rate": rate}
    author.job("jobs/count.yaml", changes)


@pytest.mark.full(
    witness="tests/gitops/test_pull_request.py::test_a_job_is_reviewed_merged_refused_when_stale_planned_again_applied_and_run"
)
@pytest.mark.timeout(1500)  # a long story: more than the usual limit on a busy machine
def test_who_comes_second_or_late_or_again_applies_nothing_that_was_not_read(team: Team) -> None:
    _two_changes_collide(team)
    _nothing_waits_for_the_comments(team)
    _an_expired_approval_is_final_and_what_was_rolled_back_stays_so(team)


def _two_changes_collide(team: Team) -> None:
    """Both edit the code, in different files: Git merges them, and the second does what nobody has read."""
    team.branch()
    team.author.append("counting/train.py", "print('first')\n")
    first = team.open(1)
    team.branch()
    team.author.write("counting/more.py", "print('second')\n")
    second = team.open(2)
    for number in (1, 2):
        (comment,) = team.comments(number)
        assert "## Plan: `dev/jobs/count`: nothing dangerous found" in comment
        assert "### Last runs" in comment
        assert "`completed`" in comment  # the run of before
    assert [(sha, said["state"]) for sha, said in team.server.statuses] == [
        (team.tips[number], "success") for number in (1, 2)
    ]

    team.merge(1)
    team.apply(1, first)
    assert "## Applied: `dev/jobs/count`" in team.comments(1)[1]
    team.merge(2)
    refused = team.apply(2, second, code=REFUSED)
    assert "a plan made now does not do what was reviewed" in refused.err
    said = team.comments(2)[1]
    assert "## Not applied: `dev/jobs/count` refused" in said
    assert "what a plan made now would do</summary>" in said
    way_on = {"github": "starts the workflow `apply` by hand, with `", "gitlab": "with `SAGEFIT_REPLANNED="}
    assert way_on[team.host] in said
    read = team.kept / "replanned"
    _carry(team.pipeline.home / "gitops" / "replanned", read, "record.json", "page.md")
    assert f"{COUNT}: applied" in team.apply(2, read).err
    assert "## Applied: `dev/jobs/count`" in team.comments(2)[2]


def _nothing_waits_for_the_comments(team: Team) -> None:
    """While the host's comments are down a change is reviewed, merged and applied; later the comment is written."""
    team.branch()
    _edit(team.author, rate=2)
    team.server.down = True
    reviewed = team.open(3)
    assert [done.code for done in team.said] == [FAILED, FAILED]
    assert "see whether the host answers" in team.said[1].err
    team.merge(3)
    assert f"{COUNT}: applied" in team.apply(3, reviewed).err
    assert team.said[0].code == FAILED
    assert team.rate == "2"
    team.server.down = False
    assert team.comments(3) == []
    given = {**team.environment(3), "SAGEFIT_REVIEW_KEY": KEY}
    team.pipeline.sagefit("comment", "--applied", "--number", "3", check=DONE, **given)
    assert "## Applied: `dev/jobs/count`" in team.comments(3)[0]


def _an_expired_approval_is_final_and_what_was_rolled_back_stays_so(team: Team) -> None:
    team.branch()
    _edit(team.author, rate=3)
    late = team.open(4, hours=0)
    team.merge(4)
    assert "expired plan: its approval was good until" in team.apply(4, late, code=REFUSED).err
    assert team.rate == "2"
    good = team.review(4)  # its plan of before, with a new approval
    assert f"{COUNT}: applied" in team.apply(4, good).err
    assert team.rate == "3"

    team.branch()
    team.author.git("revert", "--no-commit", "-m", "1", "HEAD")
    back = team.open(5)
    team.merge(5)
    assert f"{COUNT}: applied" in team.apply(5, back).err
    assert team.rate == "2"
    replayed = team.apply(4, good)  # an approval that holds, of what was rolled back
    assert f"{COUNT}: nothing to do" in replayed.err
    assert team.rate == "2"
