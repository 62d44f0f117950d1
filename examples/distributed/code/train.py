"""Learns handwritten digits on all ranks of a job: each takes its part of every batch, and gradients are averaged.

Started by torchrun, one process for each GPU (on a host without GPUs, one). A batch of `world size x batch_size`
pictures is the same one whatever the number of ranks is, so the loss is, too.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WIDTH = 128


def say(text):
    """Prints a line in one piece. Without a buffer, as in SageMaker's images, print writes a text and its line feed
    apart, and ranks that share a log break each other's lines."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class RowReader(nn.Module):
    """A transformer that reads a picture of 8 x 8 pixels row by row."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, WIDTH)
        self.positions = nn.Parameter(torch.randn(8, WIDTH) / WIDTH**0.5)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8 * WIDTH, 10)

    def forward(self, pictures):
        return self.head(self.layers(self.embed(pictures) + self.positions).flatten(1))


def digits(folder):
    """Pictures (values from 0 to 1) and labels of all shards in a folder."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    pictures = torch.tensor(table[:, 1:] / 16, dtype=torch.float32).reshape(-1, 8, 8)
    return TensorDataset(pictures, torch.tensor(table[:, 0], dtype=torch.long))


def mean_over_ranks(value, device):
    """The mean over all ranks of what each of them has."""
    mean = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def save(path, content):
    """Writes a file so that an interruption leaves the old one or the new one, never half of one."""
    part = path.with_suffix(".part")
    torch.save(content, part)
    part.replace(path)


def train(model, options, checkpoints, device):
    """Trains from the checkpoint, or from the start, to the last epoch."""
    rank, world = dist.get_rank(), dist.get_world_size()
    data = digits(options.train)
    sampler = DistributedSampler(data, seed=options.seed, drop_last=True)  # every rank gets pictures of its own
    loader = DataLoader(data, options.batch_size, sampler=sampler, drop_last=True)
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first = 0
    # All hosts' checkpoints share one S3 prefix: a name must say whose a file is. The model is the same on all ranks,
    # so rank 0 alone writes it; what a rank has of its own, here its random numbers, has its number in the name.
    shared, own = checkpoints / "model.pt", checkpoints / f"rank-{rank}.pt"
    if shared.is_file():
        # Weights only: loading a checkpoint must run no code.
        state = torch.load(shared, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
        if own.is_file():  # not there for a rank that is new
            torch.set_rng_state(torch.load(own, weights_only=True))
        say(f"rank {rank} resumed: {first} epochs are done")
    for epoch in range(first, options.epochs):
        sampler.set_epoch(epoch)  # or every epoch has the order of the first
        losses = []
        for pictures, labels in loader:
            loss = nn.functional.cross_entropy(wrapped(pictures.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()  # averages the gradients of all ranks while it goes
            optimizer.step()
            losses.append(loss.item())
        loss = mean_over_ranks(sum(losses) / len(losses), device)
        if rank == 0:
            say(f"epoch {epoch + 1}: loss={loss:.6f}, {len(losses)} steps of {world} x {options.batch_size} pictures")
            save(shared, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1})
        save(own, torch.get_rng_state())


@torch.no_grad()
def accuracy(model, folder, device):
    """The share of test pictures that are named right, each rank having tested a part of them."""
    pictures, labels = digits(folder)[dist.get_rank() :: dist.get_world_size()]
    right = model(pictures.to(device)).argmax(1).cpu() == labels
    return mean_over_ranks(right.double().mean().item(), device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=32, help="pictures of one rank")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", default=os.environ.get("SM_CHANNEL_TEST"))
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    say(f"rank {dist.get_rank()} of {dist.get_world_size()} on {os.environ.get('SM_CURRENT_HOST', 'this machine')}")
    torch.manual_seed(options.seed)
    checkpoints = Path(os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    checkpoints.mkdir(parents=True, exist_ok=True)
    model = RowReader().to(device)
    train(model, options, checkpoints, device)
    right = accuracy(model.eval(), options.test, device)
    if dist.get_rank() == 0:
        say(f"accuracy={right:.4f}")
        folder = Path(os.environ.get("SM_MODEL_DIR", "model"))
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), folder / "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # All is saved. Threads of gloo may outlive Python, and abort or hang its end (seen with torch 2.13 on CPUs).
    sys.stdout.flush()
    os._exit(0)
