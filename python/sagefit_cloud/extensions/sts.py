"""STS: whoever owns this cloud is the root user of its account."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.sts import urls
from moto.sts.responses import TokenResponse

_UNKNOWN = ":user/moto"  # what moto says of a key that neither IAM nor STS has handed out


class Sts(TokenResponse):
    """moto's STS with an answer for the owner."""

    def get_caller_identity(self) -> ActionResult:
        """Say who asks; every key that is let in and was not handed out is the owner's."""
        who: Any = super().get_caller_identity().result
        if not who["Arn"].endswith(_UNKNOWN):
            return ActionResult(who)
        partition, account = who["Arn"].split(":")[1], who["Account"]
        return ActionResult({**who, "UserId": account, "Arn": f"arn:{partition}:iam::{account}:root"})


def install() -> None:
    """Put this class in place of moto's."""
    urls.url_paths = {"{0}/$": Sts.dispatch}
