"""Learns from the features of a visit whether it ends with a purchase."""

import os
from pathlib import Path

import joblib
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def rows(channel):
    """Features and outcomes of a channel: all parts that Spark wrote, without the number of the visit."""
    folder = Path(os.environ[f"SM_CHANNEL_{channel.upper()}"])
    parts = [np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2) for path in sorted(folder.glob("*.csv"))]
    table = np.concatenate(parts)
    return table[:, 2:], table[:, 1].astype(int)


def main():
    """Fit, judge, save."""
    features, bought = rows("train")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=200))
    model.fit(features, bought)
    test_features, test_bought = rows("test")
    score = roc_auc_score(test_bought, model.predict_proba(test_features)[:, 1])
    print(f"train_rows={len(bought)} test_rows={len(test_bought)}")
    print(f"auc={score:.4f}")
    joblib.dump(model, Path(os.environ["SM_MODEL_DIR"]) / "model.joblib")


if __name__ == "__main__":
    main()
