"""Writes docs/failures.md: ``PYTHONPATH=tests python -m corpus.page``. The tests compare it with what is committed."""

from __future__ import annotations

import textwrap
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
    (17, "2026-11-27", "89 public threads and pages, 14 constructed; collected by people who do not work on Sagefit"),
    (18, "2026-11-27", "104 public threads; names and numbers are changed"),
    (19, "2026-11-29", "122 public threads, more of them of other clouds and schedulers; 25 are short or abridged"),
    (20, "2026-11-29", "122 public threads; 16 are one or two lines"),
    (
        21,
        "2026-11-29",
        "115 public threads; 35 are one or two lines. Of 24 of those collected, the collector accepted a second class",
    ),
    (
        22,
        "2026-11-29",
        "121 public threads, mostly of old and rare tools, many cut off; 18 of those collected are one or two lines",
    ),
    (
        24,
        "2026-11-29",
        "145 small jobs without a GPU, written to fail, with some sixty libraries. The class is what was done to the "
        "job. In 46 something else is mentioned or survived before. Four wait in vain for a peer, a loader or a "
        "server; their label was *time*, which here is a limit of time alone",
    ),
    (
        25,
        "2026-11-30",
        "144 of 146 such jobs; in half of them something else is mentioned or survived before, or much is printed "
        "after the cause",
    ),
    (
        26,
        "2026-11-30",
        "156 of 159 such jobs; in 51 something else is mentioned or survived before; some thirty imitate what needs a "
        "GPU, a cluster or a cloud",
    ),
    (
        27,
        "2026-11-30",
        "171 of 174 such jobs; in 89 something else is mentioned or survived before; 24 logs are imitations",
    ),
    (
        28,
        "2026-11-30",
        "170 of 174 such jobs; in 101 something else is mentioned or survived before, or the cause is told in odd "
        "words; 25 logs are imitations",
    ),
    (
        29,
        "2026-11-30",
        "137 of 142 jobs of about 60 libraries and programs, which really failed: under a limit of memory that the "
        "kernel keeps, on small and read-only disks, with damaged data; 18 survive another failure before; none has a "
        "GPU",
    ),
    (
        30,
        "2026-12-01",
        "196 of 206 jobs of about as many libraries, of which 161 really failed; the others, nearly all of GPUs and of "
        "the service, are written as such logs are remembered",
    ),
    (
        31,
        "2026-12-01",
        "298 of 308 such jobs, of which 229 really failed, 26 of them against a small server that speaks for a "
        "service; the others are written as such logs are remembered. For a fifth the collector accepted a second "
        "class",
    ),
)
# A round whose texts are files of other projects, which stay there. Of each answer: texts rightly called memory, all
# that are called so, all that are of memory, and those rightly answered of any class.
NOT_KEPT = (
    23,
    "2026-11-29",
    "126 logs of 76 public repositories of people who train, found by their error lines, so odd wordings are rarer; "
    "they are not kept here, so there is no *now*",
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
    about = (
        "Each round has another collector, who had not seen a pattern. From round 25 on, texts whose shortened logs "
        "equal others are left out:"
    )
    return f"{_table(head, rows)}\n\n{textwrap.fill(about, 120)}\n\n{sources}"


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

Every failure has one of {len(CLASSES)} classes. The patterns that tell the class from a text are one table,
[failures.json](../modules/training-job/failures.json), with {len(table())} rows. Three parts use it: `sagefit diagnose`
on your machine, the launcher in the container, and the state machine, whose Choice rules Terraform makes from {machine}
of the rows.

{_classes()}

A run goes on with the attempt that `next` of the failed attempt names for the class. It ends if `next` names none
([job-file.md](job-file.md#attempts)). `code` without an entry in `next` ends the run: another instance would fail
alike. If a *create* request is refused for `permission` or `internal`, it is first repeated up to eight times,
because new roles take seconds to work.

## Who knows what

{_table(("", "sees", "tells"), KNOWN)}

Each of these sources can name a class. An answer is *certain* or only *likely*; a certain answer goes before a likely
one. Among answers that are equally sure, the first of this list is believed:

1. the error of a create request
2. a secondary status that ends a job (`MaxRuntimeExceeded`, ...)
3. what the launcher wrote; `code` is certain only if the name of an exception or a pattern shows it
4. the failure reason, if it says more than an exit code or "the script failed"
5. a cloud's notice in the log that it takes the machine back, if a signal or exit code 75 ended the script
6. the end of the log, of every host
7. the kernel's count of the processes that it killed for memory in the container
8. a kill (exit code 137, -9 or 247)
9. how full memory, GPU memory and disks were: if nothing shows why the script failed, the class is that of the resource
   that was full

`rejected` in `--json` keeps the other answers, each with the reason why it was not believed: "the script went on after
it", "host memory at most 31 % full", "it is only likely, and the log is certain".

## The end of a log

The last {TAIL} lines are read, at most {TAIL_BYTES // 1_000_000} MB, and {LONGEST} characters of each line. Colours and
prefixes are removed first; so is the JSON or CSV around the lines of an export of CloudWatch. The reader goes backwards
until it finds the failure that ended the script:

- A failure that the script **survived** does not count. The script survived it if it says so (skipping, retrying,
  falling back), or if one of these follows: steps or epochs, {FAR} lines of other output, an exception that has another
  cause. Output of a job that is going down (NCCL's watchdogs, stack frames, signals) does not count as other output.
- A **warning** counts only if nothing else is said after it.
- If an exception was **raised from** another, that other one is the cause. If it was raised **while another was
  handled**, the other one is only the likely cause.
- An **echo** only repeats that something failed: torchrun's summary, NCCL's errors, a broken pipe, the vaguer codes of
  cuBLAS and cuDNN, a text that is cut off within the name of an exception. What an echo says is only likely.
- The **host or rank** that speaks is read from the prefix of a line, and from nothing else.
- Of **several hosts** the one whose log says most is the cause; the others only lost a peer.
- A line that says that a **peer is gone** ("rank 1 closed the connection"), or that points to lines above it, does not
  tell the cause.
- A **guess** ("maybe it ran out of memory") is no fact.
- A line that only **mentions** memory matches nothing: `pin_memory`, a memory format, a help text, Triton's "shared
  memory".
- If **no pattern** matches, [words](#words) decide.

### Words

Tools use ever new sentences for the same failure, but few different words. So the last line that tells of a failure and
that no pattern knows is read with a small vocabulary. Does it say, as a fact, that memory could not be allocated, is
exhausted, is not enough, or was exceeded? If so, the class depends on the words in this line and in the lines just
before it: words for a device (`cuda`, `vram`, `hbm`, ...) make it `gpu_memory`, `/dev/shm` makes it `shared_memory`,
and anything else `host_memory`. Other words stand for other classes:

| the line says | class |
|---|---|
| space is full | `disk` |
| an input path is missing, or a file is damaged | `data` |
| access to a service or a path was refused | `permission` |
| somebody ended it | `stopped` |
| a limit of time was over | `time` |
| a spot instance was taken back | `spot` |
| a quota was reached | `quota` |
| there were no such instances | `capacity` |
| the service or the hardware failed | `internal` |

Conditions, advice and denials ("if you run out of memory", "to avoid", "no OOM") are no facts. The answer has
confidence C and the line as its evidence. In place of a pattern it names the rule, such as `words: memory + gpu`.

If the words say nothing, **the library that raised the exception** may tell. It is `data` if the exception comes from
a library that only reads files of data (`tarfile`, `wave`, Pillow, h5py, ...), or from the part of a larger library
that reads or checks them (`pandas/io`, scikit-learn's validation), or if the name of the exception says that
something is damaged. Such an answer has confidence C, and its rule is `words: a reader's exception`. A missing file,
an argument of a wrong type and an error with a number of the operating system do not count.

## Reading `sagefit diagnose`

```console
$ sagefit diagnose RUN
$ sagefit diagnose --reason "AlgorithmError: , exit code: 1" --log train.log --exit-code 1 --json
$ sagefit diagnose -
```

`-` reads a log from standard input, for example that of `kubectl logs`. The job need not be one of Sagefit's, nor run
on AWS. The lines **around** the cause are shown with their numbers, the host and the rank (`around` in `--json`). For a
processing step, the lines after `try` name fields of that step.

For a run, `diagnose` also shows

- memory over time, against the limit;
- the step that the log reached, and the file that was saved last;
- the training time and the money that are lost, which is what came after that file;
- **changes** of the job file as diffs, the cheapest first, for an attempt or a processing step.

Each change was tried: the changed file is read, checked against the platform and planned, with what the run measured.
Two kinds of changes are not shown: those that would still not fit, and those that need another script. So a diff holds
only hyperparameters that the script knows and what Sagefit itself sets. If several batches or numbers of workers are
possible, the diff has the first that fits. `sagefit diagnose RUN --apply 1` writes the first change into the job file
and leaves the rest of the file as it is. [explanations.md](explanations.md) has ten examples.

`sagefit report RUN` writes all of this as a page, with every attempt over time, its memory against the limit and the
prediction, and what it cost. `sagefit report JOB` does the same for the last runs of a job. The page is one HTML file.
It runs no script, loads nothing, and leaves out what looks like a credential in a log. If the job file is not in
`jobs/`, give its path: predictions and changes come from the file.

**Evidence** is the line that told the class. **Confidence** has three grades:

- A: the text was seen in production or in source code.
- B: the text comes from public reports.
- C: the class is only likely. Examples are a SIGKILL without a word about memory, and words that no pattern knows.

A likely class yields to anything that says more. If it is known how full the memory was, this counts too: below
{ROOMY:.0f} % a kill had another reason, and from {FULL:.0f} % on memory was the reason. A class that only such a figure
explains has confidence C and no pattern.

## Leaks

If a script keeps more and more in memory, a larger host does not help: the script only dies later. So the launcher
compares the use of host memory from checkpoint to checkpoint, because between two checkpoints a script does the same
work again. It takes the lowest value between two checkpoints, so that bursts, the loading of data and the first batch
do not count. Memory *grew* if all of this is true over {LEAST} checkpoints or more:

- it follows a straight line ({STRAIGHT:.0%} of the variance);
- it grew by {SHARE:.0%} of the host's memory or more;
- it did not slow down, as a cache does that fills.

`diagnose` then says how much it grew from each checkpoint to the next, and how many more checkpoints a host with twice
the memory would last.

The run still moves on to a larger host. A script that reads data and keeps it grows in the same way until all is read,
and only its author knows which of the two it is. If it is a leak, set `environment.SAGEFIT_ON_LEAK: stop`: such an
attempt then ends as `code`. Growth is never reported for a script without checkpoints, or if the launcher died with it.

## Cut off checkpoints

If an attempt is killed while its script writes a checkpoint, it leaves a file that nobody can read. A script that opens
this file in the next attempt fails. So the launcher looks at the files that came back, before the script starts. A file
that ends before its format says so is moved to `/opt/ml/cut-off`, with the whole folder of its step, such as
`checkpoint-500`. The script then begins with the checkpoint before it. The log and `sagefit.json` (`cut_off`) name what
was moved.

The launcher knows zip archives (what `torch.save` writes, `npz`, `keras`), safetensors, HDF5, JSON, and empty files
with such names. It cannot judge a pickle or a file of raw numbers, because these do not say where they end. If a
script writes over its only checkpoint, there is none before it, and the script begins anew: let it write to another
name and rename the file. A file that names the newest checkpoint, such as DeepSpeed's `latest`, is left as it is.
`environment.SAGEFIT_CUT_OFF: keep` leaves all files where they are.

## Idle GPUs and full disks

An attempt may complete and still have wasted what it paid for, or have come close to its end. Every second the launcher
looks how busy the GPUs are and how much of the CPUs the script takes. The ledger then reports

- GPUs that were less than 10 % busy for more than half of the time, counted from the first moment at which they worked;
- that the GPUs waited for the CPUs, if the CPUs were more than 90 % busy meanwhile, with the cheapest instance that has
  the same GPUs and more vCPUs. These thresholds are those of SageMaker Debugger's rule CPUBottleneck;
- GPUs that were never used;
- a disk that was 85 % full or more, with what was written to it.

## How good it is

Somebody else collects and labels texts. They are scored before anybody here reads one, and the answers of that day are
kept in [others.yaml](../tests/corpus/others.yaml). *First* is the score of that day. *Now* is the score after the
patterns were extended by what these texts showed. So only *first* says what to expect of the next text:

{_first_sight()}

The next table scores all {len(texts)} texts again, as if each came from a new source ("leave one source out"): a
pattern counts for a text only if a text of another repository shows it, too. The second row then asks the words:

{_sources()}

### The state machine

The state machine has no Python. Its Choice rules match the first 1,024 characters of the failure reason. This is how it
does today on the texts of others:

{_by_itself()}

Without the launcher the reason is often a bare exit code, which tells no class. In this case ask `diagnose`: it reads
the log.

### All texts

These are {len(texts)} texts that tools printed, from public threads or from runs that were made to fail
([tests/corpus](../tests/corpus)). Only the lines that identify the failure are kept of each. {
        sum(text.hard for text in texts)
    } are hard: they are ambiguous or only mention memory (for *others* this was not noted). The last columns are
precision / recall:

{_scores()}

No thread is in two parts.

- *Development*: the patterns were written from these texts.
- *Held-out*: labelled and frozen before that, by the author of the patterns.
- *Fresh*: collected later, in {FRESH} rounds. Each round was labelled from its threads before any of it was scored.
- *Others*: the rounds above.

This is how the patterns of the day did when they first saw a round:

{_table(("texts", "right", "share"), first)}

The patterns were then extended by what each round showed, and its texts count as known. So the table before this one
does not say how well new texts are told. This one does, for odd texts: from round 7 on it counts only threads that no
earlier part has, which leaves out the common wordings.

Of the 64 lacks of memory in rounds 7 to 12, patterns told 45; nearly all the others were called `code`. This is why
there are words. The vocabulary was written from all these rounds. It had not seen rounds 13 to 16 when each was first
scored:

{_unseen()}

In all these rounds three other failures were taken for a lack of memory, none of them by words.

### What words add

Here each round is scored with only those patterns that match a text of an earlier round, as on the day when nobody
had seen it; *development* therefore has no patterns at all. The vocabulary has seen all of these texts by now. So
this table shows how much the words cover, and the table above shows what they are worth on new texts. *Memory* is a
lack of memory of any kind.

{_words()}

### Beside the naive rule

The naive rule is: exit code 137, or the words *out of memory*, mean out of memory. On all texts:

{_naive(texts)}

In these texts rare wordings are as frequent as common ones, so recall in daily use is higher for both. The naive rule
does not say *which* memory was full, and more GPU memory does not help a full host.

### Confusion matrix

{_confusion(texts)}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
