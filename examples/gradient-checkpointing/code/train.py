"""Trains a deep, narrow language model of bytes, with or without gradient checkpointing.

A layer keeps what its backward pass needs. With checkpointing it keeps its input alone, and computes the rest a second
time when its turn comes in the backward pass: about a third more work, the same gradients.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

BYTES = 256


class Decoder(nn.Module):
    """A transformer that predicts the next byte; ``checkpointing`` may be switched between two steps."""

    def __init__(self, layers, hidden, heads, length, *, checkpointing):
        super().__init__()
        self.checkpointing = checkpointing
        self.tokens, self.positions = nn.Embedding(BYTES, hidden), nn.Embedding(length, hidden)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                hidden, heads, 4 * hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, BYTES, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def forward(self, ids):
        length = ids.shape[1]
        states = self.tokens(ids) + self.positions.weight[:length]
        mask = self.mask[:length, :length]
        for block in self.blocks:
            if self.checkpointing and self.training:
                # use_reentrant=False: works with any arguments, and with inputs that need no gradient themselves.
                # Random numbers are drawn again as the first time (preserve_rng_state), so dropout stays the same.
                states = checkpoint(block, states, mask, is_causal=True, use_reentrant=False)
            else:
                states = block(states, mask, is_causal=True)
        return self.head(self.norm(states))


def read(path, length):
    """Windows of text as rows of bytes, each one longer than the model reads: inputs and their successors."""
    text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    return text.unfold(0, length + 1, length)


def loss_of(model, windows, device):
    """The mean loss of all bytes of a batch."""
    windows = windows.to(device, torch.long)
    scores = model(windows[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())


def batches(windows, size, epoch):
    """The batches of an epoch; their order depends on the epoch alone."""
    order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(epoch))
    return [windows[part] for part in order.split(size)]


def train(options):
    """Trains from the checkpoint, or from the start, to the last epoch; gives the model and the loss of every step."""
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Decoder(
        options.layers,
        options.hidden_size,
        options.heads,
        options.max_seq_length,
        checkpointing=options.gradient_checkpointing == "true",
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    windows = read(options.train / "train.txt", options.max_seq_length)
    losses, saved_at = [], options.checkpoint_dir / "checkpoint.pt"
    if saved_at.is_file():  # made by an attempt with or without checkpointing: the weights have the same names
        saved = torch.load(saved_at, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        losses = saved["losses"]
        print(f"resumed: {len(losses)} steps are done")
    plan = [batch for epoch in range(options.num_train_epochs) for batch in batches(windows, options.batch_size, epoch)]
    for number, batch in enumerate(plan[len(losses) : options.max_steps], len(losses) + 1):
        loss = loss_of(model, batch, device)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        print(f"step={number} loss={losses[-1]:.4f}", flush=True)
        save(saved_at, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses})
    model.eval()
    with torch.no_grad():
        held_out = read(options.train / "test.txt", options.max_seq_length).split(options.batch_size)
        mean = sum(loss_of(model, part, device).item() * len(part) for part in held_out) / sum(map(len, held_out))
    bits = mean / torch.log(torch.tensor(2.0)).item()
    print(f"bits_per_byte={bits:.4f}")
    return model, {"losses": losses, "bits_per_byte": bits}


def save(path, content):
    """Writes a file so that an interruption leaves the old one or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save(content, part)
    part.replace(path)


def place(variable, default):
    """A folder that SageMaker names, or a default for runs elsewhere."""
    return Path(os.environ.get(variable, default))


def main():
    data = Path(__file__).parents[2] / "data" / "handbook"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradient_checkpointing", choices=["true", "false"], default="false")
    parser.add_argument("--batch_size", type=int, default=12, help="windows of a step")
    parser.add_argument("--max_seq_length", type=int, default=256, help="bytes of a window")
    parser.add_argument("--num_train_epochs", type=int, default=1)
    parser.add_argument("--max_steps", type=int, default=None, help="end here, if the epochs have not ended before")
    parser.add_argument("--learning_rate", type=float, default=2e-3)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden_size", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=Path, default=place("SM_CHANNEL_TRAIN", data))
    parser.add_argument("--model-dir", type=Path, default=place("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint-dir", type=Path, default=place("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()
    model, results = train(options)
    options.model_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.model_dir / "model.pt")
    (options.model_dir / "results.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
