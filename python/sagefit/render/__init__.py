"""From a job to the tfvars file that Terraform reads."""

from sagefit.render.tfvars import check_rendered, render, tfvars_path, write

__all__ = ["check_rendered", "render", "tfvars_path", "write"]
