"""What is dangerous about the change of a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.machine.definition import Definition
from sagefit.reviewing.jobs.environment import environment
from sagefit.reviewing.jobs.fit import Fit
from sagefit.reviewing.message import say
from sagefit.reviewing.rulebook import Hit

# A word of the job file whose loss takes a protection away, and the rule that says so.
_LOST = (
    ("resources.network_isolation", "job-isolation-off"),
    ("resources.encrypt_inter_container_traffic", "job-traffic-unencrypted"),
    ("resources.subnet_ids", "job-network-lost"),
    ("resources.security_group_ids", "job-network-lost"),
    ("resources.volume_kms_key_arn", "encryption-off"),
    ("resources.output_kms_key_arn", "encryption-off"),
    ("resources.checkpoints", "job-checkpoints-lost"),
)


def judge(before: Definition | None, after: Definition, fits: list[Fit]) -> Iterator[Hit]:
    """Findings about one job. What it costs and where it comes from is judged in `cost` and `supply`."""
    yield from _fit(fits, after)
    if after.strange:
        yield Hit("job-unreadable", say("states that Sagefit does not write: {}", list(after.strange)), "high")
    if differing := [name for name in after.words if name.endswith("(request)")]:
        yield Hit("job-unreadable", say("{}: {}", differing[0].split(".")[1], after.words[differing[0]]))
    yield from environment(before.words if before else {}, after.words)
    if before is None:
        if after.words.get("resources.remote_debug"):
            yield Hit("job-debug-on", say("resources.remote_debug: true"))
        return
    yield from _protection(before.words, after.words)
    yield from _spot(before, after)
    yield from _attempts(before, after)


def _fit(fits: list[Fit], after: Definition) -> Iterator[Hit]:
    for index, fit in enumerate(fits):
        if fit.verdict in ("OOM", "RISKY") and fit.candidate:
            message = say("attempt {} on {}: {}", fit.attempt.name, fit.candidate.instance_type, fit.candidate.reason)
            if fit.verdict == "OOM":
                yield Hit("job-does-not-fit", message, None if index == 0 or len(after.attempts) == 1 else "medium")
            else:
                yield Hit("job-fit-risky", message, None if index == 0 else "low")


def _protection(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Hit]:
    for word, rule in _LOST:
        if before.get(word) and not after.get(word):
            yield Hit(rule, say("{}: {} → {}", word, before[word], after.get(word)))
    if after.get("resources.remote_debug") and not before.get("resources.remote_debug"):
        yield Hit("job-debug-on", say("resources.remote_debug: true"))
    gone = set(before.get("resources.security_group_ids") or ()) - set(after.get("resources.security_group_ids") or ())
    if gone and after.get("resources.security_group_ids"):
        yield Hit("job-network-lost", say("other security groups: {} is left out", sorted(gone)), "medium")


def _spot(before: Definition, after: Definition) -> Iterator[Hit]:
    old = {attempt.name: attempt for attempt in before.attempts}
    lost = [a.name for a in after.attempts if a.name in old and old[a.name].spot and not a.spot]
    if lost or (before.attempts[0].spot and not after.attempts[0].spot):
        yield Hit("job-spot-lost", say("attempts {} no longer use spot", lost or [after.attempts[0].name]))


def _attempts(before: Definition, after: Definition) -> Iterator[Hit]:
    """Fallbacks that are gone: fewer attempts, or a failure after which a run went on and now ends."""
    if len(after.attempts) < len(before.attempts):
        gone = [name for a in before.attempts if (name := a.name) not in {each.name for each in after.attempts}]
        yield Hit("job-attempts-lost", say("{} attempts → {}: {}", len(before.attempts), len(after.attempts), gone))
        return
    new = {attempt.name: attempt.next for attempt in after.attempts}
    lost = [f"{a.name}: {kind}" for a in before.attempts for kind in a.next if kind not in new.get(a.name, a.next)]
    if lost:
        yield Hit("job-attempts-lost", say("a run ends after {}, where it went on before", sorted(lost)))
