"""YAML with line numbers, so that a complaint can name the line it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from sagefit.errors import SagefitError
from sagefit.paths import display

Key = tuple[str | int, ...]
Lines = dict[Key, int]


def read(path: Path) -> tuple[dict[str, Any], Lines]:
    """The mapping in ``path`` and the line (from 1) of every key in it.

    Raises SagefitError for unreadable files, YAML errors, duplicate keys, keys that are no strings, and
    documents that are no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise SagefitError(f"{display(path)}: not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise SagefitError(f"{display(path)}: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}" if mark else ""
        raise SagefitError(f"{display(path)}{where}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:  # control characters and the like have no mark
        raise SagefitError(f"{display(path)}: not valid YAML: {error}") from error
    if not isinstance(root, yaml.MappingNode):
        raise SagefitError(
            f"{display(path)}: a job file is a mapping of fields", hint="start from jobs/quickstart.yaml"
        )
    lines: Lines = {}
    _index(path, root, (), lines)
    return yaml.safe_load(text), lines


def line_of(lines: Lines, key: Key) -> int | None:
    """The line of ``key`` or of the nearest thing around it."""
    while key:
        if key in lines:
            return lines[key]
        key = key[:-1]
    return None


def _index(path: Path, node: yaml.Node, prefix: Key, lines: Lines) -> None:
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            lines[(*prefix, index)] = child.start_mark.line + 1
            _index(path, child, (*prefix, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key_node, child in node.value:
            line = key_node.start_mark.line + 1
            where = f"{display(path)}:{line}"
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise SagefitError(f"{where}: YAML merge keys (<<) are not part of a job file; write the fields out")
            if key_node.tag != "tag:yaml.org,2002:str":
                raise SagefitError(f"{where}: the key {key_node.value!r} is not text", hint="put it in quotes")
            key = (*prefix, key_node.value)
            if key in lines:
                dotted = ".".join(map(str, key))
                raise SagefitError(f"{where}: {dotted} is given twice, first on line {lines[key]}", hint="remove one")
            lines[key] = line
            _index(path, child, key, lines)
