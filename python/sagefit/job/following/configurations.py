"""Configurations of a script: YAML, JSON and INI, in its text or in files beside it, OmegaConf and Hydra."""

from __future__ import annotations

import configparser
import json
from collections.abc import Container, Mapping

import yaml

from sagefit.job.following.calls import LONGEST_TEXT, OPEN, Calls
from sagefit.job.following.values import (
    UNKNOWN,
    Argued,
    Class,
    Made,
    Record,
    Ref,
    Sections,
    Settings,
    bare,
    method,
    small,
)

_LOADERS = ("yaml.safe_load", "yaml.load", "yaml.full_load", "json.loads", "json.load")
_HYPERPARAMETERS = "/opt/ml/input/config/hyperparameters.json"
_OMEGA = "OmegaConf."
_INI = ("ConfigParser", "RawConfigParser", "SafeConfigParser")
_DEEPEST = 8
_LARGEST = 5_000
"""Entries of a configuration, and characters of its texts, that are looked at."""
_DEAR = 400
"""Steps that count for a call that copies a configuration."""


class Configurations(Calls):
    """Calls that read a configuration, or make one."""

    def _of_configuration(
        self, callee: object, owner: object, last: str, positional: list[object], keywords: dict[str, object]
    ) -> tuple[object] | None:
        """What such a call returns, if it is one."""
        name = callee.name if isinstance(callee, Ref) else ""
        first = bare(positional[0]) if positional else None
        if name in _LOADERS and positional:
            return (self._loaded(first, as_json=name.startswith("json")),)
        if _OMEGA in name:
            self._step(_DEAR)
            return (self._of_omegaconf(last, positional, keywords),)
        if last in _INI and isinstance(callee, Ref):
            return (Sections({}),)
        if isinstance(owner, Sections):
            return (self._of_sections(owner, last, positional, keywords),)
        if last == "store" and isinstance(keywords.get("node"), Class | Record):
            group = f"{keywords['group']}/" if "group" in keywords else ""
            self.resolvers[f"{group}{keywords.get('name')} of Hydra"] = keywords["node"]
            return (None,)
        if last == "instantiate" and (told := _mapping(first)) is not None:
            target = bare(told.get("_target_"))
            rest = {key: self._used(each) for key, each in told.items() if not key.startswith("_")}
            if isinstance(target, str):
                return (self._of_library(target.rpartition(".")[2], UNKNOWN, positional[1:], rest | keywords),)
        return None

    def _loaded(self, source: object, *, as_json: bool = False) -> object:
        """The mapping in a text, or in a file of the code that is open."""
        text = source if isinstance(source, str) else None
        if isinstance(source, Made) and source.callee == OPEN:
            if source.told["file"] == _HYPERPARAMETERS:
                return {name: self.arguments.value_of([name], None) for name in self.arguments.given}
            text = self.files.read(str(source.told["file"]), LONGEST_TEXT)
        return UNKNOWN if text is None else _parsed(text, as_json=as_json)

    def _of_omegaconf(self, last: str, positional: list[object], keywords: dict[str, object]) -> object:
        first = bare(positional[0]) if positional else {}
        if last == "load":
            text = self.files.read(first, LONGEST_TEXT) if isinstance(first, str) else None
            first, last = UNKNOWN if text is None else text, "create"
        if last in ("create", "structured"):
            return _settings(self._instance(first, [], {}) if isinstance(first, Class) else first)
        if last in ("merge", "unsafe_merge"):
            return _merged([_settings(bare(each)) for each in positional])
        if last == "from_cli":
            return self._of_arguments({})
        if last in ("to_container", "to_object") and isinstance(first, dict):
            return self._whole(first)
        if last == "select" and isinstance(first, Settings) and len(positional) > 1:
            found = self._looked_up(first, str(bare(positional[1])), None)
            return keywords.get("default") if found is UNKNOWN else found
        if last == "update" and isinstance(first, Settings) and len(positional) > 2:
            _put(first, str(bare(positional[1])), positional[2] if self.sure else UNKNOWN)
        if last == "register_new_resolver" and len(positional) > 1:
            self.resolvers[str(first)] = positional[1]
        return UNKNOWN

    def _whole(self, content: dict[str, object], depth: int = 0) -> object:
        """A configuration as a plain mapping, with what references in it stand for."""
        if depth > _DEEPEST:
            return UNKNOWN
        known = self._items(content)
        return {name: self._whole(each, depth + 1) if isinstance(each, dict) else each for name, each in known.items()}

    def _of_arguments(self, content: Mapping[str, object], chosen: Container[str] = ()) -> Settings:
        """A configuration, in which what the script is given by dotted names is replaced, without those ``chosen``."""
        made = Settings(content)
        for name in self.arguments.given:
            if name in chosen:
                continue
            told = self.arguments.value_of([name], None)
            if isinstance(told, Argued) and isinstance(told.value, str):
                told = Argued(_parsed(told.value), told.arguments, told.direct)
            _put(made, name.lstrip("+"), told)
        return made

    def _of_sections(
        self, parser: Sections, last: str, positional: list[object], keywords: dict[str, object]
    ) -> object:
        """What a call of configparser returns."""
        known = [bare(each) for each in positional]
        first = known[0] if known else UNKNOWN
        if last == "read":
            for name in first if isinstance(first, list | tuple) else [first]:
                parser.update(_sections(self.files.read(str(bare(name)), LONGEST_TEXT), parser))
        elif last in ("read_string", "read_dict", "read_file"):
            if isinstance(first, Made) and first.callee == OPEN:
                first = self._content(str(first.told["file"]))
            parser.update(_sections(first, parser))
        elif last == "sections":
            return [name for name in parser if name != configparser.DEFAULTSECT]
        elif last in ("has_section", "has_option"):
            inner = parser.get(str(first))
            return inner is not None and (len(known) < 2 or known[1] in inner)  # type: ignore[operator]
        elif last in ("get", "getint", "getfloat", "getboolean") and len(known) > 1:
            section = _mapping(parser.get(str(first)))
            told = [positional[1], *([keywords["fallback"]] if "fallback" in keywords else [])]
            return keywords.get("fallback", UNKNOWN) if section is None else self._used(method(section, last, told))
        return UNKNOWN

    def _of_hydra(self, decorator: Made) -> object:
        """The configuration that ``hydra.main`` gives a function."""
        name = bare(decorator.told.get("config_name"))
        folder = bare(decorator.told.get("config_path")) or "."
        groups: list[str] = []
        made = self._stored(str(name), groups)
        if made is not None:
            return self._of_arguments(made, groups)
        if not isinstance(name, str) or not isinstance(folder, str):
            return UNKNOWN
        content = self._composed(folder, name.removesuffix(".yaml"), groups)
        return UNKNOWN if content is None else self._of_arguments(content, groups)

    def _stored(self, name: str, groups: list[str]) -> Settings | None:
        """A dataclass of Hydra's store, with those that its ``defaults`` name."""
        node = self.resolvers.get(f"{name} of Hydra")
        made = _settings(self._instance(node, [], {}) if isinstance(node, Class) else node)
        if not isinstance(made, Settings):
            return None
        entries = made.pop("defaults", [])
        for entry in entries if isinstance(entries, list) else []:
            for group, choice in entry.items() if isinstance(entry, dict) else ():
                inner = self._stored(f"{group}/{self.arguments.given.get(group, choice)}", [])
                if inner is not None:
                    groups.append(group)
                    made[group] = Settings(inner, made)
        return made

    def _composed(self, folder: str, name: str, groups: list[str], depth: int = 0) -> Settings | None:
        """A configuration of Hydra with those that its list of defaults names. What it says itself counts last.

        ``groups`` gets the names of those whose file was chosen.
        """
        self._step(_DEAR)
        text = self.files.read(f"{folder}/{name}.yaml", LONGEST_TEXT)
        own = _parsed(text) if text is not None and depth <= _DEEPEST else None
        if not isinstance(own, dict) or not small(own, _LARGEST):
            return None
        entries = own.pop("defaults", [])
        made = Settings({})
        for entry in entries if isinstance(entries, list) else []:
            if entry == "_self_":
                _merge(made, own)
                continue
            for group, choice in (entry if isinstance(entry, dict) else {"": entry}).items():
                words = str(group).split()
                group = words[-1] if words else ""  # of "override model"
                choice = self.arguments.given.get(group, choice)
                groups.append(group)
                inner = self._composed(f"{folder}/{group}".rstrip("/"), str(choice), groups, depth + 1)
                if inner is not None:
                    whole = not group or (text or "").startswith("# @package _global_")
                    _merge(made, inner if whole else {group.replace("/", "."): inner})
        if "_self_" not in entries:
            _merge(made, own)
        return made


def _parsed(text: str, *, as_json: bool = False) -> object:
    """What YAML or JSON says; UNKNOWN where it is none, or too long."""
    try:
        return UNKNOWN if len(text) > LONGEST_TEXT else json.loads(text) if as_json else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        return UNKNOWN


def _mapping(value: object) -> dict[str, object] | None:
    """The entries of a mapping or of an instance."""
    return value.fields if isinstance(value, Record) else value if isinstance(value, dict) else None


def _settings(content: object) -> object:
    """What OmegaConf makes of a text, a mapping or an instance of a dataclass."""
    if isinstance(content, str):
        content = _parsed(content)
    if isinstance(content, Record | dict) and small(_mapping(content), _LARGEST):
        return Settings(_plain(content, 0))
    return content if isinstance(content, list) else UNKNOWN


def _plain(content: Record | dict[str, object], depth: int) -> dict[str, object]:
    known = _mapping(content) or {}
    return {
        str(name): _plain(each, depth + 1) if isinstance(each, Record | dict) and depth < _DEEPEST else each
        for name, each in known.items()
    }


def _merged(parts: list[object]) -> object:
    made = Settings({})
    for part in parts:
        if not isinstance(part, dict) or not small(part, _LARGEST):
            return UNKNOWN
        _merge(made, part)
    return made


def _merge(into: Settings, content: Mapping[str, object], depth: int = 0) -> None:
    for name, each in content.items():
        if isinstance(each, dict) and depth < _DEEPEST:
            inner = into.get(name)
            if not isinstance(inner, Settings):
                into[name] = inner = Settings({}, into.root)
            _merge(inner, each, depth + 1)
        else:
            into[name] = each


def _put(into: Settings, name: str, value: object) -> None:
    """Sets a value by its dotted name."""
    *around, last = name.split(".")
    for part in around:
        inner = into.get(part)
        if not isinstance(inner, Settings):
            into[part] = inner = Settings({}, into.root)
        into = inner
    into[last] = value


def _sections(source: object, earlier: Mapping[str, object]) -> dict[str, object]:
    """The sections of a text or a mapping, with what is known of them already."""
    parser = configparser.ConfigParser(strict=False)
    try:
        parser.read_dict({name: each for name, each in earlier.items() if isinstance(each, dict)})
        if isinstance(source, str) and len(source) <= LONGEST_TEXT:
            parser.read_string(source)
        elif isinstance(source, dict):
            parser.read_dict(source)
        return {name: Settings(dict(section)) for name, section in parser.items()}
    except (configparser.Error, ValueError, TypeError, AttributeError):
        return {}
