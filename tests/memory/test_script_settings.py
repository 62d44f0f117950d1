"""Configurations and command lines of a script, and what is read from its own loop."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sagefit.job.following.files import Files
from sagefit.job.script_calls import calls_of

USED = "TrainingArguments(per_device_train_batch_size={0}.batch, max_length={0}.model.length)"
CLASSES = """
from dataclasses import dataclass, field
@dataclass
class Model:
    length: int = 64
@dataclass
class Config:
    batch: int = 4
    model: Model = field(default_factory=lambda: Model(length=128))
"""
YAML = "batch: 4\nmodel:\n  length: 128\n"


def said(script: str, folder: Path | None = None, **given: object) -> dict[str, object]:
    found = calls_of(ast.parse(script), given, files=Files(str(folder)) if folder else None).said
    return {name: each.value for name, each in found.items()}


@pytest.mark.parametrize(
    ("script", "given"),
    [
        (f"{CLASSES}import tyro\nc = tyro.cli(Config)", {"model.length": 256}),
        (f"{CLASSES}import tyro\nc = tyro.cli(lambda c=Config(): c)", {}),
        (f"{CLASSES}import tyro\ndef main(c: Config):\n  return c\nc = tyro.cli(main)", {"c.model.length": 256}),
        (
            f"{CLASSES}import draccus\n@draccus.wrap()\ndef main(c: Config):\n  return c\nc = main()",
            {"model.length": 256},
        ),
        (f"{CLASSES}import simple_parsing\nc = simple_parsing.parse(Config)", {"length": 256}),
        (
            f"{CLASSES}from simple_parsing import ArgumentParser\np = ArgumentParser()\n"
            "p.add_arguments(Config, dest='c')\nc = p.parse_args().c",
            {"length": 256},
        ),
        (
            f"from omegaconf import OmegaConf\nc = OmegaConf.merge(OmegaConf.create({YAML!r}), OmegaConf.from_cli())",
            {"model.length": "256"},
        ),
        (f"{CLASSES}from omegaconf import OmegaConf\nc = OmegaConf.structured(Config)", {}),
        (
            "from absl import app, flags\nimport types\nFLAGS = flags.FLAGS\nflags.DEFINE_integer('batch', 4, '')\n"
            "flags.DEFINE_integer('length', 128, '')\nmodel = types.SimpleNamespace(length=FLAGS.length)\n"
            "c = types.SimpleNamespace(batch=FLAGS.batch, model=model)",
            {"length": 256},
        ),
    ],
    ids=["tyro", "lambda", "function", "draccus", "simple", "group", "omegaconf", "structured", "absl"],
)
def test_settings_have_what_the_job_gives_them(script: str, given: dict[str, object]) -> None:
    script += f"\n{USED.format('c')}"
    assert said(script) == {"per_device_train_batch_size": 4, "max_length": 128}
    if given:
        assert said(script, None, **given) == {"per_device_train_batch_size": 4, "max_length": 256}


def test_hydra_reads_its_files_and_their_groups(tmp_path: Path) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "c.yaml").write_text("defaults:\n  - model: small\n  - _self_\nbatch: ${model.each}\n")
    (tmp_path / "conf" / "model" / "small.yaml").write_text("length: 128\neach: 4\n")
    (tmp_path / "conf" / "model" / "large.yaml").write_text("length: 512\neach: 2\n")
    script = f"""import hydra
@hydra.main(version_base=None, config_path="conf", config_name="c")
def main(cfg):
    {USED.format("cfg")}
main()
"""
    assert said(script, tmp_path) == {"per_device_train_batch_size": 4, "max_length": 128}
    assert said(script, tmp_path, model="large") == {"per_device_train_batch_size": 2, "max_length": 512}
    assert said(script, tmp_path, batch="8") == {"per_device_train_batch_size": 8, "max_length": 128}


def test_hydra_reads_a_dataclass_that_is_stored() -> None:
    script = f"""{CLASSES}
import hydra
from hydra.core.config_store import ConfigStore
store = ConfigStore.instance()
store.store(name="c", node=Config)
@hydra.main(version_base=None, config_name="c")
def main(cfg):
    {USED.format("cfg")}
main()
"""
    assert said(script, None, **{"model.length": 256}) == {"per_device_train_batch_size": 4, "max_length": 256}


def test_hydra_composes_dataclasses_that_are_stored() -> None:
    script = f"""{CLASSES}
import hydra
from omegaconf import MISSING
from hydra.core.config_store import ConfigStore
@dataclass
class Large(Model):
    length: int = 512
@dataclass
class Root:
    defaults: list = field(default_factory=lambda: ["_self_", {{"model": "small"}}])
    batch: int = 4
    model: Model = MISSING
store = ConfigStore.instance()
store.store(name="c", node=Root)
store.store(group="model", name="small", node=Model)
store.store(group="model", name="large", node=Large)
@hydra.main(version_base=None, config_name="c")
def main(cfg):
    {USED.format("cfg")}
main()
"""
    assert said(script) == {"per_device_train_batch_size": 4, "max_length": 64}
    assert said(script, model="large") == {"per_device_train_batch_size": 4, "max_length": 512}


@pytest.mark.parametrize(
    ("code", "given", "wanted"),
    [
        ("p.add_argument('--half', type=bool, default=False)", {"half": "False"}, True),  # every text is true
        ("p.add_argument('--half', type=lambda t: t == 'yes', default=False)", {"half": "yes"}, True),
        ("p.add_argument('--half', type=lambda t: t == 'yes', default=True)", {"half": "no"}, False),
        ("p.add_argument('--half', type=lambda t: t == 'yes', default=True)", {}, True),
        ("p.set_defaults(half=1 << 2 == 4)", {}, True),
    ],
)
def test_types_of_arguments(code: str, given: dict[str, object], wanted: bool) -> None:
    script = f"import argparse\np = argparse.ArgumentParser()\n{code}\nTrainingArguments(bf16=p.parse_args().half)"
    assert said(script, None, **given)["bf16"] is wanted


def test_an_argument_of_which_the_script_makes_something_else() -> None:
    script = """
from transformers import HfArgumentParser
from trl import SFTConfig, SFTTrainer
from dataclasses import dataclass
@dataclass
class Own:
    peft: bool = True
own, told = HfArgumentParser((Own, SFTConfig)).parse_args_into_dataclasses()
told.gradient_checkpointing = told.gradient_checkpointing and not own.peft
SFTTrainer(model(), args=told)
"""
    found = calls_of(ast.parse(script), {"gradient_checkpointing": "True"}).said["gradient_checkpointing"]
    assert (found.value, found.direct) == (False, False)
    assert "gradient_checkpointing" in found.arguments
    assert said(script, gradient_checkpointing="True", peft="False")["gradient_checkpointing"] is True


def test_a_class_of_settings_may_have_a_constructor() -> None:
    script = """
class Own(TrainingArguments):
    def __init__(self, *args, alpha=1, **told):
        told.setdefault("per_device_train_batch_size", 48)
        super().__init__(*args, **told)
        self.alpha = alpha
Trainer(model(), Own("out", bf16=True))
"""
    assert said(script) == {"per_device_train_batch_size": 48, "bf16": True}


def test_variables_of_the_environment_that_nobody_sets() -> None:
    script = """
import os
def env(name, default, cast=str):
    value = os.environ.get("OWN_" + name)
    if value is None or value == "":
        return default
    if cast is bool:
        return value.lower() in {"1", "true"}
    return cast(value)
TrainingArguments(per_device_train_batch_size=env("BATCH", 4, int), bf16=env("HALF", False, bool))
"""
    assert said(script) == {"per_device_train_batch_size": 4, "bf16": False}
    found = calls_of(ast.parse(script), {}, {"OWN_BATCH": "2", "OWN_HALF": "true"}).said
    assert {name: each.value for name, each in found.items()} == {"per_device_train_batch_size": 2, "bf16": True}


def test_what_is_not_trained_says_nothing() -> None:
    teacher = "t = AutoModelForCausalLM.from_pretrained('t', torch_dtype=torch.bfloat16)\n"
    own = "import torch\nfrom transformers import AutoModelForCausalLM\nm = AutoModelForCausalLM.from_pretrained('m')\n"
    assert said(f"{own}{teacher}")["torch_dtype"] == "torch.bfloat16"
    assert said(f"{own}{teacher}t.requires_grad_(False)") == {}
    assert said(f"{own}{teacher}for p in t.parameters():\n  p.requires_grad = False") == {}
    assert said(f"{own}Trainer(m).train()\n{teacher}") == {}
    alone = own.replace("'m'", "'m', torch_dtype=torch.bfloat16")
    assert said(f"{alone}m.requires_grad_(False)")["torch_dtype"] == "torch.bfloat16"


def test_references_and_functions_of_omegaconf() -> None:
    script = """
from omegaconf import OmegaConf
OmegaConf.register_new_resolver("div", lambda a, b: a // b)
c = OmegaConf.create("whole: 64\\nbatch: 8\\nsteps: ${div:${whole},${batch}}\\nfixed: [1]")
c = OmegaConf.merge(c, {"batch": 16})
TrainingArguments(gradient_accumulation_steps=c.steps, **OmegaConf.to_container(c, resolve=True))
"""
    assert said(script) == {
        "gradient_accumulation_steps": 4,
        "whole": 64,
        "batch": 16,
        "steps": 4,
        "fixed": [1],
        "per_device_train_batch_size": 8,
    }


def test_sections_of_an_ini_file(tmp_path: Path) -> None:
    (tmp_path / "own.ini").write_text("[train]\nbatch = 16\n")
    script = """
import configparser
ini = configparser.ConfigParser()
ini.read_string("[DEFAULT]\\nlength = 128\\n[train]\\nbatch = 8\\nhalf = off\\n[test]\\nbatch = 64")
ini.read("own.ini")
train = ini["train"]
TrainingArguments(
    per_device_train_batch_size=train.getint("batch"), max_length=ini.getint("train", "length"),
    bf16=train.getboolean("half"), gradient_accumulation_steps=train.getint("steps", fallback=2),
)
"""
    wanted = {"per_device_train_batch_size": 8, "max_length": 128, "bf16": False, "gradient_accumulation_steps": 2}
    assert said(script) == wanted
    assert said(script, tmp_path) == wanted | {"per_device_train_batch_size": 16}


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("for k, v in {'batch': 2}.items():\n  setattr(c, k, v)", 2),
        ("for k in ['batch', 'other']:\n  if hasattr(c, k):\n    setattr(c, k, 3)", 3),
        ("import dataclasses\nc = dataclasses.replace(c, batch=5)", 5),
        ("import copy\nd = copy.deepcopy(c)\nd.batch = 9", 1),
        ("c.batch = [1, 2, 3, 4][1:][0]", 2),
        ("c.batch = {k: v for k, v in [['a', 6], ['b', None]] if v is not None}['a']", 6),
        ("match None:\n  case 1:\n    c.batch = 7\n  case None:\n    c.batch = 8", 8),
        ("c.batch = {'a': lambda n: n + 1, 'b': lambda n: n}['a'](3)", 4),
        ("for n in [1, 2, 3]:\n  if n == 2:\n    break\n  c.batch = n", 1),
        ("for n in [1, 2, 3]:\n  if n == 3:\n    continue\n  c.batch = n", 2),
        ("for n in [1, 2, 3]:\n  if unknown():\n    break\n  c.batch = n", None),
        ("first, *rest = [5, 6, 7]\nc.batch = rest[0]", 6),
        ("c.batch = next(n for n, most in [(8, 10), (4, 20)] if 15 <= most)", 4),
        ("class C:\n  batch = 2\nsetattr(C, 'batch', 7)\nc = C", 7),
        ("setattr(c, unknown(), 3)", None),
        ("for k in unknown():\n  setattr(c, k, 3)", None),
    ],
)
def test_objects_are_followed(code: str, wanted: int | None) -> None:
    made = "class C:\n  batch = 0\n  def __init__(self):\n    self.batch = 1\nc = C()"
    script = f"{made}\n{code}\nDataLoader(d, c.batch, shuffle=True)"
    assert said(script).get("batch_size") == wanted


def test_an_object_of_a_base_class_is_made_by_its_constructor() -> None:
    script = """
class Base:
    batch = 32
    def __init__(self, **told):
        for name, value in told.items():
            if not hasattr(self, name):
                raise AttributeError(name)
            setattr(self, name, value)
class Large(Base):
    def __init__(self, **told):
        told.setdefault("batch", 16)
        super().__init__(**told)
DataLoader(d, Large(batch=20).batch, shuffle=True)
"""
    assert said(script) == {"batch_size": 20}
    assert said(script.replace("batch=20", "")) == {"batch_size": 16}


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("with torch.no_grad():\n  with torch.autocast('cuda'):\n    pass", None),
        ("@torch.no_grad()\ndef f():\n  torch.autocast('cuda')\nf()", None),
        ("torch.autocast('cuda', **unknown())", None),
        ("t = torch.bfloat16\ntorch.autocast('cuda', dtype=t or torch.float32, enabled=t is not None)", "bf16"),
        ("t = None\ntorch.autocast('cuda', dtype=t or torch.float32, enabled=t is not None)", None),
        ("from torch.distributed.fsdp import MixedPrecisionPolicy as P\nP(param_dtype=torch.bfloat16)", "bf16"),
    ],
)
def test_the_type_that_is_computed_in(code: str, wanted: str | None) -> None:
    assert said(f"import torch\n{code}").get("mixed_precision") == wanted


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("rows = [r['input_ids'][:ctx] for r in data()]", 96),
        ("x = data()[i() : i() + ctx]", 96),
        ("x = data()[i() : i() + ctx + 1]", 96),
        ("x = torch.tensor(data()).view(count(), ctx)", 96),
        ("x = data()[: ctx // 2]", 48),
        ("x = data()[i() : i() + size]", None),
        ("x = torch.tensor(data()).view(-1, size)", None),
        ("t = AutoTokenizer.from_pretrained('m', model_max_length=96)\nt(text(), truncation=True)", 96),
        ("t = AutoTokenizer.from_pretrained('m')\nt.model_max_length = 96\nt(text(), truncation=True)", 96),
        (
            "def cut(rows, to):\n  t(rows, truncation=True, max_length=to)\nd().map(cut, fn_kwargs={'to': 96})",
            96,
        ),
    ],
)
def test_the_length_to_which_examples_are_cut(code: str, wanted: int | None) -> None:
    assert said(f"import torch\nctx, size = 96, 40\n{code}").get("max_length") == wanted


def test_a_batch_that_is_seen_in_pieces() -> None:
    loop = "for x in DataLoader(d, 64, shuffle=True):\n  for part in x.{0}:\n    loss(part).backward()"
    pieces = {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 4}
    assert said(loop.format("split(16)")) == said(loop.format("chunk(4)")) == pieces
    assert said(loop.format("split(16)").replace(".backward", ".item")) == {"batch_size": 64}
    assert "batch_size" not in said(loop.format("split(unknown())"))


def test_a_loss_over_the_pairs_of_a_batch() -> None:
    code = "import torch\nimport torch.nn.functional as F\nn = torch.arange(8).to('cuda')\nF.cross_entropy(scores(), n)"
    assert said(code) == {"loss": "MultipleNegativesRankingLoss"}
    assert said(code.replace("F.cross_entropy", "torch.nn.CrossEntropyLoss()")) == {
        "loss": "MultipleNegativesRankingLoss"
    }
    assert said(code.replace("scores(), n", "scores(), labels")) == {}


def test_adapters_that_nobody_looks_at_do_not_count() -> None:
    made = "c = LoraConfig(r=8)\n"
    assert said(f"{made}t = Trainer(model())") == {}
    assert said(f"{made}t = Trainer(model(), c)")["lora_r"] == 8
    assert said(f"{made}def later():\n  use(c)")["lora_r"] == 8


def test_keywords_of_the_model_in_the_settings() -> None:
    keywords = "{'torch_dtype': 'bfloat16', 'attn_implementation': 'sdpa'}"
    assert said(f"SFTConfig('o', model_init_kwargs={keywords})")["torch_dtype"] == "bfloat16"


def test_what_an_argument_decides_counts_before_its_name() -> None:
    code = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--optimizer", default="a")
args = p.parse_args()
if args.optimizer == "sgd":
    torch.optim.SGD(w, lr=1)
"""
    found = calls_of(ast.parse(code), {"optimizer": "sgd"}).said["optim"]
    assert (found.value, list(found.arguments)) == ("sgd", ["optimizer"])
