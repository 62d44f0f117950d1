"""Pictures of comments as the two hosts show them: ``python -m gitops.pictures DIR`` with Chromium on the path.

The styles are written after what GitHub and GitLab give their comments: widths, fonts, tables, code, folds. Their own
pages cannot be loaded here, and what draws a diagram for them is not there, so a diagram is shown as its text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from gitops.changes import failed, planned, reviewer
from review.plans import change, policy, reviewed
from review.test_jobs import definition, machine
from sagefit.gitops.normalised import KEY_VARIABLE
from sagefit.gitops.overview import overview
from sagefit.reviewing import Links, PastRun, Runs, Tuning, Written, brief, console, markdown

_GITHUB = """
body { font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; width: 764px; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0; } tr:nth-child(2n) { background: #f6f8fa; }
h2 { font-size: 1.5em; padding-bottom: .3em; border-bottom: 1px solid #d1d9e0b3; } h3 { font-size: 1.25em; }
code { font: 85% ui-monospace, "Liberation Mono", monospace; background: #818b981f; padding: .2em .4em; }
"""
_GITLAB = """
body { font: 14px/1.5 "GitLab Sans", "Noto Sans", Ubuntu, Cantarell, sans-serif; width: 890px; color: #28272d; }
table { width: auto; border-collapse: collapse; display: block; overflow: auto; }
th, td { padding: 10px 16px; border: 1px solid #dcdcde; } th { border-bottom: 2px solid #bfbfc3; }
h2 { font-size: 1.4em; margin: 24px 0 16px; } h3 { font-size: 1.2em; }
code { font: 90% "GitLab Mono", "Liberation Mono", monospace; background: #ececef; padding: 2px 4px; }
"""
_BOTH = """
body { margin: 16px; border: 1px solid #d1d9e0; border-radius: 6px; padding: 16px; background: #fff; }
pre { background: #f6f8fa; padding: 16px; overflow: auto; } pre code { background: none; padding: 0; }
details { margin: 8px 0; }
"""
STYLES = {"github": _GITHUB, "gitlab": _GITLAB}
_ROLE = "module.role.aws_iam_policy.jobs"


_FILES = "https://github.com/ada/models/blob/main/"
_LINKS = Links(_FILES, f"{_FILES}docs/review.md")
_RAN = (
    PastRun("bert-finetune-261128-070000", "2026-11-28 07:00", ended="", attempts=1, hardware="ml.g5.xlarge"),
    PastRun("bert-finetune-261127-070000", "2026-11-27 07:00", "completed", 2, "ml.g5.2xlarge", 20.1, 6.3, 1.93),
    PastRun("bert-finetune-261126-070000", "2026-11-26 07:00", "failed: memory", 2, "ml.g5.xlarge", 22.4, 6.1, 0.62),
)


def _stack(
    out: Path,
    key: str,
    *changes: dict[str, Any],
    fail_on: Any = None,
    written: Written | None = None,
    runs: Runs | None = None,
) -> None:
    found = reviewed(*changes, tuning=Tuning(fail_on=fail_on), links=_LINKS)
    blocked = tuple(f"{each.rule}:{each.address}" for each in found.blocking(fail_on)) if fail_on else ()
    where = console("us-east-1", "123456789012", "sagefit-dev-bert-finetune") if "/jobs/" in key else None
    page = markdown(found, written=written, runs=runs, console=where)
    planned(out, key, brief(found, runs), page, blocked)


def _dear() -> Any:
    dear = definition(types=("ml.p4d.24xlarge", "ml.p5.48xlarge"))
    for state in dear["States"].values():
        if "Parameters" in state:
            state["Parameters"]["AlgorithmSpecification"]["TrainingImage"] = (
                "9.dkr.ecr.us-east-1.amazonaws.com/x:latest"
            )
            state["Parameters"]["StoppingCondition"]["MaxRuntimeInSeconds"] = 345_600
    return dear


def routine(out: Path) -> None:
    """Half the batch, as any engineer may want."""
    runs = Runs(last=list(_RAN), in_progress=[_RAN[0].name])
    wrote = Written("jobs/bert.yaml", b"hyperparameters:\n  batch: 32\n", b"hyperparameters:\n  batch: 16\n")
    _stack(out, "dev/jobs/bert-finetune", machine(definition(), definition(batch="16")), written=wrote, runs=runs)


def dangerous(out: Path) -> None:
    """Another image, other instances, and the reviewer itself."""
    _stack(out, "dev/jobs/bert-finetune", machine(definition(), _dear()), fail_on="high")
    reviewer(out, "python/sagefit/reviewing/judge.py", "python/sagefit/gitops/apply.py", blocked=True)


def new(out: Path) -> None:
    """A job that was not there."""
    wrote = Written("jobs/bert.yaml", None, b"name: bert-finetune\nplatform: dev\n")
    _stack(out, "dev/jobs/bert-finetune", machine(None, definition()), written=wrote)


def many(out: Path) -> None:
    """Jobs beside each other, of which most have nothing to do."""
    _stack(out, "dev/jobs/bert-finetune", machine(definition(), definition(batch="512")))
    _stack(out, "dev/jobs/bert-large", machine(definition(), definition(batch="16")))
    for number in range(9):
        _stack(out, f"dev/jobs/small-{number}")


def platform(out: Path) -> None:
    """What all jobs share."""
    rights = [policy({"Effect": "Allow", "Action": what, "Resource": "*"}) for what in ("s3:GetObject", "s3:*")]
    topic = change("module.alarms.aws_sns_topic.this", {"name": "t"}, None)
    bucket = change("module.buckets.aws_s3_bucket.old", {"bucket": "models", "force_destroy": True}, None)
    shared = Runs(jobs=["bert-finetune", "bert-large", "digits"], in_progress=[_RAN[0].name])
    changes = (change(_ROLE, {"policy": rights[0]}, {"policy": rights[1]}), topic, bucket)
    _stack(out, "dev/platform", *changes, runs=shared)
    _stack(out, "dev/jobs/bert-finetune")


def broken(out: Path) -> None:
    """A file that is no job, beside one that is."""
    failed(out, "files/jobs/tune.yaml", "error: jobs/tune.yaml:4: colour: unknown key\nhint: did you mean code?\n")
    _stack(out, "dev/jobs/bert-finetune", machine(definition(), definition(batch="16")))


SIX: tuple[Callable[[Path], None], ...] = (routine, dangerous, new, many, platform, broken)


def page(make: Callable[[Path], None], style: str, *, opened: bool = False) -> str:
    """The comment as a host shows it."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        text = overview(Path(folder), "0" * 40).text(limit=65_536)
    if opened:
        text = text.replace("<details>", "<details open>", 1)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return f"<!doctype html><meta charset=utf-8><style>{_BOTH}{STYLES[style]}</style><body>{html}</body>"


def main(folder: Path) -> None:
    """Write a picture of each comment in each style."""
    os.environ.setdefault(KEY_VARIABLE, "pictures")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or sys.exit("Chromium is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    for make in SIX:
        for style in STYLES:
            file = folder / f"{make.__name__}-{style}.html"
            file.write_text(page(make, style, opened=True), encoding="utf-8")
            shot = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=960,1700"]
            command = [browser, *shot, f"--screenshot={file.with_suffix('.png')}", file.as_uri()]
            subprocess.run(command, check=True, capture_output=True)
            file.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
