"""What expressions of a script are worth, as far as that is known without a run."""

from __future__ import annotations

import ast
import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sagefit.job.following.arguments import Arguments
from sagefit.job.following.files import Files
from sagefit.job.following.references import interpolated
from sagefit.job.following.values import (
    UNBOUND,
    UNKNOWN,
    Argued,
    Class,
    Function,
    Made,
    Record,
    Ref,
    Scope,
    Settings,
    bare,
    compared,
    literal,
    made_of,
    operated,
    same,
    small,
    sources,
    truth,
)

Heard = Callable[[Made], None]
"""Is told each call of a library that surely happens; ``**`` among its keywords stands for those nobody knows."""

_MOST_STEPS = 40_000
_MOST_ITEMS = 32


_DEEPEST_REFERENCE = 10
_OF_LENGTH = re.compile(r"'\w*(block|length|len|ctx|context|seq|window)\w*'", re.IGNORECASE)
"""Names of what says how long an example is."""
_OF_TOKENS = re.compile(r"'\w*(ids|token)\w*'", re.IGNORECASE)
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class TooLongError(Exception):
    """The script is followed no further."""


class Expressions(ABC):
    """Expressions, names and what is assigned to them.

    ``divided`` and ``counted`` are by what a loss is divided and steps are counted, by the expression. ``cut`` are the
    lengths of the pieces into which something is cut. ``bound`` are the names of what was bound to one, and ``read``
    is what was read from a name.
    """

    def __init__(self, arguments: Arguments, heard: Heard, files: Files) -> None:
        self.arguments, self.heard, self.files = arguments, heard, files
        self.divided: dict[str, object] = {}
        self.counted: dict[str, object] = {}
        self.cut: list[object] = []
        self.bound: dict[int, str] = {}
        self.read: set[int] = set()
        self._because: frozenset[str] = frozenset()
        self.resolvers: dict[str, object] = {}
        self._resolving: list[str] = []
        self._steps = self._muted = 0

    @abstractmethod
    def _called(self, node: ast.Call, scope: Scope) -> object: ...

    @abstractmethod
    def _call(self, function: Function, positional: list[object], keywords: dict[str, object]) -> object: ...

    @property
    def sure(self) -> bool:
        """Whether what is walked now happens in any run."""
        return not self._muted

    def value(self, node: ast.expr, scope: Scope) -> object:
        """What an expression is worth."""
        self._step()
        act = self._EXPRESSIONS.get(type(node))
        if act is not None:
            return act(self, node, scope)
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                self.value(inner, scope)
        return UNKNOWN

    def _constant(self, node: ast.Constant, _scope: Scope) -> object:
        return UNKNOWN if node.value is ... else node.value

    def _name(self, node: ast.Name, scope: Scope) -> object:
        found = scope.find(node.id)
        if isinstance(found, Made):
            self.read.add(id(found))
        return Ref(node.id) if found is UNBOUND else self._used(found)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> object:
        owner = self.value(node.value, scope)
        return self._used(self._member(owner, node.attr))

    def _member(self, owner: object, name: str) -> object:
        if isinstance(owner, Ref):
            if (owner.name, name) == ("sys", "argv"):
                return UNKNOWN if self.arguments.given else ["script"]
            if owner.name.endswith("flags.FLAGS"):
                return self.arguments.flags.get(name, UNKNOWN)
            return Ref(f"{owner.name}.{name}")
        if isinstance(owner, Made):
            return owner.told.get(name, UNKNOWN)
        if isinstance(owner, Class):
            return owner.find(name)
        if isinstance(owner, Record):
            if name in owner.fields:
                return owner.fields[name]
            found = owner.of.find(name) if owner.of else UNKNOWN
            if isinstance(found, Function):
                kinds = [getattr(each, "id", "") for each in getattr(found.node, "decorator_list", [])]
                bound = found if "staticmethod" in kinds else replace(found, instance=owner)
                return self._call(bound, [], {}) if "property" in kinds else bound
            return found
        known = bare(owner)
        if isinstance(known, str) and name in ("parent", "name"):  # of a path
            head, tail = posixpath.split(known)
            return made_of(head if name == "parent" else tail, owner)
        if isinstance(known, dict) and name in known:
            return self._resolved(known[name], known)
        return UNKNOWN

    def _resolved(self, value: object, around: object) -> object:
        """A value of a configuration, where ``${other}`` is the value of another and ``${own:a,b}`` a function's."""
        if not isinstance(around, Settings) or not isinstance(value, str) or "${" not in value:
            return value
        if len(self._resolving) >= _DEEPEST_REFERENCE or value in self._resolving:
            return UNKNOWN
        self._resolving.append(value)
        try:
            return interpolated(value, lambda name, told: self._looked_up(around.root, name, told))
        finally:
            self._resolving.pop()

    def _looked_up(self, root: Settings, name: str, told: list[object] | None) -> object:
        if told is not None and name == "oc.env":
            return self.arguments.variable(str(told[0]), told[1] if len(told) > 1 else UNKNOWN)
        if told is not None:
            resolver = self.resolvers.get(name)
            return self._call(resolver, told, {}) if isinstance(resolver, Function) else UNKNOWN
        value: object = root
        for part in name.split("."):
            value = self._member(value, part)
        return value

    def _subscript(self, node: ast.Subscript, scope: Scope) -> object:
        owner = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.value, node.slice, scope)
        key = self.value(node.slice, scope)
        known, at = bare(owner), bare(key)
        if isinstance(known, Ref) and known.name == "os.environ" and isinstance(at, str):
            return self.arguments.variable(at, UNKNOWN)
        if isinstance(known, Record) and isinstance(at, str):
            return self._used(known.fields.get(at, UNKNOWN))
        if isinstance(known, dict | list | tuple | str) and literal(at):
            try:
                found = known[at]  # type: ignore[call-overload,index]
            except (LookupError, TypeError):
                return UNKNOWN
            found = self._resolved(found, known)
            return self._used(made_of(found, key) if isinstance(key, Argued) else found)
        return UNKNOWN

    def _slice(self, owner: object, of: ast.expr, node: ast.Slice, scope: Scope) -> object:
        """A part of a list or a text; of what nobody knows, the length of the part where it is that of an example."""
        first, last, step = (
            None if each is None else self.value(each, scope) for each in (node.lower, node.upper, node.step)
        )
        known = bare(owner)
        ends = [each if isinstance(each, int) else None for each in map(bare, (first, last, step))]
        told = all(each is None or isinstance(bare(each), int) for each in (first, last, step))
        if isinstance(known, list | tuple | str) and told and ends[2] != 0:
            return made_of(known[slice(*ends)], owner, first, last, step)
        if (known is UNKNOWN or isinstance(known, Made)) and node.upper is not None and node.step is None:
            self._cut(of, node.lower, node.upper, scope)
        return UNKNOWN

    def _cut(self, of: ast.expr, lower: ast.expr | None, upper: ast.expr, scope: Scope) -> None:
        """Notes the length of ``ids[:length]`` and of ``tokens[start : start + length]``."""
        parts = _added(upper)
        if lower is not None:
            start = next((each for each in parts if ast.dump(each) == ast.dump(lower)), None)
            if start is None:
                return
            parts.remove(start)
        lengths = [each for each in parts if not isinstance(each, ast.Constant) or each.value != 1]
        if len(lengths) == 1 and (says_length(lengths[0]) or _OF_TOKENS.search(ast.dump(of))):
            self.cut.append(self.value(lengths[0], scope))

    def _used(self, value: object) -> object:
        if isinstance(value, Argued):
            self.arguments.looked_at |= value.arguments
        return value

    def _choice(self, node: ast.IfExp, scope: Scope) -> object:
        test = self.value(node.test, scope)
        known = truth(test)
        if known is not None:
            with self._decided(test):
                return self.value(node.body if known else node.orelse, scope)
        self._muted += 1
        try:
            one, two = self.value(node.body, scope), self.value(node.orelse, scope)
        finally:
            self._muted -= 1
        return one if same(one, two) else UNKNOWN

    def _either(self, node: ast.BoolOp, scope: Scope) -> object:
        wanted = isinstance(node.op, ast.Or)
        value: object = UNKNOWN
        asked: list[object] = []
        muted = 0
        try:
            for each in node.values:
                value = self.value(each, scope)
                asked.append(value)
                known = truth(value)
                if known is wanted and not muted:
                    return self._of_all(value, asked)
                if known is None and not muted:
                    muted = 1
                    self._muted += 1
        finally:
            self._muted -= muted
        return UNKNOWN if muted else self._of_all(value, asked)

    @staticmethod
    def _of_all(value: object, asked: Sequence[object]) -> object:
        return value if len(asked) == 1 else made_of(bare(value), *asked)

    def _binary(self, node: ast.BinOp, scope: Scope) -> object:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        self._steps_of(node.op, node.left, node.right, right)
        return operated(node.op, left, right)

    def _steps_of(self, operation: ast.operator, left: ast.expr, right: ast.expr, value: object) -> None:
        """Notes by what a loss is divided, and what steps are counted by."""
        if isinstance(right, ast.Name | ast.Attribute | ast.Subscript) and isinstance(operation, ast.Div | ast.Mod):
            known = bare(value)
            if isinstance(operation, ast.Mod):
                self.counted[ast.dump(right)] = known
            elif self.sure and "loss" in ast.dump(left).lower():
                self.divided[ast.dump(right)] = value

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> object:
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return UNKNOWN if known is None else made_of(not known, value)
        return operated(node.op, value)

    def _compare(self, node: ast.Compare, scope: Scope) -> object:
        values = [self.value(each, scope) for each in (node.left, *node.comparators)]
        said = [compared(op, one, two) for op, one, two in zip(node.ops, values, values[1:], strict=False)]
        if isinstance(node.ops[-1], ast.Eq | ast.GtE) and isinstance(right := node.comparators[-1], ast.Name):
            self.counted[ast.dump(right)] = bare(values[-1])
        if any(truth(each) is False for each in said):
            return made_of(False, *values)
        return UNKNOWN if any(truth(each) is None for each in said) else made_of(True, *values)

    def _list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> object:
        found: list[object] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                inner = bare(self.value(each.value, scope))
                if not isinstance(inner, list | tuple):
                    return UNKNOWN
                found += inner
            else:
                found.append(self.value(each, scope))
        return tuple(found) if isinstance(node, ast.Tuple) else found

    def _dict(self, node: ast.Dict, scope: Scope) -> object:
        found: dict[object, object] = {}
        for key, each in zip(node.keys, node.values, strict=True):
            value = self.value(each, scope)
            if key is None:
                inner = bare(value)
                if not isinstance(inner, dict):
                    return UNKNOWN
                found |= inner
                continue
            name = bare(self.value(key, scope))
            if literal(name):
                found[name] = value
        return found

    def _comprehension(self, node: _Comprehension, scope: Scope) -> object:
        inner = Scope(scope)
        first, *others = node.generators
        around = bare(self.value(first.iter, scope))
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        if not others and isinstance(around, list | tuple | dict) and len(around) <= _MOST_ITEMS:
            found = []
            for each in around:
                self._bind(first.target, each, inner)
                tests = [truth(self.value(test, inner)) for test in first.ifs]
                if False in tests:
                    continue
                if None in tests:
                    break
                found.append([self.value(part, inner) for part in parts])
            else:
                return _collected(node, found)
        for generator in node.generators:
            self._bind(generator.target, UNKNOWN, inner)
        self._muted += any(generator.ifs for generator in node.generators)
        try:
            for part in parts:
                self.value(part, inner)
        finally:
            self._muted -= any(generator.ifs for generator in node.generators)
        return UNKNOWN

    def _lambda(self, node: ast.Lambda, scope: Scope) -> object:
        return Function(node, scope)

    def _walrus(self, node: ast.NamedExpr, scope: Scope) -> object:
        value = self.value(node.value, scope)
        self._bind(node.target, value, scope)
        return value

    def _text(self, node: ast.JoinedStr, scope: Scope) -> object:
        parts = [
            self.value(each.value, scope) if isinstance(each, ast.FormattedValue) else getattr(each, "value", "")
            for each in node.values
        ]
        plainly = all(literal(bare(each)) for each in parts) and not any(
            isinstance(each, ast.FormattedValue) and each.format_spec for each in node.values
        )
        return made_of("".join(str(bare(each)) for each in parts), *parts) if plainly and small(parts) else UNKNOWN

    def _bind(self, target: ast.expr, value: object, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
            if isinstance(value, Made):
                self.bound[id(value)] = target.id
        elif isinstance(target, ast.Tuple | ast.List):
            for inner, each in zip(target.elts, _unpacked(bare(value), target.elts), strict=True):
                self._bind(inner.value if isinstance(inner, ast.Starred) else inner, each, scope)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, scope)
            kept = value if self.sure else UNKNOWN
            if isinstance(owner, Record):
                owner.fields[target.attr] = kept
            elif isinstance(owner, Made):
                owner.told[target.attr] = kept
            elif isinstance(owner, Class):
                owner.members[target.attr] = kept
            elif isinstance(known := bare(owner), dict):
                known[target.attr] = kept
            if self.sure and not isinstance(owner, Record):
                self.heard(Made(f".{target.attr}", {}, [value], owner))
        elif isinstance(target, ast.Subscript):
            owner, key = bare(self.value(target.value, scope)), bare(self.value(target.slice, scope))
            if isinstance(owner, dict) and literal(key):
                owner[key] = value if self.sure else UNKNOWN
            elif isinstance(owner, dict):
                owner.update(dict.fromkeys(owner, UNKNOWN))

    @contextmanager
    def _decided(self, *by: object) -> Iterator[None]:
        """What is called within happens because of the arguments that values come from."""
        before = self._because
        self._because = before | sources(by)
        try:
            yield
        finally:
            self._because = before

    def _step(self, dear: int = 1) -> None:
        self._steps += dear
        if self._steps > _MOST_STEPS:
            raise TooLongError

    def _called_of(self, node: ast.Call, scope: Scope) -> object:
        return self._called(node, scope)

    _EXPRESSIONS: Mapping[type[ast.expr], Callable[..., object]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.IfExp: _choice,
        ast.BoolOp: _either,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.List: _list,
        ast.Tuple: _list,
        ast.Set: _list,
        ast.Dict: _dict,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Lambda: _lambda,
        ast.NamedExpr: _walrus,
        ast.JoinedStr: _text,
        ast.Call: _called_of,
    }


def says_length(node: ast.expr) -> bool:
    """Whether the names of an expression are those of the length of an example."""
    return _OF_LENGTH.search(ast.dump(node)) is not None


def _unpacked(value: object, targets: Sequence[ast.expr]) -> list[object]:
    """What each of several targets gets of a list."""
    starred = [at for at, each in enumerate(targets) if isinstance(each, ast.Starred)]
    rest = len(value) - len(targets) + 1 if isinstance(value, list | tuple) else -1
    if not isinstance(value, list | tuple) or rest < 0 or (not starred and rest != 1):
        return [UNKNOWN] * len(targets)
    if not starred:
        return list(value)
    (at,) = starred
    return [*value[:at], list(value[at : at + rest]), *value[at + rest :]]


def _added(node: ast.expr) -> list[ast.expr]:
    """What a sum consists of."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _added(node.left) + _added(node.right)
    return [node]


def _collected(node: _Comprehension, found: list[list[object]]) -> object:
    """A comprehension's list or mapping."""
    if not isinstance(node, ast.DictComp):
        return [each for (each,) in found]
    return {bare(key): value for key, value in found if literal(bare(key))}
