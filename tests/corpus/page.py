"""Writes docs/failures.md: ``PYTHONPATH=tests python -m corpus.page``. The tests compare it with what is committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from corpus import ablation
from corpus.scoring import MEMORY, SPLITS, Text, answers, any_memory, by_itself, load, score
from sagefit.failures import CLASSES, FULL, REMEDIES, ROOMY, TAIL_BYTES, table
from sagefit.paths import ROOT
from sagefit_launcher.growth import LEAST, SHARE, STRAIGHT
from sagefit_launcher.last_words import FAR
from sagefit_launcher.log_lines import LONGEST, TAIL
from sagefit_launcher.patterns import CREATE_ERROR, REASON, SECONDARY_STATUS
from sagefit_launcher.verdict import last_words

PAGE = ROOT / "docs/failures.md"
MEANS = {
    "gpu_memory": "a GPU's memory was full, or that of another accelerator",
    "host_memory": "the instance's memory was full, or the kernel killed a process for it",
    "shared_memory": "`/dev/shm` was full, through which loader workers hand over batches",
    "disk": "a volume was full",
    "capacity": "AWS had no such instance",
    "quota": "the account may not have that many of them",
    "spot": "a spot instance went away, or none came in time",
    "time": "`max_runtime` was over",
    "stopped": "somebody, or a signal, stopped it",
    "data": "an input was missing, damaged, of another kind, or has values that the script cannot take",
    "permission": "a role, or a user of the container, may not do what was asked",
    "internal": "a fault of the service or of the hardware",
    "code": "anything else: the script, its packages, its arguments",
}
# How the patterns of that day did on texts they had not been written from; what they missed is told since.
FIRST_SEEN = (
    ("held-out", 133, 131),
    ("fresh 1: rare tools and odd wording, on purpose", 28, 20),
    ("fresh 2: the same", 8, 5),
    ("fresh 3: whatever three searches found", 15, 10),
    ("fresh 4: whatever five searches found", 14, 12),
    ("fresh 5: whatever three searches found", 9, 9),
    ("fresh 6: whatever four searches found", 16, 13),
    ("fresh 7: thin classes and rare tools, fourteen searches", 62, 44),
    ("fresh 8: SageMaker's algorithms, spot, eviction, six searches", 21, 11),
    ("fresh 9: PaddlePaddle, vLLM, Spark, boosted trees, ten searches", 22, 16),
    ("fresh 10: clouds' quotas, torchrun, TensorFlow, hubs, seven searches", 28, 25),
    ("fresh 11: MXNet, Ray, ggml, Chinese threads, four searches", 17, 13),
    ("fresh 12: ordinary crashes, three searches", 10, 10),
    ("fresh 13: ordinary wordings, twenty searches, with words", 40, 36),
    ("fresh 14: lacks of memory in rare tools, six searches, with words", 20, 17),
    ("fresh 15: the same, five searches, with words", 13, 12),
    ("fresh 16: PaddlePaddle, Julia, basecallers, plain bugs, seven searches, with words", 14, 12),
)
# Lacks of memory of the rounds that the vocabulary had not seen: how many, told by patterns only, and with words.
UNSEEN = (("fresh 13", 21, 18, 18), ("fresh 14", 18, 12, 16), ("fresh 15", 9, 4, 8), ("fresh 16", 5, 2, 3))
# Rounds that somebody else collected and labelled, which were scored before anybody here had read a text of them.
OF_OTHERS = (
    (17, "2026-11-27", "89 public threads and pages, 14 constructed; by people who do not work on Sagefit"),
    (18, "2026-11-27", "104 public threads, by somebody who had not seen a pattern; names and numbers are changed"),
    (
        19,
        "2026-11-29",
        "122 public threads, by somebody else who had not seen a pattern, with more of other clouds and schedulers; 25 "
        "are short or abridged",
    ),
    (20, "2026-11-29", "122 public threads, by one more who had not seen a pattern; 16 are one or two lines"),
    (
        21,
        "2026-11-29",
        "115 public threads, by one more who had not seen a pattern; 35 are one or two lines, and for 24 of those "
        "collected the collector held a second class for fair",
    ),
    (
        22,
        "2026-11-29",
        "121 public threads, by one more who had not seen a pattern, mostly of old and rare tools, many cut off; 18 of "
        "those collected are one or two lines",
    ),
    (
        24,
        "2026-11-29",
        "145 small jobs without a GPU that one more who had not seen a pattern wrote, and let fail, with some sixty "
        "libraries, 46 of them so that something else is mentioned or survived before: the cause is what was done, not "
        "what a thread holds for it. Four that wait for a peer, a loader or a server in vain were to be *time*, which "
        "here is a limit of time alone",
    ),
    (
        25,
        "2026-11-30",
        "144 of 146 more jobs without a GPU that one more who had not seen a pattern wrote, and let fail, half of them "
        "so that something else is mentioned or survived before, or that much is printed after the cause; two are left "
        "out, whose shortened logs are those of others",
    ),
    (
        26,
        "2026-11-30",
        "156 of 159 more jobs without a GPU, by one more who had not seen a pattern; in 51 something else is mentioned "
        "or survived before; some thirty are imitations of what needs a GPU, a cluster or a cloud; three are left out, "
        "whose shortened logs are those of others",
    ),
    (
        27,
        "2026-11-30",
        "171 of 174 more jobs without a GPU, by one more who had not seen a pattern; in 89 something else is mentioned "
        "or survived before; 24 logs are imitations of what needs a GPU, a cluster or a cloud; three are left out, "
        "whose shortened logs are those of others",
    ),
    (
        28,
        "2026-11-30",
        "170 of 174 more jobs without a GPU, by one more who had not seen a pattern; in 101 something else is "
        "mentioned or survived before, or the cause is told in odd words; 25 logs are imitations; four are left "
        "out, whose shortened logs are those of others",
    ),
)
# A round whose texts are files of other projects, which stay there. Of each answer: texts rightly called memory, all
# that are called so, all that are of memory, and those rightly answered of any class.
NOT_KEPT = (
    23,
    "2026-11-29",
    "126 logs of 76 public repositories of people who train, by one more who had not seen a pattern, found by their "
    "error lines, so that odd wordings are rarer in it; they are not kept here, so there is no *now*",
    126,
    {"diagnose": (45, 45, 45, 112), "machine": (39, 39, 45, 101)},
)
KNOWN = (
    (
        "the launcher, in the container",
        "the log, how the process ended, memory, disks and GPUs",
        "writes `sagefit: CLASS: EVIDENCE` as the failure reason",
    ),
    (
        "the state machine",
        "the status and the first 1,024 characters of the failure reason",
        "the launcher's class if it is there, else by the table",
    ),
    ("`sagefit diagnose`", "what you give it", "class, confidence, evidence, what was rejected, remedies"),
)
_FIGURES = ("memory: precision", "memory: recall", "accuracy, all classes")
FRESH = sum(name.startswith("fresh") for name, _, _ in FIRST_SEEN)
_WHO = (("diagnose", "`diagnose`"), ("machine", "state machine by itself"))
NAMES = {"held_out": "held-out"}


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _classes() -> str:
    rows = [
        (f"`{name}`", MEANS[name], "<br>".join(REMEDIES[name]).replace("<", "&lt;").replace("&lt;br>", "<br>"))
        for name in CLASSES
    ]
    return _table(("class", "means", "what `diagnose` proposes"), rows)


def _first_sight() -> str:
    rows: list[tuple[object, ...]] = []
    last, day, source, count, counts = NOT_KEPT
    told_of = sorted([*((number, source) for number, _, source in OF_OTHERS), (last, source)])
    for who, name in _WHO:
        both, told, real, right = counts[who]
        then = map(_percent, (both / told, both / real, right / count))
        rows.append((f"{last}, {day}", name, count, *then, "-", "-", "-"))
    for number, day, _ in OF_OTHERS:
        texts = [text for text in load("others") if text.batch == number]
        for who, name in _WHO:
            before = answers(texts, lambda text, who=who: text.first[who])  # type: ignore[misc]
            after = answers(texts, by_itself) if who == "machine" else score(texts)
            shares = (*ablation.memory(before), before.accuracy, *ablation.memory(after), after.accuracy)
            rows.append((f"{number}, {day}", name, len(texts), *map(_percent, shares)))
    rows.sort(key=lambda row: str(row[0]))  # stable: of a round in the order of _WHO
    head = ("round", "who", "texts", *(f"{what}, {when}" for when in ("first", "now") for what in _FIGURES))
    sources = "\n".join(f"- Round {number}: {source}." for number, source in told_of)
    return f"{_table(head, rows)}\n\n{sources}"


def _by_itself() -> str:
    texts = load("others")
    logs, reasons = [text for text in texts if not text.reason], [text for text in texts if text.reason]
    bare = [replace(text, log="") for text in logs]
    measured = [
        ("a log, and the launcher was there", logs, lambda text: last_words(text.log.splitlines())[0]),
        ("a log, of which the training toolkit copies the end into the reason", logs, by_itself),
        ("a log, and a reason that has an exit code only", bare, by_itself),
        ("a failure reason of SageMaker or another service", reasons, by_itself),
    ]
    rows = []
    for name, given, told in measured:
        result = answers(given, told)
        rows.append((name, len(given), *map(_percent, (*ablation.memory(result), result.accuracy))))
    return _table(("the state machine is given", "texts", *_FIGURES), rows)


def _sources() -> str:
    measured = [
        ("patterns of other repositories", ablation.with_patterns_of_other_sources(words=False)),
        ("the same, then words", ablation.with_patterns_of_other_sources(words=True)),
    ]
    rows = [(name, *map(_percent, ablation.memory(result)), _percent(result.accuracy)) for name, result in measured]
    return _table(("", *_FIGURES), rows)


def _scores() -> str:
    rows = []
    for split in SPLITS:
        result = score(load(split))
        hard = sum(text.hard for text in load(split))
        kinds = [f"{_percent(result.precision(name))} / {_percent(result.recall(name))}" for name in MEMORY]
        rows.append((NAMES.get(split, split), result.texts, hard, _percent(result.accuracy), *kinds))
    return _table(("part", "texts", "hard", "accuracy", *(f"`{name}`" for name in MEMORY)), rows)


def _words() -> str:
    measured = [
        ("patterns of earlier rounds", ablation.with_earlier_patterns(words=False)),
        ("the same, then words", ablation.with_earlier_patterns(words=True)),
        ("words, and no pattern at all", ablation.without_a_table(words=True)),
    ]
    rows = [(name, *map(_percent, ablation.memory(result)), _percent(result.accuracy)) for name, result in measured]
    return _table(("", *_FIGURES), rows)


def _unseen() -> str:
    together = (
        "together",
        sum(of for _, of, _, _ in UNSEEN),
        sum(patterns for _, _, patterns, _ in UNSEEN),
        sum(words for _, _, _, words in UNSEEN),
    )
    return _table(
        ("lacks of memory", "texts", "right, by patterns", "right, by patterns, then words"), [*UNSEEN, together]
    )


def _naive(texts: Sequence[Text]) -> str:
    rows = []
    for name, naive in (("the naive rule", True), ("Sagefit", False)):
        result = any_memory(texts, naive=naive)
        cells = [result.confusion[pair] for pair in (("memory", "memory"), ("memory", "other"))]
        cells += [result.confusion[pair] for pair in (("other", "memory"), ("other", "other"))]
        shares = (_percent(result.precision("memory")), _percent(result.recall("memory")))
        rows.append((name, *cells, *shares))
    head = ("", "memory, told", "memory, missed", "other, taken for memory", "other, told", "precision", "recall")
    return _table(head, rows)


def _confusion(texts: Sequence[Text]) -> str:
    counts = score(texts).confusion
    rows = []
    for label in CLASSES:
        caught = [text for text in texts if text.label == label]
        told = [counts[label, answer] or "" for answer in CLASSES]
        rows.append((f"`{label}`", *told, sum(text.naive() for text in caught), len(caught)))
    return _table(("really", *(name.replace("_", " ") for name in CLASSES), "naive: memory", "texts"), rows)


def page() -> str:
    """The page."""
    texts = [text for split in SPLITS for text in load(split)]
    machine = sum(row.where in (*REASON, CREATE_ERROR, SECONDARY_STATUS) for row in table())
    first = [(name, f"{right} of {of}", _percent(right / of)) for name, of, right in FIRST_SEEN]
    return f"""# What ended a job

<!-- Written by tests/corpus/page.py; edit that instead. -->

Every failure has one of {len(CLASSES)} classes. One table tells them from texts,
[failures.json](../modules/training-job/failures.json): Terraform makes the state machine's Choice rules of {machine} of
its {len(table())} rows, the launcher carries it into the container, and `sagefit diagnose` reads it on your machine.

{_classes()}

A run goes on with the attempt that `next` of the failed attempt names for the class, and ends when it names none
([job-file.md](job-file.md#attempts)). A *create* request that is refused for `permission` or `internal` is repeated
first, eight times, because new roles take seconds to work. `code` without an entry in `next` never repeats anything:
another instance would fail alike.

## Who knows what

{_table(("", "sees", "tells"), KNOWN)}

All of these witnesses are heard. What is certain stands above what is only likely; among the same, the order decides:

1. the error of a create request
2. a secondary status that ends a job (`MaxRuntimeExceeded`, ...)
3. the launcher's own words; that the script failed is certain only where an error's name or a pattern shows it
4. the failure reason, when it says more than an exit code or "the script failed"
5. a cloud's notice in the log that it takes the machine back, where a signal ended the script
6. the end of the log, of every host
7. the kernel's counter of what it killed for memory in the container
8. a kill (exit code 137, -9 or 247)
9. how full memory, GPU memory and disks were: a `code` that nothing shows yields to a host that was at its limit

What was heard and not believed is kept with the reason, as `rejected` of `--json`: "the script went on after it",
"host memory at most 31 % full", "it is only likely, and the log is certain".

## The end of a log

The last {TAIL} lines count, {TAIL_BYTES // 1_000_000} MB at most and {LONGEST} characters of each, without colours and
prefixes, and out of the JSON or CSV of CloudWatch's exports. They are read backwards to the failure that ended the
script:

- A failure that the script **survived** does not count: it says so (skipping, retrying, falling back), steps or epochs
  follow, {FAR} lines of talk, or another exception that it did not lead to. What a job prints while it goes down
  (NCCL's watchdogs, stack frames, signals) is no talk.
- A **warning** counts only where nothing else is said after it.
- An exception **raised from** another leads to that; one raised **while another was handled** does, too, but what it
  leads to is only likely. So does an **echo**, which only repeats that something failed: torchrun's summary, NCCL's
  errors, a broken pipe, cuBLAS's and cuDNN's vaguer codes; also where the text ends within its name.
- **Who speaks**, a host or a rank, is read from a line's prefix alone.
- Of **several hosts** the one whose log says most is the cause; the others lost a peer.
- Who only **lost a peer** ("rank 1 closed the connection"), or points to what stands above, says nothing of the cause.
- A **guess** is no fact ("maybe it ran out of memory").
- What only **mentions** memory (`pin_memory`, a memory format, a help text, Triton's "shared memory") matches nothing.
- Where **no pattern** matches, [words](#words) decide.

### Words

Tools word the same failure in ever new ways, but with few words. The last failed line that no pattern knows is read by
a small vocabulary: does it say, as a fact, that memory could not be allocated, is exhausted, not enough, exceeded? Then
words for a device (`cuda`, `vram`, `hbm`, ...), in it or in the lines just before, make it `gpu_memory`, those for
`/dev/shm` `shared_memory`, else it is `host_memory`. Likewise space that is full is `disk`, an input path that is
missing, or a file that is damaged, `data`, a refused access to a service or a path `permission`, what somebody ended
`stopped`, and so for time, spot, quota, capacity and faults of the service. Conditions, advice and
denials ("if you run out of memory", "to avoid", "no OOM") are no facts. The answer has confidence C, the line as
evidence, and the rule in place of a pattern: `words: memory + gpu`.

Where the words say nothing, **who raised the exception** may: a library that only reads files of data (`tarfile`,
`wave`, Pillow, h5py, ...), the part of a larger one that reads or checks them (`pandas/io`, scikit-learn's validation),
or an exception whose own name says that something is damaged. Then it is `data`, with confidence C, and the rule is
`words: a reader's exception`. A missing file, a wrong type of an argument and what has a number of the operating system
are none of these.

## Reading `sagefit diagnose`

```console
$ sagefit diagnose RUN
$ sagefit diagnose --reason "AlgorithmError: , exit code: 1" --log train.log --exit-code 1 --json
$ sagefit diagnose -
```

`-` reads a log from standard input, such as that of `kubectl logs`: the job need not be Sagefit's, nor on AWS. The
lines **around** the cause are shown with their numbers, the host and the rank; `around` of `--json` has them. Of a
processing step, what to `try` are the step's own fields.

Of a run, `diagnose` also shows memory over time against the limit, the step that the log reached, the file that was
saved last, and the training time and the money that are lost with what came after it. Then come **changes** of the job
file as diffs, the cheapest first, of an attempt as of a processing step. Each was tried: the file with it is read,
checked against the platform, and planned, with what the run measured. A change that would still not fit is not shown,
nor one that needs another script: a diff has hyperparameters that the script knows, and what Sagefit itself sets. Of a
batch that is halved or a number of workers it is the first that fits. `sagefit diagnose RUN --apply 1` writes the first
and leaves all else in the file as it is. [explanations.md](explanations.md) has ten examples.

`sagefit report RUN` writes all of it as a page, with every attempt over time, its memory against the limit and what was
predicted, and what it cost; `sagefit report JOB` does so for the last runs of a job. The page is one file of HTML: it
runs no script and loads nothing, and what looks like a credential in a log is not on it. Give it a job's path where the
job file is not in `jobs/`, for predictions and changes come from the file.

**Evidence** is the line that told. **Confidence** is A for texts seen in production or in source code, B for texts of
public reports, C for what is only likely: a SIGKILL without a word about memory, say, or words that no pattern knows.
Likely classes give way to whatever says more, and where the utilisation is known it has a say: below {ROOMY:.0f} % a
kill was for something else, from {FULL:.0f} % on memory was the reason. A class that only utilisation explains has
confidence C and no pattern.

## Leaks

A host that is full because the script keeps more and more is not cured by a larger one, which only dies later. So the
launcher compares host memory between checkpoints, where the script has done the same work again, each time at its
lowest: bursts, the loading of data and the first batch change nothing. Memory *grew* if over {LEAST} checkpoints or
more it went along a straight line ({STRAIGHT:.0%} of the variance), by {SHARE:.0%} of the host's memory or more, and
not less and less, as a cache that fills. `diagnose` then says by how much it grew from each checkpoint to the next, and
for how many checkpoints more a host with twice the memory would last.

The run moves on to a larger host all the same, because data that a script keeps as it reads on grows in the same way
until it is at its end, and only its author knows which it is. `environment.SAGEFIT_ON_LEAK: stop` says that it is a
leak: then such an attempt ends as `code`. A script without checkpoints, or one whose launcher died with it, is never
said to grow.

## Cut off checkpoints

An attempt that is killed while its script writes a checkpoint leaves a file that nobody can read, and a script that
opens it in the next attempt fails. Before the script starts, the launcher looks at the files that came back. It moves
those that end before their format says so to `/opt/ml/cut-off`, with the whole folder of a step such as
`checkpoint-500`, so that the script begins at the checkpoint before. It says which in the log and in `sagefit.json`
(`cut_off`).

It knows zip archives (what `torch.save` writes, `npz`, `keras`), safetensors, HDF5, JSON, and empty files with the
names of these. A pickle or a file of raw numbers does not say where it ends. A script that writes over its only
checkpoint has none before it and begins anew: let it write to another name and rename. A file that names the newest
checkpoint, such as DeepSpeed's `latest`, is left as it is. `environment.SAGEFIT_CUT_OFF: keep` leaves everything.

## Idle GPUs and full disks

An attempt may complete and still have wasted what it paid for, or have come close to its end. The launcher looks every
second how busy the GPUs are, and how much of the CPUs the script takes. The ledger tells if the GPUs were less than
10 % busy for more than half of the time, from the first moment on at which they worked. If the CPUs were more than 90 %
busy meanwhile, the GPUs waited for them: it names the cheapest instance with the same GPUs and more vCPUs. These are
the thresholds of SageMaker Debugger's rule CPUBottleneck. It tells too if GPUs were never used, and if a disk was 85 %
full or more, with what was written to it.

## How good it is

Texts that somebody else collected and labelled are scored before anybody here reads one; the answers of that day stay
in [others.yaml](../tests/corpus/others.yaml). *First* is that day, *now* is after what they showed was generalised, so
only *first* says what to expect of the next text:

{_first_sight()}

Each of the {len(texts)} texts again, by those patterns only that a text of another repository shows, too (leave one
source out), and then by words:

{_sources()}

### The state machine

It has no Python: its Choice rules match the first 1,024 characters of the failure reason. On the texts of others, as
it is now:

{_by_itself()}

Without the launcher a bare exit code says nothing: then `diagnose`, which reads the log, is the one to ask.

### All texts

On {len(texts)} texts that tools printed, from public threads or in runs that were made to fail
([tests/corpus](../tests/corpus)); of each only the lines that identify the failure are kept.
{sum(text.hard for text in texts)} are hard: ambiguous, or they only mention memory
(of *others* nobody says which). Precision / recall:

{_scores()}

The parts share no thread. The patterns were written from *development*. *Held-out* was labelled and frozen before; the
author of the patterns had also labelled it. *Fresh* was collected later, in {FRESH} rounds, because of that; each round
was labelled from its threads before any of it was run. *Others* are the rounds above. How each did when the
patterns of the day first saw it:

{_table(("texts", "right", "share"), first)}

What these parts showed was generalised and then counts as known, so the table above is no measure of texts to come:
this one is, for odd texts. From round 7 on only threads that no earlier part has are counted, which leaves out the
common wordings. Of the 64 lacks of memory in rounds 7 to 12 patterns told 45, and nearly all misses said `code`: that
is why there are words. The vocabulary was written from all that, and had not seen rounds 13 to 16 when each was first
run:

{_unseen()}

In all these rounds three other failures were taken for a lack of memory, none of them by words.

### What words add

The same texts again, each round with only those patterns that match a text of an earlier round, as on the day when
nobody had seen it, so development with none. The vocabulary, though, has seen them all by now: this shows how much it
covers, the table above what it is worth on new texts. *Memory* is a lack of it, of whichever kind.

{_words()}

### Beside the naive rule

"Exit code 137, or the words *out of memory*, mean out of memory", on all texts:

{_naive(texts)}

Rare wordings are as frequent here as common ones, so recall in daily use is higher for both. The naive rule also does
not say *which* memory: more GPU memory does not help a full host.

### Confusion matrix

{_confusion(texts)}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
