"""Learns handwritten digits with a small vision transformer, from files that are streamed or held in memory.

Every picture is moved by up to a pixel in each direction (nine for one) and enlarged, so that files of 60 KB become
12,933 samples of 81 KiB. Streaming reads shards in turn, expands pictures as they are needed, and shuffles through a
bounded buffer: its memory is that of a few batches, however much data there is. `--in_memory true` makes a list of all
samples first, as many scripts do, and trains from that.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

SIZE, PATCH = 144, 18  # pixels on a side of an enlarged picture, and of one of its 64 patches
WIDTH, HEADS, LAYERS = 96, 4, 2


def parsed(line):
    """Picture and label of a line of a shard: the label and 64 grey values from 0 to 16."""
    label, *values = tf.io.decode_csv(line, [0.0] * 65)
    return tf.reshape(tf.stack(values), (8, 8, 1)) / 16, tf.cast(label, tf.int32)


def moved(picture, label):
    """The picture moved in nine ways, each cut from the picture with an empty frame around it."""
    framed = tf.pad(picture, ((1, 1), (1, 1), (0, 0)))
    cuts = [framed[down : down + 8, right : right + 8] for down in range(3) for right in range(3)]
    return tf.data.Dataset.from_tensor_slices((tf.stack(cuts), tf.repeat(label, 9)))


def enlarged(picture, label):
    """What a camera would give."""
    return tf.image.resize(picture, (SIZE, SIZE)), label


def pictures(folder):
    """Pictures and labels of all shards in a folder, read as they are needed, four files in turn."""
    paths = sorted(str(path) for path in Path(folder).glob("*.csv.gz"))
    if not paths:
        raise SystemExit(f"no *.csv.gz in {folder}")
    files = tf.data.Dataset.from_tensor_slices(paths)
    return files.interleave(lambda path: tf.data.TextLineDataset(path, "GZIP"), cycle_length=4).map(parsed)


def held(stream):
    """The same samples out of a list that holds all of them."""
    samples = list(stream.as_numpy_iterator())
    print(f"holding {len(samples)} samples, {sum(picture.nbytes for picture, _ in samples) / 2**30:.2f} GiB")
    return tf.data.Dataset.from_generator(lambda: iter(samples), output_signature=stream.element_spec)


@keras.saving.register_keras_serializable("digits")
class Positions(keras.layers.Layer):
    """Adds a learned vector to each patch."""

    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:], initializer="random_normal", name="table")

    def call(self, patches):
        return patches + self.table


def transformer():
    """A vision transformer (Dosovitskiy et al. 2021) of two layers."""
    picture = keras.Input((SIZE, SIZE, 1))
    x = keras.layers.Conv2D(WIDTH, PATCH, strides=PATCH)(picture)
    x = Positions()(keras.layers.Reshape((-1, WIDTH))(x))
    for _ in range(LAYERS):
        normal = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(normal, normal)
        normal = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.Dense(WIDTH)(keras.layers.Dense(2 * WIDTH, activation="gelu")(normal))
    x = keras.layers.Flatten()(keras.layers.LayerNormalization()(x))
    return keras.Model(picture, keras.layers.Dense(10)(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=50, help="batches in an epoch")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--shuffle", type=int, default=512, help="samples in the shuffle buffer")
    parser.add_argument("--in_memory", choices=["true", "false"], default="false")
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", default=os.environ.get("SM_CHANNEL_TEST"))
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    train = pictures(options.train).flat_map(moved).map(enlarged, num_parallel_calls=2)
    if options.in_memory == "true":
        train = held(train)
    train = train.repeat().shuffle(options.shuffle, seed=0).batch(options.batch_size).prefetch(2)
    test = pictures(options.test).map(enlarged).repeat().batch(60)
    model = transformer()
    print(f"{model.count_params()} parameters")
    model.compile(
        keras.optimizers.AdamW(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,  # compiling takes longer than a training as short as this
    )
    # Saves after each epoch, and goes on from there when it finds what an earlier attempt saved.
    backup = keras.callbacks.BackupAndRestore(os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    model.fit(train, epochs=options.epochs, steps_per_epoch=options.steps, shuffle=False, verbose=2, callbacks=[backup])
    _, accuracy = model.evaluate(test, steps=6, verbose=0)
    print(f"accuracy={accuracy:.4f}")
    folder = Path(os.environ.get("SM_MODEL_DIR", "model"))
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")


if __name__ == "__main__":
    main()
