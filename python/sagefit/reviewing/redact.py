"""Keeps what is secret out of every output.

Terraform marks sensitive values in one place and repeats them unmarked in others: in variables, in strings that were
built from them, in messages. So this module collects all marked values, and searches every text of the plan for them
before it is shown, also in encoded forms. Values with secret names, credentials in known formats and user data count as
secret without a mark. Actions, addresses and types are never searched: a secret ``delete`` must not hide a deletion.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from sagefit.documents import UNKNOWN, parsed
from sagefit.reviewing.diff import SENSITIVE, Edit
from sagefit.reviewing.hidden import LEAST, hidden_by_name, secrets_of
from sagefit.reviewing.plan import Plan
from sagefit.secret_names import is_secret_name

_REACH = 4096  # how much of a secret is compared; it must not be longer than what is kept beyond a cut

# Credentials that can be told by their form.
_CREDENTIAL = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|"
    r"hf_[A-Za-z0-9]{20,}|sk-[\w-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY[\s\S]*|(?<=://)[^/\s@]+(?=@)|(?i:bearer|basic)\s+[A-Za-z0-9+/=._-]{12,}"
)
# What a name in a text gives away: `"password": "..."` in JSON, PASSWORD=... in a script. Not parts of ARNs.
_ASSIGNED = re.compile(
    r"""(?<![:\w.])(?P<name>[A-Za-z_][\w-]{2,60})(?P<sign>\\*["']?\s*[:=]\s*)(?P<quote>\\*["'])?"""
    r"""(?P<value>(?(quote)(?:(?!(?P=quote)).)+|[^\s,;&?}"']+))"""
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")


class Redactor:
    """Shows values of one plan without its secrets."""

    def __init__(self, plan: Plan) -> None:
        self._by_start: dict[str, list[str]] = {}
        for secret in {form for text in secrets_of(plan) for form in _forms(text)}:
            self._by_start.setdefault(secret[:LEAST], []).append(secret)
        for forms in self._by_start.values():
            forms.sort(key=len, reverse=True)

    def show(self, value: Any, most: int = 200) -> str:
        """``value`` in at most about ``most`` characters, as one writes it in Terraform."""
        if value is UNKNOWN:
            return repr(UNKNOWN)
        if isinstance(value, str):
            return self.clean(value, most)
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return self.clean(", ".join(value[:most]), most)
        return self.clean(json.dumps(_without_named(value), ensure_ascii=False, default=str), most)

    def edit(self, edit: Edit) -> tuple[str, str] | None:
        """Both sides of ``edit``; None when they are not for showing."""
        if edit.sensitive or hidden_by_name(edit.path, edit.after or edit.before):
            return None
        return self.show(edit.before), self.show(edit.after)

    def clean(self, text: str, most: int = 200) -> str:
        """``text`` without secrets, cut to ``most`` characters."""
        kept = _CREDENTIAL.sub(SENSITIVE, self._without(text[: most + _REACH]))
        kept = _ASSIGNED.sub(_unassigned, kept)
        kept = _ENCODED.sub(self._decoded, kept)
        return (
            kept if len(kept) <= most and len(text) <= most + _REACH else f"{kept[:most]}… ({len(text):,} characters)"
        )

    def _without(self, text: str) -> str:
        if not self._by_start:
            return text
        out, start, index = [], 0, 0
        while index <= len(text) - LEAST:
            for secret in self._by_start.get(text[index : index + LEAST], ()):
                if text.startswith(secret[: min(_REACH, len(text) - index)], index) and (
                    len(secret) <= len(text) - index or len(text) - index >= _REACH
                ):
                    out += [text[start:index], SENSITIVE]
                    start = index = index + len(secret)
                    break
            else:
                index += 1
        return "".join([*out, text[start:]]) if out else text

    def _decoded(self, match: re.Match[str]) -> str:
        """A run of base64 that holds a secret, without it."""
        run = match[0].replace("-", "+").replace("_", "/")
        try:
            inside = base64.b64decode(run + "=" * (-len(run) % 4)).decode("utf-8")
        except ValueError:
            return match[0]
        return match[0] if self._without(inside) == inside and not _CREDENTIAL.search(inside) else SENSITIVE


def _unassigned(match: re.Match[str]) -> str:
    """A name with its value, without the value if the name is one of a secret."""
    if not is_secret_name(match["name"]) or match["value"].startswith(SENSITIVE):
        return match[0]
    return f"{match['name']}{match['sign']}{match['quote'] or ''}{SENSITIVE}"


def _without_named(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: SENSITIVE if hidden_by_name([k], v) and v is not None else _without_named(v) for k, v in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_named(item) for item in value]
    if isinstance(value, str):
        inner = parsed(value)
        return value if isinstance(inner, str) else json.dumps(_without_named(inner), ensure_ascii=False)
    return repr(value) if value is UNKNOWN else value


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may stand in a text: raw, escaped, encoded, a long line of it."""
    escaped = json.dumps(secret)[1:-1]
    html = re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", escaped)  # as Terraform's jsonencode
    data = secret.encode("utf-8", "surrogatepass")
    lines = [line.strip() for line in secret.splitlines() if len(line.strip()) >= 16]
    found = [
        secret,
        secret.strip(),
        escaped,
        html,
        json.dumps(html)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        *lines,
    ]
    for before in range(3):  # base64 looks different at each of three offsets
        encoded = base64.b64encode(b"\0" * before + data).decode()
        found.append(encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6])
    yield from (form for form in found if len(form) >= LEAST)
