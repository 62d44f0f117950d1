"""A review as the object of ``sagefit review --format json``. Money is USD, memory GiB, time seconds."""

from __future__ import annotations

from typing import Any

from sagefit.machine.definition import HIDDEN, Secret
from sagefit.reviewing.jobs import JobReview
from sagefit.reviewing.judge import Finding, Review
from sagefit.reviewing.policies import PolicyFailure
from sagefit.reviewing.redact import Redactor
from sagefit.reviewing.rules import rules

SCHEMA = 1


def as_json(review: Review) -> dict[str, Any]:
    """The object. No value of it is secret by Terraform's marks, by its name or by its form."""
    plan, redactor = review.plan, review.redactor
    counts = plan.counts
    replaced = counts["replace"] + counts["replace-forget"]
    return {
        "schema": SCHEMA,
        "plan": review.document.name,
        "plan_json_sha256": review.document.digest,
        "terraform_version": plan.terraform_version or None,
        **review.origin.as_json(),
        "verdict": review.verdict,
        "judged": review.is_judged,
        "complete": plan.complete,
        "errored": plan.errored,
        "summary": {
            **{kind: counts[kind] for kind in ("create", "update")},
            "replace": replaced,
            "delete": counts["delete"],
            "forget": counts["forget"] + counts["replace-forget"],
            "import": counts["import"],
            "move": counts["move"],
            "unknown": counts["unknown"],
            "add": counts["create"] + replaced,
            "destroy": counts["delete"] + counts["replace"],
            "outputs": sum(output.actions != ["no-op"] for output in plan.output_changes.values()),
        },
        "findings": [_finding(finding, redactor) for finding in review.findings],
        "suppressed": [
            {**_finding(finding, redactor), "reason": accepted.reason, "expires": str(accepted.expires)}
            for finding, accepted in review.suppressed
        ],
        "jobs": [_job(job, redactor) for job in review.jobs],
        "cost": _cost(review.jobs),
        "policies": {
            name: [_policy(failure, redactor) for failure in getattr(review.policies, name)]
            for name in ("new", "fixed", "old")
        }
        if review.policies
        else None,
        "drift": {"real": review.drifted[0], "noise": review.drifted[1]},
    }


def _finding(finding: Finding, redactor: Redactor) -> dict[str, Any]:
    rule, change = rules()[finding.rule], finding.change
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "address": finding.address,
        "message": f"{rule.title}: {finding.message.text(redactor.show)}",
        "deposed": change.deposed if change else None,
        "actions": change.change.actions if change else None,
        "page": rule.page,
    }


def _policy(failure: PolicyFailure, redactor: Redactor) -> dict[str, Any]:
    return {
        "check": failure.check,
        "severity": failure.severity,
        "address": failure.address,
        "message": redactor.show(failure.message),
    }


def shown(value: Any, redactor: Redactor) -> str | None:
    """One side of a changed field; None where it is absent."""
    if value is None:
        return None
    return HIDDEN if isinstance(value, Secret) else redactor.show(value)


def _job(job: JobReview, redactor: Redactor) -> dict[str, Any]:
    return {
        "job": redactor.show(job.name),
        "address": job.change.address,
        "action": job.change.kind,
        "region": job.region,
        "verdict": job.fits[0].verdict if job.fits else "UNKNOWN",
        "attempts_before": [fit.as_json() for fit in job.fits_before],
        "attempts": [fit.as_json() for fit in job.fits],
        "cost_before": job.cost_before.as_json() if job.cost_before else None,
        "cost": job.cost.as_json() if job.cost else None,
        "digests": {
            side: {
                "code": definition.words.get("code.digest"),
                "launcher": definition.words.get("launcher"),
                "data": {
                    word.split(".")[1]: redactor.show(value)
                    for word, value in definition.words.items()
                    if word.startswith("inputs.") and word.endswith(".uri")
                },
            }
            for side, definition in (("before", job.before), ("after", job.after))
            if definition
        },
        "changes": [
            {"field": redactor.show(w.field), "before": shown(w.before, redactor), "after": shown(w.after, redactor)}
            for w in job.words
        ],
        "machine_changes": job.machine_changes,
    }


def _cost(jobs: list[JobReview]) -> dict[str, Any]:
    """Worst cases of one run of each job, summed; null where one is not known."""
    sides = {
        "before_usd": [job.cost_before.worst if job.cost_before else 0.0 for job in jobs],
        "after_usd": [job.cost.worst if job.cost else 0.0 for job in jobs],
    }
    total = {side: None if None in worst else round(sum(w or 0 for w in worst), 4) for side, worst in sides.items()}
    estimated = any(cost.estimated for job in jobs for cost in (job.cost, job.cost_before) if cost)
    return {"worst_case": total, "prices_estimated": estimated, "of": "one run of each job"}
