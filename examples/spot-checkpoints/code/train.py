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


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return table[:, 1:] / 16, table[:, 0].astype(int)


def save(state, path):
    """Write a checkpoint beside the old one and put it in its place: an interruption leaves one of the two whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    joblib.dump(state, part)
    part.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each epoch")
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", type=Path, default=os.environ.get("SM_CHANNEL_TEST"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()

    checkpoint = options.checkpoint_dir / "state.joblib"
    state = {"model": SGDClassifier(alpha=1e-4, random_state=0), "epoch": 0, "starts": 0, "trained": 0}
    if checkpoint.is_file():
        state = joblib.load(checkpoint)
        print(f"resumed: {state['epoch']} epochs are done")
    state["starts"] += 1
    save(state, checkpoint)

    pictures, digits = read(options.train)
    for epoch in range(state["epoch"], options.epochs):
        order = np.random.default_rng(epoch).permutation(len(digits))
        for batch in np.array_split(order, 20):
            state["model"].partial_fit(pictures[batch], digits[batch], classes=range(10))
        time.sleep(options.pause)
        state["epoch"] = epoch + 1
        state["trained"] += 1
        save(state, checkpoint)
        print(f"epoch {epoch + 1} of {options.epochs}", flush=True)

    print(f"starts={state['starts']} epochs_trained={state['trained']}")
    print(f"accuracy={state['model'].score(*read(options.test)):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump(state["model"], options.model_dir / "model.joblib")


if __name__ == "__main__":
    main()
