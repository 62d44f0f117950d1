"""Why an attempt died, as a page: cause, evidence, what was lost, and changes of the job file that were tried."""

from sagefit.explaining.applying import apply
from sagefit.explaining.explanation import Explanation, explain
from sagefit.explaining.tried import Remedy

__all__ = ["Explanation", "Remedy", "apply", "explain"]
