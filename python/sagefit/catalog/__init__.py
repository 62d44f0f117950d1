"""What instances have and cost."""

from sagefit.catalog.instances import Instance, instances, suggest
from sagefit.catalog.prices import Price, price

__all__ = ["Instance", "Price", "instances", "price", "suggest"]
