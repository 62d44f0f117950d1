"""Learns to read handwritten digits with LightGBM, and goes on from the last saved round where it was interrupted."""

import argparse
import os
from pathlib import Path

import lightgbm
import numpy as np


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return table[:, 1:] / 16, table[:, 0].astype(int)


class Checkpoints:
    """A callback that saves the model every few rounds, so that an interruption leaves the old one or the new one."""

    def __init__(self, path, every):
        self.path = path
        self.every = every
        path.parent.mkdir(parents=True, exist_ok=True)

    def last(self):
        """The saved model, or None."""
        return lightgbm.Booster(model_file=self.path) if self.path.is_file() else None

    def __call__(self, state):
        if state.model.current_iteration() % self.every == 0:
            part = self.path.with_suffix(".part")
            state.model.save_model(part)
            part.replace(self.path)


def train(options):
    """The model after ``rounds`` rounds, those before an interruption included."""
    pictures, digits = read(options.train)
    checkpoints = Checkpoints(options.checkpoint_dir / "model.txt", every=10)
    model = checkpoints.last()
    done = model.current_iteration() if model else 0
    if done:
        print(f"resumed: {done} rounds are done")
    settings = {
        "objective": "multiclass",
        "num_class": 10,
        "num_leaves": options.leaves,
        "learning_rate": options.learning_rate,
        "num_threads": len(os.sched_getaffinity(0)),
        "seed": 0,
        "deterministic": True,
        "verbose": -1,
    }
    if done < options.rounds:
        data = lightgbm.Dataset(pictures, digits, free_raw_data=False)
        rounds = options.rounds - done
        model = lightgbm.train(settings, data, rounds, init_model=model, callbacks=[checkpoints])
    return model


def place(variable, default):
    """A folder that SageMaker names, or a default for runs elsewhere."""
    return Path(os.environ.get(variable, default))


def main():
    data = Path(__file__).parents[2] / "quickstart" / "data"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--leaves", type=int, default=15)
    parser.add_argument("--learning_rate", type=float, default=0.2)
    parser.add_argument("--train", type=Path, default=place("SM_CHANNEL_TRAIN", data / "train"))
    parser.add_argument("--test", type=Path, default=place("SM_CHANNEL_TEST", data / "test"))
    parser.add_argument("--model-dir", type=Path, default=place("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=place("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()
    model = train(options)
    pictures, digits = read(options.test)
    print(f"accuracy={np.mean(model.predict(pictures).argmax(axis=1) == digits):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    model.save_model(options.model_dir / "model.txt")


if __name__ == "__main__":
    main()
