"""Who may take on a role."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sagefit.iam import Statement, widened
from sagefit.iam.danger import is_public
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.rules.documents import BINDING, conditions, of_others, policies, told, unknown

_ROOT = re.compile(r"AWS:\d{12}")
TRUST = {"aws_iam_role": "assume_role_policy"}


def judge(change: Change, context: Context) -> Iterator[Hit]:
    """Others than before may take on a role, or under weaker conditions."""
    if change.type not in TRUST or change.kind not in ("create", "update", "replace") or change.deposed:
        return
    attribute = TRUST[change.type]
    before, after = policies(change, attribute, context)
    fresh = change.kind == "create"
    if after is None or not after.whole:
        yield unknown(attribute, before)
    if after is None:
        return
    if fresh:
        for statement in after.allowing:
            yield from _new(statement, context)
        return
    for lost in widened(before, after):
        if not lost.statement.allows:
            yield Hit("trust-opened", told("{} are no longer denied", lost, lost.principals))
        elif is_public(lost.statement):
            yield Hit("trust-opened", told("anybody may take on this role", lost), "critical")
        elif lost.condition:
            yield Hit("trust-opened", say("{} may take on this role under {}", lost.principals, conditions(lost)))
        else:
            own = bool(context.accounts) and not of_others(lost.principals, context)
            words = "{} may take on this role"
            yield Hit("trust-opened", told(words, lost, lost.principals), "medium" if own else None)


def _new(statement: Statement, context: Context) -> Iterator[Hit]:
    """What the trust of a new role gives to whom nobody had to trust before."""
    principals = tuple(statement.principals.listed)
    if is_public(statement):
        yield Hit("trust-opened", say("anybody may take on this role"), "critical")
    elif problem := _open_federation(statement):
        yield Hit("trust-opened", say("{} may take on this role with {}", principals, problem))
    elif others := of_others(principals, context):
        bound = bool(statement.condition_keys & BINDING)
        words = "{}, of another account, may take on this role" + ("" if bound else " without an external id")
        yield Hit("trust-opened", say(words, others), "medium" if bound or not context.accounts else None)
    elif not statement.conditions and (whole := [text for text in principals if _ROOT.fullmatch(text)]):
        yield Hit("trust-opened", say("whoever {} lets assume roles may take on this one", whole), "medium")


def _open_federation(statement: Statement) -> str:
    """What is missing in the trust of an identity provider that everybody may use."""
    if not any(text.startswith("Federated:") and "githubusercontent" in text for text in statement.principals.patterns):
        return ""
    subjects = [values for _, key, values in statement.conditions if key.endswith(":sub")]
    if not subjects:
        return "no condition on its subject"
    repositories = [":".join(text.split(":")[:2]) for values in subjects for text in values]  # repo:OWNER/NAME:...
    return "a wildcard for the repository" if any("*" in name for name in repositories) else ""
