"""A sizing for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from rich.console import RenderableType
from rich.text import Text

from sagefit.catalog.view import NARROW, VERY_NARROW
from sagefit.console import out
from sagefit.job import Job
from sagefit.memory import (
    Diffusion,
    Estimate,
    Measured,
    Tabular,
    Traced,
    Transformer,
    Vision,
    Workload,
    diffusion,
    vision,
)
from sagefit.memory.bounds import Bound, Evidence
from sagefit.memory.other_models import proposed
from sagefit.paths import display
from sagefit.planning import PlannedAttempt, attempt_usd, is_estimated, repeats_note, usd_per_hour
from sagefit.planning.candidate import Candidate, spot_range
from sagefit.planning.changes import to_do_in_the_script
from sagefit.planning.frontier import Way
from sagefit.planning.planned import STOP_SECONDS
from sagefit.size.bars import bar
from sagefit.size.columns import Columns
from sagefit.size.sizing import Sizing

BEFORE, ROWS = 3, 8
MEASURED_ROWS = 5
_VERDICTS = {"FITS": "green", "RISKY": "yellow", "OOM": "red", "UNKNOWN": "cyan"}


def page(sizing: Sizing, *, every: bool = False) -> Iterator[RenderableType]:
    """The page about a job, part by part. ``every`` shows all candidates, not only those around the choice."""
    yield _headline(sizing)
    if sizing.workload.model:
        yield Text(f"read: {_workload(sizing.workload)}")
    shown = sizing.shown
    if shown and shown.prediction:
        if shown.prediction.gpu and shown.usable_gpu_gib:
            yield from bar("each GPU", shown.prediction.gpu, shown.usable_gpu_gib, shown.head_room)
        yield from bar("each host", shown.prediction.host, shown.usable_host_gib, shown.head_room)
    if behind := sizing.evidence:
        yield Text(_evidence(behind, sizing.beside), style="dim")
    if sizing.measured:
        yield Text("")
        yield _measured(sizing)
    if sizing.saving:
        yield Text(f"cheaper: {sizing.saving.text}", style="green")
    if sizing.candidates and sizing.workload.model:
        yield Text("")
        yield from _candidates(sizing, every=every)
    if sizing.attempts:
        yield Text("")
        yield _attempts(sizing)
        yield Text(_worst_case(sizing))
    if sizing.chosen:
        yield Text(_before(sizing.chosen))
    if sizing.nothing_helps:
        yield Text(f"\n{sizing.nothing_helps}")
    if sizing.advice:
        yield Text("\nwhat would make it fit:")
        yield from (Text(f"  {advice.text}") for advice in sizing.advice)
    if sizing.cheaper:
        yield Text("\nfor less:" if sizing.chosen else "\nthe cheapest ways that fit:")
        yield from (Text(f"  {_way(way)}") for way in sizing.cheaper)
    told = [*(advice.changes for advice in sizing.advice), *(way.changes for way in sizing.cheaper)]
    if too := to_do_in_the_script(chain.from_iterable(told)):
        yield Text(too, style="dim")
    if found := sizing.remarks:
        yield Text("\nlook again at:")
        yield from (Text(f"  {row}".replace("\n", "\n  ")) for row in sizing.job.told(found))
    if sizing.assumptions and (sizing.workload.model or sizing.measured):
        yield Text("\nassumed:")
        yield from (Text(f"  {_placed(sizing.job, assumption)}") for assumption in sizing.assumptions)


def _placed(job: Job, note: str) -> str:
    """``note`` with the line that it is about, where it begins with a field that is written."""
    field = re.match(r"(?:memory|hyperparameters|resources|environment|code)(?:\.[\w-]+)+", note)
    line = job.line_exactly(tuple(field[0].split("."))) if field else None
    return f"{display(job.path)}:{line}: {note}" if line else note


def _way(way: Way) -> str:
    return f"{_usd(way.fit)} USD an hour on {_instances(way.fit)}, {way.result}: {way.text}"


def _evidence(found: Evidence, beside: float) -> str:
    """How sure the bound is: the measured runs behind it."""
    told = f"bound: {found.ratio:.2f} x the prediction"
    if beside >= 0.005:
        told += f" and {beside:.2f} GiB that a process may hold beside its tensors"
    if not found.behind.runs:
        return f"{told}; nothing of this kind was measured ({found.group})"
    behind = f"{_runs(found.behind)} ({found.group})"
    if found.behind.few:
        told += f"; few sources measured this kind: {behind}"
    else:
        of_runs = max(1.0, found.behind.ratio or 1.0)
        told += f", {'from' if found.ratio == of_runs else f'wider than {of_runs:.2f} x from'} {behind}"
    if found.group == found.own_group:
        return told
    own = f"{found.own_group} alone has {_runs(found.own)}, too few for a bound of its own"
    return f"{told}; {own}" if found.own.runs else f"{told}; of {found.own_group} alone nothing was measured"


def _runs(measured: Bound) -> str:
    runs, models, sources = (
        f"{count} {what}{'' if count == 1 else 's'}"
        for count, what in ((measured.runs, "measured run"), (measured.models, "model"), (measured.sources, "source"))
    )
    return f"{runs} of {models} by {sources}"


def _headline(sizing: Sizing) -> Text:
    """One line: the verdict and the choice."""
    chosen, shown = sizing.chosen, sizing.shown
    line = Text(f"{sizing.job.name}: ", style="bold")
    line.append(sizing.verdict, style=_VERDICTS[sizing.verdict])
    if chosen:
        line.append(f" on {_instances(chosen)}, {_cost(chosen, sizing.region)}")
    elif shown:
        sure = "it fits on no allowed instance" if sizing.verdict == "OOM" else "no allowed instance is sure to hold it"
        line.append(f", {sure}; the closest is {_instances(shown)}")
    elif sizing.workload.model and sizing.candidates:
        line.append(f", nothing is predicted: {sizing.candidates[0].reason}")
    else:
        line.append(", memory.model does not say what is trained, so nothing is predicted")
        line.append(f"; {found}" if (found := proposed(sizing.job)) else "")
    if shown:
        line.append(f"; {shown.reason}")
    usd, limit = sizing.worst_case_usd, sizing.job.max_price
    if usd is not None and limit is not None and usd > limit:
        line.append(f"; a run can cost {usd:.2f} USD, over max_price, {limit:.2f}", style="red")
    return line


def _workload(workload: Workload) -> str:
    said = [_model(workload)]
    if isinstance(workload.model, Transformer | Vision | Diffusion | Traced):
        said += [_method(workload)]
        said += [] if workload.objective == "supervised" else [workload.objective]
        said += [workload.precision, workload.optimizer]
        said += [f"micro-batch {workload.micro_batch}, accumulation {workload.accumulation}"]
        if isinstance(workload.model, Transformer):
            seen = f" ({workload.image_tokens} from images)" if workload.image_tokens else ""
            said += [f"sequence length {workload.sequence_length}{seen}"]
        said += ["activation checkpointing"] if workload.gradient_checkpointing else []
        said += [f"sharding {workload.sharding}"] if workload.sharding != "none" else []
        said += [f"stack {workload.stack}"]
    if workload.world_size:
        said += [f"world size {workload.world_size}"]
    if workload.workers:
        said += [f"{workload.workers} loader workers"]
    if workload.dataset_gib:
        said += [f"{workload.dataset_gib:g} GiB of data{' in memory' if workload.dataset_in_memory else ''}"]
    return ", ".join(said)


def _method(workload: Workload) -> str:
    if workload.method == "full":
        return "full"
    if workload.lokr:
        return "lora by Kronecker products of factor " + " and ".join(f"{each}" for each in workload.lokr if each)
    return f"{workload.method} of rank {workload.lora_rank}"


def _model(workload: Workload) -> str:
    model = workload.model
    if isinstance(model, Transformer):
        return f"{model.name or 'transformer'} with {model.params / 1e6:,.0f} million parameters"
    if isinstance(model, Vision):
        size = vision.resolve(model).size
        return f"{model.name} on {size} x {size} pixels"
    if isinstance(model, Diffusion):
        height, width, frames = diffusion.size(model)
        return f"{model.name} on {height} x {width} pixels" + (f" and {frames} frames" if frames > 1 else "")
    if isinstance(model, Tabular):
        return f"a table for {model.library}"
    if isinstance(model, Measured):
        return "measured peaks"
    return "a trace of the script"


def _candidates(sizing: Sizing, *, every: bool) -> Iterator[RenderableType]:
    rows = sizing.candidates if every else around(sizing.candidates, sizing.chosen or sizing.shown)
    gpus = any(candidate.placement.gpus for candidate in rows)
    shares = (out.width >= VERY_NARROW and gpus, out.width >= NARROW)
    table = Columns(
        *("", "instance"),
        *([">GPU GiB"] if gpus else []),
        *([">share"] if shares[0] else []),
        ">host GiB",
        *([">share"] if shares[1] else []),
        *(">USD/hour", "verdict"),
    )
    for candidate in rows:
        prediction, chosen = candidate.prediction, candidate is sizing.chosen
        said = ", chosen" if chosen and out.width >= VERY_NARROW else ""
        table.add_row(
            ">" if chosen else "",
            _instances(candidate),
            *([_need(prediction.gpu if prediction else None, candidate.usable_gpu_gib)] if gpus else []),
            *([_share(candidate.gpu_share)] if shares[0] else []),
            _need(prediction.host if prediction else None, candidate.usable_host_gib),
            *([_share(candidate.host_share)] if shares[1] else []),
            _usd(candidate),
            Text(f"{candidate.verdict}{said}", style=_VERDICTS[candidate.verdict]),
        )
    yield table
    left_out = len(sizing.candidates) - len(rows)
    more = f"; {left_out} more with --all" if left_out else ""
    yield Text(f"upper bound of usable; prices of {sizing.region}, ~ is estimated from EC2{more}", style="dim")


def around(candidates: Sequence[Candidate], centre: Candidate | None) -> list[Candidate]:
    """The rows around ``centre``: what is a little cheaper and does not fit, and what comes next."""
    index = next((i for i, candidate in enumerate(candidates) if candidate is centre), 0)
    start = max(0, min(index - BEFORE, len(candidates) - ROWS))
    return list(candidates[start : start + ROWS])


def _attempts(sizing: Sizing) -> Columns:
    host = out.width >= NARROW
    table = Columns(
        *(">#", "attempt", "instance", ">GPU"),
        *([">host"] if host else []),
        ">USD at most",
        remarks="why, and what follows",
    )
    for index, attempt in enumerate(sizing.attempts):
        fit, usd = attempt.fit, attempt_usd(attempt, sizing.region)
        hourly = usd_per_hour(attempt, sizing.region) if attempt.spot else None
        estimated = is_estimated([attempt], sizing.region)
        spot = _on_spot(hourly, estimated=estimated) if hourly is not None else ""
        table.add_row(
            str(index),
            attempt.name,
            f"{attempt.hardware.removeprefix('1 x ')}{' spot' if attempt.spot else ''}",
            _share(fit.gpu_share if fit else None),
            *([_share(fit.host_share if fit else None)] if host else []),
            f"{usd:.2f}" if usd is not None else "-",
            remark="\n".join(filter(None, (attempt.reason, spot, _edges(attempt)))),
        )
    return table


def _measured(sizing: Sizing) -> Columns:
    """The newest measured attempts beside what is predicted for them."""
    table = Columns("measured in", "instance", "outcome", ">GPU GiB", ">predicted", ">host GiB", ">predicted")
    for measured in sizing.measured[-MEASURED_ROWS:]:
        record, predicted = measured.record, measured.predicted
        many = f"{record.instance_count} x " if record.instance_count > 1 else ""
        table.add_row(
            f"{record.training_job}{' (embedded cloud)' if record.cloud == 'local' else ''}",
            f"{many}{record.instance_type}",
            record.outcome,
            _gib(record.gpu_gib),
            _gib(predicted.gpu.point if predicted and predicted.gpu else None),
            _gib(record.host_gib),
            _gib(predicted.host.point if predicted else None),
        )
    return table


def _gib(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _edges(attempt: PlannedAttempt) -> str:
    """``gpu_memory: accumulate-2; spot, capacity: on-demand``."""
    kinds: dict[str, list[str]] = {}
    for kind, target in attempt.next.items():
        kinds.setdefault(target, []).append(kind)
    return "; ".join(f"{', '.join(classes)}: {target}" for target, classes in kinds.items())


def _worst_case(sizing: Sizing) -> str:
    usd, limit = sizing.worst_case_usd, sizing.job.max_price
    if usd is None:
        return f"what a run costs at worst is not known: a price in {sizing.region} is missing"
    longest = max(sizing.attempts, key=lambda attempt: attempt.paid_seconds).limit
    estimated = " by estimated prices" if sizing.prices_estimated else ""
    over = f"; over max_price, {limit:.2f}: a plan will be refused" if limit is not None and usd > limit else ""
    limits = f"{sizing.region}, each attempt at most {longest}, with {STOP_SECONDS} s to stop"
    limits += ", spot at the full price" if any(attempt.spot for attempt in sizing.attempts) else ""
    return f"a run costs at most {usd:.2f} USD{estimated} ({limits}){over}; {repeats_note(usd)}"


def _instances(candidate: Candidate) -> str:
    many = f"{candidate.instance_count} x " if candidate.instance_count > 1 else ""
    return f"{many}{candidate.instance_type}"


def _usd(candidate: Candidate) -> str:
    if candidate.usd_per_hour is None:
        return "-"
    return f"{'~' if candidate.price and candidate.price.estimated else ''}{candidate.usd_per_hour:.2f}"


def _cost(candidate: Candidate, region: str) -> str:
    """What an hour costs; on spot, what it is expected to."""
    if candidate.usd_per_hour is None:
        return f"price not known in {region}"
    if candidate.spot_usd_per_hour is None:
        return f"{_usd(candidate)} USD an hour"
    return _on_spot(candidate.usd_per_hour, estimated=bool(candidate.price and candidate.price.estimated))


def _on_spot(usd: float, *, estimated: bool) -> str:
    least, usual, most = spot_range(usd)
    return f"{'~' if estimated else ''}{least:.2f} to {most:.2f} USD an hour on spot, {usual:.2f} expected"


def _before(candidate: Candidate) -> str:
    """What to look up before the first run on it."""
    many = f", {candidate.instance_count} or more" if candidate.instance_count > 1 else ""
    flags = "".join(f"; {flag}" for flag in candidate.instance.flags)
    return f"check the quota {candidate.quota}{many}{flags}"


def _need(estimate: Estimate | None, usable: float | None) -> str:
    """``31.3 of 44.3``: the upper bound and usable memory."""
    of = " of " if out.width >= VERY_NARROW else "/"
    return f"{f'{estimate.upper:.1f}' if estimate else '-'}{of}{f'{usable:.1f}' if usable is not None else '-'}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
