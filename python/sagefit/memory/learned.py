"""Uses measurements of earlier runs of a job in place of predictions.

A peak counts for a job with the same code and the same hyperparameters. Hyperparameters that do not change memory, or
that the planner understands, may differ. When the planner's input is also the same, the peak replaces the prediction.
Otherwise the ratio of measured to predicted corrects the prediction, because the error of a formula for a model and its
software is the same at every batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from sagefit.catalog.instance_table import instances
from sagefit.errors import SagefitError
from sagefit.job import Job
from sagefit.job.memory_model import Knob
from sagefit.job.values import as_text
from sagefit.memory import bounds
from sagefit.memory.code_digest import code_digest
from sagefit.memory.knobs import name_of
from sagefit.memory.peaks import Record, load
from sagefit.memory.workload import Estimate, Measured, Peak, Placement, Prediction, Workload

Resource = Literal["gpu", "host"]
Predict = Callable[[Workload, Placement], Prediction | None]

#: A correction outside of these bounds means that the job file describes something else than what ran.
LEAST, MOST = 0.5, 4.0

#: The ratio still applies when these fields differ: remedies change them.
_SCALE = (
    "micro_batch",
    "accumulation",
    "evaluation_batch",
    "sequence_length",
    "gradient_checkpointing",
    "workers",
    "prefetch",
    "dataset_in_memory",
)
_HARMLESS = re.compile(
    r"((num|max)_)?(train_)?epochs?|(max_)?steps|learning_rate|lr|lr_scheduler_type|weight_decay|warmup_(steps|ratio)"
    r"|(adam_)?(beta1|beta2|epsilon|eps)|max_grad_norm|(data_)?seed|log_level|log_interval|logging_(steps|strategy)"
    r"|(save|eval)_steps|report_to|run_name|output_dir"
)
_OUTCOMES: dict[str, Literal["", "gpu", "host"]] = {"completed": "", "gpu_memory": "gpu", "host_memory": "host"}
_NAMES: dict[Resource, str] = {"gpu": "GPU memory", "host": "host memory"}


def with_peaks(
    job: Job,
    hyperparameters: Mapping[str, object],
    read: Callable[[Job, Mapping[str, object]], Workload],
    also: tuple[Record, ...] = (),
) -> Workload:
    """The workload that ``read`` makes of ``hyperparameters``, with the measured peaks that apply to it:
    those that are kept for the job, and ``also`` these.

    Without a model, a peak of exactly this workload becomes the model (``family: measured``). A job without a file of
    peaks costs no time.
    """
    workload = read(job, hyperparameters)
    records = tuple({record.training_job: record for record in (*load(job), *also)}.values())
    if not records:
        return workload
    described = workload.model is not None
    code, others = code_digest(job), _others(job, hyperparameters, described=described)
    found = tuple(
        peak
        for record in records
        if record.code == code and _others(job, record.hyperparameters, described=described) == others
        if (peak := _peak(job, record, read))
    )
    if len(found) < len(records):
        note = f"{len(records) - len(found)} of {len(records)} measured attempts had other code or hyperparameters"
        workload = replace(workload, notes=(*workload.notes, f"{note} and do not count"))
    return replace(workload, peaks=found) if described else _from_peaks(workload, found)


def _others(job: Job, hyperparameters: Mapping[str, Any], *, described: bool) -> dict[str, str]:
    """Hyperparameters that may change memory in a way unknown to the planner; without a model that is all of them."""
    known = {name_of(job, knob, hyperparameters) for knob in get_args(Knob)} if described else set()
    return {
        name: as_text(value)
        for name, value in hyperparameters.items()
        if name not in known and not _HARMLESS.fullmatch(name.lower().replace("-", "_"))
    }


def _peak(job: Job, record: Record, read: Callable[[Job, Mapping[str, object]], Workload]) -> Peak | None:
    """The peak of a record; None when the job file can no longer describe what ran."""
    if record.outcome not in _OUTCOMES:
        return None
    try:
        workload = replace(read(job, record.hyperparameters), notes=())
    except SagefitError:
        return None
    died = _OUTCOMES[record.outcome]
    return Peak(record.training_job, workload, placement_of(record), record.gpu_gib, record.host_gib, died)


def placement_of(record: Record) -> Placement:
    """Where the attempt ran."""
    instance = instances().get(record.instance_type)
    known = Placement.on(instance).gpu_gib if instance else 0.0
    return Placement(record.instance_count, record.gpus_per_host, record.gpu, known)


def _from_peaks(workload: Workload, found: tuple[Peak, ...]) -> Workload:
    """A model for a job file that has none. It needs complete peaks, all of one kind of host."""
    same = [p for p in found if p.host_gib and _facts(p.workload, "host") == _facts(workload, "host")]
    whole = [p for p in same if not p.died_of and (p.gpu_gib is not None) == bool(p.placement.gpus)]
    notes = list(workload.notes)
    if whole:
        like = [p for p in whole if p.placement.gpus_per_host == whole[-1].placement.gpus_per_host]
        host = max(like, key=lambda p: p.host_gib or 0.0)
        gpu = max((p.gpu_gib for p in like if p.gpu_gib is not None), default=None)
        notes.append(f"memory is what {host.training_job} measured, as memory.model is not given")
        return replace(workload, model=Measured(host.host_gib or 0.0, gpu), notes=tuple(notes))
    for peak in same:
        if peak.died_of:
            notes.append(f"{peak.training_job} died of {_NAMES[peak.died_of]}: it needs more than {_used(peak)}")
    return replace(workload, notes=tuple(notes))


@dataclass(frozen=True)
class _Told:
    """A measured peak of one resource in GiB, and the prediction for it."""

    peak: Peak
    gib: float
    predicted: float

    @property
    def ratio(self) -> float:
        return self.gib / self.predicted


def corrected(prediction: Prediction, workload: Workload, placement: Placement, predict: Predict) -> Prediction:
    """``prediction`` corrected by the peaks of ``workload``; ``predict`` is the formula alone."""
    host, note, exact = _learn("host", prediction, workload, placement, predict)
    gpu, gpu_note, gpu_exact = _learn("gpu", prediction, workload, placement, predict)
    notes = (*prediction.assumptions, *filter(None, (gpu_note, note)))
    source = "measured" if (gpu_exact if prediction.gpu else exact) else prediction.source
    return Prediction(host or prediction.host, gpu, notes, source)


def _learn(
    resource: Resource, prediction: Prediction, workload: Workload, placement: Placement, predict: Predict
) -> tuple[Estimate | None, str, bool]:
    """The estimate of one resource, a note about it, and whether it is measured rather than corrected."""
    estimate = _of(prediction, resource)
    if estimate is None or estimate.point <= 0:
        return estimate, "", False
    told = [t for peak in workload.peaks if (t := _told(peak, resource, workload, placement, predict))]
    exact = [t for t in told if not t.peak.died_of and _is_same(t.peak, resource, workload, placement)]
    name, ran = _NAMES[resource], [t for t in told if not t.peak.died_of]
    if exact:
        most = max(exact, key=lambda t: t.gib)
        note = f"{name}: {most.gib:.2f} GiB measured in {most.peak.training_job}, {estimate.point:.2f} predicted"
        return _scaled(estimate, most.gib, bounds.MEASURED), f"{note}; parts are in proportion", True
    note = ""
    if ran:
        estimate, note = _shifted(name, estimate, ran)
    died = [t for t in told if t.peak.died_of and t.predicted <= _point(predict, workload, placement, resource)]
    if died:
        most = max(died, key=lambda t: t.gib)
        if most.gib > estimate.point:
            estimate = _scaled(estimate, most.gib, max(bounds.MEASURED, estimate.upper / most.gib))
            estimate = replace(estimate, spare=0.0)
            note = f"{name}: {most.peak.training_job} died of it at {most.gib:.2f} GiB, so no less is needed"
    return estimate, note, False


def _shifted(name: str, estimate: Estimate, ran: list[_Told]) -> tuple[Estimate, str]:
    """The prediction times measured over predicted. The bound widens with the distance from the measured case.

    The estimate is at most what a run with a larger prediction was measured to use.
    """
    most = max(ran, key=lambda t: t.ratio)
    ratio = min(max(most.ratio, LEAST), MOST)
    above = [t.gib for t in ran if t.predicted >= estimate.point]
    point = min([estimate.point * ratio, *above])
    far = max(estimate.point, most.predicted) / min(estimate.point, most.predicted)
    own = estimate.upper / estimate.point
    bound = max(bounds.MEASURED, min(own, bounds.MEASURED * far**0.5)) if ratio == most.ratio else own
    note = f"{name}: predicted {estimate.point:.2f} GiB x {ratio:.2f}, as {most.peak.training_job} measured"
    note += f" {most.gib:.2f} where {most.predicted:.2f} is predicted"
    if ratio != most.ratio:
        note += f"; that is x {most.ratio:.2f}, so see whether the memory block describes what ran"
    return _scaled(estimate, point, max(bound, bounds.MEASURED)), note


def _told(peak: Peak, resource: Resource, workload: Workload, placement: Placement, predict: Predict) -> _Told | None:
    """What ``peak`` says about ``resource``; None when the peak is of another resource, placement or workload."""
    gib = peak.gpu_gib if resource == "gpu" else peak.host_gib
    if not gib or peak.died_of not in ("", resource):
        return None
    if bool(peak.placement.gpus) != bool(placement.gpus) or _kind(peak.workload) != _kind(workload):
        return None
    predicted = _point(predict, peak.workload, peak.placement, resource)
    return _Told(peak, gib, predicted) if predicted > 0 else None


def _is_same(peak: Peak, resource: Resource, workload: Workload, placement: Placement) -> bool:
    """Whether the planner's input is the same for the peak and the workload."""
    shape = (placement.hosts, placement.gpus_per_host)
    return shape == (peak.placement.hosts, peak.placement.gpus_per_host) and _facts(workload, resource) == _facts(
        peak.workload, resource
    )


def _facts(workload: Workload, resource: Resource) -> Workload:
    """The fields that affect ``resource``: not how often gradients accumulate, and for a GPU not how data is loaded."""
    facts = replace(workload, notes=(), peaks=(), accumulation=min(workload.accumulation, 2))
    if resource == "host":
        return facts
    return replace(facts, workers=0, prefetch=0, sample_bytes=None, dataset_gib=0.0, dataset_in_memory=False)


def _kind(workload: Workload) -> Workload:
    """The fields that must be equal for one ratio to apply."""
    default = {name: getattr(Workload(model=None), name) for name in _SCALE}
    return replace(workload, notes=(), peaks=(), **default)


def _point(predict: Predict, workload: Workload, placement: Placement, resource: Resource) -> float:
    prediction = predict(workload, placement)
    estimate = _of(prediction, resource) if prediction else None
    return estimate.point if estimate else 0.0


def _of(prediction: Prediction, resource: Resource) -> Estimate | None:
    return prediction.gpu if resource == "gpu" else prediction.host


def _scaled(estimate: Estimate, point: float, bound: float) -> Estimate:
    """``estimate`` with another point: parts and phases keep their proportions."""
    factor = point / estimate.point
    parts = {name: gib * factor for name, gib in estimate.parts.items()}
    phases = {name: gib * factor for name, gib in estimate.phases.items()}
    return Estimate(point, point * bound, parts, estimate.phase, phases, estimate.spare * factor)


def _used(peak: Peak) -> str:
    return f"{(peak.gpu_gib if peak.died_of == 'gpu' else peak.host_gib) or 0:.2f} GiB"
