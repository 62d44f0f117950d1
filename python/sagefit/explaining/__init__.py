"""Why an attempt died, as a page: cause, evidence, what was lost, and changes of the job file that were tried."""

from sagefit.explaining.applying import apply
from sagefit.explaining.explanation import Explanation, explain, explain_all
from sagefit.explaining.lesson import cheaper
from sagefit.explaining.timeline import Timeline, of_hosts
from sagefit.explaining.tried import Remedy

__all__ = ["Explanation", "Remedy", "Timeline", "apply", "cheaper", "explain", "explain_all", "of_hosts"]
