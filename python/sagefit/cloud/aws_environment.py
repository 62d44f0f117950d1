"""The variables that point an AWS client at the embedded cloud."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sagefit.cloud.keys import Key

REGION = "us-east-1"
#: Variables that would make an AWS client look elsewhere.
UNSET = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_CA_BUNDLE",
)
#: No client may find anybody's real configuration.
NO_FILES = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def aws_variables(endpoint: str, key: Key, region: str = REGION) -> dict[str, str]:
    """Endpoint, region and key."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": key.id,
        "AWS_SECRET_ACCESS_KEY": key.secret,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        # An error of the embedded cloud is an answer, not a hiccup: no minutes of retries.
        "AWS_MAX_ATTEMPTS": "3",
    } | NO_FILES


def no_proxy(base: Mapping[str, str]) -> dict[str, str]:
    """Keep loopback out of a proxy's hands, where there is a proxy."""
    if not any(base.get(name) for name in PROXIES):
        return {}
    before = base.get("NO_PROXY") or base.get("no_proxy") or ""
    names = [*filter(None, before.split(",")), "127.0.0.1", "localhost"]
    value = ",".join(dict.fromkeys(names))
    return {"NO_PROXY": value, "no_proxy": value}
