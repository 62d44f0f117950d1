"""Arguments of the script and configuration files of its code say what hyperparameters say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.job.given import Given, configuration, in_code, spelt
from sagefit.memory import Workload
from sagefit.memory.lookalikes import remarks
from sagefit.memory.read import described
from sagefit.planning.changes import changes_of

LLAMA = {"model": "meta-llama/Llama-3.2-1B", "stack": "plain-torch"}


def job_of(
    folder: Path,
    arguments: list[str] | None = None,
    hyperparameters: dict[str, Any] | None = None,
    *,
    files: dict[str, str] | None = None,
    memory: dict[str, Any] | None = None,
    attempts: Any = None,
) -> Job:
    """A job with these arguments and files in its code."""
    changes: dict[str, Any] = {
        "code": {"source_dir": "src", "entry_point": "train.py", "arguments": arguments or []},
        "hyperparameters": hyperparameters or None,
        "memory": memory or LLAMA,
        "image": {"framework": "pytorch", "version": "2.6"},
    }
    path = write_job(folder, changes | ({"attempts": attempts} if attempts else {}))
    for name, content in (files or {}).items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(content, encoding="utf-8")
    return load_job(str(path))


def told(folder: Path, *args: Any, **named: Any) -> Workload:
    return described(job_of(folder, *args, **named))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--per_device_train_batch_size", "8", "--block_size=2048", "--bf16", "--gradient_checkpointing"],
        [
            "--per-device-train-batch-size=8",
            "--block-size",
            "2048",
            "--bf16",
            "true",
            "--gradient-checkpointing",
            "True",
        ],
        ["per_device_train_batch_size=8", "block_size=2048", "bf16=True", "gradient_checkpointing=true"],
        ["--train.per_device_train_batch_size=8", "--data.block_size=2048", "--bf16", "--gradient_checkpointing", "1"],
    ],
)
def test_arguments_count_as_hyperparameters_do(tmp_path: Path, arguments: list[str]) -> None:
    workload = told(tmp_path, arguments)
    found = (workload.micro_batch, workload.sequence_length, workload.precision, workload.gradient_checkpointing)
    assert found == (8, 2048, "bf16-mixed", True)
    (note,) = [note for note in workload.notes if note.startswith("code.arguments: ")]
    assert "micro_batch 8" in note
    assert "sequence_length 2048" in note
    assert not any("no batch size" in note or "no precision" in note for note in workload.notes)


@pytest.mark.parametrize(
    ("arguments", "values", "bare"),
    [
        (["a.yaml", "--lr", "-1e-4", "-v", "--flag"], {"lr": "-1e-4", "v": True, "flag": True}, ["a.yaml"]),
        (["--no-packing", "--no_bf16", "--no_repeat", "3"], {"packing": False, "bf16": False, "no_repeat": "3"}, []),
        (["--targets", "q_proj", "v_proj", "--x="], {"targets": ["q_proj", "v_proj"], "x": ""}, []),
        (["+trainer.devices=4", "run", "--expr", "a=b"], {"trainer.devices": "4", "expr": "a=b"}, ["run"]),
        (["--", "-"], {}, []),
    ],
)
def test_words_of_a_command_line(tmp_path: Path, arguments: list[str], values: dict[str, Any], bare: list[str]) -> None:
    job = job_of(tmp_path, [*arguments])
    given = Given(job)
    assert dict(given) == values
    assert all(given.place(name) == ("code", "arguments", f"--{name}") for name in values)
    assert all(word in arguments for word in bare)


def test_an_argument_contradicts_the_memory_block_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SagefitError) as caught:
        told(tmp_path, ["--per_device_train_batch_size=8"], memory=LLAMA | {"micro_batch": 2})
    assert "memory.micro_batch: is 2, and code.arguments.--per_device_train_batch_size (line " in str(caught.value)
    assert told(tmp_path, ["--batch_size=2"], memory=LLAMA | {"micro_batch": 2}).micro_batch == 2


def test_an_argument_beats_a_hyperparameter_of_its_name(tmp_path: Path) -> None:
    """argparse goes by the last of two, and the launcher puts arguments last."""
    with pytest.raises(SagefitError) as caught:
        told(tmp_path, ["--batch-size", "8"], {"batch_size": 2})
    assert "hyperparameters.batch_size: is 2, and code.arguments.--batch-size (line " in str(caught.value)
    assert "comes later and counts" in str(caught.value)
    assert told(tmp_path, ["--batch-size", "8"], {"batch_size": 8}).micro_batch == 8


def test_an_attempt_cannot_change_what_is_an_argument(tmp_path: Path) -> None:
    attempts = [
        {"name": "first", "instance_type": "ml.g5.xlarge"},
        {"name": "second", "instance_type": "ml.g5.xlarge", "hyperparameters": {"batch_size": 2}},
    ]
    job = job_of(tmp_path, ["--batch_size", "8"], attempts=attempts)
    assert described(job).micro_batch == 8
    with pytest.raises(SagefitError, match=r"attempts\[1\].hyperparameters.batch_size: is 2"):
        described(job, {"batch_size": 2})


def test_remedies_leave_arguments_alone_and_advice_names_them(tmp_path: Path) -> None:
    job = job_of(tmp_path, ["--batch_size", "8", "--gradient_checkpointing", "false"])
    texts = [change.text for change in changes_of(job, described(job))]
    assert "code.arguments: --batch_size 4 with memory.accumulation: 2" in texts
    assert "code.arguments: --gradient_checkpointing" in texts
    both = job_of(tmp_path, ["--batch_size", "8"], {"batch_size": 8})
    assert not any("batch_size" in change.text for change in changes_of(both, described(both)))


RECIPE = """
model_name_or_path: meta-llama/Llama-3.2-1B
per_device_train_batch_size: 16
gradient_accumulation_steps: 2
max_seq_length: 2048
bf16: true
load_in_4bit: true
lora_r: 32
lora_target_modules: [q_proj, v_proj]
fsdp_config: {activation_checkpointing: true}
"""


@pytest.mark.parametrize(
    ("arguments", "hyperparameters"),
    [
        (["recipes/sft.yaml"], {}),
        (["--config", "recipes/sft.yaml"], {}),
        (["--config=/opt/ml/code/recipes/sft.yaml"], {}),
        ([], {"config": "recipes/sft.yaml"}),
    ],
)
def test_a_recipe_is_read_as_the_script_reads_it(
    tmp_path: Path, arguments: list[str], hyperparameters: dict[str, Any]
) -> None:
    workload = told(tmp_path, arguments, hyperparameters, files={"recipes/sft.yaml": RECIPE})
    assert (workload.micro_batch, workload.accumulation, workload.sequence_length) == (16, 2, 2048)
    assert (workload.method, workload.lora_rank, workload.lora_targets) == ("qlora", 32, "attention")
    assert any("recipes/sft.yaml: micro_batch 16, sequence_length 2048" in note for note in workload.notes)


def test_the_command_line_counts_before_a_file(tmp_path: Path) -> None:
    files = {"c.json": json.dumps({"batch_size": 16, "block_size": 2048, "train": {"lora_rank": 4}})}
    workload = told(tmp_path, ["c.json", "--batch_size", "4"], {"per_device_train_batch_size": 4}, files=files)
    assert (workload.micro_batch, workload.sequence_length, workload.lora_rank) == (4, 2048, 4)
    assert told(tmp_path, ["c.json"], {"micro_batch_size": 2}, files=files).micro_batch == 2


def test_the_memory_block_counts_before_a_file_and_says_so(tmp_path: Path) -> None:
    memory = LLAMA | {"micro_batch": 2, "method": "full"}
    workload = told(tmp_path, ["recipes/sft.yaml"], files={"recipes/sft.yaml": RECIPE}, memory=memory)
    assert (workload.micro_batch, workload.method) == (2, "full")
    notes = "\n".join(workload.notes)
    assert "recipes/sft.yaml: per_device_train_batch_size is 16; memory.micro_batch, 2, counts" in notes
    assert "recipes/sft.yaml: load_in_4bit is true; memory.method, full, counts" in notes


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (["missing.yaml"], {}),
        (["../../../etc/c.yaml"], {}),
        (["c.yaml"], {"c.yaml": "- a list\n"}),
        (["c.yaml"], {"c.yaml": "batch_size: [unclosed"}),
        (["c.json"], {"c.json": "[" * 50_000}),
        (["c.yaml"], {"c.yaml": f"batch_size: 16\n# {'x' * 200_000}\n"}),
        (["--train_file", "c.json"], {"c.json": '{"batch_size": 16}'}),
        (["--dataset", "c.yaml"], {"c.yaml": "batch_size: 16"}),
        (["--eval.batch_size", "16"], {}),
    ],
)
def test_other_files_and_names_say_nothing(tmp_path: Path, arguments: list[str], files: dict[str, str]) -> None:
    assert told(tmp_path, arguments, files=files).micro_batch == 1


def test_a_link_out_of_the_code_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("batch_size: 16\n", encoding="utf-8")
    job = job_of(tmp_path, ["c.yaml"])
    (tmp_path / "src" / "c.yaml").symlink_to(tmp_path / "outside.yaml")
    assert in_code(job, "c.yaml") is None
    assert configuration(job, "c.yaml") is None


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    job = job_of(tmp_path, ["c.yaml"], files={"c.yaml": "batch_size: 16\n"})
    assert described(job).micro_batch == 16
    (tmp_path / "src" / "c.yaml").write_text("batch_size: 8\n# longer\n", encoding="utf-8")
    assert described(job).micro_batch == 8


def test_configurations_may_be_mappings(tmp_path: Path) -> None:
    zero = {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}, "bf16": {"enabled": True}}
    trainer = LLAMA | {"stack": "hf-trainer"}
    workload = told(tmp_path, [], {"deepspeed": zero}, memory=trainer)
    assert (workload.sharding, workload.cpu_offload, workload.precision) == ("zero3", "parameters", "bf16-mixed")
    recipe = "deepspeed: ds/zero.json\n"
    files = {"a.yml": recipe, "ds/zero.json": json.dumps(zero)}
    assert told(tmp_path, ["a.yml"], files=files, memory=trainer).sharding == "zero3"


def test_the_last_part_of_a_dotted_name_counts_where_only_one_has_it() -> None:
    assert spelt(["train.micro_batch_size"])["micro_batch_size"] == "train.micro_batch_size"
    assert "batch_size" not in spelt(["train.batch_size", "data.batch_size"])
    assert spelt(["train.batch_size", "Batch-Size"])["batch_size"] == "Batch-Size"
    assert "batch_size" not in spelt(["eval.batch_size"])


def test_what_looks_like_a_field_is_remarked_wherever_it_stands(tmp_path: Path) -> None:
    job = job_of(tmp_path, ["--bs", "8"], files={})
    fields = [problem.field for problem in remarks(job) if "looks like" in problem.message]
    assert fields == [("code", "arguments", "--bs")]


@pytest.mark.parametrize(
    ("raw", "targets"),
    [
        ("q_proj,v_proj", "attention"),
        ('["q_proj", "v_proj"]', "attention"),
        ("model.layers.0.self_attn.q_proj", "attention"),
        ("q_proj down_proj", "all-linear"),
        (".*proj$", None),
    ],
)
def test_names_of_layers_say_which_lora_adapts(tmp_path: Path, raw: str, targets: str | None) -> None:
    workload = told(tmp_path, [], {"lora_r": 8, "lora_target_modules": raw})
    assert workload.lora_targets == targets


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("modules_to_save", "embed_tokens,lm_head", True),
        ("modules_to_save", "[]", False),
        ("use_dora", "true", True),
        ("use_dora", "false", False),
        ("auto_find_batch_size", "true", True),
    ],
)
def test_what_changes_memory_and_is_not_counted_is_said(tmp_path: Path, name: str, value: str, said: bool) -> None:
    notes = told(tmp_path, [], {"lora_r": 8, name: value}).notes
    assert any(f"hyperparameters.{name} is not considered" in note for note in notes) is said


SCRIPT = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--train_batch_size", "-b", type=int, default=16)
parser.add_argument("--gradient_checkpointing", action="store_true")
parser.add_argument("--no-cache", dest="cache", action="store_false", default=True)
parser.add_argument("--max-seq-length", type=int, default=SIZE)
parser.add_argument("--workers", default=2)
parser.add_argument("--workers", default=4)
parser.add_argument("positional")
"""


def test_the_script_s_own_defaults_count_last(tmp_path: Path) -> None:
    workload = told(tmp_path, files={"train.py": SCRIPT})
    assert (workload.micro_batch, workload.gradient_checkpointing, workload.sequence_length) == (16, False, 512)
    assert "train.py: micro_batch 16, gradient_checkpointing false" in workload.notes
    assert told(tmp_path, ["--train_batch_size=2"], files={"train.py": SCRIPT}).micro_batch == 2
    assert told(tmp_path, [], {"batch_size": 4}, files={"train.py": SCRIPT}).micro_batch == 4
    recipe = {"train.py": SCRIPT, "c.yaml": "train_batch_size: 8\n"}
    assert told(tmp_path, ["c.yaml"], files=recipe).micro_batch == 8


@pytest.mark.parametrize("content", ["def broken(:\n", "\0", "(" * 5_000, "#" * 1_100_000 + SCRIPT, ""])
def test_a_script_that_cannot_be_read_says_nothing(tmp_path: Path, content: str) -> None:
    assert told(tmp_path, files={"train.py": content}).micro_batch == 1


def test_a_switch_of_the_script_is_no_hyperparameter(tmp_path: Path) -> None:
    """Hyperparameters are passed with a value, which argparse refuses for a switch."""
    given = {"gradient_checkpointing": False, "train_batch_size": 2}
    job = job_of(tmp_path, [], given, files={"train.py": SCRIPT})
    (remark,) = [each for each in remarks(job) if "without a value" in each.message]
    assert remark.field == ("hyperparameters", "gradient_checkpointing")
    assert "is passed as --gradient_checkpointing false, and train.py (line 6)" in remark.message
    assert "code.arguments: [--gradient_checkpointing]" in remark.knob
    texts = [change.text for change in changes_of(job, described(job))]
    assert any(text.startswith("hyperparameters.train_batch_size: 1") for text in texts)
    assert not any("hyperparameters.gradient_checkpointing" in text for text in texts)


def test_a_list_reaches_the_script_as_one_text(tmp_path: Path) -> None:
    job = job_of(tmp_path, [], {"lora_target_modules": ["q_proj", "v_proj"]})
    (remark,) = [each for each in remarks(job) if "is a list" in each.message]
    assert remark.knob.endswith("code.arguments: [--lora_target_modules, q_proj v_proj]")
