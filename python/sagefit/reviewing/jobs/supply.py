"""Where a job's image, data, keys and rights come from and where its results go: what changes of that is dangerous."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sagefit.documents import as_list
from sagefit.job.image_table import aws_accounts
from sagefit.reviewing.jobs.asked import Asked
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit

_IMAGE = re.compile(r"(?P<registry>[^/]+)/(?P<repository>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>\S+))?")
_ACCOUNT = re.compile(r"(?:^|:)(\d{12})(?:[.:]|$)")
_MUTABLE = ("latest", "main", "master", "stable", "nightly", "dev", None)
"""Tags that are made to be moved; no tag at all means ``latest``."""


def account_of(change: Change) -> str | None:
    """The account of a state machine: by its ARN, or by that of its role."""
    texts = [values.get(name) for values in (change.after, change.before) for name in ("arn", "role_arn")]
    return next((found for text in texts if (found := _account(str(text)))), None)


def judge(before: Asked | None, after: Asked, account: str | None) -> Iterator[Hit]:
    """Findings about the supply of a job. ``before`` is None for a new one; ``account`` is the job's own."""
    yield from _images(before, after, account)
    if before is None:
        return
    known = before.inputs | before.outputs
    if new := sorted(after.inputs - known):
        yield Hit("job-input-foreign", say("it did not read from {} before", new))
    if before.outputs and (new := sorted(after.outputs - before.outputs)):
        yield Hit("job-output-moved", say("{} → {}", sorted(before.outputs - after.outputs) or "also", new))
    if before.keys and (new := sorted(after.keys - before.keys)):
        foreign = _foreign(new, account)
        gone = sorted(before.keys - after.keys)
        words = "{} → {}, of another account" if foreign else "{} → {}"
        yield Hit("job-key-changed", say(words, gone or "also", new), "high" if foreign else None)
    if before.roles and (new := sorted(after.roles - before.roles)):
        foreign = _foreign(new, account)
        words = "{} → {}, of another account" if foreign else "{} → {}"
        gone = sorted(before.roles - after.roles)
        yield Hit("job-role-changed", say(words, gone or "also", new), "high" if foreign else None)


def _images(before: Asked | None, after: Asked, account: str | None) -> Iterator[Hit]:
    old = before.images if before else set()
    known = {_registry(image) for image in old}
    for image in sorted(after.images - old):
        registry = _registry(image)
        told = known or account or not registry.isdecimal()  # else nothing says which account is the job's own
        if told and registry not in {*known, account, *aws_accounts()}:
            words = "{}: its registry is {}, not {}"
            yield Hit("job-image-foreign", say(words, image, registry, sorted(known) or as_list(account)))
        parts = _IMAGE.fullmatch(image)
        if parts and not parts["digest"]:
            same = [each for each in old if (of := _IMAGE.fullmatch(each)) and of["repository"] == parts["repository"]]
            pinned = any("@" in each for each in same) or (bool(old) and all("@" in each for each in old))
            moves = parts["tag"] in _MUTABLE and not any(_tag(each) in _MUTABLE and "@" not in each for each in old)
            if pinned or moves:
                words = "{}: the digest is gone" if pinned else "{}: this tag is made to be moved"
                yield Hit("job-image-unpinned", say(words, image), None if old else "low")


def _registry(image: str) -> str:
    """The account of an image in ECR, else the host that gives it out."""
    host, slash, _ = image.partition("/")
    if found := _account(host):
        return found
    return host if slash and ("." in host or ":" in host) else "docker.io"


def _tag(image: str) -> str | None:
    found = _IMAGE.fullmatch(image)
    return found["tag"] if found else None


def _account(text: str) -> str | None:
    found = _ACCOUNT.search(text)
    return found[1] if found else None


def _foreign(arns: list[str], account: str | None) -> bool:
    return any(found != account for arn in arns if (found := _account(arn))) if account else False
