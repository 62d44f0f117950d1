"""Wrong addresses of data: misspelt S3 uris, paths of other operating systems, placeholders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sagefit.job.key import Key
from sagefit.job.problem import Problem
from sagefit.nearest import nearest

if TYPE_CHECKING:
    from sagefit.job.model import Job

S3_URI = r"s3://[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9](/.*)?"
_PLACEHOLDER = re.compile(r"<[^<>]+>|\bTODO\b|\bCHANGE_?ME\b|\bYOUR[_-][A-Z_-]+|\byour-[a-z-]+")


def missing_path(job: Job, field: Key, written: str) -> Problem:
    """A local path at which there is nothing."""
    message = f"the local path '{written}' does not exist"
    if "\\" not in written:
        message += f" (looked for {job.local(written)})"
    return Problem(field, message, f"{path_knob(job, written)}; data in S3 starts with s3://")


def names_in(folder: Path) -> list[str]:
    """The names of what lies in ``folder``; none where it cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except (OSError, ValueError):
        return []


def path_knob(job: Job, written: str) -> str:
    """What the user can do about a path in the job file that does not exist."""
    if placeholder := _PLACEHOLDER.search(written):
        return f"replace {placeholder[0]} by what it stands for"
    if "\\" in written:
        slashes = re.sub(r"[\\/]+", "/", re.sub(r"^[A-Za-z]:", "", written))
        return f"write forward slashes: {slashes}"
    if written.startswith("~"):
        return "paths are relative to the job file, and ~ stands for no folder: write the path out"
    if "$" in written:
        return "variables are not replaced in a job file: write the path out"
    head, slash, last = written.rstrip("/").rpartition("/")
    if near := nearest(last, names_in(job.local(head or "."))):
        return f"did you mean {head}{slash}{near[0]}?"
    return "paths are relative to the job file"


def no_s3_uri(field: Key, written: str) -> Problem:
    """The problem of an address that belongs to another service or names no valid bucket."""
    bucket = re.match(r"s3://([^/]*)", written)
    if placeholder := _PLACEHOLDER.search(written):
        return Problem(field, f"'{written}' is no S3 uri", f"replace {placeholder[0]} by the name of your bucket")
    if "$" in written or "{{" in written:
        knob = "variables are not replaced in a job file: write the bucket's name"
        return Problem(field, f"'{written}' is no S3 uri", knob)
    if bucket:
        message = f"'{written}' is no S3 uri: a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens"
        return Problem(field, message, f"write {_lowered(written)}")
    if found := _meant(written):
        return Problem(field, f"'{written}' is no S3 uri", f"did you mean {found}?")
    return Problem(field, f"'{written}' is no S3 uri", "write s3://bucket/prefix/ or a local path")


def _lowered(written: str) -> str:
    head, _, rest = written.removeprefix("s3://").partition("/")
    name = head.lower().replace("_", "-")
    return f"s3://{name}/{rest}" if re.fullmatch(S3_URI, f"s3://{name}/") else "s3://bucket/prefix/"


def _meant(written: str) -> str | None:
    """The S3 uri of an ARN, of a web address of S3, or of another spelling of the scheme."""
    if arn := re.fullmatch(r"arn:aws[\w-]*:s3:::(.+)", written):
        return f"s3://{arn[1]}"
    if host := re.fullmatch(r"https?://([a-z0-9.-]+)\.s3[.-][a-z0-9.-]*amazonaws\.com/(.*)", written):
        return f"s3://{host[1]}/{host[2]}"
    if path := re.fullmatch(r"https?://s3[.-][a-z0-9.-]*amazonaws\.com/(.+)", written):
        return f"s3://{path[1]}"
    if scheme := re.fullmatch(r"(?:s3[an]?|S3):/{1,3}(.+)", written):
        return f"s3://{scheme[1]}"
    return None
