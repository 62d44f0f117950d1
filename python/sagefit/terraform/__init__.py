"""The one door to Terraform."""

from sagefit.terraform.door import Change, Plan, Terraform
from sagefit.terraform.messages import TerraformError
from sagefit.terraform.state_lock import StateLock

__all__ = ["Change", "Plan", "StateLock", "Terraform", "TerraformError"]
