"""What an answer about a wrong value tells the user to write is right: with it, the field is refused no more.

The jobs below have every field of a job file between them, which the first test asks. Each of their fields gets a value
of each wrong form.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from sagefit.errors import SagefitError
from sagefit.job import JobNames, load_job
from sagefit.job.key import Key, dotted
from sagefit.job.limits import limits
from sagefit.job.model import Job

WRONG: tuple[Any, ...] = (True, 5, 0.5, "no", "", [], {}, {"a": {"b": 1}}, None)

JOBS = """
plain:
  <<: &script
    platform: dev
    image: { framework: pytorch, version: "2.6" }
    code: { source_dir: src, entry_point: train.py }
    resources: { instance_type: ml.m5.xlarge }
  name: digits
  description: Digits with a small network
  code:
    source_dir: keys
    entry_point: train.py
    arguments: [--verbose]
    exclude: ["*.md"]
    allow_sensitive: [tests/key.pem]
    offline_requirements: true
  image: { framework: pytorch, version: "2.6", python_version: py312 }
  inputs:
    train: s3://company/digits/
    test: { uri: data, exclude: ["*.md"], allow_sensitive: [tests/key.pem] }
    all:
      uri: s3://company/all/
      mode: Pipe
      distribution: FullyReplicated
      compression: Gzip
      record_wrapper: RecordIO
      content_type: text/csv
      shuffle_seed: 3
    listed: { uri: s3://company/listed, mode: Pipe, s3_data_type: AugmentedManifestFile, attribute_names: [ref, class] }
    shared: { file_system: { id: fs-0123456789abcdef0, type: EFS, directory_path: /data, access_mode: ro } }
  hyperparameters: { epochs: 3, batch_size: 64 }
  environment: { OMP_NUM_THREADS: 4 }
  metrics: [{ name: accuracy, regex: "accuracy=([0-9.]+)" }]
  max_price: 50
  tags: { team: vision }
  schedule: { expression: rate(1 day), timezone: Europe/Berlin }
  memory: { model: bert-large-uncased, knobs: { micro_batch: batch_size } }
  resources:
    instance_type: [ml.m5.xlarge]
    instance_count: 1
    instance_quota: 20
    volume_size_gb: 50
    max_runtime: 4h
    max_pending: 1h
    warm_pool: 30m
    max_keep_alive: 1h
    checkpoints: true
    checkpoint_local_path: /opt/ml/checkpoints
    input_mode: File
    network_isolation: false
    encrypt_inter_container_traffic: true
    subnet_ids: [subnet-0a1b2c3d]
    security_group_ids: [sg-0a1b2c3d]
    role: own
    volume_kms_key_arn: arn:aws:kms:us-east-1:123456789012:key/1234abcd
    output_kms_key_arn: arn:aws:kms:us-east-1:123456789012:key/1234abcd
    output_s3_uri: s3://company/out/
    output_compression: GZIP
    retry_attempts: 2
    remote_debug: false
    profiler: false
    poll_interval: 1m
attempts:
  <<: *script
  schedule: rate(1 day)
  resources: { spot: true, max_wait: 30h, checkpoints: true }
  attempts:
    - name: small
      reason: More memory for each GPU
      instance_type: ml.m5.xlarge
      instance_count: 1
      spot: false
      hyperparameters: { batch_size: 32 }
      environment: { OMP_NUM_THREADS: 4 }
      volume_size_gb: 50
      warm_pool: 30m
      max_runtime: 4h
      max_pending: 1h
      next: { gpu_memory: larger-gpu }
    - { name: larger-gpu, instance_type: ml.m5.2xlarge, max_runtime: 4h, max_wait: 8h }
groups:
  <<: *script
  inputs: { train: { uri: s3://company/images/, instance_groups: [train] } }
  resources:
    instance_groups: [{ name: train, instance_type: ml.m5.xlarge, instance_count: 1 }]
steps:
  <<: *script
  processing:
    - name: features
      image: { framework: spark, version: "3.5" }
      code: { source_dir: src, entry_point: features.py, arguments: [--verbose], exclude: ["*.md"] }
      inputs:
        raw: s3://company/raw/
        some: { uri: s3://company/some, s3_data_type: ManifestFile, distribution: ShardedByS3Key }
      outputs: [train]
      environment: { OMP_NUM_THREADS: 4 }
      resources: { instance_type: ml.m5.xlarge, instance_count: 1, volume_size_gb: 50, max_runtime: 4h }
    - name: more
      image: { uri: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:v1 }
      code: { source_dir: keys, entry_point: features.py, allow_sensitive: [tests/key.pem], offline_requirements: true }
      inputs:
        made: { from: features/train }
        here: { uri: data, exclude: ["*.md"], allow_sensitive: [tests/key.pem] }
      outputs: [train]
      resources: { instance_type: ml.m5.xlarge }
    - name: tagged
      image: { repository: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train, tag: v1 }
      outputs: [train]
      resources: { instance_type: ml.m5.xlarge }
    - name: exact
      image:
        repository: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train
        digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      outputs: [train]
      resources: { instance_type: ml.m5.xlarge }
    - name: python
      image: { framework: pytorch, version: "2.6", python_version: py312 }
      code: { source_dir: src, entry_point: features.py }
      outputs: [train]
      resources: { instance_type: ml.m5.xlarge }
  inputs: { train: { from: features/train } }
uri:
  <<: *script
  image: { uri: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:v1 }
built:
  <<: *script
  image: { repository: "", tag: v1, build: docker }
exact:
  <<: *script
  image:
    repository: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train
    digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
algorithm:
  platform: dev
  resources: { instance_type: ml.m5.xlarge }
  image: { algorithm: xgboost, version: "1.7-1" }
bought:
  platform: dev
  resources: { instance_type: ml.m5.xlarge }
  image: { algorithm_arn: arn:aws:sagemaker:us-east-1:123456789012:algorithm/trees }
search:
  <<: *script
  metrics: [{ name: accuracy, regex: "accuracy=([0-9.]+)" }]
  tuning:
    strategy: Bayesian
    objective: { metric: accuracy, type: Maximize }
    max_jobs: 20
    max_parallel_jobs: 2
    parallel_quota: 10
    max_runtime: 8h
    early_stopping: false
    seed: 1
    ranges: { lr: { min: 0.0001, max: 0.01, scaling: Linear }, loss: [mse, mae] }
transformer:
  <<: *script
  memory:
    model:
      family: transformer
      params: 7.0e+9
      layers: 24
      hidden_size: 2048
      heads: 32
      vocab_size: 50304
      kv_heads: 8
      ffn_size: 8192
      head_dim: 64
      architecture: encoder-decoder
      encoder_layers: 24
      mlp: gated
      norm: rms
      dropout: true
      tie_embeddings: true
      experts: 8
      experts_per_token: 2
      shared_ffn_size: 8192
    method: lora
    lora_rank: 16
    lora_targets: attention
    base_dtype: default
    head: lm
    objective: grpo
    reference_model: true
    sampler: vllm
    sampler_share: 0.5
    precision: bf16-mixed
    optimizer: adamw
    micro_batch: 1
    accumulation: 1
    evaluation_batch: 1
    sequence_length: 1024
    image_tokens: 0
    vision_tower: frozen
    gradient_checkpointing: true
    attention: sdpa
    loss: default
    sharding: zero3
    cpu_offload: optimizer
    world_size: 8
    stack: unknown
    loader: { workers: 4, prefetch: 2, sample_bytes: 4096 }
    dataset: { size_gib: 40, in_memory: false }
    head_room: 0.1
    accept_risky: true
taught:
  <<: *script
  memory:
    model: Qwen/Qwen2.5-7B-Instruct
    method: lora
    lokr: { attention: 16, feed_forward: 16 }
    objective: gkd
    teacher_model: Qwen/Qwen2.5-7B-Instruct
traced:
  <<: *script
  memory: { trace: { function: "train.py:build", python: python3, timeout: 10m } }
vision:
  <<: *script
  memory: { model: { family: vision, name: resnet50, image_size: 224, task: detection, pretrained: true, classes: 10 } }
diffusion:
  <<: *script
  memory:
    model: { family: diffusion, name: flux, image_size: 512, height: 512, width: 512, frames: 1, encoders: cached }
tabular:
  <<: *script
  memory: { model: { family: tabular, library: xgboost, dtype_bytes: 4, rows: 4000, columns: 60, copies: 2 } }
measured:
  <<: *script
  memory: { model: { family: measured, gpu_gib: 14, host_gib: 30 } }
"""
"""Valid jobs by name."""


@cache
def jobs() -> dict[str, dict[str, Any]]:
    """`JOBS`, read."""
    read: dict[str, dict[str, Any]] = yaml.safe_load(JOBS)
    return read


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the jobs refer to, and what the examples in messages do."""
    made = tmp_path_factory.mktemp("advice")
    files = (
        "src/train.py",
        "src/features.py",
        "keys/train.py",
        "keys/features.py",
        "keys/tests/key.pem",
        "docker/Dockerfile",
        "data/a.csv",
        "data/tests/key.pem",
    )
    for file in files:
        (made / file).parent.mkdir(parents=True, exist_ok=True)
        (made / file).write_text("1,2\n", encoding="utf-8")
    (made / "job.yaml").touch()
    return made


def test_the_jobs_have_every_field_and_are_right(folder: Path) -> None:
    for name, job in jobs().items():
        assert not complaints(folder, job), name
    written = {pattern(field) for job in jobs().values() for field in fields(job)}
    assert not all_fields() - written


@pytest.mark.parametrize("name", jobs())
def test_what_is_told_to_be_written_is_taken(folder: Path, name: str) -> None:
    wrong, own, told = [], list(own_fields(name)), 0
    for field in own:
        for value in WRONG:
            knob = complaints(folder, changed(jobs()[name], field, value), of_types=True).get(dotted(field))
            for text in offers(knob) if knob else ():
                told += 1
                again = complaints(folder, changed(jobs()[name], field, yaml.safe_load(text))).get(dotted(field))
                if again is not None:
                    wrong.append(f"{dotted(field)}: {value!r}: {knob!r}, then {again!r}")
            if knob and knob.endswith(("or remove the line", "or remove it")):
                again = complaints(folder, removed(jobs()[name], field)).get(dotted(field))
                if again is not None:
                    wrong.append(f"{dotted(field)}: {value!r}: {knob!r}, and without it {again!r}")
    assert not wrong, "\n".join(wrong)
    assert told > len(own), "the answers were not read"


def test_no_answer_shows_a_pattern(folder: Path) -> None:
    patterns = [row.pattern for row in limits().values() if row.pattern]
    for name, job in jobs().items():
        for field in own_fields(name):
            said = answer(folder, changed(job, field, "no such: thing!"))
            assert "[a-z" not in said
            assert not [each for each in patterns if len(each) > len("^/") and each in said], dotted(field)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        (("attempts",), 3, "write auto, or a list of attempts, such as [{ name: first, instance_type: ml.m5.xlarge }]"),
        (("attempts",), "Auto", "must be auto, or a list of attempts, and 'Auto' is given\n  did you mean auto?"),
        (("resources", "warm_pool"), True, "write the name of a pool, or a duration, such as 30m"),
        (("resources", "instance_type"), True, "write one type, a list of types, or auto, such as ml.m5.xlarge"),
        (("memory", "model"), True, "such as bert-large-uncased"),
        (("schedule",), 5, "such as rate(1 day)"),
        (("inputs", "train"), 5, "write an S3 address, a path, or a mapping, such as s3://bucket/prefix/"),
        (("resources", "max_runtime"), "40d", "40d is above the limit of 28d\n  lower it to at most 28d"),
        (("resources", "max_runtime"), "1000h", "1000h is above the limit of 672h\n  lower it to at most 28d"),
        (
            ("resources", "max_runtime"),
            9999999,
            "9999999 s is above the limit of 2419200 s\n  lower it to at most 28d;",
        ),
        (("resources", "max_runtime"), "40 days", "'40 days' is no duration\n  write a number and a unit, such as 4h"),
        (("resources", "volume_size_gb"), 20000, "20000 GB is above the limit of 16384 GB"),
        (("resources", "output_s3_uri"), "out/", "'out/' does not have the right form\n  write s3://bucket/prefix"),
        (("resources", "subnet_ids"), ["a"] * 20, "has 20 entries, and at most 16 are allowed\n  remove 4"),
        (("image", "version"), 2.6, 'put it in quotes: "2.6"'),
        (("code", "arguments"), 5, 'write ["5"]'),
    ],
)
def test_answers_in_full(folder: Path, field: Key, value: Any, says: str) -> None:
    assert says in answer(folder, changed(jobs()["plain"], field, value))


def answer(folder: Path, job: dict[str, Any]) -> str:
    """What a job file with ``job`` is told; empty where it is taken."""
    return refusal(folder, text_of(job))[0]


_NAMES = JobNames()


@cache
def refusal(folder: Path, text: str) -> tuple[str, bool]:
    """What a job file is told, and whether its types refuse it."""
    try:
        load_job(folder / "job.yaml", _NAMES, text=text)
    except SagefitError as error:
        return str(error), isinstance(error.__cause__, ValidationError)
    return "", False


def text_of(job: dict[str, Any]) -> str:
    """A job file with ``job``."""
    return yaml.dump(job, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)


def complaints(folder: Path, job: dict[str, Any], *, of_types: bool = False) -> dict[str, str]:
    """What to do about each field that is refused; ``of_types`` only where its own type refuses it."""
    said, by_types = refusal(folder, text_of(job))
    rows = re.findall(r"^\S+?job\.yaml(?::\d+)?: (\S+): .*\n  (.*)", said, re.MULTILINE)
    assert bool(rows) == bool(said), said
    return {} if of_types and not by_types else dict(rows)


def offers(knob: str) -> list[str]:
    """The values that an answer tells to write, as a job file has them."""
    if quoted := re.fullmatch(r"put it in quotes: (.*)", knob):
        return [quoted[1]]
    if bound := re.search(r"(?:raise|lower) it to at (?:least|most) ([\w.]+)", knob):
        return [bound[1]]
    said = re.sub(
        r", or remove (?:the line|it)$|; the units are .*| without the dash or brackets$| If not, .*", "", knob
    )
    for start in (r".* such as ", r"write ", r"did you mean "):
        if found := re.match(start, said):
            return said[found.end() :].removesuffix("?").split(" or ")
    return []


def fields(value: Any, above: Key = ()) -> Iterator[Key]:
    """Every field of a job, and every entry of its lists."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, each in inner:
        yield (*above, part)
        yield from fields(each, (*above, part))


def own_fields(name: str) -> Iterator[Key]:
    """The fields of a job that none before it has; a model has others in each family."""
    names = list(jobs())
    earlier = [jobs()[other] for other in names[: names.index(name)]]
    before = {same(job, field) for job in earlier for field in fields(job)}
    for field in fields(jobs()[name]):
        if same(jobs()[name], field) not in before:
            yield field


def same(job: dict[str, Any], field: Key) -> tuple[str, str]:
    """A field of one job as the same one of another job has it."""
    model = (job.get("memory") or {}).get("model")
    return pattern(field), str(model.get("family")) if "model" in field and isinstance(model, dict) else ""


def changed(job: dict[str, Any], field: Key, value: Any) -> dict[str, Any]:
    """``job`` with ``value`` at ``field``."""
    own: Any = copy.deepcopy(job)
    place = own
    for part in field[:-1]:
        place = place[part] if part in place or isinstance(part, int) else place.setdefault(part, {})
    place[field[-1]] = value
    return dict(own)


def removed(job: dict[str, Any], field: Key) -> dict[str, Any]:
    """``job`` without ``field``."""
    own: Any = copy.deepcopy(job)
    place = own
    for part in field[:-1]:
        place = place[part]
    del place[field[-1]]
    return dict(own)


@cache
def pattern(field: Key) -> str:
    """``field`` with ``*`` for what the user named, by the types of the job file."""
    known, parts = all_fields(), ""
    for part in field:
        parts = next((each for each in (f"{parts}.{part}".strip("."), f"{parts}.*") if each in known), f"{parts}.?")
    return parts


@cache
def all_fields() -> frozenset[str]:
    """Those of `known_fields`, of a job."""
    return frozenset(known_fields(Job, ""))


def known_fields(annotation: Any, path: str) -> Iterator[str]:
    """The fields of a job file, ``*`` for every entry of a list and every name that the user chooses."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            yield f"{path}.{info.alias or name}".strip(".")
            yield from known_fields(info.annotation, f"{path}.{info.alias or name}".strip("."))
    elif origin in (list, dict) and inner[-1] is not Any:
        yield f"{path}.*"
        yield from known_fields(inner[-1], f"{path}.*")
    elif origin in (Annotated, Union, UnionType):
        for each in inner[:1] if origin is Annotated else inner:
            yield from known_fields(each, path)
