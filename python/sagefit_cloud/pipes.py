"""Pipe mode: a channel as a row of named pipes, ``<channel>_0``, ``<channel>_1``, ..., one for each pass over the data.

What a pass holds, by the CreateTrainingJob API reference: the objects one after the other in the order of the channel,
each unzipped where ``CompressionType`` is Gzip and a RecordIO record where ``RecordWrapperType`` is RecordIO. With
``ShuffleConfig`` the order is new in every pass and follows from the seed. The lines of an augmented manifest become
one record for each of ``AttributeNames`` in their order; a name that ends with ``-ref`` stands for the object that its
value names (developer guide, "Augmented Manifest File Format for Pipe Mode Training").
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import random
import select
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sagefit_cloud import recordio, storage
from sagefit_cloud.storage import DataError, S3Uri

_CHUNK = 64 * 1024
_LOOK_SECONDS = 0.02
_WRITE_MILLISECONDS = 100


class Channel:
    """What one host gets of a channel in Pipe mode. Raises DataError for what cannot be streamed."""

    def __init__(self, s3: Any, request: dict[str, Any], host: int, hosts: int) -> None:
        self._s3, self._request, self._host, self._hosts = s3, request, host, hosts
        self.name = str(request["ChannelName"])
        self._wrapped = request.get("RecordWrapperType") == "RecordIO"
        self._gzip = request.get("CompressionType") == "Gzip"
        self._source: dict[str, Any] = request["DataSource"].get("S3DataSource", {})
        self._attributes: list[str] = self._source.get("AttributeNames", [])
        augmented = self._source.get("S3DataType") == "AugmentedManifestFile"
        if augmented:
            self._check_augmented()
        with storage.moving(storage.DOWNLOAD):
            self._items: list[Any] = self._lines() if augmented else storage.objects_of(s3, request)
        if not self._items:
            raise DataError(f"Data download failed:No S3 objects found under {self._source['S3Uri']}")

    def content(self, epoch: int) -> Iterator[bytes]:
        """The bytes of one pass over the data."""
        items = list(self._items)
        if "ShuffleConfig" in self._request:  # before hosts share: what one reads may be another's in the next pass
            random.Random(f"{self._request['ShuffleConfig']['Seed']}-{epoch}").shuffle(items)  # noqa: S311
        for item in storage.part_of(items, self._request, self._host, self._hosts):
            if self._attributes:
                yield from self._line(item)
            else:
                yield from self._object(item[0])

    def _object(self, where: S3Uri) -> Iterator[bytes]:
        try:
            with storage.read(self._s3, where) as body:
                stream = gzip.GzipFile(fileobj=body, mode="rb") if self._gzip else body
                if self._wrapped:
                    yield recordio.record(stream.read())
                else:
                    yield from iter(lambda: stream.read(_CHUNK), b"")
        except (BotoCoreError, ClientError, OSError, EOFError, ValueError, zlib.error) as error:
            raise DataError(f"Data download failed:{where}: {error}") from error

    def _check_augmented(self) -> None:
        if not self._wrapped:
            raise DataError(
                f"channel {self.name}: the embedded cloud streams an augmented manifest with RecordWrapperType "
                "RecordIO only: how values are delimited without it is not documented"
            )
        if self._gzip:
            raise DataError(f"channel {self.name}: the embedded cloud reads augmented manifests uncompressed only")
        if self._hosts > 1 and self._source.get("S3DataDistributionType") == "ShardedByS3Key":
            raise DataError(
                f"channel {self.name}: the embedded cloud does not share out an augmented manifest: what a host gets "
                "of it is not documented. Use FullyReplicated"
            )

    def _lines(self) -> list[dict[str, Any]]:
        uri = S3Uri.parse(self._source["S3Uri"])
        text = storage.read(self._s3, uri).read().decode(errors="replace")
        lines = []
        for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
            try:
                found = json.loads(line)
                lines.append({name: found[name] for name in self._attributes})
            except (ValueError, TypeError, KeyError) as error:
                raise DataError(
                    f"Data download failed:line {number} of {uri} is no JSON object with the attributes "
                    f"{', '.join(self._attributes)}: {type(error).__name__} {error}"
                ) from error
        return lines

    def _line(self, values: dict[str, Any]) -> Iterator[bytes]:
        for name, value in values.items():
            if name.endswith("-ref"):
                yield from self._object(S3Uri.parse(str(value)))
            else:
                yield recordio.record((value if isinstance(value, str) else json.dumps(value)).encode())


class Stream(threading.Thread):
    """Feeds the named pipes of one channel of one host, pass after pass, until it is stopped."""

    def __init__(self, channel: Channel, folder: Path) -> None:
        super().__init__(name=f"pipe-{channel.name}", daemon=True)
        self._channel, self._folder = channel, folder
        self._ended = threading.Event()
        self.error: DataError | None = None
        self._make(0)

    def stop(self) -> None:
        """End, whoever reads or does not."""
        self._ended.set()
        if self.ident is not None:
            self.join()

    def run(self) -> None:
        """Serve one pass for each time that a pipe is opened."""
        for epoch in itertools.count():
            pipe = self._open(epoch)
            if pipe is None:
                return
            self._make(epoch + 1)
            try:
                for chunk in self._channel.content(epoch):
                    if not self._write(pipe, chunk):
                        break
            except DataError as error:
                self.error = error
                return
            except Exception as error:  # a reader would take the end of this thread for the end of the data
                self.error = DataError(f"Data download failed:channel {self._channel.name}: {error!r}")
                return
            finally:
                os.close(pipe)

    def _path(self, epoch: int) -> Path:
        return self._folder / f"{self._channel.name}_{epoch}"

    def _make(self, epoch: int) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self._path(epoch))

    def _open(self, epoch: int) -> int | None:
        """The pipe of a pass once somebody reads it; None when this ends before."""
        while not self._ended.wait(_LOOK_SECONDS):
            with contextlib.suppress(OSError):  # nobody reads it yet
                return os.open(self._path(epoch), os.O_WRONLY | os.O_NONBLOCK)
        return None

    def _write(self, pipe: int, chunk: bytes) -> bool:
        """Whether the reader took all of it; it may close early, which ends the pass."""
        rest = memoryview(chunk)
        room = select.poll()
        room.register(pipe, select.POLLOUT)
        while rest:
            if self._ended.is_set():
                return False
            try:
                if room.poll(_WRITE_MILLISECONDS):
                    rest = rest[os.write(pipe, rest) :]
            except BrokenPipeError:
                return False
            except BlockingIOError:  # less room than a page: the kernel says there is some, and takes nothing
                continue
        return True
