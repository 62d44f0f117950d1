"""What instances have and cost: data and its refresh from AWS. `sagefit.planning` chooses by it."""

from sagefit.catalog.instance_table import Instance, instances
from sagefit.catalog.prices import Price, price
from sagefit.catalog.quotas import quota_code, quota_name

__all__ = ["Instance", "Price", "instances", "price", "quota_code", "quota_name"]
