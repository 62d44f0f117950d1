"""A sizing as the object of ``sagefit size --json``. Memory is GiB per GPU and GiB per host, money USD."""

from __future__ import annotations

from typing import Any

from sagefit.catalog import Price, price
from sagefit.memory import Estimate
from sagefit.memory.bounds import Evidence
from sagefit.planning import PlannedAttempt, attempt_usd, usd_per_hour
from sagefit.planning.candidate import Candidate, spot_range
from sagefit.planning.frontier import Way
from sagefit.size.sizing import Sizing

_DIGITS = 6


def as_json(sizing: Sizing) -> dict[str, Any]:
    """The object; a job without GPUs has no ``gpu_gib``, one without ``memory.model`` no ``host_gib`` either."""
    shown, chosen = sizing.shown, sizing.chosen
    prediction = shown.prediction if shown else None
    worst = sizing.worst_case_usd
    return {
        "job": sizing.job.name,
        "region": sizing.region,
        "verdict": sizing.verdict,
        "gpu_gib": _estimate(prediction.gpu) if prediction and prediction.gpu else None,
        "host_gib": _estimate(prediction.host) if prediction else None,
        "bound": _bound(sizing.evidence, sizing.beside),
        "head_room": shown.head_room if shown else None,
        "binds": shown.binds if shown else None,
        "source": prediction.source if prediction else None,
        "candidates": [_candidate(candidate) for candidate in sizing.candidates],
        "chosen": chosen.instance_type if chosen else None,
        "chosen_instance_count": chosen.instance_count if chosen else None,
        "chosen_quota": {"name": chosen.quota, "instances": chosen.instance_count} if chosen else None,
        "chosen_flags": list(chosen.instance.flags) if chosen else [],
        "attempts": [_attempt(attempt, sizing.region) for attempt in sizing.attempts],
        "worst_case_usd": round(worst, 4) if worst is not None else None,
        "prices_estimated": sizing.prices_estimated,
        "max_price": sizing.job.max_price,
        "nothing_helps": sizing.nothing_helps or None,
        "remedies": [advice.as_json() for advice in sizing.advice],
        "cheaper": [_way(way) for way in sizing.cheaper],
        "measured": [measured.as_json() for measured in sizing.measured],
        "saving": sizing.saving.as_json() if sizing.saving else None,
        "assumptions": sizing.assumptions,
        "remarks": sizing.job.told(sizing.remarks),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "point": _round(estimate.point),
        "upper": _round(estimate.upper),
        "least": _round(estimate.least),
        "phase": estimate.phase,
        "parts": {name: _round(gib) for name, gib in estimate.parts.items()},
        "phases": {name: _round(gib) for name, gib in estimate.phases.items()},
    }


def _bound(found: Evidence | None, beside: float) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "ratio": _round(found.ratio),
        "beside": _round(beside),
        "group": found.group,
        **{name: getattr(found.behind, name) for name in ("runs", "models", "sources")},
        "few": found.behind.few,
        "own_group": found.own_group,
        "own_runs": found.own.runs,
    }


def _way(way: Way) -> dict[str, Any]:
    prediction = way.fit.prediction
    return {
        "changes": way.fields,
        "text": way.text,
        "keeps_result": way.keeps_result,
        "instance_type": way.fit.instance_type,
        "instance_count": way.fit.instance_count,
        "usd_per_hour": _round(way.fit.usd_per_hour, 4),
        "gpu_gib": _round(prediction.gpu.upper) if prediction and prediction.gpu else None,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    prediction = candidate.prediction
    return {
        "instance_type": candidate.instance_type,
        "instance_count": candidate.instance_count,
        "usable_gpu_gib": _round(candidate.usable_gpu_gib),
        "usable_host_gib": _round(candidate.usable_host_gib),
        "fits": candidate.verdict == "FITS",
        "verdict": candidate.verdict,
        "gpu_upper_gib": _round(prediction.gpu.upper) if prediction and prediction.gpu else None,
        "host_upper_gib": _round(prediction.host.upper) if prediction else None,
        "gpu_share": _round(candidate.gpu_share),
        "host_share": _round(candidate.host_share),
        "usd_per_hour": _round(candidate.usd_per_hour, 4),
        "spot_usd_per_hour": _spot(candidate.usd_per_hour, candidate.spot),
        **_source(candidate.price),
        "reason": candidate.reason,
    }


def _attempt(attempt: PlannedAttempt, region: str) -> dict[str, Any]:
    fit, known = attempt.fit, price(attempt.instances[0].instance_type, region)
    usd = usd_per_hour(attempt, region)
    prediction = fit.prediction if fit else None
    return {
        "name": attempt.name,
        "reason": attempt.reason,
        "instance_type": attempt.instance_type,
        "instance_count": attempt.instance_count,
        **({"instance_groups": [g._asdict() for g in attempt.instance_groups]} if attempt.instance_groups else {}),
        "spot": attempt.spot,
        "hyperparameters": attempt.hyperparameters,
        "volume_size_gb": attempt.volume_size_gb,
        "max_runtime_seconds": attempt.max_runtime_seconds,
        "next": attempt.next,
        "verdict": fit.verdict if fit else "UNKNOWN",
        "gpu_gib": _need(prediction.gpu, fit.usable_gpu_gib) if fit and prediction and prediction.gpu else None,
        "host_gib": _need(prediction.host, fit.usable_host_gib) if fit and prediction else None,
        "usd_per_hour": _round(usd, 4),
        "spot_usd_per_hour": _spot(usd, attempt.spot),
        **_source(known),
        "worst_case_usd": _round(attempt_usd(attempt, region), 4),
    }


def _spot(usd: float | None, spot: bool) -> list[float] | None:
    """What an hour is expected to cost on spot: least, usual, most; None where it is not on spot."""
    return [round(value, 4) for value in spot_range(usd)] if spot and usd is not None else None


def _need(estimate: Estimate, usable: float | None) -> dict[str, Any]:
    return {"point": _round(estimate.point), "upper": _round(estimate.upper), "usable": _round(usable)}


def _source(known: Price | None) -> dict[str, Any]:
    return {
        "price_source": known.source if known else None,
        "price_date": known.date if known else None,
        "price_estimated": known.estimated if known else False,
    }


def _round(value: float | None, digits: int = _DIGITS) -> float | None:
    return None if value is None else round(value, digits)
