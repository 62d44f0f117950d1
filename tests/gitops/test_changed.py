"""Which jobs and platforms a change touches, told by the real command in a real repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gitops.checkouts import Checkout, clone
from sagefit.cli import main

pytestmark = pytest.mark.xdist_group("changed")

DIGITS, TUNE, PLATFORM = "dev/jobs/digits", "dev/jobs/tune", "dev/platform"
ALL = (PLATFORM, DIGITS, TUNE)

# A file that changes, the stacks that are made from it, and what it is to them.
FILES = {
    "jobs/digits.yaml": ((DIGITS,), "job file"),
    "jobs/digits.tfvars": ((DIGITS,), "rendered file"),
    "jobs/tune.peaks.json": ((TUNE,), "measured peaks"),
    "jobs/tune.trace/0123.json": ((TUNE,), "trace"),
    "training/deep/er.py": ((DIGITS,), "code"),
    "rows/a.csv": ((DIGITS,), "input train"),
    "models/small/config.json": ((TUNE,), "configuration of the model"),
    "job/main.tf": ((DIGITS, TUNE), "root"),
    "job/backend_override.tf": ((DIGITS, TUNE), "root"),
    "modules/training-job/checks.tf": ((DIGITS, TUNE), "module"),
    "python/sagefit/memory/prediction.py": ((DIGITS, TUNE), "rendering"),
    "modules/training-job/launcher/launcher.pyz": ((DIGITS, TUNE), "module"),
    "python/sagefit/toolchain.py": (ALL, "versions of Terraform and the provider"),
    "requirements.lock": ((DIGITS, TUNE), "packages that the rendering uses"),
    "main.tf": ((PLATFORM,), "root"),
    "modules/s3-buckets/main.tf": ((PLATFORM,), "module"),
    "platforms/dev.tfvars": ((PLATFORM,), "variables of the platform"),
    "README.md": ((), ""),
    "jobs/README.md": ((), ""),
    "models/other.json": ((), ""),
    "modules/training-job/README.md": ((), ""),
    "modules/training-job/tests/request.tftest.hcl": ((), ""),
    "python/sagefit/running/view.py": ((), ""),
    "training/__pycache__/train.cpython-311.pyc": ((), ""),
}


def test_files_touch_the_stacks_that_are_made_from_them(checkout: Checkout) -> None:
    for file in FILES:
        checkout.append(file, "\n" if file.endswith(".json") else "# changed\n")
        checkout.git("add", "-f", file)
    checkout.commit()
    found = checkout.changed("main", "--head", "HEAD")
    assert tuple(found) == ALL
    assert {stack["change"] for stack in found.values()} == {"changed"}
    assert [stack["kind"] for stack in found.values()] == ["platform", "job", "job"]
    for key in ALL:
        because = [f"{file} ({what})" for file, (stacks, what) in sorted(FILES.items()) if key in stacks]
        through = [] if key == PLATFORM else ["platform dev"]
        assert found[key]["because"] == because + through


def test_files_that_are_not_committed_count(checkout: Checkout) -> None:
    assert checkout.changed() == {}
    checkout.append("training/train.py", "# more\n")
    checkout.append("tuning/train.py", "# more\n")
    checkout.git("add", "tuning/train.py")
    checkout.job("jobs/new.yaml", {"name": "new"})
    found = checkout.changed()
    assert list(found) == [DIGITS, "dev/jobs/new", TUNE]
    assert found["dev/jobs/new"]["change"] == "added"
    assert checkout.changed("main", "--head", "HEAD") == {}


def test_what_changed_on_the_base_since_does_not_count(checkout: Checkout) -> None:
    checkout.append("tuning/train.py", "# mine\n")
    checkout.commit()
    checkout.git("checkout", "-q", "main")
    checkout.append("training/train.py", "# theirs\n")
    checkout.commit()
    checkout.git("checkout", "-q", "work")
    assert list(checkout.changed("main")) == [TUNE]


def test_a_deleted_job_is_to_be_destroyed(checkout: Checkout) -> None:
    checkout.git("rm", "-q", "jobs/digits.yaml")
    found = checkout.changed()
    assert found[DIGITS]["change"] == "deleted"
    assert found[DIGITS]["because"] == ["jobs/digits.yaml (gone)"]


def test_a_deleted_file_of_its_code_touches_a_job(checkout: Checkout) -> None:
    checkout.write("training/other.py", "")
    checkout.commit()
    checkout.git("rm", "-q", "training/other.py")
    assert checkout.changed("HEAD")[DIGITS]["because"] == ["training/other.py (code)"]


def test_a_renamed_file_is_a_renamed_job(checkout: Checkout) -> None:
    checkout.job("jobs/digits.yaml", {"name": None})  # the file's name is the job's
    checkout.commit()
    checkout.git("mv", "jobs/digits.yaml", "jobs/numbers.yaml")
    found = checkout.changed("HEAD")
    assert {key: (stack["change"], stack["renamed"]) for key, stack in found.items()} == {
        DIGITS: ("deleted", "dev/jobs/numbers"),
        "dev/jobs/numbers": ("added", DIGITS),
    }


def test_another_name_or_platform_in_the_file_is_another_stack(checkout: Checkout) -> None:
    checkout.job("jobs/digits.yaml", {"platform": "prod"})
    found = checkout.changed()
    assert {key: stack["change"] for key, stack in found.items()} == {DIGITS: "deleted", "prod/jobs/digits": "added"}
    assert found[DIGITS]["renamed"] == "prod/jobs/digits"


def test_a_file_that_moves_and_keeps_the_jobs_name_keeps_its_state(checkout: Checkout) -> None:
    checkout.git("mv", "jobs/digits.yaml", "jobs/first.yaml")
    found = checkout.changed()
    assert {key: stack["change"] for key, stack in found.items()} == {DIGITS: "changed"}


def test_a_new_platform_and_a_deleted_one(checkout: Checkout) -> None:
    checkout.write("platforms/prod.tfvars", 'name = "prod"\n')
    checkout.commit()
    assert {key: stack["change"] for key, stack in checkout.changed().items()} == {"prod/platform": "added"}
    checkout.git("rm", "-q", "platforms/prod.tfvars")
    assert {key: s["change"] for key, s in checkout.changed("HEAD").items()} == {"prod/platform": "deleted"}


def test_an_invalid_job_is_said_and_hides_no_other(checkout: Checkout) -> None:
    checkout.append("training/train.py", "# more\n")
    checkout.job("jobs/tune.yaml", {"name": "tune", "colour": "red"})
    done = checkout.sagefit("changed", "--base", "main", "--json", check=2)
    report = json.loads(done.out)
    assert [stack["stack"] for stack in report["stacks"]] == [DIGITS]
    assert [error["file"] for error in report["errors"]] == ["jobs/tune.yaml"]
    assert "colour: unknown key" in report["errors"][0]["error"]
    people = checkout.sagefit("changed", "--base", "main", check=2)
    assert DIGITS in people.out
    assert "jobs/tune.yaml:" in people.err


def test_an_invalid_job_of_another_commit_is_named_as_the_repository_names_it(checkout: Checkout) -> None:
    checkout.job("jobs/tune.yaml", {"name": "tune", "colour": "red"})
    checkout.commit()
    done = checkout.sagefit("changed", "--base", "main", "--head", "HEAD", check=2)
    assert done.err.startswith("error: jobs/tune.yaml:")


def test_a_submodule_with_the_code_of_a_job(checkout: Checkout, origin: Checkout) -> None:
    checkout.job("jobs/tune.yaml", {"name": "tune", "code.source_dir": "../parts/training", "inputs": None})
    checkout.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin.path), "parts")
    checkout.commit()
    part = Checkout(checkout.path / "parts", checkout.home)
    part.append("training/train.py", "# more\n")
    part.commit()
    assert checkout.changed("HEAD")[TUNE]["because"] == ["parts (code)"]


def test_a_job_that_moves_and_cannot_be_read_is_not_deleted(checkout: Checkout) -> None:
    checkout.git("mv", "jobs/digits.yaml", "jobs/first.yaml")
    checkout.append("jobs/first.yaml", "colour: red\n")
    report = json.loads(checkout.sagefit("changed", "--base", "main", "--json", check=2).out)
    assert report["stacks"] == []


def test_the_page_for_people_names_the_first_files(checkout: Checkout) -> None:
    for name in "abcde":
        checkout.write(f"training/{name}.py", "")
    told = checkout.sagefit("changed", "--base", "main").out
    assert "training/a.py (code); training/b.py (code); training/c.py (code); and 2 more" in told


def test_nothing_changed_is_said(checkout: Checkout) -> None:
    assert "no job or platform differs" in checkout.sagefit("changed", "--base", "main").err


def test_where_nothing_is_touched_nothing_is_planned_and_applied(checkout: Checkout, tmp_path: Path) -> None:
    checkout.sagefit("plan", "--changed", "--base", "main", "--out", tmp_path / "plans")
    assert json.loads((tmp_path / "plans" / "stacks.json").read_text(encoding="utf-8")) == {"stacks": []}
    assert "nothing to apply" in checkout.sagefit("apply", "--reviewed", tmp_path / "plans").err
    assert "no reviewed plan" in checkout.sagefit("apply", "--reviewed", tmp_path, check=2).err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan"], "name one JOB"),
        (["plan", "digits", "--changed"], "name one JOB"),
        (["plan", "--changed", "--all", "--out", "x"], "name one JOB"),
        (["plan", "--changed", "--out", "x"], "--base REF is missing"),
        (["plan", "--all"], "--out DIR is missing"),
        (["plan", "digits", "--no-changes"], "--out DIR is missing"),
        (["apply"], "name a JOB"),
        (["apply", "digits", "--replan"], "name a JOB"),
        (["comment", "."], "GITHUB_REF"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_together_is_refused(
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITLAB_CI", "GITHUB_REF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.argv", ["sagefit", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_project_in_a_folder_of_its_repository(origin: Checkout, tmp_path: Path) -> None:
    whole = Checkout(tmp_path / "whole", tmp_path / "home")
    shutil.copytree(origin.path, whole.path / "ml" / "sagefit", ignore=shutil.ignore_patterns(".git"))
    whole.job("ml/sagefit/jobs/digits.yaml", {"code.source_dir": "../../training"})
    whole.write("ml/training/train.py", "")
    whole.git("init", "-q", "-b", "main")
    whole.commit()
    whole.append("ml/training/train.py", "# more\n")
    inner = Checkout(whole.path / "ml" / "sagefit", whole.home)
    assert inner.changed()[DIGITS]["because"] == ["ml/training/train.py (code)"]
    whole.commit()
    assert inner.changed("HEAD~1", "--head", "HEAD")[DIGITS]["because"] == ["ml/training/train.py (code)"]


def test_an_unknown_ref(checkout: Checkout) -> None:
    done = checkout.sagefit("changed", "--base", "nowhere", check=2)
    assert "git knows no commit 'nowhere'" in done.err
    assert "fetch" in done.err
    assert "git knows no commit" in checkout.sagefit("changed", "--base", "--output=x", check=2).err


def test_a_shallow_clone_without_the_common_commit(checkout: Checkout, tmp_path: Path) -> None:
    checkout.append("training/train.py", "# mine\n")
    checkout.commit()
    checkout.git("checkout", "-q", "main")
    checkout.append("training/train.py", "# theirs\n")
    checkout.commit()
    shallow = clone(f"file://{checkout.path}", tmp_path / "shallow", tmp_path / "home", "--depth", "1")
    shallow.git("fetch", "-q", "--depth", "1", "origin", "work:theirs")
    done = shallow.sagefit("changed", "--base", "origin/main", "--head", "theirs", check=2)
    assert "shallow" in done.err
    assert "fetch-depth: 0" in done.err


def test_histories_without_a_common_commit(checkout: Checkout) -> None:
    checkout.git("checkout", "-q", "--orphan", "other")
    checkout.commit()
    assert "name another --base" in checkout.sagefit("changed", "--base", "main", check=2).err


def test_outside_of_a_repository(checkout: Checkout) -> None:
    shutil.rmtree(checkout.path / ".git")
    ceiling = {"GIT_CEILING_DIRECTORIES": str(checkout.path.parent)}
    assert "is in no Git repository" in checkout.sagefit("changed", "--base", "main", check=2, **ceiling).err


def test_without_git(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (
        "git is not installed" in checkout.sagefit("changed", "--base", "x", check=2, PATH=str(tmp_path / "empty")).err
    )


def test_odd_names_of_files(checkout: Checkout) -> None:
    name = b"training/\xff \n\xc3\xa9.py"
    Path(os.fsdecode(os.fsencode(checkout.path) + b"/" + name)).write_text("", encoding="utf-8")
    subprocess.run(["git", "-C", str(checkout.path), "add", "-A"], check=True)
    assert list(checkout.changed()) == [DIGITS]
