"""What a script tells its libraries by constants counts, where nothing else says it and the call surely happens."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.job import Job, load_job
from sagefit.job.other_names import OPTIMIZERS as KNOWN
from sagefit.job.script_calls import CALLS, OPTIMIZERS, SWITCHES, TRAINERS, calls_of
from sagefit.memory import Workload
from sagefit.memory.read import described
from sagefit.paths import ROOT
from sagefit.planning.changes import changes_of
from sagefit.planning.remedies import accumulate

LLAMA = {"model": "meta-llama/Llama-3.2-1B", "stack": "hf-trainer"}
SFT = """
import torch
from peft import LoraConfig, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

LENGTH = 2048


def adapters():
    return LoraConfig(r=32, target_modules=["q_proj", "v_proj"])


def main():
    bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
    model = AutoModelForCausalLM.from_pretrained("a", quantization_config=bits, attn_implementation="sdpa")
    model = prepare_model_for_kbit_training(model)
    told = SFTConfig("/opt/ml/model", per_device_train_batch_size=4, gradient_accumulation_steps=8, bf16=True,
                     max_length=LENGTH, optim="paged_adamw_8bit")
    SFTTrainer(model=model, args=told, peft_config=adapters()).train()


if __name__ == "__main__":
    main()
"""


def job_of(
    folder: Path, script: str, memory: dict[str, Any] = LLAMA, hyperparameters: dict[str, Any] | None = None
) -> Job:
    changes = {
        "code": {"source_dir": "src", "entry_point": "train.py"},
        "hyperparameters": hyperparameters,
        "memory": memory,
        "image": {"framework": "pytorch", "version": "2.6"},
    }
    path = write_job(folder, changes)
    (folder / "src" / "train.py").write_text(script, encoding="utf-8")
    return load_job(str(path))


def told(folder: Path, script: str, *args: Any) -> Workload:
    return described(job_of(folder, script, *args))


def found(script: str) -> dict[str, object]:
    return {name: each.value for name, each in calls_of(ast.parse(script)).items()}


def test_a_script_without_hyperparameters_is_planned_as_it_trains(tmp_path: Path) -> None:
    workload = told(tmp_path, SFT)
    assert (workload.method, workload.lora_rank, workload.lora_targets) == ("qlora", 32, "attention")
    assert (workload.micro_batch, workload.accumulation, workload.sequence_length) == (4, 8, 2048)
    assert (workload.precision, workload.optimizer, workload.gradient_checkpointing) == (
        "bf16-mixed",
        "paged-adamw-8bit",
        True,
    )
    notes = "\n".join(workload.notes)
    assert "train.py: BitsAndBytesConfig.load_in_4bit is true, so method is taken as qlora" in notes
    assert "train.py: micro_batch 4, sequence_length 2048, lora_rank 32" in notes


def test_what_the_job_says_counts_before_the_script(tmp_path: Path) -> None:
    assert told(tmp_path, SFT, LLAMA, {"per_device_train_batch_size": 1}).micro_batch == 1
    workload = told(tmp_path, SFT, LLAMA | {"micro_batch": 2, "method": "lora"})
    assert (workload.micro_batch, workload.method) == (2, "lora")
    assert any("SFTConfig.per_device_train_batch_size is 4; memory.micro_batch, 2, counts" in n for n in workload.notes)


@pytest.mark.parametrize("name", ["per_device_train_batch_size", "batch_size"])
def test_a_number_that_the_script_may_not_listen_to_is_said(tmp_path: Path, name: str) -> None:
    workload = told(tmp_path, SFT, LLAMA, {name: 1, "max_length": 2048})
    (note,) = [note for note in workload.notes if "goes by it" in note]
    said = "train.py: SFTConfig.per_device_train_batch_size is 4; "
    assert note == f"{said}hyperparameters.{name}, 1, counts if the script goes by it"


def test_no_attempt_sets_a_constant_of_the_script(tmp_path: Path) -> None:
    job = job_of(tmp_path, SFT)
    assert accumulate(job, {}, described(job)) is None
    texts = [change.text for change in changes_of(job, described(job))]
    assert "memory.micro_batch: 2 with memory.accumulation: 16" in texts


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("TrainingArguments(bf16=True, fsdp='full_shard auto_wrap')", {"bf16": True, "fsdp": "full_shard auto_wrap"}),
        ("B = 4\nTrainingArguments(per_device_train_batch_size=B)", {"per_device_train_batch_size": 4}),
        ("B: int = 4\nDPOConfig(max_length=B)", {"max_length": 4}),
        ("AutoModel.from_pretrained('a', torch_dtype=torch.bfloat16)", {"torch_dtype": "torch.bfloat16"}),
        ("F.get_peft_model(m, r=8, use_gradient_checkpointing='unsloth')", "unsloth's"),
        ("m.gradient_checkpointing_enable()", {"gradient_checkpointing": True}),
        ("pl.Trainer(precision='bf16-mixed', max_epochs=3)", {"precision": "bf16-mixed"}),
        ("YOLO('a').train(data='b', imgsz=640, device=[0, 1])", {"imgsz": 640, "device": [0, 1]}),
        ("def f():\n  g()\ndef g():\n  LoraConfig(r=4)\nf()", {"lora_r": 4}),
        ("def f():\n  f()\n  LoraConfig(r=4)\nf()", {"lora_r": 4}),
        ("DataLoader(a, batch_size=8, shuffle=True, num_workers=4)", {"batch_size": 8, "num_workers": 4}),
        ("YOLO('a').train(data='b', batch=-1)", {"batch": -1}),
        ("TrainingArguments(fsdp_config={'a': [1]})", {"fsdp_config": {"a": [1]}}),
        ("Accelerator(mixed_precision='bf16')", {"mixed_precision": "bf16"}),
        ("for a in b:\n  with torch.autocast('cuda', dtype=torch.bfloat16):\n    c()", {"mixed_precision": "bf16"}),
        ("with autocast():\n  c()", {"mixed_precision": "fp16"}),
        ("optim.AdamW(a)", {"optim": "adamw_torch"}),
        ("optim.AdamW(a, fused=True)", {"optim": "adamw_torch_fused"}),
        ("SGD(a, lr=1)", {"optim": "sgd"}),
        ("SGD(a, momentum=args.momentum)", {"optim": "sgd-momentum"}),
        ("with open('a') as b:\n  LoraConfig(r=4)", {"lora_r": 4}),
    ],
)
def test_what_counts(script: str, said: object) -> None:
    unsloth = {"lora_r": 8, "use_gradient_checkpointing": "unsloth"}
    assert found(script) == (unsloth if said == "unsloth's" else said)


@pytest.mark.parametrize(
    "script",
    [
        "if args.lora:\n  LoraConfig(r=4)",
        "c = LoraConfig(r=4) if lora else None",
        "def main():\n  LoraConfig(r=4)",  # nobody calls it
        "class A:\n  def run(self):\n    LoraConfig(r=4)\nA().run()",
        "try:\n  import a\nexcept ImportError:\n  LoraConfig(r=4)",
        "while r:\n  LoraConfig(r=4)",
        "DataLoader(a, batch_size=8)",
        "DataLoader(a, batch_size=8, shuffle=False)",
        "torch.autocast('cuda', dtype=torch.bfloat16, enabled=args.amp)",
        "torch.autocast('cuda', dtype=kind)",
        "AdamW(a)\nSGD(b)",
        "LoraConfig(r=4)\nLoraConfig(r=8)",
        "R = 4\nR = 8\nLoraConfig(r=R)",
        "def f(R):\n  pass\nR = 4\nLoraConfig(r=R)",
        "LoraConfig(r=args.r)",
        "LoraConfig(r=4)\nLoraConfig(r=args.r)",
        "LoraConfig(r=4)\nLoraConfig(r=8)\nLoraConfig(r=4)",
        "LoraConfig(r=2 * 2)",
        "LoraConfig(**options)",
        "prepare_model_for_kbit_training(m, use_gradient_checkpointing=args.save)",
        "trainer.train(batch=8)",  # of something else: without data
        "other(bf16=True)",
    ],
)
def test_what_is_not_sure_says_nothing(script: str) -> None:
    assert found(script) == {}


YOLO = """
from ultralytics import YOLO

YOLO("yolov8n.pt").train(data="coco8.yaml", imgsz=320, batch=8, workers=2)
"""
YOLOV8 = {"model": "yolov8n"}
PARSED = "import argparse\n"


def test_ultralytics_is_told_by_its_call(tmp_path: Path) -> None:
    workload = told(tmp_path, YOLO, YOLOV8)
    assert (workload.micro_batch, workload.accumulation, workload.workers) == (8, 8, 2)
    assert workload.precision == "fp16-mixed"
    assert any("train.imgsz is 320, so image_size is taken as 320" in note for note in workload.notes)


def test_ultralytics_defaults_are_taken_and_said(tmp_path: Path) -> None:
    workload = told(tmp_path, PARSED, YOLOV8)
    assert (workload.micro_batch, workload.precision) == (16, "fp16-mixed")
    assert sum("Ultralytics' default" in note for note in workload.notes) == 2
    assert told(tmp_path, PARSED, YOLOV8, {"amp": False}).precision == "fp32"
    assert told(tmp_path, PARSED, YOLOV8 | {"precision": "fp32", "micro_batch": 2}).micro_batch == 2
    assert told(tmp_path, PARSED, {"model": "resnet50"}).precision == "fp32"


def test_a_smaller_batch_of_ultralytics_accumulates_by_itself(tmp_path: Path) -> None:
    """It takes a step after 64 samples, so half the batch is the same training."""
    job = job_of(tmp_path, PARSED, YOLOV8, {"batch": 32})
    assert described(job).accumulation == 2
    remedy = accumulate(job, {}, described(job))
    assert remedy is not None
    assert remedy.hyperparameters == {"batch": 16}
    assert (remedy.workload.micro_batch, remedy.workload.accumulation) == (16, 4)
    assert "hyperparameters.batch: 16" in [change.text for change in changes_of(job, described(job))]


@pytest.mark.parametrize(
    ("hyperparameters", "set_to"),
    [
        ({"batch": 128}, None),  # 64 would be other steps
        ({"batch": 32, "device": "0,1"}, None),
        ({"batch": 32, "nbs": 32}, {"batch": 16}),
        ({"batch": 32, "gradient_accumulation_steps": 2}, {"batch": 16, "gradient_accumulation_steps": 4}),
    ],
)
def test_a_batch_that_would_train_otherwise_is_left(
    tmp_path: Path, hyperparameters: dict[str, Any], set_to: dict[str, Any] | None
) -> None:
    job = job_of(tmp_path, PARSED, YOLOV8, hyperparameters)
    remedy = accumulate(job, {}, described(job))
    assert (remedy.hyperparameters if remedy else None) == set_to


def test_each_call_is_documented() -> None:
    page = (ROOT / "docs/job-file.md").read_text(encoding="utf-8")
    keywords = {keyword for told in CALLS.values() for keyword in told}
    assert [name for name in {*CALLS, *keywords, *SWITCHES, *OPTIMIZERS} if f"`{name}`" not in page] == []
    assert {"TrainingArguments", "SFTConfig", "DPOConfig"} <= {*TRAINERS}
    assert set(OPTIMIZERS.values()) <= set(KNOWN)
