"""The few commands that Sagefit runs in Git, and Git's errors with the knob to turn."""

from __future__ import annotations

import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.job.project import MARK
from sagefit.paths import ROOT


@dataclass(frozen=True)
class FileChange:
    """A changed file, by its path from the top of the repository. ``before`` is its old path if Git sees a rename."""

    path: Path
    before: Path | None = None


class Repository:
    """The Git repository around the checkout. Raises SagefitError where there is none, or no Git."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self.top = Path(self._git("rev-parse", "--show-toplevel").strip()).resolve()

    def commit(self, ref: str) -> str:
        """The full name of the commit that ``ref`` stands for."""
        try:
            return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").strip()
        except SagefitError as error:
            raise SagefitError(
                f"git knows no commit {ref!r}",
                hint="name a branch, tag or commit of this clone; fetch it, or in CI check out with fetch-depth: 0",
            ) from error

    def merge_base(self, base: str, head: str) -> str:
        """The commit where ``head`` branched from ``base``: later changes on ``base`` do not belong to ``head``."""
        base, head = self.commit(base), self.commit(head)
        found = self._run("merge-base", base, head)
        if found.returncode == 0:
            return found.stdout.decode().strip()
        shallow = self._git("rev-parse", "--is-shallow-repository").strip() == "true"
        why = "this clone is shallow and does not reach it" if shallow else "their histories have none"
        knob = "check out with fetch-depth: 0 (git fetch --unshallow)" if shallow else "name another --base"
        raise SagefitError(f"no common commit of {base[:12]} and {head[:12]}: {why}", hint=knob)

    def changes(self, base: str, head: str | None) -> list[FileChange]:
        """What differs from the commit ``base``, in the order of paths; without ``head``, in the files here."""
        diff = ["diff", "--name-status", "-z", "-M", "--no-ext-diff", "--ignore-submodules=none", base]
        parts = self._git(*diff, *([head] if head else []), "--").split("\0")
        found: list[FileChange] = []
        while parts and parts[0]:
            status = parts.pop(0)
            renamed = status[0] in "RC"
            before = Path(parts.pop(0)) if renamed else None
            found.append(FileChange(Path(parts.pop(0)), before if status[0] == "R" else None))
        if head is None:
            new = self._git("ls-files", "-z", "--others", "--exclude-standard", "--full-name", ":/").split("\0")
            found += [FileChange(Path(name)) for name in new if name]
        return sorted(set(found), key=lambda change: change.path)

    def file(self, commit: str, path: str) -> bytes | None:
        """A file of ``commit`` by its path from the top of the repository; None where there is none."""
        found = self._run("show", f"{commit}:{path}")
        return found.stdout if found.returncode == 0 else None

    def is_dirty(self) -> bool:
        """Whether files here differ from the commit that is checked out."""
        return bool(self._git("status", "--porcelain", "-z"))

    def extract(self, commit: str, into: Path, *paths: str) -> None:
        """Write the tree of ``commit`` (or what it has of ``paths``, from the top of the repository) into a folder."""
        listed = self._git("ls-tree", "-z", "--name-only", "--full-tree", commit, *paths).split("\0") if paths else []
        if paths and not any(listed):
            return
        done = self._run("-C", str(self.top), "archive", "--format=tar", commit, "--", *filter(None, listed))
        if done.returncode != 0:
            raise _failure(done)
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(into, filter="data")
        (into / MARK).touch()

    def _git(self, *args: str) -> str:
        done = self._run(*args)
        if done.returncode != 0:
            raise _failure(done)
        return done.stdout.decode("utf-8", "surrogateescape")

    def _run(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(["git", "-C", str(self._root), *args], capture_output=True, check=False)
        except FileNotFoundError as error:
            raise SagefitError("git is not installed", hint="install it; what changed is read from Git") from error


def _failure(done: subprocess.CompletedProcess[bytes]) -> SagefitError:
    text = done.stderr.decode("utf-8", "replace").strip() or f"git ended with {done.returncode}"
    if "not a git repository" in text:
        return SagefitError(f"{ROOT} is in no Git repository", hint="clone it, or run: git init")
    if "dubious ownership" in text:
        return SagefitError(text, hint="tell Git that the folder is yours: git config --global --add safe.directory")
    return SagefitError(f"git: {text}", hint="see whether the clone is whole: git fsck")
