"""Learns handwritten digits from features that are kept on disk, because they would not fit into memory.

Every picture is moved by up to a pixel in each direction and expanded into random Fourier features, shard by shard.
The expansions are written to the training volume once and read again in every epoch; a full volume ends the job with
"No space left on device".
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier

MIB = 1024**2
SHIFTS = [(down, right) for down in range(3) for right in range(3)]


def read(paths):
    """Pictures (values from 0 to 1) and labels."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in paths])
    return table[:, 1:] / 16, table[:, 0].astype(int)


def moved(pictures):
    """Every picture moved in nine ways."""
    framed = np.pad(pictures.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    return np.concatenate([framed[:, down : down + 8, right : right + 8].reshape(-1, 64) for down, right in SHIFTS])


def expanded(paths, expansion, folder):
    """Writes the features of each shard to disk; returns the files, each with its labels."""
    shards, written = [], 0
    for path in paths:
        pictures, names = read([path])
        file = folder / f"{path.name}.npy"
        np.save(file, expansion.transform(moved(pictures)).astype(np.float32))
        shards.append((file, np.tile(names, len(SHIFTS))))
        written += file.stat().st_size
        print(f"{len(shards)} of {len(paths)} shards expanded, {written / MIB:.0f} MiB on disk", flush=True)
    return shards


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--features", type=int, default=3000, help="random Fourier features of a picture")
    options = parser.parse_args()
    expansion = RBFSampler(gamma=0.3, n_components=options.features, random_state=0).fit(np.zeros((1, 64)))
    classifier = SGDClassifier(alpha=1e-4, random_state=0)
    train = sorted(Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.csv.gz"))
    # Beside the model, below /opt/ml: that is the volume of the job, and /tmp may be another disk.
    with tempfile.TemporaryDirectory(dir=Path(os.environ["SM_MODEL_DIR"]).parent) as scratch:
        shards = expanded(train, expansion, Path(scratch))
        for _ in range(options.epochs):
            for file, names in shards:
                features = np.load(file)
                order = np.random.default_rng(0).permutation(len(names))
                for rows in np.array_split(order, 10):
                    classifier.partial_fit(features[rows], names[rows], classes=np.arange(10))
    pictures, names = read(sorted(Path(os.environ["SM_CHANNEL_TEST"]).glob("*.csv.gz")))
    print(f"accuracy={classifier.score(expansion.transform(pictures), names):.4f}")
    np.savez(Path(os.environ["SM_MODEL_DIR"]) / "classifier.npz", w=classifier.coef_, b=classifier.intercept_)


if __name__ == "__main__":
    main()
