"""Whether a role may let SageMaker encrypt the volumes of its job's hosts. There are no encrypted volumes here; a role
that may not is found all the same.
"""

from __future__ import annotations

from sagefit_cloud import authorization, permissions
from sagefit_cloud.ends import JobFailedError
from sagefit_cloud.records import ContainerJob
from sagefit_cloud.rules import Place


def check(job: ContainerJob) -> None:
    """Raises JobFailedError where the role of a job may not grant AWS the use of the key of its volumes.

    Asked when hosts are made: those that come from a warm pool have their volumes already.
    """
    key = job.volume_key
    if not key:
        return
    _, partition, _, region, account, _ = job.arn.split(":", 5)
    granted = permissions.key_use(
        "CreateGrant", key, "sagemaker", Place(account, region, partition), {"kms:GrantIsForAWSResource": "true"}
    )
    if why := authorization.denial(job.role, granted, authorization.SAGEMAKER):
        raise JobFailedError(f"ClientError: VolumeKmsKeyId {key} cannot be used: {why}")
