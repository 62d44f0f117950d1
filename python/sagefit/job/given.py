"""What a script is given: hyperparameters, its arguments, configuration files that they name, and its own defaults.

Frameworks are started in three ways: with an argument for each setting (transformers' examples), with the name of a
YAML or JSON file (axolotl, LLaMA-Factory, torchtune, LitGPT, alignment-handbook, TRL's ``--config``), and with both,
where what is on the command line counts. What neither says may be a constant of the script, or the default of its own
argument. The launcher puts ``code.arguments`` after the hyperparameters, so of two equal names the argument counts, as
in argparse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import yaml

from sagefit.job.entry_point import calls_in, script_of
from sagefit.job.key import Key, dotted
from sagefit.job.names import plain
from sagefit.job.script_names import AROUND, OTHER_FILES

if TYPE_CHECKING:
    from sagefit.job.model import Job
    from sagefit.job.script_calls import Constant

LONGEST = 100_000
"""Bytes of a configuration; real ones have a hundredth."""
_MOST_LEAVES = 2_000
_DEEPEST = 6
_SUFFIXES = (".yaml", ".yml", ".json")
_SETTING = re.compile(r"\+{0,2}([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"-\.?\d")


class Given(Mapping[str, object]):
    """Values by name, those of the command line before those of files, and where each stands in the job file.

    ``own`` are the hyperparameters, ``spelt`` all names by their plain form. ``beaten`` has those hyperparameters that
    an argument of the same name replaces, by plain name: as it is spelt, and its value. ``called`` is what calls of the
    script say, by plain name: its place and value; ``trainer`` is the place and name of the Trainer that it makes.
    """

    def __init__(self, job: Job, hyperparameters: Mapping[str, object] | None = None) -> None:
        self.own = own = dict(job.hyperparameters if hyperparameters is None else hyperparameters)
        argued, bare = arguments(job)
        names = {plain(name) for name in argued}
        self._values: dict[str, object] = {name: raw for name, raw in own.items() if plain(name) not in names} | argued
        self._places: dict[str, Key] = {name: ("code", "arguments", f"--{name}") for name in argued}
        self.beaten = {plain(name): (name, raw) for name, raw in own.items() if plain(name) in names}
        self.called: dict[str, tuple[str, object]] = {}
        self.files: list[str] = []
        here = {plain(name) for name in self._values}
        for file in self._named(bare):
            content = configuration(job, file)
            if content is not None:
                self.files.append(file)
                self._add(file, _leaves(content), here)
        self.trainer: tuple[Key, str] | None = None
        self._followed: set[str] = set()
        self._defaults: set[str] = set()
        if job.code:
            self._of_script(job, job.code.entry_point, here)
        self.spelt = spelt(self._values)

    def _of_script(self, job: Job, file: str, here: set[str]) -> None:
        given = {plain(name): raw for name, raw in self._values.items() if not self.of_file(name)}
        calls = calls_in(job, given)
        if calls.trainer:
            self.trainer = ((f"{file}: {calls.trainer}",), calls.trainer)
        for name, told in calls.said.items():
            self.called[plain(name)] = (f"{file}: {told.place}", told.value)
            own = plain(name)
            if own in given and own in told.arguments and not told.direct:  # the script makes something else of it
                here.discard(own)
                self._followed.add(name)
            elif told.arguments & given.keys() and own not in given:
                self._followed.add(name)
            self._add(file, [(name, told.value)], here, told.place)
        defaults = {name: raw for name, raw in script_of(job).defaults.items() if name not in calls.unused}
        self._defaults = defaults.keys() - here
        self._add(file, defaults.items(), here)

    def _add(self, file: str, values: Iterable[tuple[str, object]], here: set[str], place: str = "") -> None:
        for name, raw in values:
            if plain(name) not in here:
                here.add(plain(name))
                self._values[name] = raw
                self._places[name] = (f"{file}: {place or name}",)

    def _named(self, bare: Iterable[str]) -> list[str]:
        """Files that may be configurations, as the command line names them: those in places of their own first."""
        values = [str(raw).strip() for name, raw in self._values.items() if not OTHER_FILES.search(plain(name))]
        return list(dict.fromkeys(word for word in (*bare, *values) if word.lower().endswith(_SUFFIXES)))

    def __getitem__(self, name: str) -> object:
        """The value of a name."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._values)

    def __len__(self) -> int:
        """How many names there are."""
        return len(self._values)

    def place(self, name: str) -> Key | None:
        """Where a value stands that is no hyperparameter; None for hyperparameters."""
        return self._places.get(name)

    def named(self, name: str) -> str:
        """A value's place as people read it."""
        return dotted(self.place(name) or ("hyperparameters", name))

    def source(self, name: str) -> str:
        """The file that says a value, or ``code.arguments``; empty for hyperparameters."""
        place = self._places.get(name)
        if place is None:
            return ""
        return str(place[0]).partition(": ")[0] if self.of_file(name) else "code.arguments"

    def of_file(self, name: str) -> bool:
        """Whether a file says it, so that whatever the job file says counts before it."""
        place = self._places.get(name)
        return place is not None and len(place) == 1

    def rank(self, name: str) -> int:
        """What counts first has the lowest: of two names of one number, that of the lower rank is taken.

        0: what the script makes of something that the job gives it, 1: what the job gives it, 2: what a configuration
        says, 3: what the script tells libraries, 4: defaults of its arguments.
        """
        if name in self._followed:
            return 0
        if not self.of_file(name):
            return 1
        return 4 if name in self._defaults else 3 if plain(name) in self.called and self._is_called(name) else 2

    def _is_called(self, name: str) -> bool:
        return self.named(name) == self.called[plain(name)][0]


def calls_of_job(job: Job, hyperparameters: Mapping[str, object]) -> Mapping[str, Constant]:
    """What the calls of the script say, by the name of a hyperparameter, where it is given these."""
    argued = arguments(job)[0]
    return calls_in(job, {plain(name): raw for name, raw in (*hyperparameters.items(), *argued.items())}).said


def is_of_file(place: Key) -> bool:
    """Whether a place is in a configuration of the code, and not in the job file."""
    return len(place) == 1 and isinstance(place[0], str) and ": " in place[0]


def arguments(job: Job) -> tuple[dict[str, object], list[str]]:
    """The values of ``code.arguments`` by name, and the words that have no name.

    ``--name value``, ``--name=value``, ``--name`` (true), ``--no-name`` (false where no value follows), and
    ``name=value`` as Hydra and torchtune have it. Several values after a name are a list.

    >>> from sagefit.job.given import _parsed
    >>> _parsed(["train.yaml", "--bf16", "--batch", "8", "lora_r=16", "--no-packing"])
    ({'bf16': True, 'batch': '8', 'lora_r': '16', 'packing': False}, ['train.yaml'])
    """
    return _parsed(job.code.arguments) if job.code else ({}, [])


def _parsed(words: Iterable[str]) -> tuple[dict[str, object], list[str]]:
    values: dict[str, object] = {}
    bare: list[str] = []
    name, follow = "", list[str]()

    def end() -> None:
        if not name:
            bare.extend(follow)
        elif follow:
            values[name] = follow[0] if len(follow) == 1 else list(follow)
        elif name.startswith(("no-", "no_")):
            values[name[3:]] = False
        else:
            values[name] = True

    for word in words:
        if word.startswith("-") and not _NUMBER.match(word):
            end()
            name, equals, value = word.lstrip("-").partition("=")
            follow = [value] if equals else []
        elif (setting := _SETTING.fullmatch(word)) and (not name or follow):
            end()
            name, follow = setting[1], [setting[2]]
            end()
            name, follow = "", []
        else:
            follow.append(word)
    end()
    return {name: raw for name, raw in values.items() if name}, bare


def configuration(job: Job, name: str) -> Mapping[str, object] | None:
    """What a YAML or JSON file of the code holds; None where it is no such file, or holds no names."""
    path = in_code(job, name)
    if path is None:
        return None
    found = path.stat()
    return _content(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def _content(path: Path, _changed: int, _size: int) -> Mapping[str, object] | None:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        parsed = json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        return None
    return MappingProxyType(parsed) if isinstance(parsed, dict) else None


def in_code(job: Job, name: str) -> Path | None:
    """The file of ``code.source_dir`` that a script, which runs in ``/opt/ml/code``, finds by this name."""
    if job.code is None or not name or "\0" in name:
        return None
    folder = job.local(job.code.source_dir).resolve()
    try:
        path = (folder / name.removeprefix("/opt/ml/code/")).resolve()
        there = path.is_relative_to(folder) and path.is_file() and path.stat().st_size <= LONGEST
    except (OSError, ValueError):
        return None
    return path if there else None


def _leaves(content: Mapping[str, object]) -> list[tuple[str, object]]:
    """Names and values, those of inner mappings with the names around them, too: ``train.micro_batch_size``."""
    found: list[tuple[str, object]] = []

    def walk(inner: Mapping[object, object], around: str, depth: int) -> None:
        for name, raw in inner.items():
            if len(found) >= _MOST_LEAVES:
                return
            whole = f"{around}{name}"
            if raw is not None:
                found.append((whole, raw))
            if isinstance(raw, Mapping) and depth < _DEEPEST:
                walk(raw, f"{whole}.", depth + 1)

    walk(content, "", 1)  # type: ignore[arg-type]
    return found


def spelt(names: Iterable[str]) -> dict[str, str]:
    """Names as they are spelt, by their plain form; a dotted one by its last part, too, where only one has it.

    ``train.micro_batch_size`` and ``trainer.precision`` say what the last part says (LitGPT, torchtune, Lightning);
    of ``eval.batch_size`` that is not so, hence the words that may stand before.
    """
    names = list(names)
    known = {plain(name): name for name in names}
    short: dict[str, list[str]] = {}
    for name in names:
        around, _, last = plain(name).rpartition(".")
        if around and set(around.split(".")) <= AROUND:
            short.setdefault(last, []).append(name)
    return {last: found[0] for last, found in short.items() if len(found) == 1 and last not in known} | known
