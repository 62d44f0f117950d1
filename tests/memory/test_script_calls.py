"""What a script tells its libraries by constants counts, where nothing else says it and the call surely happens."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.job import Job, load_job
from sagefit.job.other_names import OPTIMIZERS as KNOWN
from sagefit.job.script_calls import CALLS, OBJECTIVES, OPTIMIZERS, SWITCHES, TRAINERS, calls_of
from sagefit.memory import Workload
from sagefit.memory.knobs import name_of
from sagefit.memory.lookalikes import remarks
from sagefit.memory.read import described
from sagefit.memory.told import OBJECTIVES as WORDS
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


def found(script: str, **given: object) -> dict[str, object]:
    return {name: each.value for name, each in calls_of(ast.parse(script), given).said.items()}


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
        ("TrainingArguments(fsdp='full_shard')", {"fsdp": "full_shard", "per_device_train_batch_size": 8}),
        ("B = 4\nTrainingArguments(per_device_train_batch_size=B)", {"per_device_train_batch_size": 4}),
        ("B: int = 4\nSFTConfig(max_length=B, **c)", {"max_length": 4}),
        ("AutoModel.from_pretrained('a', torch_dtype=torch.bfloat16)", {"torch_dtype": "torch.bfloat16"}),
        ("F.get_peft_model(m, r=8, use_gradient_checkpointing='unsloth')", "unsloth's"),
        ("m.gradient_checkpointing_enable()", {"gradient_checkpointing": True}),
        ("pl.Trainer(precision='bf16-mixed', max_epochs=3)", {"precision": "bf16-mixed"}),
        ("YOLO('a').train(data='b', imgsz=640, device=[0, 1])", {"imgsz": 640, "device": [0, 1]}),
        ("def f():\n  g()\ndef g():\n  LoraConfig(r=4)\nf()", {"lora_r": 4}),
        ("def f():\n  f()\n  LoraConfig(r=4)\nf()", {"lora_r": 4}),
        ("DataLoader(a, batch_size=8, shuffle=True, num_workers=4)", {"batch_size": 8, "num_workers": 4}),
        ("YOLO('a').train(data='b', batch=-1)", {"batch": -1}),
        ("TrainingArguments(fsdp_config={'a': [1]}, **b)", {"fsdp_config": {"a": [1]}}),
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
        "class A:\n  def run(self):\n    LoraConfig(r=4)\nA()",
        "try:\n  import a\nexcept ImportError:\n  LoraConfig(r=4)",
        "while r:\n  LoraConfig(r=4)",
        "DataLoader(a, batch_size=8)",
        "DataLoader(a, batch_size=8, shuffle=False)",
        "torch.autocast('cuda', dtype=torch.bfloat16, enabled=args.amp)",
        "torch.autocast('cuda', dtype=kind)",
        "AdamW(a)\nSGD(b)",
        "LoraConfig(r=4)\nLoraConfig(r=8)",
        "R = 4\nfor a in b:\n  R = 8\nLoraConfig(r=R)",
        "R = 4\nif a:\n  R = 8\nLoraConfig(r=R)",
        "LoraConfig(r=args.r)",
        "LoraConfig(r=4)\nLoraConfig(r=args.r)",
        "LoraConfig(r=4)\nLoraConfig(r=8)\nLoraConfig(r=4)",
        "LoraConfig(**options)",
        "prepare_model_for_kbit_training(m, use_gradient_checkpointing=args.save)",
        "trainer.train(batch=8)",  # of something else: without data
        "other(bf16=True)",
    ],
)
def test_what_is_not_sure_says_nothing(script: str) -> None:
    assert found(script) == {}


ARGPARSE = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--bs', type=int, default=6)\n"
CLICK = "import click\n@click.command()\n@click.option('--bs', 'size', default=6)\ndef main(size):\n  {}\nmain()"
TYPER = "import typer\napp = typer.Typer()\n@app.command()\ndef main(bs: int = typer.Option(6)):\n  {}\napp()"
HF = "from transformers import *\n@dataclass\nclass A({}):\n  bs: int = field(default=6)\n"
PASSED = "TrainingArguments(per_device_train_batch_size={})"
LIGHTNING = """
class M(pl.LightningModule):
  def __init__(self, rate=1, size=2):
    self.save_hyperparameters()
  def train_dataloader(self):
    return DataLoader(a, batch_size=self.hparams.size, shuffle=True)
pl.Trainer(precision='16-mixed').fit(M(size=6))
"""


@pytest.mark.parametrize(
    ("script", "given"),
    [
        (ARGPARSE + "a = p.parse_args()\n" + PASSED.format("a.bs"), "bs"),
        (ARGPARSE + "a, _ = p.parse_known_args()\n" + PASSED.format("a.bs"), "bs"),
        (ARGPARSE + "a = vars(p.parse_args())\n" + PASSED.format("a['bs']"), "bs"),
        (ARGPARSE + "def f(a):\n  b = int(a.bs)\n  " + PASSED.format("b") + "\nf(p.parse_args())", "bs"),
        (CLICK.format(PASSED.format("size")), "size"),
        (TYPER.format(PASSED.format("bs")), "bs"),
        ("import fire\ndef f(bs=6):\n  " + PASSED.format("bs") + "\nfire.Fire(f)", "bs"),
        (HF.format("") + "a = HfArgumentParser(A).parse_args_into_dataclasses()[0]\n" + PASSED.format("a.bs"), "bs"),
        (HF.format("") + "a, b = TrlParser((A, SFTConfig)).parse_args_and_config()\n" + PASSED.format("a.bs"), "bs"),
        ("import os\nb = int(os.environ.get('SM_HP_BS', 6))\n" + PASSED.format("b"), "bs"),
        ("class C:\n  bs = 6\nc = C()\n" + PASSED.format("c.bs"), None),
        ("c = dict(bs=6)\nc.update(x=1)\n" + PASSED.format("c['bs']"), None),
        ("c = {'t': {'per_device_train_batch_size': 6}}\nTrainingArguments(**c['t'])", None),
        ("import yaml\nc = yaml.safe_load('t: {bs: 6}')\n" + PASSED.format("c['t']['bs']"), None),
        ("from argparse import Namespace\nc = Namespace(bs=24 // 4)\n" + PASSED.format("c.bs"), None),
        ("b = 2 if None else 6\nif b == 2:\n  b = 3\n" + PASSED.format("b"), None),
        ("class A(TrainingArguments):\n  per_device_train_batch_size = 6\nA()", None),
        ("import os\nb = 6 if os.environ.get('BIG', '0') == '0' else 8\n" + PASSED.format("b"), None),
        ("small, a = TrainingArguments(**b), " + PASSED.format("6") + "\nTrainer(m, args=a)", None),
        (
            "class R:\n  def __init__(self, n):\n    self.n = n\n  def go(self):\n    "
            + PASSED.format("self.n")
            + "\nR(6).go()",
            None,
        ),
    ],
)
def test_a_value_is_followed_to_the_call(script: str, given: str | None) -> None:
    assert found(script)["per_device_train_batch_size"] == 6
    if given:
        assert found(script, **{given: 3})["per_device_train_batch_size"] == 3


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (LIGHTNING, {"batch_size": 6, "precision": "16-mixed"}),
        ("L = DataLoader(a, 6, drop_last=True)", {"batch_size": 6}),
        ("L = DataLoader(a, 6, sampler=DistributedSampler(a))", {"batch_size": 6}),
        ("def f(b):\n  return tok(b['a'], truncation=True, max_length=384)\nd.map(f)", {"max_length": 384}),
        ("tok(a, truncation=True, max_length=64)\ntok(b, truncation=True, max_length=512)", {"max_length": 512}),
        ("tok(a, truncation=True, max_length=64)\ntok(b, truncation=True, max_length=n)", {}),
        ("tok(a, max_length=64)", {}),
        ("m = SentenceTransformer('a')\nm.max_seq_length = 75", {"max_seq_length": 75}),
        ("k = torch.optim.AdamW\nk(a)", {"optim": "adamw_torch"}),
        ("N = 4\nfor i in d:\n  loss = m(i) / N\n  if i % N == 0:\n    o.step()", {"gradient_accumulation_steps": 4}),
        ("for i in d:\n  loss = (a + b) / 2\n  if i % 2 == 0:\n    o.step()", {}),
        ("N = 4\nloss = m(i) / N", {}),
        (
            "q = BitsAndBytesConfig(load_in_4bit=True)\nM.from_pretrained(quantization_config=q if False else None)",
            {},
        ),
        (
            "q = BitsAndBytesConfig(load_in_4bit=True)\nM.from_pretrained('a', quantization_config=q)",
            {"load_in_4bit": True},
        ),
        (
            "class D:\n  def __getitem__(self, i):\n    return tok(i, truncation=True, max_length=9)\nDataLoader(D())",
            {"max_length": 9},
        ),
        ("import torch\nMixedPrecision(torch.bfloat16, torch.bfloat16)", {"mixed_precision": "bf16"}),
        ("FullyShardedDataParallel(m, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)", {"fsdp": "shard_grad_op"}),
        ("fully_shard(m)", {"fsdp": "full_shard"}),
        ("fully_shard(m, **more)", {}),
        ("TripletLoss(m)", {"loss": "TripletLoss"}),
        ("raise SystemExit\nLoraConfig(r=4)", {}),
        ("import sys\nsys.exit()\nLoraConfig(r=4)", {}),
        ("if a:\n  sys.exit()\nLoraConfig(r=4)", {"lora_r": 4}),
        ("import sys\nif len(sys.argv) > 1:\n  exit()\nLoraConfig(r=4)", {"lora_r": 4}),
        ("torch.cuda.amp.autocast(False)", {}),
        ("torch.cuda.amp.autocast(flag)", {}),
        ("import torch\ntorch.autocast('cuda', torch.bfloat16)", {"mixed_precision": "bf16"}),
        ("L = DataLoader(a, batch_size=8)\nloss.backward()", {"batch_size": 8}),
        ("L, M = DataLoader(a, batch_size=8), DataLoader(b, batch_size=8)\nloss.backward()", {}),
        ("create_loader(d, batch_size=8, is_training=True)\ncreate_loader(d, batch_size=9)", {"batch_size": 8}),
        ("f = partial(LoraConfig, r=4)\nf()", {"lora_r": 4}),
        ("def f(r, x):\n  LoraConfig(r=r)\nd.map(partial(f, 4))", {"lora_r": 4}),
        ("def f(rank, r):\n  LoraConfig(r=r)\nmp.spawn(f, args=(4,), nprocs=2)", {}),
        ("def f(rank, r):\n  LoraConfig(r=r)\nmp.spawn(f, (4,), nprocs=2)", {"lora_r": 4}),
        (
            "class A:\n  def f(self, r):\n    LoraConfig(r=r)\nclass B(A):\n  def f(self):\n    super().f(4)\nB().f()",
            {"lora_r": 4},
        ),
        ("def f():\n  if a:\n    return 4\n  return 8\nLoraConfig(r=f())", {}),
        ("def f():\n  for a in b:\n    return 4\n  return 8\nLoraConfig(r=f())", {}),
        ("def f():\n  if a:\n    return 4\n  return 4\nLoraConfig(r=f())", {"lora_r": 4}),
        ("for a in b:\n  if True:\n    continue\n  LoraConfig(r=4)", {}),
        ("match 'b':\n  case 'a' | 'c':\n    LoraConfig(r=8)\n  case _:\n    LoraConfig(r=4)", {"lora_r": 4}),
        ("match b:\n  case 'a':\n    LoraConfig(r=8)", {}),
        ("class C:\n  r = 8\nC.r = 4\nLoraConfig(r=C.r)", {"lora_r": 4}),
        ("c = LoraConfig(r=8)\nc.r = 4\nget_peft_model(m, c)", {"lora_r": 4}),
        ("import deepspeed\ndeepspeed.initialize(model=m, config={'a': 1})", {"deepspeed": {"a": 1}}),
        ("batch_size = 12\nexec(open('configurator.py').read())", {"batch_size": 12}),
        ("import torch\nk = getattr(torch.optim, 'AdamW')\nk(a)", {"optim": "adamw_torch"}),
    ],
)
def test_what_other_calls_say(script: str, said: dict[str, object]) -> None:
    assert found(script) == said


OWN_NAME = """
import argparse
from transformers import Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--bs", type=int, default=6)
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--lora", action="store_true")
parser.add_argument("--lora_r", type=int, default=32)
args = parser.parse_args()
if args.lora:
    peft(r=args.lora_r)
steps = args.batch_size // args.bs
told = TrainingArguments("out", per_device_train_batch_size=args.bs, gradient_accumulation_steps=steps)
Trainer(model, args=told)
"""


def test_a_hyperparameter_of_any_name_is_followed(tmp_path: Path) -> None:
    job = job_of(tmp_path, OWN_NAME, LLAMA, {"bs": 4})
    workload = described(job)
    assert (workload.micro_batch, workload.accumulation, workload.method) == (4, 16, "full")
    assert name_of(job, "micro_batch") == "bs"
    assert "hyperparameters.bs: 2" in "\n".join(change.text for change in changes_of(job, workload))
    assert not [problem for problem in remarks(job) if "bs" in problem.message]


def test_the_stack_is_that_of_the_trainer(tmp_path: Path) -> None:
    """The worst stack needs twice the memory of Hugging Face's, so it is worth to know it."""
    workload = told(tmp_path, SFT, {"model": LLAMA["model"]})
    assert workload.stack == "hf-trainer"
    assert "train.py: SFTTrainer is Hugging Face's, so stack is taken as hf-trainer" in workload.notes
    derived = "class Own(SFTTrainer):\n    def compute_loss(self):\n        pass\n\n\ndef main"
    for name, script, memory, stack in (
        ("derived", SFT.replace("def main", derived, 1).replace("SFTTrainer(m", "Own(m"), {}, "unknown"),
        ("loss", SFT.replace("args=told", "args=told, compute_loss_func=own"), {}, "unknown"),
        ("told", SFT, {"stack": "litgpt"}, "litgpt"),
        ("liger", SFT.replace("bf16=True", "bf16=True, use_liger_kernel=True"), {}, "hf-liger"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        assert told(folder, script, {"model": LLAMA["model"], **memory}).stack == stack


def test_what_the_script_makes_of_a_hyperparameter_counts_before_its_name(tmp_path: Path) -> None:
    script = OWN_NAME.replace("=args.bs,", "=args.batch_size // 8,")
    workload = told(tmp_path, script, LLAMA, {"batch_size": 32})
    assert workload.micro_batch == 4
    assert not [note for note in workload.notes if "goes by it" in note]


def test_the_default_of_an_argument_counts_if_the_script_looks_at_it(tmp_path: Path) -> None:
    assert told(tmp_path, OWN_NAME).method == "full"
    switched = OWN_NAME.replace('action="store_true"', "default=True")
    other = tmp_path / "other"
    other.mkdir()
    assert (told(other, switched).method, told(other, switched).lora_rank) == ("lora", 32)


@pytest.mark.parametrize(
    "script",
    [
        "a = [1]\n" + "a = [a, a]\n" * 60 + "TrainingArguments(fsdp_config=a)",
        "a = [1]\n" + "a += a\n" * 60 + "TrainingArguments(fsdp_config=a)",
        "a = 'x'\n" + "a += a\n" * 60 + "TrainingArguments(optim=a)",
        "a = 'x'\n" + "a = f'{a}{a}'\n" * 60 + "TrainingArguments(optim=a)",
        "TrainingArguments(optim='%9999999999d' % 1)",
        "TrainingArguments(optim='a' * 10 ** 12)",
        "TrainingArguments(seed=10 ** 10 ** 10)",
        "TrainingArguments(seed=int('9' * 100000))",
        "def f(n):\n  f(n)\n  f(n)\nf(1)",
        "f = lambda g: g(g)\nf(f)",
        "x = [i for i in [[1, 2]] for j in i]\n" * 3,
        "TrainingArguments(seed=" + "(" * 80 + "1" + ")" * 80 + ")",
        "TrainingArguments(seed=" + "-" * 800 + "1)",
        "class A(A):\n  pass\nA()",
        "import yaml\nyaml.safe_load('a: &a [1]\\nb: &b [*a, *a]\\nc: [*b, *b')",
        "import copy\na = {'b': 1}\n" + "a = copy.deepcopy({'b': a, 'c': a})\n" * 60 + "TrainingArguments(seed=a)",
        "from omegaconf import OmegaConf as O\na = O.create({'b': 1})\n" + "a = O.merge(a, {'b': a, 'c': a})\n" * 60,
        "from omegaconf import OmegaConf as O\nTrainingArguments(seed=O.create({'a': '${b}', 'b': '${a}'}).a)",
        "import yaml\na = yaml.safe_load('a: &a {k: 1}\\n"
        + "\\n".join(f"{x}: &{x} {{p: *{y}, q: *{y}}}" for x, y in zip("bcdefghijklm", "abcdefghijkl", strict=True))
        + "')\nfrom omegaconf import OmegaConf as O\nb = O.create(a)\nO.merge(b, b)\nO.to_container(b)",
        "def f(a=[1, 2, 3]):\n" + "".join(f"{'  ' * n}for x{n} in a:\n" for n in range(1, 12)) + "  " * 12 + "g()\nf()",
        "from dataclasses import field\nclass A:\n  b: object = field(default_factory=lambda: A())\nA()",
        "\n".join(f"def f{n}():\n  f{n + 1}()\n  f{n + 1}()" for n in range(60)) + "\nf0()",
    ],
)
def test_no_script_takes_long_or_much(script: str) -> None:
    """It is read before anybody trusts it: the bounds are in steps and sizes, so this would not end without them."""
    said = found(script)
    assert len(repr(said)) < 5_000


def test_every_script_can_be_followed() -> None:
    """Those of the examples, and this project's own modules, which are none."""
    files = [*ROOT.glob("examples/**/*.py"), *ROOT.glob("python/**/*.py"), *ROOT.glob("tests/scenarios/**/*.py")]
    assert len(files) > 200
    for file in files:
        calls_of(ast.parse(file.read_bytes()))


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
    assert (workload.micro_batch, workload.accumulation, workload.workers) == (16, 4, 8)
    assert workload.precision == "fp16-mixed"
    assert sum("Ultralytics' default" in note for note in workload.notes) == 3
    assert told(tmp_path, PARSED, YOLOV8, {"workers": 0}).workers == 0
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
    assert {*OBJECTIVES} <= {*TRAINERS}
    assert {*OBJECTIVES.values()} <= {*WORDS}
