"""Trains on compressed pictures that come as files or through a pipe: the same script in every data mode.

In File and FastFile mode a channel is a folder. In Pipe mode it is a row of named pipes, SM_CHANNEL_TRAIN with "_0",
"_1", ... for the first, second, ... pass over the data, and SageMaker has undone the compression.
"""

import argparse
import gzip
import itertools
import json
import os
from pathlib import Path

import joblib
import numpy as np
from sklearn.linear_model import SGDClassifier

BATCH = 64


def lines(channel, mode, epoch):
    """The lines of one pass over a channel, read as they are used."""
    if mode == "Pipe":
        with Path(f"{channel}_{epoch}").open("rb") as pipe:
            yield from pipe
        return
    for path in sorted(Path(channel).rglob("*.csv.gz")):
        with gzip.open(path) as file:
            yield from file


def batches(channel, mode, epoch):
    """Pictures (values from 0 to 1) and their digits."""
    stream = lines(channel, mode, epoch)
    while chunk := list(itertools.islice(stream, BATCH)):
        table = np.array([[float(cell) for cell in line.split(b",")] for line in chunk])
        yield table[:, 1:] / 16, table[:, 0].astype(int)


def bytes_on_volume(channel, volume):
    """How much of the channel lies on the instance's own volume; other modes show files of another file system."""
    files = [path for path in Path(channel).rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files if path.stat().st_dev == Path(volume).stat().st_dev)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", default=os.environ.get("SM_CHANNEL_TEST"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    options = parser.parse_args()
    mode = json.loads(os.environ.get("SM_INPUT_DATA_CONFIG", "{}")).get("train", {}).get("TrainingInputMode", "File")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    print(f"train: {mode}, bytes_on_volume={bytes_on_volume(options.train, options.model_dir)}")

    model = SGDClassifier(alpha=1e-4, random_state=0)
    for epoch in range(options.epochs):
        records = 0
        for pictures, digits in batches(options.train, mode, epoch):
            model.partial_fit(pictures, digits, classes=range(10))
            records += len(digits)
        print(f"epoch {epoch + 1} of {options.epochs}: records={records}", flush=True)
    right = [model.predict(pictures) == digits for pictures, digits in batches(options.test, "File", 0)]
    print(f"accuracy={np.concatenate(right).mean():.4f}")
    joblib.dump(model, options.model_dir / "model.joblib")


if __name__ == "__main__":
    main()
