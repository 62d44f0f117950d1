"""The job file: read, checked and typed."""

from sagefit.job.load import job_names, load_job
from sagefit.job.model import Attempt, Job

__all__ = ["Attempt", "Job", "job_names", "load_job"]
