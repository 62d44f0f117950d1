"""The suite for one real account: short jobs of every kind, with a limit of what they cost, and nothing left behind.

It says what AWS really does where this checkout only has documents to go by. See docs/acceptance.md.
"""

from sagefit.acceptance.cases import Case, all_cases, chosen
from sagefit.acceptance.price import Price, price_of
from sagefit.acceptance.result import Result
from sagefit.acceptance.suite import Suite

__all__ = ["Case", "Price", "Result", "Suite", "all_cases", "chosen", "price_of"]
