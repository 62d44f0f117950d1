"""A job file that is made to confuse: the reader of a diff, the parser, or the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_files import VALID, write_job
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.planning import hcl
from security.conftest import note

FIELDS = (
    *("name", "platform", "description", "code.source_dir", "code.entry_point", "image.framework", "image.version"),
    *("inputs.train", "hyperparameters.epochs", "environment.LEVEL", "tags.team", "schedule", "max_price"),
    *("resources.max_runtime", "resources.instance_type", "resources.volume_size_gb", "resources.output_s3_uri"),
    *("resources.checkpoint_local_path", "attempts.0.name", "attempts.0.instance_type", "attempts.0.reason"),
)
#: As YAML writes them.
CHARACTERS = {
    "a NUL": (r"\0", "U+0000"),
    "an escape sequence": (r"\e[2K", "U+001B"),
    "a backspace": (r"\b", "U+0008"),
    "text that runs from right to left": (r"\u202e", "U+202E (right-to-left override)"),
    "an isolate": (r"\u2066", "U+2066 (left-to-right isolate)"),
    "a C1 control": (r"\x9b", "U+009B"),
}


def written(folder: Path, field: str, text: str) -> Path:
    """A valid job whose ``field`` is ``text`` of YAML."""
    path = write_job(folder, {field: "PLACE"})
    path.write_text(path.read_text(encoding="utf-8").replace("PLACE", text), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    """The message, which does not repeat what is long."""
    with pytest.raises(SagefitError) as caught:
        load_job(str(path))
    assert len(caught.value.message) < 2000
    return caught.value.message


@pytest.mark.parametrize("what", CHARACTERS)
def test_what_no_screen_shows_is_refused(what: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text, name = CHARACTERS[what]
    for field in FIELDS:
        path = written(tmp_path, field, f'"a{text}b"')
        line = next(n for n, row in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if text in row)
        assert f"{path}:{line}: the text holds {name}" in refusal(path), field
    path = write_job(tmp_path)
    path.write_text(f'{path.read_text(encoding="utf-8")}"a{text}": 1\n', encoding="utf-8")
    assert f"the text holds {name}" in refusal(path)
    note(request, f"{what} in a job file", "a traceback, or in the rendered file as it is", "refused with its line")


@pytest.mark.parametrize(
    "digits", ["9" * 5000, "1." + "9" * 5000, "9" * 5000 + "m", "9" * 5000 + "e9", "-" + "9" * 5000]
)
def test_endless_numbers_are_refused(digits: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for field in ("resources.max_runtime", "resources.volume_size_gb", "max_price", "resources.instance_count"):
        assert f"{digits[:30]}" in refusal(written(tmp_path, field, digits)), field
    for field in ("hyperparameters.epochs", "environment.LEVEL", "tags.team", "image.version"):
        refusal(written(tmp_path, field, digits))
        refusal(written(tmp_path, field, f'"{digits}"'))
    note(request, "a number of 5,000 digits", "Python's own words", "refused with its line")


def test_a_huge_file_is_refused_at_once(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = write_job(tmp_path)
    with path.open("a", encoding="utf-8") as file:
        file.write("#" + "x" * 100_000_000)
    assert f"{path}: a job file has at most 500,000 bytes" in refusal(path)
    note(request, "a job file of 100 MB", "no end within a minute", "refused at once")


def test_what_is_not_seen_is_escaped_in_the_rendered_file() -> None:
    unseen = "\u200b\u200e\u2060\ufeff\xad"
    assert hcl.quote(f"a{unseen}b") == '"a\\u200b\\u200e\\u2060\\ufeff\\u00adb"'


@pytest.mark.parametrize("text", ["עברית", "العربية", "naïve ☃ 𝄞", "👩\u200d💻", "tab\there"])
def test_other_scripts_are_no_danger(text: str, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"description": text, "tags.note": "x"}
    assert load_job(str(write_job(tmp_path, changes))).description == text
    assert VALID["name"] == "digits"


@pytest.mark.parametrize("place", ["/opt/ml/../../etc", "/opt/ml/..", "/opt/ml/./x/", "//opt", "relative"])
def test_checkpoints_stay_in_the_container_s_folder(place: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    message = refusal(write_job(tmp_path, {"resources.checkpoint_local_path": place}))
    assert "resources.checkpoint_local_path" in message
    note(request, "checkpoints at a path that leads out", "written outside of the host's folder", "refused")
