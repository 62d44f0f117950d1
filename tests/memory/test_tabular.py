"""Tables: the formulas against peaks measured with xgboost 3.2 and scikit-learn 1.9."""

from __future__ import annotations

import pytest

from sagefit.memory.host import phases
from sagefit.memory.overhead import peak
from sagefit.memory.workload import GIB, Placement, Tabular, Workload

VALUES = 100_000_000  # a million rows of 100 columns


def predicted(library: str, dtype_bytes: int, copies: float | None = None) -> float:
    """Copies of the table at the peak, without the interpreter."""
    model = Tabular(library, dtype_bytes, copies)  # type: ignore[arg-type]
    table = VALUES * dtype_bytes
    found = phases(Workload(model, dataset_gib=table / GIB), Placement())
    return (peak(found) - found["load"]["process"]) / table


@pytest.mark.parametrize(("dtype_bytes", "measured"), [(8, 2.41), (4, 3.81)])
def test_xgboost_with_a_dmatrix(dtype_bytes: int, measured: float) -> None:
    assert predicted("xgboost", dtype_bytes) == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("dtype_bytes", "measured"),
    [(8, 1.60), (8, 1.29), (8, 1.05), (8, 1.03), (8, 2.02), (8, 2.13), (4, 1.21), (4, 3.58)],
)
def test_scikit_learn_stays_within_a_fifth_of_one_converted_copy(dtype_bytes: int, measured: float) -> None:
    assert measured <= 1.2 * predicted("scikit-learn", dtype_bytes)


def test_copies_that_somebody_counted_are_used() -> None:
    assert predicted("scikit-learn", 8, copies=3.5) == pytest.approx(3.5)


def test_a_larger_table_needs_more() -> None:
    sizes = [peak(phases(Workload(Tabular("xgboost"), dataset_gib=gib), Placement())) for gib in (0, 1, 2, 50)]
    assert sizes == sorted(set(sizes))
