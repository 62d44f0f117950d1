"""The job file's fields, types and single-field limits.

Rules between fields are in `rules`; limits of SageMaker itself come from the CreateTrainingJob API reference.
Every class refuses unknown keys, and nothing is converted silently: ``"3"`` is text and ``3`` a number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from sagefit.errors import SagefitError
from sagefit.job.forms import LIST, MAPPING, TEXT, either
from sagefit.job.key import Key, Lines
from sagefit.job.left_out import ALWAYS_EXCLUDED, rendered
from sagefit.job.limits import bounded
from sagefit.job.memory_model import Memory
from sagefit.job.problem import Problem, refusal, told
from sagefit.job.processing_model import Step
from sagefit.job.tuning import Tuning
from sagefit.job.uploads import Upload
from sagefit.job.values import Code, DurationOrName, Fields, Hyperparameter, PlatformName, Scalar, Seconds, Source
from sagefit.paths import JOBS, display

FailureClass = Literal[
    "gpu_memory",
    "host_memory",
    "shared_memory",
    "disk",
    "capacity",
    "quota",
    "spot",
    "time",
    "stopped",
    "data",
    "permission",
    "internal",
    "code",
]


class Image(Fields):
    """The container image: exactly one of uri, repository, framework, algorithm or algorithm_arn.

    ``build`` is the folder of a Dockerfile; what `sagefit image` makes of it is pinned beside the job file.
    """

    uri: str | None = None
    repository: str | None = None
    tag: str | None = None
    digest: str | None = None
    build: str | None = None
    framework: str | None = None
    algorithm: str | None = None
    algorithm_arn: Annotated[str, bounded("image.algorithm_arn")] | None = None
    version: str | None = None
    python_version: str | None = None


class FileSystem(Fields):
    """An EFS or FSx for Lustre file system as an input channel."""

    id: Annotated[str, bounded("inputs.*.file_system.id")]
    type: Literal["EFS", "FSxLustre"]
    directory_path: Annotated[str, bounded("inputs.*.file_system.directory_path")]
    access_mode: Literal["ro", "rw"] = "ro"


class Channel(Source):
    """One input channel: an S3 uri, a local file or folder, a file system, or the output of a processing step."""

    file_system: FileSystem | None = None
    mode: Literal["File", "Pipe", "FastFile"] | None = None
    s3_data_type: Literal["S3Prefix", "ManifestFile", "AugmentedManifestFile"] = "S3Prefix"
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] = "FullyReplicated"
    compression: Literal["None", "Gzip"] | None = None
    record_wrapper: Literal["None", "RecordIO"] | None = None
    content_type: Annotated[str, bounded("inputs.*.content_type")] | None = None
    shuffle_seed: Annotated[int, bounded("inputs.*.shuffle_seed")] | None = None
    attribute_names: Annotated[
        list[Annotated[str, bounded("inputs.*.attribute_names.*")]], bounded("inputs.*.attribute_names")
    ] = []
    instance_groups: list[str] = []


class InstanceGroup(Fields):
    """Some of the instances of a job that runs on more than one type at once."""

    name: Annotated[str, bounded("resources.instance_groups.*.name")]
    instance_type: str
    instance_count: Annotated[int, bounded("resources.instance_count")] = 1


class Resources(Fields):
    """Where the job runs, how long, and how it is protected. Attempts may override parts of it."""

    instance_type: Annotated[
        Annotated[str, TEXT] | Annotated[list[str], Field(min_length=1), LIST],
        either("one type, a list of types, or auto"),
    ] = "auto"
    instance_count: Annotated[int, bounded("resources.instance_count")] = 1
    instance_groups: Annotated[list[InstanceGroup], bounded("resources.instance_groups")] = []
    instance_quota: Annotated[int, bounded("resources.instance_quota")] = 20
    volume_size_gb: Annotated[int, bounded("resources.volume_size_gb")] = 30
    spot: bool = False
    max_runtime: Annotated[Seconds, bounded("resources.max_runtime")] = 86400
    max_wait: Annotated[Seconds, bounded("resources.max_wait")] | None = None
    max_pending: Annotated[Seconds, bounded("resources.max_pending")] | None = None
    warm_pool: DurationOrName | None = None
    max_keep_alive: Annotated[Seconds, bounded("resources.max_keep_alive")] = 3600
    checkpoints: bool = True
    checkpoint_local_path: str = "/opt/ml/checkpoints"
    input_mode: Literal["File", "Pipe", "FastFile"] = "File"
    network_isolation: bool | None = None
    encrypt_inter_container_traffic: bool | None = None
    subnet_ids: (
        Annotated[list[Annotated[str, bounded("resources.subnet_ids.*")]], bounded("resources.subnet_ids")] | None
    ) = None
    security_group_ids: (
        Annotated[
            list[Annotated[str, bounded("resources.security_group_ids.*")]], bounded("resources.security_group_ids")
        ]
        | None
    ) = None
    role: Literal["own", "shared"] | None = None
    volume_kms_key_arn: Annotated[str, bounded("resources.volume_kms_key_arn")] | None = None
    output_kms_key_arn: Annotated[str, bounded("resources.output_kms_key_arn")] | None = None
    output_s3_uri: Annotated[str, bounded("resources.output_s3_uri")] | None = None
    output_compression: Literal["GZIP", "NONE"] = "GZIP"
    retry_attempts: Annotated[int, bounded("resources.retry_attempts")] | None = None
    remote_debug: bool = False
    profiler: bool = False
    poll_interval: Annotated[Seconds, bounded("resources.poll_interval")] | None = None


class MetricDefinition(Fields):
    """A metric read from the log: the first group of ``regex`` is its value."""

    name: Annotated[str, bounded("metrics.*.name")]
    regex: Annotated[str, bounded("metrics.*.regex")]


OLDER_NAMES = {
    "keep_alive_seconds": "warm_pool",
    "max_runtime_seconds": "max_runtime",
    "max_wait_seconds": "max_wait",
    "max_pending_seconds": "max_pending",
}
"""Names of an attempt's fields that files of earlier versions have, and what they are called now."""


class Attempt(Fields):
    """One way to run the job. What is left out comes from ``resources``."""

    name: Annotated[str, bounded("attempts.*.name")]
    reason: Annotated[str, bounded("attempts.*.reason")] = ""
    instance_type: str | None = None
    instance_count: Annotated[int, bounded("resources.instance_count")] | None = None
    spot: bool | None = None
    hyperparameters: dict[str, Hyperparameter] = {}
    environment: dict[str, Scalar] = {}
    volume_size_gb: Annotated[int, bounded("resources.volume_size_gb")] | None = None
    warm_pool: Annotated[Seconds, bounded("attempts.*.warm_pool")] | None = None
    max_runtime: Annotated[Seconds, bounded("resources.max_runtime")] | None = None
    max_wait: Annotated[Seconds, bounded("resources.max_wait")] | None = None
    max_pending: Annotated[Seconds, bounded("resources.max_pending")] | None = None
    next: dict[FailureClass, str] = {}

    @model_validator(mode="before")
    @classmethod
    def _newer_names(cls, given: Any) -> Any:
        """Fields that had another name in an attempt than in ``resources`` in earlier versions."""
        if not isinstance(given, dict):
            return given
        for older, newer in OLDER_NAMES.items():
            if older in given and newer in given:
                names = {"one": newer, "other": older}
                raise PydanticCustomError("two_names", "{other} is an older name of {one}, and both are given", names)
        return {OLDER_NAMES.get(name, name): value for name, value in given.items()}


class Schedule(Fields):
    """When EventBridge Scheduler starts a run by itself."""

    expression: str
    timezone: str = "UTC"


class Job(Fields):
    """A job file. Field names and defaults are the contract with those who write one."""

    name: Annotated[str, bounded("name")]
    platform: PlatformName
    description: Annotated[str, bounded("description")] = ""
    code: Code | None = None
    image: Image
    processing: Annotated[list[Step], bounded("processing")] = []
    inputs: Annotated[
        dict[str, Annotated[Annotated[str, TEXT] | Annotated[Channel, MAPPING], either("a uri, a path, or a mapping")]],
        bounded("inputs"),
    ] = {}
    hyperparameters: dict[str, Hyperparameter] = {}
    environment: dict[str, Scalar] = {}
    resources: Resources = Resources()
    metrics: list[MetricDefinition] = []
    max_price: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    memory: Memory | None = None
    tuning: Tuning | None = None
    attempts: Annotated[
        Annotated[Literal["auto"], TEXT] | Annotated[list[Attempt], bounded("attempts"), LIST],
        either("auto, or a list of attempts"),
    ] = "auto"
    schedule: (
        Annotated[
            Annotated[str, TEXT] | Annotated[Schedule, MAPPING],
            either("rate(...), cron(...), at(...), or a mapping with expression and timezone"),
        ]
        | None
    ) = None
    tags: dict[str, str] = {}

    _path: Path = PrivateAttr()
    _lines: Lines = PrivateAttr(default_factory=Lines)

    @property
    def path(self) -> Path:
        """The job file itself."""
        return self._path

    @property
    def tfvars(self) -> Path:
        """What Terraform reads of the job: rendered beside the job file, and committed with it."""
        return self._path.with_name(f"{self.name}.tfvars")

    @property
    def channels(self) -> dict[str, Channel]:
        """The inputs, with the short form (a bare uri) written out."""
        return {name: Channel(uri=c) if isinstance(c, str) else c for name, c in self.inputs.items()}

    @property
    def written_attempts(self) -> list[Attempt] | None:
        """The attempts of the file; None when Sagefit makes them. Instance groups leave no choice: one attempt."""
        if self.attempts != "auto":
            return self.attempts
        return [Attempt(name="main")] if self.resources.instance_groups else None

    @property
    def uploads(self) -> list[Upload]:
        """What Terraform uploads from this machine: code and local data, also those of the steps."""
        found = [self._code(("code",), "code", self.code)] if self.code else []
        found += [self._data(("inputs", n), f"input {n}", c) for n, c in sorted(self.channels.items()) if c.is_local]
        for index, step in enumerate(self.processing):
            place: Key = ("processing", index)
            if step.code:
                found.append(self._code((*place, "code"), f"code of {step.name}", step.code))
            for name, source in sorted(step.sources.items()):
                if source.is_local:
                    found.append(self._data((*place, "inputs", name), f"input {name} of {step.name}", source))
        return found

    def _code(self, field: Key, what: str, code: Code) -> Upload:
        lists = tuple(code.exclude), tuple(code.allow_sensitive)
        place = (*field, "source_dir")
        own = rendered(self.name)
        return Upload(what, place, code.source_dir, self.local(code.source_dir), *lists, ALWAYS_EXCLUDED, own)

    def _data(self, field: Key, what: str, source: Source) -> Upload:
        lists = tuple(source.exclude), tuple(source.allow_sensitive)
        return Upload(what, field, source.uri or "", self.local(source.uri or ""), *lists)

    @property
    def reference(self) -> str:
        """What to type for this job: its name if it lies in ``jobs/``, else its path."""
        return self.name if self.path.parent == JOBS else display(self.path)

    def local(self, relative: str) -> Path:
        """A path written in the job file, which is relative to that file."""
        return (self.path.parent / relative).resolve()

    def line(self, field: Key) -> int | None:
        """The line of ``field`` in the file, or of the nearest field around it."""
        return self._lines.of(field)

    def line_exactly(self, field: Key) -> int | None:
        """The line of ``field``; None where it is not written."""
        return self._lines.get(field)

    def spelt(self, field: Key) -> Key:
        """``field`` with the name that the file has for it, where that is an older one."""
        return self._lines.spelt(field)

    def written(self, field: Key) -> str | None:
        """The text of an unquoted value, as it is in the file; None for any other value."""
        return self._lines.plain.get(field)

    def refusal(self, found: list[Problem]) -> SagefitError:
        """The error for problems that later parts of Sagefit find in the file, with its lines."""
        return refusal(self.path, self._lines, found)

    def told(self, found: list[Problem]) -> list[str]:
        """Problems that later parts of Sagefit find in the file, with its lines, to print."""
        return told(self.path, self._lines, found)
