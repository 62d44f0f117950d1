"""Turns pydantic's errors about a job file into problems: the rule in the words of the file, and what to write.

YAML may convert a value, such as ``2.10`` to a number. The problem then shows the text as the file has it. What a
message tells the user to write is tried on the field first.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from typing import Any

import yaml
from pydantic import ValidationError

from sagefit.job import takes
from sagefit.job.forms import WRONG_FAMILY, WRONG_FORM, is_tag
from sagefit.job.key import Key, Lines, dotted
from sagefit.job.memory_model import FAMILIES
from sagefit.job.model import Job
from sagefit.job.other_names import place_of, value_of
from sagefit.job.problem import Problem
from sagefit.job.values import as_written
from sagefit.nearest import nearest, plain

_MOST_SHOWN = 80
_LONGEST_NUMBER = 40
"""Characters, its unit included: a longer one was not meant as a number."""
_A_JOB = 2
"""With this many job fields below an unknown key, the whole job was indented by mistake."""


def complaints(error: ValidationError, data: dict[str, Any], lines: Lines) -> list[Problem]:
    """Every complaint about ``data`` once, in pydantic's order."""
    found: dict[Key, Problem] = {}
    for item in error.errors(include_url=False):
        field = tuple(part for part in item["loc"] if not is_tag(part) and part != "[key]")
        found.setdefault(field, _Complaint(field, item, data, lines).problem())
    return list(found.values())


class _Complaint:
    """One error of pydantic, with the text in the file."""

    def __init__(self, field: Key, item: Any, data: dict[str, Any], lines: Lines) -> None:
        self.field = field
        self.data = data
        self.entry = takes.value_at(data, field)  # the value under the key, when the key itself is wrong
        self.kind: str = item["type"]
        self.context: dict[str, Any] = item.get("ctx", {})
        self.message: str = item["msg"]
        self.value = item["input"]
        self.is_key = "[key]" in item["loc"]
        written = isinstance(self.value, _SCALARS) and not self.is_key
        self.written = lines.plain.get(field) if written else None
        self.quoted = lines.texts.get(field) if written else None

    @property
    def given(self) -> str:
        """The value for a message: its text in the file, shortened; a mapping or a list is only named as one."""
        if isinstance(self.value, dict | list):
            return "a mapping" if isinstance(self.value, dict) else "a list"
        if self.value is None:
            return "nothing"
        text = self.written if self.written and not isinstance(self.value, str) else takes.as_yaml(self.value)
        return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."

    def problem(self) -> Problem:
        """The rule and what to do, with the field they are about."""
        rule, knob = self._told()
        return Problem(self.field, rule, knob, alone=self.is_key or self.kind in ("extra_forbidden", "missing"))

    def _told(self) -> tuple[str, str]:
        name = str(self.field[-1]) if self.field else ""
        if ":" in name and self.entry is None:
            return f"{name!r} is one word to YAML", f"write a space after the colon: {name.replace(':', ': ', 1)}"
        if self.kind == "extra_forbidden":
            return "unknown key", _known_key(self.field, self.entry)
        if self.kind == "missing":
            example = takes.named_example(self.field) or takes.named_example(self.field[:-1])
            return "is required", f"add it{takes.choices_of(self.field) or example}"
        if self.kind == "literal_error":
            return self._choice(_choices(self.context["expected"]))
        if self.kind == WRONG_FAMILY:
            return self._family()
        if self.kind == "no_duration":
            meant = [each for each in self.context["meant"].split(" or ") if each and self._takes(each)]
            units = f"{self._write('a number and a unit', may_go=False)}; the units are s, m, h and d"
            return self.message, f"did you mean {' or '.join(meant)}?" if meant else units
        if self.kind == "string_pattern_mismatch":
            return f"{self.given} does not have the right form", self._write("text", may_go=False)
        if self.kind == WRONG_FORM:
            return self._wrong_form(self.message.removeprefix("must be "))
        if self.kind in takes.FORMS:
            return self._wrong_form(takes.FORMS[self.kind])
        if self.kind == "two_names":
            return self.message, f"keep {self.context['one']}"
        if self.kind in _BOUNDS:
            return self._bound()
        if self.kind in _LENGTHS:
            return self._length(len(self.value))
        rule, knob = _RULES.get(self.kind, (self.message, "correct it"))
        return rule.format(given=self.given), knob

    def _takes(self, value: object) -> bool:
        """Whether the types of the job file allow ``value`` at the field."""
        return takes.accepts(self.field, value, self.data)

    def _reads(self, text: str) -> bool:
        """The same of each of the values that ``text`` names, such as ``0.5 or 5.0e-1``."""
        return all(self._takes(yaml.safe_load(each)) for each in text.split(" or "))

    def _write(self, forms: str, *, may_go: bool = True) -> str:
        """What the field takes in words, with an example, and whether it may be left out."""
        example, words = takes.example(self.field, self.data), takes.words_at(self.field) or forms
        shown = "" if not example or "such as" in words or self._reads_all(words) else f", such as {example}"
        return f"write {words}{shown}{', or remove the line' if may_go and takes.may_go(self.field, self.data) else ''}"

    def _reads_all(self, words: str) -> bool:
        """Whether ``words`` are themselves what the field takes, such as an address or ``true or false``."""
        return words == "true or false" or (words.startswith("s3://") and self._takes(words))

    def _length(self, given: int) -> tuple[str, str]:
        """Too many characters or entries, or too few."""
        entries = "entries" if isinstance(self.value, list | dict) else "characters"
        if "max_length" in self.context:
            most = self.context["max_length"]
            rule = f"has {given} {entries}, and at most {most} are allowed"
            if entries == "entries":
                return rule, f"remove {given - most}"
            known = takes.words_at(self.field)
            return rule, f"shorten it; it takes {known}" if known else "shorten it"
        if given:
            return f"has {given} {entries}, and at least {self.context['min_length']} are needed", self._write("text")
        example = takes.example(self.field, self.data)
        shown = f", such as {example}" if example else ""
        end = ", or remove it" if takes.may_go(self.field, self.data) else ""
        return "the list is empty" if isinstance(self.value, list) else "is empty", f"fill it{shown}{end}"

    def _bound(self) -> tuple[str, str]:
        words, of, more = _BOUNDS[self.kind]
        bound = self.context[of]
        if takes.is_duration(self.field):
            text = self.quoted or self.written or ""
            if not re.search(r"[a-z]", text):
                rule = words.format(given=f"{self.value} s", bound=f"{bound} s")
                return rule, f"{more} {as_written(bound)}; a plain number is in seconds"
            return words.format(given=text, bound=_in_unit_of(text, bound)), f"{more} {as_written(bound)}"
        unit = next((unit for end, unit in _UNITS.items() if str(self.field[-1]).endswith(end)), "")
        rule, knob = words.format(given=f"{self.given}{unit}", bound=f"{_plain_number(bound)}{unit}"), ""
        if of == "le" and bound < 1 < self.value and self.value / 100 <= bound:
            knob = f", as a share and not as percent: {self.value / 100:g}"
        return rule, f"{more} {_plain_number(bound)}{knob}"

    def _choice(self, known: list[str]) -> tuple[str, str]:
        forms = "" if self.is_key else takes.forms_at(self.field)  # a choice beside other forms
        rule = (
            f"must be {forms}, and {self.given} is given"
            if forms
            else f"{self.given} is not one of {takes.listed(known)}"
        )
        given = self.written or str(self.value)
        known = [value.strip("'") for value in known]
        if self.is_key and isinstance(self.entry, str) and self.entry in known:
            return rule, f"the other way round: {self.entry}: {self.value}"
        if other := value_of(self.field, given, known):
            return rule, f"did you mean {other}?"
        near = nearest(given, known)
        return rule, f"did you mean {near[0]}?" if near else self._write(forms) if forms else "choose one"

    def _family(self) -> tuple[str, str]:
        known = ", ".join(FAMILIES)
        if "family" not in self.value:
            return "has no 'family'", f"add it: one of {known}"
        self.field = (*self.field, "family")
        self.value = self.value["family"]
        return self._choice([repr(family) for family in FAMILIES])

    def _wrong_form(self, forms: str) -> tuple[str, str]:
        rule = f"must be {forms}, and {self.given} is given"
        if isinstance(self.value, datetime.date):
            return f"YAML reads {self.given} as a date, which no field takes", self._in_quotes() or self._write(forms)
        if isinstance(self.value, str):
            return self._text(f"{rule}, which is text", forms)
        if isinstance(self.value, list | dict):
            return rule, self._regrouped(forms)
        return (rule, self._write(forms)) if self.value is None else self._plain_value(rule, forms)

    def _text(self, rule: str, forms: str) -> tuple[str, str]:
        """Text where something else belongs."""
        if self.field == ("image",) or (self.field[-1:] == ("image",) and "/" in self.value):
            return rule, takes.image_of(self.value)
        if "mapping" in forms and (found := re.fullmatch(r"([A-Za-z_][\w-]*):(\S.*)", self.value)):
            return rule, f"write a space after the colon: {found[1]}: {found[2]}"
        if "number" in forms and (number := _number_in(self.value, self.field)) and self._reads(number):
            if self.written is not None and re.fullmatch(_EXPONENT, self.value):
                said = f"YAML reads {self.value} as text, because the number has no decimal point"
                return f"must be {forms}, and {said}", f"write {number}"
            quoted = self.written is None and _is_number(self.value)
            return rule, "remove the quotes" if quoted else f"write {number}"
        if forms.startswith("true or false") and (meant := takes.TRUTH.get(self.value.casefold())):
            return rule, f"write {meant}"
        return rule, self._in_brackets(self.value) or self._write(forms)

    def _regrouped(self, forms: str) -> str:
        """What to do about a list in place of a mapping, and the other way round."""
        only = self.value[0] if isinstance(self.value, list) and len(self.value) == 1 else None
        if isinstance(only, str | int | float) and self._takes(only):
            return f"write {takes.as_yaml(only)} without the dash or brackets"
        example = takes.example(self.field, self.data)
        shown = f", such as {example}" if example else ""
        if isinstance(self.value, list) and example.startswith("{"):
            return f"write NAME: VALUE without dashes{shown}"
        if isinstance(self.value, dict) and self.value and "list" in forms:
            return f"begin each entry with a dash{shown}"
        return self._write(forms)

    def _plain_value(self, rule: str, forms: str) -> tuple[str, str]:
        """A number or boolean where something else belongs."""
        if isinstance(self.value, bool) and self.written and self.written.casefold() not in ("true", "false"):
            rule = f"{rule}, which YAML reads as {str(self.value).lower()}"
        if knob := self._in_quotes():
            kind = "true or false" if isinstance(self.value, bool) else "a number"
            return rule if "YAML" in rule else f"{rule}, which YAML reads as {kind}", knob
        if isinstance(self.value, float) and "whole" in forms and math.isfinite(self.value):
            near = dict.fromkeys((math.floor(self.value), math.ceil(self.value)))
            if whole := " or ".join(str(number) for number in near if self._takes(number)):
                return rule, f"write {whole}"
        if forms.startswith("true or false") and self.value in (0, 1):
            return rule, f"write {str(bool(self.value)).lower()}"
        return rule, self._in_brackets(self.value, self.written or takes.as_yaml(self.value)) or self._write(forms)

    def _in_quotes(self) -> str | None:
        """The advice to quote the value; None where the field takes no such text."""
        text = self.written or takes.as_yaml(self.value)
        if not self._takes(text) or not takes.may_be(self.field, text, self.data):
            return None
        return f'put it in quotes: "{text}"'

    def _in_brackets(self, *values: object) -> str | None:
        """The advice to write a list of the first of ``values`` that the field takes so; None where it takes none."""
        inside = (*self.field, 0)
        for value in values:
            is_text = isinstance(value, str)
            if value != "" and self._takes([value]) and (not is_text or takes.may_be(inside, str(value), self.data)):
                return f"write [{_as_item(str(value)) if is_text else takes.as_yaml(value)}]"
        return None


_SCALARS = (str, int, float, bool, datetime.date)
_EXPONENT = r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+"
_NUMBER = r"[-+]?(?:\d[\d_,' ]*)?\d(?:\.\d+)?(?:[eE][-+]?\d+)?"
_LENGTHS = ("string_too_long", "string_too_short", "too_long", "too_short")
_RULES = {"finite_number": ("{given} is no finite number", "write a number")}
_BOUNDS = {
    "less_than_equal": ("{given} is above the limit of {bound}", "le", "lower it to at most"),
    "less_than": ("must be below {bound}, and {given} is given", "lt", "lower it to less than"),
    "greater_than_equal": ("{given} is below the least value of {bound}", "ge", "raise it to at least"),
    "greater_than": ("must be above {bound}, and {given} is given", "gt", "raise it to more than"),
}
"""For a number out of bounds: the message, the bound's name in pydantic's context, and what to write."""
_UNITS = {"_gb": " GB", "_gib": " GiB"}


def _in_unit_of(text: str, seconds: int) -> str:
    """``seconds`` in the unit of a duration, where it has one unit and that makes a whole number."""
    units = set(re.findall(r"[smhd]", text))
    size = {"s": 1, "m": 60, "h": 3600, "d": 86400}[units.pop()] if len(units) == 1 else 0
    return f"{seconds // size}{text.strip()[-1]}" if size and seconds % size == 0 else as_written(seconds)


def _plain_number(bound: float) -> str:
    """``bound`` without an exponent and without a point that says nothing."""
    return str(int(bound)) if bound == int(bound) else f"{bound:g}"


def _choices(expected: str) -> list[str]:
    """The values of pydantic's ``'a', 'b' or True``, as a job file has them: text in quotes, all else without."""
    return [
        found if found[0] == "'" else found.lower()
        for found in re.findall(r"'[^']*'|\w+", expected.replace(" or ", ", "))
    ]


def _as_item(text: str) -> str:
    """``text`` as an entry of a list in brackets."""
    bare = re.fullmatch(r"[\w./-]*[A-Za-z./][\w./-]*", text) and yaml.safe_load(text) == text
    return text if bare else json.dumps(text, ensure_ascii=False)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text) is not None


def _number_in(text: str, field: Key) -> str | None:
    """The number of a text such as ``50 GB``, ``1,000`` or ``1e-4`` as YAML reads it; None where there is none."""
    found = re.fullmatch(rf"\s*[$€]?\s*({_NUMBER})\s*([A-Za-z%$€]*)\s*", text)
    if found is None or len(text) > _LONGEST_NUMBER:
        return None
    one = found[1].replace(",", ".") if re.fullmatch(r"[-+]?\d+,(?:\d{1,2}|\d{4,})|0,\d+", found[1]) else found[1]
    digits = re.sub(r"[_,' ]", "", one)
    if found[2] == "%":
        return f"{float(digits) / 100:g}"
    if scale := _scale(found[2], str(field[-1])):
        return f"{float(digits) * scale:.12g}"
    if re.fullmatch(_EXPONENT, digits):
        mantissa, _, exponent = digits.lower().partition("e")
        pointed = mantissa if "." in mantissa else f"{mantissa}.0"
        sign = exponent if exponent[0] in "+-" else f"+{exponent}"
        return f"{_decimal(digits)} or {pointed}e{sign}"
    return digits


def _scale(unit: str, field: str) -> float | None:
    """The factor that converts a number with ``unit`` to the unit of ``field``; None when the unit is unknown."""
    size = re.fullmatch(r"([kmgtKMGT])(i?)[bB]?", unit)
    if size is None:
        return {"K": 1e3, "k": 1e3, "M": 1e6, "m": 1e6, "B": 1e9, "bn": 1e9, "b": 1e9, "T": 1e12}.get(unit)
    power = "kmgt".index(size[1].lower()) + 1
    if field.endswith(("_gb", "_gib")):
        return float((1024.0 if size[2] else 1000.0) ** (power - 3))
    return float((1024.0 if size[2] else 1000.0) ** power)


def _decimal(digits: str) -> str:
    """``digits`` without an exponent."""
    return f"{float(digits):.12f}".rstrip("0").rstrip(".") if abs(float(digits)) < 1e15 else digits


def _known_key(field: Key, value: Any) -> str:
    """What to write in place of an unknown key with ``value`` below it."""
    *place, key = field
    name = str(key)
    if not place and isinstance(value, dict) and len(set(value) & set(Job.model_fields)) >= _A_JOB:
        return f"the fields below {name} belong to the top level of the file: remove {name}: and indent them less"
    here = takes.fields_at(tuple(place))
    if same := [each for each in here if plain(each) == plain(name)]:
        return f"did you mean {same[0]}?"
    if other := place_of(tuple(place), name):
        return f"did you mean {other}?"
    if elsewhere := _elsewhere(name, tuple(place)):
        if elsewhere == [name]:
            return f"{name} belongs to the top level of the file, outside of {dotted(tuple(place))}"
        return f"{name} belongs elsewhere: {' or '.join(elsewhere)}"
    near = nearest(name, here)
    if near:
        return f"did you mean {near[0]}?"
    home = "; what the script takes goes into hyperparameters" if place in ([], ["memory"]) else ""
    return f"known here: {', '.join(here)}{home}"


def _elsewhere(name: str, place: Key) -> list[str]:
    """The dotted paths of fields of that name in other parts of a job file, those nearest to ``place`` first."""
    here = dotted(place)
    found = [path for path in takes.paths(Job, ()) if plain(path[-1]) == plain(name)]
    inside = [path for path in found if here != "the file" and ".".join(path).startswith(f"{here}.")]
    shortest = min((len(path) for path in found), default=0)
    return [".".join(path) for path in inside or [path for path in found if len(path) == shortest][:3]]
