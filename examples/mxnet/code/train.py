"""Learns to read handwritten digits with Apache MXNet's Gluon, and goes on after the last epoch that was saved."""

import argparse
import os
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn


def read(folder):
    """Pictures (one channel, values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(str(path), delimiter=",") for path in sorted(folder.glob("*.csv.gz"))])
    return (table[:, 1:] / 16).reshape(-1, 1, 8, 8).astype("float32"), table[:, 0].astype("float32")


def network():
    """Two convolutions and a classifier."""
    layers = nn.HybridSequential()
    layers.add(nn.Conv2D(32, 3, padding=1, activation="relu"), nn.MaxPool2D())
    layers.add(nn.Conv2D(64, 3, padding=1, activation="relu"), nn.Flatten(), nn.Dense(10))
    return layers


def accuracy(layers, pictures, digits, device):
    """The share of digits that are read right."""
    found = layers(mx.nd.array(pictures, ctx=device)).argmax(axis=1).asnumpy()
    return float((found == digits).mean())


def train(options, device):
    """The network after ``epochs`` epochs, those before an interruption included."""
    pictures, digits = read(options.train)
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(pictures, digits), options.batch_size, shuffle=True)
    layers = network()
    layers.initialize(mx.init.Xavier(), ctx=device)
    layers(mx.nd.array(pictures[:1], ctx=device))  # shapes are known from here on
    # Loading a checkpoint must run no code. Trainer.load_states, which Adam would need, unpickles; SGD keeps no state.
    trainer = gluon.Trainer(layers.collect_params(), "sgd", {"learning_rate": options.learning_rate})
    saved = sorted(options.checkpoint_dir.glob("epoch-*.params"))
    if saved:
        layers.load_parameters(str(saved[-1]), ctx=device)
        print(f"resumed: {saved[-1].stem} is done")
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    options.checkpoint_dir.mkdir(parents=True, exist_ok=True)
    for epoch in range(len(saved) + 1, options.epochs + 1):
        np.random.seed(epoch)  # the order of the pictures, whatever came before
        total = 0.0
        for batch, labels in data:
            with autograd.record():
                loss = loss_of(layers(batch.as_in_context(device)), labels.as_in_context(device))
            loss.backward()
            trainer.step(len(labels))
            total += float(loss.sum().asscalar())
        name = options.checkpoint_dir / f"epoch-{epoch:03}"
        layers.save_parameters(f"{name}.part")
        Path(f"{name}.part").replace(f"{name}.params")  # an epoch with parameters is whole
        print(f"loss={total / len(digits):.4f}")
    return layers


def place(variable, default):
    """A folder that SageMaker names, or a default for runs elsewhere."""
    return Path(os.environ.get(variable, default))


def main():
    data = Path(__file__).parents[2] / "quickstart" / "data"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.5)
    parser.add_argument("--train", type=Path, default=place("SM_CHANNEL_TRAIN", data / "train"))
    parser.add_argument("--test", type=Path, default=place("SM_CHANNEL_TEST", data / "test"))
    parser.add_argument("--model-dir", type=Path, default=place("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=place("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()
    mx.random.seed(0)
    device = mx.gpu() if mx.context.num_gpus() else mx.cpu()
    layers = train(options, device)
    print(f"accuracy={accuracy(layers, *read(options.test), device):.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    layers.save_parameters(str(options.model_dir / "model.params"))


if __name__ == "__main__":
    main()
