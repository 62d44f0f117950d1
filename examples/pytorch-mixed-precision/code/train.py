"""Trains a small language model of bytes in fp32 or in mixed precision, and shows what mixed precision changes.

Mixed precision means autocast: weights, gradients and optimizer stay in fp32, and matrix products run in 16 bits. The
script prints the type that each kind of layer really puts out, and counts the bytes that are saved for backward.
"""

import argparse
import json
import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

BYTES = 256
MIB = 2**20


class Block(nn.Module):
    """A decoder layer. Norms and the sum that passes through all layers stay in fp32 under autocast."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.activation, self.down = nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        shape = (*x.shape[:2], self.heads, -1)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, dim=-1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(self.activation(self.up(self.norm_2(x))))


class Decoder(nn.Module):
    """A transformer that predicts the next byte."""

    def __init__(self, layers, hidden, heads, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(BYTES, hidden), nn.Embedding(length, hidden)
        self.blocks = nn.Sequential(*(Block(hidden, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, BYTES, bias=False)

    def forward(self, ids):
        states = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(states)))


class Precision:
    """Autocast in the type that was asked for, and a loss scaler where that type needs one."""

    def __init__(self, name, device):
        self.device = device
        if name == "fp16" and device.type != "cuda":
            raise SystemExit("fp16 is for GPUs: a CPU computes in bf16 or in fp32; set mixed_precision to bf16")
        if name == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
            print("this GPU does not compute in bf16: training in fp16 with a scaled loss")
            name = "fp16"
        self.dtype = {"no": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]
        # fp16 has 5 bits of exponent: gradients below 6e-8 become 0 unless the loss is scaled. bf16 has the 8 of fp32.
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.dtype is torch.float16)

    def autocast(self):
        """For the forward pass and the loss; backward runs in the types of the forward pass by itself."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not torch.float32)

    def step(self, loss, model, optimizer):
        """Backward and one optimizer step; with fp16 a step whose gradients overflow is left out, and the scale cut."""
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimizer)  # clipping has to see the true gradients
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad(set_to_none=True)


@contextmanager
def watched(model):
    """While it lasts: the types that each kind of layer puts out, and the bytes saved for backward by type."""
    types, saved = {}, {}
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def note(module, _inputs, output):
        types.setdefault(type(module).__name__, set()).add(str(output.dtype).removeprefix("torch."))

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:  # those are there anyway; a storage may be saved several times
            saved[storage.data_ptr()] = (str(tensor.dtype).removeprefix("torch."), storage.nbytes())
        return tensor.detach()  # without its place in the graph, which would otherwise keep itself alive

    hooks = [module.register_forward_hook(note) for module in model.modules() if not list(module.children())]
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            yield types, saved
    finally:
        for hook in hooks:
            hook.remove()


def read(path, length):
    """Windows of text as rows of bytes, each one longer than the model reads: inputs and their successors."""
    text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    return text.unfold(0, length + 1, length)


def loss_of(model, windows, precision):
    """The mean loss of all bytes of a batch."""
    windows = windows.to(precision.device, torch.long)
    with precision.autocast():
        scores = model(windows[:, :-1])
        # Sums over many values in 16 bits would lose the small ones: the loss is computed in fp32.
        return functional.cross_entropy(scores.float().flatten(0, 1), windows[:, 1:].flatten())


def show(model, batch, precision):
    """Prints types and saved bytes of one forward pass; gives the MiB saved."""
    with watched(model) as (types, saved):
        loss = loss_of(model, batch, precision)
    sizes = Counter()
    for dtype, size in saved.values():
        sizes[dtype] += size
    del loss
    for layer, found in sorted(types.items()):
        print(f"output of {layer}: {', '.join(sorted(found))}")
    for dtype, size in sizes.most_common():
        print(f"saved for backward in {dtype}: {size / MIB:.1f} MiB")
    total = sum(sizes.values()) / MIB
    print(f"saved_mib={total:.1f}")
    return total


def train(options):
    """Shows one forward pass, then trains; gives the model and what was found."""
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision = Precision(options.mixed_precision, device)
    model = Decoder(options.layers, options.hidden_size, options.heads, options.max_seq_length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    windows = read(options.train / "train.txt", options.max_seq_length)
    saved = show(model, windows[: options.batch_size], precision)
    losses = []
    for number in range(options.max_steps):
        order = torch.randint(len(windows), (options.batch_size,), generator=torch.Generator().manual_seed(number))
        loss = loss_of(model, windows[order], precision)
        precision.step(loss, model, optimizer)
        losses.append(loss.item())
        print(f"step={number + 1} loss={losses[-1]:.4f}", flush=True)
    print(f"weights stay in {str(model.head.weight.dtype).removeprefix('torch.')}")
    with torch.no_grad():
        held_out = read(options.train / "test.txt", options.max_seq_length).split(options.batch_size)
        mean = sum(loss_of(model, part, precision).item() * len(part) for part in held_out) / sum(map(len, held_out))
    bits = mean / torch.log(torch.tensor(2.0)).item()
    print(f"bits_per_byte={bits:.4f}")
    return model, {"losses": losses, "bits_per_byte": bits, "saved_mib": saved}


def place(variable, default):
    """A folder that SageMaker names, or a default for runs elsewhere."""
    return Path(os.environ.get(variable, default))


def main():
    data = Path(__file__).parents[2] / "data" / "handbook"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixed_precision", choices=["no", "bf16", "fp16"], default="bf16")
    parser.add_argument("--batch_size", type=int, default=16, help="windows of a step")
    parser.add_argument("--max_seq_length", type=int, default=256, help="bytes of a window")
    parser.add_argument("--max_steps", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=2e-3)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden_size", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=Path, default=place("SM_CHANNEL_TRAIN", data))
    parser.add_argument("--model-dir", type=Path, default=place("SM_MODEL_DIR", "model"))
    options = parser.parse_args()
    model, results = train(options)
    options.model_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.model_dir / "model.pt")
    (options.model_dir / "results.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
