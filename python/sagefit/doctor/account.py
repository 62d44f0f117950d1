"""Who asks, and where: credentials, region, account, and the platform there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from sagefit.answers import understood
from sagefit.console import command
from sagefit.doctor.asking import client, one_line
from sagefit.doctor.finding import Finding
from sagefit.errors import SagefitError
from sagefit.platform import NoPlatformError, Platform, load_platform

_CHECK = "identity"
_LOGIN = "log in (aws sso login, or AWS_PROFILE, or AWS_ACCESS_KEY_ID), or use the embedded cloud: CLOUD=local"


@dataclass(frozen=True)
class Caller:
    """Who AWS says that we are, and where we work."""

    arn: str
    account: str
    region: str

    @property
    def partition(self) -> str:
        """The part of AWS: ``aws``, ``aws-cn``."""
        return self.arn.split(":")[1]

    @property
    def is_root(self) -> bool:
        """Whether it is the root user of the account, who may do everything."""
        return self.arn.endswith(":root")


def find_caller() -> Caller | Finding:
    """Who asks; a finding where that cannot be told, and so nothing else can be asked."""
    try:
        sts = client("sts")
        who = sts.get_caller_identity()
    except NoRegionError:
        return Finding(_CHECK, "fault", "no region is set", "set AWS_REGION, or region in the profile of AWS_PROFILE")
    except NoCredentialsError:
        return Finding(_CHECK, "fault", "there are no credentials for AWS", _LOGIN)
    except (ClientError, BotoCoreError) as error:
        if known := understood(error):
            return Finding(_CHECK, "fault", known.message, str(known.hint))
        return Finding(_CHECK, "fault", f"AWS does not know who asks: {one_line(error)}", _LOGIN)
    return Caller(who["Arn"], who["Account"], sts.meta.region_name)


def check_identity(caller: Caller) -> Iterator[Finding]:
    """Who asks, for people."""
    yield Finding(_CHECK, "ok", f"{caller.arn}, account {caller.account}, {caller.region}")


def find_platform(name: str, *, needed: bool) -> tuple[Platform | None, Finding]:
    """The platform where it is applied, and a line about it; it is ``needed`` where a job is to be planned."""
    try:
        found = load_platform(name)
    except SagefitError as error:
        if isinstance(error, NoPlatformError) and not needed:
            told = f"{name} is not applied yet; {command('platform', 'apply', name)} makes it"
            return None, Finding("platform", "ok", told)
        return None, Finding("platform", "fault", error.message.removeprefix("platform: "), error.hint or "")
    return found, Finding("platform", "ok", f"{name} is applied, in account {found.account_id}, {found.region}")
