"""A training job's data: from S3 into the container before, back to S3 during and after.

``s3`` is a client with the rights of the job's execution role: in its name SageMaker moves the data.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from boto3.exceptions import S3UploadFailedError
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

_Item = TypeVar("_Item")

#: How SageMaker begins to tell that data did not come, and that artifacts did not go.
DOWNLOAD, UPLOAD = "Data download", "Artifact upload"

#: Copies of checkpoints up to this many bytes are not written to disk.
_KEPT_IN_MEMORY = 16 << 20
#: One request with more than a few megabytes would be in memory as a whole.
_IN_PARTS = TransferConfig(use_threads=False)


class DataError(Exception):
    """Data that cannot be brought to the container or back; the text is for ``FailureReason``."""


@contextmanager
def moving(what: str) -> Iterator[None]:
    """Within it an error of S3 is a DataError: ``what`` failed."""
    try:
        yield
    except (ClientError, S3UploadFailedError) as error:
        raise DataError(f"{what} failed:{error}") from error


class S3Uri(NamedTuple):
    """A bucket and a key, or the beginning of keys."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> S3Uri:
        """Take ``s3://bucket/key`` apart."""
        bucket, _, key = text.split("://", 1)[-1].partition("/")
        return cls(bucket, key)

    def __truediv__(self, name: str) -> S3Uri:
        return S3Uri(self.bucket, f"{self.key.rstrip('/')}/{name}" if self.key else name)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def arn(self, partition: str) -> str:
        """The ARN of the object; of the bucket where the key is empty."""
        return f"arn:{partition}:s3:::{self.bucket}" + (f"/{self.key}" if self.key else "")


def keys_under(s3: Any, prefix: S3Uri) -> Iterator[str]:
    """All keys that begin with a prefix, sorted; without the empty objects that stand for folders."""
    pages = s3.get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=prefix.bucket, Prefix=prefix.key):
        yield from (item["Key"] for item in page.get("Contents", []) if not item["Key"].endswith("/"))


def relative_name(prefix: str, key: str) -> str:
    """The path a key gets below the channel's folder: what follows the last folder of the prefix."""
    if key.startswith(prefix.rstrip("/") + "/") and prefix:
        return key[len(prefix.rstrip("/")) + 1 :]
    return key[prefix.rfind("/") + 1 :]


def objects_of(s3: Any, channel: dict[str, Any]) -> list[tuple[S3Uri, str]]:
    """All objects of a channel in their order, each with its path below the channel's folder."""
    source = channel["DataSource"].get("S3DataSource")
    name = channel["ChannelName"]
    if source is None:
        raise DataError(f"channel {name}: the embedded cloud has no file systems, use S3")
    uri = S3Uri.parse(source["S3Uri"])
    if source["S3DataType"] == "S3Prefix":
        return [(uri._replace(key=key), relative_name(uri.key, key)) for key in keys_under(s3, uri)]
    if source["S3DataType"] == "ManifestFile":
        return list(_manifest(s3, uri))
    raise DataError(f"channel {name}: the embedded cloud cannot read S3DataType {source['S3DataType']}")


def download_channel(s3: Any, channel: dict[str, Any], folder: Path, host: int, hosts: int) -> int:
    """Fill one channel's folder for one of the hosts; returns the number of objects."""
    folder.mkdir(parents=True, exist_ok=True)
    with moving(DOWNLOAD):
        objects = part_of(objects_of(s3, channel), channel, host, hosts)
        for where, path in objects:
            download(s3, where, _inside(folder, path))
    if not objects and hosts == 1:
        uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
        raise DataError(f"Data download failed:No S3 objects found under {uri}")
    return len(objects)


def part_of(objects: list[_Item], channel: dict[str, Any], host: int, hosts: int) -> list[_Item]:
    """What one of the hosts gets of a channel: everything, or its share."""
    sharded = channel["DataSource"]["S3DataSource"].get("S3DataDistributionType") == "ShardedByS3Key"
    return objects[host::hosts] if sharded else objects


def read(s3: Any, source: S3Uri) -> Any:
    """An object as a stream of bytes."""
    return s3.get_object(Bucket=source.bucket, Key=source.key)["Body"]


def _manifest(s3: Any, uri: S3Uri) -> Iterator[tuple[S3Uri, str]]:
    body = read(s3, uri).read()
    try:
        first, *names = json.loads(body)
        prefix = S3Uri.parse(first["prefix"])
        for name in names:
            yield prefix._replace(key=prefix.key + name), name
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"Data download failed:{uri} is no manifest file: {error}") from error


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"Data download failed:the key {name} leads out of the channel")
    return path


def download(s3: Any, source: S3Uri, path: Path) -> None:
    """Copy one object into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(read(s3, source), file)


def upload(s3: Any, path: Path, target: S3Uri, key: str | None) -> None:
    """Copy one file into an object, encrypted with a key of KMS, or as the bucket has it."""
    s3.upload_file(str(path), target.bucket, target.key, Config=_IN_PARTS, ExtraArgs=_encrypted(key))


def _encrypted(key: str | None) -> dict[str, str] | None:
    return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key} if key else None


def files_in(folder: Path) -> list[Path]:
    """All regular files below a folder, in a fixed order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def upload_folders(
    s3: Any, folders: Iterable[Path], target: S3Uri, *, key: str | None, pack_as: str | None, scratch: Path
) -> None:
    """Upload several hosts' folders as one: packed into one archive, or file by file. The first host wins.

    ``key`` is the key that encrypts them.
    """
    members: dict[str, Path] = {}
    for folder in folders:
        for path in files_in(folder):
            members.setdefault(path.relative_to(folder).as_posix(), path)
    if pack_as is None:
        for name, path in members.items():
            upload(s3, path, target / name, key)
        return
    archive = scratch / pack_as
    _pack(members, archive)
    upload(s3, archive, target / pack_as, key)
    archive.unlink()


def _pack(members: dict[str, Path], archive: Path) -> None:
    """Write an archive that depends on names and contents only."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="", compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(members):
            info = tar.gettarinfo(members[name], name)
            info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
            info.mode = 0o755 if info.mode & 0o100 else 0o644
            with members[name].open("rb") as file:
                tar.addfile(info, file)


class Checkpoints:
    """Keeps a local folder and an S3 prefix the same: restores before, follows changes during.

    Also deletions, where ``deletes``: checkpoints are synchronised. Outputs of processing jobs are only uploaded, and
    encrypted with the ``key`` that the job names.
    """

    def __init__(self, s3: Any, target: S3Uri, folder: Path, *, deletes: bool = True, key: str | None = None) -> None:
        self._s3, self._target, self._folder, self._key = s3, target, folder, key
        self._deletes = deletes
        self._known: dict[str, tuple[int, int]] = {}

    def restore(self) -> None:
        """Bring back what earlier attempts saved."""
        self._folder.mkdir(parents=True, exist_ok=True)
        prefix = self._target._replace(key=self._target.key.rstrip("/") + "/" if self._target.key else "")
        for key in keys_under(self._s3, prefix):
            name = key[len(prefix.key) :]
            download(self._s3, prefix._replace(key=key), _inside(self._folder, name))
        self._known = self._scan()

    def sync(self) -> None:
        """Upload what changed since last time, and delete what is gone."""
        found = self._scan()
        for name, stamp in found.items():
            if self._known.get(name) != stamp:
                try:
                    whole = self._upload(name, stamp)
                except FileNotFoundError:  # replaced while we looked; the next round sees what became of it
                    continue
                if whole:
                    self._known[name] = stamp
        for name in self._known.keys() - found.keys() if self._deletes else ():
            gone = self._target / name
            self._s3.delete_object(Bucket=gone.bucket, Key=gone.key)
            del self._known[name]

    def _upload(self, name: str, stamp: tuple[int, int]) -> bool:
        """Upload a copy, unless the file changes while it is copied: the script may be writing it just now.

        An upload says its length first, so it fails when the file becomes shorter on the way.
        """
        path, target = self._folder / name, self._target / name
        with tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY) as copy:
            with path.open("rb") as file:
                shutil.copyfileobj(file, copy)
            if _stamp(path) != stamp:
                return False
            copy.seek(0)
            self._s3.upload_fileobj(copy, target.bucket, target.key, Config=_IN_PARTS, ExtraArgs=_encrypted(self._key))
        return True

    def _scan(self) -> dict[str, tuple[int, int]]:
        stamps = {}
        for path in files_in(self._folder):
            try:
                stamps[path.relative_to(self._folder).as_posix()] = _stamp(path)
            except FileNotFoundError:
                continue
        return stamps


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when a file is written: the time in nanoseconds, and the size in bytes."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size
