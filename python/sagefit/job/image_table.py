"""AWS's training images: frameworks and built-in algorithms, their versions, and where AWS publishes them.

The table is the Terraform module's own, ``modules/training-job/images.json``, which names its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sagefit.paths import IMAGES_JSON


@dataclass(frozen=True)
class Family:
    """One framework or built-in algorithm: its versions, the Pythons of each, and where AWS publishes them."""

    name: str
    repository: str
    processors: tuple[str, ...]
    accounts: Mapping[str, str]
    aliases: Mapping[str, str]
    versions: Mapping[str, Mapping[str, str]]
    pythons: Mapping[str, str]
    absent: Mapping[str, frozenset[str]]

    @property
    def known(self) -> tuple[str, ...]:
        """What a job file may say as version, the short forms first."""
        return (*self.aliases, *self.versions)

    @property
    def newest(self) -> str:
        """The newest of `known`."""
        return max(self.known, key=numbers)

    def exact(self, version: str | None) -> str | None:
        """The exact version for ``version``, where None means the only one; None when the table has no such version."""
        if version is None:
            return next(iter(self.versions)) if len(self.versions) == 1 else None
        found = self.aliases.get(version, version)
        return found if found in self.versions else None

    def python(self, version: str, tag: str) -> tuple[int, int] | None:
        """Major and minor version of the Python of an exact ``version`` with the Python ``tag``; None if unknown.

        Tags such as ``py312`` say it; for ``py3`` and ``any`` the table has it from AWS's Dockerfiles.
        """
        said = re.fullmatch(r"py(\d)(\d+)", tag) or re.fullmatch(r"(\d)\.(\d+)", self.pythons.get(version, ""))
        return (int(said[1]), int(said[2])) if said else None

    def regions(self, version: str) -> list[str]:
        """The regions in which AWS publishes an exact ``version``, sorted."""
        return sorted(set(self.accounts) - self.absent.get(version, frozenset()))


def numbers(version: str) -> list[int]:
    """The numbers of a version, for an order of them."""
    return [int(number) for number in re.findall(r"\d{1,9}", version)]


@cache
def frameworks() -> Mapping[str, Family]:
    """The images that run a script, by name; those of `processing` train nothing."""
    return {**_families("frameworks"), **processing()}


@cache
def processing() -> Mapping[str, Family]:
    """The images that are for processing steps only, by name."""
    return _families("processing")


@cache
def algorithms() -> Mapping[str, Family]:
    """The built-in algorithms by name; XGBoost is both."""
    return {**_families("algorithms"), "xgboost": frameworks()["xgboost"]}


def is_algorithm(uri: str) -> bool:
    """Whether an image is one of SageMaker's own algorithms, which SageMaker tells by the repository alone.

    A request with metric definitions for such an image is refused, also where the image runs a script (awslabs/mlspace,
    pull request 52, with XGBoost 1.7-1).
    """
    found = re.match(r"(\d{12})\.dkr\.ecr\.[^/]+/([^:@]+)", uri)
    return found is not None and any(
        found[2] == family.repository and found[1] in family.accounts.values() for family in algorithms().values()
    )


@cache
def aws_accounts() -> frozenset[str]:
    """The accounts in which AWS publishes the images of the table, in all Regions."""
    return frozenset(account for regions in _table()["accounts"].values() for account in regions.values())


def writes_checkpoints() -> frozenset[str]:
    """The built-in algorithms that continue from a checkpoint after an interruption (SageMaker guide, checkpoints)."""
    return frozenset(_table()["writes_checkpoints"])


def _families(kind: str) -> dict[str, Family]:
    table = _table()
    return {name: _read_family(name, row, table["accounts"]) for name, row in table[kind].items()}


def _read_family(name: str, row: Mapping[str, Any], accounts: Mapping[str, Mapping[str, str]]) -> Family:
    absent = {version: frozenset(gap["regions"]) for gap in row.get("absent", []) for version in gap["versions"]}
    return Family(
        name=name,
        repository=row["repository"],
        processors=tuple(row["processors"]),
        accounts=accounts[row["accounts"]],
        aliases=row["aliases"],
        versions=row["versions"],
        pythons=row.get("pythons", {}),
        absent=absent,
    )


@cache
def _table() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(IMAGES_JSON.read_text(encoding="utf-8"))
    return loaded
