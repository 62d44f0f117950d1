"""What looks like a credential or a state: files by their path, and text.

The patterns are rows of ``modules/training-job/secrets.json``, the same that Terraform refuses and that a review of a
plan reports. They are written so that Python and RE2 read them alike.
"""

from __future__ import annotations

import json
import re
from functools import cache

from sagefit.paths import SECRETS_JSON

_SECRET_NAME = {"password", "passwd", "secret", "token", "apikey", "credential", "credentials"}


def looks_secret(name: str, value: str) -> bool:
    """Whether a value has the form of a credential, or is a long word under a name such as ``password``.

    References (ARNs, paths, ``s3://``) and numbers are not secrets.
    """
    if _values().search(value):
        return True
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_")
    named = bool(_SECRET_NAME & set(words)) or {"api", "key"} <= set(words) or {"access", "key"} <= set(words)
    refers = words[-1] in {"name", "id", "arn", "type", "pooling"}  # to a secret, or to a token of a text
    opaque = bool(re.fullmatch(r"[^\s/:]{8,}", value)) and not re.fullmatch(r"[\d.]+|<[^<>]+>", value)
    return named and opaque and not refers


def secret_file(path: str) -> str | None:
    """The kind of a file that holds credentials or a state, by its path with slashes; None for any other file."""
    if not _any_file().search(path):
        return None
    return next(what for what, pattern in _table()["files"].items() if re.search(f"(?i){pattern}", path))


def secret_texts() -> dict[str, re.Pattern[str]]:
    """The kinds of credentials in text, each with its pattern; a pattern also matches the character before."""
    return {what: re.compile(_at_start(pattern)) for what, pattern in _table()["contents"].items()}


@cache
def _any_file() -> re.Pattern[str]:
    return re.compile(f"(?i)(?:{'|'.join(_table()['files'].values())})")


@cache
def _values() -> re.Pattern[str]:
    rows = {**_table()["contents"], **_table()["fields"]}
    return re.compile(_at_start("|".join(pattern for what, pattern in rows.items() if what not in _BY_NAME)))


_BY_NAME = ("a secret key of AWS, by its name", "a certificate")  # names are judged as words here, see `looks_secret`


def _at_start(pattern: str) -> str:
    return f"(?:^|[^A-Za-z0-9])(?:{pattern})"


@cache
def _table() -> dict[str, dict[str, str]]:
    loaded: dict[str, dict[str, str]] = json.loads(SECRETS_JSON.read_text(encoding="utf-8"))
    return loaded
