"""What runs on this machine: Sagefit, Terraform, and where its provider comes from."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from sagefit import toolchain
from sagefit.doctor.finding import Finding
from sagefit.errors import SagefitError
from sagefit.paths import display, home
from sagefit.version import __version__

_CHECK = "versions"


def check_tools() -> Iterator[Finding]:
    """Whether there is a Terraform that is new enough, and a provider for it. Nothing is downloaded."""
    try:
        binary = toolchain.terraform_binary(home())
        origin = toolchain.find_providers(home()).origin
    except SagefitError as error:
        yield Finding(_CHECK, "fault", error.message, error.hint or "")
        return
    terraform = f"Terraform {toolchain.terraform_version(binary)} ({display(binary)})"
    python = f"Python {platform.python_version()}"
    yield Finding(_CHECK, "ok", f"Sagefit {__version__}, {python}, {terraform}, its AWS provider {origin}")
