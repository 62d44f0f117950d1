"""``sagefit size``: what a job needs, where it fits, what it may cost."""

from sagefit.size.report import as_json
from sagefit.size.sizing import Sizing, size_job

__all__ = ["Sizing", "as_json", "size_job"]
