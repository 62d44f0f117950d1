"""Learns handwritten digits from shards that SageMaker has dealt out to the hosts.

The channel `train` is ShardedByS3Key: each host has some of the files. The channel `all` is FullyReplicated: each has
every file. Before it trains, the job proves that the parts are disjoint and that together they are all of it.
"""

import argparse
import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def say(text):
    """Prints a line in one piece. Without a buffer, as in SageMaker's images, print writes a text and its line feed
    apart, and ranks that share a log break each other's lines."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def shards(folder):
    """The shards in a folder by name, each with the digest of what is in it."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path(folder).glob("*.csv.gz"))}


def prove(own, everything):
    """Raise SystemExit unless the hosts' parts are disjoint and together everything."""
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, own)
    together = [item for part in parts for item in part.items()]
    if len(together) != len(set(together)):
        raise SystemExit("two hosts have the same shard: set distribution: ShardedByS3Key on the channel train")
    if dict(together) != everything:
        raise SystemExit("the hosts' shards are not all of the data")
    say(f"parts={len(parts)}: {' + '.join(str(len(part)) for part in parts)} shards, disjoint, all {len(everything)}")


def digits(folder):
    """Pictures as rows of 64 values from 0 to 1, and labels."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    return torch.tensor(table[:, 1:] / 16, dtype=torch.float32), torch.tensor(table[:, 0], dtype=torch.long)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=32, help="pictures of one rank")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank, host = dist.get_rank(), os.environ["SM_CURRENT_HOST"]
    own = shards(os.environ["SM_CHANNEL_TRAIN"])
    say(f"{host} has {', '.join(own)}")
    prove(own, shards(os.environ["SM_CHANNEL_ALL"]))
    pictures, labels = digits(os.environ["SM_CHANNEL_TRAIN"])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(options.epochs):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        with wrapped.join():  # parts differ in size: who is done first answers the others until they are, too
            for rows in order.split(options.batch_size):
                loss = nn.functional.cross_entropy(wrapped(pictures[rows]), labels[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    if rank == 0:
        test, names = digits(os.environ["SM_CHANNEL_TEST"])
        say(f"accuracy={(model(test).argmax(1) == names).float().mean():.4f}")
        torch.save(model.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # All is saved. Threads of gloo may outlive Python, and abort or hang its end (seen with torch 2.13 on CPUs).
    sys.stdout.flush()
    os._exit(0)
