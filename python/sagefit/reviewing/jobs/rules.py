"""What is dangerous about the change of a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.job.environment import leads_elsewhere, loads_code, reserved
from sagefit.job.values import duration
from sagefit.machine.definition import HIDDEN, OWN_VARIABLE, Definition
from sagefit.reviewing.jobs.fit import Cost, Fit
from sagefit.reviewing.message import say
from sagefit.reviewing.rulebook import Hit, Severity
from sagefit.secret_names import is_secret_name

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


def judge(
    before: Definition | None,
    after: Definition,
    costs: tuple[Cost | None, Cost],
    fits: list[Fit],
    factors: tuple[float, float],
) -> Iterator[Hit]:
    """Findings about one job. ``factors`` are how much its worst-case price and its runtime may grow unnoticed."""
    yield from _fit(fits, after)
    yield from _cost(costs, factors)
    if after.strange:
        yield Hit("job-unreadable", say("states that Sagefit does not write: {}", list(after.strange)), "high")
    if differing := [name for name in after.words if name.endswith("(request)")]:
        yield Hit("job-unreadable", say("{}: {}", differing[0].split(".")[1], after.words[differing[0]]))
    yield from _environment(before.words if before else {}, after.words)
    if before is None:
        if after.words.get("resources.remote_debug"):
            yield Hit("job-debug-on", say("resources.remote_debug: true"))
        return
    yield from _protection(before.words, after.words)
    yield from _spot(before, after)


def _fit(fits: list[Fit], after: Definition) -> Iterator[Hit]:
    for index, fit in enumerate(fits):
        if fit.verdict in ("OOM", "RISKY") and fit.candidate:
            message = say("attempt {} on {}: {}", fit.attempt.name, fit.candidate.instance_type, fit.candidate.reason)
            if fit.verdict == "OOM":
                yield Hit("job-does-not-fit", message, None if index == 0 or len(after.attempts) == 1 else "medium")
            else:
                yield Hit("job-fit-risky", message, None if index == 0 else "low")


def _cost(costs: tuple[Cost | None, Cost], factors: tuple[float, float]) -> Iterator[Hit]:
    before, after = costs
    if after.worst is None:
        yield Hit("job-price-unknown", say("no price of an instance type of this job is known in its region"))
    if before is None:
        return
    price_factor, runtime_factor = factors
    if before.worst is not None and after.worst is not None and after.worst > before.worst * price_factor:
        times = after.worst / before.worst if before.worst else float("inf")
        words = "worst case of a run: {} → {} USD, {} times as much; {} times is allowed"
        yield Hit(
            "job-price-grown", say(words, f"{before.worst:.2f}", f"{after.worst:.2f}", f"{times:.1f}", price_factor)
        )
    if after.seconds > before.seconds * runtime_factor:
        words = "time limits of all attempts: {} → {}; {} times is allowed"
        yield Hit("job-runtime-grown", say(words, duration(before.seconds), duration(after.seconds), runtime_factor))


def _protection(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Hit]:
    for word, rule in _LOST:
        if before.get(word) and not after.get(word):
            yield Hit(rule, say("{}: {} → {}", word, before[word], after.get(word)))
    if after.get("resources.remote_debug") and not before.get("resources.remote_debug"):
        yield Hit("job-debug-on", say("resources.remote_debug: true"))
    if before.get("role_arn") != after.get("role_arn"):
        yield Hit("job-role-changed", say("{} → {}", before.get("role_arn"), after.get("role_arn")))
    old, new = (_bucket(words.get("resources.output_s3_uri")) for words in (before, after))
    if old and new and old != new:
        yield Hit("job-output-moved", say("{} → {}", old, new))
    gone = set(before.get("resources.security_group_ids") or ()) - set(after.get("resources.security_group_ids") or ())
    if gone and after.get("resources.security_group_ids"):
        yield Hit("job-network-lost", say("other security groups: {} is left out", sorted(gone)), "medium")


def _environment(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Hit]:
    """Variables that are new or have another value, and change what runs. Their values are shown: paths and hosts."""
    for word, value in after.items():
        _, found, name = word.rpartition("environment.")
        if not found or name == OWN_VARIABLE or str(before.get(word)) == str(value):
            continue
        if why := reserved(name):
            yield Hit("job-environment", say(f"{{}}: no job sets this variable: {why}", word), "high")
        elif why := loads_code(name) or leads_elsewhere(name):
            old, new = (HIDDEN if is_secret_name(name) else str(side.get(word, "not set")) for side in (before, after))
            severity: Severity | None = "high" if loads_code(name) else None
            yield Hit("job-environment", say(f"{{}}: {{}} → {{}}: {why}", word, old, new), severity)


def _bucket(uri: Any) -> str:
    return str(uri).removeprefix("s3://").split("/", 1)[0] if uri else ""


def _spot(before: Definition, after: Definition) -> Iterator[Hit]:
    old = {attempt.name: attempt for attempt in before.attempts}
    lost = [a.name for a in after.attempts if a.name in old and old[a.name].spot and not a.spot]
    if lost or (before.attempts[0].spot and not after.attempts[0].spot):
        yield Hit("job-spot-lost", say("attempts {} no longer use spot", lost or [after.attempts[0].name]))
