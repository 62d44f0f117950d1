"""The fields of a processing step: a container that prepares data before the first attempt."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from sagefit.job.forms import MAPPING, TEXT, either
from sagefit.job.limits import bounded
from sagefit.job.values import Code, Fields, Scalar, Seconds, Source


class StepImage(Fields):
    """The container image: exactly one of uri, repository or framework."""

    uri: str | None = None
    repository: str | None = None
    tag: str | None = None
    digest: str | None = None
    framework: str | None = None
    version: str | None = None
    python_version: str | None = None

    @property
    def is_spark(self) -> bool:
        """Whether it is SageMaker's Spark image, which has a starter and an event log of its own."""
        return self.framework == "spark" or bool(re.search(r"/sagemaker-spark-processing[:@]", self.uri or ""))


class StepInput(Source):
    """Data for a step: an S3 uri, a local file or folder, or the output of an earlier step."""

    s3_data_type: Literal["S3Prefix", "ManifestFile"] = "S3Prefix"
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] = "FullyReplicated"


class StepResources(Fields):
    """Where a step runs, and how long at most."""

    instance_type: str
    instance_count: Annotated[int, bounded("processing.*.resources.instance_count")] = 1
    volume_size_gb: Annotated[int, bounded("processing.*.resources.volume_size_gb")] = 30
    max_runtime: Annotated[Seconds, bounded("processing.*.resources.max_runtime")] = 86400


class Step(Fields):
    """One processing job of every run. Steps run in order, before the first attempt."""

    name: Annotated[str, bounded("processing.*.name")]
    image: StepImage
    code: Code | None = None
    inputs: Annotated[
        dict[
            str, Annotated[Annotated[str, TEXT] | Annotated[StepInput, MAPPING], either("a uri, a path, or a mapping")]
        ],
        bounded("processing.*.inputs"),
    ] = {}
    outputs: Annotated[list[str], bounded("processing.*.outputs")]
    environment: dict[str, Scalar] = {}
    resources: StepResources

    @property
    def sources(self) -> dict[str, StepInput]:
        """The inputs, with the short form (a bare uri) written out."""
        return {name: StepInput(uri=given) if isinstance(given, str) else given for name, given in self.inputs.items()}
