"""Objects that Terraform puts into a bucket and that look like credentials or states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.job.secrets import secret_file, secret_texts
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context

_TYPES = ("aws_s3_object", "aws_s3_bucket_object")
_OF_CONTENT = ("key", "source", "source_hash", "etag", "content", "content_base64", "metadata")
ALLOWED = {"sagefit-sensitive": "allowed"}
"""What modules/training-job writes on an object that the job file allows although it looks like a secret."""


def judge(change: Change, context: Context) -> Iterator[Hit]:  # noqa: ARG001
    """By name, by text that stands in the plan, and by the mark of what a job file allows."""
    if change.type not in _TYPES or change.kind not in ("create", "update", "replace"):
        return
    after = change.after
    if change.kind == "update" and all(change.before.get(name) == after.get(name) for name in _OF_CONTENT):
        return
    key = str(after.get("key") or "an object")
    if what := _by_name(after) or _by_text(after.get("content")):
        yield Hit("upload-secret", say("{}: {}", key, what))
    elif ALLOWED.items() <= (after.get("metadata") or {}).items():
        yield Hit("upload-secret", say("{}: it looks like a secret, and the job file allows it", key))


def _by_name(values: dict[str, Any]) -> str | None:
    paths = (values[name] for name in ("key", "source") if isinstance(values.get(name), str))
    return next((what for path in paths if (what := secret_file(path))), None)


def _by_text(text: Any) -> str | None:
    return next((what for what, pattern in secret_texts().items() if pattern.search(str(text or ""))), None)
