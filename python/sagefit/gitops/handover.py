"""What the side that plans hands to the side that reviews.

A plan runs the Terraform of the change, so its author's code; whoever seals records must not. So the first side writes
the plan and what is known of it into a file that the second alone can read, for values in a plan are secret. The first
side needs no secret for that: the file is encrypted to a public key (HPKE, RFC 9180), whose private half follows from
the review key.

What is handed over is believed of no more than a plan itself: a plan that was forged is judged as what it says, and an
apply that finds another plan refuses it.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sagefit.errors import REFUSED, SagefitError
from sagefit.gitops.binding import PLAN_JSON, Origin, Place, Record, State, Tools, private_bytes
from sagefit.gitops.normalised import KEY_VARIABLE, Normalised, review_key
from sagefit.paths import display
from sagefit.reviewing import Document, Runs

PUBLIC_VARIABLE = "SAGEFIT_REVIEW_PUBLIC_KEY"
FILE = "handed.bin"
STACK = re.compile(r"[a-z0-9-]+/(platform|jobs/[a-z0-9-]+)")
"""The form of a stack's key; a folder of another name holds no plan."""

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
_ABOUT = b"sagefit: a plan that is handed to its review, 1: "
_SHORTEST = 32  # characters of a review key: a random one of 64 hex digits has 256 bits
_MOST = 512 * 1024 * 1024  # bytes of a plan, as everywhere
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Handed(BaseModel):
    """A plan, and what its record says of it."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)  # a newer Sagefit may tell more

    v: Literal[1] = 1
    destroy: bool
    place: Place
    origin: Origin
    tools: Tools
    state: State
    plan: _Digest
    plan_json: str
    runs: Runs = Field(default_factory=Runs)


def public_key() -> str:
    """The public half of the review key, in 64 hex digits: what the side that plans is given."""
    return _private().public_key().public_bytes_raw().hex()


def hand_over(folder: Path, record: Record, runs: Runs) -> None:
    """Write the plan in ``folder`` for the side that reviews, if this side knows its public key.

    Raises SagefitError when the variable holds no public key.
    """
    if not os.environ.get(PUBLIC_VARIABLE):
        return
    handed = Handed(
        destroy=record.destroy,
        place=record.place,
        origin=record.origin,
        tools=record.tools,
        state=record.state,
        plan=record.plan,
        plan_json=(folder / PLAN_JSON).read_text(encoding="utf-8"),
        runs=runs,
    )
    encrypt(folder / FILE, gzip.compress(handed.model_dump_json().encode(), mtime=0), record.stack)


def encrypt(path: Path, packed: bytes, stack: str) -> None:
    """Write ``packed`` into ``path`` so that whoever has the review key can read it, as what it is of ``stack``."""
    given = os.environ.get(PUBLIC_VARIABLE, "")
    if not re.fullmatch(r"[0-9a-f]{64}", given):
        raise SagefitError(
            f"{PUBLIC_VARIABLE}: 64 hex digits are expected",
            hint=f"where {KEY_VARIABLE} is set, sagefit seal --public-key prints them",
        )
    key = X25519PublicKey.from_public_bytes(bytes.fromhex(given))
    private_bytes(path, _SUITE.encrypt(packed, key, _ABOUT + stack.encode()))


def take_over(folder: Path, stack: str, *, head: str, base: str, lifetime: timedelta) -> tuple[Record, Document, Runs]:
    """The record of a plan that was handed over, not judged yet, the plan, and what is said of runs.

    ``head`` and ``base`` are commits.

    Commits and times are those of this side. Raises SagefitError for what is no plan, or is for another key or stack.
    """
    path = folder / FILE
    try:
        packed = _SUITE.decrypt(path.read_bytes(), _private(), _ABOUT + stack.encode())
        handed = Handed.model_validate_json(_unpacked(packed))
    except InvalidTag:
        raise SagefitError(
            f"{display(path)} is not for this key, or not of {stack}",
            hint=f"{PUBLIC_VARIABLE} where it was planned must be what sagefit seal --public-key prints here",
            exit_code=REFUSED,
        ) from None
    except (ValidationError, ValueError, OSError, EOFError, zlib.error) as error:
        raise SagefitError(f"{display(path)}: no plan that was handed over", hint="plan again") from error
    document, key = Document(PLAN_JSON, handed.plan_json.encode()), review_key()
    try:
        content = Normalised.of(document.raw, key)
    except (KeyError, TypeError, AttributeError) as error:
        raise SagefitError(f"{display(path)}: no plan of Terraform", hint="plan again") from error
    now = datetime.now(timezone.utc).replace(microsecond=0)
    record = Record(
        stack=stack,
        destroy=handed.destroy,
        place=handed.place,
        origin=replace(handed.origin, head=head, base=base),
        tools=handed.tools,
        state=handed.state,
        plan=handed.plan,
        normalised=content.digest(key),
        content=content,
        created=now.isoformat(),
        expires=(now + lifetime).isoformat(),
    )
    return record, document, handed.runs


def _private() -> X25519PrivateKey:
    key = review_key()
    if len(key) < _SHORTEST:  # who has the public half can try keys, as many as he likes
        raise SagefitError(
            f"{KEY_VARIABLE} has {len(key)} characters, and {_SHORTEST} are the least where plans are handed over",
            hint="make one that nobody can guess: openssl rand -hex 32",
        )
    derived = HKDF(SHA256(), 32, salt=None, info=b"sagefit: the key that plans are handed to, 1").derive(key)
    return X25519PrivateKey.from_private_bytes(derived)


def _unpacked(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    found = unpacking.decompress(packed, _MOST)
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise ValueError("larger than any plan, or cut")
    return found
