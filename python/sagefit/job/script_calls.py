"""What a script itself tells the libraries that it calls: ``TrainingArguments(bf16=True, max_steps=args.steps)``.

The script is followed as `sagefit.job.following` does it, with the hyperparameters that the job gives it. Of
two calls that say different things nothing is taken.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sagefit.job.following.evaluation import Evaluation
from sagefit.job.following.expressions import TooLongError
from sagefit.job.following.files import Files
from sagefit.job.following.values import Argued, Made, Ref, bare, literal, made_of, small, sources, truth

TRAINERS = (
    *("TrainingArguments", "Seq2SeqTrainingArguments", "SentenceTransformerTrainingArguments", "SFTConfig"),
    *("CrossEncoderTrainingArguments", "SparseEncoderTrainingArguments", "RewardConfig", "PRMConfig"),
    *("DPOConfig", "KTOConfig", "ORPOConfig", "CPOConfig", "BCOConfig", "GRPOConfig", "RLOOConfig", "GKDConfig"),
)
"""Calls whose keywords are names of hyperparameters."""
_DEFAULTS = {"per_device_train_batch_size": 8}
"""What ``TrainingArguments`` and those made of it take where nothing is said, if it is not what the planner takes."""


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_ADAPTERS = {"r": "lora_r", "target_modules": "lora_target_modules", **_same("use_dora", "modules_to_save")}
_LOADED = ("load_in_4bit", "load_in_8bit", "attn_implementation", "torch_dtype", "dtype", "max_seq_length")
CALLS: dict[str, Mapping[str, str]] = {
    "LoraConfig": _ADAPTERS,
    "get_peft_model": {**_ADAPTERS, **_same("use_gradient_checkpointing")},  # Unsloth's
    "BitsAndBytesConfig": _same("load_in_4bit", "load_in_8bit"),
    "from_pretrained": _same(*_LOADED),
    "Transformer": _same("max_seq_length"),  # a module of sentence-transformers, as it was trained before Trainers
    "fit": {"use_amp": "fp16"},
    "SFTTrainer": _same("max_seq_length"),  # of TRL before 0.13, as the next
    "DPOTrainer": _same("max_length", "max_prompt_length"),
    "CrossEncoder": _same("max_length"),
    "Trainer": _same("precision", "accumulate_grad_batches"),  # Lightning's
    "Accelerator": _same("mixed_precision", "gradient_accumulation_steps"),
    "GradientAccumulationPlugin": {"num_steps": "gradient_accumulation_steps"},
    "Fabric": _same("precision"),
    "initialize": {"config": "deepspeed", "config_params": "deepspeed"},
    "DataLoader": _same("batch_size", "num_workers", "prefetch_factor"),
    "create_loader": _same("batch_size", "num_workers"),  # timm's
    "exec": _same("batch_size", "block_size", "gradient_accumulation_steps", "dtype"),  # nanoGPT's variables
    "train": _same("imgsz", "batch", "nbs", "device", "amp", "workers", "optimizer"),  # Ultralytics'
}
"""What each call is told, by keyword: the name of the hyperparameter that says the same."""
SWITCHES = {
    "gradient_checkpointing_enable": "",
    "enable_gradient_checkpointing": "",
    "apply_activation_checkpointing": "",
    "set_grad_checkpointing": "enable",
    "prepare_model_for_kbit_training": "use_gradient_checkpointing",
}
"""Calls that say something by being there, and the keyword that takes it back."""
OPTIMIZERS = {
    "AdamW": "adamw_torch",
    "Adam": "adamw_torch",
    "FusedAdam": "adamw_apex_fused",
    "AdamW8bit": "adamw_bnb_8bit",
    "Adam8bit": "adamw_bnb_8bit",
    "PagedAdamW8bit": "paged_adamw_8bit",
    "PagedAdam8bit": "paged_adamw_8bit",
    "PagedAdamW": "paged_adamw",
    "PagedAdamW32bit": "paged_adamw",
    "Adafactor": "adafactor",
    "Lion": "lion",
    "SGD": "sgd",
}
"""Classes of optimizers as ``optim`` of ``TrainingArguments`` has them."""
OBJECTIVES = {
    **{f"{name.upper()}Config": name for name in ("dpo", "kto", "orpo", "cpo", "grpo", "gkd")},
    "RewardConfig": "reward",
}
"""Settings of TRL that say what a model is trained for."""
LOSSES = ("MultipleNegativesRankingLoss", "ContrastiveLoss", "CosineSimilarityLoss", "CoSENTLoss", "TripletLoss")
"""Losses of sentence-transformers."""
IN_BATCH = "MultipleNegativesRankingLoss"
"""What a loss of one's own is like that tells each pair of a batch from all others."""
SHARDED = ("FullyShardedDataParallel", "fully_shard")
"""PyTorch's FSDP and FSDP2."""
FAMILIES = ("settings", "adapters", "bits")
"""Kinds of objects that only say something if they are given to somebody."""
RECEIVERS = {"quantization_config": "bits", "peft_config": "adapters"}
"""Keywords by which a call is given such an object: None says that it gets none."""
MODEL_KEYWORDS = "model_init_kwargs"
"""The keyword of TRL's settings for those of ``from_pretrained``."""
ATTRIBUTES = ("max_seq_length",)
"""Attributes of an object of a library that a script sets: of SentenceTransformer."""
LENGTHS = ("max_length", "max_seq_length", "max_completion_length")
"""Names beside which the length of a tokenizer says nothing."""
STEPS = ("gradient_accumulation_steps", "accumulate_grad_batches")
# Of common names: what makes the call the one that is meant.
_ONLY_WITH: dict[str, Callable[[Mapping[str, object]], bool]] = {
    "train": lambda given: "data" in given,
    "initialize": lambda given: "model" in given,
    "create_loader": lambda given: bare(given.get("is_training")) is True,
}
FROZEN = ("requires_grad_", ".requires_grad")
PIECES = ("a batch's split", "a batch's chunk")
_TYPES = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}
_HALF = Ref("torch.float16")
_SAMPLERS = ("DistributedSampler", "RandomSampler", "WeightedRandomSampler")
CASTS = ("autocast", "MixedPrecision", "MixedPrecisionPolicy")
"""What computes in other types than those of the weights."""
HEARD = tuple(
    word.encode()
    for word in (
        *TRAINERS,
        *CALLS,
        *SWITCHES,
        *OPTIMIZERS,
        *ATTRIBUTES,
        "autocast",
        "truncation",
        "cross_entropy",
        "CrossEntropyLoss",
        *CASTS,
        "loss",
    )
)
"""Words of which a script has one if it is worth following."""


@dataclass(frozen=True)
class Constant:
    """What a call is told: a value (None where that is not known), and its place, as ``LoraConfig.r``.

    ``arguments`` of the script are what the value depends on, by plain name; ``direct`` where it is the value of one.
    """

    value: object
    place: str
    arguments: frozenset[str] = frozenset()
    direct: bool = False


@dataclass(frozen=True)
class Calls:
    """What the calls of a script say, by the name that a hyperparameter would have.

    ``unused`` are arguments of the script at which this run does not look, by plain name. ``trainer`` is the class of
    transformers, TRL or sentence-transformers that trains, as the library has it: not one that the script derives
    or gives a loss, which may compute it otherwise.
    """

    said: Mapping[str, Constant]
    unused: frozenset[str] = frozenset()
    trainer: str = ""


def calls_of(
    tree: ast.Module,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    files: Files | None = None,
    name: str = "train.py",
) -> Calls:
    """What the calls of a script say where the job gives it ``given`` (by plain name), and these variables.

    ``files`` are what it may read and import, ``name`` is its own there.
    """
    listener = _Listener()
    run = Evaluation(given or {}, environment or {}, listener.hear, TRAINERS, files)
    try:
        run.run(tree, name)
    except (TooLongError, RecursionError):
        return Calls({})
    listener.end(run, _unwalked(tree, run.walked))
    said = {name: constant for name, constant in listener.said.items() if constant.value is not None}
    return Calls(said, frozenset(run.arguments.known - run.arguments.looked_at), listener.trainer)


class _Listener:
    """Keeps what calls say."""

    def __init__(self) -> None:
        self.said: dict[str, Constant] = {}
        self.trainer = ""
        self._made: list[Made] = []
        self._passed: set[int] = set()
        self._none: set[str] = set()
        self._lengths: list[Constant] = []
        self._loaders: list[Made] = []
        self._pieces: list[Made] = []
        self._models: list[Made] = []
        self._frozen: set[int] = set()
        self._trains = self._trained = False

    def hear(self, call: Made) -> None:
        """A call of a library that surely happens."""
        for each in (*call.positional, *call.told.values()):
            if isinstance(each, Made) and _family(each.callee):
                self._passed.add(id(each))
                own_loss = truth(call.told.get("compute_loss_func")) is not False
                if call.callee.endswith("Trainer") and each.callee in TRAINERS and not own_loss:
                    self.trainer = call.callee
        self._none |= {name for name in call.told if name in RECEIVERS and bare(call.told[name]) is None}
        if _family(call.callee):
            self._made.append(call)
        elif call.callee == "from_pretrained":
            self._models += [] if self._trained else [call]
        else:
            self._say(_said(call), call.because)
            if call.callee in FROZEN and call.positional and bare(call.positional[0]) is False:
                self._frozen.add(id(_whose(call)))
            self._length(call)
            self._trains = self._trains or call.callee in ("backward", "fit")
            trainer = isinstance(call.by, Made) and call.by.callee.endswith("Trainer")
            self._trained = self._trained or (trainer and call.callee == "train")  # what is loaded later is not trained
            if call.callee in PIECES:
                self._pieces.append(call)
            if call.callee == "DataLoader":
                self._loaders.append(call)

    def end(self, run: Evaluation, unwalked: set[str]) -> None:
        """Objects of settings count if something is given them; all, where nobody saw where they went.

        ``unwalked`` are the names in functions that nobody saw called.
        """
        trained = [each for each in self._models if id(each) not in self._frozen]
        another = any(isinstance(each.by, Ref) and "Model" in each.by.name for each in trained)
        for each in trained if another else self._models:  # beside a frozen teacher or encoder, what is trained counts
            self._say(_said(each), each.because)
        for family in FAMILIES:
            made = [
                each for each in self._made if _family(each.callee) == family and not _forgotten(each, run, unwalked)
            ]
            passed = [each for each in made if id(each) in self._passed]
            lost = not any(RECEIVERS[name] == family for name in self._none)
            for each in passed or (made if lost else []):
                self._say(_said(each), each.because)
        if not any(name in self.said for name in LENGTHS):
            # Of an encoder and a decoder, or of samples and labels, the longest is the bound.
            cut = [_constant(each, "what it is cut to") for each in run.cut if isinstance(bare(each), int)]
            lengths = self._lengths or cut
            known = [each for each in lengths if isinstance(each.value, int)]
            if known and len(known) == len(lengths):
                self.said["max_length"] = max(known, key=lambda each: each.value)  # type: ignore[arg-type,return-value]
        if self._trains and len(self._loaders) == 1 and "batch_size" not in self.said:
            self._say(_loader(self._loaders[0], only=True))
        steps = {repr(bare(by)): by for place, by in run.divided.items() if place in run.counted}
        if len(steps) == 1 and not any(name in self.said for name in STEPS):
            (by,) = steps.values()
            if isinstance(bare(by), int):
                self.said["gradient_accumulation_steps"] = _constant(by, "the loss, which is divided by it")
        if len(self._pieces) == 1:
            self._split(self._pieces[0])

    def _split(self, call: Made) -> None:
        """A batch of the loader that the model sees in pieces: ``batch.split(size)`` or ``batch.chunk(number)``."""
        whole, said = self.said.get("batch_size"), bare(call.positional[0])
        if (
            whole is None
            or not isinstance(whole.value, int)
            or not isinstance(said, int)
            or not 0 < said <= whole.value
        ):
            self.said["batch_size"] = Constant(None, "")
            return
        size = said if call.callee == PIECES[0] else -(-whole.value // said)
        del self.said["batch_size"]
        self.said["per_device_train_batch_size"] = _constant(made_of(size, call.positional[0]), call.callee)
        if not any(name in self.said for name in STEPS):
            self.said["gradient_accumulation_steps"] = Constant(-(-whole.value // size), call.callee)

    def _say(self, said: Iterable[tuple[str, Constant]], because: frozenset[str] = frozenset()) -> None:
        for name, each in said:
            constant = replace(each, arguments=each.arguments | because)
            earlier = self.said.setdefault(name, constant)
            if constant.place.startswith("."):  # an attribute is set anew
                self.said[name] = constant
            elif earlier.value != constant.value:
                self.said[name] = Constant(None, "")

    def _length(self, call: Made) -> None:
        """Texts that are cut: a tokenizer with ``truncation``, and ``max_length`` or its own ``model_max_length``."""
        own = call.by.told.get("model_max_length") if isinstance(call.by, Made) else None
        length = call.told.get("max_length", own)
        if length is not None and truth(call.told.get("truncation")) is True:
            self._lengths.append(_constant(length, f"{call.callee}.max_length"))


def _said(call: Made) -> Iterator[tuple[str, Constant]]:
    callee, given = call.callee, call.told
    if callee.startswith("."):
        if callee[1:] in ATTRIBUTES:
            yield callee[1:], _constant(call.positional[0], callee)
    elif callee in SWITCHES:
        if bare(given.get(SWITCHES[callee], True)) is True and "**" not in given:
            yield "gradient_checkpointing", Constant(value=True, place=callee)
    elif callee in CASTS:
        if kind := _cast(call):
            yield "mixed_precision", Constant(kind, callee, sources([*call.positional, *given.values()]))
    elif callee in LOSSES:
        yield "loss", Constant(callee, callee)
    elif _in_batch(call):
        yield "loss", Constant(IN_BATCH, callee)
    elif callee in SHARDED:
        yield "fsdp", _sharded(call)
    elif callee in OPTIMIZERS:
        name = OPTIMIZERS[callee]
        if callee == "SGD" and ("**" in given or bare(given.get("momentum", 0)) != 0):
            name = "sgd-momentum"
        yield "optim", Constant("adamw_torch_fused" if bare(given.get("fused")) is True else name, callee)
    elif callee == "DataLoader":
        yield from _loader(call)
    elif _ONLY_WITH.get(callee) is None or _ONLY_WITH[callee](given):
        yield from _keywords(callee, given)


def _cast(call: Made) -> str | None:
    """The 16 bits of autocast, or those of the parameters of FSDP's ``MixedPrecision``."""
    if call.unlearned or "**" in call.told:
        return None
    given, first = call.told, call.positional[0] if call.positional else None
    dtype: object
    enabled: object
    if call.callee != "autocast":
        dtype, enabled = given.get("param_dtype", first), True
    elif first is not None and not isinstance(bare(first), str) and len(call.positional) == 1 and "dtype" not in given:
        dtype, enabled = _HALF, first  # torch.cuda.amp's
    else:
        second = call.positional[1] if len(call.positional) > 1 else _HALF
        dtype, enabled = given.get("dtype", second), given.get("enabled", True)
    known = bare(dtype)
    return _TYPES.get(known.name) if isinstance(known, Ref) and truth(enabled) is True else None


def _in_batch(call: Made) -> bool:
    """Whether a loss has the place in the batch for a class: each pair is told from all others of the batch."""
    if call.callee != "cross_entropy" and not (isinstance(call.by, Made) and call.by.callee == "CrossEntropyLoss"):
        return False
    target = call.told.get("target", call.positional[1] if len(call.positional) > 1 else None)
    while isinstance(target, Made) and target.callee in ("to", "cuda", "long"):
        target = target.by
    return isinstance(target, Made) and target.callee == "arange"


def _sharded(call: Made) -> Constant:
    """How PyTorch's FSDP shards, in the words of ``TrainingArguments.fsdp``."""
    strategy, offload = bare(call.told.get("sharding_strategy")), bare(call.told.get("cpu_offload"))
    word = strategy.last.lower() if isinstance(strategy, Ref) else "full_shard" if strategy is None else None
    offloads = offload.told.get("offload_params", False) if isinstance(offload, Made) else offload
    if word is None or "**" in call.told or truth(offloads) is None:
        return Constant(None, call.callee)
    return Constant(f"{word} offload" if truth(offloads) else word, call.callee)


def _loader(call: Made, *, only: bool = False) -> Iterator[tuple[str, Constant]]:
    """What a loader says that shuffles: others are of what is evaluated, unless it is the only one."""
    given = dict(call.told)
    if len(call.positional) > 1:
        given.setdefault("batch_size", call.positional[1])
    sampler = given.get("sampler")
    drawn = (
        isinstance(sampler, Made) and sampler.callee in _SAMPLERS and bare(sampler.told.get("shuffle", True)) is True
    )
    if only or drawn or any(bare(given.get(name)) is True for name in ("shuffle", "drop_last")):
        yield from _keywords("DataLoader", given)


def _keywords(callee: str, given: Mapping[str, object]) -> Iterator[tuple[str, Constant]]:
    settings = callee in TRAINERS
    loaded = bare(given.get(MODEL_KEYWORDS)) if settings else None
    if isinstance(loaded, dict):
        yield from _keywords("from_pretrained", loaded)
    names = _same(*given) if settings else CALLS.get(callee, {})
    for keyword, value in given.items():
        if keyword in names and keyword != "**":
            yield names[keyword], _constant(value, f"{callee}.{keyword}")
    if callee in OBJECTIVES:
        yield "rlhf_type", Constant(OBJECTIVES[callee], callee)
    if settings and "**" not in given:
        for keyword, value in _DEFAULTS.items():
            if keyword not in given:
                yield keyword, Constant(value, f"{callee}, by default")


def _constant(value: object, place: str) -> Constant:
    known = _plain(bare(value)) if small(value) else None
    if isinstance(value, Argued):
        return Constant(known, place, value.arguments, value.direct)
    return Constant(known, place)


def _whose(call: Made) -> object:
    """What the parameters of a model, or what was moved, come from."""
    found = call.by
    while isinstance(found, Made) and found.callee in ("item", "parameters", "to", "cuda", "eval"):
        found = found.by
    return found


def _unwalked(tree: ast.Module, walked: set[int]) -> set[str]:
    """Names in functions of the script that nobody saw called."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    return {
        each.id for node in functions if id(node) not in walked for each in ast.walk(node) if isinstance(each, ast.Name)
    }


def _forgotten(made: Made, run: Evaluation, unwalked: set[str]) -> bool:
    """Whether something has a name that nobody looks at."""
    return id(made) in run.bound and id(made) not in run.read and run.bound[id(made)] not in unwalked


def _plain(value: object) -> object:
    """A value as a job file would have it; None where it is not known."""
    if isinstance(value, Ref):
        return value.name if value.name.startswith("torch.") else None
    if isinstance(value, list | tuple):
        found = [_plain(bare(each)) for each in value]
        return None if None in found else found
    if isinstance(value, dict):
        return {name: _plain(bare(each)) for name, each in value.items()}
    return value if literal(value) else None


def _family(callee: str) -> str | None:
    if callee in TRAINERS:
        return "settings"
    return {"LoraConfig": "adapters", "BitsAndBytesConfig": "bits"}.get(callee)
