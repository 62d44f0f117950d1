"""What of local data and code is uploaded, and which folders are refused there before anything is created."""

from __future__ import annotations

import os
import re
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.errors import INVALID, SagefitError
from sagefit.job import Job, load_job, secret_texts, uploads
from sagefit.job.left_out import always_left_out
from sagefit.job.upload_rules import outside_problems
from sagefit.job.uploads import look, shipped
from sagefit.paths import TRAINING_JOB_MODULE
from sagefit.planning import plan

STEP: dict[str, Any] = {
    "name": "clean",
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "outputs": ["clean"],
    "resources": {"instance_type": "ml.m5.large"},
}

TERRAFORM = "**/.terraform/**"


def refusal(path: Path) -> str:
    with pytest.raises(SagefitError) as caught:
        load_job(str(path))
    assert caught.value.exit_code == INVALID
    return caught.value.message


def fill(folder: Path, *names: str, size: int = 1_500_000) -> None:
    """Files of ``size`` bytes, none of which takes room on the disk."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)


def rendered(job: Job) -> list[str]:
    """The patterns in the tfvars file, in its order."""
    return re.findall(r"\bexclude +=\s*(\[.*\])", plan(job).text)


def line_of(path: Path, text: str) -> int:
    return path.read_text(encoding="utf-8").splitlines().index(text) + 1


def taken(job: Path, message: str, *, of: str) -> Job:
    """The job with the list that the refusal tells, at ``of``."""
    told = re.search(r'exclude: (\[".*"\])', message)
    assert told, message
    old, text = f"{of}\n", job.read_text(encoding="utf-8")
    assert text.count(old) == 1
    indent = of[: len(of) - len(of.lstrip())]
    job.write_text(text.replace(old, f"{old}{indent}exclude: {told[1]}\n"), encoding="utf-8")
    return load_job(str(job))


@pytest.mark.parametrize(
    ("files", "said", "pattern"),
    [
        ([".git/objects/1"], "a Git repository, .git (1.5 MB)", "**/.git/**"),
        (["a/b/.git/HEAD"], "a Git repository, a/b/.git (1.5 MB)", "**/.git/**"),
        (["x/.terraform/p", "y/.terraform/p"], "Terraform's own folder, x/.terraform and 1 more (3.0 MB)", TERRAFORM),
        (["my env/pyvenv.cfg", "my env/lib/x.py"], "a Python virtual environment, my env (3.0 MB)", "my env/**"),
        (["a[1]/pyvenv.cfg"], "a Python virtual environment, a[1] (1.5 MB)", "a\\\\[1]/**"),
        ([".venv/pyvenv.cfg"], "a Python virtual environment, .venv (1.5 MB)", ".venv/**"),
    ],
)
def test_a_foreign_folder_in_data_is_refused_with_its_size_and_knob(
    tmp_path: Path, files: list[str], said: str, pattern: str
) -> None:
    path = write_job(tmp_path, {"inputs.train": {"uri": "data"}})
    fill(tmp_path / "data", *files)
    message = refusal(path)
    assert message == (
        f"{path}:{line_of(path, '  train:')}: inputs.train: 'data' holds {said}, "
        "and every file of a local input is uploaded\n"
        f'  leave it out, beside uri: exclude: ["{pattern}"]; or, as data, give it an input of its own'
    )
    job = taken(path, message, of="    uri: data")
    assert rendered(job) == [f'["{pattern}"]']
    assert [file.name for file in shipped(tmp_path / "data", job.channels["train"].exclude)] == ["a.csv"]


def test_a_short_input_is_refused_too(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    fill(tmp_path / "data", ".git/HEAD")
    assert f":{line_of(path, '  train: data')}: inputs.train: 'data' holds a Git repository" in refusal(path)


def test_all_of_an_input_is_told_at_once_and_what_is_left_out_already_stays(tmp_path: Path) -> None:
    path = write_job(tmp_path, {"inputs.train": {"uri": "data", "exclude": ["*.md"]}})
    fill(tmp_path / "data", ".git/HEAD", ".terraform/p", *(f"env{i}/pyvenv.cfg" for i in range(3)), size=10)
    message = refusal(path)
    assert "repository, .git (10 bytes), and Terraform's own folder, .terraform (10 bytes), and a Python" in message
    assert "environment, env0 (10 bytes), and 2 more, and every" in message
    assert 'exclude: ["*.md", "**/.git/**", "**/.terraform/**", "env0/**", "env1/**", "env2/**"]' in message


def test_an_input_may_be_such_a_folder_itself(tmp_path: Path) -> None:
    fill(tmp_path / "data", ".git/HEAD", "env/pyvenv.cfg")
    inputs = {"history": "data/.git", "packages": "data/env", "one": "data/.git/HEAD"}
    load_job(str(write_job(tmp_path, {"inputs": inputs})))


def test_nothing_is_found_where_nothing_of_it_is_uploaded(tmp_path: Path) -> None:
    fill(tmp_path / "data", "env/pyvenv.cfg", "a/.git")  # a submodule's .git is a file
    (tmp_path / "data" / ".terraform" / "modules").mkdir(parents=True)
    load_job(str(write_job(tmp_path, {"inputs.train": {"uri": "data", "exclude": ["env/**/*"]}})))


def test_what_a_pattern_leaves_of_a_folder_is_what_counts(tmp_path: Path) -> None:
    fill(tmp_path / "data", "env/pyvenv.cfg", "env/lib/x.py", "env/lib/y.py")
    path = write_job(tmp_path, {"inputs.train": {"uri": "data", "exclude": ["env/lib/**"]}})
    assert "environment, env (1.5 MB)" in refusal(path)


def test_code_leaves_out_the_usual_ones_by_itself_with_their_links(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    fill(tmp_path / "src", ".git/HEAD", ".terraform/p", ".venv/pyvenv.cfg", "deep/.venv/pyvenv.cfg")
    (tmp_path / "src" / ".venv" / "python").symlink_to("/usr/bin/python3")
    (tmp_path / "src" / ".venv" / "lib64").symlink_to(".")
    load_job(str(path))


def test_another_environment_in_code_is_refused_until_it_is_excluded(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    fill(tmp_path / "src", "venv/pyvenv.cfg")
    (tmp_path / "src" / "venv" / "python").symlink_to("/nowhere/python3")
    message = refusal(path)
    assert message == (
        f"{path}:{line_of(path, '  source_dir: src')}: code.source_dir: 'src' holds a Python virtual environment, "
        "venv (1.5 MB), and every file of the code is uploaded\n"
        '  leave it out: code.exclude: ["venv/**"]'
    )
    taken(path, message, of="  source_dir: src")


def test_steps_are_looked_at_as_the_job_is(tmp_path: Path) -> None:
    path = write_job(tmp_path, {"processing": [STEP | {"inputs": {"raw": {"uri": "raw"}}}]})
    fill(tmp_path, "raw/.git/HEAD", "src/venv/pyvenv.cfg")
    message = refusal(path)
    assert "processing[0].code.source_dir: 'src' holds a Python virtual environment" in message
    assert "processing[0].inputs.raw: 'raw' holds a Git repository" in message
    left_out = STEP | {
        "inputs": {"raw": {"uri": "raw", "exclude": ["**/.git/**"]}},
        "code": STEP["code"] | {"exclude": ["venv/**"]},
    }
    fill(tmp_path, "raw/x.csv")
    changes = {"processing": [left_out], "code.exclude": ["venv/**"], "resources.poll_interval": None}
    job = load_job(str(write_job(tmp_path, changes)))
    assert rendered(job) == ['["venv/**"]', '["venv/**"]', '["**/.git/**"]']


@pytest.mark.parametrize("given", [{"uri": "s3://bucket/prefix/"}, {"from": "clean/clean"}])
def test_only_local_data_can_be_left_out(tmp_path: Path, given: dict[str, str]) -> None:
    changes = {"inputs.train": {**given, "exclude": ["*.md"]}, "processing": [STEP]}
    assert "inputs.train.exclude: leaves files of a local path out" in refusal(write_job(tmp_path, changes))


@pytest.mark.parametrize("given", [{"uri": "s3://bucket/prefix/"}, {"from": "clean/clean"}])
def test_only_local_data_of_a_step_can_be_left_out(tmp_path: Path, given: dict[str, str]) -> None:
    later = STEP | {"name": "later", "inputs": {"raw": {**given, "exclude": ["*.md"]}}}
    message = refusal(write_job(tmp_path, {"processing": [STEP, later]}))
    assert message.count("processing[1].inputs.raw.exclude: leaves files of a local path out") == 1


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each folder was listed."""
    count: Counter[str] = Counter()
    scandir = os.scandir

    def counted(path: Path) -> Any:
        count[str(path)] += 1
        return scandir(path)

    monkeypatch.setattr("sagefit.job.uploads.os.scandir", counted)
    return count


def test_a_large_tree_is_listed_once_and_what_is_left_out_never(tmp_path: Path, opened: Counter[str]) -> None:
    fill(tmp_path / "data", *(f"{i % 50}/{i}.csv" for i in range(950)), *(f"raw/{i}/x" for i in range(50)), size=0)
    job = write_job(tmp_path, {"inputs.train": {"uri": "data", "exclude": ["raw/**"]}})
    opened.clear()
    load_job(str(job))
    listed = {path: times for path, times in opened.items() if path.startswith(str(tmp_path / "data"))}
    assert set(listed.values()) == {1}
    assert len(listed) == 51  # the folder itself and those of the data


def test_jobs_share_the_look_at_a_folder_of_code(
    tmp_path: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_SETTLED", -3600)
    allows = [{"code.allow_sensitive": ["a/job1.tfvars"]}, {}, {"code.allow_sensitive": ["a/job1.tfvars"]}]
    paths = [write_job(tmp_path, {"name": f"job{i}", **more}, file=f"job{i}.yaml") for i, more in enumerate(allows)]
    code = paths[0].parent / "src"
    fill(code, "a/x.py", "a/job1.tfvars", "b/y.py")
    assert [_names_of(path) for path in paths] == [{"train.py", "a/x.py", "b/y.py", *more} for more in _OTHERS]
    assert {opened[str(folder)] for folder in (code, code / "a", code / "b")} == {1}


def test_a_folder_that_changed_is_looked_through_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_SETTLED", 0.05)
    path = write_job(tmp_path, {})
    code = path.parent / "src"
    fill(code, "a/x.py")
    assert _names_of(path) == {"train.py", "a/x.py"}  # it may be too new to be kept
    time.sleep(0.1)
    assert _names_of(path) == _names_of(path) == {"train.py", "a/x.py"}
    fill(code, "a/y.py")
    assert _names_of(path) == {"train.py", "a/x.py", "a/y.py"}
    time.sleep(0.1)
    assert _names_of(path) == {"train.py", "a/x.py", "a/y.py"}
    (code / "a" / "x.py").unlink()
    assert _names_of(path) == {"train.py", "a/y.py"}
    fill(code, "a/.env")
    with pytest.raises(SagefitError, match=r"a/\.env"):
        load_job(str(path))


_OTHERS: tuple[set[str], ...] = ({"a/job1.tfvars"}, set(), {"a/job1.tfvars"})


def _names_of(path: Path) -> set[str]:
    """The files of the code of a job that is read now."""
    (code,) = (upload for upload in load_job(str(path)).uploads if upload.is_code)
    return set(code.look().files)


def test_the_search_ends_where_terraform_refuses_the_number(
    tmp_path: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Level by level, so a repository at the top is found however much lies beside it."""
    monkeypatch.setattr(uploads, "_MOST_SEEN", 100)
    fill(tmp_path, ".git/HEAD", *(f"{i}/{j}/x" for i in range(60) for j in range(2)), size=0)
    opened.clear()
    assert [found.folder for found in look(tmp_path, []).foreign] == [".git"]
    assert len(opened) < 30


def test_links_are_not_followed(tmp_path: Path, opened: Counter[str]) -> None:
    fill(tmp_path, "elsewhere/.git/HEAD", "data/x.csv")
    (tmp_path / "data" / "there").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / ".git").symlink_to(tmp_path / "elsewhere" / ".git")
    (tmp_path / "data" / "here").symlink_to(".")
    (tmp_path / "data" / "itself").symlink_to("itself")
    found = look(tmp_path / "data", [])
    assert found.links == [".git", "here", "itself", "there"]
    assert found.foreign == []
    assert set(opened) == {str(tmp_path / "data")}
    assert shipped(tmp_path / "data", []) == [tmp_path / "data" / "x.csv"]


@pytest.mark.parametrize("pattern", ["{a", "[z-a]", "[[a]", "[a&&b]", "[a--b]", "[!a", "\\", "\\1", "(", ""])
def test_no_pattern_is_a_traceback(tmp_path: Path, pattern: str) -> None:
    fill(tmp_path, "x.csv")
    assert shipped(tmp_path, [pattern]) == [tmp_path / "x.csv"]


@pytest.mark.parametrize("pattern", ["[!a].csv", "[x-z].csv", "\\x.csv", "{x,y}.csv", "**", "**/*.csv"])
def test_a_pattern_is_that_of_terraform(tmp_path: Path, pattern: str) -> None:
    fill(tmp_path, "x.csv")
    assert shipped(tmp_path, [pattern]) == []


def test_terraform_leaves_the_same_out_of_code() -> None:
    text = (TRAINING_JOB_MODULE / "objects.tf").read_text(encoding="utf-8")
    listed = text.partition("_always_excluded = [")[2].partition("]")[0]
    assert tuple(re.findall(r'"([^"]+)"', listed)) == always_left_out("${var.name}")


def test_what_is_left_out_is_dealt_out_to_no_instance(tmp_path: Path) -> None:
    fill(tmp_path / "data", "b.md")
    train = {"uri": "data", "distribution": "ShardedByS3Key"}
    attempts = [{"name": "two", "instance_type": "ml.m5.large", "instance_count": 2}]
    plan(load_job(str(write_job(tmp_path, {"attempts": attempts, "inputs.train": train}))))
    job = write_job(tmp_path, {"attempts": attempts, "inputs.train": train | {"exclude": ["*.md"]}})
    with pytest.raises(SagefitError, match="deals out 1 file to the 2 instances"):
        plan(load_job(str(job)))


def test_only_local_data_can_be_let_through(tmp_path: Path) -> None:
    changes = {"inputs.train": {"uri": "s3://bucket/prefix/", "allow_sensitive": [".env"]}}
    assert "inputs.train.allow_sensitive: lets files of a local path be uploaded" in refusal(
        write_job(tmp_path, changes)
    )


def test_a_list_that_allows_nothing_is_refused(tmp_path: Path) -> None:
    path = write_job(tmp_path, {"code.allow_sensitive": ["gone.pem"]})
    assert "code.allow_sensitive[0]: no file 'gone.pem' is uploaded" in refusal(path)


def test_many_secrets_are_one_problem_with_one_list(tmp_path: Path) -> None:
    path = write_job(tmp_path, {"code.exclude": ["*.md"]})
    fill(tmp_path / "src", *(f"{i}.pem" for i in range(5)), "a[1].key", size=1)
    message = refusal(path)
    assert message.count("code.source_dir") == 1
    assert "key store, 2.pem, and 3 more; and what is uploaded stays" in message
    assert 'code.exclude: ["*.md", "0.pem", "1.pem", "2.pem", "3.pem", "4.pem", "a\\\\[1].key"]' in message


def test_the_rendered_file_would_be_uploaded_beside_the_script(tmp_path: Path) -> None:
    """It is not there before the first plan, and Terraform would refuse it in its own words."""
    data = {"inputs.train": {"uri": "."}}
    assert "'.' holds variables of Terraform, digits.tfvars;" in refusal(write_job(tmp_path, data))
    load_job(str(write_job(tmp_path, {"inputs.train": {"uri": ".", "exclude": ["*.tfvars"]}})))


def test_code_never_holds_the_rendered_file(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path, {"code.source_dir": ".", "code.entry_point": "src/train.py"})))
    fill(tmp_path, "digits.tfvars", "src/digits.tfvars")
    assert {path.suffix for path in load_job(str(job.path)).uploads[0].files()} == {".py", ".csv", ".yaml"}
    fill(tmp_path, "src/other.tfvars")
    assert "'.' holds variables of Terraform, src/other.tfvars;" in refusal(job.path)


def test_what_is_only_looked_at_or_destroyed_may_hold_secrets(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    fill(tmp_path / "src", ".env")
    assert load_job(str(path), uploads=False).name == "digits"


@pytest.mark.parametrize("place", ["src", "data"])
def test_what_is_no_file_is_refused(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_job(tmp_path)
    os.mkfifo(tmp_path / place / "pipe")
    monkeypatch.chdir(tmp_path / place)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    message = refusal(path)
    assert "pipe is a named pipe, and no file" in message
    assert "socket is a socket, and no file" in message
    changes = {"code.exclude": ["pipe", "socket"], "inputs.train": {"uri": "data", "exclude": ["pipe", "socket"]}}
    load_job(str(write_job(tmp_path, changes)))


def test_an_input_is_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "inputs.train: 'pipe' is a named pipe, and no file" in refusal(write_job(tmp_path, {"inputs.train": "pipe"}))


def test_links_of_data_lead_to_files_of_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    path = write_job(project)
    fill(tmp_path, "outside/x.csv", "project/shared/y.csv", size=5)
    (project / "data" / "y.csv").symlink_to("../shared/y.csv")
    load_job(str(path))
    for name, target in {"x.csv": "../../outside/x.csv", "folder": "../shared", "nothing": "gone"}.items():
        (project / "data" / name).symlink_to(target)
        message = refusal(path)
        assert f"inputs.train: {name} is a link to a folder, to nothing, or out of the project" in message
        assert f'leave it out, beside uri: exclude: ["{name}"]' in message
        (project / "data" / name).unlink()


def test_the_project_is_the_checkout(tmp_path: Path) -> None:
    """Without one it is what lies around ``jobs/``."""
    fill(tmp_path, "top/.git/HEAD", "top/deep/jobs/x", "top/other/x.csv", "apart/jobs/x", "apart/data/x", "x.csv")
    checked_out = write_job(tmp_path / "top" / "deep" / "jobs", {"inputs.train": "../../other"})
    load_job(str(checked_out))
    apart = write_job(tmp_path / "apart" / "jobs", {"inputs.train": "../data"})
    load_job(str(apart))
    for folder, outside in ((checked_out.parent, "../../../x.csv"), (apart.parent, "../../x.csv")):
        path = write_job(folder, {"inputs.train": outside})
        message = refusal(path)
        assert f"inputs.train: '{outside}' ({tmp_path / 'x.csv'}) is outside of the job's project, and" in message
        assert f'let the platform allow it, in platforms/dev.tfvars: upload_folders = ["{tmp_path}"]' in message


def test_a_platform_allows_folders_in_its_file_and_as_it_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagefit.job.project.PLATFORMS", tmp_path / "platforms")
    shared = tmp_path / "shared"
    fill(tmp_path, "platforms/dev.tfvars", "shared/x.csv", "shared other/x.csv", "project/x", size=0)
    platform = tmp_path / "platforms" / "dev.tfvars"
    platform.write_text(f'name = "dev" # ours\nupload_folders = [\n  "{shared}",\n]\n', encoding="utf-8")
    job = load_job(str(write_job(tmp_path / "project", {"inputs.train": "../shared"})))
    load_job(str(write_job(tmp_path / "project", {"inputs.train": "../shared/x.csv"})))
    assert "is outside of the job's project" in refusal(
        write_job(tmp_path / "project", {"inputs.train": "../shared other"})
    )
    assert list(outside_problems(job, [str(shared)])) == []
    assert "the platform dev as it is applied does not allow it" in next(outside_problems(job, [])).message
    platform.write_text('upload_folders = "oh no\n', encoding="utf-8")
    assert "upload_folders cannot be read" in refusal(write_job(tmp_path / "project", {"inputs.train": "../shared"}))


@pytest.mark.parametrize("place", ["src", "data"])
def test_limits_are_told_before_terraform_starts(tmp_path: Path, place: str) -> None:
    path = write_job(tmp_path)
    fill(tmp_path / place, *(f"{i}.csv" for i in range(1000)), size=0)
    assert f"'{place}' has 1,001 files, and Terraform uploads 1,000" in refusal(path)
    for i in range(1000):
        (tmp_path / place / f"{i}.csv").unlink()
    fill(tmp_path / place, "large.bin", size=5_000_000_001)
    assert f"'{place}' has 5.0 GB, and Terraform uploads 5.0 GB" in refusal(path)


def test_only_small_texts_are_read_and_the_smallest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "glpat" + "-" + "a1B2" * 5
    for name, size in {"large": secret_texts.SMALL, "b": 40, "a": 20}.items():
        (tmp_path / name).write_text(f"{'x' * size}\n{token}", encoding="utf-8")
    paths = [tmp_path / name for name in ("large", "b", "a")]
    assert secret_texts.secrets_in(paths) == dict.fromkeys((paths[2], paths[1]), (2, "a token of GitLab"))
    monkeypatch.setattr(secret_texts, "MOST", 50)
    assert list(secret_texts.secrets_in(paths)) == [paths[2]]
