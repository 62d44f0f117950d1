"""Learns handwritten digits, enlarged to 64 x 64 pixels, with a network of one's choice; memory goes with the choice.

ResNet-18 and ResNet-50 (He et al. 2016) and MobileNetV2 (Sandler et al. 2018) are those of torchvision, layer for
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


class Inverted(nn.Module):
    """A block of MobileNetV2: wide in the middle, where each channel has a filter of its own."""

    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        middle = inputs * expand
        first = [convolution(inputs, middle, 1, act=nn.ReLU6)] if expand > 1 else []
        depthwise = convolution(middle, middle, 3, stride, groups=middle, act=nn.ReLU6)
        self.path = nn.Sequential(*first, depthwise, convolution(middle, outputs, 1, act=None))
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


def mobilenet_v2():
    """MobileNetV2 of width 1."""
    layers, inputs = [convolution(3, 32, 3, 2, act=nn.ReLU6)], 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expand, outputs, depth, stride in stages:
        for block in range(depth):
            layers.append(Inverted(inputs, outputs, stride if not block else 1, expand))
            inputs = outputs
    layers += [convolution(320, 1280, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(1280, 10))


MODELS = {
    "resnet18": lambda: resnet((2, 2, 2, 2), expand=False),
    "resnet50": lambda: resnet((3, 4, 6, 3), expand=True),
    "mobilenet_v2": mobilenet_v2,
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
        print(f"values={max(len(part.weight[0].unique()) for part in convolutions)} of a filter's weights at most")


def digits(folder, size):
    """Pictures of three alike channels (values from 0 to 1), and labels."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    pictures = torch.tensor(table[:, 1:] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    enlarged = nn.functional.interpolate(pictures, (size, size), mode="bilinear")
    return enlarged.expand(-1, 3, -1, -1), torch.tensor(table[:, 0], dtype=torch.long)


def fit(model, pictures, labels, options, steps):
    """Train for some steps, each with pictures that are drawn at random."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    model.train()
    for _ in range(steps):
        rows = torch.randint(len(labels), (options.batch_size,))
        loss = nn.functional.cross_entropy(model(pictures[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(MODELS), default="mobilenet_v2")
    parser.add_argument("--fine_tune", choices=["no", "prune", "quantize"], default="no")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--image_size", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = MODELS[options.model]()
    print(f"{options.model}: {sum(parameter.numel() for parameter in model.parameters())} parameters")
    data = digits(os.environ["SM_CHANNEL_TRAIN"], options.image_size)
    fit(model, *data, options, options.steps)
    if options.fine_tune != "no":
        convolutions = shrink(model, options.fine_tune)
        fit(model, *data, options, options.steps)
        settle(convolutions, options.fine_tune)
    model.train()  # so few steps do not settle the running means, so the test normalizes by batch, too
    pictures, labels = digits(os.environ["SM_CHANNEL_TEST"], options.image_size)
    with torch.no_grad():
        right = [model(part).argmax(1) == names for part, names in zip(pictures.split(90), labels.split(90))]
    print(f"accuracy={torch.cat(right).float().mean():.4f}")
    torch.save(model.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")


if __name__ == "__main__":
    main()
