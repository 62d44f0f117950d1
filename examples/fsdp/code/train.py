"""Learns to draw handwritten digits, pixel after pixel, with a model that is sharded over all ranks (FSDP2).

Each rank keeps its part of weights, gradients and optimizer states; a layer's weights are gathered while it computes
and given up again. `--sharding none` keeps all of it on every rank, for comparison. The model is made on the meta
device, and checkpoints are written in parts, so that no rank ever holds all of it.
"""

import argparse
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as distributed_checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

GREYS, PIXELS = 17, 64  # values of a pixel, and pixels of a picture
#: What the list of a checkpoint's tensors is made of.
PLAIN = {
    "pathlib.PosixPath",
    "pathlib._local.PosixPath",  # its name in Python 3.13
    "torch.Size",
    "torch.float32",
    "torch.serialization._get_layout",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.Metadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.metadata.StorageMeta",
    "torch.distributed.checkpoint.metadata.TensorProperties",
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
}


def say(text):
    """Prints a line in one piece. Without a buffer, as in SageMaker's images, print writes a text and its line feed
    apart, and ranks that share a log break each other's lines."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class PixelModel(nn.Module):
    """A decoder that predicts each pixel of a picture from those before it."""

    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(GREYS, width)
        self.positions = nn.Embedding(PIXELS, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, GREYS)

    def forward(self, pixels):
        length = pixels.shape[1]
        x = self.embed(pixels) + self.positions(torch.arange(length, device=pixels.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=pixels.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x).flatten(0, 1))


def own(parameter):
    """This rank's part of a parameter, which of one that is not sharded is all of it."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def initialise(model):
    """Give values to a model that was made on the meta device, or to this rank's part of it."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            nn.init.normal_(own(parameter), std=0.02)
        else:
            nn.init.constant_(own(parameter), 1.0 if name.endswith("weight") else 0.0)


def build(options, device):
    """The model as this rank has it, and what to call for a forward pass."""
    torch.manual_seed(dist.get_rank() if options.sharding == "full" else 0)  # parts differ, copies do not
    with torch.device("meta"):
        model = PixelModel(options.width, options.layers)
    if options.sharding == "full":
        for layer in model.layers:  # what is gathered at a time
            fully_shard(layer)
        fully_shard(model)  # embeddings, norm and head
    model.to_empty(device=device)
    initialise(model)
    return model, model if options.sharding == "full" else DistributedDataParallel(model)


class PlainUnpickler(pickle.Unpickler):
    """Refuses a pickle that names anything else: it could be a function to call."""

    def find_class(self, module, name):
        if f"{module}.{name}" not in PLAIN:
            raise pickle.UnpicklingError(f"a checkpoint must not name {module}.{name}")
        return super().find_class(module, name)


class PlainReader(distributed_checkpoint.FileSystemReader):
    """Loading a checkpoint must run no code, and torch's own reader unpickles `.metadata` whatever it names."""

    def read_metadata(self):
        with (self.path / ".metadata").open("rb") as file:
            return PlainUnpickler(file).load()


def pictures(folder, device):
    """All pictures in a folder as rows of 64 grey values."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    return torch.tensor(table[:, 1:], dtype=torch.long, device=device)


def train(model, forward, options, device):
    """Trains from the newest checkpoint, or from the start, to the last step."""
    rank, world = dist.get_rank(), dist.get_world_size()
    data = pictures(options.train, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    # Every rank writes files of its own name into this folder, and the hosts' folders share one S3 prefix.
    checkpoints = Path(os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    done = max((int(path.parent.name) for path in checkpoints.glob("*/.metadata")), default=0)
    if done:
        weights, moments = get_state_dict(model, optimizer)
        reader = PlainReader(checkpoints / str(done))
        distributed_checkpoint.load({"model": weights, "optimizer": moments["state"]}, storage_reader=reader)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        say(f"rank {rank} resumed after step {done}")
    for step in range(done, options.steps):
        chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(step))
        batch = data[chosen[rank : world * options.batch_size : world].to(device)]
        loss = nn.functional.cross_entropy(forward(batch[:, :-1]), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        if rank == 0:
            say(f"step {step + 1}: loss={loss.item() / world:.4f}")
        if (step + 1) % options.save_steps == 0 or step + 1 == options.steps:
            weights, moments = get_state_dict(model, optimizer)
            folder = checkpoints / str(step + 1)
            # Tensors alone: the settings beside "state" would be read back by unpickling.
            distributed_checkpoint.save({"model": weights, "optimizer": moments["state"]}, checkpoint_id=folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sharding", choices=["full", "none"], default="full")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--save_steps", type=int, default=4, help="steps from one checkpoint to the next")
    parser.add_argument("--batch_size", type=int, default=2, help="pictures of one rank")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"))
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    model, forward = build(options, device)
    kept, total = (sum(part(p).numel() for p in model.parameters()) for part in (own, lambda p: p))
    say(f"rank {dist.get_rank()} keeps {kept} of {total} parameters")
    train(model, forward, options, device)
    # In parts, as it is: dcp_to_torch_save of torch.distributed.checkpoint.format_utils makes one file of them.
    distributed_checkpoint.save(model.state_dict(), checkpoint_id=os.environ.get("SM_MODEL_DIR", "model"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # All is saved. Threads of gloo may outlive Python, and abort or hang its end (seen with torch 2.13 on CPUs).
    sys.stdout.flush()
    os._exit(0)
