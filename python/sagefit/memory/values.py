"""Hyperparameters as the planner's values. SageMaker passes text, so ``"16"`` is a number and ``"true"`` a boolean."""

from __future__ import annotations

from sagefit.job.memory_model import Checkpointing

# Unsloth has a kind of its own, which its stack knows.
_KINDS: dict[str, Checkpointing] = {"full": "full", "selective": "selective", "unsloth": True}
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0", "none", ""), False),
}


def whole(raw: object) -> int | None:
    """``raw`` as a whole number, None if it is none."""
    if isinstance(raw, bool):
        return None
    try:
        value = float(raw) if isinstance(raw, (int, float, str)) else float("nan")
    except (ValueError, OverflowError):
        return None
    return int(value) if value.is_integer() else None


def share(raw: object) -> float | None:
    """``raw`` as a share above 0 and below 1, None if it is none."""
    try:
        value = float(raw) if isinstance(raw, (int, float, str)) else 0.0
    except (ValueError, OverflowError):
        return None
    return value if 0 < value < 1 else None


def flag(raw: object) -> bool | None:
    """``raw`` as a boolean, None if it is none."""
    return _FLAGS.get(text(raw))


def checkpointing(raw: object) -> Checkpointing | None:
    """``raw`` as a boolean or a kind of activation checkpointing, None if it is neither."""
    return _KINDS.get(text(raw), flag(raw))


def same(one: object, other: object) -> bool:
    """Whether two hyperparameters say the same: ``16`` and ``"16"``, ``true`` and ``"True"``."""
    return _plain(one) == _plain(other)


def _plain(raw: object) -> object:
    number, boolean = whole(raw), flag(raw)
    return number if number is not None else text(raw) if boolean is None else boolean


def text(raw: object) -> str:
    """``raw`` as SageMaker passes it, in lower case."""
    return str(raw).strip().lower()
