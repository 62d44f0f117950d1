"""An embedded cloud of the examples' own: started, given its platforms, and taken down with all that was made in it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from sagefit.children import Children
from sagefit.console import LOCAL
from sagefit.errors import DONE, FAILED, SagefitError
from sagefit.examples.find import Example, faults_files
from sagefit.examples.result import Result, failed, of_run, planned_only
from sagefit.job import load_job
from sagefit.paths import ROOT, home
from sagefit.planning import plan
from sagefit.planning.rendered import check_rendered

MEMORY_SCALE = 1 / 16  # what the examples are made for, whatever this user's default is
_TOOLS = ("bin", "plugin-cache")  # what `make setup` fetched serves the stage, too
_LAST_LINES = 25
_MOST_SECONDS = 1200  # of one example; a run that nothing ends must not hold up all others

Tell = Callable[[Example, str], None]


def _silent(_example: Example, _line: str) -> None:
    pass


class Stage:
    """A cloud with a home of its own. Each command is a process, as for a user: Terraform is told by environment."""

    def __init__(self, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TF_VAR_"))}
        self._environment = kept | {
            "SAGEFIT_HOME": str(folder),
            "SAGEFIT_CLOUD": LOCAL,
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        }
        self._children = Children(self._environment, folder=ROOT)

    @classmethod
    @contextmanager
    def open(cls, examples: Sequence[Example]) -> Iterator[Stage]:
        """A stage with the platforms and the faults of these examples. Raises SagefitError when it cannot be set up."""
        with tempfile.TemporaryDirectory(prefix="sagefit-examples-") as name:
            folder = Path(name)
            for tool in _TOOLS:
                (home() / tool).mkdir(parents=True, exist_ok=True)
                (folder / tool).symlink_to(home() / tool)
            stage = cls(folder)
            try:
                stage._set_up(examples, folder / "faults.yaml")
                yield stage
            finally:
                stage._children.run("cloud", "down")

    def run(self, example: Example, tell: Tell = _silent) -> Result:
        """Render check, plan, apply, start and watch: what ``sagefit run`` does. Planned-only examples are not run.

        ``tell`` hears each line of progress. Nothing is raised: what goes wrong is the result.
        """
        if example.planned_only:
            return planned_only(example)
        path = str(example.path)
        try:
            check_rendered(plan(load_job(path)))
        except SagefitError as error:
            return failed(example, str(error))
        running = ["run", path, "--yes"]
        code, said = self._children.follow(running, lambda line: tell(example, line), seconds=_MOST_SECONDS)
        records = self._children.run("runs", path, "--json", "--limit", "1").out.splitlines()
        if not records:
            return failed(example, _end_of(said) or f"sagefit run ended with exit code {code}")
        try:
            return of_run(example, json.loads(records[0]), _end_of(said))
        except SagefitError as error:
            return failed(example, str(error))

    def run_all(
        self, examples: Sequence[Example], parallel: int, tell: Tell, done: Callable[[Example, Result], None]
    ) -> list[Result]:
        """Run examples, at most ``parallel`` at once; in their order. ``done`` hears of each that ends."""

        def one(example: Example) -> Result:
            result = self.run(example, tell)
            done(example, result)
            return result

        with ThreadPoolExecutor(max_workers=parallel) as pool:
            futures = [pool.submit(one, example) for example in examples]
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                self._children.stop()
                pool.shutdown(cancel_futures=True)
                raise

    def _set_up(self, examples: Sequence[Example], faults: Path) -> None:
        faults.write_text(_together(faults_files(examples)), encoding="utf-8")
        up = ["cloud", "up", "--memory-scale", str(MEMORY_SCALE), "--faults", str(faults)]
        for words in (up, *(["platform", "apply", platform, "--yes"] for platform in _platforms(examples))):
            done = self._children.run(*words)
            if done.code != DONE:
                raise SagefitError(f"sagefit {' '.join(words[:2])}: {_end_of(done.error)}", exit_code=FAILED)


def _platforms(examples: Iterable[Example]) -> list[str]:
    found = set()
    for example in examples:
        with suppress(SagefitError):  # a job file with a mistake, which is that example's result
            found.add(load_job(str(example.path)).platform)
    return sorted(found)


def _together(files: Iterable[Path]) -> str:
    """Faults files as one; each names the jobs it is for."""
    return yaml.safe_dump([fault for path in files for fault in yaml.safe_load(path.read_text(encoding="utf-8"))])


def _end_of(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LAST_LINES:]).removeprefix("error: ")
