"""What S3 objects contain, in files of the embedded cloud and not in its memory.

moto keeps each content in a ``SpooledTemporaryFile``, in memory up to 5 MB and with an open file above, and hands it
on as one ``bytes``. A :class:`Content` takes the place of that file: in memory it is small, it needs no open file, it
takes over the content of another one without reading it, and it is read in pieces.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sagefit.cloud.paths import private

#: Bytes that are read or kept at once.
CHUNK = 1 << 20
#: Contents up to this many bytes are kept in memory: scripts, definitions, Terraform's state.
SMALL = 16 << 10


class Content:
    """The part of a binary file's interface that moto uses; what is written is put at the end.

    Args:
        folder: Where the file lies, if there has to be one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._small = b""
        self._path: Path | None = None
        self._size = 0
        self._position = 0

    def __len__(self) -> int:
        return self._size

    def seek(self, position: int) -> None:
        """Read on from this byte."""
        self._position = position

    def truncate(self) -> None:
        """Forget everything; moto does so at the beginning only."""
        if self._position:
            raise ValueError("a content is kept whole or not at all")
        self.close()

    def write(self, data: bytes | Content) -> None:
        """Put bytes at the end, or take over another content, which keeps its length alone; this one must be empty."""
        if isinstance(data, Content):
            if self._size:
                raise ValueError("only an empty content takes over another one")
            self._small, self._path, self._size = data._small, data._path, data._size
            data._small, data._path = b"", None  # moto still asks how long it was
            return
        if self._path is None and self._size + len(data) <= SMALL:
            self._small += data
        elif self._path is None:
            path = self.folder / uuid.uuid4().hex
            with open(path, "xb", opener=private) as file:
                file.write(self._small)
                file.write(data)
            self._small, self._path = b"", path
        else:
            with self._path.open("ab") as file:
                file.write(data)
        self._size += len(data)

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes from here on, or all of them."""
        end = self._size if size < 0 else min(self._position + size, self._size)
        data = b"".join(self.piece(self._position, end))
        self._position = end
        return data

    def piece(self, begin: int, end: int) -> Piece:
        """The bytes from one position to another; they can be read when the content is gone, too."""
        file = io.BytesIO(self._small) if self._path is None else self._path.open("rb")
        return Piece(file, begin, end)

    def close(self) -> None:
        """Forget everything and free its space."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._small, self._path, self._size, self._position = b"", None, 0, 0


class Piece:
    """Some of a file: an iterable of bytes with a length, which is read once. A slice of it is read in its place."""

    def __init__(self, file: BinaryIO, begin: int, end: int) -> None:
        self._file, self._begin, self._end = file, begin, max(begin, end)

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, part: slice) -> Piece:
        begin, end, _ = part.indices(len(self))
        return Piece(self._file, self._begin + begin, self._begin + end)

    def __iter__(self) -> Iterator[bytes]:
        with self._file as file:
            file.seek(self._begin)
            left = len(self)
            while left > 0 and (chunk := file.read(min(CHUNK, left))):
                left -= len(chunk)
                yield chunk

    def close(self) -> None:
        """Let go of the file, also when nobody has read it to its end."""
        self._file.close()
