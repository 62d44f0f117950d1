"""SageMaker's training toolkit, as far as images of frameworks use it: it starts what hyperparameters name.

https://github.com/aws/sagemaker-training-toolkit: ``sagemaker_submit_directory`` is a folder or one file,
``sagemaker_program`` the script in it. Files in S3 are not played here.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from sagefit_cloud.jobs import TrainingJob


def command(job: TrainingJob) -> list[str] | None:
    """How the toolkit starts the script of ``job``; None where its hyperparameters name none."""
    given = job.request.get("HyperParameters", {})
    program = given.get("sagemaker_program")
    if program is None:
        return None
    place = PurePosixPath(given.get("sagemaker_submit_directory", "/opt/ml/code"))
    return ["python3", str(place if place.name == program else place / program)]
