"""Measure what the losses of TRL's trainers need for each logit, by running their own training step on the CPU.

Run it in an environment of its own, which needs no GPU; the figures are those of ``objectives.PROFILES``:

    python3 -m venv ENV && ENV/bin/pip install torch==2.13.0 transformers==4.57.1 trl==0.24.0 peft==0.17.1
    ENV/bin/python tools/trace_objectives.py            # a few minutes; TRL 1 does the same with transformers 5

The model has one narrow layer and a wide vocabulary, so that next to nothing is counted but logits and what a loss
makes of them. A dispatch mode sees every tensor that an operator makes, and when its storage is freed: the peak is
counted to the byte. Printed are bytes for each token of the longest sequence of an example and entry of the
vocabulary; a pair of answers counts once.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import sys
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any

VOCABULARY = 32_000
PROMPT, ANSWER = 16, 112
BATCH = 8
TRAINERS = {
    "sft": ("SFT", "sft"),
    "dpo": ("DPO", "dpo"),
    "orpo": ("ORPO", "orpo"),
    "cpo": ("CPO", "cpo"),
    "kto": ("KTO", "kto"),
    "reward": ("Reward", "reward"),
    "grpo": ("GRPO", "grpo"),
    "gkd": ("GKD", "gkd"),
}


def _counting() -> Any:
    """A dispatch mode with ``now`` and ``peak``, bytes of what operators made and nobody has freed."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Counting(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.now = self.peak = 0
            self.alive: set[int] = set()

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = function(*args, **(kwargs or {}))
            given = {
                leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
            }
            for leaf in tree_leaves(made):
                if isinstance(leaf, torch.Tensor):
                    self._keep(leaf.untyped_storage(), given)
            return made

        def _keep(self, storage: Any, given: set[int]) -> None:
            key = storage._cdata
            if key in self.alive or key in given:
                return
            size = storage.nbytes()
            self.alive.add(key)
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._free, key, size)

        def _free(self, key: int, size: int) -> None:
            self.alive.discard(key)
            self.now -= size

    return Counting()


def _as_on_gpu() -> None:
    """Let the CPU's autocast compute in fp32 what a GPU's does."""
    folder = Path(__file__).parents[1] / "python/sagefit/memory/trace/child/device.py"
    spec = importlib.util.spec_from_file_location("device", folder)
    assert spec is not None and spec.loader is not None  # noqa: PT018, S101 - for the type checker
    device = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(device)
    device._autocast_list()


def _tokenizer() -> Any:
    """One word is one token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    words = {word: number for number, word in enumerate(special.values())} | {
        f"w{number}": number for number in range(3, 1000)
    }
    raw = Tokenizer(models.WordLevel(words, special["unk_token"]))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        **special,
        model_input_names=["input_ids", "attention_mask"],
    )
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    return made


def _rows(objective: str) -> Any:
    from datasets import Dataset

    prompt = " ".join(f"w{number}" for number in range(3, 3 + PROMPT))
    answer = "".join(f" w{number}" for number in range(100, 100 + ANSWER - 1))
    pair = {"prompt": prompt, "chosen": answer, "rejected": answer}
    row = {
        "sft": {"text": prompt + answer},
        "dpo": pair,
        "orpo": pair,
        "cpo": pair,
        "kto": {"prompt": prompt, "completion": answer, "label": True},
        "reward": {"chosen": prompt + answer, "rejected": prompt + answer},
        "grpo": {"prompt": prompt},
        "gkd": {"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]},
    }[objective]
    rows = [dict(row) for _ in range(4 * BATCH)]
    if objective == "kto":
        for number, each in enumerate(rows):
            each["label"] = number % 2 == 0
    return Dataset.from_list(rows)


def _class(objective: str, what: str) -> Any:
    name = TRAINERS[objective][0] + what
    trl = importlib.import_module("trl")
    try:
        return getattr(trl, name)
    except AttributeError:
        return getattr(importlib.import_module(f"trl.experimental.{TRAINERS[objective][1]}"), name)


def trainer(objective: str, folder: str, *, precision: str, more: dict[str, Any], checkpointing: bool) -> Any:
    """The trainer of ``objective`` with a narrow model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

    tokenizer = _tokenizer()
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=1024,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        num_labels=1,
    )
    kind = LlamaForSequenceClassification if objective == "reward" else LlamaForCausalLM
    made = kind(config)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = kind.from_pretrained(folder, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    config_class, trainer_class = _class(objective, "Config"), _class(objective, "Trainer")
    known = set(config_class.__dataclass_fields__)
    given = {
        "output_dir": folder + "/out",
        "per_device_train_batch_size": BATCH,
        "use_cpu": True,
        "bf16": precision == "bf16-mixed",
        "fp16": False,
        "gradient_checkpointing": checkpointing,
        "report_to": "none",
        "max_length": PROMPT + ANSWER,
        "max_prompt_length": PROMPT,
        "max_completion_length": ANSWER,
        "max_new_tokens": ANSWER,
        "num_generations": BATCH,
        "lmbda": 0.0,
        "disable_tqdm": True,
        "max_steps": 1,
        "save_strategy": "no",
        "dataset_num_proc": None,
    } | more
    arguments = config_class(**{name: value for name, value in given.items() if name in known})
    named: dict[str, Any] = {
        "model": model,
        "args": arguments,
        "train_dataset": _rows(objective),
        "processing_class": tokenizer,
    }
    if objective == "grpo":
        named["reward_funcs"] = [lambda completions, **_: [float(len(text)) for text in completions]]
    if objective == "gkd":
        named["teacher_model"] = kind.from_pretrained(folder, dtype=model.dtype)
    return trainer_class(**named)


def measure(objective: str, **how: Any) -> dict[str, float]:
    """Bytes for each token and entry of the vocabulary at the peak of one training step; for GRPO with its sampling."""
    with tempfile.TemporaryDirectory() as folder:
        made = trainer(objective, folder, **how)
        if objective == "grpo":
            made.generation_config.min_new_tokens = ANSWER  # every answer has its full length
        batch = next(iter(made.get_train_dataloader()))
        made.model.train()
        made.create_optimizer()
        made.current_gradient_accumulation_steps = 1
        counting = _counting()
        gc.collect()
        if objective == "grpo":
            made._buffered_inputs = None
            sampling = _counting()
            with sampling:
                inputs = made._prepare_inputs(batch)
            made._prepare_inputs = lambda given: given
            batch = inputs
        with counting:
            made.training_step(made.model, batch, None)
    logits = BATCH * (PROMPT + ANSWER) * VOCABULARY
    found = {"step": counting.peak / logits}
    if objective == "grpo":
        found["sampling"] = sampling.peak / logits
    return found


def main() -> int:
    """Print a line for each objective and way to train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(TRAINERS))
    parser.add_argument("--precision", default="bf16-mixed", choices=["fp32", "bf16-mixed", "bf16"])
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--more", type=json.loads, default={})
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    _as_on_gpu()
    for objective in given.only:
        found = measure(objective, precision=given.precision, more=given.more, checkpointing=given.checkpointing)
        print(
            objective, given.precision, given.more, {name: round(value, 2) for name, value in found.items()}, flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
