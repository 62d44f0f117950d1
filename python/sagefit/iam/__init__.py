"""What IAM policies allow, compared statement by statement."""

from sagefit.iam.compare import Lost, widened
from sagefit.iam.policy import Policy, Statement, read_policy

__all__ = ["Lost", "Policy", "Statement", "read_policy", "widened"]
