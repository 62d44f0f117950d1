"""ECR: AWS's own registries, in which the images of the table ``images.json`` lie. They have no content here."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from moto.core.responses import ActionResult
from moto.ecr import urls
from moto.ecr.responses import ECRResponse

from sagefit.job.image_table import algorithms, frameworks

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Ecr(ECRResponse):
    """moto's ECR with AWS's registries, which anybody may pull from."""

    def batch_get_image(self) -> ActionResult:
        """The images that are there, and a failure for each other one."""
        registry, repository = self._get_param("registryId"), self._get_param("repositoryName")
        tags = _published().get((registry, self.region, repository))
        if tags is None:
            return super().batch_get_image()
        images: list[Any] = []
        failures: list[Any] = []
        for named in self._get_param("imageIds"):
            tag = named.get("imageTag")
            if tag in tags:
                digest = f"sha256:{hashlib.sha256(f'{repository}:{tag}'.encode()).hexdigest()}"
                identity = {"imageTag": tag, "imageDigest": digest}
                about = {"registryId": registry, "repositoryName": repository, "imageId": identity}
                images.append({**about, "imageManifest": "{}", "imageManifestMediaType": _MANIFEST})
            else:
                why = {"failureCode": "ImageNotFound", "failureReason": "Requested image not found"}
                failures.append({"imageId": named, **why})
        return ActionResult({"images": images, "failures": failures})


@cache
def _published() -> dict[tuple[str, str, str], set[str]]:
    """The tags of each repository of AWS, by account, region and name."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for family in (*frameworks().values(), *algorithms().values()):
        for version, pythons in family.versions.items():
            for region in family.regions(version):
                place = (family.accounts[region], region, family.repository)
                for tag in pythons.values():
                    found.setdefault(place, set()).update(
                        tag.replace("{processor}", processor) for processor in family.processors or ("",)
                    )
    return found


def install() -> None:
    """Put this class in place of moto's."""
    urls.url_paths = {**urls.url_paths, "{0}/$": Ecr.dispatch}
