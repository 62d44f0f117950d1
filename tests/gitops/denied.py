"""Reads ``denied.yaml``: the calls that the roles of a pipeline are shown to be denied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml_tables
from sagefit.iam.evaluate import Call

ADMIN = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
    }
)
ROWS: list[dict[str, Any]] = yaml_tables.read(Path(__file__).with_name("denied.yaml"))
_ROLES = ("plan", "apply")


def calls(role: str, account: str, region: str) -> list[Call]:
    """The calls that the policies of a role are asked about."""
    return [
        Call(row["action"], *_named((row["resource"], row.get("context", {})), account, region))
        for row in ROWS
        if "action" in row and row["role"] in (role, "both")
    ]


def requests(account: str, region: str) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """The requests that are sent: role, service, method, parameters."""
    for role in _ROLES:
        for row in ROWS:
            if "sends" in row and row["role"] in (role, "both"):
                service, method = row["sends"].split()
                yield role, service, method, _named(row["request"], account, region)


def _named(value: Any, account: str, region: str) -> Any:
    """A value with its names filled in."""
    if isinstance(value, dict):
        return {key: _named(each, account, region) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_named(each, account, region) for each in value)
    names = {"account": account, "region": region, "admin": ADMIN, "trust": TRUST}
    return value.format_map(names) if isinstance(value, str) else value
