"""The record beside a plan that ties its apply to what was reviewed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sagefit.errors import REFUSED, SagefitError
from sagefit.gitops.normalised import KEY_VARIABLE, Normalised, keyed, review_key
from sagefit.paths import display
from sagefit.reviewing import Brief

VERSION = 5
PLAN, PLAN_JSON, PAGE, RECORD = "plan.tfplan", "plan.json", "page.md", "record.json"
_BRIEF = TypeAdapter(Brief)
_PROVIDER = re.compile(r'provider "([^"]+)" \{\s*version\s*=\s*"([^"]+)"')


@dataclass(frozen=True)
class Place:
    """Where a plan goes: the cloud (``aws`` or ``local``), the account and the region."""

    cloud: str
    account: str
    region: str

    def __str__(self) -> str:
        return f"{self.cloud} {self.account} {self.region}"


@dataclass(frozen=True)
class Origin:
    """What a plan was made of: commits, digest of the files, digest of what the platform published."""

    head: str
    base: str | None
    dirty: bool
    tree: str
    platform_document: str | None


@dataclass(frozen=True)
class Tools:
    """Versions that a plan was made with; providers by source."""

    terraform: str
    providers: dict[str, str]
    sagefit: str

    def __str__(self) -> str:
        providers = "".join(f", {name.rpartition('/')[2]} {version}" for name, version in self.providers.items())
        return f"Terraform {self.terraform}{providers}, Sagefit {self.sagefit}"


@dataclass(frozen=True)
class State:
    """Which state a plan was made for; an empty lineage stands for none yet."""

    lineage: str
    serial: int


@dataclass(frozen=True)
class Record:
    """All that must still hold when a reviewed plan is applied. Times are UTC, digests SHA-256 or HMAC of it.

    ``page`` is the digest of the page that was read, ``brief`` what an overview says of it, and ``blocked`` are the
    findings, as ``RULE:ADDRESS``, for which the settings at the base of the change refuse an apply.
    """

    stack: str
    destroy: bool
    place: Place
    origin: Origin
    tools: Tools
    state: State
    plan: str
    normalised: str
    content: Normalised
    created: str
    expires: str
    page: str = ""
    blocked: list[str] = field(default_factory=list)
    brief: Brief = field(default_factory=Brief)
    seal: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the plan does nothing."""
        return self.content.is_empty

    def sealed(self) -> Record:
        """The record with its seal, which makes later edits detectable."""
        return replace(self, seal=self._expected_seal())

    def judged(self, page: str, blocked: list[str], brief: Brief) -> Record:
        """The record with what the review said, sealed."""
        return replace(self, page=text_digest(page), blocked=blocked, brief=brief).sealed()

    def page_of(self, folder: Path) -> str | None:
        """The page that was made with this record; None without one. Raises SagefitError (exit code 4) for another."""
        path = folder / PAGE
        if not path.exists():
            return None
        text = path.read_text(encoding="utf-8")
        if text_digest(text) != self.page:
            raise SagefitError(
                f"{display(path)} is not the page that was made with the plan: it was edited",
                hint="plan again; nobody should read or post this page",
                exit_code=REFUSED,
            )
        return text

    def has_expired(self, now: datetime | None = None) -> bool:
        """Whether the record is past its expiry time."""
        return (now or datetime.now(timezone.utc)) > datetime.fromisoformat(self.expires)

    def save(self, folder: Path) -> None:
        """Write it beside the plan, for its owner only."""
        private(folder / RECORD, json.dumps({"v": VERSION} | asdict(self), indent=1) + "\n")

    def _expected_seal(self) -> str:
        return keyed(review_key(), asdict(replace(self, seal="")))

    @classmethod
    def load(cls, folder: Path) -> Record:
        """Read it. Raises SagefitError (exit code 4) for one that was edited, or sealed under another key."""
        path = folder / RECORD
        try:
            raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if raw.pop("v") != VERSION:
                raise SagefitError(
                    f"{display(path)}: not a record of this version of Sagefit", hint="plan again with this version"
                )
            parts = {"place": Place, "origin": Origin, "tools": Tools, "state": State, "content": Normalised}
            brief = _BRIEF.validate_python(raw["brief"])
            record = cls(**raw | {name: part(**raw[name]) for name, part in parts.items()} | {"brief": brief})
        except FileNotFoundError as error:
            raise SagefitError(
                f"no reviewed plan in {display(folder)} ({RECORD} is missing)",
                hint="make one: sagefit plan --out DIR; or name another folder: --reviewed DIR",
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise SagefitError(
                f"{display(path)}: not the record of a plan", hint="plan again", exit_code=REFUSED
            ) from error
        if record.seal != record._expected_seal():
            raise SagefitError(
                f"{display(path)} was edited, or sealed under another key",
                hint=f"set {KEY_VARIABLE} to the key it was planned with; if it is, plan again and have it reviewed",
                exit_code=REFUSED,
            )
        return record


def make(
    stack: str,
    folder: Path,
    *,
    place: Place,
    origin: Origin,
    sagefit: str,
    destroy: bool = False,
    lifetime: timedelta,
) -> Record:
    """The record of the plan in ``folder``, sealed."""
    key = review_key()
    plan = json.loads((folder / PLAN_JSON).read_text(encoding="utf-8"))
    content = Normalised.of(plan, key)
    with zipfile.ZipFile(folder / PLAN) as file:  # the values that Terraform itself will compare with the state
        prior = json.loads(file.read("tfstate"))
        providers = provider_versions(file.read(".terraform.lock.hcl").decode())
    now = datetime.now(timezone.utc).replace(microsecond=0)
    return Record(
        stack=stack,
        destroy=destroy,
        place=place,
        origin=origin,
        tools=Tools(plan["terraform_version"], providers, sagefit),
        state=State(prior["lineage"], prior["serial"]),
        plan=file_digest(folder / PLAN),
        normalised=content.digest(key),
        content=content,
        created=now.isoformat(),
        expires=(now + lifetime).isoformat(),
    ).sealed()


def provider_versions(lock_file: str) -> dict[str, str]:
    """The versions that a ``.terraform.lock.hcl`` names, by source."""
    return dict(sorted(_PROVIDER.findall(lock_file)))


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def private(path: Path, text: str) -> None:
    """Write a file that only its owner can read: plans hold secrets in plain text."""
    private_bytes(path, text.encode("utf-8"))


def private_bytes(path: Path, data: bytes) -> None:
    """As `private`, for bytes."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
