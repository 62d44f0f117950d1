"""Learns handwritten digits from enlarged pictures that worker processes of the DataLoader make.

A worker holds Python and torch once more, and the batches that it has ready wait in shared memory: `workers x
prefetch_factor` of them. Workers are spawned and not forked: a process with threads, such as those of OpenMP or CUDA,
cannot be forked safely.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import multiprocessing, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, default_collate

SIZE, PATCH = 224, 32  # pixels on a side of an enlarged picture, and of one of its 49 patches
WIDTH = 64


class Enlarged(Dataset):
    """Pictures of 3 x 224 x 224 values, each made when it is asked for."""

    def __init__(self, folder):
        paths = sorted(Path(folder).glob("*.csv.gz"))
        table = np.concatenate([np.loadtxt(path, delimiter=",", dtype=np.float32) for path in paths])
        self.pictures, self.labels = table[:, 1:].reshape(-1, 8, 8) / 16, table[:, 0].astype(int)
        self.made = multiprocessing.get_context("spawn").Value("l", 0)  # by all workers together

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        with self.made.get_lock():
            self.made.value += 1
        grey = self.pictures[index].repeat(SIZE // 8, axis=0).repeat(SIZE // 8, axis=1)
        return torch.from_numpy(np.broadcast_to(grey, (3, SIZE, SIZE)).copy()), int(self.labels[index])


def together(samples):
    """A batch whose labels are a list, which needs no shared memory.

    A tensor of labels would get its shared memory where torch sends the batch, and where that fails, torch drops the
    batch without telling anybody: the training waits for it for ever. The pictures get theirs here, where a failure
    is passed on and ends the training.
    """
    pictures, labels = zip(*samples, strict=True)
    return default_collate(pictures), list(labels)


class Patches(nn.Module):
    """A vision transformer (Dosovitskiy et al. 2021) of four layers."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.positions = nn.Parameter(torch.randn((SIZE // PATCH) ** 2, WIDTH) / WIDTH**0.5)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear((SIZE // PATCH) ** 2 * WIDTH, 10)

    def forward(self, pictures):
        patches = self.embed(pictures).flatten(2).transpose(1, 2)
        return self.head(self.layers(patches + self.positions).flatten(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=44)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--num_workers", type=int, default=2)
    parser.add_argument("--prefetch_factor", type=int, default=16, help="batches that each worker has ready")
    parser.add_argument("--sharing", choices=["file_descriptor", "file_system"], default="file_descriptor")
    options = parser.parse_args()
    torch.manual_seed(0)
    # How workers pass tensors on. Both lie in /dev/shm; file_system needs no open file for each of them, and leaves
    # files behind when a process is killed.
    multiprocessing.set_sharing_strategy(options.sharing)
    data = Enlarged(os.environ["SM_CHANNEL_TRAIN"])
    order = RandomSampler(data, num_samples=options.steps * options.batch_size)
    workers = {"prefetch_factor": options.prefetch_factor, "multiprocessing_context": "spawn"}
    loader = DataLoader(
        data,
        options.batch_size,
        sampler=order,
        collate_fn=together,
        num_workers=options.num_workers,
        **(workers if options.num_workers else {}),
    )
    model = Patches()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = iter(loader)  # the workers begin
    # As much is read ahead as ever will be. Where a step takes longer than a batch, as usual on a GPU, that is so soon
    # in any case; here it would depend on how busy the machine is.
    ahead = min(options.num_workers * options.prefetch_factor, options.steps) * options.batch_size
    while data.made.value < ahead:
        time.sleep(0.1)
    for step, (pictures, labels) in enumerate(batches, 1):
        loss = nn.functional.cross_entropy(model(pictures), torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"step {step}: loss={loss.item():.4f}")
    torch.save(model.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")


if __name__ == "__main__":
    main()
