"""What a script is given: its arguments and variables, with the values of the job or their own defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from sagefit.job.following.values import UNKNOWN, Argued, Made, Parser, Ref, bare, literal
from sagefit.job.names import plain

_NOT_BY_US = (
    *("SM_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "CUDA_", "SLURM_", "OMPI_"),
    *("PATH", "HOME", "USER", "PWD", "HOSTNAME", "TMP", "LANG", "SHELL", "LD_", "PYTHON", "NCCL_", "AWS_", "TRAINING_"),
)
"""Variables of the environment that the platform, the image or the launcher sets."""


class Arguments:
    """Arguments by plain name: ``known`` are those that the script has, ``looked_at`` those that it may have used.

    ``flags`` are those of absl by name, with their values.
    """

    def __init__(self, given: Mapping[str, object], environment: Mapping[str, str]) -> None:
        self.given, self._environment = given, environment
        self.known: set[str] = set()
        self.looked_at: set[str] = set()
        self.flags: dict[str, object] = {}

    def value_of(self, names: Iterable[str], default: object, kind: object = None) -> object:
        """The value of an argument: what the job gives it, else its default."""
        written = [plain(name) for name in names]
        name = next((each for each in written if each in self.given), None)
        arguments = frozenset(written[:1] if name is None else [name])
        self.known |= {*written}
        if name is None:
            return Argued(default, arguments) if literal(bare(default)) or isinstance(default, list) else default
        raw = self.given[name]
        if isinstance(kind, Ref) and kind.name == "bool":  # of argparse: every text but the empty one is true
            return Argued(str(raw) != "", arguments, direct=str(raw).lower() == "true")
        return Argued(_read(raw, kind), arguments)

    def variable(self, name: str, default: object) -> object:
        """The value of a variable of the environment; UNKNOWN where the platform sets it."""
        if name.startswith("SM_HP_"):
            wanted = name.removeprefix("SM_HP_").lower()
            return Argued(_read(self.given[wanted], None), frozenset([wanted])) if wanted in self.given else default
        if name in self._environment:
            return self._environment[name]
        return UNKNOWN if name.startswith(_NOT_BY_US) else default


def unwrapped(value: object) -> object:
    """The default of a parameter: what an option of Typer has as its own."""
    if isinstance(value, Made) and value.callee in ("Option", "Argument"):
        return value.told.get("default", value.positional[0] if value.positional else UNKNOWN)
    return value


def option(decorator: Made) -> dict[str, object]:
    """The parameter and default of an option of click."""
    words = [str(bare(each)) for each in decorator.positional]
    plainly = next((word for word in words if not word.startswith("-")), None)
    long = next((word[2:] for word in words if word.startswith("--")), None)
    name = plainly or (long or "").partition("/")[0]
    default = decorator.told.get("default", False if decorator.told.get("is_flag") is True else None)
    return {name.replace("-", "_"): default}


def add_argument(parser: Parser, words: list[str], keywords: dict[str, object], *, sure: bool) -> None:
    """One argument of argparse."""
    long = [word[2:] for word in words if word.startswith("--") and word[2:]]
    names = long or [word for word in words if not word.startswith("-")] or [word.lstrip("-") for word in words]
    if not names:
        return
    action = bare(keywords.get("action"))
    default = keywords.get("default")
    if action in ("store_true", "store_false") and "default" not in keywords:
        default = action == "store_false"
    dest = bare(keywords.get("dest"))
    name = dest if isinstance(dest, str) else names[0].replace("-", "_")
    parser.arguments[name] = (names, default if sure else UNKNOWN, keywords.get("type"))


def _read(raw: object, kind: object) -> object:
    """What a script makes of the text of an argument."""
    if not isinstance(raw, str):
        return raw
    word = kind.last if isinstance(kind, Ref) else ""
    with suppress(ValueError):
        if word == "int":
            return int(raw)
        if word == "float":
            return float(raw)
    if word in ("int", "float"):
        return UNKNOWN
    return {"true": True, "false": False}.get(raw.lower(), raw) if kind is not None and word != "str" else raw
