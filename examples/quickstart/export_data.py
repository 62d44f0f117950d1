"""Writes the committed data once more: the digits of scikit-learn as CSV shards, split the same way every time.

Needs scikit-learn. One line per picture: the label, then 64 grey values from 0 to 16.
"""

import gzip
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split

SHARDS = 8
FOLDER = Path(__file__).parent / "data"


def write(path: Path, rows: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


digits = load_digits()
table = np.column_stack([digits.target, digits.data]).astype(int)
train, test = train_test_split(table, test_size=0.2, stratify=table[:, 0], random_state=0)
split = StratifiedKFold(n_splits=SHARDS, shuffle=True, random_state=0).split(train, train[:, 0])
for number, (_, shard) in enumerate(split):
    write(FOLDER / "train" / f"part-{number}.csv.gz", train[shard])
write(FOLDER / "test" / "part-0.csv.gz", test)
