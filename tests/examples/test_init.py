"""``sagefit init``: a new job from every template loads and renders at once, and nothing is ever overwritten."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli_runner import Sagefit
from sagefit.cli import init as commands
from sagefit.errors import INVALID, REFUSED, SagefitError
from sagefit.examples.find import Example
from sagefit.examples.template import adapted, create, template, templates
from sagefit.job import load_job
from sagefit.paths import ROOT
from sagefit.planning import plan

TEMPLATES = {example.name: example for example in templates()}


def comments(path: Path) -> list[str]:
    found = re.findall(r"#.*", path.read_text(encoding="utf-8"))
    return [comment for comment in found if comment != "# these attempts last seconds; leave it out for real jobs"]


def body(path: Path) -> str:
    """What a job renders to, without comments, name, interval, paths and the lay-out, which depends on their length."""
    text = re.sub(r"^ *#.*|\bpoll_seconds += \d+", "", plan(load_job(str(path))).text, flags=re.MULTILINE)
    text = re.sub(r'"\.\./[^"]*"', "PATH", text).replace(f'"{path.stem}"', "NAME", 1)
    return re.sub(r"[\s,]+", " ", text)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_new_job_loads_and_renders_to_what_its_template_does(name: str, tmp_path: Path) -> None:
    written = create("my-job", TEMPLATES[name], tmp_path)
    job = load_job(str(tmp_path / "my-job.yaml"))
    assert job.name == "my-job"
    assert all(path.exists() for path in written)
    assert body(tmp_path / "my-job.yaml") == body(TEMPLATES[name].path)
    assert comments(tmp_path / "my-job.yaml") == comments(TEMPLATES[name].path)
    assert job.resources.poll_interval is None


@pytest.mark.parametrize(
    "resources",
    [
        "{ max_runtime: 5m, poll_interval: 2s, instance_type: ml.m5.large }",
        "{ max_runtime: 5m, instance_type: ml.m5.large, poll_interval: 2s }",
        "{ poll_interval: 2s, max_runtime: 5m, instance_type: ml.m5.large } # here",
        "\n  max_runtime: 5m\n  poll_interval: 2s\n  instance_type: ml.m5.large",
    ],
    ids=["between", "last", "first", "line"],
)
def test_a_new_job_is_not_looked_at_every_second(resources: str, tmp_path: Path) -> None:
    path = tmp_path / "own" / "own.yaml"
    path.parent.mkdir()
    (path.parent / "train.py").touch()
    path.write_text(
        "platform: dev\ncode: { source_dir: ., entry_point: train.py }\n"
        f'image: {{ framework: sklearn, version: "1.2-1" }}\nresources: {resources}\n',
        encoding="utf-8",
    )
    assert load_job(str(path)).resources.poll_interval == 2
    create("new", Example(path), tmp_path / "jobs")
    kept = load_job(str(tmp_path / "jobs" / "new.yaml")).resources
    assert (kept.max_runtime, kept.instance_type, kept.poll_interval) == (300, "ml.m5.large", None)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_new_job_needs_nothing_of_its_template(name: str, tmp_path: Path) -> None:
    """Not even where the template lay: it is moved away."""
    create("my-job", TEMPLATES[name], tmp_path / "jobs")
    assert str(ROOT) not in (tmp_path / "jobs" / "my-job.yaml").read_text(encoding="utf-8")
    shutil.move(tmp_path / "jobs", tmp_path / "elsewhere")
    assert plan(load_job(str(tmp_path / "elsewhere" / "my-job.yaml"))).text


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_two_sources_have_one_place(name: str) -> None:
    _, copies = adapted(TEMPLATES[name], "my-job")
    assert [place for place, count in Counter(copy.place for copy in copies).items() if count > 1] == []


@pytest.mark.parametrize("there", ["taken.yaml", "taken.yml", "taken.tfvars", "taken/notes.txt"])
def test_what_is_there_stays(there: str, tmp_path: Path) -> None:
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SagefitError, match=r"in the way: .*taken(\.y|\.t|;)") as refused:
        create("taken", template("minimal"), tmp_path)
    assert refused.value.exit_code == REFUSED
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / there).read_text(encoding="utf-8") == "mine"


def test_a_name_in_the_template_is_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "train.py").write_text("", encoding="utf-8")
    (folder / "own.yaml").write_text(
        '# Mine.\nname: other # stays away\nplatform: dev\ncode: { source_dir: "src", entry_point: train.py } # here\n'
        'image: { framework: sklearn, version: "1.2-1" }\nattempts: [{ name: only, instance_type: ml.m5.large }]\n',
        encoding="utf-8",
    )
    create("new", Example(folder / "own.yaml"), tmp_path)
    text = (tmp_path / "new.yaml").read_text(encoding="utf-8")
    assert "name: other" not in text
    assert "code: { source_dir: new/src, entry_point: train.py } # here\n" in text
    assert load_job(str(tmp_path / "new.yaml")).name == "new"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["quickstart"], REFUSED, "in the way: jobs/quickstart.yaml, jobs/quickstart.tfvars"),
        (["new", "--template", "sklern"], INVALID, "did you mean sklearn?"),
        (["New"], INVALID, "'New' is no name of a job"),
        (["n" * 41], INVALID, "up to 40 lower-case letters"),
        ([], INVALID, "name the new job"),
    ],
)
def test_what_cannot_be_made_is_refused(words: list[str], code: int, says: str, tmp_path: Path) -> None:
    before = sorted((ROOT / "jobs").iterdir())
    done = Sagefit(tmp_path)("init", *words, check=code)
    assert says in done.err
    assert sorted((ROOT / "jobs").iterdir()) == before


@pytest.mark.parametrize("name", ["minimal", "own-container", "mxnet"])
def test_what_comes_next_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = TEMPLATES[name]
    monkeypatch.setattr(commands, "create", lambda name, like: create(name, like, tmp_path))
    done = CliRunner().invoke(commands.app, ["my-job", "--template", example.name])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "my-job.yaml").exists()
    assert "make size NAME=my-job" in done.stdout
    assert ("planned only: " in done.stderr) == bool(example.planned_only)
    assert ("CLOUD=local" in done.stdout) == (not example.planned_only)
    assert ("make image NAME=my-job" in done.stdout) == bool(load_job(str(example.path)).image.build)
    assert f"{example.path.parent.name}/README.md" in done.stderr


def test_templates_are_listed(tmp_path: Path) -> None:
    out = Sagefit(tmp_path)("init", "--list").out
    for example in TEMPLATES.values():
        assert re.search(rf"^{re.escape(example.name)} +{re.escape(example.shows[:40])}", out, re.MULTILINE)
