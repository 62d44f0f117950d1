"""Strict readers of the two languages that alarms and dashboards use: Metrics Insights queries and searches.

Each is written from its page, read on 2026-11-27 in copies of 2023, and takes what the page shows and nothing more:

- https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-querylanguage.html
- https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-reserved-keywords.html,
  whose words are in ``reserved_words.txt``
- https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/search-expression-syntax.html. It wants quotes around
  names with other signs than letters and digits, but its own examples write ``AWS/EC2`` without: a slash needs none.
  The period behind the statistic was in that page until 2023, and still is in the example of a search of
  https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

RESERVED = frozenset(Path(__file__).with_name("reserved_words.txt").read_text(encoding="utf-8").split())
FUNCTIONS = frozenset({"AVG", "COUNT", "MAX", "MIN", "SUM"})
STATISTICS = frozenset({"SampleCount", "Average", "Sum", "Minimum", "Maximum"})
MAX_SERIES, MAX_SEARCH = 500, 1024

_QUERY = re.compile(
    r"""\s*(?:
      (?P<name>"(?:[^"'\\]|\\.)+")      # quotes inside are escaped
    | (?P<value>'(?:[^'\\]|\\.)*')
    | (?P<word>[A-Za-z0-9_]+)
    | (?P<sign>!=|[(),=])
    )""",
    re.VERBOSE,
)


class NotOfTheLanguageError(ValueError):
    """What is not of the language."""


@dataclass
class Query:
    """A Metrics Insights query."""

    function: str
    metric: str
    namespace: str
    schema: list[str] | None = None
    """The dimensions that metrics must have exactly; None where any will do."""
    where: list[tuple[str, str, str]] = field(default_factory=list)
    group_by: list[str] = field(default_factory=list)
    order_by: tuple[str, str] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Search:
    """A search expression."""

    namespace: str
    dimensions: tuple[str, ...]
    properties: dict[str, str]
    """Exact matches by what they are for, such as ``MetricName``."""
    statistic: str
    period: int | None


class _Tokens:
    """The rest of a query."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: list[tuple[str, str]] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _QUERY.match(text, place)
            if match is None:
                raise NotOfTheLanguageError(f"{text[place:]!r} is not understood")
            self._found.append((str(match.lastgroup), str(match[str(match.lastgroup)])))
            place = match.end()
        self._found.append(("end", ""))

    def take(self, kind: str) -> str:
        """The next token, which must be of a kind."""
        found, text = self._found.pop(0)
        if found != kind:
            raise NotOfTheLanguageError(f"{text!r} where a {kind} is expected, in {self._text!r}")
        return text

    def has(self, text: str) -> bool:
        """Take a keyword or a sign if it comes next. Keywords may be written in any case."""
        kind, found = self._found[0]
        if kind not in ("word", "sign") or found.upper() != text:
            return False
        self._found.pop(0)
        return True

    def must(self, *texts: str) -> None:
        """Take keywords or signs, one after the other."""
        for text in texts:
            if not self.has(text):
                raise NotOfTheLanguageError(f"{self._found[0][1]!r} where {text} is expected, in {self._text!r}")

    def identifier(self) -> str:
        """The name of a metric, a namespace or a label; in quotes if it is a keyword or has other signs."""
        if self._found[0][0] == "name":
            return re.sub(r"\\(.)", r"\1", self.take("name")[1:-1])
        word = self.take("word")
        if word.upper() in RESERVED:
            raise NotOfTheLanguageError(f"{word} is reserved and needs quotes, in {self._text!r}")
        return word

    def function(self) -> str:
        """A function that makes one value of many."""
        name = self.take("word").upper()
        if name not in FUNCTIONS:
            raise NotOfTheLanguageError(f"{name} is none of {sorted(FUNCTIONS)}")
        return name


def parse_query(text: str) -> Query:
    """Read a Metrics Insights query."""
    tokens = _Tokens(text)
    tokens.must("SELECT")
    function = tokens.function()
    tokens.must("(")
    metric = tokens.identifier()
    tokens.must(")", "FROM")
    query = Query(function, metric, *_source(tokens))
    if tokens.has("WHERE"):
        query.where.append(_condition(tokens))
        while tokens.has("AND"):
            query.where.append(_condition(tokens))
    if tokens.has("GROUP"):
        tokens.must("BY")
        query.group_by.append(tokens.identifier())
        while tokens.has(","):
            query.group_by.append(tokens.identifier())
    if tokens.has("ORDER"):
        tokens.must("BY")
        order = tokens.function()
        tokens.must("(", ")")
        descending = tokens.has("DESC")
        if not descending:
            tokens.has("ASC")  # which it is anyway
        query.order_by = (order, "DESC" if descending else "ASC")
    if tokens.has("LIMIT"):
        number = tokens.take("word")
        if not number.isdigit() or not 1 <= int(number) <= MAX_SERIES:
            raise NotOfTheLanguageError(f"LIMIT {number} is not from 1 to {MAX_SERIES}")
        query.limit = int(number)
    tokens.take("end")
    return query


def _source(tokens: _Tokens) -> tuple[str, list[str] | None]:
    if not tokens.has("SCHEMA"):
        return tokens.identifier(), None
    tokens.must("(")
    namespace, labels = tokens.identifier(), []
    while tokens.has(","):
        labels.append(tokens.identifier())
    tokens.must(")")
    return namespace, labels


def _condition(tokens: _Tokens) -> tuple[str, str, str]:
    key = tokens.identifier()
    operator = tokens.take("sign")
    if operator not in ("=", "!="):
        raise NotOfTheLanguageError(f"{operator!r} is no operator")
    return key, operator, tokens.take("value")[1:-1]


# --- Searches --------------------------------------------------------------------------------------------------------

_SEARCH = re.compile(r"SEARCH\(\s*'(?P<query>[^']*)'\s*,\s*'(?P<statistic>[^']*)'\s*(?:,\s*(?P<period>\d+)\s*)?\)")
_SCHEMA = re.compile(r"\s*\{(?P<names>[^{}]*)\}")
_NAME = re.compile(r'\s*(?:"(?P<quoted>[^"]+)"|(?P<plain>[A-Za-z0-9/_]+))\s*')
_TERM = re.compile(r'\s*(?P<name>[A-Za-z]+)="(?P<value>(?:[^"\\()]|\\["\\()])+)"\s*')


def parse_search(text: str) -> Search:
    """Read a search for metrics of one schema by exact matches, which is all that is written here."""
    found = _SEARCH.fullmatch(text)
    if found is None:
        raise NotOfTheLanguageError(f"no search: {text!r}")
    query = found["query"]
    if len(query) > MAX_SEARCH:
        raise NotOfTheLanguageError(f"{len(query)} characters, of {MAX_SEARCH}")
    if found["statistic"] not in STATISTICS:
        raise NotOfTheLanguageError(f"{found['statistic']!r} is none of {sorted(STATISTICS)}")
    period = int(found["period"]) if found["period"] else None
    if period is not None and (period == 0 or period % 60):
        raise NotOfTheLanguageError(f"a period of {period} s is no multiple of 60 s")
    schema = _SCHEMA.match(query)
    if schema is None:
        raise NotOfTheLanguageError(f"no schema in {query!r}")
    names = [_name(part) for part in schema["names"].split(",")]
    return Search(names[0], tuple(names[1:]), _terms(query[schema.end() :]), found["statistic"], period)


def _name(text: str) -> str:
    found = _NAME.fullmatch(text)
    if found is None:
        raise NotOfTheLanguageError(f"{text!r} needs quotes")
    return found["quoted"] or found["plain"]


def _terms(text: str) -> dict[str, str]:
    terms: dict[str, str] = {}
    place = 0
    while place < len(text.rstrip()):
        found = _TERM.match(text, place)
        if found is None or found["name"] in terms:
            raise NotOfTheLanguageError(f"{text[place:]!r} is no exact match")
        terms[found["name"]] = found["value"]
        place = found.end()
    if not terms:
        raise NotOfTheLanguageError("nothing is searched for")
    return terms
