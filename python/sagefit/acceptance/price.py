"""What the cases cost at most, and a limit that is kept: a case begins only if all that runs could still be paid."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from sagefit.acceptance.cases import Case
from sagefit.errors import SagefitError
from sagefit.planning import plan
from sagefit.planning.cost import REPEATS
from sagefit.running import RunRecord


@dataclass(frozen=True)
class Price:
    """What a case costs at most in USD, and whether a price behind it is an estimate."""

    usd: float
    estimated: bool


def price_of(case: Case, region: str) -> Price:
    """The most that a case can cost: every attempt to its time limit, with all repeats after errors of AWS.

    Raises SagefitError where a price is not known, because then no limit could be kept.
    """
    planned = plan(case.job)
    usd = planned.worst_case_usd(region)
    if usd is None:
        raise SagefitError(
            f"case {case.name}: a price in {region} is not known, so no limit could be kept",
            hint="choose another region with AWS_REGION, or name the other cases",
        )
    return Price(usd * (1 + REPEATS) * len(case.expects), planned.prices_estimated(region))


class Budget:
    """The limit in USD. What has ended counts with what it cost, what runs with the most that it can cost."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held: dict[str, float] = {}

    @property
    def usd(self) -> float:
        """What is spent or held."""
        with self._lock:
            return sum(self._held.values())

    def take(self, case: Case, most: float) -> bool:
        """Hold what a case can cost; False where that would be over the limit."""
        with self._lock:
            if sum(self._held.values()) + most > self._limit:
                return False
            self._held[case.name] = most
            return True

    def settle(self, case: Case, records: list[RunRecord]) -> float | None:
        """Hold only what a case has cost, in USD; all that was held (None) where that is not known to the last cent.

        Instances that are kept are billed after their run, and a run that is not over may still cost more.
        """
        kept = any(attempt.keep_alive_seconds for attempt in plan(case.job).attempts)
        spent = [record.spent for record in records]
        if any(each.incomplete for each in spent) or not all(record.is_over for record in records):
            return None
        usd = sum(each.usd for each in spent)
        if not kept and len(records) == len(case.expects):
            with self._lock:
                self._held[case.name] = usd
        return usd
