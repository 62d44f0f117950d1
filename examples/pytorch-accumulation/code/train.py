"""Trains a small language model of bytes with gradient accumulation.

The optimizer sees `per_device_train_batch_size` x `gradient_accumulation_steps` windows of text at every step, and
memory holds the activations of `per_device_train_batch_size` of them. However the two share out their product, the
windows of a step, their gradient and the losses are the same, but for the rounding of sums in another order.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

BYTES = 256


class Decoder(nn.Module):
    """A transformer that predicts the next byte. Nothing in it depends on the other samples of a batch."""

    def __init__(self, layers, hidden, heads, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(BYTES, hidden), nn.Embedding(length, hidden)
        block = nn.TransformerEncoderLayer(
            hidden, heads, 4 * hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(hidden), enable_nested_tensor=False)
        self.head = nn.Linear(hidden, BYTES, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def forward(self, ids):
        length = ids.shape[1]
        states = self.tokens(ids) + self.positions.weight[:length]
        return self.head(self.blocks(states, mask=self.mask[:length, :length], is_causal=True))


def read(path, length):
    """Windows of text as rows of bytes, each one longer than the model reads: inputs and their successors."""
    text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    return text.unfold(0, length + 1, length)


def groups(windows, micro_batch, accumulation, epoch):
    """The windows of every optimizer step of an epoch, in micro-batches; the last group and its last one may be short.

    The order depends on the epoch alone, so that an attempt with other sizes goes on with the same steps.
    """
    order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(epoch))
    for indices in order.split(micro_batch * accumulation):
        yield [windows[part] for part in indices.split(micro_batch)]


def loss_of(model, windows, device):
    """The mean loss of all bytes of a micro-batch."""
    windows = windows.to(device, torch.long)
    scores = model(windows[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())


def step(model, optimizer, group, device):
    """One optimizer step from the gradients of all micro-batches of ``group``; gives the loss of the whole group."""
    samples = sum(len(windows) for windows in group)
    total = 0.0
    for windows in group:
        # Gradients add up, so each micro-batch counts by its share: 1 / len(group) where all are of one size.
        loss = loss_of(model, windows, device) * (len(windows) / samples)
        loss.backward()  # frees the activations of this micro-batch before the next one is computed
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # of the whole gradient: once, after the last micro-batch
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total


@torch.no_grad()
def evaluate(model, windows, micro_batch, device):
    """Mean loss over windows that were not trained on, in bits for each byte."""
    model.eval()
    total = sum(loss_of(model, part, device).item() * len(part) for part in windows.split(micro_batch))
    return total / len(windows) / torch.log(torch.tensor(2.0)).item()


def train(options):
    """Trains from the checkpoint, or from the start, to the last epoch; gives the model and the loss of every step."""
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Decoder(options.layers, options.hidden_size, options.heads, options.max_seq_length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    windows = read(options.train / "train.txt", options.max_seq_length)
    losses, checkpoint = [], options.checkpoint_dir / "checkpoint.pt"
    if checkpoint.is_file():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        losses = saved["losses"]
        print(f"resumed: {len(losses)} steps are done")
    done = len(losses)
    parts = options.per_device_train_batch_size, options.gradient_accumulation_steps
    plan = (group for epoch in range(options.num_train_epochs) for group in groups(windows, *parts, epoch))
    for number, group in enumerate(plan):
        if number < done:
            continue
        losses.append(step(model, optimizer, group, device))
        print(f"step={number + 1} micro_batches={len(group)} loss={losses[-1]:.4f}", flush=True)
        save(checkpoint, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses})
    held_out = read(options.train / "test.txt", options.max_seq_length)
    bits = evaluate(model, held_out, options.per_device_train_batch_size, device)
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
    parser.add_argument("--per_device_train_batch_size", type=int, default=32, help="windows of a micro-batch")
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1, help="micro-batches of a step")
    parser.add_argument("--max_seq_length", type=int, default=256, help="bytes of a window")
    parser.add_argument("--num_train_epochs", type=int, default=2)
    parser.add_argument("--learning_rate", type=float, default=3e-3)
    parser.add_argument("--layers", type=int, default=6)
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
