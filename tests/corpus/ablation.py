"""How much of what no pattern knows is told by words: the table without what each round of texts had taught it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

from corpus.scoring import MEMORY, SPLITS, Score, Text, load, score
from sagefit.failures import table, weighing
from sagefit_launcher import log_lines, vocabulary
from sagefit_launcher.patterns import EXCEPTION, TRACEBACK, Pattern, longest_part

ROUNDS = [(number, text) for number, split in enumerate(SPLITS) for text in load(split)]
"""Each text with its round: 0 development, 1 held-out, then the rounds of fresh ones."""
ROUNDS = [(number + max(0, text.batch - 1), text) for number, text in ROUNDS]


@contextmanager
def only(rows: Sequence[Pattern], *, words: bool) -> Iterator[None]:
    """Sagefit with a smaller table, and without the vocabulary."""
    with mock.patch.object(weighing, "table", return_value=tuple(rows)):
        if words:
            yield
        else:
            with mock.patch.object(vocabulary, "told", return_value=None):
                yield


def without_a_table(*, words: bool) -> Score:
    """What words alone tell of all texts."""
    with only((), words=words):
        return score(text for _, text in ROUNDS)


def with_earlier_patterns(*, words: bool) -> Score:
    """Each round with those patterns only that match a text of an earlier one: nobody had seen its texts then."""
    first: dict[Pattern, int] = {}
    for number, text in ROUNDS:
        for row in _matching(text):
            first.setdefault(row, number)
    answers = Score(Counter())
    for number in sorted({number for number, _ in ROUNDS}):
        rows = [row for row in table() if first.get(row, number) < number]
        with only(rows, words=words):
            answers.confusion.update(score(text for each, text in ROUNDS if each == number).confusion)
    return answers


def with_patterns_of_other_sources(*, words: bool) -> Score:
    """Each text with those patterns only that match a text of another repository: leave one source out."""
    sources: dict[Pattern, set[str]] = defaultdict(set)
    for _, text in ROUNDS:
        for row in _matching(text):
            sources[row].add(_repository(text))
    answered = Score(Counter())
    for _, text in ROUNDS:
        own = {_repository(text)}
        with only([row for row in table() if sources[row] - own], words=words):
            answered.confusion.update(score([text]).confusion)
    return answered


def _repository(text: Text) -> str:
    """The project that a thread belongs to; a constructed text or a page is one of its own, all own runs are one."""
    return text.source.split("#")[0].split("!")[0].split(" run: ")[0]


def memory(result: Score) -> tuple[float, float]:
    """Precision and recall of "memory ran out", of any kind."""
    pairs = result.confusion.items()
    both = sum(n for (label, told), n in pairs if label in MEMORY and told in MEMORY)
    told = sum(n for (_, told), n in pairs if told in MEMORY)
    real = sum(n for (label, _), n in pairs if label in MEMORY)
    return both / told if told else 1.0, both / real


def _matching(text: Text) -> Iterable[Pattern]:
    reason = text.reason or ""
    lines = list(log_lines.read([*reason.splitlines(), *text.log.splitlines()]))
    said = {reason, *(line.text for line in lines), *(line.raw for line in lines)}
    raised = {f"{line.text} in {line.source}" for line in lines if line.source}
    loose = {each.lower() for each in said}
    whole = {where: "\n".join(texts) for where, texts in ((EXCEPTION, loose), (TRACEBACK, raised), ("", said))}
    for row in table():
        seen = {EXCEPTION: loose, TRACEBACK: raised}.get(row.where, said)
        # To look for one part first passes over most rows at once.
        if longest_part(row.glob) in whole.get(row.where, whole[""]) and any(row.matches(each) for each in seen):
            yield row
