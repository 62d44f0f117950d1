"""Chooses the best of several scikit-learn pipelines by cross-validation, and fits it to all training data.

Each score is written to the checkpoint as soon as it is known: a search that is stopped goes on with the next fold.
"""

import argparse
import json
import os
from pathlib import Path

import joblib
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits


def pipelines(seed):
    """What is compared. Preparation is part of the pipeline, so that no fold sees what it is tested on."""
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.05, max_iter=500)),
        "neighbours": make_pipeline(PCA(30, random_state=seed), KNeighborsClassifier(3)),
        "rbf": make_pipeline(PCA(40, random_state=seed), SVC(C=10, gamma=0.06)),
    }


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return table[:, 1:] / 16, table[:, 0].astype(int)


class Scores:
    """Accuracies by pipeline and fold, kept in a file."""

    def __init__(self, path):
        self.path = path
        self.kept = json.loads(path.read_text()) if path.is_file() else {}
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, key, accuracy):
        self.kept[key] = accuracy
        part = self.path.with_suffix(".part")  # an interruption leaves the old scores or the new ones
        part.write_text(json.dumps(self.kept))
        part.replace(self.path)


def search(options, pictures, digits):
    """The mean accuracy of each pipeline over the folds."""
    scores = Scores(options.checkpoint_dir / "scores.json")
    if scores.kept:
        print(f"resumed: {len(scores.kept)} scores are there already")
    folds = list(StratifiedKFold(options.folds, shuffle=True, random_state=options.seed).split(pictures, digits))
    for name, pipeline in pipelines(options.seed).items():
        for number, (train, test) in enumerate(folds):
            key = f"{name} {number}"
            if key not in scores.kept:
                scores.add(key, pipeline.fit(pictures[train], digits[train]).score(pictures[test], digits[test]))
        mean = np.mean([scores.kept[f"{name} {number}"] for number in range(len(folds))])
        print(f"{name}: {mean:.4f} over {len(folds)} folds")
        yield name, mean


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", type=Path, default=os.environ.get("SM_CHANNEL_TEST"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()
    pictures, digits = read(options.train)
    with threadpool_limits(2):  # more threads would not help matrices this small
        means = dict(search(options, pictures, digits))
        best = max(means, key=means.get)
        print(f"best is {best}: cv_accuracy={means[best]:.4f}")
        model = pipelines(options.seed)[best].fit(pictures, digits)
    print(f"accuracy={model.score(*read(options.test)):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, options.model_dir / "model.joblib")


if __name__ == "__main__":
    main()
