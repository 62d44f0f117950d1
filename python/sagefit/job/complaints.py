"""Turns pydantic's errors about a job file into problems: the rule in the words of the file, and what to write.

YAML may convert a value, such as ``2.10`` to a number. The problem then shows the text as the file has it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sagefit.job.forms import WRONG_FAMILY, WRONG_FORM, is_tag
from sagefit.job.image_table import frameworks
from sagefit.job.key import Key, Lines, dotted, pattern_of
from sagefit.job.limits import limits
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
        found.setdefault(field, _Complaint(field, item, _at(data, field), lines).problem())
    return list(found.values())


class _Complaint:
    """One error of pydantic, with the text in the file."""

    def __init__(self, field: Key, item: Any, entry: Any, lines: Lines) -> None:
        self.field = field
        self.entry = entry  # the value under the key, when the key itself is wrong
        self.kind: str = item["type"]
        self.context: dict[str, Any] = item.get("ctx", {})
        self.message: str = item["msg"]
        self.value = item["input"]
        self.is_key = "[key]" in item["loc"]
        written = isinstance(self.value, _SCALARS) and not self.is_key
        self.written = lines.plain.get(field) if written else None

    @property
    def given(self) -> str:
        """The value for a message: its text in the file, shortened; a mapping or a list is only named as one."""
        if isinstance(self.value, dict | list):
            return "a mapping" if isinstance(self.value, dict) else "a list"
        if self.value is None:
            return "nothing"
        text = self.written if self.written and not isinstance(self.value, str) else _as_yaml(self.value)
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
            example = _such_as(self.field, ", such as ") or _such_as(self.field[:-1], ", such as ")
            return "is required", f"add it{_choices_of(self.field) or example}"
        if self.kind == "literal_error":
            return self._choice(_choices(self.context["expected"]))
        if self.kind == WRONG_FAMILY:
            return self._family()
        if self.kind == "no_duration":
            meant = self.context["meant"]
            return self.message, f"did you mean {meant}?" if meant else _DURATIONS
        if self.kind == "string_pattern_mismatch":
            words = _words_of(self.context["pattern"])
            return f"{self.given} does not match {self.context['pattern']}", f"write {words}"
        if self.kind == WRONG_FORM:
            return self._wrong_form(self.message.removeprefix("must be "))
        if self.kind in _FORMS:
            return self._wrong_form(_FORMS[self.kind])
        if self.kind == "two_names":
            return self.message, f"keep {self.context['one']}"
        if self.kind in _BOUNDS:
            return self._bound()
        if self.kind in ("string_too_long", "string_too_short") and (words := _words_at(self.field)):
            rule = _RULES[self.kind][0].format(length=_length(self.value), **self.context)
            return rule, f"{_RULES[self.kind][1]}: it has {words}"
        rule, knob = _RULES.get(self.kind, (self.message, "correct it"))
        return rule.format(given=self.given, length=_length(self.value), **self.context), knob

    def _bound(self) -> tuple[str, str]:
        words, of, more = _BOUNDS[self.kind]
        bound = self.context[of]
        if _is_duration(self.field):
            return f"{self.value} s {words} {bound} s", f"{more} {as_written(bound)}; a plain number is in seconds"
        rule, knob = f"{self.given} {words} {bound}", ""
        if of == "le" and bound < 1 and self.value / 100 <= bound:
            knob = f", as a share and not as percent: {self.value / 100:g}"
        return rule, f"{more} {bound}{knob}"

    def _choice(self, known: list[str]) -> tuple[str, str]:
        rule = f"{self.given} is not one of {_listed(known)}"
        given = self.written or str(self.value)
        if self.is_key and isinstance(self.entry, str) and self.entry in known:
            return rule, f"the other way round: {self.entry}: {self.value}"
        if other := value_of(self.field, given, known):
            return rule, f"did you mean {other}?"
        near = nearest(given, known)
        return rule, f"did you mean {near[0]}?" if near else "choose one"

    def _family(self) -> tuple[str, str]:
        known = ", ".join(FAMILIES)
        if "family" not in self.value:
            return "has no 'family'", f"add it: one of {known}"
        self.field = (*self.field, "family")
        self.value = self.value["family"]
        return self._choice(list(FAMILIES))

    def _wrong_form(self, forms: str) -> tuple[str, str]:
        rule = f"must be {forms}, and {self.given} is given"
        if isinstance(self.value, datetime.date):
            return f"YAML reads {self.given} as a date, which no field takes", f'put it in quotes: "{self.given}"'
        if isinstance(self.value, str):
            return self._text(rule, forms)
        if self.value is None:
            return rule, f"write it{_such_as(self.field, ', such as ')}, or remove the line"
        if isinstance(self.value, list | dict):
            return rule, self._regrouped(forms)
        return self._plain_value(rule, forms)

    def _text(self, rule: str, forms: str) -> tuple[str, str]:
        """Text where something else belongs."""
        if self.field[-1:] == ("image",):
            return f"{rule}, which is text", _image_of(self.value)
        if "mapping" in forms and (found := re.fullmatch(r"([A-Za-z_][\w-]*):(\S.*)", self.value)):
            return f"{rule}, which is text", f"write a space after the colon: {found[1]}: {found[2]}"
        numeric = "text" not in forms and "number" in forms
        if numeric and (number := _number_in(self.value, self.field)):
            exponent = self.written is not None and re.fullmatch(_EXPONENT, self.value)
            if exponent:
                return f"{rule}, which YAML reads as text, for want of a point", f"write {number}"
            quoted = self.written is None and _is_number(self.value)
            return f"{rule}, which is text", "remove the quotes" if quoted else f"write {number}"
        if forms.startswith("true or false"):
            meant = _TRUTH.get(self.value.casefold())
            return f"{rule}, which is text", f"write {meant}" if meant else "write true or false"
        if "a list" in forms:
            return f"{rule}, which is text", f"write [{_as_item(self.value)}]"
        return f"{rule}, which is text", f"write {forms}{_such_as(self.field, ', such as ')}, or remove the line"

    def _regrouped(self, forms: str) -> str:
        """What to do about a list in place of a mapping, and the other way round."""
        if isinstance(self.value, list) and "mapping" in forms:
            return f"write NAME: VALUE without dashes{_such_as(self.field, ', such as ')}"
        if isinstance(self.value, list) and len(self.value) == 1 and not isinstance(self.value[0], dict | list):
            return f"write {_as_yaml(self.value[0])} without the dash or brackets"
        if isinstance(self.value, dict) and "list" in forms:
            return f"begin each entry with a dash{_such_as(self.field, ', such as ')}"
        return f"write {forms}{_such_as(self.field, ', such as ')}"

    def _plain_value(self, rule: str, forms: str) -> tuple[str, str]:
        """A number or boolean where something else belongs."""
        if isinstance(self.value, bool) and self.written and self.written.casefold() not in ("true", "false"):
            rule = f"{rule}, which YAML reads as {str(self.value).lower()}"
        if "text" in forms or forms.startswith(("a name", "a uri", "one type", "rate(", "the name")):
            kind = "true or false" if isinstance(self.value, bool) else "a number"
            said = rule if "YAML" in rule else f"{rule}, which YAML reads as {kind}"
            return said, f'put it in quotes: "{self.written or _as_yaml(self.value)}"'
        if isinstance(self.value, float) and "whole" in forms:
            nearest_whole = round(self.value)
            return rule, f"write {nearest_whole}" if self.value == nearest_whole else "write it without a point"
        if forms.startswith("true or false") and self.value in (0, 1):
            return rule, f"write {str(bool(self.value)).lower()}"
        if "list" in forms:
            return rule, f"write [{_as_yaml(self.value)}]"
        return rule, f"write {forms}{_such_as(self.field, ', such as ')}, or remove the line"


_SCALARS = (str, int, float, bool, datetime.date)
_DURATIONS = "write for example 90s, 45m, 4h, 1h30m, 2d or a number of seconds"
_EXPONENT = r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+"
_NUMBER = r"[-+]?(?:\d[\d_,' ]*)?\d(?:\.\d+)?(?:[eE][-+]?\d+)?"
_TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "on", "1", "enabled", "enable", "t"), "true"),
    **dict.fromkeys(("false", "no", "n", "off", "0", "disabled", "disable", "f", "none"), "false"),
}
_FORMS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_RULES = {
    "string_too_long": ("has more than {max_length} characters, {length}", "shorten it"),
    "string_too_short": ("is empty", "fill it, or remove it"),
    "too_long": ("has more than {max_length} entries, {length}", "remove some"),
    "too_short": ("the list is empty", "fill it, or remove it"),
    "finite_number": ("{given} is no finite number", "write a number"),
}
_BOUNDS = {
    "less_than_equal": ("is above the limit,", "le", "lower it to at most"),
    "less_than": ("is not below", "lt", "lower it to less than"),
    "greater_than_equal": ("is below the least value,", "ge", "raise it to at least"),
    "greater_than": ("is not above", "gt", "raise it to more than"),
}
"""For a number out of bounds: the message, the bound's name in pydantic's context, and what to write."""
_EXAMPLES = {
    "platform": "platform: dev",
    "code": "{ source_dir: src, entry_point: train.py }",
    "image": '{ framework: pytorch, version: "2.6" }',
    "inputs": "{ train: s3://bucket/prefix/ }",
    "inputs.*": "s3://bucket/prefix/",
    "hyperparameters": "{ epochs: 3 }",
    "environment": "{ OMP_NUM_THREADS: 4 }",
    "tags": "{ team: vision }",
    "metrics": "[{ name: loss, regex: 'loss=([0-9.]+)' }]",
    "metrics.*": "{ name: loss, regex: 'loss=([0-9.]+)' }",
    "attempts.*": "{ name: first, instance_type: ml.m5.xlarge }",
    "resources.instance_groups.*": "{ name: train, instance_type: ml.m5.xlarge }",
    "resources": "{ instance_type: ml.m5.xlarge, max_runtime: 4h }",
    "memory": "{ model: bert-large-uncased }",
    "memory.loader": "{ workers: 4, prefetch: 2 }",
    "memory.dataset": "{ size_gib: 40, in_memory: true }",
    "memory.knobs": "{ micro_batch: bs }",
    "memory.trace": '{ function: "train.py:build" }',
    "attempts.*.next": "{ gpu_memory: larger-gpu }",
    "tuning.objective": "{ metric: accuracy, type: Maximize }",
    "tuning.ranges": "{ lr: { min: 0.0001, max: 0.01 } }",
    "tuning.ranges.*": "{ min: 0.0001, max: 0.01 } or [0.1, 0.01]",
    "schedule": "rate(1 day)",
    "processing.*.image": '{ framework: spark, version: "3.5" }',
    "processing.*.outputs": "[train]",
    "processing.*.resources": "{ instance_type: ml.m5.xlarge }",
}
"""A correct value for each field that has parts, shown when the file has no value or a value of another form."""


def _image_of(text: str) -> str:
    """The block for an image that is written as one text: an address, or a framework and perhaps a tag."""
    name, _, tag = text.partition(":")
    if "/" in text:
        return f"write {{ uri: {text} }}"
    framework = next((known for known in frameworks() if plain(known) == plain(name)), "pytorch")
    version = re.match(r"[\d.]+", tag)
    return f'write {{ framework: {framework}, version: "{version[0] if version else frameworks()[framework].newest}" }}'


def _at(data: Any, field: Key) -> Any:
    """The value at ``field``; None when there is no value."""
    for part in field:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, str | list | dict) else None


def _is_duration(field: Key) -> bool:
    """Whether the field's number is one of seconds."""
    found = [model.model_fields[field[-1]] for model in models_at(field[:-1]) if field[-1] in model.model_fields]
    return any("from_duration" in repr((each.annotation, each.metadata)) for each in found)


def _such_as(field: Key, before: str) -> str:
    example = _EXAMPLES.get(pattern_of(field))
    return f"{before}{example}" if example else ""


def _choices_of(field: Key) -> str:
    values = choices_at(field)
    return f": {' or '.join(values)}" if values else ""


def choices_at(field: Key) -> list[str]:
    """The values that a field, or the keys of a mapping, may have; none where they are not listed."""
    found = [model.model_fields[field[-1]] for model in models_at(field[:-1]) if field[-1] in model.model_fields]
    return [value for each in found for value in _literals(each.annotation)]


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(value).lower() if isinstance(value, bool) else str(value) for value in get_args(annotation)]
    return [value for inner in get_args(annotation) for value in _literals(inner)]


def _words_at(field: Key) -> str:
    """The words in the table of limits for the characters that a field may have."""
    row = limits().get(pattern_of(field))
    return row.words if row else ""


def _words_of(pattern: str) -> str:
    """A description of texts that match the pattern. A pattern that is not in the table is the one for names."""
    return next((row.words for row in limits().values() if row.pattern == pattern), limits()["name"].words)


def _choices(expected: str) -> list[str]:
    """The values of pydantic's ``'a', 'b' or 'c'``, as a job file has them."""
    words = re.findall(r"'([^']*)'|(\w+)", expected.replace(" or ", ", "))
    return [quoted or bare.lower() for quoted, bare in words]


def _listed(values: list[str]) -> str:
    """``values`` as a job file has them: text in quotes, true and false without."""
    *others, last = [value if value in ("true", "false") else repr(value) for value in values]
    return f"{', '.join(others)} or {last}" if others else last


def _as_yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value) if isinstance(value, str) else str(value)


def _as_item(text: str) -> str:
    """``text`` as an entry of a list in brackets."""
    return text if re.fullmatch(r"[\w./-]*[A-Za-z./][\w./-]*", text) else f'"{text}"'


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
    here = fields_at(tuple(place))
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
    found = [path for path in _paths(Job, ()) if plain(path[-1]) == plain(name)]
    inside = [path for path in found if here != "the file" and ".".join(path).startswith(f"{here}.")]
    shortest = min((len(path) for path in found), default=0)
    return [".".join(path) for path in inside or [path for path in found if len(path) == shortest][:3]]


def _paths(model: type[BaseModel], prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """All fields of ``model`` and of the models in it; ``NAME`` stands for a key that the user chooses."""
    for name, field in model.model_fields.items():
        path = (*prefix, field.alias or name)
        yield path
        for nested, is_named in _nested(field.annotation):
            if nested is not model:
                yield from _paths(nested, (*path, "NAME") if is_named else path)


def _nested(annotation: Any, *, is_named: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, is_named
        return
    named = is_named or getattr(annotation, "__origin__", None) is dict
    for inner in getattr(annotation, "__args__", ()):
        yield from _nested(inner, is_named=named)


def fields_at(path: Key) -> list[str]:
    """The keys a job file may have at ``path``."""
    return sorted({field.alias or name for model in models_at(path) for name, field in model.model_fields.items()})


def models_at(path: Key) -> list[type[BaseModel]]:
    """The classes of values that are allowed at ``path``. A name that the user chose (inputs, tags) adds no class."""
    models: list[type[BaseModel]] = [Job]
    for part in path:
        annotations = [model.model_fields[part].annotation for model in models if part in model.model_fields]
        models = _unique(nested for annotation in annotations for nested, _ in _nested(annotation)) or models
    return models


def _unique(models: Iterable[type[BaseModel]]) -> list[type[BaseModel]]:
    return list(dict.fromkeys(models))
