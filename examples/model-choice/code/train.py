"""Learns handwritten digits, enlarged to 64 x 64 pixels, with a network of one's choice; memory goes with the choice.

ResNet-18 and ResNet-50 (He et al. 2016) and MobileNetV3-Small (Howard et al. 2019) are those of torchvision, layer for
layer. `--fine_tune` goes on with a model that will be served smaller: `prune` keeps half of the weights of all
convolutions at zero, `quantize` lets them have 255 values only. Both cost memory while they train.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize, prune


def convolution(inputs, outputs, kernel, stride=1, groups=1, act=nn.ReLU):
    """A convolution with its normalization, and an activation unless there is to be none."""
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)]
    layers += [nn.BatchNorm2d(outputs), *([act(inplace=True)] if act else [])]
    return nn.Sequential(*layers)


class Residual(nn.Module):
    """A block of ResNet: of two convolutions, or with `expand` of three around a narrow middle."""

    def __init__(self, inputs, width, stride, expand):
        super().__init__()
        outputs = 4 * width if expand else width
        path = [convolution(width, width, 3, stride) if expand else convolution(inputs, width, 3, stride)]
        path = [convolution(inputs, width, 1), *path] if expand else path
        self.path = nn.Sequential(*path, convolution(width, outputs, 1 if expand else 3, act=None))
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else convolution(inputs, outputs, 1, stride, act=None)

    def forward(self, x):
        return torch.relu(self.path(x) + self.short(x))


class Attention(nn.Module):
    """Squeeze and excitation: a weight for each channel, from the mean of all of them."""

    def __init__(self, channels):
        super().__init__()
        narrow = max(8, (channels // 4 + 4) // 8 * 8)  # the multiple of eight that is nearest to a quarter
        layers = nn.Conv2d(channels, narrow, 1), nn.ReLU(), nn.Conv2d(narrow, channels, 1), nn.Hardsigmoid()
        self.weights = nn.Sequential(nn.AdaptiveAvgPool2d(1), *layers)

    def forward(self, x):
        return x * self.weights(x)


class Inverted(nn.Module):
    """A block of MobileNetV3: wide in the middle, where each channel has a filter of its own."""

    def __init__(self, inputs, kernel, middle, outputs, attends, act, stride):
        super().__init__()
        layers = [convolution(inputs, middle, 1, act=act)] if middle > inputs else []
        layers += [convolution(middle, middle, kernel, stride, groups=middle, act=act)]
        layers += [Attention(middle)] if attends else []
        self.path = nn.Sequential(*layers, convolution(middle, outputs, 1, act=None))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.path(x) if self.adds else self.path(x)


def resnet(depths, expand):
    """ResNet with `depths` blocks in each of its four stages."""
    layers, inputs = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for block in range(depth):
            layers.append(Residual(inputs, width, 2 if stage and not block else 1, expand))
            inputs = 4 * width if expand else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def mobilenet_v3_small():
    """MobileNetV3-Small of width 1."""
    blocks = [
        Inverted(16, 3, 16, 16, True, nn.ReLU, 2),
        Inverted(16, 3, 72, 24, False, nn.ReLU, 2),
        Inverted(24, 3, 88, 24, False, nn.ReLU, 1),
        Inverted(24, 5, 96, 40, True, nn.Hardswish, 2),
        Inverted(40, 5, 240, 40, True, nn.Hardswish, 1),
        Inverted(40, 5, 240, 40, True, nn.Hardswish, 1),
        Inverted(40, 5, 120, 48, True, nn.Hardswish, 1),
        Inverted(48, 5, 144, 48, True, nn.Hardswish, 1),
        Inverted(48, 5, 288, 96, True, nn.Hardswish, 2),
        Inverted(96, 5, 576, 96, True, nn.Hardswish, 1),
        Inverted(96, 5, 576, 96, True, nn.Hardswish, 1),
    ]
    body = [convolution(3, 16, 3, 2, act=nn.Hardswish), *blocks, convolution(96, 576, 1, act=nn.Hardswish)]
    head = nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, 10)
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *head)


MODELS = {
    "resnet18": lambda: resnet((2, 2, 2, 2), expand=False),
    "resnet50": lambda: resnet((3, 4, 6, 3), expand=True),
    "mobilenet_v3_small": mobilenet_v3_small,
}


class EightBit(nn.Module):
    """Weights as they will be in 8 bits, one scale for each filter; gradients pass as if nothing had been rounded."""

    def forward(self, weight):
        scale = weight.detach().abs().amax(dim=(1, 2, 3)).clamp(min=1e-8) / 127
        return torch.fake_quantize_per_channel_affine(weight, scale, torch.zeros_like(scale).int(), 0, -127, 127)


def shrink(model, how):
    """Train on with half of the weights, or with weights of 8 bits."""
    convolutions = [part for part in model.modules() if isinstance(part, nn.Conv2d)]
    if how == "prune":
        pairs = [(part, "weight") for part in convolutions]
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    elif how == "quantize":
        for part in convolutions:
            parametrize.register_parametrization(part, "weight", EightBit())
    return convolutions


def settle(convolutions, how):
    """Make what was trained for true for good, and say what it is."""
    if how == "prune":
        for part in convolutions:
            prune.remove(part, "weight")
        zeros = sum(int((part.weight == 0).sum()) for part in convolutions)
        print(f"zeros={zeros / sum(part.weight.numel() for part in convolutions):.3f} of the weights of convolutions")
    elif how == "quantize":
        for part in convolutions:
            parametrize.remove_parametrizations(part, "weight")
        most = max(len(one.unique()) for part in convolutions for one in part.weight)
        print(f"values={most} of a filter's weights at most")


def digits(folder, size):
    """Pictures of three alike channels (values from 0 to 1), and labels."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    pictures = torch.tensor(table[:, 1:] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    enlarged = nn.functional.interpolate(pictures, (size, size), mode="bilinear")
    return enlarged.expand(-1, 3, -1, -1), torch.tensor(table[:, 0], dtype=torch.long)


def fit(model, pictures, labels, options, device):
    """Train for some steps, each with pictures that are drawn at random."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(options.steps):
        rows = torch.randint(len(labels), (options.batch_size,))
        loss = nn.functional.cross_entropy(model(pictures[rows].to(device)), labels[rows].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(MODELS), default="mobilenet_v3_small")
    parser.add_argument("--fine_tune", choices=["no", "prune", "quantize"], default="no")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--image_size", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = MODELS[options.model]().to(device)
    print(f"{options.model}: {sum(parameter.numel() for parameter in model.parameters())} parameters")
    data = digits(os.environ["SM_CHANNEL_TRAIN"], options.image_size)
    fit(model, *data, options, device)
    if options.fine_tune != "no":
        convolutions = shrink(model, options.fine_tune)
        fit(model, *data, options, device)
        settle(convolutions, options.fine_tune)
    model.eval()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            # So few steps do not settle the running means, so the test normalizes by batch, too; without momentum it
            # leaves the saved statistics as they are.
            part.train()
            part.momentum = 0.0
    pictures, labels = digits(os.environ["SM_CHANNEL_TEST"], options.image_size)
    with torch.no_grad():
        named = torch.cat([model(part.to(device)).argmax(1).cpu() for part in pictures.split(90)])
    print(f"accuracy={(named == labels).float().mean():.4f}")
    torch.save(model.cpu().state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")


if __name__ == "__main__":
    main()
