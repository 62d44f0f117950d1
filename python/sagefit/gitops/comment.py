"""One comment for each stack on a pull request, kept up to date in place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from sagefit.errors import SagefitError
from sagefit.gitops import whole
from sagefit.gitops.apply import reviewed_keys
from sagefit.gitops.binding import Record
from sagefit.gitops.bundle import folder_of
from sagefit.gitops.hosts import Comment, Host
from sagefit.gitops.parallel import ERROR, FILES, Outcome
from sagefit.reviewing.md import block, code

NO_DIGEST = "none"
_PAGES_OWN = re.compile(r"\A<!-- sagefit:plan [^\n]*-->\n")  # a page names no run, so a newer comment wins
_MARKER = re.compile(r"<!-- sagefit:plan stack=(\S+) sha=(\S+) plan=(\S+) run=(\d+) v=1 -->")


@dataclass(frozen=True)
class Entry:
    """What is to be said of a stack: the page, the commit and the digest of the plan it is about."""

    stack: str
    sha: str
    digest: str
    text: str

    def body(self, run: int) -> str:
        """The comment, which begins with the marker that finds it again."""
        marker = f"<!-- sagefit:plan stack={self.stack} sha={self.sha} plan={self.digest} run={run} v=1 -->"
        return f"{marker}\n{_PAGES_OWN.sub('', self.text.strip())}\n"


def entries(out: Path, sha: str) -> list[Entry]:
    """What to say of each stack in ``out``: its page, or the error that planning it ended with; and of the change."""
    about = whole.load(out)
    found = [Entry(whole.KEY, *about)] if about else []
    for key in reviewed_keys(out):
        record = Record.load(folder_of(out, key))
        text = record.page_of(folder_of(out, key)) or _plain(record)
        found.append(Entry(key, record.origin.head, record.normalised, text))
    for path in sorted(out.rglob(ERROR)):
        key = path.parent.relative_to(out).as_posix()
        text = f"## {_title(key)}: not planned\n\n{block(path.read_text(encoding='utf-8').splitlines(), 'text')}"
        found.append(Entry(key, sha, NO_DIGEST, text))
    return found


def _title(key: str) -> str:
    """What to call a stack, or a file that belongs to none."""
    if key == whole.KEY:
        return "This change"
    return unquote(key.removeprefix(FILES)) if key.startswith(FILES) else key


def post(host: Host, what: Iterable[Entry], run: int) -> dict[str, str]:
    """Update the comments of a pull request to ``what``; returns what was done for each stack.

    The first comment of a stack is edited and later ones are removed. A comment of a newer run stays. The comment of a
    stack that is no longer touched says so.
    """
    wanted = {entry.stack: entry for entry in what}
    for entry in wanted.values():
        if (length := len(entry.body(run))) > host.limit:
            raise SagefitError(
                f"the page of {entry.stack} has {length:,} characters, and {host.name} takes {host.limit:,}",
                hint="let sagefit review shorten it, or link to it",
            )
    ours: dict[str, list[tuple[Comment, int]]] = {}
    for comment in sorted(host.comments(), key=lambda comment: comment.id):
        found = _MARKER.match(comment.body)
        if found and comment.author == host.author:
            ours.setdefault(found[1], []).append((comment, int(found[4])))
    unread = [unquote(name.removeprefix(FILES)) for name in wanted if name.startswith(FILES)]
    gone = "This change no longer touches it."
    if unread:
        gone = (
            f"Not planned: {', '.join(map(code, unread))} cannot be read, so nobody knows what this change does to it."
        )
    for stack in ours:
        said = "The file can be read." if stack.startswith(FILES) else gone
        if stack == whole.KEY:
            said = "It no longer alters what reviews it."
        wanted.setdefault(stack, Entry(stack, NO_DIGEST, NO_DIGEST, f"## {_title(stack)}\n\n{said}"))
    return {stack: _bring(host, entry.body(run), run, ours.get(stack, [])) for stack, entry in sorted(wanted.items())}


def _bring(host: Host, body: str, run: int, ours: list[tuple[Comment, int]]) -> str:
    if not ours:
        host.create(body)
        return "posted"
    if any(theirs > run for _, theirs in ours):
        return "left as a newer run wrote it"
    for duplicate, _ in ours[1:]:
        host.delete(duplicate)
    if ours[0][0].body.strip() == body.strip():
        return "unchanged"
    host.update(ours[0][0], body)
    return "edited"


def _plain(record: Record) -> str:
    """Actions and addresses, for a plan without a page."""
    lines = [f"{' then '.join(change['actions'])}: {address}" for address, change in record.content.changes.items()]
    head = f"## {record.stack}: {Outcome(record.stack, record).summary}"
    return f"{head}\n\n{block(lines, 'text')}" if lines else head
