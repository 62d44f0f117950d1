"""A pull request from its branch to its run, on a bare repository and the embedded cloud, with the real commands.

One cloud, and one story in the order of the file: a job that is added to a platform and deleted. The author plans in
one clone, which knows no key; from another, which runs the code of main, it is reviewed, and the merge is applied.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from cli_runner import Done
from gitops.checkouts import Checkout, clone

pytestmark = pytest.mark.xdist_group("gitops")

COUNT = "dev/jobs/count"
KEY = "what only the pipeline of main knows"
_LIE = "\n\ndef _of_jobs(jobs):\n    return iter(())\n"  # a reviewer that finds no fault with a job
_CODE = {"name": "count", "code.source_dir": "../counting"}
_FAULTS = [{"match": {"job": "*"}, "outcome": {"status": "Completed"}}]  # training itself is not what is tested here


_AWS = "import boto3, json, sys; from sagefit.target import activate; activate('local');"


@dataclass
class Team:
    """A bare repository, the clone of an author and that of the pipeline that applies; one cloud for both."""

    author: Checkout
    pipeline: Checkout

    def merge(self) -> None:
        """Merge the author's branch, and have it in both clones."""
        self.author.git("push", "-q", "origin", "work:main")
        self.author.git("fetch", "-q", "origin", "main:main")
        self.pipeline.git("pull", "-q", "--ff-only")

    def plans(self, clone: Checkout) -> Path:
        """Where a clone has its plans."""
        return clone.path / ".sagefit" / "plans"

    def hand_over(self) -> Path:
        """Bring what was planned to the pipeline as an artifact does: what is encrypted, and errors."""
        here, there = self.plans(self.author), self.pipeline.path / ".sagefit" / "handed"
        shutil.rmtree(there, ignore_errors=True)
        for path in here.rglob("*"):
            if path.name in ("handed.bin", "error.txt", "stacks.json"):
                (there / path.relative_to(here)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, there / path.relative_to(here))
        return there

    def review(self, handed: Path, *, code: int) -> Path:
        """Judge and seal it, from what the pipeline has of the author's branch; where the pages are."""
        self.author.git("push", "-q", "--force", "origin", "work:proposed")
        self.pipeline.git("fetch", "-q", "origin", "+proposed:refs/proposed")
        out = self.pipeline.path / ".sagefit" / "reviewed"
        ends = ["--base", "main", "--head", "refs/proposed"]
        self.pipeline.sagefit("seal", handed, "--out", out, *ends, check=code, SAGEFIT_REVIEW_KEY=KEY)
        return out


@pytest.fixture(scope="module")
def team(origin: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A team with a platform on which there is no job yet."""
    folder = tmp_path_factory.mktemp("team")
    bare = folder / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(origin.path), str(bare)], check=True)
    author = clone(bare, folder / "author", folder / "home")
    pipeline = clone(bare, folder / "pipeline", folder / "home")
    pipeline.git("checkout", "-q", "main")
    (folder / "faults.yaml").write_text(yaml.safe_dump(_FAULTS), encoding="utf-8")
    author.sagefit("cloud", "up", "--faults", folder / "faults.yaml")
    try:
        author.sagefit("platform", "apply", "--yes", CLOUD="local")
        yield Team(author, pipeline)
    finally:
        author.sagefit("cloud", "down")


def test_a_job_is_reviewed_merged_refused_when_stale_planned_again_applied_and_run(team: Team) -> None:
    author, pipeline = team.author, team.pipeline
    author.write(".sagefit-review.yaml", "{ fail_on: medium, usd_per_run: 0.01 }\n")
    author.commit("What the review shuts out")
    team.merge()
    author.job("jobs/count.yaml", _CODE)
    author.write("counting/train.py", "print('hello')\n")
    author.append("python/sagefit/reviewing/judge.py", _LIE)
    before = len(author.sagefit("cloud", "calls", "--json", CLOUD="local").out.splitlines())  # of the platform
    public = pipeline.sagefit("seal", "--public-key", SAGEFIT_REVIEW_KEY=KEY).out.strip()
    options = ["--changed", "--base", "origin/main", "--out", ".sagefit/plans"]
    author.sagefit("plan", *options, check=5, CLOUD="local", SAGEFIT_REVIEW_PUBLIC_KEY=public)
    lines = author.sagefit("cloud", "calls", "--json", CLOUD="local").out.splitlines()[before:]
    calls = [json.loads(line) for line in lines]
    job = [call for call in calls if call["service"] == "stepfunctions" or call["action"] == "PutObject"]
    assert {call["kind"] for call in job} == {"read"}
    plans = team.plans(author)
    assert "nothing dangerous found" in (plans / COUNT / "page.md").read_text(encoding="utf-8")

    author.commit("A job that counts")
    handed = team.hand_over()
    reviewed = team.review(handed, code=5)
    page = (reviewed / COUNT / "page.md").read_text(encoding="utf-8")
    assert "job-price-high" in page
    assert "ml.m5.large" in page
    assert _codes(reviewed) == {COUNT: 5, "change": 5}
    said = (reviewed / "change" / "page.md").read_text(encoding="utf-8")
    assert "`python/sagefit/reviewing/judge.py`" in said
    _look(team)
    author.git("checkout", "-q", "origin/main", "--", "python")
    author.commit("No lies")
    assert _codes(team.review(handed, code=5)) == {COUNT: 5}

    team.merge()
    _publish(pipeline, allowed_instance_types=["ml.m5.large", "ml.m5.xlarge"])  # what the job needs is among them
    forged = pipeline.sagefit("apply", "--reviewed", reviewed, check=4, CLOUD="local")
    assert "was edited, or sealed under another key" in forged.err
    stale = _apply(pipeline, reviewed, code=4)
    assert "the record came without its plan" in stale.err
    assert "other platform: dev publishes something else" in stale.err

    shut = _apply(pipeline, reviewed, "--replan", code=4)
    assert "blocked by fail_on in .sagefit-review.yaml" in shut.err
    assert f"## Not applied: `{COUNT}` refused\n" in pipeline.sagefit("comment", "--applied", "--print").out
    (finding,) = re.findall(r"^ +(job-price-high:\S+)$", shut.err, re.MULTILINE)
    assert finding in _apply(pipeline, reviewed, "--replan", "--approve", "job-price-high:x", code=4).err
    done = _apply(pipeline, reviewed, "--replan", "--approve", finding)
    assert f"{COUNT}: approved: {finding}" in done.err
    assert f"{COUNT}: applied" in done.err
    assert f"## Applied: `{COUNT}`\n" in pipeline.sagefit("comment", "--applied", "--print").out
    assert pipeline.sagefit("start", "count", CLOUD="local").out.startswith("count-")
    again = author.sagefit("apply", "count", "--reviewed", ".sagefit/plans", check=4, CLOUD="local")
    assert "other state: the plan is for serial 0 of lineage none" in again.err
    author.git("rm", "-q", ".sagefit-review.yaml")
    author.commit("No review shuts anything out")
    team.merge()


def _look(team: Team) -> None:
    """Somebody looks at the branch from a checkout of main: nothing of the branch is run, and no plan is kept."""
    pipeline = team.pipeline
    kept = {path: path.read_bytes() for path in pipeline.home.rglob("plans/**/*") if path.is_file()}
    assert kept
    options = ["--head", "refs/proposed", "--base", "main"]
    done = pipeline.sagefit("review", *options, check=4, CLOUD="local")
    change, page = done.out.split(f"## Plan: {COUNT}: blocked")
    assert "## This change alters what reviews it: blocked" in change
    assert "nothing of the branch was run" in change
    assert "job-price-high" in page
    assert "ml.m5.large" in page
    nothing = pipeline.sagefit("review", "--head", "main", "--format", "json", CLOUD="local").out
    told = json.loads(nothing)
    assert (told["stack"], told["reviewer"], told["blocked"]) == ("change", [], False)
    assert {path: path.read_bytes() for path in kept} == kept
    assert pipeline.git("status", "--porcelain") == ""


@pytest.mark.full(
    witness="tests/gitops/test_pull_request.py::test_a_job_is_reviewed_merged_refused_when_stale_planned_again_applied_and_run"
)
def test_one_stack_that_fails_hides_no_other_and_a_deleted_job_is_destroyed(team: Team) -> None:
    _have_the_job(team)
    author = team.author
    author.git("rm", "-q", "-r", "jobs/count.yaml", "jobs/count.tfvars", "counting")
    author.job("jobs/lost.yaml", {"name": "lost", "platform": "nowhere"})
    author.job("jobs/bad.yaml", {"name": "bad", "colour": "red"})
    done = author.sagefit("plan", "--changed", "--base", "main", "--out", ".sagefit/plans", check=2, CLOUD="local")
    assert "to destroy" in done.out
    assert "nowhere/jobs/lost" in done.out
    assert "no platform 'nowhere'" in done.err
    assert "colour: unknown key" in done.err
    plans = team.plans(author)
    assert "no platform 'nowhere'" in (plans / "nowhere/jobs/lost/error.txt").read_text(encoding="utf-8")
    assert sorted(path.parent.name for path in plans.rglob("record.json")) == ["count"]
    assert "colour: unknown key" in (plans / "files/jobs/bad.yaml/error.txt").read_text(encoding="utf-8")
    told = json.loads((plans / "stacks.json").read_text(encoding="utf-8"))["stacks"]
    assert {each["stack"]: each["code"] for each in told}["files/jobs/bad.yaml"] == 2

    done = author.sagefit("apply", "--reviewed", ".sagefit/plans", CLOUD="local")
    assert f"{COUNT}: applied" in done.err
    left = "print([each['name'] for each in boto3.client('stepfunctions').list_state_machines()['stateMachines']])"
    platforms_own = "['sagefit-dev_cleanup']"
    assert author.python("-c", _AWS + left, CLOUD="local").out.strip() == platforms_own


def _have_the_job(team: Team) -> None:
    """The job is merged and applied: by the test before, or here where that did not run."""
    if not (team.author.path / "jobs" / "count.yaml").exists():
        team.author.job("jobs/count.yaml", _CODE)
        team.author.write("counting/train.py", "print('hello')\n")
        team.author.sagefit("plan", "count", CLOUD="local")
        team.author.commit("A job that counts")
        team.merge()
        team.author.sagefit("apply", "count", CLOUD="local")


def _apply(pipeline: Checkout, reviewed: Path, *options: str, code: int = 0) -> Done:
    """Apply what was reviewed, as the pipeline of main does, which has the key."""
    words = ["--reviewed", str(reviewed), *options]
    return pipeline.sagefit("apply", *words, check=code, CLOUD="local", SAGEFIT_REVIEW_KEY=KEY)


def _codes(folder: Path) -> dict[str, int]:
    """What became of each stack."""
    told = json.loads((folder / "stacks.json").read_text(encoding="utf-8"))["stacks"]
    return {each["stack"]: each["code"] for each in told}


def _publish(checkout: Checkout, **fields: object) -> None:
    """Change what the platform publishes, as an apply of the platform does."""
    code = (
        "c = boto3.client('ssm'); old = json.loads(c.get_parameter(Name='/sagefit/dev')['Parameter']['Value']);"
        "new = json.dumps(old | json.loads(sys.argv[1]));"
        "c.put_parameter(Name='/sagefit/dev', Value=new, Overwrite=True)"
    )
    checkout.python("-c", _AWS + code, json.dumps(fields))
