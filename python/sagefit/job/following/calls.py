"""Calls: functions and classes of the script, what is known of Python and of libraries that read arguments."""

from __future__ import annotations

import ast
import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import yaml

from sagefit.job.following.arguments import Arguments, add_argument, default_of, unwrapped
from sagefit.job.following.expressions import Expressions, Heard
from sagefit.job.following.files import Files
from sagefit.job.following.values import (
    FUNCTIONS,
    UNKNOWN,
    Argued,
    Class,
    Function,
    Made,
    Parser,
    Record,
    Ref,
    Scope,
    applied,
    bare,
    joined,
    lengthened,
    method,
)

_DEEPEST = 40
_KEEP = ("partial", "spawn", "print", "pprint", "info", "debug", "warning", "log", "init", "dumps")
"""What only tells people of a value, or calls it later with arguments that are known."""
_LONGEST_TEXT = 20_000
_LOADERS = ("yaml.safe_load", "yaml.load", "yaml.full_load", "json.loads", "json.load", "omegaconf.OmegaConf.load")
_OPEN = "an open file"
_HYPERPARAMETERS = "/opt/ml/input/config/hyperparameters.json"
_RECORDS = ("Namespace", "SimpleNamespace", "EasyDict", "edict", "Munch", "AttrDict", "ConfigDict")
_YES = ("is_bfloat16_supported", "is_bf16_supported", "is_available")
"""What asks for a GPU: 16 bits need the same memory whichever they are, and a job for a GPU has one."""
_HOOKS = ("setup", "train_dataloader", "configure_optimizers", "configure_model", "__getitem__", "__call__")
"""Methods that a library calls of what it is given."""


class Left(Exception):  # noqa: N818 - no error: a return
    """A function or the script ends here."""

    def __init__(self, value: object = None) -> None:
        super().__init__()
        self.value = value


class SkippedLeft(Left):
    """A round of a loop ends here."""


class Calls(Expressions):
    """Calls. ``settings`` names the classes of libraries whose keywords may come from a subclass in the script."""

    def __init__(self, arguments: Arguments, heard: Heard, files: Files, settings: Sequence[str]) -> None:
        super().__init__(arguments, heard, files)
        self._settings = settings
        self._active: list[Function] = []
        self._returned: list[list[object]] = []
        self._hooked: set[int] = set()
        self._generators: dict[ast.AST, bool] = {}

    @abstractmethod
    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None: ...

    def _called(self, node: ast.Call, scope: Scope) -> object:
        owner: object = UNKNOWN
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, scope)
            callee = (
                self._of_base(node.func.attr) if _is_super(node.func.value) else self._member(owner, node.func.attr)
            )
            last = node.func.attr
        else:
            callee = self.value(node.func, scope)
            last = getattr(node.func, "id", "")
        positional, keywords = self._arguments(node, scope)
        if isinstance(callee, Made) and callee.callee == "partial" and callee.positional:
            positional, keywords = callee.positional[1:] + positional, callee.told | keywords
            callee = callee.positional[0]
        if isinstance(callee, Ref):
            last = callee.last
        if last == "exec" and self.sure:
            keywords = self._overridden(scope)
        if isinstance(callee, Function):
            return self._command(callee) if callee.options is not None else self._call(callee, positional, keywords)
        if isinstance(callee, Class):
            return self._instance(callee, positional, keywords)
        known = self._of_python(callee, owner, last, positional, keywords, scope)
        if known is not None:
            return known[0]
        return self._of_library(last, owner, positional, keywords)

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[list[object], dict[str, object]]:
        positional: list[object] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                inner = bare(self.value(each.value, scope))
                positional += inner if isinstance(inner, list | tuple) else [UNKNOWN]
            else:
                positional.append(self.value(each, scope))
        keywords: dict[str, object] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
                continue
            inner = bare(value)
            if isinstance(inner, Record):
                inner = self._all(inner)
            if isinstance(inner, dict):
                keywords |= {str(name): self._used(told) for name, told in inner.items()}
            else:
                keywords["**"] = UNKNOWN
        return positional, keywords

    def _of_base(self, name: str) -> object:
        """A method of ``super()``."""
        running = self._active[-1] if self._active else None
        bases = running.home.bases if running and running.home else []
        found = (base.find(name) for base in bases if isinstance(base, Class))
        own = next((each for each in found if isinstance(each, Function)), None)
        return replace(own, instance=running.instance) if running and own else UNKNOWN

    def _overridden(self, scope: Scope) -> dict[str, object]:
        """Variables of a script that runs another file on them, as nanoGPT does it to set them by arguments."""
        for name, value in scope.names.items():
            if isinstance(bare(value), int | float | str) and not name.startswith("_"):
                scope.names[name] = self.arguments.value_of([name], value)
        return {name: each for name, each in scope.names.items() if isinstance(each, Argued)}

    def _all(self, record: Record) -> dict[str, object]:
        for each in record.fields.values():
            self._used(each)
        return record.fields

    def _of_library(self, last: str, owner: object, positional: list[object], keywords: dict[str, object]) -> object:
        if last in ("exit", "_exit") and self.sure:
            raise Left(UNKNOWN)
        made = Made(last, keywords, positional)
        if self.sure:
            self.heard(made)
        if last == "spawn" and len(positional) > 1 and isinstance(positional[0], Function):
            told = bare(positional[1])
            self._call(positional[0], [UNKNOWN, *(told if isinstance(told, tuple) else [])], {})
        for each in (*positional, *keywords.values()) if last not in _KEEP else ():
            self._handed(each)
        if isinstance(owner, Made) and last == "command":
            made.told[" of"] = owner
        return made

    def _handed(self, value: object) -> None:
        """A library has it now, and calls what can be called of it."""
        if isinstance(value, Made) and value.callee == "partial" and value.positional:
            function = value.positional[0]
            if isinstance(function, Function):
                self._call(function, value.positional[1:], value.told)
        elif isinstance(value, Function) and id(value.node) not in self._hooked:
            self._hooked.add(id(value.node))
            self._call(value, [], {})
        elif isinstance(value, Record):
            if value.of is None:
                self._all(value)
                return
            if id(value) in self._hooked:
                return
            self._hooked.add(id(value))
            for name in _HOOKS:
                self._method(value, name, [], {})

    def _method(self, record: Record, name: str, positional: list[object], keywords: dict[str, object]) -> bool:
        """Calls a method of an instance, if its class has it."""
        found = record.of.find(name) if record.of else UNKNOWN
        if isinstance(found, Function):
            self._call(replace(found, instance=record), positional, keywords)
        return isinstance(found, Function)

    def _call(
        self,
        function: Function,
        positional: list[object],
        keywords: dict[str, object],
    ) -> object:
        """Walks a function; a parameter that nobody gives and that has no default is not known."""
        node = function.node
        if len(self._active) >= _DEEPEST or any(each.node is node for each in self._active):
            return UNKNOWN
        inner = Scope(function.scope)
        if function.instance is not None:
            positional = [function.instance, *positional]
        spec = node.args
        names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        own = dict(
            zip(reversed(names), (self.value(each, function.scope) for each in reversed(spec.defaults)), strict=False)
        )
        for each, given in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            names.append(each.arg)
            if given is not None:
                own[each.arg] = self.value(given, function.scope)
        told = dict(zip(names, positional, strict=False)) | {
            name: each for name, each in keywords.items() if name in names
        }
        for name in names:
            value = told.get(name, UNKNOWN if "**" in keywords else own.get(name, UNKNOWN))
            inner.names[name] = unwrapped(value)
        if spec.vararg:
            inner.names[spec.vararg.arg] = tuple(positional[len(names) :])
        if spec.kwarg:
            rest = {name: each for name, each in keywords.items() if name not in names and name != "**"}
            inner.names[spec.kwarg.arg] = UNKNOWN if "**" in keywords else rest
        inner.arguments = {name: each for name, each in inner.names.items() if name != "self"}
        self._active.append(function)
        self._returned.append([])
        result: object = None
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, inner)
            self._block(node.body, inner)
        except Left as left:
            result = left.value
        finally:
            self._active.pop()
            returned = self._returned.pop()
        if node not in self._generators:
            self._generators[node] = _yields(node)
        return UNKNOWN if self._generators[node] else joined([result, *returned])

    def _instance(self, made_from: Class, positional: list[object], keywords: dict[str, object]) -> object:
        fields = {name: default_of(each) for name, each in made_from.fields().items()}
        of_library = made_from.library()
        from_library = next((base for base in of_library if base in self._settings), None)
        if from_library:
            return self._of_library(from_library, UNKNOWN, positional, fields | keywords)
        record = Record(fields, made_from)
        if self._method(record, "__init__", positional, keywords):
            return record
        names = [
            each.target.id
            for each in made_from.node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        ]
        record.fields |= dict(zip(names, positional, strict=False)) | keywords
        self._method(record, "__post_init__", [], {})
        return record

    def _of_python(
        self,
        callee: object,
        owner: object,
        last: str,
        positional: list[object],
        keywords: dict[str, object],
        scope: Scope,
    ) -> tuple[object] | None:
        """What is known of a call, if it is no library's that may be told something."""
        name = callee.name if isinstance(callee, Ref) else ""
        first = bare(positional[0]) if positional else None
        told = self._of_command_line(callee, owner, last, positional, keywords)
        if told is not None:
            return told
        if last == "save_hyperparameters" and isinstance(owner, Record):
            record = next((each for each in positional if isinstance(each, Record)), None)
            owner.fields["hparams"] = record or Record(dict(scope.arguments))
            return (None,)
        if name in ("os.environ.get", "os.getenv") and isinstance(first, str):
            other = positional[1] if len(positional) > 1 else keywords.get("default")
            return (self.arguments.variable(first, other),)
        if name in _LOADERS and positional:
            return (self._loaded(name, first),)
        if name == "open" and isinstance(first, str):
            return (_opened(first, *positional[1:2], **keywords),)
        if last in _RECORDS or name.endswith("OmegaConf.create"):
            whole = first if positional else {}
            return (Record({**whole, **keywords}) if isinstance(whole, dict) else UNKNOWN,)
        if name == "vars" and isinstance(first, Record):
            return (first.fields,)
        if name == "getattr" and len(positional) > 1:
            return (self._got(*positional),)
        if name == "dict":
            whole = first if positional else {}
            return ({**whole, **keywords} if isinstance(whole, dict) and "**" not in keywords else UNKNOWN,)
        if name == "super":
            return (UNKNOWN,)
        if name in FUNCTIONS and not keywords:
            return (applied(name, positional),)
        if last in _YES and not positional:
            return (True,)
        return self._of_value(owner, last, positional, keywords)

    def _loaded(self, name: str, source: object) -> object:
        """The mapping in a text, or in a file of the code that is open or named."""
        text = source if isinstance(source, str) else None
        if isinstance(source, Made) and source.callee == _OPEN:
            if source.told["file"] == _HYPERPARAMETERS:
                return {name: self.arguments.value_of([name], None) for name in self.arguments.given}
            text = self.files.read(str(source.told["file"]), _LONGEST_TEXT)
        elif text is not None and name.endswith("OmegaConf.load"):
            text = self.files.read(text, _LONGEST_TEXT)
        if text is None or len(text) > _LONGEST_TEXT:
            return UNKNOWN
        try:
            return json.loads(text) if name.startswith("json") else yaml.safe_load(text)
        except (ValueError, RecursionError, yaml.YAMLError):
            return UNKNOWN

    def _got(self, owner: object, name: object, default: object = UNKNOWN, *_more: object) -> object:
        """What ``getattr`` returns."""
        word = bare(name)
        found = self._used(self._member(owner, word)) if isinstance(word, str) else UNKNOWN
        return default if found is UNKNOWN and isinstance(owner, Record) else found

    def _of_command_line(
        self, callee: object, owner: object, last: str, positional: list[object], keywords: dict[str, object]
    ) -> tuple[object] | None:
        """What a call returns that reads the command line."""
        name = callee.name if isinstance(callee, Ref) else ""
        first = positional[0] if positional else None
        if isinstance(owner, Parser):
            return (self._of_parser(owner, last, positional, keywords),)
        if last == "ArgumentParser":
            return (Parser(),)
        if last in ("parse_args_into_dataclasses", "parse_args_and_config") and isinstance(owner, Made):
            return (self._dataclasses(owner),)
        if name in ("fire.Fire", "typer.run", "jsonargparse.CLI") and isinstance(first, Function):
            return (self._command(first),)
        if isinstance(callee, Made) and callee.callee == "Typer":
            command = callee.told.get("command")
            return (self._command(command) if isinstance(command, Function) else UNKNOWN,)
        if name in ("tyro.cli", "simple_parsing.parse", "draccus.parse"):
            return (self._command(first) if isinstance(first, Function) else self._parsed(first),)
        return None

    def _of_value(
        self, owner: object, last: str, positional: list[object], keywords: dict[str, object]
    ) -> tuple[object] | None:
        known = bare(owner)
        if isinstance(owner, Made) and owner.callee == _OPEN and last == "read":
            return (self._content(str(owner.told["file"])),)
        if isinstance(known, str) and last == "read_text":
            return (self._content(known),)
        if isinstance(known, str) and last == "open":
            return (_opened(known, *positional[:1], **keywords),)
        if isinstance(known, dict) and last == "update":
            inner = bare(positional[0]) if positional else {}
            new = {**inner, **keywords} if isinstance(inner, dict) and "**" not in keywords else None
            known.update(
                dict.fromkeys(known, UNKNOWN) if new is None else new if self.sure else dict.fromkeys(new, UNKNOWN)
            )
            return (None,)
        if isinstance(known, list) and last in ("append", "extend") and positional:
            more = [positional[0]] if last == "append" else bare(positional[0])
            lengthened(known, more if isinstance(more, list | tuple) and self.sure else [UNKNOWN])
            return (None,)
        if isinstance(known, dict) and last == "pop" and positional and not self.sure:
            known.update(dict.fromkeys(known, UNKNOWN))
            return (UNKNOWN,)
        if isinstance(known, dict | list | str):
            return (self._used(method(owner, last, positional)),)
        return None

    def _content(self, name: str) -> object:
        text = self.files.read(name, _LONGEST_TEXT)
        return UNKNOWN if text is None else text

    def _of_parser(self, parser: Parser, last: str, positional: list[object], keywords: dict[str, object]) -> object:
        if last in ("add_argument_group", "add_mutually_exclusive_group"):
            return parser
        if last == "add_argument":
            add_argument(parser, [str(bare(each)) for each in positional], keywords, sure=self.sure)
        elif last == "set_defaults":
            for name, value in keywords.items():
                words, _, kind = parser.arguments.get(name, ([name], None, None))
                parser.arguments[name] = (words, value, kind)
        elif last in ("parse_args", "parse_known_args"):
            made = Record({name: self.arguments.value_of(*each) for name, each in parser.arguments.items()})
            return made if last == "parse_args" else (made, [])
        return UNKNOWN

    def _dataclasses(self, parser: Made) -> object:
        kinds = parser.positional[0] if parser.positional else parser.told.get("dataclass_types")
        kinds = bare(kinds)
        each = kinds if isinstance(kinds, list | tuple) else [kinds]
        return tuple(self._parsed(kind) for kind in each)

    def _parsed(self, kind: object) -> object:
        """An instance of a dataclass whose fields are arguments of the script."""
        if isinstance(kind, Class):
            fields = {name: self.arguments.value_of([name], default_of(each)) for name, each in kind.fields().items()}
            if any(base in self._settings for base in kind.library()):
                fields = {name: self.arguments.value_of([name], None) for name in self.arguments.given} | fields
            return self._instance(kind, [], fields)
        if isinstance(kind, Ref):
            return Made(kind.last, {})
        return UNKNOWN

    def _command(self, function: Function) -> object:
        """Calls a function with the arguments of the command line."""
        spec = function.node.args
        names = [each.arg for each in (*spec.args, *spec.kwonlyargs)]
        defaults = dict(zip(reversed([each.arg for each in spec.args]), reversed(spec.defaults), strict=False))
        defaults |= {each.arg: one for each, one in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if one}
        told: dict[str, object] = {}
        for name in names:
            own = (function.options or {}).get(name, UNKNOWN)
            if own is UNKNOWN and name in defaults:
                own = self.value(defaults[name], function.scope)
                own = unwrapped(own)
            told[name] = self.arguments.value_of([name], own)
        return self._call(function, [], told)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _yields(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))


def _opened(name: str, mode: object = "r", **keywords: object) -> object:
    """A file that is open for reading."""
    wanted = bare(keywords.get("mode", mode))
    return Made(_OPEN, {"file": name}) if wanted in ("r", "rt", "rb") else UNKNOWN
