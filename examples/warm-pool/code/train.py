"""Prepares features once, keeps them in the cache of the warm pool, and trains on them.

SageMaker gives the jobs of a warm pool a folder that stays on the instance from one to the next. Whoever comes first
fills it; a key of what the features depend on keeps others from taking the wrong ones.
"""

import argparse
import hashlib
import os
import tempfile
from pathlib import Path

import joblib
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier

FEATURES, GAMMA = 10000, 0.3
SHIFTS = [(down, right) for down in range(3) for right in range(3)]
CACHE = "SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"


def read(path):
    """Pictures (values from 0 to 1) and their digits, of one file."""
    table = np.loadtxt(path, delimiter=",")
    return table[:, 1:] / 16, table[:, 0].astype(int)


def moved(pictures, shift):
    """The pictures moved by up to a pixel, cut from what they are with an empty frame around them."""
    down, right = shift
    framed = np.pad(pictures.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    return framed[:, down : down + 8, right : right + 8].reshape(-1, 64)


def prepared(paths, expand):
    """Files with features and digits, one for each file of pictures and way to move them; made where there is none."""
    cache = Path(os.environ.get(CACHE) or tempfile.mkdtemp())
    made, files = 0, []
    for path in paths:
        for shift in SHIFTS:
            key = hashlib.sha256(path.read_bytes() + f"{shift} {FEATURES} {GAMMA}".encode()).hexdigest()[:16]
            target = cache / f"features-{key}.npz"
            if not target.is_file():
                pictures, digits = read(path)
                part = cache / f"{key}.part.npz"
                np.savez(part, features=expand(moved(pictures, shift)).astype("float32"), digits=digits)
                part.replace(target)
                made += 1
            files.append(target)
    print(f"features: prepared={made} found={len(files) - made}", flush=True)
    return files


def loaded(path):
    """Features and digits of one shard."""
    with np.load(path) as shard:
        return shard["features"], shard["digits"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in_memory", default="false", help="true keeps the features of all shards in memory")
    parser.add_argument("--alpha", type=float, default=1e-4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", type=Path, default=os.environ.get("SM_CHANNEL_TEST"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    options = parser.parse_args()

    sampler = RBFSampler(gamma=GAMMA, n_components=FEATURES, random_state=0).fit(np.zeros((1, 64)))
    files = prepared(sorted(options.train.glob("*.csv.gz")), sampler.transform)
    kept = [loaded(path) for path in files] if options.in_memory == "true" else None
    model = SGDClassifier(alpha=options.alpha, random_state=0)
    for epoch in range(options.epochs):
        for shard in kept or map(loaded, files):
            model.partial_fit(*shard, classes=range(10))
        print(f"epoch {epoch + 1} of {options.epochs}", flush=True)
    tests = [read(path) for path in sorted(options.test.glob("*.csv.gz"))]
    right = sum(int((model.predict(sampler.transform(pictures)) == digits).sum()) for pictures, digits in tests)
    print(f"accuracy={right / sum(len(digits) for _, digits in tests):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump((sampler, model), options.model_dir / "model.joblib")


if __name__ == "__main__":
    main()
