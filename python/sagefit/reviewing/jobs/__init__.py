"""A job in a plan: read back from its state machine, and told in the words of a job file."""

from sagefit.reviewing.jobs.compare import JobReview, foreign_hits, review_jobs
from sagefit.reviewing.jobs.cost import Allowed, Cost

__all__ = ["Allowed", "Cost", "JobReview", "foreign_hits", "review_jobs"]
