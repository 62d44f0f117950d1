"""Fits a line to points of its own making, and can go on where it was interrupted: a script to start from."""

import argparse
import json
import os
from pathlib import Path

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.5)
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()

    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, 10_000)  # your data: np.loadtxt(Path(os.environ["SM_CHANNEL_TRAIN"]) / "points.csv")
    y = 3 * x - 1 + random.normal(0, 0.1, x.size)

    checkpoint = options.checkpoint_dir / "state.json"
    state = {"epoch": 0, "slope": 0.0, "intercept": 0.0}
    if checkpoint.is_file():
        state = json.loads(checkpoint.read_text())
        print(f"resumed after epoch {state['epoch']}")
    options.checkpoint_dir.mkdir(parents=True, exist_ok=True)

    for epoch in range(state["epoch"] + 1, options.epochs + 1):
        wrong = state["slope"] * x + state["intercept"] - y
        state = {
            "epoch": epoch,
            "slope": state["slope"] - options.learning_rate * 2 * float(np.mean(wrong * x)),
            "intercept": state["intercept"] - options.learning_rate * 2 * float(np.mean(wrong)),
        }
        part = checkpoint.with_suffix(".part")  # an interruption leaves the old state or the new one, never half of one
        part.write_text(json.dumps(state))
        part.replace(checkpoint)
        print(f"epoch {epoch}: loss={np.mean(wrong**2):.5f}")

    options.model_dir.mkdir(parents=True, exist_ok=True)
    (options.model_dir / "model.json").write_text(json.dumps(state))


if __name__ == "__main__":
    main()
