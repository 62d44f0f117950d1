"""Learns to read handwritten digits in a container without a network, and records what the model was made of.

Everything that is imported is in the image, and all data is in the channels. A checkpoint holds the trees so far: an
interrupted job goes on with the next ones.
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
from sklearn.ensemble import RandomForestClassifier

STEP = 20


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return table[:, 1:] / 16, table[:, 0].astype(int)


def train(options):
    """A forest of ``rounds`` trees, grown a few at a time."""
    pictures, digits = read(options.train)
    checkpoint = options.checkpoint_dir / "forest.joblib"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    forest = RandomForestClassifier(warm_start=True, n_estimators=0, random_state=options.seed)
    if checkpoint.is_file():
        forest = joblib.load(checkpoint)
        print(f"resumed: {forest.n_estimators} trees are grown")
    while forest.n_estimators < options.rounds:
        forest.n_estimators = min(forest.n_estimators + STEP, options.rounds)
        forest.fit(pictures, digits)
        part = checkpoint.with_suffix(".part")  # an interruption leaves the old checkpoint or the new one
        joblib.dump(forest, part)
        part.replace(checkpoint)
    return forest


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
    forest = train(options)
    pictures, digits = read(options.test)
    print(f"accuracy={forest.score(pictures, digits):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump(forest, options.model_dir / "model.joblib")
    (options.model_dir / "provenance.json").write_text(json.dumps(provenance(options), indent=2) + "\n")


if __name__ == "__main__":
    main()
