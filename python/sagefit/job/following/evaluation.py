"""Follows the values of a Python script as far as they are known without running it: a partial evaluation.

The statements are walked in the order in which they would run. What only a run would tell is UNKNOWN: both branches of
a condition that is not known are walked for what they may change, and nothing that they call is told. Arguments of
the script (argparse, click, Typer, Fire, dataclasses of HfArgumentParser) have the values that the job gives them, else
their defaults. Nothing of the script runs: operations are those of `sagefit.job.following.values`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from sagefit.job.following.arguments import Arguments, option
from sagefit.job.following.calls import BrokenLeft, Left, SkippedLeft
from sagefit.job.following.commands import Commands
from sagefit.job.following.expressions import Heard
from sagefit.job.following.files import Files
from sagefit.job.following.values import (
    UNKNOWN,
    Class,
    Function,
    Made,
    Record,
    Ref,
    Scope,
    bare,
    compared,
    joined,
    lengthened,
    literal,
    operated,
    truth,
)

_LONGEST_MODULE = 200_000
_MOST_ROUNDS = 32
"""Rounds of a loop that are walked one after the other, where its items are known."""
_UNLEARNED = ("no_grad", "inference_mode")
_COMMANDS = ("command", "click.command", "click.group")


class Evaluation(Commands):
    """One imagined run of a script.

    ``given`` are the hyperparameters and arguments of the job by plain name, ``environment`` its variables. Each call
    of a library goes to ``heard``. ``settings`` names the classes of libraries whose keywords may come from a subclass
    in the script. ``files`` are what the script may read and import.
    """

    def __init__(
        self,
        given: Mapping[str, object],
        environment: Mapping[str, str],
        heard: Heard,
        settings: Sequence[str] = (),
        files: Files | None = None,
    ) -> None:
        super().__init__(Arguments(given, environment), heard, files or Files(), settings)
        self._modules: dict[str, Record | None] = {}
        self._perhaps_left = False

    def run(self, tree: ast.Module, name: str = "train.py") -> None:
        """Walks the script from its first line to its last. Raises TooLongError if that takes too many steps."""
        scope = Scope()
        scope.names |= {"__name__": "__main__", "__file__": name, "__package__": ""}
        with suppress(Left):
            self._block(tree.body, scope)

    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        self._step()
        if isinstance(node, ast.Expr):
            self.value(node.value, scope)
        elif isinstance(node, ast.Assign):
            value = self.value(node.value, scope)
            for target in node.targets:
                self._bind(target, value, scope)
            if isinstance(by := node.value, ast.BinOp):
                self._steps_of(by.op, node.targets[0], by.right, self.value(by.right, scope))
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._bind(node.target, self.value(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign):
            self._augment(node, scope)
        elif isinstance(node, ast.If):
            self._if(node, scope)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._loop(node, scope)
        elif isinstance(node, ast.With | ast.AsyncWith):
            self._with(node, scope)
        elif isinstance(node, ast.Try):
            self._try(node, scope)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope.names[node.name] = self._function(node, scope)
        elif isinstance(node, ast.ClassDef):
            scope.names[node.name] = self._class(node, scope)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node, scope)
        elif isinstance(node, ast.Return):
            raise Left(None if node.value is None else self.value(node.value, scope))
        elif isinstance(node, ast.Raise):
            raise Left(UNKNOWN)
        elif isinstance(node, ast.Break):
            raise BrokenLeft
        elif isinstance(node, ast.Continue):
            raise SkippedLeft
        elif isinstance(node, ast.Match):
            self._match(node, scope)

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        before = self._unlearned
        try:
            for item in node.items:
                value = self.value(item.context_expr, scope)
                self._unlearned += isinstance(value, Made) and value.callee in _UNLEARNED
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, value, scope)
            self._block(node.body, scope)
        finally:
            self._unlearned = before

    def _match(self, node: ast.Match, scope: Scope) -> None:
        subject = self.value(node.subject, scope)
        known = bare(subject)
        for case in node.cases:
            fits = self._fits(case.pattern, known, scope)
            if fits and case.guard:
                fits = truth(self.value(case.guard, scope))
            if fits is None:
                break
            if fits:
                with self._decided(subject):
                    self._block(case.body, scope)
                return
        self._perhaps([*(case.body for case in node.cases), []], scope)

    def _fits(self, pattern: ast.pattern, subject: object, scope: Scope) -> bool | None:
        """Whether a value is what a pattern has; None where that is not known."""
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            if pattern.name is not None:
                scope.names[pattern.name] = subject
            return True
        if isinstance(pattern, ast.MatchOr):
            found = [self._fits(each, subject, scope) for each in pattern.patterns]
            return True if True in found else None if None in found else False
        if isinstance(pattern, ast.MatchSingleton) and literal(subject):
            return subject is pattern.value
        if isinstance(pattern, ast.MatchValue):
            return truth(compared(ast.Eq(), self.value(pattern.value, scope), subject))
        return None

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name if each.asname else each.name.partition(".")[0]
                scope.names[each.asname or first] = self._module(first) or Ref(first)
            return
        around = str(scope.find("__package__")).split(".")
        parts = around[: len(around) - node.level + 1] if node.level else []
        whole = ".".join([*filter(None, parts), *filter(None, [node.module])])
        module = self._module(whole)
        for each in node.names:
            known = module.fields if module else {}
            if each.name == "*":
                scope.names |= {name: value for name, value in known.items() if not name.startswith("_")}
            elif each.name in known:
                scope.names[each.asname or each.name] = known[each.name]
            else:
                inner = self._module(f"{whole}.{each.name}".lstrip("."))
                scope.names[each.asname or each.name] = inner or Ref(f"{whole}.{each.name}")

    def _module(self, name: str) -> Record | None:
        """A module of the code, walked as an import does it; None where the code has none of this name."""
        if name in self._modules or not self.files.may_have(name):
            return self._modules.get(name)
        self._modules[name] = None
        path = name.replace(".", "/")
        for file, package in ((f"{path}.py", name.rpartition(".")[0]), (f"{path}/__init__.py", name)):
            text = self.files.read(file, _LONGEST_MODULE)
            if text is None:
                continue
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
            scope = Scope()
            scope.names |= {"__name__": name, "__file__": file, "__package__": package}
            self._modules[name] = Record(scope.names)
            with suppress(Left):
                self._block(tree.body, scope)
            self._modules[name] = Record(scope.names)
            return self._modules[name]
        return None

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        now, by = self.value(load, scope), self.value(node.value, scope)
        self._steps_of(node.op, node.target, node.value, by)
        if isinstance(now, list) and isinstance(by, list) and isinstance(node.op, ast.Add) and self.sure:
            lengthened(now, by)
            return
        self._bind(node.target, operated(node.op, now, by), scope)

    def _if(self, node: ast.If, scope: Scope) -> None:
        test = self.value(node.test, scope)
        known = truth(test)
        if known is not None:
            with self._decided(test):
                self._block(node.body if known else node.orelse, scope)
        else:
            self._perhaps([node.body, node.orelse], scope)

    def _perhaps(self, bodies: Sequence[Sequence[ast.stmt]], scope: Scope) -> None:
        """Walks what may happen; names keep only what all ways agree on."""
        before = dict(scope.names)
        after: list[dict[str, object]] = []
        self._muted += 1
        try:
            for body in bodies:
                scope.names = dict(before)
                try:
                    self._block(body, scope)
                except Left as left:
                    self._may_leave(left)
                else:
                    after.append(scope.names)
        finally:
            self._muted -= 1
            scope.names = before
        for name in dict.fromkeys(name for names in after for name in names):
            scope.names[name] = joined([names.get(name, UNKNOWN) for names in after])

    def _may_leave(self, left: Left) -> None:
        """A function may return here, where a run would tell."""
        if isinstance(left, SkippedLeft):
            self._perhaps_left = True
        elif self._returned:
            self._returned[-1].append(left.value)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> None:
        if isinstance(node, ast.While):
            unsure = truth(self.value(node.test, scope)) is not True
        else:
            items = bare(self.value(node.iter, scope))
            unsure = False
            if (
                isinstance(items, list | tuple | dict)
                and len(items) <= _MOST_ROUNDS
                and self._rounds(node, items, scope)
            ):
                return
            self._pieces(node, scope)
        changed = _bound(node.body)
        for name in changed:
            scope.names[name] = UNKNOWN
        if not isinstance(node, ast.While):
            each = Made("item", {}, [], items) if isinstance(items, Made) and items.callee == "parameters" else UNKNOWN
            self._bind(node.target, each, scope)
        if unsure:
            self._perhaps([node.body, []], scope)
        else:
            try:
                self._block(node.body, scope)
            except Left as left:
                self._may_leave(left)
        for name in changed:
            scope.names[name] = UNKNOWN

    def _rounds(self, node: ast.For | ast.AsyncFor, items: Iterable[object], scope: Scope) -> bool:
        """Walks a loop over known items, one round after the other; False where nobody knows which rounds there are."""
        outer, self._perhaps_left = self._perhaps_left, False
        try:
            for each in list(items):
                self._bind(node.target, each, scope)
                try:
                    self._block(node.body, scope)
                except BrokenLeft:
                    return not self._perhaps_left
                except SkippedLeft:
                    pass
                if self._perhaps_left:
                    return False
        finally:
            self._perhaps_left = outer
        return True

    def _pieces(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        """Tells of a batch that is split, where the model learns from each piece."""
        learns = any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in ast.walk(node))
        for call in ast.walk(node.iter) if learns and self.sure else ():
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("split", "chunk")
            ):
                of_torch = self.value(call.func.value, scope) == Ref("torch")
                first = call.args[of_torch : of_torch + 1]
                number = self.value(first[0], scope) if first else UNKNOWN
                self.heard(Made(f"a batch's {call.func.attr}", {}, [number]))
                return

    def _try(self, node: ast.Try, scope: Scope) -> None:
        self._block(node.body, scope)
        if node.handlers:
            self._perhaps([[], *(handler.body for handler in node.handlers)], scope)
        self._block(node.orelse, scope)
        self._block(node.finalbody, scope)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Function:
        made = Function(node, scope)
        options: dict[str, object] = {}
        command = False
        for each in node.decorator_list:
            decorator = self.value(each, scope)
            if not isinstance(decorator, Made | Ref):
                continue
            name = decorator.name if isinstance(decorator, Ref) else decorator.callee
            command = command or name in _COMMANDS
            made.unlearned = made.unlearned or name.rpartition(".")[2] in _UNLEARNED
            if isinstance(decorator, Made) and (name == "wrap" or "config_name" in decorator.told):
                made.settings = decorator
            if isinstance(decorator, Made) and name in ("option", "argument"):
                options |= option(decorator)
            if isinstance(decorator, Made) and isinstance(app := decorator.told.get(" of"), Made):
                app.told["command"] = made if "command" not in app.told else UNKNOWN
        made.options = options if command else None
        return made

    def _class(self, node: ast.ClassDef, scope: Scope) -> Class:
        inner = Scope(scope)
        bases = [self.value(base, scope) for base in node.bases]
        self._block([each for each in node.body if not isinstance(each, ast.Expr)], inner)
        made = Class(node, bases, inner.names)
        for each in inner.names.values():
            if isinstance(each, Function):
                each.home = made
        return made


def _bound(body: Sequence[ast.stmt]) -> list[str]:
    """Names that statements bind."""
    found = [inner for each in body for inner in ast.walk(each) if isinstance(inner, ast.Name)]
    return list(dict.fromkeys(each.id for each in found if not isinstance(each.ctx, ast.Load)))
