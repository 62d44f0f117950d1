"""Trains a small model for a few steps on random data, as one row of ``cpu.csv`` says; started by `measure_cpu`.

It runs with the Python of a training image, where there is no Sagefit. Argument: the row as JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import tempfile
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

Row = dict[str, Any]

GROUPS = 3  # optimizer steps: from the second on, its state is there throughout


class Layer(nn.Module):  # type: ignore[misc]
    """A decoder layer in the manner of GPT-2: norms before attention and MLP."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        hidden, self.heads, self.drop = row["hidden"], row["heads"], 0.1 if row["dropout"] == "yes" else 0.0
        self.norms = nn.ModuleList([nn.LayerNorm(hidden), nn.LayerNorm(hidden)])
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, row["ffn"]), nn.Linear(row["ffn"], hidden)

    def forward(self, x: Any) -> Any:
        shape = (*x.shape[:2], self.heads, -1)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.drop)
        x = x + functional.dropout(self.out(mixed.transpose(1, 2).flatten(2)), self.drop)
        return x + functional.dropout(self.down(functional.gelu(self.up(self.norms[1](x)))), self.drop)


class Decoder(nn.Module):  # type: ignore[misc]
    """A language model of such layers; the head has weights of its own unless the row says tied."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.checkpointing = row["gradient_checkpointing"] == "yes"
        self.tokens = nn.Embedding(row["vocab"], row["hidden"])
        self.positions = nn.Embedding(row["sequence_length"], row["hidden"])
        self.layers = nn.ModuleList([Layer(row) for _ in range(row["layers"])])
        self.norm, self.head = nn.LayerNorm(row["hidden"]), nn.Linear(row["hidden"], row["vocab"], bias=False)
        if row["tied"] == "yes":
            self.head.weight = self.tokens.weight

    def forward(self, ids: Any) -> Any:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointing else layer(x)
        return self.head(self.norm(x))


def hugging_face(row: Row) -> Any:
    """A model of transformers with random weights, by its kind."""
    hf = importlib.import_module("transformers")
    names = {
        "vocab_size": "vocab",
        "hidden_size": "hidden",
        "num_hidden_layers": "layers",
        "num_attention_heads": "heads",
        "intermediate_size": "ffn",
    }
    common = {theirs: row[ours] for theirs, ours in names.items() if ours in row}
    if row["model"].startswith("llama"):
        config = hf.LlamaConfig(
            num_key_value_heads=row["kv_heads"], tie_word_embeddings=row["tied"] == "yes", use_cache=False, **common
        )
        model = hf.LlamaForCausalLM(config)
    elif row["model"].startswith("bert"):
        model = hf.BertForSequenceClassification(hf.BertConfig(**common))
    elif row["model"] == "mobilenetv2_100":
        model = hf.MobileNetV2ForImageClassification(hf.MobileNetV2Config(num_labels=1000))
    elif row["model"] == "deit_tiny_patch16_224":
        model = hf.ViTForImageClassification(
            hf.ViTConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768, num_labels=1000)
        )
    else:
        shapes = {
            "resnet18": {"layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512]},
            "resnet50": {},
        }
        model = hf.ResNetForImageClassification(hf.ResNetConfig(num_labels=1000, **shapes[row["model"]]))
    if row["gradient_checkpointing"] == "yes":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if row["method"] == "lora":
        peft = importlib.import_module("peft")
        if row["gradient_checkpointing"] == "yes":
            model.enable_input_require_grads()
        model = peft.get_peft_model(model, peft.LoraConfig(r=row["lora_rank"], target_modules="all-linear"))
    return model


def batch_of(row: Row, generator: Any) -> tuple[Any, Any]:
    """One micro-batch: inputs and labels."""
    size = row["micro_batch"]
    if row["family"] == "vision":
        image = row["image_size"]
        return torch.randn(size, 3, image, image, generator=generator), torch.randint(1000, (size,))
    ids = torch.randint(row["vocab"], (size, row["sequence_length"]), generator=generator)
    return ids, torch.zeros(size, dtype=torch.long) if row["head"] == "classification" else ids


def loss_of(model: Any, row: Row, inputs: Any, labels: Any) -> Any:
    """The loss of one micro-batch, averaged over the group it belongs to."""
    mixed = row["precision"] == "bf16-mixed"
    with torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext():
        if row["family"] == "vision":
            return functional.cross_entropy(model(inputs).logits.float(), labels) / row["accumulation"]
        if row["image"] == "huggingface":
            return model(input_ids=inputs, labels=labels).loss / row["accumulation"]
        scores = model(inputs).float()
        return functional.cross_entropy(scores.flatten(0, 1), labels.flatten()) / row["accumulation"]


def optimizer_of(model: Any, row: Row) -> Any:
    """The optimizer by the planner's name for it."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if row["optimizer"] == "adamw":
        return torch.optim.AdamW(trained, lr=1e-4)
    return torch.optim.SGD(trained, lr=1e-3, momentum=0.9 if row["optimizer"] == "sgd-momentum" else 0.0)


def loop(model: Any, row: Row) -> None:
    """Training as one writes it by hand."""
    generator = torch.Generator().manual_seed(0)
    optimizer = optimizer_of(model, row)
    for _ in range(GROUPS):
        for _ in range(row["accumulation"]):
            loss_of(model, row, *batch_of(row, generator)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def trainer(model: Any, row: Row) -> None:
    """Training by Hugging Face's Trainer."""
    hf = importlib.import_module("transformers")
    generator = torch.Generator().manual_seed(0)
    count = GROUPS * row["accumulation"] * row["micro_batch"]
    samples = [batch_of(row | {"micro_batch": 1}, generator) for _ in range(count)]
    data = [{"input_ids": inputs[0], "labels": labels[0]} for inputs, labels in samples]
    with tempfile.TemporaryDirectory() as folder:
        options = hf.TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=row["micro_batch"],
            gradient_accumulation_steps=row["accumulation"],
            gradient_checkpointing=row["gradient_checkpointing"] == "yes",
            bf16=row["precision"] == "bf16-mixed",
            num_train_epochs=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        )
        hf.Trainer(model=model, args=options, train_dataset=data).train()


def main() -> None:
    row = json.loads(sys.argv[1])
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = hugging_face(row) if row["image"] == "huggingface" else Decoder(row)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    (trainer if row["stack"] == "hf-trainer" else loop)(model, row)
    print(json.dumps({"params": parameters, "torch": torch.__version__}), flush=True)
    os._exit(0)  # the end of an interpreter takes memory of its own


if __name__ == "__main__":
    main()
