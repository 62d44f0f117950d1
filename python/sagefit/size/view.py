"""A sizing for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sagefit.attempts import PlannedAttempt, attempt_usd
from sagefit.catalog.choose import Candidate
from sagefit.console import out
from sagefit.job.values import duration
from sagefit.memory import Estimate, Measured, Tabular, Traced, Transformer, Vision, Workload
from sagefit.size.sizing import Sizing

BEFORE, ROWS = 3, 8
BAR = 36
_STYLES = ("cyan", "green", "magenta", "yellow", "blue", "red", "white", "bright_black")
_BLOCKS, _PLAIN_BLOCKS = "█▓▒░▚▞▤▦", "#=+*%@o:"
_VERDICTS = {"FITS": "green", "RISKY": "yellow", "OOM": "red", "UNKNOWN": "cyan"}


def page(sizing: Sizing, *, every: bool = False) -> Iterator[RenderableType]:
    """The page about a job, part by part. ``every`` shows all candidates, not only those around the choice."""
    yield _headline(sizing)
    if sizing.workload.model:
        yield Text(f"read: {_workload(sizing.workload)}")
    shown = sizing.shown
    if shown and shown.prediction:
        if shown.prediction.gpu and shown.usable_gpu_gib:
            yield from _bar("each GPU", shown.prediction.gpu, shown.usable_gpu_gib, shown.head_room)
        yield from _bar("each host", shown.prediction.host, shown.usable_host_gib, shown.head_room)
    if sizing.candidates and sizing.workload.model:
        yield Text("")
        yield from _candidates(sizing, every=every)
    if sizing.attempts:
        yield Text("")
        yield _attempts(sizing)
        yield Text(_worst_case(sizing))
    if sizing.advice:
        yield Text("\nwhat would make it fit:")
        yield from (Text(f"  {advice.text}") for advice in sizing.advice)
    if sizing.assumptions and sizing.workload.model:
        yield Text("\nassumed:")
        yield from (Text(f"  {assumption}") for assumption in sizing.assumptions)


def _headline(sizing: Sizing) -> Text:
    """One line: the verdict and the choice."""
    chosen, shown = sizing.chosen, sizing.shown
    line = Text(f"{sizing.job.name}: ", style="bold")
    line.append(sizing.verdict, style=_VERDICTS[sizing.verdict])
    if chosen:
        line.append(f" on {_instances(chosen)}, {_usd(chosen)} USD an hour")
    elif shown:
        line.append(f", no instance that it may use is sure to hold it; nearest is {_instances(shown)}")
    else:
        line.append(", memory.model does not say what is trained, so nothing is predicted")
    if shown:
        line.append(f"; {shown.reason}")
    return line


def _workload(workload: Workload) -> str:
    said = [_model(workload)]
    if isinstance(workload.model, Transformer | Vision | Traced):
        said += [workload.method if workload.method == "full" else f"{workload.method} of rank {workload.lora_rank}"]
        said += [workload.precision, workload.optimizer]
        said += [f"micro-batch {workload.micro_batch}, accumulation {workload.accumulation}"]
        said += [f"sequence length {workload.sequence_length}"] if isinstance(workload.model, Transformer) else []
        said += ["activation checkpointing"] if workload.gradient_checkpointing else []
        said += [f"sharding {workload.sharding}"] if workload.sharding != "none" else []
        said += [f"stack {workload.stack}"]
    if workload.workers:
        said += [f"{workload.workers} loader workers"]
    if workload.dataset_gib:
        said += [f"{workload.dataset_gib:g} GiB of data{' in memory' if workload.dataset_in_memory else ''}"]
    return ", ".join(said)


def _model(workload: Workload) -> str:
    model = workload.model
    if isinstance(model, Transformer):
        return f"{model.name or 'transformer'} with {model.params / 1e6:,.0f} million parameters"
    if isinstance(model, Vision):
        return f"{model.name} on {model.image_size} x {model.image_size} pixels"
    if isinstance(model, Tabular):
        return f"a table for {model.library}"
    if isinstance(model, Measured):
        return "measured peaks"
    return "a trace of the script"


def _bar(what: str, estimate: Estimate, usable: float, head_room: float) -> Iterator[Text]:
    """The parts as one bar, as long as usable memory or the upper bound, whichever is more; and the legend."""
    scale = BAR / max(usable, estimate.upper)
    parts = sorted(((gib, name) for name, gib in estimate.parts.items() if gib > 0), reverse=True)
    bar, legend = Text(f"{what:<9} "), Text(" " * 10)
    blocks = _BLOCKS if out.encoding.startswith("utf") else _PLAIN_BLOCKS
    drawn, total = 0, 0.0
    for index, (gib, name) in enumerate(parts):
        total += gib
        cells = round(total * scale) - drawn
        drawn += cells
        style, block = _STYLES[index % len(_STYLES)], blocks[index % len(blocks)]
        bar.append(block * cells, style=style)
        legend.append("  " if index else "").append(block, style=style).append(f" {name} {gib:.1f}")
    upper, limit = round(estimate.upper * scale), round(usable * (1 - head_room) * scale)
    rest = "".join("|" if cell == limit else "-" if cell < upper else " " for cell in range(drawn, BAR + 1))
    bar.append(rest.rstrip())
    bar.append(f"  {estimate.point:.1f} GiB in {estimate.phase}, at most {estimate.upper:.1f}", style="bold")
    bar.append(f" of {usable * (1 - head_room):.1f}")
    yield bar
    yield legend


def _candidates(sizing: Sizing, *, every: bool) -> Iterator[RenderableType]:
    rows = sizing.candidates if every else around(sizing.candidates, sizing.chosen or sizing.shown)
    gpus = any(candidate.placement.gpus for candidate in rows)
    table = _table(
        "", "instance", *([">GPU GiB", ">share"] if gpus else []), ">host GiB", ">share", ">USD/hour", "verdict"
    )
    for candidate in rows:
        prediction, chosen = candidate.prediction, candidate is sizing.chosen
        gpu = _need(prediction.gpu if prediction else None, candidate.usable_gpu_gib), _share(candidate.gpu_share)
        table.add_row(
            ">" if chosen else "",
            _instances(candidate),
            *(gpu if gpus else ()),
            _need(prediction.host if prediction else None, candidate.usable_host_gib),
            _share(candidate.host_share),
            _usd(candidate),
            Text(f"{candidate.verdict}{', chosen' if chosen else ''}", style=_VERDICTS[candidate.verdict]),
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


def _attempts(sizing: Sizing) -> Table:
    table = _table(">#", "attempt", "instance", ">GPU", ">host", ">USD at most", "why, and what follows")
    for index, attempt in enumerate(sizing.attempts):
        fit, usd = attempt.fit, attempt_usd(attempt, sizing.region)
        many = f"{attempt.instance_count} x " if attempt.instance_count > 1 else ""
        table.add_row(
            str(index),
            attempt.name,
            f"{many}{attempt.instance_type}{' spot' if attempt.spot else ''}",
            _share(fit.gpu_share if fit else None),
            _share(fit.host_share if fit else None),
            f"{usd:.2f}" if usd is not None else "-",
            Text("\n".join(filter(None, (attempt.reason, _edges(attempt))))),
        )
    return table


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
    longest = max(attempt.max_runtime_seconds for attempt in sizing.attempts)
    estimated = " by estimated prices" if sizing.prices_estimated else ""
    over = f"; over max_price, {limit:.2f}: a plan will be refused" if limit is not None and usd > limit else ""
    limits = f"{sizing.region}, each attempt at most {duration(longest)}"
    return f"a run costs at most {usd:.2f} USD{estimated} ({limits}){over}"


def _table(*headings: str) -> Table:
    """A table without lines. A heading that starts with > is of a column of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        free = heading.startswith("why")
        table.add_column(
            heading.removeprefix(">"),
            justify="right" if heading.startswith(">") else "left",
            no_wrap=not free,
            overflow="fold",
        )
    return table


def _instances(candidate: Candidate) -> str:
    many = f"{candidate.instance_count} x " if candidate.instance_count > 1 else ""
    return f"{many}{candidate.instance_type}"


def _usd(candidate: Candidate) -> str:
    if candidate.usd_per_hour is None:
        return "-"
    return f"{'~' if candidate.price and candidate.price.estimated else ''}{candidate.usd_per_hour:.2f}"


def _need(estimate: Estimate | None, usable: float | None) -> str:
    """``31.3 of 44.3``: the upper bound and usable memory."""
    return f"{f'{estimate.upper:.1f}' if estimate else '-'} of {f'{usable:.1f}' if usable is not None else '-'}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
