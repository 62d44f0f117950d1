"""What reads the command line: argparse, dataclasses, click, Typer, Fire, tyro, simple_parsing, draccus, absl."""

from __future__ import annotations

import ast

from sagefit.job.following.arguments import add_argument, unwrapped
from sagefit.job.following.configurations import Configurations
from sagefit.job.following.values import UNKNOWN, Argued, Class, Function, Made, Parser, Record, Ref, bare, made_of

_DEEPEST = 5
"""Dataclasses in dataclasses."""
_HF_BOOL = Ref("string_to_bool")
_OF_CLASSES = ("tyro.cli", "simple_parsing.parse", "draccus.parse", "pyrallis.parse", "jsonargparse.auto_cli")
_OF_FUNCTIONS = ("fire.Fire", "typer.run", "jsonargparse.CLI", *_OF_CLASSES)


class Commands(Configurations):
    """Calls that read the arguments of the script."""

    def _of_settings(
        self, callee: object, owner: object, last: str, positional: list[object], keywords: dict[str, object]
    ) -> tuple[object] | None:
        """What a call returns that reads the command line or a configuration, if it is one."""
        name = callee.name if isinstance(callee, Ref) else ""
        first = positional[0] if positional else None
        if isinstance(owner, Parser):
            return (self._of_parser(owner, last, positional, keywords),)
        if last == "ArgumentParser":
            return (Parser(),)
        if last in ("parse_args_into_dataclasses", "parse_args_and_config") and isinstance(owner, Made):
            return (self._dataclasses(owner),)
        if name in _OF_FUNCTIONS and isinstance(first, Function):
            return (self._command(first),)
        if isinstance(callee, Made) and callee.callee == "Typer":
            command = callee.told.get("command")
            return (self._command(command) if isinstance(command, Function) else UNKNOWN,)
        if name in _OF_CLASSES or (name == "jsonargparse.CLI" and isinstance(first, Class)):
            return (self._parsed(first, flat=name == "simple_parsing.parse"),)
        if last.startswith("DEFINE_") and len(positional) > 1 and isinstance(bare(first), str):
            flag = str(bare(first))
            value = self.arguments.flags[flag] = self.arguments.value_of([flag], positional[1])
            return (Record({"value": value, "default": positional[1]}),)
        return self._of_configuration(callee, owner, last, positional, keywords)

    def _of_parser(self, parser: Parser, last: str, positional: list[object], keywords: dict[str, object]) -> object:
        if last in ("add_argument_group", "add_mutually_exclusive_group"):
            return parser
        if last == "add_arguments" and len(positional) > 1:  # of simple_parsing
            parser.groups[str(bare(positional[1]))] = positional[0]
        elif last == "add_arguments" and positional:
            parser.groups[str(bare(keywords.get("dest")))] = positional[0]
        elif last == "add_argument":
            add_argument(parser, [str(bare(each)) for each in positional], keywords, sure=self.sure)
        elif last == "set_defaults":
            for name, value in keywords.items():
                words, _, kind = parser.arguments.get(name, ([name], None, None))
                parser.arguments[name] = (words, value, kind)
        elif last in ("parse_args", "parse_known_args"):
            made = Record({name: self._typed(*each) for name, each in parser.arguments.items()})
            made.fields |= {name: self._parsed(kind, flat=True) for name, kind in parser.groups.items()}
            return made if last == "parse_args" else (made, [])
        return UNKNOWN

    def _typed(self, names: list[str], default: object, kind: object) -> object:
        """The value of an argument, as a function of the script makes it of its text."""
        value = self.arguments.value_of(names, default, kind)
        if isinstance(kind, Function) and isinstance(value, Argued) and value.arguments & self.arguments.given.keys():
            return made_of(bare(self._call(kind, [str(value.value)], {})), Argued(None, value.arguments))
        return value

    def _dataclasses(self, parser: Made) -> object:
        kinds = parser.positional[0] if parser.positional else parser.told.get("dataclass_types")
        kinds = bare(kinds)
        each = kinds if isinstance(kinds, list | tuple) else [kinds]
        return tuple(self._parsed(kind) for kind in each)

    def _parsed(self, kind: object, around: str = "", *, flat: bool = False) -> object:
        """An instance of a dataclass whose fields are arguments of the script.

        Those of a dataclass in it have its name and a dot before theirs, except where all are ``flat``.
        """
        if isinstance(kind, Ref):
            if kind.last not in self._settings:
                return Made(kind.last, {})
            told = {name: self.arguments.value_of([name], None, _HF_BOOL) for name in self.arguments.given}
            return self._of_library(kind.last, UNKNOWN, [], told)
        if not isinstance(kind, Class):
            return UNKNOWN
        fields = {}
        for name, each in kind.fields().items():
            value = self._default(each)
            inner = value.of if isinstance(value, Record) else None
            if inner is not None and around.count(".") < _DEEPEST:
                fields[name] = self._within(value, f"{around}{name}.", flat=flat)
            else:
                names = [f"{around}{name}", *([name] if flat and around else [])]
                fields[name] = self.arguments.value_of(names, value, _type(value))
        if any(base in self._settings for base in kind.library()):
            fields = {name: self.arguments.value_of([name], None) for name in self.arguments.given} | fields
        return self._instance(kind, [], fields)

    def _within(self, default: object, around: str, *, flat: bool) -> object:
        """An instance within another: what it has by default, with the arguments that the script is given."""
        if not isinstance(default, Record):
            return default
        for name, value in default.fields.items():
            if isinstance(value, Record) and value.of is not None and around.count(".") < _DEEPEST:
                self._within(value, f"{around}{name}.", flat=flat)
            else:
                names = [f"{around}{name}", *([name] if flat else [])]
                default.fields[name] = self.arguments.value_of(names, value, _type(value))
        return default

    def _configuration(self, function: Function) -> object:
        """What the decorator of a function gives it: Hydra's configuration, or a dataclass of draccus or pyrallis."""
        if function.settings is None:
            return UNKNOWN
        return self._annotated(function) if function.settings.callee == "wrap" else self._of_hydra(function.settings)

    def _annotated(self, function: Function) -> object:
        """The dataclass that is the type of the first parameter."""
        first = next(iter(function.node.args.args), None)
        return UNKNOWN if first is None else self._of_type(first, function, "")

    def _of_type(self, parameter: ast.arg, function: Function, around: str) -> object:
        if parameter.annotation is None:
            return UNKNOWN
        kind = self.value(parameter.annotation, function.scope)
        return self._parsed(kind, around) if isinstance(kind, Class) else UNKNOWN

    def _command(self, function: Function) -> object:
        """Calls a function with the arguments of the command line."""
        spec = function.node.args
        parameters = {each.arg: each for each in (*spec.args, *spec.kwonlyargs)}
        defaults = dict(zip(reversed([each.arg for each in spec.args]), reversed(spec.defaults), strict=False))
        defaults |= {each.arg: one for each, one in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if one}
        told: dict[str, object] = {}
        for name in parameters:
            own = (function.options or {}).get(name, UNKNOWN)
            if own is UNKNOWN and name in defaults:
                own = unwrapped(self.value(defaults[name], function.scope))
            elif own is UNKNOWN:
                own = self._of_type(parameters[name], function, f"{name}.")
            told[name] = self.arguments.value_of([name], own)
        return self._call(function, [], told)


def _type(default: object) -> Ref | None:
    """The type that a field of a dataclass surely has, by its default."""
    known = bare(default)
    return (
        _HF_BOOL if isinstance(known, bool) else Ref(type(known).__name__) if isinstance(known, int | float) else None
    )
