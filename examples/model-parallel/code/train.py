"""Learns to draw handwritten digits with a decoder whose layers are split over the ranks of a host (tensor parallel).

Queries, keys, values and the first matrix of the MLP are split by columns, the matrices behind them by rows: each rank
computes some of the heads and some of the MLP's units, and one sum over the ranks ends each half of a layer
(Shoeybi et al. 2019, Megatron-LM). All ranks see the same batch. The sums are on the way of every layer, so the ranks
belong on one host, where GPUs have a fast connection.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as distributed_checkpoint
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

GREYS, PIXELS = 17, 64  # values of a pixel, and pixels of a picture
#: How the matrices of a layer are split.
PLAN = {
    "query": ColwiseParallel(),
    "key": ColwiseParallel(),
    "value": ColwiseParallel(),
    "out": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}


def say(text):
    """Prints a line in one piece. Without a buffer, as in SageMaker's images, print writes a text and its line feed
    apart, and ranks that share a log break each other's lines."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Layer(nn.Module):
    """A layer of a decoder. Split over ranks, its matrices are those of some heads and some units of the MLP."""

    def __init__(self, width, head_size):
        super().__init__()
        self.head_size = head_size
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        normal = self.attention_norm(x)
        heads = (
            matrix(normal).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for matrix in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.mlp_norm(x))))


class PixelModel(nn.Module):
    """A decoder that predicts each pixel of a picture from those before it."""

    def __init__(self, width, layers, head_size=64):
        super().__init__()
        self.embed, self.positions = nn.Embedding(GREYS, width), nn.Embedding(PIXELS, width)
        self.layers = nn.Sequential(*(Layer(width, head_size) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, GREYS)

    def forward(self, pixels):
        x = self.embed(pixels) + self.positions(torch.arange(pixels.shape[1], device=pixels.device))
        return self.head(self.norm(self.layers(x)).flatten(0, 1))


def split(model, mesh):
    """Give each rank of ``mesh`` its part of the layers; embeddings, norms and head are whole on all of them."""
    for layer in model.layers:
        parallelize_module(layer, mesh, PLAN)
    return model


def kept(model):
    """How many of its parameters this rank keeps."""
    parts = (part.to_local() if isinstance(part, DTensor) else part for part in model.parameters())
    return sum(part.numel() for part in parts)


def pictures(folder, device):
    """All pictures in a folder as rows of 64 grey values."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    return torch.tensor(table[:, 1:], dtype=torch.long, device=device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=16, help="pictures of a step, the same on all ranks")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"))
    options = parser.parse_args()
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(kind, int(os.environ["LOCAL_RANK"])) if kind == "cuda" else torch.device(kind)
    mesh = init_device_mesh(kind, (int(os.environ["WORLD_SIZE"]),))
    torch.manual_seed(0)  # the same values on all ranks, of which each keeps its part
    model = split(PixelModel(options.width, options.layers).to(device), mesh)
    say(f"rank {dist.get_rank()} keeps {kept(model)} of {sum(p.numel() for p in model.parameters())} parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)  # parts and whole parameters together
    data = pictures(options.train, device)
    for step in range(options.steps):
        chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(step))[: options.batch_size]
        batch = data[chosen.to(device)]
        loss = nn.functional.cross_entropy(model(batch[:, :-1]), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            say(f"step {step + 1}: loss={loss.item():.4f}")
    # In parts, as it is: dcp_to_torch_save of torch.distributed.checkpoint.format_utils makes one file of them.
    distributed_checkpoint.save(model.state_dict(), checkpoint_id=os.environ.get("SM_MODEL_DIR", "model"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # All is saved. Threads of gloo may outlive Python, and abort or hang its end (seen with torch 2.13 on CPUs).
    sys.stdout.flush()
    os._exit(0)
