"""The platform's repository in ECR."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import boto3
from botocore.exceptions import ClientError


@dataclass(frozen=True)
class Repository:
    """A repository by its URL: ``123456789012.dkr.ecr.us-east-1.amazonaws.com/sagefit-dev``."""

    url: str

    @property
    def host(self) -> str:
        """The registry that it is in."""
        return self.url.partition("/")[0]

    def digest_of(self, tag: str) -> str | None:
        """The digest of the image with a tag; None where there is none."""
        registry, name = self.host.partition(".")[0], self.url.partition("/")[2]
        try:
            answer = boto3.client("ecr").describe_images(
                registryId=registry, repositoryName=name, imageIds=[{"imageTag": tag}]
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ImageNotFoundException":
                return None
            raise
        return str(answer["imageDetails"][0]["imageDigest"])

    def credentials(self) -> tuple[str, str]:
        """User and password for a login, good for twelve hours."""
        answer = boto3.client("ecr").get_authorization_token()
        token = base64.b64decode(answer["authorizationData"][0]["authorizationToken"]).decode()
        user, _, password = token.partition(":")
        return user, password
