"""What each field of a job file takes: its forms, words and an example, and whether a value would do."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, Discriminator, ValidationError
from pydantic.fields import FieldInfo

from sagefit.job.forms import is_tag
from sagefit.job.image_table import Family, algorithms, frameworks
from sagefit.job.key import Key
from sagefit.job.limits import limits
from sagefit.job.model import Job
from sagefit.job.values import as_written
from sagefit.nearest import plain

_Row = TypeVar("_Row")
TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "on", "1", "enabled", "enable", "t"), "true"),
    **dict.fromkeys(("false", "no", "n", "off", "0", "disabled", "disable", "f", "none"), "false"),
}
FORMS = {
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
_SHORTER = (("processing.*.", ""), ("attempts.*.", "resources."), ("resources.instance_groups.*.", "resources."))
"""Fields that take the same as another one, by the beginnings of their names."""
_STEP = (
    '{ name: features, image: { framework: spark, version: "3.5" }, code: { source_dir: src, entry_point: features.py }'
    ", outputs: [train], resources: { instance_type: ml.m5.xlarge } }"
)
_KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
_EXAMPLES = {
    "name": "my-job",
    "platform": "dev",
    "description": "Digits with a small network",
    "code": "{ source_dir: src, entry_point: train.py }",
    "code.source_dir": "src",
    "code.entry_point": "train.py",
    "code.arguments": "[--verbose]",
    "code.arguments.*": "--verbose",
    "code.exclude": '["*.md"]',
    "code.exclude.*": '"*.md"',
    "code.allow_sensitive": "[tests/key.pem]",
    "code.allow_sensitive.*": "tests/key.pem",
    "image": '{ framework: pytorch, version: "2.6" }',
    "image.uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:v1",
    "image.repository": "123456789012.dkr.ecr.us-east-1.amazonaws.com/train",
    "image.tag": "v1",
    "image.digest": f"sha256:{'0123456789abcdef' * 4}",
    "image.build": "docker",
    "image.framework": "pytorch",
    "image.algorithm": "xgboost",
    "image.algorithm_arn": "arn:aws:sagemaker:us-east-1:123456789012:algorithm/trees",
    "image.version": '"2.6"',
    "image.python_version": "py312",
    "processing": f"[{_STEP}]",
    "processing.*": _STEP,
    "processing.*.name": "prepare",
    "processing.*.image": '{ framework: spark, version: "3.5" }',
    "processing.*.image.framework": "spark",
    "processing.*.image.version": '"3.5"',
    "processing.*.outputs": "[train]",
    "processing.*.outputs.*": "train",
    "processing.*.resources": "{ instance_type: ml.m5.xlarge }",
    "inputs": "{ train: s3://bucket/prefix/ }",
    "inputs.*": "s3://bucket/prefix/",
    "inputs.*.uri": "s3://bucket/prefix/",
    "inputs.*.exclude": '["*.md"]',
    "inputs.*.exclude.*": '"*.md"',
    "inputs.*.allow_sensitive": "[tests/key.pem]",
    "inputs.*.allow_sensitive.*": "tests/key.pem",
    "inputs.*.from": "features/train",
    "inputs.*.file_system": "{ id: fs-0123456789abcdef0, type: EFS, directory_path: /data }",
    "inputs.*.file_system.id": "fs-0123456789abcdef0",
    "inputs.*.file_system.directory_path": "/data",
    "inputs.*.content_type": "text/csv",
    "inputs.*.attribute_names": "[source-ref, class]",
    "inputs.*.attribute_names.*": "source-ref",
    "inputs.*.instance_groups": "[train]",
    "inputs.*.instance_groups.*": "train",
    "hyperparameters": "{ epochs: 3 }",
    "hyperparameters.*": "3",
    "environment": "{ OMP_NUM_THREADS: 4 }",
    "environment.*": "4",
    "tags": "{ team: vision }",
    "tags.*": "vision",
    "metrics": "[{ name: loss, regex: 'loss=([0-9.]+)' }]",
    "metrics.*": "{ name: loss, regex: 'loss=([0-9.]+)' }",
    "metrics.*.name": "loss",
    "metrics.*.regex": "'loss=([0-9.]+)'",
    "max_price": "20",
    "attempts": "[{ name: first, instance_type: ml.m5.xlarge }]",
    "attempts.*": "{ name: first, instance_type: ml.m5.xlarge }",
    "attempts.*.name": "first",
    "attempts.*.reason": "More memory for each GPU",
    "attempts.*.hyperparameters": "{ batch_size: 32 }",
    "attempts.*.hyperparameters.*": "3",
    "attempts.*.environment": "{ OMP_NUM_THREADS: 4 }",
    "attempts.*.environment.*": "4",
    "attempts.*.next": "{ gpu_memory: larger-gpu }",
    "attempts.*.next.*": "larger-gpu",
    "resources": "{ instance_type: ml.m5.xlarge, max_runtime: 4h }",
    "resources.instance_type": "ml.m5.xlarge",
    "resources.instance_type.*": "ml.m5.xlarge",
    "resources.instance_groups": "[{ name: train, instance_type: ml.m5.xlarge }]",
    "resources.instance_groups.*": "{ name: train, instance_type: ml.m5.xlarge }",
    "resources.instance_groups.*.name": "train",
    "resources.volume_size_gb": "50",
    "resources.max_runtime": "4h",
    "resources.max_wait": "2d",
    "resources.warm_pool": "30m",
    "resources.subnet_ids": "[subnet-0a1b2c3d]",
    "resources.subnet_ids.*": "subnet-0a1b2c3d",
    "resources.security_group_ids": "[sg-0a1b2c3d]",
    "resources.security_group_ids.*": "sg-0a1b2c3d",
    "resources.volume_kms_key_arn": _KEY,
    "resources.output_kms_key_arn": _KEY,
    "resources.output_s3_uri": "s3://bucket/prefix",
    "memory": "{ model: bert-large-uncased }",
    "memory.model": "bert-large-uncased",
    "memory.model.name": "resnet50",
    "memory.model.params": "7.0e+9",
    "memory.model.layers": "24",
    "memory.model.hidden_size": "2048",
    "memory.model.heads": "32",
    "memory.model.kv_heads": "8",
    "memory.model.vocab_size": "50304",
    "memory.model.ffn_size": "8192",
    "memory.model.head_dim": "128",
    "memory.model.image_size": "512",
    "memory.model.height": "512",
    "memory.model.width": "512",
    "memory.model.gpu_gib": "14",
    "memory.model.host_gib": "30",
    "memory.lokr": "{ attention: 16 }",
    "memory.loader": "{ workers: 4, prefetch: 2 }",
    "memory.dataset": "{ size_gib: 40, in_memory: true }",
    "memory.dataset.size_gib": "40",
    "memory.teacher_model": "Qwen/Qwen2.5-7B-Instruct",
    "memory.knobs": "{ micro_batch: batch_size }",
    "memory.knobs.*": "batch_size",
    "memory.trace": '{ function: "train.py:build" }',
    "memory.trace.function": "train.py:build",
    "memory.trace.python": "python3",
    "tuning": "{ max_jobs: 20, objective: { metric: accuracy, type: Maximize }, ranges: { lr: [0.1, 0.01] } }",
    "tuning.objective": "{ metric: accuracy, type: Maximize }",
    "tuning.objective.metric": "accuracy",
    "tuning.max_jobs": "20",
    "tuning.ranges": "{ lr: { min: 0.0001, max: 0.01 } }",
    "tuning.ranges.*": "{ min: 0.0001, max: 0.01 } or [0.1, 0.01]",
    "tuning.ranges.*.*": "0.1",
    "tuning.ranges.*.min": "0.0001",
    "tuning.ranges.*.max": "0.01",
    "schedule": "rate(1 day)",
    "schedule.expression": "rate(1 day)",
    "schedule.timezone": "Europe/Berlin",
}
"""A correct value of each field, shown when the file has no value or a value of another form. Fields that are not here
have their default, or a small number."""
_NEEDED = ("code", "processing.*.code", "inputs.*.attribute_names", "tuning.max_jobs")
"""Fields that a job file may lack, and that the jobs which have them nearly always need."""
_WORDS = {
    "name": "a name:",
    "platform": "the name of a platform:",
    "image.tag": "a tag:",
    "processing.*.name": "a name:",
    "attempts.*.name": "a name:",
    "code.source_dir": "the path of a folder",
    "code.entry_point": "the path of a script in code.source_dir",
    "code.allow_sensitive.*": "the path of a file below the folder",
    "image.uri": "the address of an image in ECR",
    "image.repository": "the URL of a repository in ECR",
    "image.digest": "",
    "image.build": "the path of a folder with a Dockerfile",
    "image.framework": "the name of a framework",
    "image.algorithm": "the name of a built-in algorithm",
    "image.version": "a version in quotes",
    "image.python_version": "the Python of the image",
    "inputs.*": "an S3 address, a path, or a mapping",
    "inputs.*.uri": "an S3 address or a path",
    "inputs.*.allow_sensitive.*": "the path of a file below the folder",
    "inputs.*.from": "STEP/OUTPUT of a processing step",
    "inputs.*.instance_groups.*": "the name of an instance group",
    "metrics.*.regex": "a regular expression with a group for the number",
    "resources.instance_type": "",
    "resources.instance_type.*": "an instance type",
    "resources.warm_pool": "",
    "resources.checkpoint_local_path": "",
    "attempts.*.instance_type": "an instance type",
    "attempts.*.next.*": "the name of a later attempt",
    "processing.*.resources.instance_type": "an instance type",
    "resources.instance_groups.*.instance_type": "an instance type",
    "memory.model": "",
    "memory.model.name": "the name of a model",
    "memory.teacher_model": "the name of a model",
    "memory.knobs.*": "the name of a hyperparameter",
    "memory.trace.function": "a file in code.source_dir, a colon, and a function in the file",
    "memory.trace.python": "the path of a Python interpreter",
    "tuning.objective.metric": "the name of a metric in metrics",
    "schedule": "",
    "schedule.expression": "rate(...), cron(...) or at(...)",
    "schedule.timezone": "a time zone",
}
"""Fields with text that names something else or has a grammar, so that no number in quotes is meant: what they take, in
words. Empty where the field's form or the table of limits has the words. Where a colon is the end, the table's words
come after it, and a number in quotes may be meant."""


def image_of(text: str) -> str:
    """The block for an image that is written as one text: an address, or a framework and perhaps a tag."""
    name, _, tag = text.partition(":")
    if "/" in text:
        return f"write {{ uri: {text} }}"
    framework = next((known for known in frameworks() if plain(known) == plain(name)), "pytorch")
    version = re.match(r"[\d.]+", tag)
    return f'write {{ framework: {framework}, version: "{version[0] if version else frameworks()[framework].newest}" }}'


def value_at(data: Any, field: Key) -> Any:
    """The value at ``field``; None when there is no value."""
    for part in field:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def accepts(field: Key, value: object, data: dict[str, Any]) -> bool:
    """Whether the types of the job file allow ``value`` at ``field``, whatever the rest of the file has.

    Only the family of a model is taken from ``data``: it says which fields the model has.
    """
    whole: Any = value
    place = tuple(0 if isinstance(part, int) else part for part in field)
    for index in reversed(range(len(field))):
        beside = value_at(data, field[:index])
        near = {"family": beside["family"]} if isinstance(beside, dict) and "family" in beside else {}
        whole = [whole] if isinstance(field[index], int) else near | {str(field[index]): whole}
    try:
        Job.model_validate(whole)
    except ValidationError as error:
        wrong = [tuple(part for part in item["loc"] if not is_tag(part)) for item in error.errors(include_url=False)]
        return not any(place[: len(other)] == other or other[: len(place)] == place for other in wrong)
    return True


def _walk(field: Key) -> tuple[str, list[FieldInfo], list[Any]]:
    """``field`` with ``*`` for each index and each name that the user chose, its model fields, and its types."""
    parts: list[str] = []
    infos: list[FieldInfo] = []
    types: list[Any] = [Job]
    for part in field:
        members = [member for each in types for member in _members(each)]
        models = [each for each in members if isinstance(each, type) and issubclass(each, BaseModel)]
        infos = [info for model in models for name, info in model.model_fields.items() if (info.alias or name) == part]
        entries = dict if isinstance(part, str) else list
        types = [info.annotation for info in infos] or [get_args(e)[-1] for e in members if get_origin(e) is entries]
        parts.append(str(part) if infos else "*")
    return ".".join(parts), infos, types


def _members(annotation: Any) -> Iterator[Any]:
    """The types of a union, without what annotates them."""
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _members(each)
    else:
        yield annotation


def forms_at(field: Key) -> str:
    """The forms that a field may have, in words; empty where it has one."""
    _, infos, types = _walk(field)
    marks = [mark for info in infos for mark in info.metadata]
    marks += [
        mark for each in types for inner in (each, *get_args(each)) for mark in getattr(inner, "__metadata__", ())
    ]
    found = [mark.custom_error_message or "" for mark in marks if isinstance(mark, Discriminator)]
    return found[0].removeprefix("must be ") if found else ""


def is_duration(field: Key) -> bool:
    """Whether the field's number is one of seconds."""
    _, infos, types = _walk(field)
    return any("from_duration" in repr(each) for each in (*types, *(info.metadata for info in infos)))


def _row(table: Mapping[str, _Row], pattern: str) -> _Row | None:
    """The row of a field, or of the field that takes the same."""
    same = [pattern.replace(start, other, 1) for start, other in _SHORTER if pattern.startswith(start)]
    return next((table[each] for each in (pattern, *same) if each in table), None)


def example(field: Key, data: dict[str, Any]) -> str:
    """A value that the field takes, as a job file has it; empty where there is none in sight."""
    pattern, infos, _ = _walk(field)
    if pattern.endswith("image.version") and (family := _family_of(field, data)):
        begun = (each for each in family.known if each.startswith(f"{value_at(data, field)}"))
        return f'"{next(begun, family.newest)}"'
    if (known := _row(_EXAMPLES, pattern)) is not None:
        return known
    default = next((info.default for info in infos if isinstance(info.default, int | float | str)), "")
    if default != "":
        return as_written(int(default)) if is_duration(field) else as_yaml(default).strip("'")
    small = ("1h", "1m") if is_duration(field) else ("1", "0.5", "64")
    return next((each for each in small if accepts(field, yaml.safe_load(each), data)), "")


def named_example(field: Key) -> str:
    """The field with a correct value, for one that is missing."""
    example = _row(_EXAMPLES, _walk(field)[0]) if field else None
    return f", such as {field[-1]}: {example}" if example and isinstance(field[-1], str) else ""


def words_at(field: Key) -> str:
    """What a text field takes, in words: those here, or else those of the table of limits."""
    pattern, infos, types = _walk(field)
    own, row = _row(_WORDS, pattern) or "", _row(limits(), pattern)
    if own and not own.endswith(":"):
        return own
    if row and row.words:
        return f"{own} {row.words}".strip()
    members = [member for each in types for member in _members(each)]
    marks = repr((types, [info.metadata for info in infos])) if str in members and list[str] not in members else ""
    found = re.search(r"pattern='([^']+)'", marks)
    shared = [row.words for row in limits().values() if found and row.pattern == found[1]]
    return f"{own} {shared[0]}".strip() if shared else own.removesuffix(":")


def may_be(field: Key, text: str, data: dict[str, Any]) -> bool:
    """Whether a number or boolean as ``text`` can be what the field names."""
    pattern = _walk(field)[0]
    if pattern.endswith("image.version") and not text.isalpha():
        family = _family_of(field, data)
        return family is None or family.exact(text) is not None
    words = _row(_WORDS, pattern)
    return words is None or words.endswith(":")


def _family_of(field: Key, data: dict[str, Any]) -> Family | None:
    """The framework or the algorithm of the image that ``field`` is of, where AWS publishes it."""
    image = value_at(data, field[:-1])
    names = [str(image.get(way)) for way in ("framework", "algorithm")] if isinstance(image, dict) else []
    known = {**frameworks(), **algorithms()}
    return next((known[name] for name in names if name in known), None)


def may_go(field: Key, data: dict[str, Any]) -> bool:
    """Whether the job file may do without the field."""
    pattern, infos, _ = _walk(field)
    if infos:
        return pattern not in _NEEDED and not any(info.is_required() for info in infos)
    return accepts(field[:-1], [] if isinstance(field[-1], int) else {}, data)


def choices_of(field: Key) -> str:
    """The choices of a field for the end of a sentence; empty where it takes other values, too."""
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


def listed(values: list[str]) -> str:
    """``values`` as a sentence has them."""
    *others, last = values
    return f"{', '.join(others)} or {last}" if others else last


def as_yaml(value: object) -> str:
    """A value as a job file has it, in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value) if isinstance(value, str) else str(value)


def paths(model: type[BaseModel], prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """All fields of ``model`` and of the models in it; ``NAME`` stands for a key that the user chooses."""
    for name, field in model.model_fields.items():
        path = (*prefix, field.alias or name)
        yield path
        for nested, is_named in _nested(field.annotation):
            if nested is not model:
                yield from paths(nested, (*path, "NAME") if is_named else path)


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
