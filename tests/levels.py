"""Three levels of tests: ``--level fast``, ``usual`` and ``full``; where nothing is chosen, ``usual``.

``usual`` is what a change must pass. What takes long, and is a further case of what a shorter test shows, is marked
``@pytest.mark.full(witness="tests/file.py::test_name")`` and runs in ``full`` alone: the witness is the shorter test.
``fast`` starts neither Terraform nor an embedded cloud. Whoever names files, or gives ``-k`` or ``-m``, gets all of it.

The longest groups of tests start first, so that no processor waits for the last one: ``durations.json`` has the seconds
of those that take two or more. ``--write-durations`` writes it anew; a group that is not in it counts as short.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from pathlib import Path

import pytest
from _pytest.config import Config

LEVELS = ("fast", "usual", "full")
# What fast leaves out, by the beginning of its name: rooms, files and tests that start Terraform, an embedded cloud,
# checkov, or training.
NOT_FAST = (
    "acceptance/test_suite.py",
    *("aws/test_ledger.py", "aws/test_permissions.py", "aws/test_policies.py", "cloud/", "consumer/"),
    *("corpus/test_choice_rules.py", "corpus/test_corpus.py::test_the_page_is_up_to_date"),
    *("docs/test_cloud_page.py", "docs/test_hcl.py", "docs/test_shell.py", "doctor/", "e2e/", "examples/", "gitops/"),
    *("images/", "interruptions/"),
    *(f"job/test_{what}.py" for what in ("properties", "refused_early", "refused_modes", "two_rule_books")),
    "job/test_uploads.py::test_a_platform_allows_folders",
    *(
        f"launcher/test_launcher_{what}.py"
        for what in (
            *("console", "failures", "gpus", "growth", "kernel", "network", "run", "shared_memory", "stop", "torch"),
            "torchrun",
        )
    ),
    *("memory/test_accuracy_page.py", "memory/test_trace_torch.py", "mutations/", "package/test_locks.py"),
    *(f"planning/test_render.py::test_{what}" for what in ("terraform", "the_rendered_file_is_formatted")),
    *("plans/", "policies/", "proofs/"),
    *("review/test_actions.py", "review/test_cli.py", "review/test_corpus.py", "review/test_scan.py"),
    *("review/test_scope_groups.py", "review/test_secrets.py", "running/test_watch.py", "scenarios/", "security/"),
    # Tests of the suite itself, which start sessions of it.
    *(f"suite/test_{what}.py" for what in ("changed", "levels", "limits", "own_environment", "preloaded")),
    *("suite/test_second_try.py", "suite/test_unchanged.py"),
    *(f"terraform/test_{what}.py" for what in ("attached_providers", "terraform", "terraform_door", "toolchain")),
    "upgrade/",
)
_DURATIONS = Path(__file__).with_name("durations.json")
_SHORT = 2.0  # seconds; what takes less is not kept
COLLECTED = pytest.StashKey[list[pytest.Item]]()
_SECONDS: dict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this file."""
    group = parser.getgroup("levels")
    group.addoption("--level", choices=LEVELS, help="how much runs; the default is usual, and full for what is chosen")
    group.addoption("--write-durations", action="store_true", help=f"write {_DURATIONS.name} anew")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Config) -> None:
    """Settle the level, before pytest-xdist hands the options to its processes."""
    config.addinivalue_line("markers", "full(witness): runs in the level full alone; its witness runs in usual")
    if config.option.level is None:
        named = config.args_source not in (Config.ArgsSource.TESTPATHS, Config.ArgsSource.INVOCATION_DIR)
        config.option.level = "full" if named or config.option.keyword or config.option.markexpr else "usual"


def pytest_xdist_auto_num_workers() -> int:
    """Half as many processes again as processors: a third of its time a test waits, for Terraform or a training."""
    return math.ceil(1.5 * (os.cpu_count() or 1))


def pytest_report_header(config: Config) -> str:
    """Say what runs."""
    return f"level: {config.option.level} (of {', '.join(LEVELS)})"


def pytest_ignore_collect(collection_path: Path, config: Config) -> bool | None:
    """Files and rooms that are left out as a whole need not even be imported."""
    place = f"{_place(collection_path)}{'/' if collection_path.is_dir() else ''}"
    return True if config.option.level == "fast" and place.startswith(NOT_FAST) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of the level, and put first what takes longest."""
    config.stash[COLLECTED] = list(items)
    left_out = [item for item in items if not is_of(item, config.option.level)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    known = durations()
    items.sort(key=lambda item: -known.get(scope(item), 0))


def durations() -> dict[str, float]:
    """Seconds of each group of tests that takes long."""
    found: dict[str, float] = json.loads(_DURATIONS.read_text(encoding="utf-8")) if _DURATIONS.exists() else {}
    return found


def is_of(item: pytest.Item, level: str) -> bool:
    """Whether a level holds a test."""
    if level == "full":
        return True
    if item.get_closest_marker("full"):
        return False
    return level == "usual" or not f"{_place(item.path)}::{item.name}".startswith(NOT_FAST)


def _place(path: Path) -> str:
    return Path(os.path.relpath(path, Path(__file__).parent)).as_posix()


def scope(item: pytest.Item) -> str:
    """What runs in one process, one after the other: a group, or a test by itself."""
    group = item.get_closest_marker("xdist_group")
    return str(group.args[0]) if group else item.nodeid


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of each group."""
    test, _, group = report.nodeid.rpartition("@")
    _SECONDS[group if test and "]" not in group else report.nodeid] += report.duration


def pytest_unconfigure(config: Config) -> None:
    """Write the durations where that is asked for, when nobody looks any more at what the tests have changed."""
    if config.option.write_durations and "PYTEST_XDIST_WORKER" not in os.environ:
        kept = {name: round(seconds) for name, seconds in sorted(_SECONDS.items()) if seconds >= _SHORT}
        _DURATIONS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
