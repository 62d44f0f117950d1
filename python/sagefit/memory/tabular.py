"""Host memory of fitting a table: XGBoost and scikit-learn hold all of it, several times.

Measured with a million rows of 100 columns of random numbers, xgboost 3.2 and scikit-learn 1.9, peak resident memory
without the interpreter, in copies of a table of 8-byte (4-byte) numbers:
XGBoost DMatrix with hist 2.41 (3.81), approx 2.43, exact - (5.09), QuantileDMatrix and XGBClassifier 1.38 (1.76);
random forest 1.60 (1.21), histogram boosting 1.29 (3.58), logistic regression 1.05, SGD 1.03, ridge 2.02,
least squares 3.02, StandardScaler 2.13.
"""

from __future__ import annotations

from sagefit.memory.workload import GIB, Phases, Tabular, Workload

PROCESS = 0.2 * GIB  # measured: 138 MiB with numpy and xgboost, 129 with scikit-learn; pandas comes on top
ENTRY = 8  # a DMatrix keeps each value as a 4-byte column number and a 4-byte float (xgboost/data.h, struct Entry)
BINS = 3.3  # the histogram index by rows and by columns, a byte each with 256 bins, and sketches (measured, see above)
CONVERTED = 8  # scikit-learn converts or copies its input at most once in most estimators, to float64 (check_array)


def host_phases(workload: Workload, model: Tabular) -> Phases:
    """Bytes by phase and part: ``load`` with the table alone, ``step`` with what the library makes of it."""
    table = workload.dataset_gib * GIB
    values = table / model.dtype_bytes
    load = {"process": PROCESS, "dataset": table}
    if model.copies is not None:
        made = {"copies": (model.copies - 1) * table}
    elif model.library == "xgboost":
        made = {"matrix": ENTRY * values, "histogram index": BINS * values}
    else:
        made = {"converted copy": CONVERTED * values}
    return {"load": load, "step": load | made}
