"""What a job runs and what it is told: on the page of a new job, and as findings where it changes what runs."""

from __future__ import annotations

from typing import Any

import pytest

from review.plans import reviewed
from review.test_jobs import definition, machine
from review.test_processing import with_step
from sagefit.job.environment import leads_elsewhere, loads_code, reserved
from sagefit.reviewing import as_json, markdown

SECRET = "canary-51c2"


def job(environment: dict[str, str], **changes: Any) -> dict[str, Any]:
    """A job that runs a script through the launcher, the same in both attempts."""
    made = definition()
    for name in ("main", "larger"):
        request = made["States"][f"{name}: submit"]["Parameters"]
        request["Environment"] = {"SAGEFIT_ATTEMPT": name} | environment
        request["AlgorithmSpecification"] |= {
            "ContainerArguments": [
                "/opt/ml/input/data/sagefit/launcher.pyz",
                "--entry-point",
                "train.py",
                "--",
                "--fast",
                "two words",
            ]
        }
        request |= changes
    return made


def findings(before: Any, after: Any) -> list[tuple[str, str]]:
    report = as_json(reviewed(machine(before, after)))
    return [(each["severity"], each["message"]) for each in report["findings"] if each["rule"] == "job-environment"]


def test_the_page_of_a_new_job_shows_what_it_runs_and_is_told() -> None:
    page = markdown(reviewed(machine(None, job({"LEVEL": SECRET, "API_TOKEN": SECRET}))))
    lines = page.splitlines()
    assert "+ code.entry_point: train.py" in lines
    assert "+ code.arguments: --fast, two words" in lines
    assert "+ environment.LEVEL: (not shown)" in lines
    assert "+ environment.API_TOKEN: (not shown)" in lines
    assert "+ hyperparameters.learning_rate: 2e-05" in lines
    assert SECRET not in page
    assert "SAGEFIT_ATTEMPT" not in page
    assert lines.index("+ code.entry_point: train.py") < lines.index("+ environment.LEVEL: (not shown)")
    assert lines.index("+ environment.LEVEL: (not shown)") < lines.index("+ hyperparameters.learning_rate: 2e-05")


def test_steps_and_attempts_of_a_new_job_are_told_too() -> None:
    made = job({})
    made["States"]["larger: submit"]["Parameters"]["Environment"]["THREADS"] = "2"
    made["States"]["larger: submit"]["Parameters"]["HyperParameters"]["max_length"] = "128"
    page = markdown(reviewed(machine(None, made)))
    step = markdown(reviewed(machine(None, with_step(Environment={"LEVEL": SECRET}))))
    assert "+ processing.features.code.entry_point: features.py" in step
    assert "+ processing.features.code.arguments: --fast" in step
    assert "+ processing.features.environment.LEVEL: (not shown)" in step
    assert SECRET not in step
    assert "+ attempts.larger.environment.THREADS: (not shown)" in page
    assert "+ attempts.larger.hyperparameters.max_length: 128" in page


LOADING = ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "PYTHONSTARTUP", "NODE_OPTIONS")
LEADING = (
    *("PYTHONPATH", "PYTHONHOME", "PATH", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "no_proxy", "PIP_INDEX_URL"),
    *("PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "UV_INDEX_URL", "CONDA_CHANNELS", "HF_ENDPOINT", "SSL_CERT_FILE"),
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SAGEMAKER_PROGRAM"),
)
RESERVED = (
    *("SAGEFIT_ML_ROOT", "SAGEFIT_ATTEMPT", "SAGEFIT_X", "SM_CHANNEL_TRAIN", "SM_HPS", "TRAINING_JOB_NAME"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE"),
    *("AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_SHARED_CREDENTIALS_FILE"),
)
ORDINARY = (
    *("LEVEL", "ENV", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MALLOC_MMAP_THRESHOLD_", "NCCL_DEBUG", "AWS_REGION"),
    *("AWS_DEFAULT_REGION", "AWS_MAX_ATTEMPTS", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONFAULTHANDLER"),
    *("TOKENIZERS_PARALLELISM", "HF_HOME", "PYTORCH_CUDA_ALLOC_CONF", "SAGEFIT_TORCHRUN", "WANDB_PROJECT", "PIPELINE"),
    *("SAGEFIT_PROCESSES_PER_HOST", "SAGEFIT_STOP_GRACE_SECONDS", "SMOKE", "CUDA_VISIBLE_DEVICES", "MY_PATH", "UVA"),
)


def test_each_name_is_of_one_kind() -> None:
    def kinds(name: str) -> list[str]:
        ways = {"reserved": reserved, "loads": loads_code, "leads": leads_elsewhere}
        return [kind for kind, of in ways.items() if of(name)]

    for names, expected in ((RESERVED, ["reserved"]), (LOADING, ["loads"]), (LEADING, ["leads"]), (ORDINARY, [])):
        assert [(name, kinds(name)) for name in names] == [(name, expected) for name in names]


@pytest.mark.parametrize("name", [*LOADING, *LEADING, *(n for n in RESERVED if n != "SAGEFIT_ATTEMPT")])
def test_a_variable_that_changes_what_runs_is_a_finding(name: str) -> None:
    severity = "medium" if name in LEADING else "high"
    ((found, message),) = findings(None, job({name: "/opt/ml/other"}))
    assert found == severity
    assert f"environment.{name}: " in message
    assert findings(job({name: "/opt/ml/other"}), job({name: "/opt/ml/other"})) == []
    if name not in RESERVED:
        ((_, message),) = findings(job({name: "/opt/ml/old"}), job({name: "/opt/ml/other"}))
        assert f"environment.{name}: /opt/ml/old → /opt/ml/other: " in message
        assert findings(job({name: "/opt/ml/other"}), job({})) == []


def test_ordinary_variables_are_none() -> None:
    assert findings(None, job(dict.fromkeys(ORDINARY, "x"))) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", f"http://user:{SECRET}@proxy.internal:3128"),
        ("PIP_EXTRA_INDEX_URL", f"https://{SECRET}@packages.internal/simple"),
        ("UV_INDEX_PRIVATE_PASSWORD", SECRET),
        ("PIP_CERT", f"https://packages.internal/?token={SECRET}"),
    ],
)
def test_what_is_secret_in_such_a_value_is_not_shown(name: str, value: str) -> None:
    review = reviewed(machine(None, job({name: value})))
    assert f"environment.{name}" in markdown(review)
    assert SECRET not in markdown(review)
    assert SECRET not in str(as_json(review))


def test_steps_and_attempts_are_judged() -> None:
    made = with_step(Environment={"PIP_INDEX_URL": "https://packages.internal/simple"})
    ((severity, message),) = findings(None, made)
    assert severity == "medium"
    assert "processing.features.environment.PIP_INDEX_URL: not set → https://packages.internal/simple" in message
    made = job({})
    made["States"]["larger: submit"]["Parameters"]["Environment"]["LD_PRELOAD"] = "/opt/ml/x.so"
    ((severity, message),) = findings(None, made)
    assert severity == "high"
    assert "attempts.larger.environment.LD_PRELOAD: not set → /opt/ml/x.so" in message
