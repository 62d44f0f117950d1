"""YAML with line numbers, so that a complaint can name the line it is about."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from sagefit.errors import SagefitError
from sagefit.job.key import Key, Lines, dotted
from sagefit.job.other_names import place_of
from sagefit.job.values import durations_meant
from sagefit.job.yaml_faults import fault_of, trap_in
from sagefit.paths import display

_QUOTES = ("'", '"', "|", ">")
_TAGS = {"map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge"}
_MOST_FOR_C = 10_000  # characters; libyaml's recursion is not guarded, and each level of nesting takes a character
_MOST_BYTES = 500_000
_LONGEST_NUMBER = 64  # characters; the longest that says something has 24
_MOST_SHOWN = 40
# Control characters but tab and line ends, and those that turn the direction of text: a diff of them can lie.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MOST_NODES = 10_000  # with every alias written out; files without aliases may have more


def read(path: Path, text: str | None = None) -> tuple[dict[str, Any], Lines]:
    """The mapping in ``path`` and the line (from 1) of every key in it; of ``text``, where that is to stand there.

    Raises SagefitError for unreadable files, files of more than 500 kB, YAML errors, duplicate keys, keys that are no
    strings, characters that no screen shows, aliases that stand for too much, and documents that are no mapping.
    """
    lines = Lines()
    try:
        text = text_of(path) if text is None else text
        root = _compose(text)
        if not isinstance(root, yaml.MappingNode) or root.tag != "tag:yaml.org,2002:map":
            raise SagefitError(f"{display(path)}: {_no_mapping(root)}", hint="start from jobs/quickstart.yaml")
        _check_aliases(display(path), root)
        _index(display(path), root, (), lines)
        return SafeConstructor().construct_document(root), lines
    except UnicodeDecodeError as error:
        raise SagefitError(f"{display(path)}: not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise SagefitError(f"{display(path)}: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        fault = fault_of(error, text or "")
        where = f":{fault.line}" if fault.line else ""
        raise SagefitError(f"{display(path)}{where}: {fault.message}", hint=fault.hint) from error
    except RecursionError as error:
        raise SagefitError(f"{display(path)}: nested too deeply, or an alias that holds itself") from error
    except yaml.YAMLError as error:  # control characters and the like have no mark
        raise SagefitError(f"{display(path)}: not valid YAML: {error}") from error


def text_of(path: Path) -> str:
    """The text of a job file. Raises SagefitError for one of more than 500 kB."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise SagefitError(
            f"{display(path)}: a job file has at most {_MOST_BYTES:,} bytes, and this one has more",
            hint="put long texts into a file of the code or data",
        )
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _compose(text: str) -> yaml.Node | None:
    """The nodes of ``text``, from PyYAML's parser in C if it has one; the slow parser gives better error messages."""
    if yaml.__with_libyaml__ and len(text) <= _MOST_FOR_C:
        with suppress(yaml.YAMLError, UnicodeError):
            return yaml.compose(text, Loader=yaml.CSafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _check_aliases(file: str, root: yaml.Node) -> None:
    """Refuse aliases of aliases, with which a few lines can expand to gigabytes. Each node is counted once, unbuilt."""
    sizes: dict[int, int] = {}
    shared: list[yaml.Node] = []

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            shared.append(node)
        else:
            sizes[id(node)] = 1  # an alias inside of what it names; `_index` refuses it
            sizes[id(node)] += sum(size(child) for child in _children(node))
        return sizes[id(node)]

    total = size(root)
    if shared and total > _MOST_NODES:
        most = max(shared, key=lambda node: sizes[id(node)])
        raise SagefitError(
            f"{file}:{most.start_mark.line + 1}: with every alias written out the file has {total:,} values, and with "
            f"aliases it may have {_MOST_NODES:,}",
            hint="write out what is needed, or use fewer aliases of this anchor",
        )


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_scalar(where: str, node: yaml.ScalarNode) -> None:
    """Refuse text that no file can hold or no screen shows, and numbers that nobody can intend."""
    _check_text(where, node.value)
    if node.tag.rpartition(":")[2] in ("int", "float") and len(node.value) > _LONGEST_NUMBER:
        message = f"{where}: {_start_of(node.value)} is a number of {len(node.value):,} characters"
        raise SagefitError(message, hint=f"write one of at most {_LONGEST_NUMBER}, or put it in quotes")
    try:
        node.value.encode("utf-8")
        SafeConstructor().construct_object(node)
    except UnicodeEncodeError:
        raise SagefitError(f"{where}: half of a surrogate pair is no text", hint="write the character itself") from None
    except (ValueError, KeyError, yaml.YAMLError):
        kind = node.tag.rpartition(":")[2]
        raise SagefitError(f"{where}: {_start_of(node.value)} is no {kind}", hint="put it in quotes") from None
    if node.tag == "tag:yaml.org,2002:int" and ":" in node.value:
        meant = " or ".join(durations_meant(node.value))
        said = f"if it is a duration, write {meant}; if it is text, put it in quotes" if meant else "put it in quotes"
        raise SagefitError(f"{where}: YAML reads {node.value} as a number in base 60", hint=said)


def _check_text(where: str, text: str) -> None:
    if found := _UNSEEN.search(text):
        name = unicodedata.name(found[0], "a control character").lower()
        raise SagefitError(
            f"{where}: the text holds U+{ord(found[0]):04X} ({name}), which no screen shows as it is",
            hint="remove it, or put the text into a file of the code or data",
        )


def _start_of(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


def _no_mapping(root: yaml.Node | None) -> str:
    if root is None:
        return "a job file is a mapping of fields, and this one is empty: a job needs at least a platform and an image"
    kind = {yaml.SequenceNode: "a list", yaml.ScalarNode: "one text"}.get(type(root), "something else")
    return f"a job file is a mapping of fields, such as 'platform: dev', and this is {kind}"


def _index(file: str, node: yaml.Node, prefix: Key, lines: Lines) -> None:
    start = f"{file}:{node.start_mark.line + 1}"
    if node.tag.rpartition(":")[2] not in _TAGS:
        raise SagefitError(f"{start}: the tag {node.tag!r} is not part of a job file", hint="remove it")
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(f"{start}: {dotted(prefix)}" if ":" in node.value else start, node)
        if node.tag == "tag:yaml.org,2002:str":
            lines.texts[prefix] = node.value
        if node.style not in _QUOTES:
            _check_trap(file, node, prefix, lines)
            lines.plain[prefix] = node.value
        lines[prefix] = max(lines.get(prefix, 0), node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            lines[(*prefix, index)] = child.start_mark.line + 1
            _index(file, child, (*prefix, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key_node, child in node.value:
            line = key_node.start_mark.line + 1
            where = f"{file}:{line}"
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise SagefitError(f"{where}: YAML merge keys (<<) are not part of a job file; write the fields out")
            if key_node.tag != "tag:yaml.org,2002:str":
                name = key_node.value if isinstance(key_node, yaml.ScalarNode) else "of a mapping or list"
                home = place_of(prefix, name) if isinstance(key_node, yaml.ScalarNode) else None
                hint = f'put it in quotes: "{name}"' + (f"; or did you mean {home}?" if home else "")
                raise SagefitError(f"{where}: the key {name!r} is not text to YAML", hint=hint)
            _check_text(where, key_node.value)
            key = (*prefix, key_node.value)
            if key in lines:
                raise SagefitError(
                    f"{where}: {dotted(key)} is given twice, first on line {lines[key]}", hint="remove one"
                )
            lines[key] = line
            _index(file, child, key, lines)


def _check_trap(file: str, node: yaml.ScalarNode, prefix: Key, lines: Lines) -> None:
    fault = trap_in(node, lines.get(prefix, 0), in_list=bool(prefix) and isinstance(prefix[-1], int))
    if fault:
        raise SagefitError(f"{file}:{fault.line}: {dotted(prefix)}: {fault.message}", hint=fault.hint)
