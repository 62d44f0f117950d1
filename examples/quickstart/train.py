"""Learns to read handwritten digits, one shard of pictures at a time, and can go on where it was interrupted.

Every picture is moved by up to a pixel in each direction (nine for one) and expanded into random Fourier features,
on which a linear classifier behaves like one with an RBF kernel. The expansion of a shard is the same in every epoch.
`--cache true` therefore keeps it, as `.cache()` of tf.data does: less work, and memory that grows with every shard.
`--cache false` expands each shard again when its turn comes.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import joblib
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

MIB = 1024**2
DIGITS = np.arange(10)
SHIFTS = [(down, right) for down in range(3) for right in range(3)]
#: All that an SGDClassifier goes on from; the rest are settings.
LEARNED = ("coef_", "intercept_", "classes_", "n_features_in_", "n_iter_", "t_")


def read(*paths):
    """Pictures (values from 0 to 1) and labels of one shard, or of several."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in paths])
    return table[:, 1:] / 16, table[:, 0].astype(int)


def augment(pictures, labels):
    """Every picture moved in nine ways, each cut from the picture with an empty frame around it."""
    framed = np.pad(pictures.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    moved = [framed[:, down : down + 8, right : right + 8].reshape(-1, 64) for down, right in SHIFTS]
    return np.concatenate(moved), np.tile(labels, len(SHIFTS))


class Shards:
    """The training data, expanded; kept in memory if asked to."""

    def __init__(self, folder, expansion, keep):
        self.paths = sorted(Path(folder).glob("*.csv.gz"))
        if not self.paths:
            raise SystemExit(f"no *.csv.gz in {folder}")
        self.expansion = expansion
        self.keep = keep
        self.kept = {}

    def __len__(self):
        return len(self.paths)

    def load(self, number):
        """Features and labels of one shard."""
        if number in self.kept:
            return self.kept[number]
        pictures, labels = augment(*read(self.paths[number]))
        shard = self.expansion.transform(pictures), labels
        if self.keep:
            self.kept[number] = shard
        return shard

    @property
    def kept_mib(self):
        """What the kept features take."""
        return sum(features.nbytes for features, _ in self.kept.values()) / MIB


def save(path, classifier, done):
    """Writes a checkpoint so that an interruption leaves the old one or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, done=done, **{name: getattr(classifier, name) for name in LEARNED})
    part.replace(path)


def restore(path, classifier):
    """Gives the classifier what it had learned, and tells how many shards that were."""
    with np.load(path, allow_pickle=False) as saved:  # plain arrays: loading a checkpoint must run no code
        for name in LEARNED:
            setattr(classifier, name, saved[name][()])
        return int(saved["done"])


def train(options):
    """Trains from the checkpoint, or from the start, to the last epoch."""
    expansion = RBFSampler(gamma=options.gamma, n_components=options.features, random_state=0).fit(np.zeros((1, 64)))
    shards = Shards(options.train, expansion, options.cache == "true")
    test_pictures, test_labels = read(*sorted(options.test.glob("*.csv.gz")))
    checkpoint = options.checkpoint_dir / "checkpoint.npz"
    classifier, done = SGDClassifier(alpha=options.alpha, random_state=0), 0
    if checkpoint.is_file():
        done = restore(checkpoint, classifier)
        epoch, number = divmod(done, len(shards))
        print(f"resumed: {done} shards are done, next is epoch {epoch + 1} shard {number + 1}")
    for step in range(done, options.epochs * len(shards)):
        epoch, number = divmod(step, len(shards))
        features, labels = shards.load(number)
        order = np.random.default_rng(step).permutation(len(labels))
        for rows in np.array_split(order, 10):
            classifier.partial_fit(features[rows], labels[rows], classes=DIGITS)
        save(checkpoint, classifier, step + 1)
        print(f"epoch {epoch + 1} shard {number + 1} of {len(shards)}: kept {shards.kept_mib:.0f} MiB of features")
    model = make_pipeline(expansion, classifier)
    accuracy = model.score(test_pictures, test_labels)
    print(f"accuracy={accuracy:.4f}")
    return model, {"accuracy": accuracy, "test_pictures": len(test_labels), "epochs": options.epochs}


def place(variable, default):
    """A folder that SageMaker names, or a default for runs elsewhere."""
    return Path(os.environ.get(variable, default))


def main():
    data, scratch = Path(__file__).parent / "data", Path(tempfile.gettempdir()) / "sagefit-quickstart"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--cache", choices=["true", "false"], default="false", help="keep expanded shards in memory")
    parser.add_argument("--features", type=int, default=4500, help="random Fourier features of a picture")
    parser.add_argument("--gamma", type=float, default=0.3, help="inverse width of the RBF kernel")
    parser.add_argument("--alpha", type=float, default=1e-4, help="weight of the L2 penalty")
    parser.add_argument("--train", type=Path, default=place("SM_CHANNEL_TRAIN", data / "train"))
    parser.add_argument("--test", type=Path, default=place("SM_CHANNEL_TEST", data / "test"))
    parser.add_argument("--model-dir", type=Path, default=place("SM_MODEL_DIR", scratch / "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=place("SM_CHECKPOINT_DIR", scratch / "checkpoints"))
    options = parser.parse_args()
    with threadpool_limits(2):  # more threads would not help matrices this small
        model, metrics = train(options)
    options.model_dir.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, options.model_dir / "model.joblib")
    (options.model_dir / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")


if __name__ == "__main__":
    main()
