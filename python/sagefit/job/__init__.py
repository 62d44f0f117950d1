"""The job file: read, checked and typed."""

from sagefit.job.load import JobNames, job_names, load_job
from sagefit.job.model import Attempt, Job

__all__ = ["Attempt", "Job", "JobNames", "job_names", "load_job"]
