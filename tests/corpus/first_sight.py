"""Scores texts that somebody else collected before anybody here reads them, and keeps them with what was said of them.

``PYTHONPATH=tests python -m corpus.first_sight FILE ROUND`` reads one JSON object a line (``class``, ``acceptable``,
``source``, ``log``, ``reason``, ``exit_code``) and appends the texts to ``others.yaml``. The two answers of that moment
stay there for good: of ``diagnose``, and of the state machine by itself. What is kept of a text is the end that is
answered alike, without the outer frames of a traceback that change nothing, and with other names and numbers than what
somebody printed once.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from corpus.scoring import HERE, SPLITS, Text, as_text, by_itself, load

OTHERS = HERE / "others.yaml"
# Folders of whoever printed a text, which a reader of paths takes for those of this machine, and the host of a
# registry, which is not to be named; with each what is kept.
_ROOTS = (
    (re.compile(f"/{'root'}/"), "/home/user/"),
    (re.compile(rf"/{'opt'}/(?!ml\b)(?=[A-Za-z])"), "/usr/local/"),
    (re.compile(rf"(?<=//){'pypi'}\.org/project/"), "example.org/"),
)
_PEOPLE = ("user", "ada", "someone")
_PERSON = re.compile(r"((?:/home/|/Users/|[A-Z]:\\Users\\|/mnt/|/data/|/envs/|\\envs\\|/scratch/))[\w.-]+")
# Sizes, addresses, times and process ids; what has less than four digits may be a code that means something.
_NUMBER = re.compile(r"(?<![\w.])\d{4,}(?![\w])|(?<=0x)[0-9a-f]{6,}|(?<=\.)\d{4,}(?!\w)")
_FRAME = re.compile(r"\s*File \".*\", line \d+, in ")
_MARKS = re.compile(r"\s*[~^]+\s*")  # below the source line of a frame
_KEPT = 3  # lines
_TRIES = 9


def judged(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A row as it is kept: its label, its text, and what is said of it now."""
    kept: dict[str, Any] = {"class": row["class"], "source": row["source"], "batch": number}
    if row.get("acceptable"):
        kept["acceptable"] = row["acceptable"]
    kept |= {field: row[field] for field in ("reason", "log", "exit_code") if row.get(field) is not None}
    first = _answers(kept)
    altered = next(
        filter(lambda other: _answers(other) == first, (_altered(kept, seed) for seed in range(_TRIES))), None
    )
    if altered is None:
        raise ValueError(f"{row['source']}: with other names and numbers it is answered otherwise; change it by hand")
    return shortened(altered) | {"first": first}


def shortened(kept: dict[str, Any]) -> dict[str, Any]:
    """A text without what does not matter for its answers: other people's code, and what came long before."""
    answers = _answers(kept)
    lines = kept.get("log", "").splitlines()

    def less(shorter: list[str]) -> bool:
        return _answers(kept | {"log": "\n".join(shorter)}) == answers

    number = 0
    while number < len(lines):
        frame = 2 if _FRAME.match(lines[number]) else 0
        if frame and _MARKS.fullmatch("".join(lines[number + 2 : number + 3])):
            frame = 3
        outer = bool(frame and _FRAME.match("".join(lines[number + frame : number + frame + 1])))
        if outer and less(without := lines[:number] + lines[number + frame :]):
            lines = without
        else:
            number += 1
    right = as_text(kept | {"first": answers})
    while answers["diagnose"] in right.fair and len(lines) > _KEPT and less(lines[1:]):
        lines = lines[1:]
    return kept | {"log": "\n".join(lines)} if lines else kept


def _is_known(row: dict[str, Any]) -> bool:
    """Whether a thread or its text is in the corpus already: that would be no first sight."""
    known = [text for split in SPLITS for text in load(split)]
    plain = row["source"].replace("!", "#")
    said = (row.get("reason"), row.get("log") or "")
    is_known = any(plain == text.source.replace("!", "#") or said == (text.reason, text.log) for text in known)
    if is_known:
        print(f"{row['source']}: known, left out")
    return is_known


def _answers(kept: dict[str, Any]) -> dict[str, str]:
    text = as_text(kept)
    return {"diagnose": text.diagnosis().failure_class, "machine": by_itself(text)}


def _altered(kept: dict[str, Any], seed: int) -> dict[str, Any]:
    """A text with other names and numbers, the same name or number by the same other one."""
    drawn = random.Random(f"{kept['source']}{seed}")
    others: dict[str, str] = {}

    def other(found: re.Match[str]) -> str:
        number = found.group()
        if number not in others:
            others[number] = number[0] + "".join(drawn.choice("123456789") for _ in number[1:])
        return others[number]

    def changed(text: str) -> str:
        for folder, instead in _ROOTS:
            text = folder.sub(instead, text)
        text = _PERSON.sub(lambda found: f"{found.group(1)}{_PEOPLE[seed % len(_PEOPLE)]}", text)
        return _NUMBER.sub(other, text)

    return {
        key: changed(value) if key in ("reason", "log") and isinstance(value, str) else value
        for key, value in kept.items()
    }


def main() -> None:
    """Judge a file and keep it."""
    path, number = Path(sys.argv[1]), int(sys.argv[2])
    given = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [judged(row, number) for row in given if not _is_known(row)]
    if not rows:
        raise SystemExit(f"{path}: nothing in it is new")
    with OTHERS.open("a", encoding="utf-8") as file:
        yaml.dump(rows, file, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=4000)
    texts: list[Text] = [as_text(row) for row in rows]
    for who in ("diagnose", "machine"):
        right = Counter(text.first[who] in text.fair for text in texts)
        print(f"{who}: {right[True]} of {len(texts)} right")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that they can be read."""


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _string)


if __name__ == "__main__":
    main()
