"""Credentials in text files: our own few patterns, and those of the library detect-secrets.

Sagefit uses only the patterns of the library. The library's own scanner asks services whether a secret is still valid.
That would send the secret there, and takes a hundred times as long.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from sagefit.job.secrets import looks_secret, secret_texts

SMALL = 256 * 1024
"""Bytes of the largest file that is read."""

MOST = 8 * 1024 * 1024
"""Bytes that are read of one upload, the smallest files first; that takes some seconds."""

# Detectors left out: they match words before any value, any address, or forms that ordinary text and data have too.
_LOOSE = {
    "ArtifactoryDetector", "CloudantDetector", "DiscordBotTokenDetector", "IbmCloudIamDetector", "IbmCosHmacDetector",
    "IPPublicDetector", "SoftlayerDetector",
}  # fmt: skip
_TEMPLATE = re.compile(r"[{}<>$%*]")  # f"https://{user}:{password}@host"
_NAMED = re.compile(r"""([A-Za-z_][\w-]{2,60})(["']?\s*[:=]\s*["']?)([^\s"',;&]{8,})""")
HIDDEN = "(secret)"
_WORD = re.compile(r"[A-Za-z0-9]")


def secrets_in(paths: Iterable[Path]) -> dict[Path, tuple[int, str]]:
    """The first credential of each file: its line, from 1, and what it is. Larger and binary files are not read."""
    sizes = sorted((path.stat().st_size, path) for path in paths)
    found, read = {}, 0
    for size, path in sizes:
        read += size
        if size > SMALL or read > MOST:
            break
        if hit := _first(path, size, path.stat().st_mtime_ns):
            found[path] = hit
    return dict(sorted(found.items()))


def without_secrets(text: str) -> str:
    """``text`` with ``(secret)`` in place of each credential that its form gives away, or its name (``token=...``).

    >>> without_secrets("export HF_TOKEN=hf_" + "a" * 34)
    'export HF_TOKEN=(secret)'
    """
    for pattern in (pattern for _, pattern in _patterns()):
        if _start(pattern, text) is not None:
            text = pattern.sub(_hidden, text)
    return _NAMED.sub(_unnamed, text)


def _hidden(match: re.Match[str]) -> str:
    return match[0] if _TEMPLATE.search(match[0]) else f"{'' if _WORD.match(match[0]) else match[0][:1]}{HIDDEN}"


def _unnamed(match: re.Match[str]) -> str:
    name, sign, value = match.groups()
    return f"{name}{sign}{HIDDEN}" if value != HIDDEN and looks_secret(name, value) else match[0]


@lru_cache(maxsize=4096)
def _first(path: Path, _size: int, _modified: int) -> tuple[int, str] | None:
    """Size and time are part of the cache's key. Terraform reports a file that may not be read."""
    data = b"\0"
    with suppress(OSError):
        data = path.read_bytes()
    if b"\0" in data:
        return None
    text = data.decode("utf-8", errors="replace")
    hits = ((start, what) for what, pattern in _patterns() if (start := _start(pattern, text)) is not None)
    if first := min(hits, default=None):
        return text.count("\n", 0, first[0]) + 1, first[1]
    return None


def _start(pattern: re.Pattern[str], text: str) -> int | None:
    """The start of the first match that is no part of a longer word and no template for a secret."""
    for match in pattern.finditer(text):
        start, end = match.span()
        joined = _WORD.fullmatch(text[start : start + 1]) and _WORD.fullmatch(text[start - 1 : start] or " ")
        longer = _WORD.fullmatch(text[end - 1 : end]) and _WORD.fullmatch(text[end : end + 1])
        if not joined and not longer and not _TEMPLATE.search(match[0]):
            return start + (match[0][:1] == "\n")
    return None


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [*secret_texts().items(), *_of_the_library()]


def _of_the_library() -> Iterator[tuple[str, re.Pattern[str]]]:
    from detect_secrets import plugins
    from detect_secrets.plugins.base import RegexBasedDetector

    for module in pkgutil.iter_modules(plugins.__path__, f"{plugins.__name__}."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            ours = isinstance(kind, type) and issubclass(kind, RegexBasedDetector) and kind.__module__ == module.name
            if ours and kind is not RegexBasedDetector and name not in _LOOSE:
                detector = kind()
                for pattern in detector.denylist:
                    yield f"text of the form {detector.secret_type}", pattern
