"""The digest of a job's code, as Terraform puts it into the S3 keys of the code (`modules/training-job/objects.tf`)."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from sagefit.job import Job


def code_digest(job: Job) -> str:
    """16 hex digits; empty for a job without code of its own, or whose folder is not there."""
    code = next((upload for upload in job.uploads if upload.field == ("code", "source_dir")), None)
    if code is None or not code.path.is_dir():
        return ""
    files = []
    for path in code.files():
        status = path.stat()
        files.append((path, code.name(path), status.st_size, status.st_mtime_ns))
    return _digest(tuple(files))


@lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, str, int, int], ...]) -> str:
    """Of contents; size and time are there for the cache."""
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for path, name, _, _ in files}
    text = json.dumps(hashes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":  # Terraform's jsonencode writes these as escapes
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:16]
