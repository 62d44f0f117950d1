"""Learns to read handwritten digits in a container without a network, and records what the model was made of.

Everything that is imported is in the image, and all data is in the channels. A checkpoint holds what was learned so
far: an interrupted job goes on with the next round.
"""

import argparse
import hashlib
import json
import os
import platform
from pathlib import Path

import joblib
import numpy as np
import sklearn
from sklearn.linear_model import SGDClassifier

#: All that an SGDClassifier goes on from; the rest are settings.
LEARNED = ("coef_", "intercept_", "classes_", "n_features_in_", "n_iter_", "t_")


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return table[:, 1:] / 16, table[:, 0].astype(int)


def train(options):
    """A linear classifier after ``rounds`` rounds over the pictures, each in an order of its own."""
    pictures, digits = read(options.train)
    checkpoint = options.checkpoint_dir / "checkpoint.npz"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    model, done = SGDClassifier(loss="log_loss", random_state=options.seed), 0
    if checkpoint.is_file():
        with np.load(checkpoint, allow_pickle=False) as saved:  # plain arrays: loading a checkpoint must run no code
            done = int(saved["done"])
            for name in LEARNED:
                setattr(model, name, saved[name][()])
        print(f"resumed: {done} rounds are done")
    for step in range(done, options.rounds):
        order = np.random.default_rng([options.seed, step]).permutation(len(digits))
        model.partial_fit(pictures[order], digits[order], classes=range(10))
        part = checkpoint.with_suffix(".part")  # an interruption leaves the old checkpoint or the new one
        with part.open("wb") as file:
            np.savez(file, done=step + 1, **{name: getattr(model, name) for name in LEARNED})
        part.replace(checkpoint)
    return model


def provenance(options):
    """What an auditor asks for: every input by its digest, every version, every setting."""
    inputs = {
        f"{folder.name}/{path.relative_to(folder)}": hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in (options.train, options.test)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    return {"inputs": inputs, "versions": versions, "rounds": options.rounds, "seed": options.seed}


def place(variable, default):
    """A folder that SageMaker names, or a default for runs elsewhere."""
    return Path(os.environ.get(variable, default))


def main():
    data = Path(__file__).parents[2] / "quickstart" / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=Path, default=place("SM_CHANNEL_TRAIN", data / "train"))
    parser.add_argument("--test", type=Path, default=place("SM_CHANNEL_TEST", data / "test"))
    parser.add_argument("--model-dir", type=Path, default=place("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=place("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()
    model = train(options)
    pictures, digits = read(options.test)
    print(f"accuracy={model.score(pictures, digits):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, options.model_dir / "model.joblib")
    (options.model_dir / "provenance.json").write_text(json.dumps(provenance(options), indent=2) + "\n")


if __name__ == "__main__":
    main()
