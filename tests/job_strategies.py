"""Valid job files for property tests: any text wherever a job file takes text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import yaml
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from sagefit.job.environment import reserved
from sagefit.job.left_out import LeftOut
from sagefit.job.metrics import compiled
from sagefit.job.model import FailureClass
from sagefit.job.secrets import looks_secret
from sagefit.job.values import as_text

Spec = dict[str, Any]

# Folders and files with names that mean something to YAML, Terraform or a shell.
FOLDERS = ("src", 'two "words"', "${path.module}", "%{ if true }", "größe", "a'b, c: d #e")
FRAMEWORKS = (("sklearn", "1.2-1"), ("pytorch", "2.6"), ("tensorflow", "2.19"))
TYPES = ("ml.m5.large", "ml.m5.xlarge", "ml.c5.2xlarge")
CLASSES = [name for name in get_args(FailureClass) if name != "stopped"]
TRAPS = (
    '${file("/etc/passwd")}',
    "%{ if true }",
    "$${",
    "$",
    "%",
    '"',
    "'",
    "\\",
    "\\n",
    "\n",
    "\t",
    "#",
    "//",
    ": ",
    "- ",
)
MORE_TRAPS = (
    "EOT",
    "null",
    "true",
    "1_000",
    "0o7",
    "1:30",
    "~",
    "=",
    "<<",
    "2001-01-01",
    "\u2028",
    "\ufeff",
    "☃",
    "𝄞",
)

# YAML may carry control characters and those that turn the direction of text; a job file may not.
_UNSEEN = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]
_TYPOGRAPHIC = re.compile("[\u201c\u201d\u201e\u00ab\u2018\u2019\u201a].*[\u201c\u201d\u00bb\u2018\u2019]", re.DOTALL)
"""Text in quotes that YAML takes for letters: refused where nothing else quotes it."""
_characters = st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=_UNSEEN, include_characters="\t\n")
_pieces = st.text(_characters, max_size=12) | st.sampled_from(TRAPS + MORE_TRAPS)
_zones = st.sampled_from(("UTC", "Europe/Berlin", "Asia/Kathmandu"))
_tag = st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}\Z")
_name = st.from_regex(r"\A[a-z0-9](-?[a-z0-9]){0,9}\Z")


def text(least: int = 0, most: int = 200, *, without: str = "") -> st.SearchStrategy[str]:
    """Any text of ``least`` to ``most`` characters; where 2,500 and more are allowed, now and then a long one."""
    joined = st.lists(_pieces, max_size=6).map("".join)
    if most >= 2500:
        joined |= st.builds(str.__mul__, _pieces, st.integers(100, 1000))
    kept = joined.map(lambda found: "".join(c for c in found if c not in without)[:most])
    return kept.filter(lambda found: len(found) >= least and not _TYPOGRAPHIC.fullmatch(found))


def _is_regex(found: str) -> bool:
    try:
        compiled(found)
    except re.error:
        return False
    return True


def table(keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping without secrets. Terraform takes keys of one Unicode normal form for the same."""
    pairs = st.tuples(keys, values).filter(lambda pair: not looks_secret(pair[0], as_text(pair[1])))
    return st.lists(pairs, max_size=5, unique_by=_normal_key).map(dict)


def _normal_key(pair: tuple[str, Any]) -> str:
    return unicodedata.normalize("NFC", pair[0])


_scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_hyperparameters = table(
    text(1, 256).filter(lambda name: not name.endswith(".$")),
    _scalars
    | text(0, 2500, without="\n")
    | st.lists(_scalars | text(0, 20), max_size=3)
    | st.dictionaries(text(0, 20), _scalars, max_size=3),
)
_variables = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,20}\Z").filter(lambda name: reserved(name) is None)
_environment = table(_variables, _scalars | text(0, 512))
_seconds = st.integers(1, 2_000_000)


def _given(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Spec]:
    """A mapping with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


_images = (
    st.sampled_from(FRAMEWORKS).map(lambda pair: {"framework": pair[0], "version": pair[1]})
    | text(1, 200, without="@").map(lambda uri: {"uri": uri})
    | st.builds(lambda repository, tag: {"repository": repository, "tag": tag}, text(), _tag)
)
_code = st.fixed_dictionaries(
    {"source_dir": st.sampled_from(FOLDERS), "entry_point": st.just("train.py")},
    optional={
        "arguments": st.lists(text(1, 256, without="\n").filter(lambda t: not looks_secret(t, t)), max_size=3),
        "exclude": st.lists(text(0, 50), max_size=3).filter(lambda globs: not LeftOut(globs).file("train.py")),
    },
)
_in_tags = st.characters(categories=["L", "N", "Z"], include_characters="_.:/=+-@")
_tags = table(
    st.text(_in_tags, min_size=1, max_size=128).filter(lambda key: not key.lower().startswith(("aws:", "sagefit:"))),
    st.text(_in_tags, max_size=256),
)
_uris = text(0, 100, without="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029").map(lambda key: f"s3://bucket/{key}")
_channels = (
    st.sampled_from(FOLDERS)
    | _uris
    | st.fixed_dictionaries(
        {"uri": _uris},
        optional={"content_type": text(), "mode": st.just("File")},
    )
    | st.fixed_dictionaries(
        {
            "uri": _uris,
            "mode": st.just("Pipe"),
            "s3_data_type": st.just("AugmentedManifestFile"),
            "attribute_names": st.lists(text(1), min_size=1, max_size=2),
        },
    )
    | st.fixed_dictionaries(
        {
            "file_system": st.fixed_dictionaries(
                {
                    "id": st.from_regex(r"\Afs-[0-9a-f]{8,18}\Z"),
                    "type": st.just("EFS"),
                    "directory_path": text().map("/{}".format),
                }
            )
        }
    )
)
_resources = _given(
    instance_count=st.integers(1, 20),
    volume_size_gb=st.integers(1, 16384),
    max_runtime=_seconds,
    checkpoints=st.booleans(),
    checkpoint_local_path=text(1, 100, without="/")
    .filter(lambda part: part not in (".", ".."))
    .map("/opt/ml/{}".format),
    input_mode=st.just("File"),
    network_isolation=st.booleans(),
    output_s3_uri=_uris,
    output_compression=st.sampled_from(["GZIP", "NONE"]),
    retry_attempts=st.integers(1, 30),
    poll_interval=st.just(3600),  # covers the longest attempts
)


@st.composite
def _attempts(draw: st.DrawFn) -> list[Spec]:
    names = draw(st.lists(_name, min_size=1, max_size=4, unique=True))
    found = []
    for index, name in enumerate(names):
        later = names[index + 1 :]
        edges = st.dictionaries(st.sampled_from(CLASSES), st.sampled_from(later), max_size=4) if later else st.just({})
        fields = _given(
            reason=text(),
            hyperparameters=_hyperparameters,
            environment=_environment,
            volume_size_gb=st.integers(1, 16384),
            max_runtime_seconds=_seconds,
            next=edges,
        )
        found.append({"name": name, "instance_type": draw(st.sampled_from(TYPES))} | draw(fields))
    return found


def jobs() -> st.SearchStrategy[Spec]:
    """A valid job file, to be written into a folder that `prepare` has made."""
    return st.fixed_dictionaries(
        {
            "name": _name.map("job-{}".format),
            "platform": _name,
            "image": _images,
            "code": _code,
            "attempts": _attempts(),
        },
        optional={
            "description": text(0, 1000),
            "inputs": st.dictionaries(
                st.from_regex(r"\A(?!\.{1,2}\Z)[A-Z.\-_][A-Za-z0-9.\-_]{0,20}\Z"), _channels, max_size=3
            ),
            "hyperparameters": _hyperparameters,
            "environment": _environment,
            "metrics": st.lists(
                st.fixed_dictionaries({"name": text(1, 255), "regex": text(1, 500).filter(_is_regex)}),
                max_size=2,
                unique_by=lambda metric: metric["name"],
            ),
            "resources": _resources,
            "schedule": st.just("rate(1 day)")
            | st.fixed_dictionaries({"expression": st.just("cron(0 6 * * ? *)")}, optional={"timezone": _zones}),
            "max_price": st.floats(0.01, 1e9),
            "tags": _tags,
        },
    )


STYLES = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([True, False, None]),
        "default_style": st.sampled_from([None, '"', "'", "|"]),
        "allow_unicode": st.booleans(),
        "width": st.sampled_from([10, 80, 10_000]),
        "explicit_start": st.booleans(),
        "sort_keys": st.just(False),
    }
)
"""Styles of `yaml.safe_dump`."""

any_job = settings(suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain})
"""How such properties are tried: files are written into one folder, one after the other."""


def prepare(folder: Path, names: Iterable[str] = FOLDERS) -> None:
    """Make the folders that the job files name."""
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "train.py").write_text("", encoding="utf-8")


def write_spec(folder: Path, spec: Spec, **style: Any) -> Path:
    """Write a job file in a style of `yaml.safe_dump`."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(spec, **style), encoding="utf-8")
    return path
