"""Processing steps in a job file: what is refused, what is rendered, and what a run of them can cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session

from job_files import write_job
from sagefit.catalog import instances, price
from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.job.processing import no_processing
from sagefit.planning import allowed_problems, plan, worst_case_usd

STEP: dict[str, Any] = {
    "name": "features",
    "image": {"framework": "spark", "version": "3.5"},
    "code": {"source_dir": "src", "entry_point": "train.py", "arguments": ["--fast"]},
    "inputs": {"raw": "data", "labels": {"uri": "s3://labels/2026/", "distribution": "ShardedByS3Key"}},
    "outputs": ["train", "test"],
    "environment": {"LEVEL": 3},
    "resources": {"instance_type": "ml.m5.xlarge", "instance_count": 2, "max_runtime": "1h"},
}
SPLIT: dict[str, Any] = {
    "name": "split",
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "inputs": {"features": {"from": "features/train"}},
    "outputs": ["parts"],
    "resources": {"instance_type": "ml.c5.xlarge"},
}


def job_with(folder: Path, *steps: dict[str, Any], **changes: Any) -> Path:
    resources = {"max_runtime": "20m", "poll_interval": "1m"}
    return write_job(folder, {"processing": list(steps), "resources": resources, **changes})


def changed(**changes: Any) -> dict[str, Any]:
    return {**STEP, **changes}


def on(**resources: Any) -> dict[str, Any]:
    return changed(resources={**STEP["resources"], **resources})


def load(folder: Path, *steps: dict[str, Any], **changes: Any) -> Job:
    return load_job(str(job_with(folder, *steps, **changes)))


BAD: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str, str]] = {
    "same-name": ([STEP, STEP], {}, "processing[1].name", "name of an earlier step"),
    "form-of-name": ([changed(name="Features")], {}, "processing[0].name", "does not have the right form"),
    "long-name": ([changed(name="f" * 31)], {}, "processing[0].name", "at most 30 are allowed"),
    "many-steps": ([changed(name=f"s{i}") for i in range(11)], {}, "processing", "at most 10 are allowed"),
    "no-image": ([changed(image={})], {}, "processing[0].image", "exactly one of"),
    "unknown-image": ([changed(image={"framework": "sprak", "version": "3.5"})], {}, "image.framework", "spark?"),
    "unknown-version": ([changed(image={"framework": "spark", "version": "3.4"})], {}, "image.version", "3.5"),
    "algorithm": ([changed(image={"algorithm": "kmeans"})], {}, "processing[0].image.algorithm", "unknown key"),
    "no-code": ([changed(code=None)], {}, "processing[0].code", "your script"),
    "no-script": (
        [changed(code={"source_dir": "src", "entry_point": "other.py"})],
        {},
        "processing[0].code.entry_point",
        "no file 'other.py'",
    ),
    "secret-argument": (
        [changed(code={**STEP["code"], "arguments": ["--token=hf_" + "a" * 30]})],
        {},
        "processing[0].code.arguments[0]",
        "looks like a secret",
    ),
    "many-arguments": (
        [changed(code={**STEP["code"], "arguments": ["-v"] * 101})],
        {},
        "processing[0].code.arguments",
        "takes 100",
    ),
    "no-local-path": ([changed(inputs={"raw": "nowhere"})], {}, "processing[0].inputs.raw", "does not exist"),
    "form-of-uri": ([changed(inputs={"raw": "s3:/b/x"})], {}, "processing[0].inputs.raw", "does not exist"),
    "bucket-of-uri": ([changed(inputs={"raw": "s3://B_/x"})], {}, "processing[0].inputs.raw", "is no S3 uri"),
    "two-sources": (
        [STEP, {**SPLIT, "inputs": {"x": {"uri": "data", "from": "features/train"}}}],
        {},
        "processing[1].inputs.x",
        "either a uri or from",
    ),
    "input-called-code": (
        [changed(inputs={"code": "data"})],
        {},
        "processing[0].inputs.code",
        "used by Sagefit itself",
    ),
    "many-inputs": (
        [changed(inputs={f"i{i}": "data" for i in range(10)})],
        {},
        "processing[0].inputs",
        "its code being one",
    ),
    "local-manifest": (
        [changed(inputs={"raw": {"uri": "data", "s3_data_type": "ManifestFile"}})],
        {},
        "inputs.raw.s3_data_type",
        "through an S3 uri",
    ),
    "later-step": ([SPLIT, STEP], {}, "processing[0].inputs.features.from", "an earlier step"),
    "no-such-output": (
        [STEP, {**SPLIT, "inputs": {"x": {"from": "features/valid"}}}],
        {},
        "processing[1].inputs.x.from",
        "use one of train, test",
    ),
    "no-outputs": ([changed(outputs=[])], {}, "processing[0].outputs", "the list is empty"),
    "many-outputs": (
        [changed(outputs=[f"o{i}" for i in range(10)])],
        {},
        "processing[0].outputs",
        "event log being one",
    ),
    "same-output": ([changed(outputs=["a", "a"])], {}, "processing[0].outputs[1]", "an earlier output"),
    "form-of-output": ([changed(outputs=["a/b"])], {}, "processing[0].outputs[0]", "no name of an output"),
    "events": ([changed(outputs=["spark-events"])], {}, "processing[0].outputs[0]", "event log goes"),
    "secret-variable": ([changed(environment={"TOKEN": "abcdefghijk"})], {}, "environment.TOKEN", "like a secret"),
    "long-variable": ([changed(environment={"A": "x" * 257})], {}, "environment.A", "256 characters"),
    "many-variables": ([changed(environment={f"A{i}": 1 for i in range(101)})], {}, "environment", "takes 100"),
    "unknown-type": ([on(instance_type="ml.m5.xlrge")], {}, "resources.instance_type", "ml.m5.xlarge?"),
    "no-processing-type": ([on(instance_type="ml.p4d.24xlarge")], {}, "resources.instance_type", "no processing jobs"),
    "gpu-for-spark": ([on(instance_type="ml.g5.xlarge")], {}, "resources.instance_type", "CPU instances only"),
    "no-type": ([changed(resources={})], {}, "processing[0].resources.instance_type", "is required"),
    "many-instances": ([on(instance_count=101)], {}, "resources.instance_count", "above the limit of 100"),
    "large-volume": ([on(volume_size_gb=16385)], {}, "resources.volume_size_gb", "above the limit of 16384 GB"),
    "no-volume": ([on(volume_size_gb=0)], {}, "resources.volume_size_gb", "below the least value of 1 GB"),
    "long-runtime": ([on(max_runtime="10d")], {}, "resources.max_runtime", "10d is above the limit of 9d"),
    "channel-without-step": ([], {"inputs": {"train": {"from": "features/train"}}}, "inputs.train.from", "a step in"),
    "channel-without-output": (
        [STEP],
        {"inputs": {"train": {"from": "features/valid"}}},
        "inputs.train.from",
        "use one of train, test",
    ),
    "channel-with-two": (
        [STEP],
        {"inputs": {"train": {"from": "features/train", "uri": "data"}}},
        "inputs.train",
        "one of: a uri",
    ),
    "spark-trains": ([], {"image": {"framework": "spark", "version": "3.5"}}, "image.framework", "train nothing"),
    "looks-too-seldom": (
        [on(max_runtime="9d")],
        {},
        "resources.poll_interval",
        "its steps and attempts may take 216 h 40 min",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_steps_are_refused_with_field_rule_and_knob(tmp_path: Path, case: str) -> None:
    steps, changes, field, rule = BAD[case]
    steps = [{key: value for key, value in step.items() if value is not None} for step in steps]
    with pytest.raises(SagefitError) as refused:
        plan(load(tmp_path, *steps, **changes))
    said = refused.value.message
    assert field in said, said
    assert rule in said, said
    assert all(line.startswith(("  ", str(tmp_path), "...")) or ".yaml:" in line for line in said.splitlines())


def test_steps_are_rendered_with_paths_of_the_job_root(tmp_path: Path) -> None:
    inputs = {"train": {"from": "split/parts"}, "test": {"from": "features/test", "mode": "FastFile"}}
    text = plan(load(tmp_path, STEP, SPLIT, inputs=inputs)).text
    assert '{ from = "features/test", mode = "FastFile" }' in text
    assert '"--fast"' in text
    assert 'labels = { s3_uri = "s3://labels/2026/", distribution = "ShardedByS3Key" }' in text
    assert text.count(f'{tmp_path.name}/src"') == 3
    assert 'inputs        = { features = { from = "features/train" } }' in text
    assert "max_runtime_seconds = 3600" in text


def test_what_steps_read_from_this_machine_is_shipped_with_the_job(tmp_path: Path) -> None:
    found = load(tmp_path, STEP).uploads
    assert [(upload.what, upload.path.name) for upload in found] == [
        ("code", "src"),
        ("input train", "data"),
        ("code of features", "src"),
        ("input raw of features", "data"),
    ]


def test_the_worst_case_has_every_step_in_it(tmp_path: Path) -> None:
    bare, prepared = (load(tmp_path, *steps) for steps in ((), (STEP, SPLIT)))
    attempts, steps = plan(prepared).attempts, plan(prepared).steps
    assert [step.label for step in steps] == ["processing features", "processing split"]
    rates = {name: price(name, "us-east-1", packaged=True) for name in ("ml.m5.xlarge", "ml.c5.xlarge")}
    hourly = {name: found.usd_per_hour for name, found in rates.items() if found}
    more = (2 + 1 / 15) * hourly["ml.m5.xlarge"] + (24 + 1 / 30) * hourly["ml.c5.xlarge"]
    before = worst_case_usd(plan(bare).attempts, "us-east-1", packaged=True)
    assert before is not None
    assert worst_case_usd(attempts, "us-east-1", steps=steps, packaged=True) == pytest.approx(before + more)


def test_a_platform_allows_the_types_of_steps_too(tmp_path: Path) -> None:
    job = load(tmp_path, STEP)
    problem = next(allowed_problems(plan(job), ["ml.m5.large"]))
    assert problem.field == ("processing", 0, "resources", "instance_type")
    assert "processing features runs on ml.m5.xlarge, and the platform dev allows" in problem.message


def test_types_that_do_not_process_are_those_of_the_service() -> None:
    shape = get_session().get_service_model("sagemaker").shape_for("ProcessingInstanceType")
    assert no_processing() == set(instances()) - set(shape.metadata["enum"])
