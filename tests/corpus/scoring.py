"""The corpus, and how well Sagefit and a naive rule tell its classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml_tables
from sagefit.failures import Diagnosis, diagnose, table
from sagefit_launcher.patterns import CREATE_ERROR, REASON, first

HERE = Path(__file__).parent
SPLITS = ("development", "held_out", "fresh", "others")
KEPT = 1024  # characters that SageMaker keeps of a failure reason
MEMORY = ("gpu_memory", "host_memory", "shared_memory")
_NAIVE = re.compile(r"out of memory|exit ?(?:code|status)\W{0,3}137\b", re.IGNORECASE)


@dataclass(frozen=True)
class Text:
    """One failure: what SageMaker gave as its reason, what stands in the log, and what really ended it."""

    label: str
    source: str
    hard: bool
    reason: str | None
    log: str
    exit_code: int | None
    batch: int
    acceptable: tuple[str, ...] = ()  # other classes that are a fair answer
    first: Mapping[str, str] = field(default_factory=dict)  # what was said before anybody had read it

    def diagnosis(self) -> Diagnosis:
        """What Sagefit makes of it."""
        return diagnose(self.reason, log=self.log.splitlines(), exit_code=self.exit_code)

    @property
    def fair(self) -> tuple[str, ...]:
        """The classes that are a fair answer, the best first."""
        return (self.label, *self.acceptable)

    def naive(self) -> bool:
        """Whether exit code 137, or the words, say that memory ran out."""
        return self.exit_code == 137 or _NAIVE.search(f"{self.reason or ''}\n{self.log}") is not None


def as_text(row: dict[str, Any]) -> Text:
    """One row of a file."""
    return Text(
        row["class"],
        row["source"],
        row.get("hard", False),
        row.get("reason"),
        row.get("log") or "",
        row.get("exit_code"),
        row.get("batch", 0),
        tuple(row.get("acceptable", ())),
        row.get("first", {}),
    )


def by_itself(text: Text) -> str:
    """The class that the state machine tells without a launcher: of a failure reason, or of a log in one.

    What SageMaker's training toolkit does is imitated: it copies the end of the log into the failure reason, of which
    SageMaker keeps the first 1,024 characters. ``test_choice_rules.py`` holds the machine to the same answers.
    """
    return told_by_rules(as_reason(text))


def as_reason(text: Text) -> str:
    """The failure reason that the state machine would be given for a text."""
    if text.reason:
        return text.reason[:KEPT]
    code = text.exit_code if text.exit_code is not None else 1
    if not text.log:
        return f"AlgorithmError: , exit code: {code}"
    head = f'AlgorithmError: ExecuteUserScriptError:\nExitCode {code}\nErrorMessage "'
    tail = '"\nCommand "/usr/local/bin/python3.10 train.py"'
    return f"{head}{text.log[-(KEPT - len(head) - len(tail)) :]}{tail}"


def told_by_rules(reason: str) -> str:
    """The class that the Choice rules tell of a failure reason."""
    match = first(table(), REASON, reason)
    if not match and not reason.startswith("AlgorithmError"):
        match = first(table(), [CREATE_ERROR], reason)  # a create call's error, given as the reason
    return match.pattern.failure_class if match else "code"


@lru_cache(maxsize=len(SPLITS))
def load(split: str) -> tuple[Text, ...]:
    """The texts of one part."""
    return tuple(as_text(row) for row in yaml_tables.read(HERE / f"{split}.yaml"))


@dataclass(frozen=True)
class Score:
    """Labels against answers."""

    confusion: Counter[tuple[str, str]]

    @property
    def texts(self) -> int:
        """How many there are."""
        return sum(self.confusion.values())

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return sum(n for (label, told), n in self.confusion.items() if label == told) / self.texts

    def precision(self, name: str) -> float:
        """The share of answers ``name`` that are right."""
        return self._share(name, 1)

    def recall(self, name: str) -> float:
        """The share of texts of class ``name`` that are told."""
        return self._share(name, 0)

    def _share(self, name: str, side: int) -> float:
        of = sum(n for pair, n in self.confusion.items() if pair[side] == name)
        return self.confusion[name, name] / of if of else 1.0


def score(texts: Iterable[Text]) -> Score:
    """How Sagefit does. Where several classes are a fair answer, each of them counts as the label."""
    return answers(texts, lambda text: text.diagnosis().failure_class)


def answers(texts: Iterable[Text], told: Callable[[Text], str]) -> Score:
    """How anybody does who tells a class of each text."""
    pairs: Counter[tuple[str, str]] = Counter()
    for text in texts:
        answer = told(text)
        pairs[text.label, text.label if answer in text.fair else answer] += 1
    return Score(pairs)


def any_memory(texts: Iterable[Text], *, naive: bool) -> Score:
    """How the naive rule does, or Sagefit, when the question is only whether memory ran out."""
    pairs: Counter[tuple[str, str]] = Counter()
    for text in texts:
        told = text.naive() if naive else text.diagnosis().failure_class in MEMORY
        pairs["memory" if text.label in MEMORY else "other", "memory" if told else "other"] += 1
    return Score(pairs)
