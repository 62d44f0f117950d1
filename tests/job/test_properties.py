"""For any job file: Terraform reads what it says, and equal ones render alike."""

from __future__ import annotations

import json
import os
import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from job_strategies import STYLES, Spec, any_job, jobs, prepare, write_spec
from sagefit.job import load_job
from sagefit.job.model import OLDER_NAMES, Attempt, Channel, Image, Job, Resources
from sagefit.job.values import Code
from sagefit.paths import JOB_ROOT
from sagefit.planning import plan
from terraform_console import evaluate

# Terraform decodes every tfvars file by itself and gives it to the variables of ``job/``.
_READER = """
terraform {
  required_providers {
    terraform = {
      source = "terraform.io/builtin/terraform"
    }
  }
}

module "job" {
  source   = "./variables"
  for_each = {
    for file in fileset(path.module, "rendered/*.tfvars") :
    trimsuffix(basename(file), ".tfvars") => provider::terraform::decode_tfvars(file("${path.module}/${file}"))
  }
"""


def read_by_terraform(folder: Path, rendered: list[str]) -> list[Spec]:
    """The variables of ``job/`` as Terraform has them for each of these tfvars files."""
    texts = [path.read_text(encoding="utf-8") for path in JOB_ROOT.glob("variables*.tf")]
    names = re.findall(r'^variable "(\w+)"', "\n".join(texts), re.MULTILINE)
    (folder / "variables").mkdir()
    output = 'output "all" {\n  value = {' + ", ".join(f"{name} = var.{name}" for name in names) + "}\n}\n"
    (folder / "variables" / "main.tf").write_text("\n".join([*texts, output]), encoding="utf-8")
    arguments = "".join(f"  {name} = try(each.value.{name}, null)\n" for name in names)
    (folder / "main.tf").write_text(_READER + arguments + "}\n", encoding="utf-8")
    (folder / "rendered").mkdir()
    for index, text in enumerate(rendered):
        (folder / "rendered" / f"{index}.tfvars").write_text(text, encoding="utf-8")
    found = evaluate(folder, "{ for file, job in module.job : file => job.all }")
    return [found[str(index)] for index in range(len(rendered))]


def as_terraform_has_it(value: Any) -> Any:
    """Terraform holds every text in Unicode normal form C."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [as_terraform_has_it(item) for item in value]
    if isinstance(value, dict):
        return {as_terraform_has_it(key): as_terraform_has_it(item) for key, item in value.items()}
    return value


def are(found: dict[str, str] | None, written: Spec) -> bool:
    """Whether Terraform has these hyperparameters or variables: texts as they are, anything else as JSON."""
    expected: Spec = as_terraform_has_it(written)
    read = {k: v if isinstance(expected.get(k), str) else json.loads(v) for k, v in (found or {}).items()}
    return read == expected


def given_in(found: Spec) -> Spec:
    """What is not null."""
    return {name: value for name, value in found.items() if value is not None}


def place(folder: Path, uri: str) -> Spec:
    """An input as Terraform should have it."""
    return {"s3_uri": uri} if "://" in uri else {"local_path": os.path.relpath((folder / uri).resolve(), JOB_ROOT)}


def check(spec: Spec, found: Spec, folder: Path) -> None:
    """AssertionError unless Terraform has every value of a job file."""
    wanted = as_terraform_has_it(spec)
    assert (found["name"], found["platform"]) == (wanted["name"], wanted["platform"])
    assert (found["description"] or "") == wanted.get("description", "")
    assert given_in(found["image"]) == wanted["image"]
    code = given_in(found["code"])
    assert (JOB_ROOT / code.pop("source_dir")).resolve() == (folder / spec["code"]["source_dir"]).resolve()
    assert {"arguments": [], "exclude": []} | wanted["code"] | code == {"arguments": [], "exclude": []} | wanted["code"]
    assert are(found["hyperparameters"], spec.get("hyperparameters", {}))
    assert are(found["environment"], spec.get("environment", {}))
    assert (found["tags"] or {}) == wanted.get("tags", {})
    assert (found["metric_definitions"] or []) == wanted.get("metrics", [])
    schedule = wanted.get("schedule")
    wanted_schedule = {"expression": schedule} if isinstance(schedule, str) else schedule
    if wanted_schedule:
        assert given_in(found["schedule"]) == {"timezone": "UTC"} | wanted_schedule
    assert found["channels"].keys() == wanted.get("inputs", {}).keys()
    for name, channel in wanted.get("inputs", {}).items():
        fields = dict(channel) if isinstance(channel, dict) else {"uri": channel}
        at = place(folder, fields.pop("uri")) if "uri" in fields else {}
        fields = {key: value for key, value in fields.items() if value != []}
        read = given_in(found["channels"][name])
        if "file_system" in read:
            read["file_system"] = given_in(read["file_system"])
        assert read == at | fields
    resources = wanted.get("resources", {})
    for name, value in resources.items():
        if name not in ("instance_count", "volume_size_gb", "max_runtime"):  # these are of each attempt
            read = found["resources"][{"poll_interval": "poll_seconds"}.get(name, name)]
            assert read == value or (read is None and value == Resources.model_fields[name].default)
    assert len(found["attempts"]) == len(wanted["attempts"])
    for written, attempt, read in zip(spec["attempts"], wanted["attempts"], found["attempts"], strict=True):
        assert are(read["hyperparameters"], written.get("hyperparameters", {}))
        assert are(read["environment"], written.get("environment", {}))
        assert (read["reason"] or "") == attempt.get("reason", "")
        assert (read["next"] or {}) == attempt.get("next", {})
        assert (read["name"], read["instance_type"]) == (attempt["name"], attempt["instance_type"])
        assert read["instance_count"] == resources.get("instance_count", 1)
        assert read["volume_size_gb"] == attempt.get("volume_size_gb", resources.get("volume_size_gb", 30))
        runtime = attempt.get("max_runtime_seconds", resources.get("max_runtime", 86400))
        assert read["max_runtime_seconds"] == runtime


def test_terraform_reads_what_the_job_file_says(tmp_path: Path) -> None:
    """All job files in one start of Terraform, so a failure is not made smaller; it names its values."""
    prepare(tmp_path)
    (tmp_path / "terraform").mkdir()
    specs: list[Spec] = []

    @any_job
    @given(jobs())
    def collect(spec: Spec) -> None:
        specs.append(spec)

    collect()
    rendered = [plan(load_job(str(write_spec(tmp_path, spec)))).text for spec in specs]
    for spec, found in zip(specs, read_by_terraform(tmp_path / "terraform", rendered), strict=True):
        check(spec, found, tmp_path)
    assert len(specs) >= 100


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same with the keys of every mapping in another order."""
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    if isinstance(value, dict):
        return {key: shuffled(value[key], chance) for key in chance.sample(list(value), len(value))}
    return value


def defaults(model: Any) -> Spec:
    """The fields of a part of a job file that have a default, with it."""
    fields = {
        field.alias or name: field.default for name, field in model.model_fields.items() if not field.is_required()
    }
    return {name: value for name, value in fields.items() if not isinstance(value, Resources)}


def written_out(spec: Spec) -> Spec:
    """The same job with its defaults, and short forms in their long form."""
    long: Spec = defaults(Job) | spec
    long["image"] = defaults(Image) | spec["image"]
    long["code"] = defaults(Code) | spec["code"]
    long["resources"] = defaults(Resources) | spec.get("resources", {})
    for name in ("max_runtime", "poll_interval"):
        if long["resources"][name] is not None:
            long["resources"][name] = f"{long['resources'][name]}s"
    newer = [{OLDER_NAMES.get(name, name): value for name, value in each.items()} for each in spec["attempts"]]
    long["attempts"] = [defaults(Attempt) | attempt for attempt in newer]
    long["inputs"] = {
        name: defaults(Channel) | (channel if isinstance(channel, dict) else {"uri": channel})
        for name, channel in spec.get("inputs", {}).items()
    }
    if isinstance(spec.get("schedule"), str):
        long["schedule"] = {"expression": spec["schedule"], "timezone": "UTC"}
    return long


def test_equal_job_files_render_to_the_same_bytes(tmp_path: Path) -> None:
    prepare(tmp_path)

    @any_job
    @given(jobs(), STYLES, st.randoms(use_true_random=False), st.booleans())
    def same(spec: Spec, style: dict[str, Any], chance: random.Random, with_defaults: bool) -> None:
        first = plan(load_job(str(write_spec(tmp_path, spec)))).text
        other = shuffled(written_out(spec) if with_defaults else spec, chance)
        assume(yaml.safe_load(yaml.safe_dump(other, **style)) == other)  # YAML folds some line breaks where unquoted
        assert plan(load_job(str(write_spec(tmp_path, other, **style)))).text == first

    same()
