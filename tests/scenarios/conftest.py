"""One embedded cloud whose faults are those of the table, with every run of the table under way."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

import yaml_tables
from cli_runner import Sagefit

HERE = Path(__file__).parent
IMAGES = "arn:aws:ecr:us-east-1:123456789012:repository/python"  # of the jobs here
TABLE: dict[str, Any] = yaml_tables.read(HERE / "scenarios.yaml")
SCENARIOS: list[dict[str, Any]] = TABLE["scenarios"]
JOBS = ("rich", "bare", "pool")
# Dates in the names of runs whose training jobs fail without a word, with words that leave
# nothing open, and that are not created at all.
UNEXPLAINED, EXPLAINED, THROTTLED = "000200", "000201", "000202"
EXPLAINED_AT_LENGTH = "000400"  # of the runs of jobs/explained


def outcomes(scenario: dict[str, Any]) -> list[tuple[str, int]]:
    """Names of a scenario's outcomes, and how often each happens."""
    return [next(iter(item.items())) if isinstance(item, dict) else (item, 1) for item in scenario["outcomes"]]


def run_name(index: int) -> str:
    """The name of a scenario's run: the time in it is its number."""
    return f"{SCENARIOS[index]['job']}-261121-{index:06d}"


def faults() -> list[dict[str, Any]]:
    """The faults file: each run has its own faults, in turn; all other training jobs complete at once."""
    own = [
        {"match": {"job": f"{run_name(index)}-*"}, "times": times, "outcome": TABLE["outcomes"][name]["fault"]}
        for index, scenario in enumerate(SCENARIOS)
        for name, times in outcomes(scenario)
    ]
    interrupt = {"match": {"job": "hard-000100-000004-0"}, "times": 1, "outcome": {"interrupt_after_seconds": 4}}
    ends = {UNEXPLAINED: "plain", EXPLAINED: "gpu_memory", THROTTLED: "throttled_without_a_name"}
    told = [
        {"match": {"job": f"bare-{date}-*"}, "outcome": TABLE["outcomes"][name]["fault"]} for date, name in ends.items()
    ]
    told += [
        {"match": {"job": f"{job}-{EXPLAINED_AT_LENGTH}-*"}, "outcome": TABLE["outcomes"][name]["fault"]}
        for job, name in (("spotty", "spot"), ("scarce", "capacity"))
    ]
    at_once = [{"match": {"job": job}, "outcome": {"status": "Completed"}} for job in (*JOBS, "other-pool", "crowd-*")]
    return [*own, interrupt, *told, *at_once]


@dataclass
class Cloud:
    """A running cloud with the jobs of the table."""

    sagefit: Sagefit
    jobs: Path  # a copy of the folder ``jobs``: what a job is rendered to is written beside its file
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A boto3 client of it."""
        if service not in self._clients:
            env = self.sagefit.aws_environment()
            make: Any = boto3.client
            self._clients[service] = make(
                service,
                endpoint_url=env["AWS_ENDPOINT_URL"],
                region_name=env["AWS_REGION"],
                aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
            )
        return self._clients[service]

    def job(self, name: str) -> Path:
        """The file of a job."""
        return self.jobs / f"{name}.yaml"

    def apply(self, name: str) -> None:
        """Apply a job with Terraform."""
        self.sagefit("plan", self.job(name))
        self.sagefit("apply", self.job(name))

    def start(self, job: str, name: str) -> None:
        """Start a run."""
        self.client("stepfunctions").start_execution(stateMachineArn=self._arn("stateMachine", job), name=name)

    def ended(self, job: str, name: str, seconds: float = 120) -> dict[str, Any]:
        """The execution, once it is over."""
        deadline = time.monotonic() + seconds
        while True:
            arn = f"{self._arn('execution', job)}:{name}"
            execution: dict[str, Any] = self.client("stepfunctions").describe_execution(executionArn=arn)
            if execution["status"] != "RUNNING":
                return execution
            assert time.monotonic() < deadline, f"{name} goes on and on"
            time.sleep(0.2)

    def history(self, job: str, name: str) -> list[dict[str, Any]]:
        """Every event of a run."""
        arn = f"{self._arn('execution', job)}:{name}"
        pages = self.client("stepfunctions").get_paginator("get_execution_history").paginate(executionArn=arn)
        return [event for page in pages for event in page["events"]]

    def training_jobs(self, name: str) -> list[str]:
        """Names of the training jobs of a run, in the order of their creation."""
        asked = {"NameContains": f"{name}-", "PaginationConfig": {"PageSize": 100}}
        pages = self.client("sagemaker").get_paginator("list_training_jobs").paginate(**asked)
        found = [job for page in pages for job in page["TrainingJobSummaries"]]
        return [job["TrainingJobName"] for job in sorted(found, key=lambda job: job["CreationTime"])]

    @staticmethod
    def _arn(kind: str, job: str) -> str:
        return f"arn:aws:states:us-east-1:123456789012:{kind}:sagefit-dev-{job}"


@contextmanager
def a_cloud(folder: Path) -> Iterator[Cloud]:
    """A cloud with the faults of the table, and its platform, until the end."""
    jobs = shutil.copytree(HERE / "jobs", folder / "jobs")
    (folder / "faults.yaml").write_text(yaml.safe_dump(faults()), encoding="utf-8")
    sagefit = Sagefit(folder / "home", CLOUD="local")
    sagefit("cloud", "up", "--faults", folder / "faults.yaml")
    try:
        pulls = f'{{ repository_arns = ["{IMAGES}"] }}'
        every_second = "{ interval_seconds = 1 }"
        sagefit("platform", "apply", "--yes", TF_VAR_run_cleanup=every_second, TF_VAR_execution_role=pulls)
        found = Cloud(sagefit, jobs)
        _raise_quota(found.client("service-quotas"))
        yield found
    finally:
        sagefit("cloud", "down")


@pytest.fixture(scope="package")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """The cloud, the platform and the applied jobs of the table."""
    with a_cloud(tmp_path_factory.mktemp("scenarios")) as found:
        for job in JOBS:
            found.apply(job)
        yield found


@pytest.fixture(scope="package")
def hard(cloud: Cloud) -> Cloud:
    """The same, with the job whose script runs into trouble."""
    cloud.apply("hard")
    return cloud


def _raise_quota(quotas: Any) -> None:
    """All runs are under way at once, on the same type, and keep it warm."""
    pages = quotas.get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker")
    for quota in (quota for page in pages for quota in page["Quotas"]):
        if quota["QuotaName"].startswith(("ml.m5", "ml.g", "ml.p4d")) and quota["QuotaName"].endswith(
            ("training job usage", "training warm pool usage")
        ):
            quotas.request_service_quota_increase(
                ServiceCode="sagemaker", QuotaCode=quota["QuotaCode"], DesiredValue=1000
            )


@pytest.fixture(scope="package")
def runs(cloud: Cloud) -> Cloud:
    """The same, with a run of every scenario started."""
    for index, scenario in enumerate(SCENARIOS):
        cloud.start(scenario["job"], run_name(index))
    return cloud


def record(execution: dict[str, Any]) -> dict[str, Any]:
    """What a run put out, the same for success and failure."""
    if execution["status"] == "SUCCEEDED":
        put_out: dict[str, Any] = json.loads(execution["output"])
        return put_out
    return {"attempts": json.loads(execution["cause"])}
