"""What a repository decides for itself: severities, factors, and findings that it has accepted for a time.

The file is ``.sagefit-review.yaml``. A review should read it from the target branch, because a pull request must not
accept its own dangers.
"""

from __future__ import annotations

from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, NoReturn

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sagefit.errors import SagefitError
from sagefit.nearest import did_you_mean
from sagefit.paths import ROOT, display
from sagefit.reviewing.jobs import Allowed
from sagefit.reviewing.rules import Severity, rules

FILE = ".sagefit-review.yaml"
_NUMBERS = ("price_factor", "runtime_factor", "usd_per_run", "usd_per_month")


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Suppression(_Fields):
    """One finding, or those that match, accepted until ``expires`` has passed."""

    rule: str
    address: Annotated[str, Field(min_length=1)]
    reason: Annotated[str, Field(min_length=10)]
    expires: date

    def matches(self, rule: str, address: str) -> bool:
        """Whether it is about this finding. ``*`` in an address stands for anything; keys in brackets are literal."""
        return rule == self.rule and fnmatchcase(address, self.address.replace("[", "[[]"))


class Tuning(_Fields):
    """The settings of a repository."""

    fail_on: Severity | None = None
    severities: dict[str, Severity] = {}
    price_factor: Annotated[float, Field(ge=1)] = 1.5
    runtime_factor: Annotated[float, Field(ge=1)] = 2.0
    usd_per_run: Annotated[float, Field(gt=0)] | None = 1_000.0
    usd_per_month: Annotated[float, Field(gt=0)] | None = 5_000.0
    suppress: list[Suppression] = []

    @property
    def allowed(self) -> Allowed:
        """What a job may cost, and how much its worst-case price and its time limits may grow."""
        return Allowed(self.price_factor, self.runtime_factor, self.usd_per_run, self.usd_per_month)


def load_tuning(path: Path | None = None) -> Tuning:
    """The settings in ``path``, or in the repository's own file if there is one.

    Raises SagefitError that names the field and the rule.
    """
    where = path or ROOT / FILE
    if path is None and not where.is_file():
        return Tuning()
    try:
        text = where.read_bytes()
    except OSError as error:
        _refuse(where, f"cannot be read: {error.strerror}", "give the path of a tuning file, or leave --tuning out")
    return read_tuning(text, where)


def read_tuning(text: bytes, where: Path) -> Tuning:
    """The settings in the text of a tuning file; ``where`` names it in errors, which are those of `load_tuning`."""
    try:
        data = yaml.safe_load(text.decode("utf-8")) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        _refuse(where, f"no YAML: {str(error).splitlines()[0]}", "correct it; docs/review.md shows an example")
    if isinstance(data, dict):
        data = {key: float(value) if key in _NUMBERS and type(value) is int else value for key, value in data.items()}
    try:
        tuning = Tuning.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        _refuse(where, f"{field}: {first['msg']}", "docs/review.md lists the fields of this file")
    for name in [*tuning.severities, *(each.rule for each in tuning.suppress)]:
        if name not in rules():
            hint = did_you_mean(name, rules(), "docs/review.md lists the rules")
            _refuse(where, f"there is no rule {name!r}", hint)
    return tuning


def _refuse(path: Path, message: str, hint: str) -> NoReturn:
    raise SagefitError(f"{display(path)}: {message}", hint=hint)
