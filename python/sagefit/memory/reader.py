"""Finds the planner's numbers among hyperparameters, compares them with the memory block, reports errors with lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from sagefit.job import Job
from sagefit.job.given import Given
from sagefit.job.key import Key, dotted
from sagefit.job.memory_model import Checkpointing, Knob, Memory
from sagefit.job.names import plain
from sagefit.job.other_names import PRECISIONS
from sagefit.job.problem import Problem
from sagefit.job.script_names import KNOBS_OF
from sagefit.job.values import as_text
from sagefit.memory.knobs import name_of, names_in
from sagefit.memory.values import checkpointing, flag, same, text, whole

T = TypeVar("T")
_PER_GPU_BY_HABIT = ("batch_size", "train_batch_size")


class Reader:
    """Looks values up in the hyperparameters, and collects problems and assumptions."""

    def __init__(self, job: Job, memory: Memory, given: Given) -> None:
        self.job = job
        self.memory = memory
        self.hyperparameters = given
        self._elsewhere: dict[str, list[str]] = {}
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def number(self, knob: Knob, written: int | None, *, most: int, least: int = 1) -> int | None:
        """A whole number from ``least`` to ``most``."""

        def parse(name: str, raw: object) -> int | None:
            value = whole(raw)
            if value is not None and least <= value <= most:
                if plain(name) in _PER_GPU_BY_HABIT and knob == "micro_batch":
                    self.notes.append(f"{self.hyperparameters.named(name)}, {value}, is taken as the batch of one GPU")
                return value
            self._unusable(name, f"{raw!r} is no whole number from {least} to {most}", knob)
            return None

        return self._pick(knob, written, parse)

    def boolean(self, knob: Knob, written: bool | None) -> bool | None:
        """A boolean."""

        def parse(name: str, raw: object) -> bool | None:
            value = flag(raw)
            if value is None:
                self._unusable(name, f"{raw!r} is neither true nor false", knob)
            return value

        return self._pick(knob, written, parse)

    def checkpointing(self, written: Checkpointing | None) -> Checkpointing | None:
        """Whether there is gradient checkpointing, or which kind of it."""

        def parse(name: str, raw: object) -> Checkpointing | None:
            value = checkpointing(raw)
            if value is None and (known := KNOBS_OF["gradient_checkpointing"].get(plain(name))):
                value = known.words.get(text(raw))  # type: ignore[assignment]
            if value is None:
                self._unusable(
                    name, f"{raw!r} is neither true nor false, nor full or selective", "gradient_checkpointing"
                )
            return value

        # A script that only knows on and off does not say which kind.
        kinds = (("full", True), ("selective", True))
        return self._pick("gradient_checkpointing", written, parse, kinds)

    def choice(self, knob: Knob, written: T | None, table: Mapping[str, T]) -> T | None:
        """One of the values of ``table``, by its name there; a name that is not there is only noted."""
        # Scripts do not say of SGD whether it has momentum, nor of AdamW how its step rounds.
        alike = (("sgd", "sgd-momentum"), ("sgd-momentum", "sgd"), ("adamw-kahan", "adamw"))
        return self._pick(knob, written, lambda name, raw: self._known(table, name, raw, knob), alike)

    def precision(self, written: Any) -> Any:
        """Precision, which Hugging Face spreads over two flags; None where nothing says it."""

        def parse(name: str, raw: object) -> Any:
            flags = {kind: flag(self._value(kind)) for kind in ("bf16", "fp16")}
            if name.lower() == "bf16" and text(raw) == "auto":  # axolotl's: what the GPU has
                return self._noted(name, "precision", "fp16-mixed" if flags["fp16"] else "bf16-mixed", written)
            if name.lower() not in ("bf16", "fp16") or flag(raw) is None:
                return self._known(PRECISIONS, name, raw, "precision")
            if all(flags.values()):
                self._unusable(name, "hyperparameters.bf16 and hyperparameters.fp16 exclude each other", "precision")
            kind = next((kind for kind, on in flags.items() if on), None)
            return f"{kind}-mixed" if kind else "fp32"

        # Weights that are 16-bit throughout are trained with or without autocast.
        alike: tuple[tuple[str, str], ...] = (("bf16", "bf16-mixed"), ("bf16", "fp32"))
        if plain(name_of(self.job, "precision", self.hyperparameters) or "") == "amp":
            alike = (
                *alike,
                ("bf16-mixed", "fp16-mixed"),
                ("bf16", "fp16-mixed"),
            )  # which does not say of which 16 bits
        return self._pick("precision", written, parse, alike)

    def said_elsewhere(self) -> Iterator[str]:
        """What arguments and configuration files say, a note for each of them."""
        for source, said in self._elsewhere.items():
            yield f"{source}: {', '.join(said)}"

    def source(self, knob: Knob) -> Key:
        """Where the number of ``knob`` stands: among the hyperparameters, else in the memory block."""
        name = name_of(self.job, knob, self.hyperparameters)
        return _field(knob) if name is None or name not in self.hyperparameters else self._place(name)

    def _pick(
        self,
        knob: Knob,
        written: T | None,
        parse: Callable[[str, object], T | None],
        alike: tuple[tuple[object, object], ...] = (),
    ) -> T | None:
        name = name_of(self.job, knob, self.hyperparameters)
        if name is None or name not in self.hyperparameters:
            return written
        raw = self.hyperparameters[name]
        self._beaten(name, raw)
        self._called(knob, name, raw)
        value = parse(name, raw)
        if written is None and knob not in self.memory.knobs and knob != "precision":
            self._compare(knob, name, value, parse)
        if value is not None and written is None and (source := self.hyperparameters.source(name)):
            self._elsewhere.setdefault(source, []).append(f"{knob} {text(value)}")
        elif value is not None and self._of_framework(knob, name):
            self._noted(name, knob, value, written)
        if value is None or written is None or value == written or (written, value) in alike:
            return value if written is None else written
        if self._changed(name):
            return value
        if self.hyperparameters.of_file(name):
            here = dotted(_field(knob))
            self.notes.append(f"{self.hyperparameters.named(name)} is {text(raw)}; {here}, {text(written)}, counts")
            return written
        self.problems.append(
            Problem(
                _field(knob),
                f"is {text(written)}, and {self._where(name)} is {text(raw)}",
                f"keep one of them, or name the right hyperparameter in memory.knobs.{knob}",
            )
        )
        return written

    def _beaten(self, name: str, raw: object) -> None:
        """An argument that replaces a hyperparameter of the same name, which then says something else in vain."""
        beaten = self.hyperparameters.beaten.get(plain(name))
        if beaten is not None and not same(beaten[1], raw):
            field = self._place_of(beaten[0])
            self.problems.append(
                Problem(
                    field,
                    f"is {text(beaten[1])}, and {self._where(name)} is {text(raw)}, which comes later and counts",
                    "keep one of them; attempts can change hyperparameters only",
                )
            )

    def _called(self, knob: Knob, name: str, raw: object) -> None:
        """A note where a call of the script says another number than the job: nobody can tell that it listens."""
        if self.hyperparameters.of_file(name) or knob in self.memory.knobs:
            return
        for other in {plain(name), *map(plain, names_in(self.job, knob, self.hyperparameters))}:
            place, said = self.hyperparameters.called.get(other, ("", raw))
            if not same(said, raw):
                counts = f"{self.hyperparameters.named(name)}, {text(raw)}, counts if the script goes by it"
                self.notes.append(f"{place} is {text(said)}; {counts}")

    def _of_framework(self, knob: Knob, name: str) -> bool:
        """Whether only the tables of frameworks say that ``name`` sets ``knob``."""
        return knob not in self.memory.knobs and plain(name) in KNOBS_OF[knob]

    def _noted(self, name: str, knob: Knob, value: T, written: object) -> T:
        if written is None:
            said = as_text(self.hyperparameters[name])[:80]  # type: ignore[arg-type]
            self.notes.append(f"{self.hyperparameters.named(name)} is {said}, so {knob} is taken as {text(value)}")
        return value

    def _compare(self, knob: Knob, name: str, value: T | None, parse: Callable[[str, object], T | None]) -> None:
        """Two known names of one number with two values: nobody can tell which one the script goes by."""
        for other in names_in(self.job, knob, self.hyperparameters)[1:]:
            ours, theirs = self.hyperparameters[name], self.hyperparameters[other]
            if self.hyperparameters.rank(other) != self.hyperparameters.rank(name):
                continue  # one counts before the other
            # An attempt that sets only the one that counts means it.
            if same(ours, theirs) or (self._changed(name) and not self._changed(other)):
                continue
            if self._of_framework(knob, other) and self._quietly(parse, other, theirs) in (None, value):
                continue  # the same in other words
            self.problems.append(
                Problem(
                    self._place(name),
                    f"is {text(ours)}, and {self._where(other)} is {text(theirs)}; both are names of {knob}",
                    f"keep one of them, or name the one that counts in memory.knobs.{knob}",
                )
            )

    def _quietly(self, parse: Callable[[str, object], T | None], name: str, raw: object) -> T | None:
        notes, problems = len(self.notes), len(self.problems)
        value = parse(name, raw)
        del self.notes[notes:], self.problems[problems:]
        return value

    def _known(self, table: Mapping[str, T], name: str, raw: object, knob: Knob) -> T | None:
        word = text(raw)
        if self._of_framework(knob, name):
            table = KNOBS_OF[knob][plain(name)].words  # type: ignore[assignment]
            word = word.rpartition(".")[2] if knob == "optimizer" else word
        value = table.get(word)
        if value is None and word not in table:
            self.notes.append(
                f"{self.hyperparameters.named(name)}, {raw!r}, is not known to the planner and not considered; "
                f"memory.{knob} says what it is like"
            )
        return value

    def _value(self, name: str) -> object:
        return next((value for key, value in self.hyperparameters.items() if key.lower() == name), None)

    def _changed(self, name: str) -> bool:
        """Whether an attempt sets ``name`` to something else than the job does."""
        own = self.hyperparameters.place(name) is None
        return own and self.hyperparameters[name] != self.job.hyperparameters.get(name)

    def _unusable(self, name: str, message: str, knob: Knob) -> None:
        knob_text = f"correct it, or name another hyperparameter in memory.knobs.{knob}"
        self.problems.append(Problem(self._place(name), message, knob_text))

    def _place(self, name: str) -> Key:
        """The field of hyperparameter ``name``: the attempt's whose hyperparameters these are, else the job's."""
        return self.hyperparameters.place(name) or self._place_of(name)

    def _place_of(self, name: str) -> Key:
        own, attempts = self.job.hyperparameters, self.job.attempts
        if attempts != "auto":
            for index, attempt in enumerate(attempts):
                mine = attempt.hyperparameters
                if name in mine and mine[name] != own.get(name) and own | mine == self.hyperparameters.own:
                    return ("attempts", index, "hyperparameters", name)
        return ("hyperparameters", name)

    def _where(self, name: str) -> str:
        field = self._place(name)
        line = self.job.line(field)
        return f"{dotted(field)} (line {line})" if line else dotted(field)


def _field(knob: Knob) -> Key:
    if knob in ("workers", "prefetch"):
        return ("memory", "loader", knob)
    return ("memory", "dataset", knob) if knob == "in_memory" else ("memory", knob)
