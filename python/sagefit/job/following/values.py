"""What a value may be where a script is followed, and what Python's own functions make of known ones."""

from __future__ import annotations

import ast
import math
import operator
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final


class _Unknown:
    """A value that only a run would tell."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
UNBOUND: Final = object()
"""What a name is worth that nobody bound."""
_KNOWN = (
    *("int", "float", "bool", "str", "list", "tuple", "dict", "set"),
    *(f"torch.{name}" for name in ("bfloat16", "float16", "half", "float32", "float", "float64", "double")),
)
_LONGEST = 1_000
"""Entries of a list with those of lists in it, and characters of a text, beyond which nothing is made of a value."""


@dataclass(frozen=True)
class Ref:
    """Something of a library, by its whole name: ``torch.bfloat16``, ``transformers.Trainer``."""

    name: str

    @property
    def known(self) -> bool:
        """Whether it is surely an object: a type of torch's numbers, or one of Python's own."""
        return self.name in _KNOWN

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Argued:
    """A known value that depends on arguments of the script; ``direct`` where it is the value of one."""

    value: object
    arguments: frozenset[str]
    direct: bool = True


@dataclass(eq=False)
class Made:
    """What a call of a library returned: the last part of its name, its arguments, and whose it is (``by``).

    ``unlearned`` where nothing is learned: under ``torch.no_grad()``. ``because`` are the arguments of the script that
    decide whether it is called at all.
    """

    callee: str
    told: dict[str, object]
    positional: list[object] = field(default_factory=list)
    by: object = None
    unlearned: bool = False
    because: frozenset[str] = frozenset()


class Scope:
    """Names of a module or of a function, and those around it."""

    __slots__ = ("arguments", "around", "names")

    def __init__(self, around: Scope | None = None) -> None:
        self.names: dict[str, object] = {}
        self.around = around
        self.arguments: dict[str, object] = {}

    def find(self, name: str) -> object:
        """The value of a name; UNBOUND where nobody bound it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return UNBOUND


@dataclass(eq=False)
class Function:
    """A function of the script, and the instance whose method it is."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    instance: Record | None = None
    home: Class | None = None
    """The class that has it."""
    options: dict[str, object] | None = None
    """Of a command of click: the default of each parameter."""
    settings: Made | None = None
    """The decorator that gives it a configuration: Hydra's, draccus' or pyrallis'."""
    unlearned: bool = False
    """Whether its decorator says that nothing is learned."""


@dataclass(eq=False)
class Class:
    """A class of the script."""

    node: ast.ClassDef
    bases: list[object]
    members: dict[str, object]

    def find(self, name: str) -> object:
        """A member, also of a base that the script defines; UNKNOWN where none has it."""
        if name in self.members:
            return self.members[name]
        found = (base.find(name) for base in self.bases if isinstance(base, Class))
        return next((each for each in found if each is not UNKNOWN), UNKNOWN)

    def library(self) -> list[str]:
        """The last parts of the names of bases that are a library's."""
        own = [base.last for base in self.bases if isinstance(base, Ref)]
        return own + [name for base in self.bases if isinstance(base, Class) for name in base.library()]

    def fields(self) -> dict[str, object]:
        """Values of the class, those of its bases first; no functions."""
        found: dict[str, object] = {}
        for base in self.bases:
            found |= base.fields() if isinstance(base, Class) else {}
        return found | {name: each for name, each in self.members.items() if not isinstance(each, Function)}


@dataclass(eq=False)
class Record:
    """Values by name: the arguments of argparse, an instance of a class of the script."""

    fields: dict[str, object]
    of: Class | None = None
    escaped: bool = False


@dataclass(eq=False)
class Parser:
    """One of argparse: for each argument its names, default and type. ``groups`` are dataclasses of simple_parsing."""

    arguments: dict[str, tuple[list[str], object, object]] = field(default_factory=dict)
    groups: dict[str, object] = field(default_factory=dict)


class Settings(dict[str, object]):
    """A configuration of OmegaConf. ``root`` is what ``${name}`` in it looks at."""

    def __init__(self, content: Mapping[str, object], root: Settings | None = None) -> None:
        self.root = root or self
        inner = {name: Settings(each, self.root) if isinstance(each, dict) else each for name, each in content.items()}
        super().__init__(inner)


class Sections(Settings):
    """The sections of an INI file, as configparser reads it."""


_OBJECTS = ("from_pretrained", "partial", "get_peft_model")
"""Functions that return an object, and never nothing, as classes do."""
_OPAQUE = (_Unknown, Ref, Made, Record, Function, Class, Parser)


def bare(value: object) -> object:
    """A value without the arguments that it comes from."""
    return value.value if isinstance(value, Argued) else value


def sources(values: Iterable[object]) -> frozenset[str]:
    """The arguments that values come from."""
    return frozenset[str]().union(*(each.arguments for each in values if isinstance(each, Argued)))


def made_of(value: object, *parts: object) -> object:
    """``value``, which depends on the arguments that ``parts`` come from."""
    if isinstance(value, _OPAQUE) and not isinstance(value, Ref):
        return value
    names = sources(parts)
    return Argued(value, names, direct=False) if names else value


def truth(value: object) -> bool | None:
    """Whether a value counts as true; None where nobody knows."""
    value = bare(value)
    if isinstance(value, Ref):
        return True if value.known else None
    if value is UNKNOWN or (
        isinstance(value, Made) and not value.callee[:1].isupper() and value.callee not in _OBJECTS
    ):
        return None
    if value is None or isinstance(value, str | bytes | int | float | list | tuple | dict | set):
        return bool(value)
    return True


def literal(value: object) -> bool:
    """Whether a value is a number, a text, None or a truth."""
    return value is None or isinstance(value, str | int | float)


def operated(operation: ast.operator | ast.unaryop, *values: object) -> object:
    """What an operation of Python makes of known values."""
    known = [bare(each) for each in values]
    act = _OPERATIONS.get(type(operation))
    if act is None or any(isinstance(each, _OPAQUE) or not small(each) for each in known):
        return UNKNOWN
    if isinstance(operation, ast.Div) and all(isinstance(each, str) for each in known):
        return made_of(posixpath.join(*map(str, known)), *values)  # a path is its text here
    if isinstance(operation, ast.Mult | ast.Mod) and any(isinstance(each, str | list | tuple) for each in known):
        return UNKNOWN  # of a short text either makes a long one
    if isinstance(operation, ast.Pow | ast.LShift) and not all(
        isinstance(each, int | float) and abs(each) < 100 for each in known
    ):
        return UNKNOWN
    return made_of(_tried(act, *known), *values)


def compared(operation: ast.cmpop, left: object, right: object) -> object:
    """What a comparison says of two values; UNKNOWN where one of them is not known."""
    one, two = bare(left), bare(right)
    if isinstance(operation, ast.Is | ast.IsNot):
        if any(each is UNKNOWN or (isinstance(each, Ref) and not each.known) for each in (one, two)):
            return UNKNOWN
        alike = one is two or (one == two and all(literal(each) or isinstance(each, Ref) for each in (one, two)))
        return made_of(alike if isinstance(operation, ast.Is) else not alike, left, right)
    if isinstance(one, Ref) and isinstance(two, Ref):
        if one != two and not (one.name.startswith("torch.") and two.name.startswith("torch.")):
            return UNKNOWN
    elif any(isinstance(each, _OPAQUE) or not small(each) for each in (one, two)):
        return UNKNOWN
    act = _COMPARISONS.get(type(operation))
    return UNKNOWN if act is None else made_of(_tried(act, one, two), left, right)


def applied(name: str, values: list[object]) -> object:
    """What a function of Python itself makes of known values."""
    act = FUNCTIONS.get(name)
    known = [bare(each) for each in values]
    if act is None or any(isinstance(each, _OPAQUE) or not small(each) for each in known):
        return UNKNOWN
    made = _tried(act, *known)
    if name in ("int", "float", "str", "bool") and len(values) == 1 and isinstance(values[0], Argued):
        return Argued(made, values[0].arguments, values[0].direct) if made is not UNKNOWN else UNKNOWN
    return made_of(made, *values)


def method(value: object, name: str, values: list[object]) -> object:
    """What a method of a text or a mapping returns; UNKNOWN for those that are not known here."""
    text = bare(value)
    known = [bare(each) for each in values]
    if isinstance(text, str) and name in _OF_TEXT and small(text) and all(map(literal, known)):
        return made_of(_tried(getattr(text, name), *known), value, *values)
    if isinstance(text, str) and name in _OF_PATHS and not known:
        return made_of(_OF_PATHS[name](text), value)
    if isinstance(text, dict):
        return _of_mapping(text, name, values)
    if isinstance(text, list) and name == "copy":
        return list(text)
    return UNKNOWN


def _of_mapping(content: dict[object, object], name: str, values: list[object]) -> object:
    key = bare(values[0]) if values else UNKNOWN
    if name == "copy":
        return type(content)(content)
    if name in ("items", "keys", "values"):
        return [list(pair) if isinstance(pair, tuple) else pair for pair in getattr(content, name)()]
    if not literal(key):
        return UNKNOWN
    other = values[1] if len(values) > 1 else None
    if name in _OF_SECTIONS:
        found = bare(content.get(key, UNKNOWN))
        return _tried(_OF_SECTIONS[name], found) if isinstance(found, str) else other if len(values) > 1 else UNKNOWN
    if name == "get":
        return content.get(key, other)
    if name == "pop":
        return content.pop(key, values[1] if len(values) > 1 else UNKNOWN)
    return content.setdefault(key, other) if name == "setdefault" else UNKNOWN


def lengthened(known: list[object], more: Iterable[object]) -> None:
    """Puts more at the end of a list, up to what a list may have."""
    known.extend(list(more)[: _LONGEST + 1 - len(known)])


def joined(values: Sequence[object]) -> object:
    """The value that all ways agree on, else UNKNOWN."""
    first, *others = values
    return first if all(same(first, other) for other in others) else UNKNOWN


def same(one: object, two: object) -> bool:
    """Whether two values are surely the same."""
    if one is two:
        return True
    return type(one) is type(two) and (literal(one) or isinstance(one, Ref | Argued)) and one == two


def small(value: object, most: int = _LONGEST) -> bool:
    """Whether a value has so few parts that everything may be asked of it; lists may hold each other many times."""
    ahead, left = [value], most
    while ahead and left >= 0:
        each = bare(ahead.pop())
        if isinstance(each, str | bytes):
            left -= len(each)
        elif isinstance(each, list | tuple | set):
            left -= 1 + len(each)
            ahead += each if left >= 0 else []
        elif isinstance(each, dict):
            left -= 1 + len(each)
            ahead += each.values() if left >= 0 else []
    return left >= 0


def _tried(act: Callable[..., object], *values: object) -> object:
    try:
        made = act(*values)
    except Exception:  # whatever Python says of values that a script would not have
        return UNKNOWN
    if isinstance(made, int) and abs(made) > 10**18:
        return UNKNOWN
    return made if small(made) else UNKNOWN


_OPERATIONS: Mapping[type[ast.AST], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[..., object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, two: one in two,
    ast.NotIn: lambda one, two: one not in two,
}
_TRUTHS = {**dict.fromkeys(("1", "yes", "true", "on"), True), **dict.fromkeys(("0", "no", "false", "off"), False)}
_OF_SECTIONS: Mapping[str, Callable[[str], object]] = {
    "getint": int,
    "getfloat": float,
    "getboolean": lambda text: _TRUTHS[text.lower()],
}
"""What a section of an INI file makes of a text."""
FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "len": len,
    "min": min,
    "max": max,
    "round": round,
    "abs": abs,
    "sum": sum,
    "list": list,
    "tuple": tuple,
    "sorted": sorted,
    "reversed": lambda items: list(reversed(items)),
    "enumerate": lambda items, start=0: [[at, each] for at, each in enumerate(items, start)],
    "zip": lambda *items: [list(each) for each in zip(*items, strict=False)],
    "next": lambda items, *_default: items[0] if isinstance(items, list) else UNKNOWN,
    "ast.literal_eval": lambda text: ast.literal_eval(str(text)),
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.prod": math.prod,
    "math.gcd": math.gcd,
    "os.path.join": posixpath.join,
    "os.path.dirname": posixpath.dirname,
    "os.path.abspath": posixpath.normpath,
    "os.path.realpath": posixpath.normpath,
    "pathlib.Path": posixpath.join,
}
"""Functions that are applied to known values."""
_OF_TEXT = ("lower", "upper", "strip", "split", "startswith", "endswith", "replace", "removeprefix", "removesuffix")
_OF_PATHS: Mapping[str, Callable[[str], str]] = {
    "resolve": posixpath.normpath,
    "absolute": posixpath.normpath,
    "as_posix": str,
}
