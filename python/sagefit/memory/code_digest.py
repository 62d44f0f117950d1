"""The digest of a job's code, as Terraform puts it into the S3 keys of the code (`modules/training-job/objects.tf`)."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path

from sagefit.job import Job

ALWAYS_EXCLUDED = (
    "**/.git/**",
    "**/.venv/**",
    "**/.terraform/**",
    "**/.ipynb_checkpoints/**",
    "**/__pycache__/**",
    "**/.mypy_cache/**",
    "**/.pytest_cache/**",
    "**/.ruff_cache/**",
    "**/*.pyc",
    "**/*.pyo",
    "**/*.tfstate",
    "**/.DS_Store",
)


def code_digest(job: Job) -> str:
    """16 hex digits; empty for a job without code of its own, or whose folder is not there."""
    if job.code is None:
        return ""
    root = job.local(job.code.source_dir)
    left_out = [re.compile(_regex(glob)) for glob in (*ALWAYS_EXCLUDED, *job.code.exclude)]
    files = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not any(glob.fullmatch(name) for glob in left_out):
            status = path.stat()
            files.append((path, name, status.st_size, status.st_mtime_ns))
    return _digest(tuple(files)) if root.is_dir() else ""


@lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, str, int, int], ...]) -> str:
    """Of contents; size and time are there for the cache."""
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for path, name, _, _ in files}
    text = json.dumps(hashes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":  # Terraform's jsonencode writes these as escapes
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _regex(glob: str) -> str:
    """A pattern of Terraform's ``fileset`` as a regular expression."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    inside = 0
    said = []
    for piece in re.findall(r"\*\*/|\*\*|\[[^]]+\]|\\.|.", glob):
        inside += {"{": 1, "}": -1}.get(piece, 0)
        if piece in parts and (piece != "," or inside):
            said.append(parts[piece])
        else:
            said.append(piece.replace("[!", "[^") if len(piece) > 1 else re.escape(piece))
    return "".join(said)
