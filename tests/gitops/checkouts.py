"""Checkouts with a history of their own, in which commands run as a user runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from checkout import copy_tree
from cli_runner import Done
from job_files import VALID, changed

_IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")
_JOB = changed(VALID, {"code.source_dir": "../training", "inputs.train": "../rows"})
_CONFIG = {
    "model_type": "bert",
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}


@dataclass(frozen=True)
class Checkout:
    """A working tree of Git with a copy of the project in it."""

    path: Path
    home: Path

    def git(self, *args: str) -> str:
        """Run Git; returns what it printed."""
        done = subprocess.run(
            ["git", "-C", str(self.path), *_IDENTITY, *args], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {args}: {done.stderr}"
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text, encoding="utf-8")

    def append(self, name: str, text: str) -> None:
        """Add to a file, which is made if need be."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(text)

    def job(self, file: str, changes: dict[str, Any] | None = None) -> None:
        """Write a job file: a valid one with changes."""
        self.write(file, yaml.safe_dump(changed(_JOB, changes), sort_keys=False))

    def commit(self, message: str = "change") -> str:
        """Commit all; returns the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def sagefit(self, *args: str | Path, check: int | None = 0, **environment: str) -> Done:
        """Run a command of this checkout's own code."""
        return self.python("-m", "sagefit", *map(str, args), check=check, **environment)

    def python(self, *args: str, check: int | None = 0, **environment: str) -> Done:
        """Run Python with this checkout's own code."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SAGEFIT_", "TF_", "CLOUD", "GIT"))}
        own = {"SAGEFIT_HOME": str(self.home), "PYTHONPATH": str(self.path / "python"), "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, *args],
            cwd=self.path,
            env=kept | own | environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        assert check is None or done.returncode == check, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Done(done.returncode, done.stdout, done.stderr)

    def changed(self, base: str = "main", *args: str) -> dict[str, dict[str, Any]]:
        """What ``changed`` says, by stack."""
        report = json.loads(self.sagefit("changed", "--base", base, "--json", *args).out)
        return {stack["stack"]: stack for stack in report["stacks"]}


def make_origin(path: Path) -> Checkout:
    """The project with two jobs of its own instead of the examples', committed on ``main``."""
    path.mkdir(parents=True)
    copy_tree(path)
    for folder in ("tests", "docs", "jobs", "examples", "tools"):
        shutil.rmtree(path / folder)
    origin = Checkout(path, path.parent / "home")
    origin.write("training/train.py", "print('hello')\n")
    origin.write("rows/a.csv", "1,2\n")
    origin.write("models/small/config.json", json.dumps(_CONFIG))
    origin.job("jobs/digits.yaml")
    memory = {"model": "../models/small", "sequence_length": 128, "stack": "hf-trainer"}
    origin.job("jobs/tune.yaml", {"name": "tune", "code.source_dir": "../tuning", "inputs": None, "memory": memory})
    origin.write("tuning/train.py", "print('hello')\n")
    origin.git("init", "-q", "-b", "main")
    origin.commit("base")
    return origin


def clone(origin: Path | str, path: Path, home: Path, *options: str) -> Checkout:
    """A clone on a branch of its own."""
    subprocess.run(["git", "clone", "-q", *options, str(origin), str(path)], check=True, capture_output=True)
    found = Checkout(path, home)
    found.git("checkout", "-q", "-b", "work")
    return found
