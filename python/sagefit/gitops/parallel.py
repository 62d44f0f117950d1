"""Plan many stacks at once, each in a process of its own: Terraform is told its folders through the environment."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from sagefit.children import Children
from sagefit.console import cloud_name
from sagefit.errors import BLOCKED, DONE, FAILED, INVALID, SagefitError
from sagefit.gitops import binding, bundle, whole
from sagefit.gitops.binding import Record
from sagefit.paths import display

ERROR = "error.txt"
SUMMARY = "stacks.json"
FILES = "files/"
"""Where the errors of files are that belong to no stack, for they cannot be read; then the quoted path of the file."""


@dataclass(frozen=True)
class Outcome:
    """How planning a stack ended: with a record, or with an exit code and the words of the error.

    ``said`` is what there is to say of something that is no stack.
    """

    key: str
    record: Record | None
    code: int = DONE
    error: str = ""
    said: str = ""

    @property
    def summary(self) -> str:
        """What the plan does, in counts by action."""
        if self.said:
            return self.said
        if self.record is None:
            return self.error.strip().splitlines()[0] if self.error.strip() else f"ended with exit code {self.code}"
        counts: dict[str, int] = {}
        for change in self.record.content.changes.values():
            action = _ACTIONS.get(tuple(change["actions"]), " and ".join(change["actions"]))
            counts[action] = counts.get(action, 0) + 1
        if self.record.is_empty:
            return "nothing to do"
        done = ", ".join(f"{count} to {action}" for action, count in sorted(counts.items())) or "outputs change"
        return f"blocked by {len(self.record.blocked)} findings, {done}" if self.record.blocked else done


_ACTIONS = {
    ("delete", "create"): "replace",
    ("create", "delete"): "replace",
    ("delete",): "destroy",
    ("update",): "change",
    ("no-op",): "move or import",
}


def default_parallel() -> int:
    """As many at once as there are cores, at most four: each plan has a provider process of some 500 MB."""
    return min(4, os.cpu_count() or 1)


def plan_all(
    keys: Iterable[str],
    out: Path,
    *,
    base: str | None,
    parallel: int,
    hours: float,
    tell: Callable[[Outcome, list[str]], None],
) -> list[Outcome]:
    """Plan the stacks into ``out``, at most ``parallel`` at once; in the order of ``keys``.

    ``tell`` is called for each stack that ends, with the stacks that are still running or waiting. A stack that fails
    writes its error to ``out`` and does not affect the others.
    """
    waiting = list(keys)
    found: dict[str, Outcome] = {}
    children = Children()
    with ThreadPoolExecutor(max_workers=max(1, parallel)) as pool:
        futures: dict[Future[Outcome], str] = {
            pool.submit(_plan, children, key, out, base, hours): key for key in waiting
        }
        try:
            for future in as_completed(futures):
                outcome = future.result()
                found[outcome.key] = outcome
                tell(outcome, [key for key in waiting if key not in found])
        except KeyboardInterrupt:
            children.stop()
            pool.shutdown(cancel_futures=True)
            raise
    return [found[key] for key in waiting]


def clear(out: Path) -> None:
    """Remove earlier plans, so that a folder holds one review; all other files there stay."""
    for name in (binding.RECORD, ERROR, whole.SEAL):
        for path in list(out.rglob(name)):
            shutil.rmtree(path.parent)


def _plan(children: Children, key: str, out: Path, base: str | None, hours: float) -> Outcome:
    options = ["--stack", key, "--out", str(out), "--expires", str(hours), *(["--base", base] if base else [])]
    done = children.run("--cloud", cloud_name(), "plan", *options)
    folder = bundle.folder_of(out, key)
    if done.code in (DONE, BLOCKED):
        return Outcome(key, Record.load(folder), done.code)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for stale in (binding.RECORD, binding.PLAN, binding.PLAN_JSON):
        (folder / stale).unlink(missing_ok=True)
    binding.private(folder / ERROR, done.error)
    return Outcome(key, None, done.code, done.error.removeprefix("error: "))


def summarise(out: Path, outcomes: Iterable[Outcome]) -> None:
    """Write the outcome of each stack for the next step of a pipeline, even when there was no stack to plan."""
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    told = [{"stack": outcome.key, "code": outcome.code, "summary": outcome.summary} for outcome in outcomes]
    binding.private(out / SUMMARY, json.dumps({"stacks": told}, indent=1) + "\n")


def unreadable(out: Path, broken: Iterable[tuple[str, SagefitError]]) -> list[Outcome]:
    """The outcome of each file that cannot be read, so that its stack is not known; the error is written to ``out``."""
    found = []
    for file, error in broken:
        key = f"{FILES}{quote(file)}"
        folder = bundle.folder_of(out, key)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        binding.private(folder / ERROR, f"{error}\n")
        found.append(Outcome(key, None, INVALID, str(error)))
    return found


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """The code that all failures share, else that of a failure; without a failure, whether a plan is blocked."""
    told = {outcome.code for outcome in outcomes}
    codes = told - {DONE, BLOCKED} or told - {DONE}
    return codes.pop() if len(codes) == 1 else FAILED if codes else DONE


def headline(out: Path) -> tuple[bool, str]:
    """Whether a change may be merged, and why, in one line: of what `summarise` wrote into ``out``.

    Raises SagefitError where nothing was planned into it.
    """
    path = out / SUMMARY
    try:
        stacks = [
            (str(each["stack"]), int(each["code"]), str(each["summary"]))
            for each in json.loads(path.read_text(encoding="utf-8"))["stacks"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SagefitError(f"{display(path)}: not what plan or seal wrote", hint="plan again") from error
    failed = [(key, said) for key, code, said in stacks if code not in (DONE, BLOCKED)]
    blocked = [(key, said) for key, code, said in stacks if code == BLOCKED]
    for found, word in ((failed, "not planned"), (blocked, "blocked")):
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            key, said = found[0]
            return False, f"{word}: {unquote(key)}{more}: {said.removeprefix('blocked ').removeprefix('blocked, ')}"
    if not stacks:
        return True, "touches no job and no platform"
    key, _, said = stacks[0]
    return True, f"{key}: {said}" if len(stacks) == 1 else f"{len(stacks)} stacks planned, nothing blocks"
