"""The policies of a change, before and after, and words that the rules about them share."""

from __future__ import annotations

import re
from typing import Any

from sagefit.iam import Lost, Policy, read_policy
from sagefit.iam.policy import EMPTY, read_document_data
from sagefit.reviewing.message import Message, say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.values import was, will_be

_ACCOUNT = re.compile(r"\b\d{12}\b")
BINDING = {"sts:externalid", "aws:principalorgid", "aws:principalorgpaths", "aws:sourceaccount", "aws:sourcearn"}
"""Keys of conditions that keep a stranger from using a grant in somebody else's name."""


def of_others(principals: tuple[str, ...], context: Context) -> tuple[str, ...]:
    """Those that are of an account which is not known as one of this plan."""
    found = ((text, _ACCOUNT.search(text)) for text in principals if text.startswith("AWS:"))
    return tuple(text for text, account in found if account and account[0] not in context.accounts)


def policies(change: Change, attribute: str, context: Context) -> tuple[Policy, Policy | None]:
    """Before and after; the latter as much of it as can be known, or None."""
    before = _joined(was(change, attribute)) or EMPTY
    if change.kind == "delete":
        return before, EMPTY
    after = _joined(will_be(change, attribute))
    return before, after or _from_data(change, attribute, context)


def _joined(values: list[object]) -> Policy | None:
    """The policies of several blocks as one; None when one is not known."""
    found = [read_policy(value) for value in values]
    if any(policy is None for policy in found):
        return None
    return Policy(tuple(statement for policy in found if policy for statement in policy.statements))


def _from_data(change: Change, attribute: str, context: Context) -> Policy | None:
    """What ``aws_iam_policy_document`` will make, where the configuration refers to nothing else."""
    documents = [
        data
        for data in context.referred(change.address, attribute.split(".")[0])
        if data.type == "aws_iam_policy_document" and data.mode == "data"
    ]
    if not documents:
        return None
    found = [read_document_data(data.after, data.change.after_unknown) for data in documents]
    return Policy(tuple(s for policy in found for s in policy.statements), all(policy.whole for policy in found))


def told(words: str, lost: Lost, *values: Any) -> Message:
    """A message that ends in what the statement asks about, if it has conditions."""
    keys = sorted(lost.statement.condition_keys)
    return say(words + " if {}", *values, keys) if keys else say(words, *values)


def conditions(lost: Lost) -> str:
    """Under what something is allowed now that was allowed under more."""
    keys = sorted(lost.statement.condition_keys)
    return f"a weaker condition on {', '.join(keys)}" if keys else "no condition any more"


def unknown(attribute: str, before: Policy) -> Hit:
    """The finding about a policy that nobody can read yet."""
    if before.statements:
        return Hit("iam-unknown", say("{} was known and will be known only after apply", attribute), "high")
    return Hit("iam-unknown", say("{} will be known only after apply", attribute))
