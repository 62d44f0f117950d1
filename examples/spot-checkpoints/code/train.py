"""Trains a linear classifier epoch by epoch, each ending with a checkpoint of all that the next one depends on.

The order of the pictures comes from the number of the epoch. So a run that was interrupted makes the same model as one
that was not.
"""

import argparse
import os
import time
from pathlib import Path

import joblib
import numpy as np
from sklearn.linear_model import SGDClassifier

#: All that an SGDClassifier goes on from; the rest are settings.
LEARNED = ("coef_", "intercept_", "classes_", "n_features_in_", "n_iter_", "t_")


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return table[:, 1:] / 16, table[:, 0].astype(int)


def save(path, model, counts):
    """Write a checkpoint beside the old one and put it in its place: an interruption leaves one of the two whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    learned = {name: getattr(model, name) for name in LEARNED if hasattr(model, name)}  # none before the first epoch
    with part.open("wb") as file:
        np.savez(file, **counts, **learned)
    part.replace(path)


def restore(path, model):
    """Give the model what it had learned, and return the counts."""
    with np.load(path, allow_pickle=False) as saved:  # plain arrays: loading a checkpoint must run no code
        for name in set(LEARNED) & set(saved.files):
            setattr(model, name, saved[name][()])
        return {name: int(saved[name]) for name in ("epoch", "starts", "trained")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each epoch")
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", type=Path, default=os.environ.get("SM_CHANNEL_TEST"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()

    checkpoint = options.checkpoint_dir / "state.npz"
    model, counts = SGDClassifier(alpha=1e-4, random_state=0), {"epoch": 0, "starts": 0, "trained": 0}
    if checkpoint.is_file():
        counts = restore(checkpoint, model)
        print(f"resumed: {counts['epoch']} epochs are done")
    counts["starts"] += 1
    save(checkpoint, model, counts)

    pictures, digits = read(options.train)
    for epoch in range(counts["epoch"], options.epochs):
        order = np.random.default_rng(epoch).permutation(len(digits))
        for batch in np.array_split(order, 20):
            model.partial_fit(pictures[batch], digits[batch], classes=range(10))
        time.sleep(options.pause)
        counts["epoch"] = epoch + 1
        counts["trained"] += 1
        save(checkpoint, model, counts)
        print(f"epoch {epoch + 1} of {options.epochs}", flush=True)

    print(f"starts={counts['starts']} epochs_trained={counts['trained']}")
    print(f"accuracy={model.score(*read(options.test)):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, options.model_dir / "model.joblib")


if __name__ == "__main__":
    main()
