"""What a script itself tells the libraries that it calls, by constants: ``TrainingArguments(bf16=True)``.

Only calls count that surely happen: those of the module and of functions that it calls by name, outside of branches
and handlers. A name that is bound once, to a literal, is that literal. Of two calls that say different things
nothing is taken.
"""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

TRAINERS = (
    *("TrainingArguments", "Seq2SeqTrainingArguments", "SentenceTransformerTrainingArguments", "SFTConfig"),
    *("DPOConfig", "KTOConfig", "ORPOConfig", "CPOConfig", "GRPOConfig", "GKDConfig", "RewardConfig"),
)
"""Calls whose keywords are names of hyperparameters."""


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_ADAPTERS = {"r": "lora_r", "target_modules": "lora_target_modules", **_same("use_dora", "modules_to_save")}
CALLS: dict[str, Mapping[str, str]] = {
    "LoraConfig": _ADAPTERS,
    "get_peft_model": {**_ADAPTERS, **_same("use_gradient_checkpointing")},  # Unsloth's
    "BitsAndBytesConfig": _same("load_in_4bit", "load_in_8bit"),
    "from_pretrained": _same("load_in_4bit", "load_in_8bit", "attn_implementation", "torch_dtype", "max_seq_length"),
    "Trainer": _same("precision", "accumulate_grad_batches"),  # Lightning's
    "Accelerator": _same("mixed_precision", "gradient_accumulation_steps"),
    "DataLoader": _same("batch_size", "num_workers", "prefetch_factor"),
    "train": _same("imgsz", "batch", "nbs", "device", "amp", "workers", "optimizer"),  # Ultralytics'
}
"""What each call is told, by keyword: the name of the hyperparameter that says the same."""
# A call of this name counts only with this keyword, so as to be no other: a loader of what is evaluated, a Trainer's.
_ONLY_WITH: dict[str, tuple[str, object]] = {"DataLoader": ("shuffle", True), "train": ("data", None)}
SWITCHES = {"gradient_checkpointing_enable": "", "prepare_model_for_kbit_training": "use_gradient_checkpointing"}
"""Calls that say something by being there, and the keyword that takes it back."""
OPTIMIZERS = {
    "AdamW": "adamw_torch",
    "Adam": "adamw_torch",
    "AdamW8bit": "adamw_bnb_8bit",
    "PagedAdamW8bit": "paged_adamw_8bit",
    "Adafactor": "adafactor",
    "Lion": "lion",
    "SGD": "sgd",
}
"""Classes of optimizers as ``optim`` of ``TrainingArguments`` has them."""
_AUTOCASTS = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}
_NAMED = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NOT_SURE = (ast.IfExp, ast.ExceptHandler, ast.While, ast.Lambda, ast.ClassDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Constant:
    """What a call is told: a literal (None where that is not known), and its place, as ``LoraConfig.r``."""

    value: object
    place: str


def calls_of(tree: ast.Module) -> dict[str, Constant]:
    """What the calls of a script say, by the name that a hyperparameter would have."""
    literals = _literals(tree)
    said: dict[str, Constant] = {}
    for call in _sure(tree):
        for name, constant in _said(call, literals):
            earlier = said.setdefault(name, constant)
            if earlier.value != constant.value:
                said[name] = Constant(None, "")
    return {name: constant for name, constant in said.items() if constant.value is not None}


def _said(call: ast.Call, literals: Mapping[str, object]) -> Iterator[tuple[str, Constant]]:
    callee = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = {each.arg: _value(each.value, literals) for each in call.keywords if each.arg}
    if callee in SWITCHES:
        if given.get(SWITCHES[callee], True) is True:
            yield "gradient_checkpointing", Constant(value=True, place=callee)
    elif callee == "autocast":
        dtype = _AUTOCASTS.get(str(given.get("dtype", "torch.float16")))
        if dtype and given.get("enabled", True) is True:
            yield "mixed_precision", Constant(dtype, "autocast")
    elif callee in OPTIMIZERS:
        name = OPTIMIZERS[callee]
        if callee == "SGD" and given.get("momentum", 0) != 0:
            name = "sgd-momentum"
        yield "optim", Constant("adamw_torch_fused" if given.get("fused") is True else name, callee)
    else:
        yield from _keywords(callee, given)


def _keywords(callee: str, given: Mapping[str, object]) -> Iterator[tuple[str, Constant]]:
    keyword, wanted = _ONLY_WITH.get(callee, ("", None))
    if keyword and (keyword not in given or wanted not in (None, given[keyword])):
        return
    names = _same(*given) if callee in TRAINERS else CALLS.get(callee, {})
    for keyword, value in given.items():
        if keyword in names:
            yield names[keyword], Constant(value, f"{callee}.{keyword}")


def _value(node: ast.expr, literals: Mapping[str, object]) -> object:
    """A literal, a name that is one, or a dtype of torch; None for all else."""
    if isinstance(node, ast.Name):
        return literals.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return f"torch.{node.attr}"
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _literals(tree: ast.Module) -> dict[str, object]:
    """Names of the script that are bound once, to a literal."""
    bound: Counter[str] = Counter()
    values: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound[node.id] += 1
        elif isinstance(node, ast.arg):
            bound[node.arg] += 1
        elif isinstance(node, ast.alias):
            bound[node.asname or node.name] += 1
        elif isinstance(node, _NAMED) and node.name:
            bound[node.name] += 1
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values |= {each.id: _value(node.value, {}) for each in targets if isinstance(each, ast.Name)}
    return {name: value for name, value in values.items() if bound[name] == 1 and value is not None}


def _sure(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls that happen in any run, those of functions included that such a call names."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    seen: set[str] = set()
    ahead: deque[ast.AST] = deque(node for node in tree.body if not isinstance(node, ast.FunctionDef))
    while ahead:
        node = ahead.popleft()
        if isinstance(node, _NOT_SURE) or (isinstance(node, ast.If) and not _is_main(node)):
            continue
        if isinstance(node, ast.Call):
            yield node
            name = getattr(node.func, "id", "")
            if name in functions and name not in seen:
                seen.add(name)
                ahead += functions[name].body
        ahead += [inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.FunctionDef)]


def _is_main(node: ast.If) -> bool:
    return isinstance(node.test, ast.Compare) and getattr(node.test.left, "id", "") == "__name__"
