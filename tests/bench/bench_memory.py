"""How good the memory prediction is, on published runs, for models it has not seen.

``make bench-memory`` prints the tables and writes ``docs/accuracy.md`` and the bounds that the planner uses,
``python/sagefit/memory/bounds.json``; with ``--check`` it only fails when they are out of date.
"""

from __future__ import annotations

import json
import statistics
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from accuracy import baselines, falls, gpu_rows, lomo, loso, runs  # noqa: E402
from accuracy.verdicts import lived, verdicts  # noqa: E402
from sagefit.memory import Diffusion, bounds, forget  # noqa: E402

PAGE = ROOT / "docs" / "accuracy.md"
BOUNDS = ROOT / "python" / "sagefit" / "memory" / "bounds.json"


# Runs that were collected with those of others.csv and that a job file cannot describe.
UNDESCRIBED = {
    "of denoisers that are not known, or have fp8 weights": 45,
    "of preference and reinforcement learning with tensor parallelism, or with what else is not known": 7,
    "of vision-language models that also hear, or with tensor parallelism": 9,
    "whose sequence length or checkpointing is not published": 9,
    "with tensor or sequence parallelism": 8,
    "of adapters other than LoRA": 5,
    "of training in 8 or 4 bits": 4,
    "with GaLore": 1,
}


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("|" + "|".join(line) + "|" for line in lines)


def percent(share: float, digits: int = 1) -> str:
    """A share as text."""
    return f"{100 * share:.{digits}f} %"


def score_table(scores: dict[str, lomo.Score]) -> str:
    """The scores of groups, a line each."""
    return table(
        ["group", "runs", "models", "median error", "p90", "measured above the bound", "bound / measured"],
        [
            [name, f"{s.runs}", f"{s.models}", percent(s.median), percent(s.p90, 0), percent(s.above), f"{s.upper:.2f}"]
            for name, s in scores.items()
        ],
    )


def decision_table(groups: dict[str, list[lomo.Outcome]], what: str = "source") -> str:
    """Groups of runs whose source was left out, and what choosing a GPU by the bound came to, a line each."""
    head = [what, "runs", "models", "median error", "above the bound", "bound / measured"]
    head += ["GPU too small", "exact", "one size more", "further"]
    body = []
    for name, found in groups.items():
        s, steps = lomo.score(found), loso.decision(found)
        body.append(
            [name, f"{s.runs}", f"{s.models}", percent(s.median), percent(s.above), f"{s.upper:.2f}"]
            + [percent(share, 0) for share in (steps.small, steps.exact, steps.one, steps.further)]
        )
    return table(head, body)


def fresh_tables(fresh: list[runs.Run]) -> dict[str, object]:
    """What is said of runs that nothing was made with."""
    first, now = lomo.at_first_sight("fresh.csv", fresh), lomo.gpu_outcomes(fresh)
    many = {name for name, count in Counter(run.project for run in fresh).items() if count >= _SEVERAL}

    def by_project(found: list[lomo.Outcome]) -> dict[str, lomo.Score]:
        groups: dict[str, list[lomo.Outcome]] = defaultdict(list)
        for outcome in found:
            groups[outcome.run.project if outcome.run.project in many else "projects of one or two runs"].append(
                outcome
            )
        order = sorted(groups, key=lambda name: (name not in many, -len(groups[name]), name))
        return {name: lomo.score(groups[name]) for name in order} | {"all": lomo.score(found)}

    def by_family(found: list[lomo.Outcome]) -> dict[str, lomo.Score]:
        return {name: lomo.score(each) for name, each in loso.by(found, loso.family).items()}

    return {
        "fresh": beside_table(by_project(first), by_project(now)),
        "fresh_families": beside_table(by_family(first), by_family(now)),
        "fresh_runs": len(fresh),
        "fresh_projects": len({run.project for run in fresh}),
        "fresh_unsaid": len(runs.rows("fresh.csv")) - len(fresh),
        "fresh_first": mean_of_projects(first),
        "fresh_now": mean_of_projects(now),
    }


_SEVERAL = 3


def mean_of_projects(found: list[lomo.Outcome]) -> str:
    """Median error and share above the bound, as a mean over projects."""
    groups: dict[str, list[lomo.Outcome]] = defaultdict(list)
    for outcome in found:
        groups[outcome.run.project].append(outcome)
    each = [lomo.score(own) for own in groups.values()]
    return f"{percent(statistics.mean(s.median for s in each))} and {percent(statistics.mean(s.above for s in each))}"


def left_out_tables(found: Sequence[lomo.Outcome]) -> dict[str, str]:
    """By family of models: its sources and all of them, and their mean in words."""
    told = {}
    for family, outcomes in loso.by(found, loso.family).items():
        sources = loso.by(outcomes, lambda run: run.project)
        median, above = loso.mean([lomo.score(each) for each in sources.values()])
        told[f"{family}_sources"] = decision_table(sources | {f"all {family}": outcomes})
        told[f"{family}_mean"] = f"{percent(median)} and {percent(above)}"
    return told


def contexts(seen: Sequence[lomo.Outcome]) -> dict[str, str]:
    """What processes without tensors were published to hold, and what the bound would be without allowing for it."""
    sizes = [float(row["mib"]) / 1024 for row in runs.rows("contexts.csv")]
    above = sum(each.run.measured > each.upper - each.beside for each in seen) / len(seen)
    return {
        "contexts": f"{len(sizes)} figures of others are from {min(sizes):.2f} to {max(sizes):.2f} GiB",
        "without_beside": percent(above),
    }


def beside_table(before: dict[str, lomo.Score], now: dict[str, lomo.Score]) -> str:
    """The scores of groups at first sight and now, a line each."""
    head = ["group", "runs", "models"]
    head += [
        f"{figure}, {when}" for figure in ("median error", "above", "bound / measured") for when in ("first", "now")
    ]
    body = []
    for name, new in now.items():
        old = before[name]
        body.append(
            [
                *(name, f"{new.runs}", f"{new.models}", percent(old.median), percent(new.median)),
                *(percent(old.above), percent(new.above), f"{old.upper:.2f}", f"{new.upper:.2f}"),
            ]
        )
    return table(head, body)


def collected(described: int) -> str:
    """Which share of the collected runs a job file describes, and what the others are."""
    every = described + sum(UNDESCRIBED.values())
    others = ", ".join(f"{count} {what}" for what, count in UNDESCRIBED.items())
    return (
        f"These are {percent(described / every, 0)} of {every} runs that somebody collected from pages, repositories "
        f"and papers. A job file cannot describe the others: {others}."
    )


def mean_of_sources(scores: dict[str, lomo.Score]) -> str:
    """Median error and share above the bound as a mean over sources, each of which counts once."""
    each = [score for name, score in scores.items() if name != "all"]
    medians, above = (statistics.mean(getattr(score, name) for score in each) for name in ("median", "above"))
    return f"{percent(medians)} and {percent(above)}"


def as_trainer(known: Sequence[runs.Run], texts: Sequence[lomo.Outcome]) -> str:
    """What the shares above the bound would be if ms-swift were taken for the Hugging Face Trainer it builds on."""
    project = next(run.project for run in known if run.workload.stack == lomo.FITTED)
    own = loso.outcomes_of(project, known, "hf-trainer")
    every = [outcome for outcome in texts if outcome.run.project != project] + own
    _, mean = loso.mean([lomo.score(each) for each in loso.by(every, lambda run: run.project).values()])
    above, all_above = percent(lomo.score(own).above, 0), percent(lomo.score(every).above)
    return (
        f"If it were\n  taken for the Hugging Face Trainer, on which it builds, {above} of its {len(own)} runs would "
        f"be above the bound,\n  {all_above} of all, and {percent(mean)} as a mean over sources."
    )


def rule_table(known: Sequence[runs.Run], ours: lomo.Score) -> str:
    """Sagefit beside the rules that others use, on the same runs."""
    body = [["**Sagefit**, upper bound for choosing", percent(ours.median), percent(ours.p90, 0), percent(ours.above)]]
    for name, rule in baselines.RULES.items():
        median, p90, below = lomo.rule_errors(known, rule)
        body.append([name, percent(median), percent(p90, 0), percent(below)])
    return table(["rule", "median error", "p90", "measured above what it says"], body)


def rival_table(ours: Sequence[lomo.Outcome]) -> str:
    """Sagefit, with the source left out, beside fitcheck-llm, on the runs that this has words for."""
    told = {row["id"]: float(row["fitcheck_gib"]) for row in runs.rows("rivals.csv")}
    body = []
    for which, drop in (("all", ""), ("not from its own archive", "fitcheck-llm")):
        found = [each for each in ours if each.run.id in told and each.run.project != drop]
        theirs = lomo.score([lomo.Outcome(each.run, told[each.run.id], told[each.run.id]) for each in found])
        mine = lomo.score(found)
        for name, score in (("**Sagefit**, upper bound for choosing", mine), ("fitcheck-llm 0.3.1", theirs)):
            figures = [percent(score.median), percent(score.p90, 0), percent(score.above)]
            body.append([f"{name}, {which}", f"{score.runs}", *figures])
    return table(["tool and runs", "runs", "median error", "p90", "measured above what it says"], body)


def above_list(found: Sequence[lomo.Outcome], digits: int = 1) -> str:
    """Runs that needed more than their bound, a line each."""
    return (
        "\n".join(
            f"- {o.run.model}, {o.run.workload.method}, {o.run.workload.stack}, {o.run.workload.micro_batch} x "
            f"{o.run.workload.sequence_length} ({o.run.id}): measured {o.run.measured:.{digits}f}, bound "
            f"{o.upper:.{digits}f} GiB"
            for o in found
        )
        or "None was above its bound."
    )


def falls_table(found: Sequence[falls.Fall]) -> str:
    """What each remedy took off, measured and predicted."""
    return table(
        ["remedy", "pairs", "measured, median", "predicted, median", "largest difference"],
        [
            [remedy, f"{pairs}", percent(measured, 0), percent(predicted, 0), percent(worst, 0)]
            for remedy, (pairs, measured, predicted, worst) in falls.summary(found).items()
        ],
    )


def kind_of(row: dict[str, str]) -> str:
    """The kind of run, by what an allocator sees of it."""
    if row["kind"] != "text":
        return row["kind"]
    name = {"n": "one GPU", "d": "DDP", "f": "FSDP"}[row["sharding"][0]]
    name += ", lengths vary" if row["lengths"] == "varied" else ""
    return name + (", expandable segments" if row["allocator"] == "expandable" else "")


def lived_table(rows: Sequence[dict[str, str]]) -> str:
    """Which runs lived with how much memory for each byte of tensors at their peak, by kind of run."""
    kinds: dict[str, list[gpu_rows.Needed]] = {}
    for row, needed in gpu_rows.needed(rows):
        kinds.setdefault(kind_of(row), []).append(needed)
    return table(
        ["runs of", "runs", "reserved / allocated, median", *(f"lived with {limit}" for limit in gpu_rows.LIMITS)],
        [
            [name, f"{len(each)}", f"{statistics.median(needed.reserved for needed in each):.2f}"]
            + [percent(sum(needed.lives[limit] for needed in each) / len(each), 0) for limit in gpu_rows.LIMITS]
            for name, each in sorted(kinds.items())
        ],
    )


def held_table(rows: Sequence[dict[str, str]]) -> str:
    """What torch's allocator held for each byte of tensors at the peak, by kind of run."""
    kinds: dict[str, list[float]] = {}
    for row in rows:
        kinds.setdefault(kind_of(row), []).append(float(row["reserved_gib"]) / float(row["allocated_gib"]))
    return table(
        ["runs of", "runs", "median", "p90", "largest"],
        [
            [
                name,
                f"{len(held)}",
                f"{statistics.median(held):.2f}",
                f"{bounds.quantile(held, 0.9):.2f}",
                f"{max(held):.2f}",
            ]
            for name, held in sorted(kinds.items())
        ],
    )


def page() -> str:
    """The text of ``docs/accuracy.md``."""
    known, published = runs.transformer_runs(), runs.published_runs()
    unseen = loso.outcomes(published)
    found = lomo.outcomes(known, published)
    texts = loso.by(unseen, loso.family)["transformers"]
    scores = lomo.scores(found)
    left_out = Counter(row["left_out"] for row in runs.rows("transformers.csv") if row["left_out"])
    judged = verdicts()
    seen = lomo.vision_outcomes(runs.vision_runs())
    measured = runs.cpu_runs()
    on_cpu = lomo.cpu_outcomes(measured)
    on_gpu = runs.gpu_rows()
    gpu_runs, others = runs.gpu_runs(), runs.other_runs()
    denoisers = [run for run in gpu_runs if isinstance(run.workload.model, Diffusion)]
    others_of_gpu = [run for run in gpu_runs if not isinstance(run.workload.model, Diffusion)]
    gpu_first = lomo.gpu_scores(lomo.at_first_sight("gpu.csv", others_of_gpu))
    first, ids = lomo.at_first_sight("others.csv", others), {run.id for run in others}
    now = [outcome for outcome in unseen if outcome.run.id in ids]
    fresh = runs.fresh_runs()
    said = lived(unseen)
    outside = [float(row["outside_gib"]) for row in on_gpu if row["world_size"] == "1"]
    unsaid = Counter(reason for row in on_gpu if (reason := runs.unsaid(row)))
    return TEMPLATE.format(
        **left_out_tables(unseen),
        **contexts(loso.by(unseen, loso.family)["vision"]),
        classes=decision_table(loso.by(unseen, lomo.gpu_class), "what is trained"),
        published=len(published),
        projects=len({run.project for run in published}),
        lived=f"{said.total():,}",
        lived_fits=percent(said["FITS"] / said.total()),
        lived_ooms=percent(said["OOM"] / said.total()),
        transformers=score_table(scores),
        vision=score_table(
            {
                "timm training script, A100": lomo.score([o for o in seen if o.run.id.startswith("T")]),
                "milabench, L40S": lomo.score([o for o in seen if o.run.id.startswith("M")]),
                "vision": lomo.score(seen),
            }
        ),
        others=beside_table(lomo.source_scores(first), lomo.source_scores(now)),
        others_classes=beside_table(lomo.gpu_scores(first), lomo.gpu_scores(now)),
        others_runs=len(others),
        others_sources=len({run.source for run in others}),
        collected=textwrap.fill(collected(len(others)), 120),
        others_first=mean_of_sources(lomo.source_scores(first)),
        **fresh_tables(fresh),
        gpu=beside_table(gpu_first, lomo.gpu_scores(lomo.gpu_outcomes(others_of_gpu))),
        denoisers=score_table(lomo.gpu_scores(lomo.gpu_outcomes(denoisers))),
        gpu_runs=len(on_gpu),
        gpu_drawn=sum(row["series"] == "drawn" for row in on_gpu),
        gpu_unsaid=", ".join(f"{count} {reason}" for reason, count in unsaid.most_common()),
        gpu_software=" and ".join(sorted({f"{row['gpu']}, torch {row['torch']}" for row in on_gpu})),
        held=held_table(on_gpu),
        limits=lived_table(runs.rows("gpu.csv")),
        outside=f"{min(outside):.2f} to {max(outside):.2f} GiB (median {statistics.median(outside):.2f})",
        cpu=score_table(lomo.cpu_scores(on_cpu)),
        cpu_above=above_list([o for o in on_cpu if o.run.measured > o.upper], digits=2),
        falls=falls_table(list(falls.falls(measured))),
        releases=" and ".join(sorted({row["torch"] for row in runs.rows("cpu.csv")})),
        polluted=sum(bool(row["left_out"]) for row in runs.rows("vision.csv")),
        rules=rule_table([outcome.run for outcome in texts], lomo.score(texts)),
        rivals=rival_table(texts),
        texts=len(texts),
        as_trainer=as_trainer(published, texts),
        verdicts=table(
            ["model", "configuration", "GPU", "what happened", "point GiB", "bound GiB", "verdict"],
            [
                [v.model, v.configuration, v.gpu, v.happened, f"{v.point:.1f}", f"{v.upper:.1f}", v.verdict]
                for v in judged
            ],
        ),
        wrong=sum(v.happened == "OOM" and v.verdict == "FITS" for v in judged),
        ooms=sum(v.happened == "OOM" for v in judged),
        left_out="\n".join(f"- {count}: {reason}" for reason, count in left_out.most_common()),
        above=above_list([o for o in found if o.run.measured > o.upper]),
        candidates=f"{min(lomo.CANDIDATES)} to {max(lomo.CANDIDATES)}",
    )


def bounds_json() -> str:
    """The text of ``bounds.json``."""
    found = lomo.table(runs.published_runs(), runs.cpu_runs())
    rows = [f"  {json.dumps(group)}: {json.dumps(bound._asdict())}" for group, bound in found.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


TEMPLATE = """\
# How accurate the memory prediction is

<!-- Written by `make bench-memory`; edit tests/bench/bench_memory.py instead. -->

This page compares predictions with measured peaks: published ones whose configuration is known, and those of this
project's own runs. `make bench-memory` repeats all of it.

## Sources that were left out

Nobody has measured your next job. So every run here is predicted as if nothing of its project were known: its bound
comes from the runs of all other projects, and the planner forgets what it learned from the project's own runs. There
are {published} published runs of {projects} projects ([transformers.csv](../tests/accuracy/transformers.csv),
[others.csv](../tests/accuracy/others.csv), [vision.csv](../tests/accuracy/vision.csv)).

The last four columns show the decision. They compare two GPUs of SageMaker: the smallest whose memory, less 10 %
head-room, holds the bound, and the smallest that would have held the run.

### Transformers

{transformers_sources}

As a mean over sources, median error and share above the bound are {transformers_mean}.

Some figures of this section depend on choices that were made with the same runs:

- How much memory ms-swift needs for logits was read off its own runs. Without them its stack counts as unknown, and an
  unknown stack needs what the worst of the known ones needs. {as_trainer}
- There were three ways to make a bound: from runs pooled, from sources weighted alike, and from the worst source. The
  last was taken, which gives one of the widest bounds.
- LoRA under Accelerate's FSDP in mixed precision has an fp32 stream between its layers. This was read off 12 runs of
  fms-acceleration, all of one model, and it is not taken away here.

#### Beside what users have today

These are the same {texts} runs, and what other rules say of them. The rules answer other questions: memory of weights
and optimizer without activations, or memory for loading a model. The table shows what they are worth for choosing an
instance.

{rules}

fitcheck-llm is a tool for the same question, for one dense decoder on one GPU
([rivals.csv](../tests/accuracy/rivals.csv), made by `tests/accuracy/measure_rivals.py`). Its constants were measured
with the runs of its own archive.

{rivals}

### Models of images

{vision_sources}

As a mean over sources, the two figures are {vision_mean}.

GPUMemNet measured on an A100 on which a process holds 1.7 GiB without any tensor, for small and large models alike. How
much a process holds depends on the releases of CUDA and torch, and no job file tells them: {contexts}
([contexts.csv](../tests/accuracy/contexts.csv)). So the bound adds the difference between the predicted value and the
highest of these figures. GPUMemNet's own 1.7 GiB is not among them here. Without this addition {without_beside} of
the runs would be above the bound. The addition was made after this was known. Most of the figures were looked for then,
and the highest of all that were found was taken.

ViTDet was first predicted by a factor on its backbone, at 31 to 96 % of what its runs need. After that it was traced
with the published configuration. Its runs on LVIS are still predicted 15 to 19 % low: LVIS has 1,203 classes and many
objects in an image, and the trace has the numbers of COCO.

### Diffusion models

{diffusion_sources}

As a mean over sources, the two figures are {diffusion_mean}. A family of fewer than three sources has a fixed margin
as its bound, and both sources are within it.

### By what is trained

Sharded runs use FSDP or DeepSpeed's ZeRO. The others use one GPU.

{classes}

### How a bound is made

1. For each source, the ratio of measured to predicted is taken of all its runs, and of these ratios the conformal 95 %
   quantile.
2. The bound is a conformal 90 % quantile over the sources. With fewer than nine sources this is the largest: what the
   worst source would have needed.

So if the next of K + 1 sources is like the others, it stays within the bound with a chance of K in K + 1. A group
(method and stack) has a bound of its own if it has 20 runs of 3 models by 3 sources. Otherwise the wider of two bounds
holds: that of its method, and that of all transformers. For detectors and segmenters that were not traced, the bound of
those that were traced is multiplied by the bound of the backbone factor, which `tests/accuracy/by_backbone.py` compares
with the traces of three libraries. [bounds.json](../python/sagefit/memory/bounds.json) has all bounds.

## What was said at first sight

{others_runs} of these runs, of {others_sources} sources, were collected after the formulas had been made. *First* is
what the planner said of them, with the bounds of that day, before anybody had compared it with a row
([first_sight.csv](../tests/accuracy/first_sight.csv)). *Now* is what it says today, with bounds of other sources. The
terms that were added in between came from [this project's own runs on a GPU](#this-projects-own-runs-on-a-gpu) and
from traces.

Somebody who had not built the planner described each run in the words of a job file. The exceptions are diffusion
models, YOLO, SegFormer, preference training and vision-language models: the planner's builders described them, from
the scripts and configurations that ran. The days of first sight:

- 2026-11-28: diffusion models, YOLO, SegFormer, preference training, vision-language models, 8-bit weights;
- 2026-11-29: YOLOv5 with masks, Lumina-Image, HiDream, Kandinsky;
- 2026-11-27: all others.

What was not blind:

- Runs of FSDP are `zero3` in what was said first: a job file had no other word then.
- Three rows of YOLOv8 had been looked at while its loss was traced. The number of boxes was then raised from 60 to 120,
  which four joined images of COCO hold at most. This moves these rows by 1 to 4 %.
- MMDetection's batch norms keep their input. They were traced after its rows had been predicted 15 to 30 % low with the
  batch norms of torchvision.
- The peaks of preference training, vision-language models, 8-bit weights, YOLOv5 with masks, Lumina-Image, HiDream and
  Kandinsky were known while their losses, towers, weights and configurations were described. No figure came from them.
- Most runs of preference training and vision-language models have the script's limit as their length, although their
  data are shorter.

{collected}

{others}

As a mean over sources, median error and share above the bound were {others_first} at first sight.

For the diffusion runs, nothing was changed in the planner after the first look. Ten of them were described anew,
because they had not run as first described:

- SimpleTuner's page gives the size of its validation images. Six runs trained on the smaller images of their
  configuration's dataset.
- finetrainers' four runs of all parameters on one GPU start with 16.4 GiB, while its LoRA runs start with 12.9: the
  denoiser was in fp32. Its scripts load the encoders and free them unused. `unloaded` describes encoders that have
  encoded, which makes the prediction 19 % high with checkpointing and one video.

## Projects that nothing was made with

On 2026-12-01, somebody who had not built the planner and had seen no prediction collected {fresh_runs} more runs, of
{fresh_projects} projects that no formula, table or bound here was made with, and described each in the words of a job
file ([fresh.csv](../tests/accuracy/fresh.csv), with what is doubtful of each). {fresh_unsaid} further runs cannot be
said in a job file. No bound is made of these runs. What the planner said of them was kept before anybody had looked at
a row. This is the best answer to the question what a prediction is worth for a project that is new to the planner, and
it is worse than the first table of this page.

{fresh_families}

{fresh}

As a mean over projects, median error and share above the bound were {fresh_first} at first sight.
They are {fresh_now} now.

What was changed after the first look, by cause:

- **Images of detectors.** This project's own pages said `image_size: 800` of a detector, and so did the descriptions.
  Photographs of COCO are resized until the *shorter* side has 800 pixels, so a square of 800 has 40 % fewer pixels. A
  job file can say `height` and `width` now, detectors without a size count as 800 x 1333, and the 17 runs of whose
  images only the shorter side had been given are described anew.
- **Loading.** LitGPT loads weights into a model that FSDP shards by gathering all of it on each GPU. This was in
  no prediction, and is the peak of its four LoRA runs over several GPUs.
- **Buffers.** A script that starts DeepSpeed by itself makes its buffers in full, even if little is trained.

What is still predicted too low:

- mmrotate's rotated boxes. Images of DOTA hold hundreds of objects, and what compares them with the anchors probably
  decides: the two fp16 runs need nearly as much as those in fp32.
- CogVideo: the table of its own SAT trainer, whose parallelism and encoders a job file cannot say, and its README,
  whose figures may be requirements.
- YOLO: 7 of 16 runs need 1.3 to 1.9 times what is predicted. Those of them whose release of torch is known ran on 1.10
  to 2.0; the two that are known to have run on a later one need 0.8 and 1.0 times.
- ChatGLM-Finetuning, MiniCPM and EasyCV. Why is not known. For ChatGLM, attention was described as fused, and probably
  is not.

## Models that were left out

In the next two sections, every figure is for a model that was left out: its bound comes from the runs of all other
models, including those of the same source. Some published figures do not count the CUDA context, or what the allocator
reserves; they are compared with predictions without these parts.

## Transformers without the model

{transformers}

`transformer` is all runs of [transformers.csv](../tests/accuracy/transformers.csv). Nine of ten errors are below p90.

### Measured above the bound

{above}

## Vision models without the model

{vision}

The constants are the device memory without tensors of each GPU, and one factor. They are fitted again without the
model that is judged. The sheet of the first line states neither precision nor optimizer, so the script's defaults
were assumed: fp32, and SGD with momentum. {polluted} of its rows are at the limit of the GPU and are left out. Rows
whose memory does not grow with the batch are not in the table either: there the run had retried after running out of
memory.

`vision_models.csv` was made by `tools/trace_vision.py` with torch 2.13.0, torchvision 0.28.0 and timm 1.0.31. It
traces one training step of every model on the meta device and replays PyTorch's caching allocator. The workspace of a
convolution, three times input and output for dense kernels larger than 1 x 1, was settled while looking at these
runs; every factor from 0 to 4 gives a median between 1.7 and 2.1 %. The memory of a process without tensors does not
carry over: it depends on the age of the CUDA software, and the runs name only the GPU. With constants from the L40S
runs alone the A100's are predicted 15 % low; the other way round the L40S's are predicted 4 % high. Some families
miss: ResNet-34 is 19 to 34 % low from batch 32 on, EfficientNet-EM and -EL are 27 to 39 % low, VGG-13 and DarkNet-21
10 to 28 % high.

Detectors and segmenters were traced by `tools/trace_heads.py` with their losses, by the same torch and torchvision,
transformers 5.24.0 and Ultralytics 8.4.190 ([memory.md](memory.md#models-of-images)). No constant was fitted to runs of
them.

## This project's own runs on a GPU

These are {gpu_runs} runs on one GPU ({gpu_software}).
`tests/accuracy/measure_gpu.py` trained models with random weights for a few optimizer steps on random data, each in a
process of its own. It read what torch's allocator reserved and what the driver counts for the process
([tests/accuracy/gpu.csv](../tests/accuracy/gpu.csv)). {gpu_drawn} configurations were drawn at random; the others are
series in which one thing changes.

*First* is what the planner said of them when nothing had been made with them. Terms of activations, DDP and FSDP were
then read off the peaks of their phases. So *now* says how well the formulas describe these runs and is no longer a test
of them. Bounds come from published runs only.

{gpu}

If a batch has sequences of different lengths, `sequence_length` is the longest. Sharded runs are rank 0 of a process
group whose collectives answer at once without moving data. Such a rank allocates what it would on several GPUs, but has
no buffers of NCCL, and is compared without them. The table leaves out what a job file cannot describe:
{gpu_unsaid}.

DETR, RT-DETR, YOLOS and SegFormer have no first sight: a job file could not name them then, and some of these runs were
looked at while they were traced. Detectors and segmenters were run without pretrained weights (`pretrained: false`).

Diffusion models come from traces ([memory.md](memory.md#diffusion-models)). This table shows how the traces describe
runs on the same GPU. It is no first sight, because the traces were compared with these runs while the tracer was
written. Latents and embeddings were random, so no encoder is in these figures. The adapters had a dropout of 0.05; the
trace has none.

{denoisers}

Stable Cascade's LoRA is predicted 10 to 16 % high, Wan 1.3B without checkpointing 5 to 14 % high.

The next table shows reserved over allocated memory at the peak. The planner takes 1.06 for all that is not weights or
optimizer state. For a rank of FSDP it assumes that the allocator comes to hold the largest size of each part
([memory.md](memory.md#phases-and-parts-of-a-gpu)):

{held}

Before a run dies, the allocator gives back what it holds beside tensors, as far as it can. So half of the random runs
and half of the sharded ones, chosen by a checksum, ran again with a limit (`set_per_process_memory_fraction`). The
limit was a multiple of what their tensors needed. The table shows the share that lived; runs that never reserve as
much as the limit count as well:

{limits}

On one GPU a run needs most of what it reserves. Sharded runs, and those with expandable segments, can do with much
less. A run that lived in this way freed memory and took it anew, which costs time; how much was not measured. So an
attempt is **RISKY**, and not **OOM**, if it is only over the limit by what FSDP's allocator holds beyond the phase
that needs most.

A process held {outside} beside its allocator, for the CUDA context, kernels and
libraries. The planner takes 1 GiB.

## Training on the CPU

Without a GPU, as on the embedded cloud, the tensors are in the host's memory. These runs are this project's own:
`tests/accuracy/measure_cpu.py` trained small models for three optimizer steps on random data, with two threads, torch
{releases} and glibc 2.36 on x86-64. It read the peak resident size of the process
([tests/accuracy/cpu.csv](../tests/accuracy/cpu.csv)). Transformers have 4 to 57 million parameters and peaks from 0.6
to 2.3 GiB.

{cpu}

The bounds are of models that were left out, and at least 15 % above the predicted value. The predicted values are not
blind: the memory of a process, and what malloc holds and cannot use, were read off these runs. Most of the error is
what malloc holds, which depends on the order in which tensors are freed. Vision models are predicted with the
allocator and the convolution workspaces of a GPU, and so mostly too high.

{cpu_above}

The next table shows how much a remedy lowers the peak, in percent of the measured peak before it, over pairs of runs
that differ in nothing else:

{falls}

LoRA saves what trained weights need. For llama-12m, whose activations are the largest part, the measured peak rose:
malloc held more. With a fixed threshold of malloc the peak was below that of full fine-tuning.

## Verdicts

Of these runs only the outcome is published. Head-room is the default of 10 %. {ooms} ran out of memory; {wrong} of
them would have been called FITS. Of the published runs that ended, {lived} were on a GPU whose memory is published.
With the bounds of other sources, {lived_fits} of these would have been called FITS and {lived_ooms} OOM.

{verdicts}

## What these figures do not show

These runs are left out, because their configuration is not published in full or cannot be said in a job file:

{left_out}

The figures have these limits:

- Published runs differ in what they count and in allocator settings. Two runs of one configuration differ by 5 to 10 %
  because of the caching allocator alone.
- The project's own runs on a GPU are of one GPU, one release of torch, and small batches of random data over a few
  steps. They cannot show memory that grows with time.
- The structure of the formulas was settled while looking at these runs. One constant was read off the runs of one stack
  (bytes of logits under `{{stack}}`, from {candidates}); it is chosen again for every model that is left out.
- Runs of one model under one software are correlated: many runs of few models say less than their number.
- Nothing was measured here for mixtures of experts, encoder-decoders other than T5, FSDP over several hosts, Megatron,
  and host memory beside a GPU. Bounds of that host memory are margins of 15 % (30 % for tabular data), not quantiles.
- On the CPU nothing was run that is larger than the models above, on another release of torch or C library, or on
  several hosts; and no traced model, evaluation, checkpoint or loader workers.
""".replace("{{stack}}", lomo.FITTED)


def main(arguments: list[str]) -> int:
    """Write both files, or with ``--check`` compare them."""
    # The page shows verdicts with the bounds that stand in the file.
    if not _agrees(BOUNDS, bounds_json(), write="--check" not in arguments):
        return 1
    forget()
    bounds.table.cache_clear()
    bounds.load.cache_clear()
    text = page()
    if not _agrees(PAGE, text, write="--check" not in arguments):
        return 1
    print(text)
    return 0


def _agrees(path: Path, text: str, *, write: bool) -> bool:
    """Whether the file holds ``text``, now that it is written if asked."""
    if write:
        path.write_text(text, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        print(f"{path.relative_to(ROOT)} is out of date; make bench-memory writes it")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
