"""The one door to Terraform."""

from sagefit.terraform.door import Change, Plan, Terraform

__all__ = ["Change", "Plan", "Terraform"]
