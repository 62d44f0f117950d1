"""One trial: a support vector machine on handwritten digits, with the hyperparameters that the tuning job chose.

The objective is measured on pictures that are held out of the training data; the test data decides nothing.
"""

import argparse
import os
from pathlib import Path

import joblib
import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

SIDE = 8


def flag(text):
    return text.lower() == "true"


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return table[:, 1:] / 16, table[:, 0].astype(int)


def shifted(pictures, digits):
    """Every picture as it is, and moved by a pixel up, down, left and right."""
    square = pictures.reshape(-1, SIDE, SIDE)
    moves = [(0, 1), (0, -1), (1, 1), (1, -1)]
    moved = [np.roll(square, step, axis=1 + axis).reshape(len(pictures), -1) for axis, step in moves]
    return np.concatenate([pictures, *moved]), np.tile(digits, 1 + len(moves))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cost", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.05)
    parser.add_argument("--components", type=int, default=40)
    parser.add_argument("--kernel", choices=("rbf", "poly"), default="rbf")
    parser.add_argument("--shifts", type=flag, default=False)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", type=Path, default=os.environ.get("SM_CHANNEL_TEST"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    options = parser.parse_args()

    pictures, held_out, digits, expected = train_test_split(
        *read(options.train), test_size=0.25, random_state=options.seed
    )
    if options.shifts:
        pictures, digits = shifted(pictures, digits)
    model = make_pipeline(
        PCA(options.components, random_state=options.seed),
        SVC(C=options.cost, gamma=options.gamma, kernel=options.kernel),
    )
    with threadpool_limits(2):  # more threads would not help matrices this small
        model.fit(pictures, digits)
        print(f"validation_accuracy={model.score(held_out, expected):.4f}")
        print(f"accuracy={model.score(*read(options.test)):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, options.model_dir / "model.joblib")


if __name__ == "__main__":
    main()
