"""One comment about a whole change on its pull request, kept up to date in place."""

from __future__ import annotations

import re

from sagefit.errors import SagefitError
from sagefit.gitops.hosts import Comment, Host
from sagefit.gitops.overview import Overview

_MARKER = re.compile(r"<!-- sagefit:plan stack=(\S+) sha=(\S+) plan=(\S+) run=(\d+) v=1 -->")
_WHOLE = "change"
"""What the marker calls the whole change. Earlier versions had a comment for each stack; those go.

With a region it is ``change@REGION``: the pipeline of each region keeps a comment of its own.
"""


def body(about: Overview, run: int, *, limit: int | None = None, address: str | None = None) -> str:
    """The comment, which begins with the marker that finds it again."""
    marker = (
        f"<!-- sagefit:plan stack={_whole(about.region)} sha={about.commit} plan={about.digest[:16]} run={run} v=1 -->"
    )
    room = None if limit is None else limit - len(marker) - 1
    return f"{marker}\n{about.text(room, address)}"


def post(host: Host, about: Overview, run: int, address: str | None = None) -> str:
    """Bring the comment of a pull request up to date; returns what was done.

    The first of ours is edited and all others are removed; those of another region are not ours. What a newer run wrote
    stays. Where there is nothing to say nothing is posted, and a comment of before says so. Raises SagefitError when
    the shortest comment is too long.
    """
    text = body(about, run, limit=host.limit, address=address)
    if len(text) > host.limit:
        raise SagefitError(
            f"the comment has {len(text):,} characters, and {host.name} takes {host.limit:,}",
            hint="split the change: nobody can review so many stacks at once",
        )
    ours: list[tuple[Comment, str, int]] = []
    for comment in sorted(host.comments(), key=lambda comment: comment.id):
        found = _MARKER.match(comment.body)
        if found and comment.author == host.author and _region(found[1]) == about.region:
            ours.append((comment, found[1], int(found[4])))
    if any(theirs > run for _, _, theirs in ours):
        return "left as a newer run wrote it"
    kept = next((comment for comment, stack, _ in ours if stack == _whole(about.region)), ours[0][0] if ours else None)
    for comment, _, _ in ours:
        if comment is not kept:
            host.delete(comment)
    if kept is None:
        if about.is_empty:
            return "nothing to say"
        host.create(text)
        return "posted"
    if kept.body.strip() == text.strip():
        return "unchanged"
    host.update(kept, text)
    return "edited"


def _whole(region: str) -> str:
    return f"{_WHOLE}@{region}" if region else _WHOLE


def _region(stack: str) -> str:
    """The region of the pipeline that wrote a marker, by what the marker calls the change."""
    return stack.removeprefix(f"{_WHOLE}@") if stack.startswith(f"{_WHOLE}@") else ""
