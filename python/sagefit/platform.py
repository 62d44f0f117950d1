"""The platform a job runs on, as it publishes itself in SSM."""

from __future__ import annotations

import json

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, ValidationError

from sagefit.answers import understood
from sagefit.console import command
from sagefit.errors import SagefitError

SCHEMA = 1


class NoPlatformError(SagefitError):
    """There is no platform of this name in the account and region of the environment."""


class Buckets(BaseModel):
    """The names of the platform's buckets."""

    model_config = ConfigDict(frozen=True)
    data: str
    artifacts: str
    checkpoints: str


class Network(BaseModel):
    """Where the platform's containers run, and what they may reach."""

    model_config = ConfigDict(frozen=True)
    subnet_ids: list[str] = []
    security_group_ids: list[str] = []
    isolation: bool = False
    encrypt_inter_container_traffic: bool = False


class Pool(BaseModel):
    """The shape of the training jobs that a warm pool keeps instances for."""

    model_config = ConfigDict(frozen=True)
    instance_type: str
    instance_count: int = 1
    volume_size_gb: int = 30


class Platform(BaseModel):
    """What Python needs of the platform document; Terraform reads the rest itself."""

    model_config = ConfigDict(frozen=True)
    schema_: int
    name: str
    partition: str
    region: str
    account_id: str
    buckets: Buckets
    repository_url: str | None = None
    kms_key_arn: str | None = None
    log_retention_days: int = 30
    topic_arn: str | None = None
    permissions_boundary_arn: str | None = None
    network: Network = Network()
    warm_pools: dict[str, Pool] = {}
    tags: dict[str, str] = {}
    allowed_instance_types: list[str] = []
    upload_folders: list[str] = []
    job_policy_arns: dict[str, str] | None = None
    shared_data: dict[str, str] = {}
    global_suffix: str = ""

    @property
    def readable(self) -> list[str]:
        """``bucket/prefix`` of what a job's own role may read, if the job names it."""
        own = self.buckets
        return [f"{own.data}/", f"{own.artifacts}/jobs/", f"{own.checkpoints}/jobs/", *self.shared_data]

    def writable(self, job: str) -> list[str]:
        """``bucket/prefix`` of where the outputs of a job with a role of its own may go."""
        shared = [place for place, access in self.shared_data.items() if access == "write"]
        return [f"{self.buckets.artifacts}/jobs/{job}/", *shared]

    def state_machine_arn(self, job: str) -> str:
        """The ARN of the state machine of a job."""
        return f"arn:{self.partition}:states:{self.region}:{self.account_id}:stateMachine:sagefit-{self.name}-{job}"

    def execution_arn(self, job: str, run: str) -> str:
        """The ARN of one run of a job."""
        return f"{self.state_machine_arn(job).replace(':stateMachine:', ':execution:')}:{run}"


def parameter(name: str) -> str:
    """The SSM parameter in which the platform ``name`` publishes itself."""
    return f"/sagefit/{name}"


def load_platform(name: str) -> Platform:
    """Read the document of the platform ``name`` in the account and region of the environment.

    Raises SagefitError when there is no such platform, or no AWS to ask.
    """
    try:
        answer = boto3.client("ssm").get_parameter(Name=parameter(name))
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            raise NoPlatformError(
                f"platform: no platform {name!r} in this account and region ({parameter(name)} is not in SSM)",
                hint=f"apply it: {command('platform', 'apply', name)}; or name another in the job file",
            ) from error
        what = f"platform: cannot read {parameter(name)}"
        raise understood(error, what) or SagefitError(f"{what}: {error}", hint="check your AWS login") from error
    except BotoCoreError as error:
        raise SagefitError(
            f"cannot reach AWS: {error}", hint="log in and set AWS_REGION, or use the embedded cloud: CLOUD=local"
        ) from error
    try:
        document = json.loads(answer["Parameter"]["Value"])
        platform = Platform.model_validate({"schema_": document.pop("schema", None)} | document)
    except (ValueError, AttributeError, ValidationError) as error:
        raise SagefitError(
            f"the document in {parameter(name)} is not one of Sagefit's", hint="apply the platform again"
        ) from error
    if platform.schema_ != SCHEMA:
        raise SagefitError(
            f"the platform {name!r} has schema {platform.schema_}, and this version of Sagefit reads {SCHEMA}",
            hint="apply the platform with this version",
        )
    return platform
