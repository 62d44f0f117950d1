"""Where a plan comes from: what binds a page to the one plan that may be applied after it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sagefit.errors import SagefitError


@dataclass(frozen=True)
class Origin:
    """What is known of a plan beside its JSON. ``plan_digest`` is the SHA-256 of the saved plan itself.

    ``lineage`` and ``serial`` are those of the state it was made from: an apply needs the same.
    """

    stack: str = ""
    commit: str = ""
    plan_digest: str = ""
    lineage: str = ""
    serial: int | None = None

    def as_json(self) -> dict[str, Any]:
        """As in the JSON report."""
        return {
            "stack": self.stack or None,
            "commit": self.commit or None,
            "plan_file_sha256": self.plan_digest or None,
            "state_lineage": self.lineage or None,
            "state_serial": self.serial,
        }


def read_origin(plan_file: Path | None, *, stack: str = "", commit: str = "") -> Origin:
    """What the saved plan says of itself: it is a zip archive with the state it was made from.

    Raises SagefitError for a file that is no saved plan.
    """
    if plan_file is None:
        return Origin(stack, commit)
    hint = "give the file that terraform plan -out wrote"
    try:
        digest = hashlib.sha256(plan_file.read_bytes()).hexdigest()
        with zipfile.ZipFile(plan_file) as archive:
            state = json.loads(archive.read("tfstate"))
        lineage, serial = str(state.get("lineage") or ""), state.get("serial")
    except OSError as error:
        raise SagefitError(f"{plan_file}: cannot be read: {error.strerror}", hint=hint) from error
    # zipfile raises the last two for a compression that it lacks and for an encrypted member.
    except (zipfile.BadZipFile, KeyError, ValueError, AttributeError, NotImplementedError, RuntimeError) as error:
        raise SagefitError(f"{plan_file}: this is no saved plan", hint=hint) from error
    return Origin(stack, commit, digest, lineage, serial if isinstance(serial, int) else None)
