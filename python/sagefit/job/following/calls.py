"""Calls: functions and classes of the script, what is known of Python and of libraries that read arguments."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sagefit.job.following.arguments import Arguments, unwrapped
from sagefit.job.following.expressions import Expressions, Heard, says_length
from sagefit.job.following.files import Files
from sagefit.job.following.values import (
    FUNCTIONS,
    UNKNOWN,
    Argued,
    Class,
    Function,
    Made,
    Record,
    Ref,
    Scope,
    Settings,
    applied,
    bare,
    joined,
    lengthened,
    method,
    small,
)

_DEEPEST = 40
_KEEP = ("partial", "spawn", "print", "pprint", "info", "debug", "warning", "log", "init", "dumps")
"""What only tells people of a value, or calls it later with arguments that are known."""
LONGEST_TEXT = 20_000
"""Characters of a file, or of a text in the script, of which something is made."""
_DEAR = 100
"""Steps that count for a copy of all that is in something."""
OPEN = "an open file"
_RECORDS = ("Namespace", "SimpleNamespace", "EasyDict", "edict", "Munch", "AttrDict", "ConfigDict")
_OF_THE_PLATFORM = tuple(f"/opt/ml{name}" for name in ("", "/code", "/input", "/input/config", "/input/data", "/model"))
"""Folders that are there in every training job."""
_MADE = " made"
_EMPTY: Mapping[str, Callable[[], object]] = {"dict": dict, "list": list, "set": set, "tuple": tuple}
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


class BrokenLeft(SkippedLeft):
    """A loop ends here."""


class Calls(Expressions):
    """Calls. ``settings`` names the classes of libraries whose keywords may come from a subclass in the script."""

    def __init__(self, arguments: Arguments, heard: Heard, files: Files, settings: Sequence[str]) -> None:
        super().__init__(arguments, heard, files)
        self._settings = settings
        self._active: list[Function] = []
        self._returned: list[list[object]] = []
        self._hooked: set[int] = set()
        self._generators: dict[ast.AST, bool] = {}
        self._unlearned = 0
        self.walked: set[int] = set()
        """Functions that were called, by the ``id`` of their node."""

    @abstractmethod
    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None: ...

    @abstractmethod
    def _of_settings(
        self, callee: object, owner: object, last: str, positional: list[object], keywords: dict[str, object]
    ) -> tuple[object] | None: ...

    @abstractmethod
    def _command(self, function: Function) -> object: ...

    @abstractmethod
    def _configuration(self, function: Function) -> object: ...

    def _called(self, node: ast.Call, scope: Scope) -> object:
        if isinstance(node.func, ast.Subscript) and not isinstance(node.func.slice, ast.Slice | ast.Constant):
            with self._decided(self.value(node.func.slice, scope)):  # functions[arguments.name](...)
                return self._called_now(node, scope)
        return self._called_now(node, scope)

    def _called_now(self, node: ast.Call, scope: Scope) -> object:
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
        callee = bare(callee)
        positional, keywords = self._arguments(node, scope)
        if isinstance(callee, Made) and callee.callee == "partial" and callee.positional:
            positional, keywords = callee.positional[1:] + positional, callee.told | keywords
            callee = callee.positional[0]
        if isinstance(callee, Ref):
            last = callee.last
        if last in ("view", "reshape") and len(positional) == 2 and says_length(node.args[-1]):
            self.cut.append(positional[1])  # a row of examples of one length each
        if last == "exec" and self.sure:
            keywords = self._overridden(scope)
        if isinstance(callee, Function):
            if callee.settings is not None and not positional and not keywords:
                return self._call(callee, [self._configuration(callee)], {})
            return self._command(callee) if callee.options is not None else self._call(callee, positional, keywords)
        if isinstance(callee, Class):
            return self._instance(callee, positional, keywords)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__init__" and _is_super(node.func.value):
            self._of_library_base(positional, keywords)
            return None
        known = self._of_python(callee, owner, last, positional, keywords, scope)
        if known is not None:
            return known[0]
        return self._of_library(last, callee if isinstance(callee, Made) else owner, positional, keywords)

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

    def _of_library_base(self, positional: list[object], keywords: dict[str, object]) -> None:
        """The constructor of a class of settings that is a library's, called by that of a class of the script."""
        running = self._active[-1] if self._active else None
        if running and running.home and running.instance:
            base = next((each for each in running.home.library() if each in self._settings), None)
            if base:
                fields = {name: self._default(each) for name, each in running.home.fields().items()}
                running.instance.fields[_MADE] = self._of_library(base, UNKNOWN, positional, fields | keywords)

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
        by = owner if isinstance(owner, Made | Ref) else None
        made = Made(last, keywords, positional, by, unlearned=self._unlearned > 0, because=self._because)
        if self.sure:
            self.heard(made)
        if last == "spawn" and len(positional) > 1 and isinstance(positional[0], Function):
            told = bare(positional[1])
            self._call(positional[0], [UNKNOWN, *(told if isinstance(told, tuple) else [])], {})
        told = bare(keywords.get("fn_kwargs"))
        for each in (*positional, *keywords.values()) if last not in _KEEP else ():
            self._handed(each, told if isinstance(told, dict) else {})
        if isinstance(owner, Made) and last == "command":
            made.told[" of"] = owner
        return made

    def _handed(self, value: object, keywords: dict[str, object]) -> None:
        """A library has it now, and calls what can be called of it."""
        if isinstance(value, Made) and value.callee == "partial" and value.positional:
            function = value.positional[0]
            if isinstance(function, Function):
                self._call(function, value.positional[1:], value.told)
        elif isinstance(value, Function) and id(value.node) not in self._hooked:
            self._hooked.add(id(value.node))
            self._call(value, [], keywords)
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
        self.walked.add(id(node))
        self._active.append(function)
        self._returned.append([])
        self._unlearned += function.unlearned
        result: object = None
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, inner)
            self._block(node.body, inner)
        except Left as left:
            result = left.value
        finally:
            self._unlearned -= function.unlearned
            self._active.pop()
            returned = self._returned.pop()
        if node not in self._generators:
            self._generators[node] = _yields(node)
        return UNKNOWN if self._generators[node] else joined([result, *returned])

    def _instance(self, made_from: Class, positional: list[object], keywords: dict[str, object]) -> object:
        fields = {name: self._default(each) for name, each in made_from.fields().items()}
        of_library = made_from.library()
        from_library = next((base for base in of_library if base in self._settings), None)
        if from_library and isinstance(made_from.find("__init__"), Function):
            record = Record(fields, made_from)
            self._method(record, "__init__", positional, keywords)
            return record.fields.get(_MADE, UNKNOWN)
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

    def _default(self, value: object) -> object:
        """The default of a field of a dataclass."""
        if not isinstance(value, Made) or value.callee not in ("field", "Field", "HfArg"):
            return value
        factory = value.told.get("default_factory")
        if isinstance(factory, Function):
            return self._call(factory, [], {})
        if isinstance(factory, Class):
            return self._instance(factory, [], {})
        if isinstance(factory, Ref) and factory.name in _EMPTY:
            return _EMPTY[factory.name]()
        return value.told.get("default", value.positional[0] if value.positional else UNKNOWN)

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
        told = self._of_settings(callee, owner, last, positional, keywords)
        if told is not None:
            return told
        if last == "save_hyperparameters" and isinstance(owner, Record):
            record = next((each for each in positional if isinstance(each, Record)), None)
            owner.fields["hparams"] = record or Record(dict(scope.arguments))
            return (None,)
        if name in ("os.environ.get", "os.getenv") and isinstance(first, str):
            other = positional[1] if len(positional) > 1 else keywords.get("default")
            return (self.arguments.variable(first, other),)
        if name == "open" and isinstance(first, str):
            return (_opened(first, *positional[1:2], **keywords),)
        if last in _RECORDS:
            whole = first if positional else {}
            return (Record({**whole, **keywords}) if isinstance(whole, dict) and "**" not in keywords else UNKNOWN,)
        if name == "vars" and isinstance(first, Record):
            return (first.fields,)
        if name == "vars" and isinstance(first, Class):
            return (first.fields(),)
        if name in ("os.path.isdir", "os.path.exists") and first in _OF_THE_PLATFORM:
            return (True,)
        if name in ("dataclasses.asdict", "attr.asdict", "attrs.asdict") and isinstance(first, Record):
            return (_copied(first, plainly=True),)
        if name in ("dataclasses.replace", "copy.replace") and isinstance(first, Record):
            return (Record(first.fields | keywords, first.of),)
        if name in ("copy.copy", "copy.deepcopy") and isinstance(first, Record | dict | list):
            self._step(_DEAR)
            return (_copied(first) if small(first) else UNKNOWN,)
        if name == "getattr" and len(positional) > 1:
            return (self._got(*positional),)
        if name == "hasattr" and len(positional) > 1:
            return (self._has(*positional[:2]),)
        if name == "setattr" and len(positional) > 2:
            self._set(*positional[:3])
            return (None,)
        if name == "importlib.import_module" and isinstance(first, str):
            return (Ref(first),)
        if name == "dict":
            whole = first if positional else {}
            known = isinstance(whole, dict) and "**" not in keywords
            return ({**self._items(whole), **keywords} if known else UNKNOWN,)  # type: ignore[arg-type]
        if name == "super":
            return (UNKNOWN,)
        if name in FUNCTIONS and not keywords:
            return (applied(name, positional),)
        if last in _YES and not positional:
            return (True,)
        return self._of_value(owner, last, positional, keywords)

    def _got(self, owner: object, name: object, default: object = UNKNOWN, *_more: object) -> object:
        """What ``getattr`` returns."""
        word = bare(name)
        found = self._used(self._member(owner, word)) if isinstance(word, str) else UNKNOWN
        return default if found is UNKNOWN and isinstance(owner, Record) else found

    def _has(self, owner: object, name: object) -> object:
        """What ``hasattr`` returns."""
        word = bare(name)
        if isinstance(owner, Ref) or not isinstance(word, str):
            return UNKNOWN
        if self._member(owner, word) is not UNKNOWN:
            return True
        own = isinstance(owner, Record) and word not in owner.fields and not (owner.of and owner.of.library())
        return False if own else UNKNOWN

    def _set(self, owner: object, name: object, value: object) -> None:
        """What ``setattr`` does; where the name is not known, nothing of the object is known any more."""
        word, kept = bare(name), value if self.sure else UNKNOWN
        fields = (
            owner.fields
            if isinstance(owner, Record)
            else owner.told
            if isinstance(owner, Made)
            else owner.members
            if isinstance(owner, Class)
            else bare(owner)
        )
        if isinstance(fields, dict):
            fields.update({word: kept} if isinstance(word, str) else dict.fromkeys(fields, UNKNOWN))

    def _items(self, content: dict[str, object]) -> dict[str, object]:
        """The entries of a mapping, with what references in them stand for."""
        return {name: self._resolved(each, content) for name, each in content.items()}

    def _of_value(
        self, owner: object, last: str, positional: list[object], keywords: dict[str, object]
    ) -> tuple[object] | None:
        known = bare(owner)
        if isinstance(owner, Made) and owner.callee == OPEN and last == "read":
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
            if isinstance(known, Settings) and last == "get":
                return (self._used(self._resolved(method(owner, last, positional), known)),)
            if last in ("get", "getint", "getfloat", "getboolean") and "fallback" in keywords:
                positional = [*positional[:1], keywords["fallback"]]
            return (self._used(method(owner, last, positional)),)
        return None

    def _content(self, name: str) -> object:
        text = self.files.read(name, LONGEST_TEXT)
        return UNKNOWN if text is None else text


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _yields(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))


def _opened(name: str, mode: object = "r", **keywords: object) -> object:
    """A file that is open for reading."""
    wanted = bare(keywords.get("mode", mode))
    return Made(OPEN, {"file": name}) if wanted in ("r", "rt", "rb") else UNKNOWN


def _copied(value: object, made: dict[int, object] | None = None, *, plainly: bool = False) -> object:
    """A copy of a value and of what is in it; ``plainly`` with a mapping for each instance."""
    made = {} if made is None else made
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, Record):
        fields: dict[str, object] = {}
        made[id(value)] = fields if plainly else Record(fields, value.of)
        fields.update({name: _copied(each, made, plainly=plainly) for name, each in value.fields.items()})
    elif isinstance(value, dict):
        made[id(value)] = copy = type(value)(value)
        copy.update({name: _copied(each, made, plainly=plainly) for name, each in value.items()})
    elif isinstance(value, list):
        made[id(value)] = items = list[object]()
        items += [_copied(each, made, plainly=plainly) for each in value]
    return made.get(id(value), value)
