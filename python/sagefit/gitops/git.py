"""The few commands that Sagefit runs in Git, and Git's errors with the knob to turn."""

from __future__ import annotations

import io
import os
import subprocess
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


_LINK, _PROGRAM = "120000", "100755"  # modes of Git


@dataclass(frozen=True)
class _Entry:
    """A line of ``git ls-tree``. Raises SagefitError for a path that leaves the tree, which no Git writes."""

    mode: str
    kind: str
    name: str
    path: str

    @classmethod
    def of(cls, line: str) -> _Entry:
        """Of ``MODE TYPE NAME<tab>PATH``."""
        about, _, path = line.partition("\t")
        if {"", ".", "..", ".git"} & set(path.lower().split("/")):
            raise SagefitError(f"git: {path!r} is no path in a tree", hint="see whether the clone is whole: git fsck")
        mode, kind, name = about.split(" ")
        return cls(mode, kind, name, path)


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
        """Write the tree of ``commit`` (or what it has of ``paths``, from the top of the repository) into a folder.

        The files have the bytes of the commit. Nothing that the commit says about itself has a part in it: no
        attribute of Git leaves a file out or changes it, no filter runs, and a link that leaves the folder is written
        as a file with its text.
        """
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths).split("\0")
        files = [_Entry.of(line) for line in listed if line]
        names = "".join(f"{file.name}\n" for file in files if file.kind == "blob")
        blobs = io.BytesIO(self._git_bytes("cat-file", "--batch", given=names.encode()))
        links: list[tuple[Path, str]] = []
        for file in files:
            path = into / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.kind != "blob":  # a submodule
                path.mkdir(exist_ok=True)
                continue
            size = int(blobs.readline().split()[2])
            data = blobs.read(size)
            blobs.read(1)
            if file.mode == _LINK:
                links.append((path, data.decode("utf-8", "surrogateescape")))
            else:
                path.write_bytes(data)
                path.chmod(0o755 if file.mode == _PROGRAM else 0o644)
        for path, target in links:  # last, so that no file is written through one
            inside = Path(os.path.normpath(path.parent / target)).is_relative_to(into)
            if inside and not Path(target).is_absolute():
                path.symlink_to(target)
            else:
                path.write_text(target, encoding="utf-8", errors="surrogateescape")
        if files:
            (into / MARK).touch()

    def _git(self, *args: str) -> str:
        return self._git_bytes(*args).decode("utf-8", "surrogateescape")

    def _git_bytes(self, *args: str, given: bytes | None = None) -> bytes:
        done = self._run(*args, given=given)
        if done.returncode != 0:
            raise _failure(done)
        return done.stdout

    def _run(self, *args: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self._root), *args]
        try:
            return subprocess.run(command, capture_output=True, check=False, input=given)
        except FileNotFoundError as error:
            raise SagefitError("git is not installed", hint="install it; what changed is read from Git") from error


def _failure(done: subprocess.CompletedProcess[bytes]) -> SagefitError:
    text = done.stderr.decode("utf-8", "replace").strip() or f"git ended with {done.returncode}"
    if "not a git repository" in text:
        return SagefitError(f"{ROOT} is in no Git repository", hint="clone it, or run: git init")
    if "dubious ownership" in text:
        return SagefitError(text, hint="tell Git that the folder is yours: git config --global --add safe.directory")
    return SagefitError(f"git: {text}", hint="see whether the clone is whole: git fsck")
