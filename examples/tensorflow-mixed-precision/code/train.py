"""Learns handwritten digits with Keras in mixed precision: layers compute in 16 bits, and weights stay in 32.

bfloat16 has the range of float32, so nothing else is needed. float16 has not: small gradients become zero, unless the
loss is multiplied by a factor first and gradients are divided by it, which `LossScaleOptimizer` does.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

WIDTH, HEADS = 128, 4
POLICIES = {"no": "float32", "bf16": "mixed_bfloat16", "fp16": "mixed_float16"}
MIB = 1024**2


def digits(folder):
    """Pictures as 8 rows of 8 pixels (values from 0 to 1), and labels."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    return (table[:, 1:] / 16).astype(np.float32).reshape(-1, 8, 8), table[:, 0].astype(np.int32)


def moved(pictures, labels):
    """Every picture moved by up to a pixel in each direction, nine for one, in a fixed order that looks random."""
    framed = np.pad(pictures, ((0, 0), (1, 1), (1, 1)))
    cuts = [framed[:, down : down + 8, right : right + 8] for down in range(3) for right in range(3)]
    order = np.random.default_rng(0).permutation(9 * len(labels))
    return np.concatenate(cuts)[order], np.tile(labels, 9)[order]


def transformer(layers):
    """A transformer that reads a picture row by row; its result is float32, for a softmax needs the digits."""
    picture = keras.Input((8, 8))
    x = keras.layers.Dense(WIDTH)(picture)
    for _ in range(layers):
        normal = keras.layers.LayerNormalization()(x)
        x = keras.layers.Add()([x, keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(normal, normal)])
        normal = keras.layers.LayerNormalization()(x)
        hidden = keras.layers.Dense(4 * WIDTH, activation="gelu")(normal)
        x = keras.layers.Add()([x, keras.layers.Dense(WIDTH)(hidden)])
    x = keras.layers.Flatten()(keras.layers.LayerNormalization()(x))
    return keras.Model(picture, keras.layers.Dense(10, kernel_initializer="zeros", dtype="float32")(x))


def show_activations(model, batch):
    """Print the type of what layers give and of the weights they keep, and the bytes of all outputs for one batch."""
    outputs = keras.Model(model.input, [layer.output for layer in model.layers])(batch)
    types = {}
    for layer, output in zip(model.layers, outputs, strict=True):
        types.setdefault(keras.backend.standardize_dtype(output.dtype), []).append(layer.name)
    for dtype, names in types.items():
        print(f"{dtype}: outputs of {len(names)} layers, among them {names[0]} and {names[-1]}")
    print(f"weights: {', '.join(sorted({weight.dtype for weight in model.weights}))}")
    size = sum(int(keras.ops.size(output)) * output.dtype.size for output in outputs)
    print(f"activations_mib={size / MIB:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mixed_precision", choices=list(POLICIES), default="no")
    parser.add_argument("--batch_size", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    keras.mixed_precision.set_global_policy(POLICIES[options.mixed_precision])
    pictures, labels = moved(*digits(os.environ["SM_CHANNEL_TRAIN"]))
    model = transformer(options.layers)
    print(f"{model.count_params()} parameters")
    show_activations(model, pictures[: options.batch_size])
    optimizer = keras.optimizers.AdamW(2e-3)
    if options.mixed_precision == "fp16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
    used = options.steps * options.batch_size
    model.fit(pictures[:used], labels[:used], options.batch_size, shuffle=False, verbose=2)
    test, names = digits(os.environ["SM_CHANNEL_TEST"])
    print(f"accuracy={model.evaluate(test, names, 128, verbose=0)[1]:.4f}")
    folder = Path(os.environ["SM_MODEL_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")


if __name__ == "__main__":
    main()
