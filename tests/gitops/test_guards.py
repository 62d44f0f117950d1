"""A change of what reviews and applies is a finding of its own, which the change itself cannot hide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitops.checkouts import Checkout
from sagefit.errors import BLOCKED, INVALID, REFUSED
from sagefit.gitops.git import FileChange, Repository
from sagefit.gitops.guards import GUARDS, guarded

OF = {
    ".github/workflows/plan.yml": "pipelines",
    ".gitlab-ci.yml": "pipelines",
    "CODEOWNERS": "pipelines",
    "docs/CODEOWNERS": "pipelines",
    "data/.gitattributes": "pipelines",
    "atlantis.yaml": "pipelines",
    "Makefile": "reviewer",
    "python/sagefit/reviewing/judge.py": "reviewer",
    "python/sagefit/memory/vision.json": "reviewer",
    "policies/checks/roles.py": "reviewer",
    "tools/ship_launcher.py": "reviewer",
    ".sagefit-review.yaml": "settings of the review",
    ".checkov.yaml": "settings of the review",
    "requirements.lock": "packages",
    "requirements-checkov.lock": "packages",
    "job/.terraform.lock.hcl": "packages",
    "modules/training-job/instances.csv": "tables",
    "modules/training-job/limits.json": "tables",
    "modules/training-job/launcher/__main__.py": "tables",
    "backend_override.tf": "state and providers",
    "job/override.tf.json": "state and providers",
}
NOT = (
    "jobs/a.yaml",
    "jobs/a.tfvars",
    "platforms/dev.tfvars",
    "training/requirements.txt",
    "training/Makefile",
    "training/python/train.py",
    "jobs/a.trace/modules/x/y.json",
    "modules/training-job/README.md",
    "docs/review.md",
    "examples/override.tf",
)


def _of(path: str, before: str | None = None, after: str | None = None, place: str = ".") -> list[str]:
    texts = [None if text is None else text.encode() for text in (before, after)]
    changes = [FileChange(Path(path))]
    found = guarded(changes, Path(place), lambda _: texts[0], lambda _: texts[1])
    return [each.what for each in found]


@pytest.mark.parametrize("path", OF)
def test_what_decides(path: str) -> None:
    assert _of(path) == [OF[path]]


@pytest.mark.parametrize("path", NOT)
def test_what_decides_nothing(path: str) -> None:
    assert _of(path) == []


def test_every_kind_is_asked_above() -> None:
    assert set(OF.values()) == {guard.what for guard in GUARDS} | {"state and providers"}


def test_in_a_folder_of_a_repository_sagefit_s_files_are_below_it_and_pipelines_above() -> None:
    assert _of("ml/python/sagefit/deploy.py", place="ml") == ["reviewer"]
    assert _of("python/sagefit/deploy.py", place="ml") == []
    assert _of(".github/workflows/plan.yml", place="ml") == ["pipelines"]
    assert _of("ml/.github/workflows/plan.yml", place="ml") == []


_BACKEND = 'terraform {\n  backend "s3" {\n    bucket = "BUCKET"\n  }\n}\n'
_PROVIDER = 'provider "aws" {\n  assume_role {\n    role_arn = "ARN"\n  }\n}\n'
_RESOURCE = 'resource "aws_s3_bucket" "a" {\n  bucket = "BUCKET"\n}\n'


@pytest.mark.parametrize(
    ("before", "after", "decides"),
    [
        (_BACKEND, _BACKEND.replace("BUCKET", "other"), True),
        (None, _BACKEND, True),
        (_BACKEND, None, True),
        (_RESOURCE, _RESOURCE + "terraform{\n}", True),
        (_PROVIDER, _PROVIDER.replace("ARN", "other"), True),
        (_RESOURCE, f"/* */ {_PROVIDER}{_RESOURCE}", True),
        (_RESOURCE, _RESOURCE.replace("BUCKET", "other"), False),
        (_BACKEND + _RESOURCE, _RESOURCE.replace("BUCKET", "other") + _BACKEND, False),
        (None, _RESOURCE, False),
    ],
)
@pytest.mark.parametrize("path", ["main.tf", "job/main.tf", "modules/training-job/main.tf"])
def test_of_terraform_s_files_backend_and_providers_decide(
    path: str, before: str | None, after: str | None, decides: bool
) -> None:
    assert bool(_of(path, before, after)) is decides


@pytest.mark.parametrize(
    ("text", "decides"),
    [('{"provider": {"aws": {"region": "x"}}}', True), ('{"resource": {}}', False), ("{", True), ("[]", True)],
)
def test_the_same_in_json(text: str, decides: bool) -> None:
    assert bool(_of("main.tf.json", "{}", text)) is decides


def test_a_file_that_was_moved_away_counts() -> None:
    moved = [FileChange(Path("old/ci.yml"), Path(".github/workflows/ci.yml"))]
    found = [each.path.as_posix() for each in guarded(moved, Path(), lambda _: None, lambda _: None)]
    assert found == [".github/workflows/ci.yml"]


def test_a_change_of_the_reviewer_alone_has_a_page_a_code_and_a_comment(checkout: Checkout, tmp_path: Path) -> None:
    checkout.write(".sagefit-review.yaml", "fail_on: high\n")
    checkout.git("checkout", "-q", "main")
    checkout.commit("Settings")
    checkout.git("checkout", "-q", "-b", "lie")
    checkout.append("python/sagefit/reviewing/judge.py", "# nothing dangerous\n")
    checkout.write(".github/workflows/plan.yml", "on: push\n")
    checkout.write(".sagefit-review.yaml", "fail_on: null\n")  # what counts is the base
    assert [each["file"] for each in _report(checkout)["reviewer"]] == [
        ".github/workflows/plan.yml",
        ".sagefit-review.yaml",
        "python/sagefit/reviewing/judge.py",
    ]
    out = tmp_path / "plans"
    done = checkout.sagefit("plan", "--changed", "--base", "main", "--out", out, check=BLOCKED)
    assert "blocked, alters what reviews it: pipelines (1 files), settings of the review (1 files)" in done.out
    assert json.loads((out / "stacks.json").read_text(encoding="utf-8"))["stacks"][0]["code"] == BLOCKED
    page = (out / "change" / "page.md").read_text(encoding="utf-8")
    assert "**critical** `reviewer-changed`" in page
    assert "`python/sagefit/reviewing/judge.py`" in page
    assert "The pages here were made with them" in page
    told = checkout.sagefit("comment", out, "--print").out
    assert told.startswith("## Plan: blocked\n\n**1 critical**\n\n### This change alters what reviews it: blocked\n")
    assert "| reviewer | `python/sagefit/reviewing/judge.py` |" in told
    (out / "change" / "page.md").write_text("## This change alters nothing\n", encoding="utf-8")
    refused = checkout.sagefit("comment", out, check=REFUSED)
    assert "the page of the change was edited" in refused.err


def test_the_base_may_accept_a_file_for_a_time_or_judge_it_less(checkout: Checkout, tmp_path: Path) -> None:
    accepted = "{rule: reviewer-changed, address: 'tools/*', reason: tools are our own, expires: 2099-01-01}"
    checkout.write(
        ".sagefit-review.yaml", f"fail_on: high\nseverities: {{reviewer-changed: medium}}\nsuppress: [{accepted}]\n"
    )
    checkout.git("checkout", "-q", "main")
    checkout.commit("Settings")
    checkout.git("checkout", "-q", "-b", "tool")
    checkout.write("tools/new.py", "")
    checkout.sagefit("plan", "--changed", "--base", "main", "--out", tmp_path / "a")
    assert not (tmp_path / "a" / "change").exists()
    checkout.append("Makefile", "# more\n")
    done = checkout.sagefit("plan", "--changed", "--base", "main", "--out", tmp_path / "b")
    assert "alters what reviews it: reviewer (1 files)" in done.out
    assert "Accepted by the repository: `tools/new.py`" in (tmp_path / "b" / "change" / "page.md").read_text("utf-8")


def test_what_was_not_handed_over_is_said(checkout: Checkout, tmp_path: Path) -> None:
    checkout.append("training/train.py", "# more\n")
    checkout.job("jobs/tune.yaml", {"name": "tune", "colour": "red"})
    checkout.write("files.txt", "")
    checkout.commit()
    handed, out = tmp_path / "handed", tmp_path / "out"
    (handed / "other" / "place").mkdir(parents=True)
    (handed / "other" / "place" / "handed.bin").write_bytes(b"x")
    (handed / "other" / "platform").mkdir()
    (handed / "other" / "platform" / "handed.bin").write_bytes(b"x")
    done = checkout.sagefit("seal", handed, "--out", out, "--base", "main", "--head", "HEAD", check=INVALID)
    assert "dev/jobs/digits was not planned" in done.err
    assert "colour: unknown key" in done.err
    assert "other/platform/handed.bin is not for this key, or not of other/platform" in done.err
    told = json.loads((out / "stacks.json").read_text(encoding="utf-8"))["stacks"]
    assert sorted(each["stack"] for each in told) == ["dev/jobs/digits", "files/jobs/tune.yaml", "other/platform"]
    assert (
        "--out is DIR itself"
        in checkout.sagefit("seal", out, "--out", out, "--base", "main", "--head", "HEAD", check=INVALID).err
    )
    assert "name DIR, --out, --base and --head" in checkout.sagefit("seal", handed, check=INVALID).err


def test_nothing_that_a_commit_says_of_itself_changes_how_it_is_read(checkout: Checkout, tmp_path: Path) -> None:
    checkout.write(".gitattributes", "jobs/digits.yaml export-ignore\nnote.txt export-subst ident eol=crlf\n")
    checkout.write("note.txt", "$Format:%H$ $Id$\n")
    checkout.append("jobs/digits.yaml", "# changed\n")
    (checkout.path / "inside").symlink_to("training/train.py")
    (checkout.path / "outside").symlink_to("/etc/passwd")
    (checkout.path / "above").symlink_to("../../secret")
    commit = checkout.commit()
    assert checkout.changed("main", "--head", commit)["dev/jobs/digits"]["change"] == "changed"
    Repository(checkout.path).extract(commit, tmp_path / "tree")
    assert (tmp_path / "tree" / "note.txt").read_bytes() == b"$Format:%H$ $Id$\n"
    assert (tmp_path / "tree" / "jobs" / "digits.yaml").exists()
    assert (tmp_path / "tree" / "inside").resolve() == (tmp_path / "tree" / "training" / "train.py").resolve()
    for name, text in (("outside", "/etc/passwd"), ("above", "../../secret")):
        assert not (tmp_path / "tree" / name).is_symlink()
        assert (tmp_path / "tree" / name).read_text(encoding="utf-8") == text


def test_of_a_branch_its_code_is_named_as_not_judged(checkout: Checkout) -> None:
    checkout.write("job/more.tf", 'output "more" {\n  value = "x"\n}\n')
    checkout.append("python/sagefit/memory/overhead.py", "# more\n")
    checkout.append("modules/training-job/main.tf", "# more\n")
    checkout.append("training/train.py", "# more\n")
    code = (
        "from sagefit.gitops.changed import changed; from sagefit.gitops.looking import left_out, Seen;"
        "from sagefit.cli.branch import code_of;"
        "(found,) = [each for each in changed('main').touched if each.key == 'dev/jobs/digits'];"
        "print(code_of(Seen(found.key, None, left_out(found))))"
    )
    assert checkout.python("-c", code).out.strip() == (
        "**Not judged**: the branch changes code of `dev/jobs/digits`, which was not run: `job/more.tf (root)`, "
        "`modules/training-job/main.tf (module)`, `python/sagefit/memory/overhead.py (rendering)`"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["review"], "name plans or a JOB, or --head REF"),
        (["review", "digits", "--head", "main"], "name plans or a JOB, or --head REF"),
        (["review", "--head", "main", "--policies"], "belong to single plans"),
    ],
)
def test_a_branch_is_looked_at_alone(checkout: Checkout, words: list[str], said: str) -> None:
    assert said in checkout.sagefit(*words, check=INVALID).err


def _report(checkout: Checkout) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = json.loads(checkout.sagefit("changed", "--base", "main", "--json").out)
    return found
