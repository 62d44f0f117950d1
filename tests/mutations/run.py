"""Break the modules one way at a time and see which suite notices: ``PYTHONPATH=tests python -m mutations.run``.

Results are written as they come, one file per mutation, so a run goes on where the last one ended. Several runs may
share a folder of results: a mutation that another one is at is passed over.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from checkout import copy_tree
from mutations.catalogue import Mutation, load
from mutations.suites import PYTHON, SUITES, Mutant, python_tests
from sagefit.paths import home
from sagefit.toolchain import terraform_binary
from terraform import attached, in_path


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for, print the table, and return 1 while a mutation is not caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="mutations.run")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutations whose name or file holds this text")
    parser.add_argument("--suites", default=",".join(SUITES), help="suites to run, in order (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=home() / "mutations", metavar="DIR")
    parser.add_argument("--report", action="store_true", help="print what is known and run nothing")
    options = parser.parse_args(arguments)
    suites = options.suites.split(",")
    if unknown := set(suites) - set(SUITES):
        parser.error(f"--suites: {', '.join(sorted(unknown))} unknown; known are {', '.join(SUITES)}")
    mutations = [mutation for mutation in load() if options.only in f"{mutation.name} {mutation.file}"]
    options.results.mkdir(parents=True, exist_ok=True)
    if not options.report:
        with tempfile.TemporaryDirectory(prefix="sagefit-mutations-") as scratch:
            tree = _checkout(Path(scratch).resolve() / "tree")
            _must_be_green(suites, tree, options.results)
            with attached.providers(), in_path.asking(terraform_binary(home())):
                for mutation in mutations:
                    _try(mutation, suites, tree, options.results)
    return _report(mutations, options.results)


def _checkout(tree: Path) -> Path:
    """Copy the checkout to a place where a mutation hurts nobody, as a repository of its own."""
    tree.mkdir()
    copy_tree(tree)
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)  # tests ask Git which files there are
    subprocess.run([sys.executable, "-m", "sagefit.toolchain"], cwd=tree, env=_own(tree), check=True)
    return tree


def _must_be_green(suites: list[str], tree: Path, results: Path) -> None:
    """Exit unless the folders of Python tests pass without a mutation: a suite that always fails catches nothing."""
    for suite in suites:
        green = results / f"{suite}.green"
        if suite in PYTHON and not green.exists():
            if words := python_tests(suite, tree):
                sys.exit(f"tests/{suite} fails without any mutation; mend it first:\n{words}")
            green.touch()


def _own(tree: Path) -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if k != "SAGEFIT_HOME"}
    return environment | {"PYTHONPATH": str(tree / "python")}


def _try(mutation: Mutation, suites: list[str], tree: Path, results: Path) -> None:
    """Run the suites that this mutation has not survived yet, up to the first that catches it."""
    with (results / f"{mutation.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        result = _known(mutation, results)
        target = tree / mutation.file
        text = target.read_text(encoding="utf-8")
        target.write_text(mutation.apply(text), encoding="utf-8")
        mutant = Mutant(mutation, tree, mutation.rule_owner(text))
        try:
            for suite in suites:
                if result["caught_by"] or suite in result["survived"]:
                    continue
                start = time.monotonic()
                words = SUITES[suite](mutant)
                seconds = round(time.monotonic() - start, 1)
                if words:
                    result |= {"caught_by": suite, "words": words}
                else:
                    result["survived"].append(suite)
                print(
                    f"{mutation.name}: {suite} {'catches it' if words else 'does not notice'} ({seconds} s)", flush=True
                )
                _path(mutation, results).write_text(json.dumps(result, indent=1), encoding="utf-8")
        finally:
            target.write_text(text, encoding="utf-8")


def _path(mutation: Mutation, results: Path) -> Path:
    """Return the file of a result; another mutation of the same name has another."""
    digest = hashlib.sha256(repr(mutation).encode()).hexdigest()[:8]
    return results / f"{mutation.name}-{digest}.json"


def _known(mutation: Mutation, results: Path) -> dict[str, Any]:
    path = _path(mutation, results)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"caught_by": None, "survived": []}


def _report(mutations: list[Mutation], results: Path) -> int:
    """Print which suite catches how many, the survivors, and what nobody tried."""
    known = {mutation: _known(mutation, results) for mutation in mutations}
    caught = Counter(result["caught_by"] for result in known.values() if result["caught_by"])
    survivors = [m for m, result in known.items() if not result["caught_by"] and result["survived"]]
    untried = [m for m, result in known.items() if not result["caught_by"] and not result["survived"]]
    print(f"\n{'suite':<12}catches")
    for suite in SUITES:
        print(f"{suite:<12}{caught[suite]:>7}")
    print(f"{'all':<12}{caught.total():>7} of {len(mutations)}")
    for mutation in survivors:
        print(
            f"survives {', '.join(known[mutation]['survived'])}: {mutation.name} ({mutation.file}): {mutation.breaks}"
        )
    if untried:
        print(f"not tried: {', '.join(mutation.name for mutation in untried)}")
    return 1 if survivors or untried else 0


if __name__ == "__main__":
    sys.exit(main())
