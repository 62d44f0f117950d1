"""What a rule may ask about the plan around a change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from sagefit.machine.definition import Definition, read_definition
from sagefit.reviewing.jobs.asked import Asked, asked
from sagefit.reviewing.plan import Change, Plan
from sagefit.reviewing.references import References

# Attributes with which a setting names what it belongs to.
_OWNERS = (
    "bucket",
    "role",
    "user",
    "group",
    "repository",
    "queue_url",
    "secret_arn",
    "file_system_id",
    "key_id",
    "topic_arn",
)
_OWNER_TYPES = (
    "aws_ecr_repository", "aws_efs_file_system", "aws_iam_group", "aws_iam_role", "aws_iam_user", "aws_kms_key",
    "aws_s3_bucket", "aws_secretsmanager_secret", "aws_sns_topic", "aws_sqs_queue",
)  # fmt: skip


_ARN = re.compile(r"^arn:[\w-]+:[\w-]+:[\w-]*:(\d{12}):")


def _account_of(arn: Any) -> str | None:
    found = _ARN.match(arn) if isinstance(arn, str) else None
    return found[1] if found else None


class Context:
    """The plan around each change, with indexes that are made when they are first needed."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.references = References(plan.configuration)

    @cached_property
    def _deleted(self) -> set[Any]:
        """Names, ids and ARNs of deleted resources: what is attached to them is deleted with them."""
        owners = [c.before for c in self.plan.managed if c.kind == "delete" and c.type in _OWNER_TYPES]
        named = (values.get(name) for values in owners for name in ("id", "arn", "bucket", "name", "url"))
        return {text for text in named if isinstance(text, str) and text}

    def goes_with_its_owner(self, change: Change) -> bool:
        """Whether a setting is deleted because the bucket, topic or role is that it belongs to."""
        before = change.before
        names = (*_OWNERS, "arn") if change.type.endswith("_policy") else _OWNERS
        return any(before.get(name) in self._deleted for name in names if isinstance(before.get(name), str))

    @cached_property
    def accounts(self) -> frozenset[str]:
        """The accounts that this plan is made in, as far as it says: who is asked, and the ARNs of what there is."""
        found = {_account_of(change.before.get("arn")) for change in self.plan.managed}
        modules: list[Any] = [(self.plan.prior_state.get("values") or {}).get("root_module")]
        while modules:
            module = modules.pop()
            if isinstance(module, dict):
                modules += module.get("child_modules") or []
                for each in module.get("resources") or []:
                    values = each.get("values") if isinstance(each, dict) else None
                    if isinstance(values, dict):
                        found.add(_account_of(values.get("arn")) if each.get("mode") == "managed" else None)
                        found.add(values.get("account_id") if each.get("type") == "aws_caller_identity" else None)
        return frozenset(str(account) for account in found if account)

    @cached_property
    def _new_names(self) -> set[tuple[str, Any]]:
        """Types and names of what is created."""
        found = set()
        for change in self.plan.managed:
            if change.kind == "create" and change.type in ("aws_iam_role", "aws_iam_user", "aws_iam_group"):
                found.add((change.type, change.after.get("name")))
        return found

    def is_new(self, change: Change, attribute: str, of_type: str) -> bool:
        """Whether what ``attribute`` names is created by this plan: by name or by reference."""
        name = change.after.get(attribute)
        if name is not None:
            return (of_type, name) in self._new_names
        return any(
            other.type == of_type and other.kind == "create" for other in self.referred(change.address, attribute)
        )

    def referred(self, address: str, attribute: str) -> Iterator[Change]:
        """Changes of what the configuration of ``attribute`` refers to, in the same module."""
        for reference in self.references.of(address, attribute):
            yield from self._by_block.get(reference, ())

    @cached_property
    def jobs(self) -> dict[str, Definition]:
        """Sagefit's jobs as they will be, by the module they are in."""
        read = {c.module_address: read_definition(c.after.get("definition")) for c in self._machines}
        return {module: definition for module, definition in read.items() if definition}

    @cached_property
    def asked(self) -> dict[str, Asked]:
        """What the machines of `jobs` ask for, by the module they are in."""
        return {c.module_address: asked(c.after.get("definition")) for c in self._machines}

    @property
    def _machines(self) -> list[Change]:
        kinds = ("create", "update", "no-op")
        return [c for c in self.plan.managed if c.type == "aws_sfn_state_machine" and c.kind in kinds]

    @cached_property
    def _by_block(self) -> dict[str, list[Change]]:
        """Changes by address without the keys of instances."""
        found: dict[str, list[Change]] = {}
        for change in self.plan.resource_changes:
            found.setdefault(self.references.block(change.address), []).append(change)
        return found
