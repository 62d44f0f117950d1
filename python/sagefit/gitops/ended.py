"""How an apply ended, stack by stack, and the comment that says so on the pull request."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.gitops.apply import replanned
from sagefit.gitops.binding import RECORD, private
from sagefit.gitops.bundle import folder_of
from sagefit.gitops.hosts import Host
from sagefit.gitops.overview import fold_of
from sagefit.paths import display, home
from sagefit.reviewing.md import block, cell, code

APPLIED, NOTHING, REFUSED, FAILED, LEFT = "applied", "nothing to do", "refused", "failed", "left alone"
_MARKER = re.compile(r"<!-- sagefit:applied run=(\d+)(?: region=(\S+))? v=1 -->")


@dataclass(frozen=True)
class Ended:
    """A stack, how its apply ended, and the words of the error."""

    stack: str
    how: str
    error: str = ""


def _file() -> Path:
    return home() / "gitops" / "applied.json"


def keep(ended: list[Ended]) -> None:
    """Write how the last apply ended, for the comment."""
    _file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private(_file(), json.dumps([asdict(each) for each in ended], indent=1) + "\n")


def forget() -> None:
    """Forget how an earlier apply ended."""
    _file().unlink(missing_ok=True)


def load() -> list[Ended]:
    """How the last apply here ended. Raises SagefitError where there was none."""
    try:
        return [Ended(**each) for each in json.loads(_file().read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise SagefitError(
            f"{display(_file())}: no apply is noted there", hint="it is written by: sagefit apply --reviewed DIR"
        ) from error


def text(ended: list[Ended], limit: int | None = None, address: str | None = None, region: str = "") -> str:
    """In Markdown, of at most ``limit`` characters: what was done, why the rest was not, and what to do then.

    ``region`` is that of the pipeline, where there is one for each of several regions.
    """
    bad = [each for each in ended if each.how not in (APPLIED, NOTHING)]
    where = f" ({region})" if region else ""
    lines = (
        [f"## {_title(ended, bad, where)}", "| stack | |\n|---|---|\n" + "\n".join(map(_row, ended))] if ended else []
    )
    lines = lines or [f"## Applied{where}: nothing was planned"]
    lines += [block(each.error.strip().splitlines(), "text") for each in bad if each.error]
    new = [each for each in bad if (folder_of(replanned(), each.stack) / RECORD).exists()]
    if new:
        lines.append(_way_on())
    if any(each.how == APPLIED and "/jobs/" in each.stack for each in ended):
        lines.append("An apply starts no run: `sagefit start JOB` does, or the job's own schedule.")
    lines += [f"[The run]({address})"] if address else []
    shown = "\n\n".join(lines)
    for each in new:
        fold = fold_of(folder_of(replanned(), each.stack), f"{each.stack}: what a plan made now would do")
        if limit is None or len(shown) + len(fold) + 2 <= limit:
            shown += f"\n\n{fold}"
    return shown + "\n"


def post(host: Host, ended: list[Ended], run: int, address: str | None = None, region: str = "") -> str:
    """Write a comment of its own for this apply, so that people hear of it; one that is tried again replaces it.

    What the pipeline of another ``region`` wrote stays.
    """
    marker = f"<!-- sagefit:applied run={run}{f' region={region}' if region else ''} v=1 -->\n"
    body = marker + text(ended, host.limit - len(marker), address, region)
    for comment in host.comments():
        found = _MARKER.match(comment.body)
        if found and comment.author == host.author and (int(found[1]), found[2] or "") == (run, region):
            host.update(comment, body[: host.limit])
            return "edited"
    host.create(body[: host.limit])
    return "posted"


def _title(ended: list[Ended], bad: list[Ended], where: str) -> str:
    if bad:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        return f"Not applied{where}: {code(bad[0].stack)} {bad[0].how}{more}"
    done = [each.stack for each in ended if each.how == APPLIED]
    if not done:
        return f"Applied{where}: nothing to do"
    return f"Applied{where}: {code(done[0]) if len(done) == 1 else f'{len(done)} stacks'}"


def _row(each: Ended) -> str:
    return f"| {cell(each.stack)} | {each.how if each.how in (APPLIED, NOTHING) else f'**{each.how}**'} |"


def _way_on() -> str:
    """Who has read the new page can have it applied, as the pipeline of this host takes it."""
    said = "A plan made now does something else, and nothing of it was applied. Its page is below"
    if os.environ.get("GITLAB_CI"):
        job = code(f"SAGEFIT_REPLANNED={os.environ.get('CI_JOB_ID', '')}")
        return f"{said}. Whoever has read it runs a pipeline on the default branch with {job}."
    if run := os.environ.get("GITHUB_RUN_ID"):
        return f"{said}. Whoever has read it starts the workflow `apply` by hand, with {code(run)} as `replanned`."
    return f"{said}, and {code(f'--reviewed {display(replanned())}')} applies it."
