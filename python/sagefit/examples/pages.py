"""What a run of the examples leaves in the repository: ``examples/results.json``, and the tables made from it.

A page has a place for its table: what lies between ``<!-- results -->`` and ``<!-- /results -->`` is written here and
nowhere else, so that every number on it comes from a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sagefit.cloud import images
from sagefit.examples.find import Example, all_examples
from sagefit.examples.result import FAILED, PLANNED, Result
from sagefit.examples.stage import MEMORY_SCALE
from sagefit.examples.table import HEADINGS, cells, markdown
from sagefit.job import load_job
from sagefit.paths import EXAMPLES

RESULTS = EXAMPLES / "results.json"
OVERVIEW = EXAMPLES / "README.md"
_BLOCK = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.DOTALL)
# Of the packages in an image those that a reader asks for, as they write themselves.
_SHOWN = {
    "scikit-learn": "scikit-learn",
    "xgboost": "XGBoost",
    "torch": "PyTorch",
    "transformers": "Transformers",
    "peft": "PEFT",
    "tensorflow": "TensorFlow",
    "tensorflow-cpu": "TensorFlow",
    "pyspark": "Spark",
}


@dataclass(frozen=True)
class Results:
    """All that is kept of a run: a row of each example, and the packages of each image that they ran in."""

    rows: list[Result]
    images: Mapping[str, Mapping[str, str]]
    memory_scale: float = MEMORY_SCALE

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "cloud": {"memory_scale": self.memory_scale},
            "images": self.images,
            "jobs": [row.as_json() for row in self.rows],
        }


def load() -> Results:
    """What is kept; nothing where there is no file yet."""
    if not RESULTS.exists():
        return Results([], {})
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    return Results([Result.from_json(row) for row in data["jobs"]], data["images"], data["cloud"]["memory_scale"])


def keep(new: Iterable[Result]) -> list[Path]:
    """Lay new results over those that are kept, forget examples that are gone, write the pages; what has changed.

    A page shows what works: the result of an example that has failed is not kept, and does not replace an older one.
    """
    examples = all_examples()
    rows = {row.name: row for row in (*load().rows, *(row for row in new if row.status != FAILED))}
    kept = [rows[example.name] for example in examples if example.name in rows]
    ran = {row.name for row in kept if row.status != PLANNED}
    frameworks = set().union(*(_frameworks(example) for example in examples if example.name in ran))
    found = {name: images.versions(name) for name in sorted(frameworks)}
    results = Results(kept, {name: versions for name, versions in found.items() if versions})
    texts = {RESULTS: json.dumps(results.as_json(), indent=2) + "\n"} | pages(results)
    changed = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        path.write_text(texts[path], encoding="utf-8")
    return changed


def pages(results: Results) -> dict[Path, str]:
    """The pages with a place for results, with what these results put there."""
    examples = all_examples()
    found = {}
    for folder in sorted({example.path.parent for example in examples}):
        rows = [row for row in results.rows if row.example == folder.name]
        found[folder / "README.md"] = _table(rows, results)
    found[OVERVIEW] = "\n".join([_overview(examples), _table(results.rows, results), *_savings(results.rows)])
    return {page: text for page, block in found.items() if page.exists() and (text := _with_block(page, block))}


def _with_block(page: Path, block: str) -> str:
    """The text of a page with ``block`` in its place; empty for a page without one."""
    text = page.read_text(encoding="utf-8")
    return _BLOCK.sub(lambda _: block, text) if _BLOCK.search(text) else ""


def _table(rows: Sequence[Result], results: Results) -> str:
    """The table of these rows, and below it where they ran."""
    ran = [row for row in rows if row.status != PLANNED]
    said = [f"{row.name} is planned only: {row.reason}\n" for row in rows if row.status == PLANNED]
    if not ran:
        return "\n".join(said)
    by_name = {example.name: example for example in all_examples()}
    used = set().union(*(_frameworks(by_name[row.name]) for row in ran if row.name in by_name))
    packages = {name: version for image in sorted(used) for name, version in results.images.get(image, {}).items()}
    versions = [f"{_SHOWN[name]} {version}" for name, version in sorted(packages.items()) if name in _SHOWN]
    where = f"Peaks of one host on the embedded cloud{', with ' if versions else ''}{', '.join(versions)}.\n"
    return "\n".join([markdown(HEADINGS, map(cells, ran)), where, *said])


def _overview(examples: Sequence[Example]) -> str:
    """What each example shows, and where its job runs."""
    rows = [
        (
            f"[{example.name}]({example.folder}/README.md)",
            example.shows,
            "AWS" if example.planned_only else "AWS, embedded cloud",
        )
        for example in examples
    ]
    return markdown(("example", "shows", "runs on"), rows)


def _savings(rows: Sequence[Result]) -> Iterator[str]:
    """How much less each example needs than the one it is compared with, predicted and measured."""
    table = [
        (name, other.name, *(f"{100 * fall:.0f} %" for fall in falls))
        for name, other, falls in savings({row.name: row for row in rows})
    ]
    if table:
        yield "What each remedy saves of a host's peak:\n"
        yield markdown(("job", "instead of", "predicted", "measured"), table)


def savings(rows: Mapping[str, Result]) -> Iterator[tuple[str, Result, tuple[float, float]]]:
    """Each example that is compared: its name, the other, and by which share its peak is lower, predicted and measured.

    Raises ValueError where a peak of a comparison is missing.
    """
    for example in all_examples():
        less, more = rows.get(example.name), rows.get(example.compared_with)
        if less is None or more is None:
            continue
        yield example.name, more, (_fall(more, less, "predicted_gib"), _fall(more, less, "measured_gib"))


def _fall(more: Result, less: Result, of: str) -> float:
    high, low = getattr(more.last, of, None), getattr(less.last, of, None)
    if not high or not low:
        raise ValueError(f"{less.name} is compared with {more.name}, and one of them has no {of}")
    return 1 - float(low / high)


def _frameworks(example: Example) -> set[str]:
    """The images that a job and its steps run in, by framework or algorithm."""
    job = load_job(str(example.path))
    own = job.image.framework or job.image.algorithm or ""
    return {own, *(step.image.framework or "" for step in job.processing)}
