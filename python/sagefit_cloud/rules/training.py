"""Rules of ``CreateTrainingJob``. Those that a training job of a search has to obey too are asked for it as well."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sagefit.catalog import instances
from sagefit.job.image_table import is_algorithm, writes_checkpoints
from sagefit_cloud.rules.table import Answers, Place, Request, among_others, of, repeated

_CREATE = "sagemaker:CreateTrainingJob"
_DEFAULT_RUNTIME = 86400  # seconds: MaxRuntimeInSeconds, if a request does not say
_LONGEST_WAIT = 3600  # seconds


def ecr_region(image: str) -> str | None:
    """The Region of an image in Amazon ECR; None for one that is elsewhere."""
    found = re.match(r"\d{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.[a-z0-9.-]+/", image)
    return found[1] if found else None


def _groups(request: Request) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = request["ResourceConfig"].get("InstanceGroups", [])
    return groups


def _channels(request: Request) -> list[dict[str, Any]]:
    channels: list[dict[str, Any]] = request.get("InputDataConfig", [])
    return channels


def _modes(request: Request) -> Iterator[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
    """Name, channel, input mode and data in S3 of each channel; the last is empty where it has a file system."""
    for channel in _channels(request):
        mode = channel.get("InputMode") or request["AlgorithmSpecification"]["TrainingInputMode"]
        yield channel["ChannelName"], channel, mode, channel["DataSource"].get("S3DataSource", {})


@of(_CREATE)
def parts_of_a_training_job(request: Request) -> Answers:
    """A training job that is not serverless has an algorithm, resources and a limit of time."""
    for name in ("AlgorithmSpecification", "ResourceConfig", "StoppingCondition"):
        if name not in request:
            yield f"{name} is required for a training job that is not serverless"


@of(_CREATE)
def image_or_algorithm(request: Request) -> Answers:
    """A training job has an image or the name of an algorithm, not both."""
    algorithm = request["AlgorithmSpecification"]
    if ("TrainingImage" in algorithm) == ("AlgorithmName" in algorithm):
        yield "You must specify exactly one of TrainingImage and AlgorithmName in AlgorithmSpecification"


@of(_CREATE)
def regular_expressions_of_metrics(request: Request) -> Answers:
    """The regular expression of a metric can be compiled."""
    for metric in request["AlgorithmSpecification"].get("MetricDefinitions", []):
        try:
            re.compile(metric["Regex"])
        except re.error as error:
            yield f"Invalid regex in MetricDefinitions for {metric['Name']}: {error}"


@of(_CREATE)
def one_kind_of_hosts(request: Request) -> Answers:
    """Hosts are of one type, which is given with their number, or in groups."""
    resources = request["ResourceConfig"]
    if "InstanceGroups" in resources:
        if "InstanceType" in resources or "InstanceCount" in resources:
            yield "InstanceType or InstanceCount cannot be specified with InstanceGroups"
    elif "InstanceType" not in resources or "InstanceCount" not in resources:
        yield "InstanceType and InstanceCount are required in ResourceConfig"


@of(_CREATE)
def names_of_groups(request: Request) -> Answers:
    """No two groups of instances have one name."""
    if repeated([group["InstanceGroupName"] for group in _groups(request)]):
        yield "Instance group names must be unique in ResourceConfig"


@of(_CREATE)
def warm_pool_of_groups(request: Request) -> Answers:
    """Hosts in groups are not kept warm."""
    if _groups(request) and request["ResourceConfig"].get("KeepAlivePeriodInSeconds"):
        yield "KeepAlivePeriodInSeconds is not supported with InstanceGroups"


@of(_CREATE)
def wait_of_spot_alone(request: Request) -> Answers:
    """Only a job on spot instances has a limit of waiting."""
    if not request.get("EnableManagedSpotTraining") and "MaxWaitTimeInSeconds" in request["StoppingCondition"]:
        yield "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"


@of(_CREATE)
def wait_of_spot(request: Request) -> Answers:
    """A job on spot instances says how long it may take with all waiting, which is no less than its time to run."""
    if not request.get("EnableManagedSpotTraining"):
        return
    limits = request["StoppingCondition"]
    longest = limits.get("MaxWaitTimeInSeconds")
    if longest is None:
        yield "MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is set to true"
    elif longest < limits.get("MaxRuntimeInSeconds", _DEFAULT_RUNTIME):
        yield "Invalid MaxWaitTimeInSeconds. It must be equal to or greater than MaxRuntimeInSeconds"


@of(_CREATE)
def warm_pool_of_spot(request: Request) -> Answers:
    """Spot instances are not kept warm."""
    if request.get("EnableManagedSpotTraining") and request["ResourceConfig"].get("KeepAlivePeriodInSeconds"):
        yield "KeepAlivePeriodInSeconds is not supported when EnableManagedSpotTraining is set to true"


@of(_CREATE)
def names_of_channels(request: Request) -> Answers:
    """No two channels have one name."""
    if repeated([channel["ChannelName"] for channel in _channels(request)]):
        yield "Channel names in InputDataConfig must be unique"


@of(_CREATE)
def one_source_of_a_channel(request: Request) -> Answers:
    """The data of a channel lie in S3 or in a file system."""
    for channel in _channels(request):
        if ("S3DataSource" in channel["DataSource"]) == ("FileSystemDataSource" in channel["DataSource"]):
            yield (f"Channel '{channel['ChannelName']}' must have exactly one of S3DataSource and FileSystemDataSource")


@of(_CREATE)
def groups_of_a_channel(request: Request) -> Answers:
    """A channel names groups that the job has."""
    known = {group["InstanceGroupName"] for group in _groups(request)}
    for name, _, _, s3 in _modes(request):
        if unknown := [group for group in s3.get("InstanceGroupNames", []) if group not in known]:
            yield f"Channel '{name}' names instance groups that are not in InstanceGroups: {', '.join(unknown)}"


@of(_CREATE)
def groups_of_all_channels(request: Request) -> Answers:
    """If one channel names groups, all do."""
    named = [name for name, _, _, s3 in _modes(request) if s3.get("InstanceGroupNames")]
    others = [name for name, _, _, s3 in _modes(request) if not s3.get("InstanceGroupNames")]
    if named and others:
        yield (
            f"Some channels have assigned instance groups: [{', '.join(sorted(named))}] while others not: "
            f"[{', '.join(others)}]"
        )


@of(_CREATE)
def mode_of_a_manifest(request: Request) -> Answers:
    """An augmented manifest is read in Pipe mode."""
    for name, _, mode, s3 in _modes(request):
        if s3.get("S3DataType") == "AugmentedManifestFile" and mode != "Pipe":
            yield f"Channel '{name}': AugmentedManifestFile is only supported with the Pipe input mode"


@of(_CREATE)
def data_of_fast_file(request: Request) -> Answers:
    """FastFile reads what has a prefix."""
    for name, _, mode, s3 in _modes(request):
        if s3 and mode == "FastFile" and s3["S3DataType"] != "S3Prefix":
            yield f"Channel '{name}': the FastFile input mode is only supported with S3Prefix"


@of(_CREATE)
def mode_of_a_file_system(request: Request) -> Answers:
    """A file system is read in File mode."""
    for name, _, mode, s3 in _modes(request):
        if not s3 and mode != "File":
            yield f"Channel '{name}': a file system is only supported with the File input mode"


@of(_CREATE)
def network_of_a_file_system(request: Request) -> Answers:
    """A file system is reached in the customer's network."""
    for name, _, _, s3 in _modes(request):
        if not s3 and "VpcConfig" not in request:
            yield f"Channel '{name}': a file system needs a VpcConfig"


@of(_CREATE)
def mode_of_compressed_data(request: Request) -> Answers:
    """Data are uncompressed in Pipe mode."""
    for name, channel, mode, _ in _modes(request):
        if mode != "Pipe" and (channel.get("CompressionType") or "None") != "None":
            yield f"Channel '{name}': CompressionType Gzip is only supported with the Pipe input mode"


@of(_CREATE)
def mode_of_records(request: Request) -> Answers:
    """Data are wrapped as RecordIO in Pipe mode."""
    for name, channel, mode, _ in _modes(request):
        if mode != "Pipe" and (channel.get("RecordWrapperType") or "None") != "None":
            yield f"Channel '{name}': RecordWrapperType RecordIO is only supported with the Pipe input mode"


@of(_CREATE, "sagemaker:CreateHyperParameterTuningJob", "sagemaker:CreateProcessingJob")
def keys_of_tags(request: Request) -> Answers:
    """No two tags have one key."""
    if repeated([tag["Key"] for tag in request.get("Tags", [])]):
        yield "Duplicate tag keys found. Please specify unique tag keys"


@of(_CREATE)
def attributes_of_a_manifest(request: Request) -> Answers:
    """An augmented manifest says which of its attributes are read; nothing else has attributes."""
    for name, _, _, s3 in _modes(request):
        if (s3.get("S3DataType") == "AugmentedManifestFile") != bool(s3.get("AttributeNames")):
            yield f"Channel '{name}': AttributeNames are required for AugmentedManifestFile, and for nothing else"


@of(_CREATE)
def metrics_of_an_algorithm(request: Request) -> Answers:
    """The metrics of SageMaker's own algorithms are SageMaker's, also where XGBoost's image runs a script."""
    algorithm = request["AlgorithmSpecification"]
    if algorithm.get("MetricDefinitions") and is_algorithm(algorithm.get("TrainingImage", "")):
        yield (
            "You can't override the metric definitions for Amazon SageMaker algorithms. Please retry the request "
            "without specifying metric definitions."
        )


@of(_CREATE)
def key_of_local_disks(request: Request) -> Answers:
    """Disks of the instance itself are encrypted by the hardware, so no key is given for them."""
    resources = request["ResourceConfig"]
    types = [each["InstanceType"] for each in resources.get("InstanceGroups") or [resources]]
    known = [instances()[each] for each in types if each in instances()]
    if "VolumeKmsKeyId" in resources and known and all(each.nvme_gb for each in known):
        yield f"VolumeKmsKeyId is not supported for instance types with local storage: {', '.join(types)}"


@of(_CREATE)
def size_of_a_volume(request: Request) -> Answers:
    """Instances without disks of their own need the size of a volume."""
    resources = request["ResourceConfig"]
    types = [each["InstanceType"] for each in resources.get("InstanceGroups") or [resources]]
    bare = [each for each in types if each in instances() and not instances()[each].nvme_gb]
    if bare and not resources.get("VolumeSizeInGB"):
        yield f"VolumeSizeInGB is required for instance types without local storage: {', '.join(bare)}"


@of(_CREATE)
def wait_of_an_algorithm_without_checkpoints(request: Request) -> Answers:
    """An algorithm that writes no checkpoints waits an hour for spot instances at most."""
    algorithm = request["AlgorithmSpecification"]
    image = algorithm.get("TrainingImage", "")
    alone = is_algorithm(image) and not algorithm.get("ContainerEntrypoint")
    keeps = any(re.search(rf"/(sagemaker-)?{name}[:@]", image) for name in writes_checkpoints())
    wait = request["StoppingCondition"].get("MaxWaitTimeInSeconds", 0)
    if request.get("EnableManagedSpotTraining") and alone and not keeps and wait > _LONGEST_WAIT:
        yield f"MaxWaitTimeInSeconds must be at most {_LONGEST_WAIT} for an algorithm that does not write checkpoints"


@of(_CREATE)
def key_of_an_express_bucket(request: Request) -> Answers:
    """A directory bucket takes no key with a request."""
    output = request["OutputDataConfig"]
    if output.get("KmsKeyId") and re.match(r"s3://[^/]+--x-s3(/|$)", output["S3OutputPath"]):
        yield "KmsKeyId is not supported for an output in S3 Express One Zone"


@of(_CREATE)
def image_of_a_registry(request: Request) -> Answers:
    """An image is in Amazon ECR, unless the request says that it is in a registry of the network."""
    algorithm = request["AlgorithmSpecification"]
    image, access = algorithm.get("TrainingImage"), algorithm.get("TrainingImageConfig", {})
    if image and ecr_region(image) is None and access.get("TrainingRepositoryAccessMode") != "Vpc":
        yield (
            "Invalid training image. Please provide a valid Amazon Elastic Container Registry path of the Docker "
            "image to run."
        )


@among_others(_CREATE)
def region_of_an_image(request: Request, place: Place) -> Answers:
    """An image is in the Region of the training job."""
    image = request["AlgorithmSpecification"].get("TrainingImage", "")
    region = ecr_region(image)
    if region and region != place.region:
        suffix = image.partition("/")[0].partition(f".{region}.")[2]
        yield (
            f"Invalid DNS suffix '{suffix}' for region '{region}' in training image. Please provide the valid "
            f"<region>.<dns-suffix>: '{place.region}.{suffix}'"
        )


@among_others(_CREATE, "sagemaker:CreateProcessingJob")
def account_of_a_role(request: Request, place: Place) -> Answers:
    """A job has a role of the account that it runs in."""
    if request["RoleArn"].split(":")[4] != place.account:
        yield "RoleArn: Cross-account pass role is not allowed."


@of("sagemaker:UpdateTrainingJob")
def something_to_update(request: Request) -> Answers:
    """An update changes something."""
    if set(request) <= {"TrainingJobName"}:
        yield "Invalid UpdateTrainingJobRequest, the request cannot be empty"
