"""Rules of ``CreateProcessingJob``."""

from __future__ import annotations

from typing import Any

from sagefit.catalog import instances
from sagefit_cloud.rules.table import Answers, Place, Request, among_others, of, repeated
from sagefit_cloud.rules.training import ecr_region

_CREATE = "sagemaker:CreateProcessingJob"
_FOLDER = "/opt/ml/processing/"


def _inputs(request: Request) -> list[dict[str, Any]]:
    inputs: list[dict[str, Any]] = request.get("ProcessingInputs", [])
    return inputs


def _outputs(request: Request) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = request.get("ProcessingOutputConfig", {}).get("Outputs", [])
    return outputs


@of(_CREATE)
def hosts_of_a_step(request: Request) -> Answers:
    """A processing job says the type and number of its hosts."""
    cluster = request["ProcessingResources"]["ClusterConfig"]
    if "InstanceType" not in cluster or "InstanceCount" not in cluster:
        yield "InstanceType and InstanceCount are required in ClusterConfig"


@of(_CREATE)
def names_of_inputs(request: Request) -> Answers:
    """No two inputs have one name."""
    if repeated([given["InputName"] for given in _inputs(request)]):
        yield "Input names of a processing job must be unique"


@of(_CREATE)
def names_of_outputs(request: Request) -> Answers:
    """No two outputs have one name."""
    if repeated([given["OutputName"] for given in _outputs(request)]):
        yield "Output names of a processing job must be unique"


@of(_CREATE)
def data_of_a_step(request: Request) -> Answers:
    """This cloud has data of steps in S3; AWS takes other sources too."""
    if any("S3Input" not in given for given in _inputs(request)) or any(
        "S3Output" not in given for given in _outputs(request)
    ):
        yield "the embedded cloud has inputs and outputs in S3 only"


@of(_CREATE)
def folder_of_a_step(request: Request) -> Answers:
    """Inputs and outputs lie below the folder of processing jobs."""
    for data in [given["S3Input"] for given in _inputs(request)] + [given["S3Output"] for given in _outputs(request)]:
        if not str(data.get("LocalPath")).startswith(_FOLDER):
            yield f"LocalPath {data.get('LocalPath')} must begin with {_FOLDER}"


@of(_CREATE)
def places_of_inputs(request: Request) -> Answers:
    """Each input has a folder of its own. AWS's answer has no text."""
    if repeated([given["S3Input"]["LocalPath"] for given in _inputs(request)]):
        yield ""


@of(_CREATE)
def mode_of_compressed_inputs(request: Request) -> Answers:
    """Inputs are uncompressed in Pipe mode."""
    for given in _inputs(request):
        if given["S3Input"].get("S3CompressionType") == "Gzip" and given["S3Input"].get("S3InputMode") != "Pipe":
            yield "S3CompressionType Gzip can only be used with the Pipe input mode"


@of(_CREATE)
def key_of_local_disks_of_a_step(request: Request) -> Answers:
    """Disks of the instance itself are encrypted by the hardware, so no key is given for them."""
    cluster = request["ProcessingResources"]["ClusterConfig"]
    known = instances().get(cluster["InstanceType"])
    if "VolumeKmsKeyId" in cluster and known and known.nvme_gb:
        yield f"VolumeKmsKeyId is not supported for instance types with local storage: {cluster['InstanceType']}"


@of(_CREATE)
def size_of_local_disks_of_a_step(request: Request) -> Answers:
    """A volume is at most as large as the disks of the instance itself, which take its place."""
    cluster = request["ProcessingResources"]["ClusterConfig"]
    known = instances().get(cluster["InstanceType"])
    if known and 0 < known.nvme_gb < cluster["VolumeSizeInGB"]:
        yield f"VolumeSizeInGB is greater than the {known.nvme_gb} GB of local storage of {cluster['InstanceType']}"


@of(_CREATE)
def image_of_a_step(request: Request) -> Answers:
    """An image is in Amazon ECR."""
    image = request["AppSpecification"]["ImageUri"]
    if ecr_region(image) is None:
        yield (
            f"Invalid image URI {image}. Please provide a valid Amazon Elastic Container Registry path of the Docker "
            "image to run."
        )


@among_others(_CREATE)
def region_of_an_image_of_a_step(request: Request, place: Place) -> Answers:
    """An image is in the Region of the processing job."""
    image = request["AppSpecification"]["ImageUri"]
    region = ecr_region(image)
    if region and region != place.region:
        yield f"Invalid region {region} in image URI {image}. Please provide an image URI in region {place.region}."
