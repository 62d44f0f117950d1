"""Parts of the embedded cloud by themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sagefit import environments
from sagefit.cloud import control, differences, images
from sagefit_cloud import container_init, quotas, storage
from sagefit_cloud.storage import DataError, S3Uri, relative_name


def test_layers_of_layers_work_where_paths_have_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEFIT_IMAGES", str(tmp_path / "a home with spaces"))
    base = images.environment("base")
    (environments.packages(base) / "only_here.py").write_text("WHERE = 'in the base'\n")
    top = images.layer(images.layer(base, tmp_path / "layer one"), tmp_path / "layer two")
    assert run(top / "bin" / "python", "import only_here; print(only_here.WHERE)") == "in the base"


def test_a_cache_that_cannot_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SAGEFIT_IMAGES", str(tmp_path / "file" / "images"))
    with pytest.raises(images.ImageError, match=r"its environment base-\w+ cannot be made: .*Not a directory: .*/file"):
        images.environment("base")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAGEFIT_IMAGES", str(tmp_path / "images"))
    return tmp_path / "images"


def run(python: Path, code: str) -> str:
    return subprocess.run([python, "-c", code], env={}, capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_is_built_once_and_never_written_to(cache: Path, tmp_path: Path) -> None:
    base = images.environment("base")
    assert base.parent == cache
    built = (base / "pyvenv.cfg").stat().st_mtime_ns
    assert images.environment("base") == base
    assert (base / "pyvenv.cfg").stat().st_mtime_ns == built

    module = next((base / "lib").glob("python*")) / "site-packages" / "in_the_image.py"
    module.write_text("there = True")
    layer = images.layer(images.layer(base, tmp_path / "one"), tmp_path / "two")
    assert run(layer / "bin" / "python3", "import in_the_image, pip; print(in_the_image.there)") == "True"
    assert Path(run(layer / "bin" / "python3", "import sys; print(sys.prefix)")) == layer


def test_half_an_environment_is_built_anew(cache: Path) -> None:
    base = images.environment("base")
    (base / ".complete").unlink()
    (base / "bin" / "python3").unlink()
    assert images.environment("base") == base
    assert (base / "bin" / "python3").exists()
    assert base.is_relative_to(cache)


@pytest.mark.usefixtures("cache")
def test_an_environment_that_cannot_be_built_says_why() -> None:
    with pytest.raises(images.ImageError, match="could not be built: ERROR"):
        images.environment("base", b"./no-such-package-here\n")


@pytest.mark.parametrize(
    ("image", "framework"),
    [
        ("683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1-cpu-py3", "sklearn"),
        ("683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost@sha256:0123", "xgboost"),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:2.6-gpu-py312", "huggingface"),
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/tensorflow-training:2.19-cpu-py312", "tensorflow"),
        ("python", "base"),
        ("127.0.0.1:5000/library/python:3.12", "base"),
    ],
)
def test_images_are_known_by_their_repository(image: str, framework: str) -> None:
    assert images.framework_of(image) == framework


LISTS = {path.name: path for path in images.LISTS.iterdir()}
LOCKS = sorted(name for name in LISTS if name.endswith(".lock"))


@pytest.mark.parametrize("name", LOCKS)
def test_locks_pin_every_package_and_name_no_registry(name: str) -> None:
    text = LISTS[name].read_text(encoding="utf-8")
    assert "://" not in text
    packages = re.findall(r"^(?![#-]|    ).+", text, re.MULTILINE)
    assert packages
    assert all(re.fullmatch(r"[\w.-]+==\S+( ;.*)? \\", row) for row in packages), "each is followed by its digests"
    assert all(re.search(rf"{re.escape(row)}\n    --hash=sha256:[0-9a-f]{{64}}", text) for row in packages)


def test_every_framework_has_a_list_and_a_lock_and_no_list_stays_without_one() -> None:
    frameworks = {images.framework_of(name) for name in images._FRAMEWORKS} - {"base"}
    lists = {Path(name).stem for name in LISTS if name.endswith(".in")}
    locks = {Path(name).stem for name in LOCKS}
    assert frameworks <= lists <= locks
    assert locks - lists == {"pytorch-cpu", "pytorch-cuda"}
    assert set(LISTS) == {f"{name}.in" for name in lists} | set(LOCKS)


def test_builds_of_pytorch_are_of_one_version() -> None:
    found = {
        re.search(r"^torch==([\d.]+)", LISTS[f"pytorch-{build}.lock"].read_text(encoding="utf-8"), re.MULTILINE)
        for build in ("cpu", "cuda")
    }
    assert len({match and match[1] for match in found}) == 1


@pytest.mark.parametrize(
    ("prefix", "key", "name"),
    [
        ("train/", "train/a/b.csv", "a/b.csv"),
        ("train", "train/a/b.csv", "a/b.csv"),
        ("data/tr", "data/train/a.csv", "train/a.csv"),
        ("data/a.csv", "data/a.csv", "a.csv"),
        ("", "a/b.csv", "a/b.csv"),
    ],
)
def test_names_in_a_channel(prefix: str, key: str, name: str) -> None:
    assert relative_name(prefix, key) == name


def test_a_key_cannot_lead_out_of_its_channel(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leads out of the channel"):
        storage._inside(tmp_path, "../escape")


def test_uris() -> None:
    assert str(S3Uri.parse("s3://bucket/a/") / "b") == "s3://bucket/a/b"
    assert str(S3Uri.parse("s3://bucket") / "b") == "s3://bucket/b"


def test_quotas_are_stable_and_unique() -> None:
    names = [quota.name for quota in quotas.quotas().values()]
    assert "ml.m5.large for training warm pool usage" in names
    assert len(names) == len(set(names))
    assert quotas.limit("us-east-1", "ml.unknown.large", quotas.USAGE) == 0


def init(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command under the container's first process, with its life line held open."""
    start = [sys.executable, "-I", "-S", container_init.__file__, *command]
    with subprocess.Popen(
        start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
        process.wait(30)
    return subprocess.CompletedProcess(start, process.returncode, out, err)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["sh", "-c", "kill -TERM $PPID; sleep 30"], 143),
        (["no-such-program"], 127),
    ],
)
def test_exit_codes_are_those_of_containers(command: list[str], code: int) -> None:
    assert init(*command).returncode == code


def test_a_closed_life_line_kills_everything() -> None:
    # One write each: print may need two, and the two processes share the pipe.
    script = "import os, time; os.fork() or os.setsid(); os.write(1, b'%d\\n' % os.getpid()); time.sleep(60)"
    start = [sys.executable, "-I", "-S", container_init.__file__, sys.executable, "-c", script]
    with subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(10) == 137
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("image", "package"),
    [
        ("sklearn", "scikit-learn"),
        ("xgboost", "xgboost"),
        ("pytorch", "torch"),
        ("huggingface", "transformers"),
        ("tensorflow", "tensorflow"),
        ("spark", "pyspark"),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5.1-gpu-py311", "torch"),
    ],
)
def test_what_stands_in_for_an_image_is_told_by_its_lock(image: str, package: str) -> None:
    assert re.fullmatch(rf"{package} \d+(\.\d+)+", images.stand_in(image) or "")


def test_nothing_is_said_of_an_image_that_nothing_stands_in_for() -> None:
    assert [images.stand_in(image) for image in ("base", "", "registry.example.com/own:1")] == [None, None, None]


def test_what_is_different_is_one_line(running: control.CloudStatus) -> None:
    assert running.memory_scale == 1 / 16
    said = "embedded cloud: an instance has 1/16 of its memory and volume"
    assert differences.of_a_run(None) == f"{said}; instances start at once"
    assert re.fullmatch(
        rf"{said}; xgboost \S+ stands in for xgboost 1\.7-1; .*", differences.of_a_run("xgboost", "1.7-1") or ""
    )
