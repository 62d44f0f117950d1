"""What ``sagefit review --head`` prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from rich.markdown import Markdown
from rich.text import Text

from sagefit.cli.shared import target
from sagefit.console import err, out, print_error
from sagefit.errors import DONE, REFUSED, SagefitError
from sagefit.gitops.looking import Look, Seen, look
from sagefit.reviewing import Review, Tuning, as_json
from sagefit.reviewing.md import code
from sagefit.reviewing.report import SCHEMA
from sagefit.reviewing.rules import Severity

_NAMED = 5


def show(
    head: str,
    base: str,
    shape: str,
    gate: Severity | None,
    tuning: Tuning | None,
    page: Callable[[Review, str], None],
) -> int:
    """Print the pages of a branch; the exit code is 4 when something is as bad as ``gate``, or as its settings say."""
    with err.status("reading and planning the branch"):
        seen = look(head, base, target(), tuning, gate)
    _head(seen, shape)
    ends = REFUSED if seen.whole and seen.whole.blocked else DONE
    for each in seen.stacks:
        if isinstance(each.found, SagefitError):
            _failed(each, each.found, shape)
            ends = max(ends, each.found.exit_code)
            continue
        if shape == "json":
            sys.stdout.write(json.dumps({**as_json(each.found), "left_out": each.left_out}) + "\n")
        else:
            _say(code_of(each), shape)
            page(each.found, shape)
        if each.found.tuning.fail_on and each.found.blocks(each.found.tuning.fail_on):
            ends = max(ends, REFUSED)
    return ends


def _head(seen: Look, shape: str) -> None:
    made_by = f"The pages were made by the code of {seen.here[:12]}, and nothing of the branch was run."
    if shape == "json":
        reviewer = [each.as_json() for each in seen.report.guarded]
        told = {"schema": SCHEMA, "stack": "change", "commit": seen.report.head, "made_by": seen.here}
        blocked = seen.whole is not None and seen.whole.blocked
        sys.stdout.write(json.dumps({**told, "reviewer": reviewer, "blocked": blocked}) + "\n")
    elif seen.whole:
        _say(seen.whole.page(made_by), shape)
    else:
        touched = f"touches {len(seen.stacks)} stacks" if seen.stacks else "touches no job and no platform"
        _say(f"{code(str(seen.report.head)[:12])} {touched}. {made_by}\n", shape)


def code_of(each: Seen) -> str:
    """What a page does not show, because it would be code of the branch."""
    if not each.left_out:
        return ""
    rest = len(each.left_out) - _NAMED
    files = ", ".join(map(code, each.left_out[:_NAMED])) + (f" and {rest} more" if rest > 0 else "")
    return f"**Not judged**: the branch changes code of {code(each.key)}, which was not run: {files}\n"


def _failed(each: Seen, error: SagefitError, shape: str) -> None:
    if shape == "json":
        told = {"schema": SCHEMA, "stack": each.key, "error": error.message, "left_out": each.left_out}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        _say(f"## {code(each.key)}: not planned\n\n{code_of(each)}", shape)
        if shape == "markdown":
            sys.stdout.write(f"{code(error.message)}\n")
    print_error(error)


def _say(text: str, shape: str) -> None:
    if not text:
        return
    if shape == "markdown":
        sys.stdout.write(f"{text}\n")
    else:
        out.print(Markdown(text))
        out.print(Text())
