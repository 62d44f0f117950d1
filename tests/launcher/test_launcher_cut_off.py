"""Checkpoints that were cut off are told by their formats, and out of the way before a script looks for its newest."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sagefit_launcher.cut_off import is_cut_off, move_away

from .conftest import OF_FILES, PYTHON, Container, interpreters

pytestmark = OF_FILES

RAW = random.Random(1).randbytes(5000)


def archive() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("archive/data.pkl", RAW)
        file.writestr("archive/version", "3\n")
    return made.getvalue()


def safetensors() -> bytes:
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "weight": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]},
            "bias": {"dtype": "F32", "shape": [250], "data_offsets": [4000, 5000]},
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header + RAW


def hdf5(version: int) -> bytes:
    """A superblock with 8-byte addresses, and 5,000 bytes behind it."""
    addresses = struct.pack("<QQ", 0, 2**64 - 1)
    if version < 2:
        start = bytes([version, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
        start += bytes(4) if version else b""
    else:
        start = bytes([version, 8, 8, 0])
    size = 8 + len(start) + 24 + len(RAW)
    return b"\x89HDF\r\n\x1a\n" + start + addresses + struct.pack("<Q", size) + RAW


FORMATS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "torch.save": ("step-2.pt", archive),
    "an archive of any name": ("latest", archive),
    "safetensors": ("model.safetensors", safetensors),
    "HDF5, superblock 0": ("weights.h5", lambda: hdf5(0)),
    "HDF5, superblock 1": ("weights.h5", lambda: hdf5(1)),
    "HDF5, superblock 3": ("weights", lambda: hdf5(3)),
    "JSON": ("trainer_state.json", lambda: json.dumps({"step": 3, "log": [{'a "}{': 0.5}] * 200}, indent=1).encode()),
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("name", "made"), FORMATS.values(), ids=FORMATS)
def test_a_file_is_cut_off_wherever_it_ends_too_early(tmp_path: Path, name: str, made: Callable[[], bytes]) -> None:
    path, whole = tmp_path / name, made()
    path.write_bytes(whole)
    assert not is_cut_off(path)
    for end in {*range(8, len(whole), 7), len(whole) - 1}:
        path.write_bytes(whole[:end])
        assert is_cut_off(path), end


@pytest.mark.parametrize("name", ["step-2.pt", "w.safetensors", "w.h5", "w.npz", "state.json", "model.ckpt", "a.keras"])
def test_nothing_under_the_name_of_a_checkpoint_is_cut_off(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert is_cut_off(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("done", b""),
        ("step.new", b""),
        ("epoch.txt", b"{ half"),
        ("old.pt", pickle.dumps([RAW])[:-1]),
        ("raw.bin", RAW),
        ("list.json", b"3"),
        ("two.json", b'{"closes": "}"} {"opens": "{"}'),
        ("lines.json", b'{"loss": 1}\n{"loss": 0.5}\n'),
        ("no.safetensors", RAW),
        ("strange.safetensors", struct.pack("<Q", 4) + b"[[]]"),
        ("none.safetensors", struct.pack("<Q", 2) + b"{}"),
        ("odd.h5", b"\x89HDF\r\n\x1a\n" + bytes([9, 0])),
        ("narrow.h5", b"\x89HDF\r\n\x1a\n" + bytes([2, 4, 4, 0]) + b"\xff" * 40),
    ],
)
def test_what_does_not_say_where_it_ends_is_left(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert not is_cut_off(tmp_path / name)
    assert move_away(tmp_path, tmp_path.parent / "away") == []


def test_of_a_step_that_is_a_folder_everything_goes(tmp_path: Path) -> None:
    folder, away = tmp_path / "checkpoints", tmp_path / "cut-off"
    for name in (
        *("run1/checkpoint-500/model.safetensors", "run1/checkpoint-500/global_step500/states.pt"),
        *("run1/checkpoint-1000/model.safetensors", "run1/checkpoint-1000/global_step1000/states.pt"),
        *("epoch=3-step=100.ckpt", "version_2/last.ckpt"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(safetensors() if name.endswith("safetensors") else archive())
    for name in ("run1/checkpoint-1000/global_step1000/states.pt", "version_2/last.ckpt"):
        (folder / name).write_bytes(archive()[:-30])
    assert move_away(folder, away) == ["run1/checkpoint-1000", "version_2/last.ckpt"]
    assert sorted(path.name for path in folder.rglob("*.*") if path.is_file()) == [
        *("epoch=3-step=100.ckpt", "model.safetensors", "states.pt")
    ]
    assert (away / "run1" / "checkpoint-1000" / "model.safetensors").read_bytes() == safetensors()
    assert move_away(folder, away) == []


def test_nothing_is_overwritten_and_links_are_left(tmp_path: Path) -> None:
    folder, away = tmp_path / "checkpoints", tmp_path / "cut-off"
    for folders in (folder, away):
        folders.mkdir()
    (away / "last.pt").write_bytes(b"another")
    for name in ("last.pt", "kept.pt"):
        (folder / name).write_bytes(archive()[:300])
    (tmp_path / "outside.pt").write_bytes(archive()[:300])
    (folder / "link.pt").symlink_to(tmp_path / "outside.pt")
    (folder / "loop").symlink_to(folder)
    assert move_away(folder, away) == ["kept.pt", "last.pt"]
    assert (away / "last.pt").read_bytes() == b"another"
    assert (away / "last.pt.1").read_bytes() == (tmp_path / "outside.pt").read_bytes() == archive()[:300]
    assert names(folder) == ["link.pt", "loop"]


def test_what_cannot_be_moved_stays(tmp_path: Path) -> None:
    (tmp_path / "last.pt").touch()
    (tmp_path / "in-the-way").write_text("a file")
    assert move_away(tmp_path, tmp_path / "in-the-way") == []
    assert (tmp_path / "last.pt").exists()
    assert move_away(tmp_path / "nowhere", tmp_path / "away") == []


SAID = (
    "[sagefit] the checkpoint {} is cut off: whoever wrote it was killed. It is now in /opt/ml/cut-off, out of the "
    "script's way (SAGEFIT_CUT_OFF=keep leaves it)"
)
ANEW = "[sagefit] no other checkpoint is there: the script begins anew"

#: Goes on from its newest checkpoint, as most scripts do, and does not expect it to be broken.
GOES_ON = """
import os, pathlib, zipfile
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
newest = max(folder.glob("step-*.npz"), key=lambda path: int(path.stem[5:]), default=None)
print("begins at", zipfile.ZipFile(newest).read("step").decode() if newest else "0", flush=True)
"""


def saved(container: Container) -> Path:
    """Two checkpoints, of which the second is cut off."""
    folder = container.root / "checkpoints"
    folder.mkdir()
    for step in (1, 2):
        with zipfile.ZipFile(folder / f"step-{step}.npz", "w") as file:
            file.writestr("step", str(step))
            file.writestr("weights", RAW)
    newest = folder / "step-2.npz"
    newest.write_bytes(newest.read_bytes()[:2000])
    return folder


@pytest.mark.parametrize("python", interpreters())
def test_a_script_begins_at_the_checkpoint_before(container: Container, python: str) -> None:
    folder = saved(container)
    outcome = container.run(GOES_ON, python=python)
    assert outcome.exit_code == 0, outcome.stderr
    lines = outcome.stdout.splitlines()
    assert lines.index("begins at 1") > lines.index(SAID.format("step-2.npz"))
    assert ANEW not in lines
    assert outcome.report["cut_off"] == ["step-2.npz"]
    assert names(folder) == ["step-1.npz"]
    assert (container.root / "cut-off" / "step-2.npz").stat().st_size == 2000


def test_it_is_said_that_nothing_is_left_and_no_name_writes_lines(container: Container) -> None:
    folder = saved(container)
    (folder / "step-1.npz").unlink()
    (folder / "step-2.npz").rename(folder / "step-2\n[sagefit] x.npz")
    outcome = container.run(GOES_ON)
    lines = outcome.stdout.splitlines()
    assert SAID.format("step-2 [sagefit] x.npz") in lines
    assert lines.index("begins at 0") > lines.index(ANEW)
    assert not any(line.startswith("[sagefit] x") for line in lines)


def test_a_script_that_wants_them_finds_them(container: Container) -> None:
    folder = saved(container)
    container.environment["SAGEFIT_CUT_OFF"] = "keep"
    outcome = container.run(GOES_ON, python=PYTHON)
    assert outcome.report["class"] == "data"
    assert "BadZipFile" in outcome.report["evidence"]
    assert outcome.report["cut_off"] == []
    assert len(names(folder)) == 2
