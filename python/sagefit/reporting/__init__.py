"""A report: one self-contained page of HTML about a run, or about the runs of a job, with pictures."""

from sagefit.reporting.files import write
from sagefit.reporting.gathering import Story, gather
from sagefit.reporting.html import page_of_job, page_of_run

__all__ = ["Story", "gather", "page_of_job", "page_of_run", "write"]
