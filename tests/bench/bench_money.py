"""What escalation on out-of-memory wastes, in USD: part of ``make bench``; writes docs/money.md.

Sagefit's choice and its attempts against two habits: the next instance with twice the memory after each failure, as
Nextflow's ``memory = { 8.GB * task.attempt }`` does it, and the same instance again. ``--check`` compares the page.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from sagefit.paths import ROOT

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT / "tests"))
from money_jobs import Trial, on_one_gpu, picked, transformers, trial
from money_ways import (
    DEFAULT,
    HOURS,
    RETRIES,
    STRATEGIES,
    TO_FAIL,
    Sum,
    Tried,
    add_up,
    least_usd,
    usable_gib,
    usd_per_hour,
)

from accuracy import loso
from accuracy.runs import Run, published_runs
from sagefit.catalog import instances

PAGE = ROOT / "docs" / "money.md"
SENSITIVITY = (0.02, 0.10, 0.50)
SURPRISES = (1.0, 1.25, 1.5)  # true need over measured


@dataclass(frozen=True)
class Walked:
    """A job, what each way tried by how far the planner is off, and the least that it could have cost."""

    trial: Trial
    tried: dict[tuple[str, float], list[Tried]]
    least_usd: float | None

    @property
    def ways(self) -> list[list[Tried]]:
        """What each way tried when the need is as measured."""
        return [self.tried[name, 1.0] for name in STRATEGIES]


def walked(
    runs: Sequence[Run], known: Sequence[Run], folder: Path, surprises: Sequence[float] = (1.0,)
) -> list[Walked]:
    """Every run as a job, planned as if nothing of its source were known."""
    found: dict[str, Walked] = {}
    for project in sorted({run.project for run in runs}):
        with loso.without(project, known):
            for run in (run for run in runs if run.project == project):
                job = trial(loso.unseen(run), folder)
                tried = {
                    (name, more): way(replace(job, surprise=more))
                    for name, way in STRATEGIES.items()
                    for more in surprises
                }
                found[run.id] = Walked(job, tried, least_usd(job))
    return [found[run.id] for run in runs]


def page() -> str:
    """The page, with all figures measured now."""
    known = published_runs()
    with tempfile.TemporaryDirectory() as folder:
        twenty = walked(picked(), known, Path(folder), SURPRISES)
        everyone = walked(transformers(on_one_gpu(known)), known, Path(folder))
    return _TEXT.format(
        default=DEFAULT,
        usable=usable_gib(instances()[DEFAULT]),
        usd=usd_per_hour(DEFAULT),
        retries=RETRIES,
        hours=HOURS,
        to_fail=100 * TO_FAIL,
        summary=_table(twenty),
        sensitivity=_sensitivity(twenty),
        surprised=_surprises(twenty),
        count=len(everyone),
        sources=len({each.trial.run.project for each in everyone}),
        everyone=_table(everyone),
        refused=_refused(everyone),
        jobs="\n".join(_row(each) for each in twenty),
        names=" | ".join(STRATEGIES),
    )


def _sum(found: Sequence[Walked], name: str, more: float = 1.0, to_fail: float = TO_FAIL) -> Sum:
    return add_up([each.tried[name, more] for each in found], [each.least_usd for each in found], to_fail)


def _table(found: Sequence[Walked]) -> str:
    rows = []
    for name in STRATEGIES:
        told = _sum(found, name)
        ends = f"{told.done} of {len(found)} | {told.refused} | {told.lost} | {told.failed_attempts}"
        more = told.total_usd - told.wasted_usd
        rows.append(
            f"| {name} | {ends} | {told.wasted_usd:,.2f} | {told.total_usd:,.2f} | {more / told.least_usd:.2f} x |"
        )
    return "\n".join(rows)


def _refused(found: Sequence[Walked]) -> str:
    """Of the jobs that Sagefit refused, what the cheapest instance that would have held them is."""
    cheapest: Counter[str] = Counter()
    for each in found:
        if not each.tried["Sagefit", 1.0]:
            least = each.least_usd
            cheapest["no instance" if least is None else f"an instance of {least / HOURS:.2f} USD an hour"] += 1
    return ", ".join(f"{name} for {count}" for name, count in cheapest.most_common())


def _sensitivity(found: Sequence[Walked]) -> str:
    return "\n".join(
        f"| {name} | "
        + " | ".join(f"{_sum(found, name, to_fail=share).wasted_usd:,.2f}" for share in SENSITIVITY)
        + " |"
        for name in STRATEGIES
    )


def _surprises(found: Sequence[Walked]) -> str:
    def told(name: str, more: float) -> str:
        own = _sum(found, name, more)
        return f"{own.done}, {own.wasted_usd:,.2f}"

    return "\n".join(f"| {name} | " + " | ".join(told(name, more) for more in SURPRISES) + " |" for name in STRATEGIES)


def _row(each: Walked) -> str:
    run = each.trial.run
    steps = [
        " → ".join(
            f"{tried.instance_type.removeprefix('ml.')}{'' if tried.fits else ' ✗'}" for tried in islice(walk, 4)
        )
        or "refused"
        for walk in each.ways
    ]
    return f"| {run.id} | {run.model} | {run.measured:.1f} | {each.trial.off:.2f} | {' | '.join(steps)} |"


_TEXT = """<!-- Written by tests/bench/bench_money.py (make bench). Do not edit. -->

# What running out of memory costs

Four ways to deal with a GPU that is too small, for {count} measured runs of transformers on one GPU, by {sources}
sources. Sagefit plans each as if nothing of its source were known: with bounds of the other sources alone, as in
[accuracy.md](accuracy.md#sources-that-were-left-out).

| way | jobs that end well | refused | would have run | failed attempts | wasted USD | USD in all | head-room |
|---|--:|--:|--:|--:|--:|--:|--:|
{everyone}

Wasted is what failed attempts were billed. Some of the refused jobs would have run: these are lost. Head-room
is what the attempts that ended cost, beside the cheapest instance that would have held each of these jobs,
which nobody knows before. What would have held the jobs that Sagefit refused: {refused}.

Twenty of the tables' runs, five of them of vision models:

| way | jobs that end well | refused | would have run | failed attempts | wasted USD | USD in all | head-room |
|---|--:|--:|--:|--:|--:|--:|--:|
{summary}

## How it was computed

- **Jobs.** Measured training runs on one GPU (the tables in `tests/accuracy` name their sources); the twenty are 15 of
  transformers and 5 of vision models, taken at even distances from the tables. Each becomes a job file with
  `instance_type: auto` and `attempts: auto`, and the planner sees nothing but that file.
- **True need.** On an instance, with an attempt's hyperparameters: the predicted point, times measured over predicted
  of that run (column *off by*). A job runs out of memory when this is above the usable memory of a GPU.
- **Sagefit** starts where its upper bound fits with 10 % to spare, and follows the edges for `gpu_memory`. Where no
  instance fits for certain it refuses the job, says what would help, and spends nothing.
- **Sagefit, `accept_risky`** does not refuse a job that fits by the prediction and only not by the upper bound: it
  starts on the instance that comes nearest (`memory.accept_risky: true`).
- **Twice the memory each time** starts on `{default}` ({usable:.1f} GiB usable, {usd} USD an hour) and moves to the
  cheapest type with at least twice the memory per GPU. That is kinder than the habit it stands for: the next size of
  the same family has the same GPU.
- **The same instance** is `{default}`, tried {retries} times more.
- **Time.** A run takes {hours:.0f} hours wherever it fits, and fails after {to_fail:.0f} % of that where it does not.
  Both are assumptions: faster GPUs end sooner; some jobs fail in their first step, others in their first evaluation.
- **Prices** are the packaged on-demand prices of us-east-1. All GPUs of an instance are paid for.

USD in all counts only what was run: it is low for a way that gives jobs up, and it holds the price of head-room.

Wasted USD of the twenty jobs, by when an attempt fails:

| way | after 2 % | after 10 % | after 50 % |
|---|--:|--:|--:|
{sensitivity}

And when the planner is further off than it was for these runs, jobs that end well and wasted USD:

| way | need as measured | 25 % above it | 50 % above it |
|---|--:|--:|--:|
{surprised}

## The twenty jobs

✗: ran out of memory. Need is the measured GiB per GPU, off by is measured over predicted.

| run | model | need | off by | {names} |
|---|---|--:|--:|---|---|---|---|
{jobs}
"""


def main(arguments: list[str]) -> int:
    """Print the page and write it, or with ``--check`` compare it."""
    text = page()
    if "--check" in arguments:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{PAGE.relative_to(ROOT)} is out of date: python tests/bench/bench_money.py writes it")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
