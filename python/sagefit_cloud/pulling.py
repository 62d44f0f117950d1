"""Whether a role may pull the image of its job. There are no images here; a role that may not is found all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moto.utilities.utils import get_partition

from sagefit.iam.evaluate import Call
from sagefit.job.image_table import is_algorithm
from sagefit_cloud import authorization
from sagefit_cloud.ends import JobFailedError

# AWS's own words: aws/sagemaker-python-sdk, issues 57 and 1968.
_CANNOT = (
    "ClientError: Cannot pull algorithm container. Either the image does not exist or its permissions are incorrect."
)
_IN_ECR = re.compile(r"(\d{12})\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.[a-z0-9.-]+/([^:@]+)")


def check(role: str, image: str) -> None:
    """Raises JobFailedError where a role may not pull an image. SageMaker pulls those of its own algorithms itself."""
    if not is_algorithm(image) and authorization.denial(role, _calls(image)):
        raise JobFailedError(_CANNOT)


def _calls(image: str) -> Iterator[Call]:
    """What pulling an image from Amazon ECR asks for; nothing for an image that is elsewhere."""
    if found := _IN_ECR.match(image):
        account, region, repository = found.groups()
        yield Call("ecr:GetAuthorizationToken")
        for action in ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer"):
            yield Call(f"ecr:{action}", f"arn:{get_partition(region)}:ecr:{region}:{account}:repository/{repository}")
