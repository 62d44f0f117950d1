"""Checkpoints that a kill cut off while they were written: told by their formats, and taken out of a script's way.

A script that resumes opens its newest checkpoint. Cut off, it ends the script as an error of its own, although the one
before it is whole. A file counts as cut off only where its format says where it ends: a zip archive (PyTorch since 1.6,
NumPy's npz, Keras) by the directory at its end (APPNOTE 4.3.16), safetensors by the offsets of its header, HDF5 by the
address in its superblock (HDF5 File Format Specification, II.A), JSON by its brackets. So does an empty file with
the name of one of these.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

from . import saves

_ZIP, _HDF5 = b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"
_NAMES = (".pt", ".pth", ".ckpt", ".bin", ".npz", ".keras", ".safetensors", ".h5", ".hdf5", ".json")
_SUPERBLOCKS = {0: (13, 40), 1: (13, 44), 2: (9, 28), 3: (9, 28)}  # version: where widths and the end stand
_LARGEST_HEADER = 100_000_000  # bytes, as the safetensors library has it
_LARGEST_JSON = 4 * 1024**2
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEP = re.compile(r"(checkpoint|ckpt|step|epoch|iter)\D{0,3}\d+$", re.IGNORECASE)


def move_away(folder: Path, to: Path) -> list[str]:
    """Moves what is cut off below ``folder`` into the folder ``to``, and returns its names.

    Of a checkpoint that is a folder (``checkpoint-500``, ``global_step500``) everything goes. Nothing is overwritten,
    and what cannot be moved stays.
    """
    moved = []
    for path in sorted({_whole_checkpoint(folder, file) for file in _cut_off(folder)}):
        name = path.relative_to(folder).as_posix()
        target, count = to / name, 1
        while os.path.lexists(str(target)):
            target, count = to / f"{name}.{count}", count + 1
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        except OSError:
            continue
        moved.append(name)
    return moved


def _whole_checkpoint(folder: Path, file: Path) -> Path:
    """The file, or the outermost folder around it that is a checkpoint by its name."""
    around = [above for above in file.parents if folder in above.parents and _STEP.search(above.name)]
    return around[-1] if around else file


def _cut_off(folder: Path) -> Iterator[Path]:
    for name, _ in saves.files(folder):
        with contextlib.suppress(OSError):
            if is_cut_off(Path(name)):
                yield Path(name)


def is_cut_off(path: Path) -> bool:
    """Whether a file ends before its format says that it does. Raises OSError for one that cannot be read."""
    size = path.stat().st_size
    if not size:
        return path.suffix.lower() in _NAMES
    with path.open("rb") as file:
        start = file.read(64)
    if start.startswith(_ZIP):
        return not zipfile.is_zipfile(str(path))
    if start.startswith(_HDF5):
        return _end_of_hdf5(start) > size
    if path.suffix.lower() == ".safetensors":
        return _end_of_safetensors(path, size) > size
    if path.suffix.lower() == ".json" and size <= _LARGEST_JSON and start.lstrip()[:1] in (b"{", b"["):
        structure = _STRING.sub(b"", path.read_bytes())
        return sum(structure.count(c) for c in (b"{", b"[")) > sum(structure.count(c) for c in (b"}", b"]"))
    return False


def _end_of_hdf5(start: bytes) -> int:
    """What the superblock has as the end of the file, in bytes; 0 for a version or width that is not known."""
    if len(start) == len(_HDF5):
        return len(_HDF5) + 1
    version = start[8]
    if version not in _SUPERBLOCKS:
        return 0
    width, at = _SUPERBLOCKS[version]
    if len(start) < at + 8:
        return at + 8  # not even its superblock is there
    return int(struct.unpack_from("<Q", start, at)[0]) if start[width] == 8 else 0


def _end_of_safetensors(path: Path, size: int) -> int:
    """Where the last tensor ends, in bytes; beyond the file where its header is not all there."""
    if size < 8:
        return size + 1
    with path.open("rb") as file:
        length = int(struct.unpack("<Q", file.read(8))[0])
        if length > _LARGEST_HEADER:
            return 0  # no safetensors, whatever its name
        if 8 + length > size:
            return 8 + length
        header = file.read(length)
    try:
        ends = [int(each["data_offsets"][1]) for name, each in json.loads(header).items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return 0
    return 8 + length + max(ends, default=0)
