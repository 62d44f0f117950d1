"""The job file: what is accepted, and that every refusal names the field, the rule and the knob."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.errors import INVALID, SagefitError
from sagefit.job import load_job
from sagefit.job.secrets import looks_secret
from sagefit.job.values import duration


def refusal(path: Path) -> str:
    with pytest.raises(SagefitError) as caught:
        load_job(str(path))
    assert caught.value.exit_code == INVALID
    return caught.value.message


def test_a_valid_file_loads_with_its_defaults(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path)))
    assert job.name == "digits"
    assert job.resources.max_runtime == 1200
    assert job.resources.checkpoints is True
    assert [attempt.name for attempt in job.attempts] == ["small", "large"]  # type: ignore[union-attr]


def test_the_name_defaults_to_the_file_name(tmp_path: Path) -> None:
    assert load_job(str(write_job(tmp_path, {"name": None}, file="other.yaml"))).name == "other"


@pytest.mark.parametrize(
    ("changes", "field", "rule", "knob"),
    [
        ({"platfrom": "dev"}, "platfrom", "unknown key", "did you mean platform?"),
        ({"resources.instnce_type": "x"}, "resources.instnce_type", "unknown key", "did you mean instance_type?"),
        ({"inputs.train": {"uri": "data", "mod": "File"}}, "inputs.train.mod", "unknown key", "did you mean mode?"),
        ({"attempts.0.nxt": {}}, "attempts[0].nxt", "unknown key", "did you mean next?"),
        ({"platform": None}, "platform", "is required", "add it"),
        ({"name": "Bad_Name"}, "name", "does not have the right form", "lower-case letters"),
        ({"name": "a" * 41}, "name", "at most 40 are allowed", "shorten it"),
        ({"image.version": 1.2}, "image.version", "must be text", 'in quotes, such as "1.2-1"'),
        ({"image.uri": "x"}, "image", "exactly one of", "keep one"),
        ({"image": {"framework": "sklearn"}}, "image", "has no version", "image.version"),
        ({"image": {"repository": ""}}, "image.repository", "tag or a digest", "image.tag"),
        ({"code": None}, "code", "trains with your script", "code.source_dir"),
        ({"image": {"algorithm": "xgboost", "version": "1.7-1"}}, "code", "brings its own code", "remove code"),
        ({"code.source_dir": "nowhere"}, "code.source_dir", "does not exist", "relative to the job file"),
        ({"code.entry_point": "run.py"}, "code.entry_point", "no file 'run.py'", "inside code.source_dir"),
        ({"code.entry_point": "../digits.yaml"}, "code.entry_point", "no file", "inside code.source_dir"),
        ({"inputs.train": "nowhere"}, "inputs.train", "does not exist", "s3://"),
        ({"inputs.train": "s3://UPPER/x"}, "inputs.train", "no S3 uri", "s3://upper/x"),
        ({"inputs.code": "data"}, "inputs.code", "used by Sagefit itself", "rename it"),
        ({"inputs.train": {"mode": "File"}}, "inputs.train", "one of: a uri, a file_system", "keep one"),
        (
            {"inputs.train": {"uri": "s3://bucket/x", "mode": "FastFile"}},
            "inputs.train.uri",
            "ends with a slash",
            "add the slash",
        ),
        (
            {"inputs.train": {"uri": "s3://bucket/x/", "s3_data_type": "AugmentedManifestFile"}},
            "inputs.train",
            "Pipe mode only",
            "mode to Pipe",
        ),
        (
            {"inputs.train": {"uri": "s3://bucket/x/", "compression": "Gzip"}},
            "inputs.train.compression",
            "Pipe mode only",
            "mode to Pipe",
        ),
        ({"resources.max_runtime": "4 hours"}, "resources.max_runtime", "is no duration", "did you mean 4h?"),
        ({"attempts.0.instance_type": "ml.m5.lrge"}, "attempts[0].instance_type", "no instance type", "ml.m5.large?"),
        ({"attempts.0.spot": True}, "attempts[0].spot", "needs max_wait", "add attempts[0].max_wait"),
        (
            {"attempts.0.spot": True, "attempts.0.max_wait_seconds": 60},
            "attempts[0].max_wait_seconds",
            "less than max_runtime",
            "raise max_wait to 20m or more",
        ),
        (
            {"attempts.0.spot": True, "attempts.0.max_wait_seconds": 7200, "resources.checkpoints": False},
            "attempts[0].spot",
            "without checkpoints",
            "resources.checkpoints: true",
        ),
        (
            {"resources.spot": True, "resources.max_wait": "2h", "resources.warm_pool": "10m"},
            "resources.spot",
            "no warm pool for managed spot",
            "remove resources.warm_pool",
        ),
        ({"resources.max_wait": "2h"}, "resources.max_wait", "spot capacity only", "remove max_wait"),
        (
            {"resources.spot": True, "resources.max_wait": "10m"},
            "resources.max_wait",
            "less than max_runtime",
            "raise max_wait",
        ),
        ({"resources.warm_pool": "2h"}, "resources.warm_pool", "default quota", "max_keep_alive"),
        ({"resources.warm_pool": "7h"}, "resources.warm_pool", "default quota", "max_keep_alive"),
        ({"attempts.0.keep_alive_seconds": 3601}, "attempts[0].keep_alive_seconds", "default quota", "max_keep_alive"),
        (
            {"hyperparameters": {"caf\u00e9": 1, "cafe\u0301": 2}},
            "hyperparameters.cafe\u0301",
            "another Unicode form",
            "remove one",
        ),
        ({"resources.instance_count": 21}, "resources.instance_count", "the quota of a training job is 20", "fewer"),
        ({"attempts.1.instance_count": 21}, "attempts[1].instance_count", "21 instances", "instance_quota"),
        ({"attempts.1.name": "small"}, "attempts[1].name", "name of an earlier attempt", "rename it"),
        (
            {"attempts.0.next": {"host_memory": "huge"}},
            "attempts[0].next.host_memory",
            "no attempt is named",
            "small, large",
        ),
        (
            {"attempts.1.next": {"host_memory": "small"}},
            "attempts[1].next.host_memory",
            "might never end",
            "further down",
        ),
        ({"attempts.0.next": {"host_memry": "large"}}, "attempts[0].next.host_memry", "is not one of", "host_memory?"),
        ({"attempts": "auto"}, "resources.instance_type", "auto needs memory.model", "add memory.model"),
        (
            {"attempts": "auto", "hyperparameters.model_id": "org/model"},
            "resources.instance_type",
            "auto needs memory.model",
            "add memory: { model: org/model } (hyperparameters.model_id says it)",
        ),
        (
            {"attempts": "auto", "resources.instance_type": ["ml.m5.large", "ml.m5.xlarge"]},
            "resources.instance_type",
            "a choice of types needs memory.model",
            "one type",
        ),
        ({"resources.instance_type": ["ml.m5.large", "auto"]}, "resources.instance_type[1]", "no instance type", "csv"),
        ({"environment": {"API": "AKIAIOSFODNN7EXAMPLE"}}, "environment.API", "looks like a secret", "Secrets Manager"),
        ({"hyperparameters.hf_token": "abcdefgh12345"}, "hyperparameters.hf_token", "looks like a secret", "role"),
        ({"environment": {"A-B": "x"}}, "environment.A-B", "letters, digits and underscores", "rename it"),
        ({"environment": {"A": "x" * 513}}, "environment.A", "513 characters", "into a file"),
        ({"hyperparameters.rate": float("nan")}, "hyperparameters.rate", "cannot be passed", "finite"),
        ({"hyperparameters.text": "a\nb"}, "hyperparameters.text", "one line", "into a file"),
        ({"code.arguments": ["--t=ghp_abcdefghijklmnopqrstuvwxyz0123"]}, "code.arguments[0]", "like a secret", "role"),
        ({"code.arguments": ["a\nb"]}, "code.arguments[0]", "one line", "hyperparameter"),
        ({"code.source_dir": "x" * 5000}, "code.source_dir", "does not exist", "relative to the job file"),
        ({"inputs.train": ""}, "inputs.train", "does not exist", "s3://"),
        (
            {"attempts.0.volume_size_gb": [1]},
            "attempts[0].volume_size_gb",
            "whole number, and a list",
            "write 1 without",
        ),
        (
            {"attempts.0.instance_type": ["ml.m5.large"]},
            "attempts[0].instance_type",
            "must be text",
            "write 'ml.m5.large' without",
        ),
        ({"resources": "big"}, "resources", "must be a mapping", "remove the line"),
        ({"max_price": "5"}, "max_price", "must be a number", "remove the quotes"),
        ({"max_price": True}, "max_price", "must be a number", "write a number"),
        ({"max_price": float("inf")}, "max_price", "no finite number", "write a number"),
        ({"resources.instance_type": []}, "resources.instance_type", "the list is empty", "fill it"),
        ({"attempts": []}, "attempts", "the list is empty", "fill it"),
        ({"resources.instance_count": 0}, "resources.instance_count", "below the least value of 1", "raise it"),
        ({"resources.instance_count": 1.5}, "resources.instance_count", "whole number", "write 1 or 2"),
        ({"schedule": "every day"}, "schedule", "is not rate(12 hours), cron(", "rate(1 day)"),
    ],
)
def test_refusals_name_the_field_the_rule_and_the_knob(
    tmp_path: Path, changes: dict[str, Any], field: str, rule: str, knob: str
) -> None:
    path = write_job(tmp_path, changes)
    blocks = refusal(path).split(f"{path}")
    mine = [block for block in blocks if f" {field}: " in block]
    assert mine, f"nothing about {field} in {blocks}"
    assert rule in mine[0]
    assert knob in mine[0]


def test_a_refusal_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "j.yaml"
    path.write_text("platform: dev\nimage: {uri: x}\nresources:\n  max_runtime: 1h\n  colour: red\n", encoding="utf-8")
    assert f"{path}:5: resources.colour: unknown key" in refusal(path)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    message = refusal(write_job(tmp_path, {"code.source_dir": "nowhere", "inputs.train": "nowhere"}))
    assert "code.source_dir" in message
    assert "inputs.train" in message


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- a\n", "a job file is a mapping"),
        ("a: [1\n", "not valid YAML"),
        ("name: a\nname: b\n", "name is given twice, first on line 1"),
        ("1: x\n", "is not text"),
        ("base: &b {x: 1}\nother:\n  <<: *b\n", "merge keys"),
        ("a: \x07\n", "not valid YAML"),
        ("", "a job file is a mapping"),
        ("description: 2001-13-45\n", "j.yaml:1: '2001-13-45' is no timestamp"),
        ("a: !!int abc\n", "j.yaml:1: 'abc' is no int"),
        ("a: !!python/object:os.system {}\n", "is not part of a job file"),
        ("!!set {a, b}\n", "a job file is a mapping"),
        ("a: &a [*a]\n", "an alias that holds itself"),
        ("a: " + "[" * 3000 + "]" * 3000 + "\n", "nested too deeply"),
        ('a: "\\ud800"\n', "surrogate"),
        ("resources: {max_runtime: 1:30}\n", "base 60"),
        ("? [a, b]\n: 1\n", "is not text"),
        (BOMB, "j.yaml:8: with every alias written out the file has 490,329,064 values"),
    ],
)
def test_files_that_are_no_job_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "j.yaml"
    path.write_text(text, encoding="utf-8")
    assert complaint in refusal(path)


def test_aliases_of_ordinary_size_and_long_files_without_are_read(tmp_path: Path) -> None:
    shared = "name: a\ntags: &t {x: y}\nenvironment: *t\n"
    for text in (shared, "tags: {" + ", ".join(f"k{i}: v" for i in range(6000)) + "}\n"):
        path = tmp_path / "j.yaml"
        path.write_text(text, encoding="utf-8")
        assert "written out" not in refusal(path)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.yaml"
    path.write_bytes(b"name: \xff\n")
    assert "not UTF-8" in refusal(path)


def test_a_mistake_in_resources_is_reported_once(tmp_path: Path) -> None:
    message = refusal(write_job(tmp_path, {"resources.spot": True, "resources.max_wait": "10m"}))
    assert message.count("less than") == 1


def test_a_refusal_is_short_and_repeats_no_container(tmp_path: Path) -> None:
    message = refusal(write_job(tmp_path, {f"key{i}": {"password": "hunter2hunter2"} for i in range(500)}))
    assert "... and 480 more" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("target", [".", "/etc/passwd", "nowhere"])
def test_links_out_of_the_code_are_refused(tmp_path: Path, target: str) -> None:
    path = write_job(tmp_path)
    (tmp_path / "src" / "link").symlink_to(target)
    assert "link is a link to a folder, to nothing, or out of the folder" in refusal(path)


def test_two_jobs_of_one_name_are_refused(tmp_path: Path) -> None:
    write_job(tmp_path)
    assert "is also the name of the job in" in refusal(write_job(tmp_path, file="twin.yaml"))


def test_an_unknown_job_gets_a_suggestion() -> None:
    with pytest.raises(SagefitError) as caught:
        load_job("quickstrat")
    assert caught.value.hint == "did you mean quickstart?"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("max_tokens", "40960000", False),
        ("TOKEN", "short", False),
        ("DB_PASSWORD", "correct-horse", True),
        ("dbPassword", "correct-horse", True),
        ("SECRET_ARN", "arn:aws:secretsmanager:us-east-1:1:secret:x", False),
        ("TOKEN_FILE", "/opt/ml/input/data/train/tokens.txt", False),
        ("x", "ghp_abcdefghijklmnopqrstuvwxyz0123", True),
        ("url", "https://user:hunter22@example.com", True),
        ("x", "-----BEGIN RSA PRIVATE KEY-----", True),
        ("key_lookup", "hash-by-name", False),
    ],
)
def test_secrets_are_told_from_ordinary_values(name: str, value: str, secret: bool) -> None:
    assert looks_secret(name, value) is secret


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.5 s"), (12, "12 s"), (60, "1 min"), (90, "1 min 30 s"), (3600, "1 h"), (5400, "1 h 30 min")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text
