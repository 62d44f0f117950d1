"""The detectors and segmenters that trace_heads.py traces: how each is built, and how its loss is computed.

Everything is built without weights. Shapes are those of the published configurations; where a library has them as its
defaults, or in a file of its own, they are taken from there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

CLASSES, ADE, VOC = 80, 150, 21  # of COCO, ADE20K and PASCAL VOC
REGIONS = 512  # that two-stage detectors sample of each image, a quarter of them objects
# Boxes of an image, and of about the fullest mosaic of an epoch, to which YOLO's loss pads its batch. An image of COCO
# has 7.3 in the mean and 93 at most; four of them together have more than 120 a few times in an epoch, before the cut.
# YOLOv5 pads nothing: its loss sees the boxes of a whole batch, about 44 for each of 16 mosaics in the fullest batch of
# an epoch. It trains on three places of a box for each anchor that fits (4.27 of nine, as its own check of anchors
# says of COCO), and makes a mask of each.
BOXES = {"coco": 12, "mosaic": 120}
MASKS = round(44 * 3 * 4.27)


@dataclass(frozen=True)
class Head:
    """A detector or segmenter: how it is built and how its loss is computed, both on the meta device."""

    name: str
    library: str
    task: Literal["detection", "segmentation"]
    size: int
    build: Callable[[], Any]
    loss: Callable[[Any, Any], Any]
    names: tuple[str, ...] = ()  # of the Hub, and of other libraries' configurations
    averaged: bool = False  # the trainer keeps an average of the weights (EMA)
    classes: int = 0  # of a segmenter, which has a value for each of them and each pixel
    of: Callable[[int], Any] | None = None  # builds it with another number of classes
    least: int = 1  # images: a batch norm of one pixel needs two


def _segmenter(
    name: str,
    library: str,
    size: int,
    classes: int,
    build: Callable[[int], Any],
    loss: Callable[[Any, Any], Any],
    names: tuple[str, ...] = (),
) -> Head:
    least = 1 if name.startswith(("segformer", "fcn")) else 2
    full = partial(build, classes)
    return Head(name, library, "segmentation", size, full, loss, names, classes=classes, of=build, least=least)


# --- Ultralytics, and YOLOv5 as its authors published it --------------------------------------------------------------


def _yolo(file: str) -> Any:
    tasks = importlib.import_module("ultralytics.nn.tasks")
    torch = importlib.import_module("torch")
    kind = tasks.SegmentationModel if "-seg" in file else tasks.DetectionModel
    with torch.device("cpu"):
        model = kind(file, nc=CLASSES, verbose=False)  # its constructor runs an image to find strides
    model.strides = model.model[-1].stride
    model.args = importlib.import_module("types").SimpleNamespace(
        box=7.5, cls=0.5, dfl=1.5, overlap_mask=True, mask_ratio=4
    )
    return model


def _yolo_loss(model: Any, images: Any) -> Any:
    import torch

    batch, boxes = images.shape[0], BOXES["mosaic"]
    head = model.model[-1]
    strides, head.stride = head.stride, model.strides  # their values are read once
    criterion = model.init_criterion()
    head.stride = strides
    for each in [criterion, *(getattr(criterion, name, None) for name in ("one2many", "one2one"))]:
        if hasattr(each, "preprocess"):
            each.stride = strides
            each.preprocess = lambda *_, **__: torch.empty(batch, boxes, 5)
    targets = {
        "batch_idx": torch.empty(batch * boxes),
        "cls": torch.empty(batch * boxes),
        "bboxes": torch.empty(batch * boxes, 4),
        "masks": torch.empty(batch, images.shape[2] // 4, images.shape[3] // 4),
        "sem_masks": torch.empty(batch, images.shape[2] // 4, images.shape[3] // 4),
    }
    loss, _ = criterion(model(images), targets)
    return loss.sum()


def _yolov5(file: str, coefficients: int = 0) -> Any:
    """With three anchors of 85 values at each place, where Ultralytics' file has the head of YOLOv8.

    One that segments has ``coefficients`` more of each anchor, and makes as many prototypes of masks of its finest map.
    """
    import torch

    model = _yolo(file)
    head = model.model[-1]
    widths = [branch[0].conv.in_channels for branch in head.cv2]
    values = 5 + CLASSES + coefficients

    class Anchored(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.m = torch.nn.ModuleList(torch.nn.Conv2d(width, 3 * values, 1) for width in widths)
            if coefficients:
                block = importlib.import_module("ultralytics.nn.modules").Conv
                self.proto = torch.nn.Sequential(
                    block(widths[0], widths[0], k=3),
                    torch.nn.Upsample(scale_factor=2, mode="nearest"),
                    block(widths[0], widths[0], k=3),
                    block(widths[0], coefficients),
                )

        def forward(self, maps: list[Any]) -> list[Any]:
            out = [self.proto(maps[0])] if coefficients else []
            for convolution, each in zip(self.m, maps, strict=True):
                told = convolution(each)
                places = told.view(told.shape[0], 3, values, *told.shape[2:])
                out.append(places.permute(0, 1, 3, 4, 2).contiguous())
            return out

    anchored = Anchored()
    anchored.f, anchored.i, anchored.type, anchored.np = head.f, head.i, head.type, 0
    model.model[-1] = anchored
    return model


def _yolov5_loss(model: Any, images: Any) -> Any:
    """Objectness of every place; boxes and classes of the few that have an object are left out."""
    import torch

    told = model(images)
    objects = [torch.nn.functional.binary_cross_entropy_with_logits(t[..., 4], torch.zeros(t.shape[:-1])) for t in told]
    return sum(objects)


def _yolov5_masks_loss(model: Any, images: Any) -> Any:
    """That of `_yolov5_loss`, and of every trained place a mask as large as a prototype, image by image."""
    import torch

    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    prototypes, *told = model(images)
    total = sum(entropy(each[..., 4], torch.zeros(each.shape[:-1])) for each in told)
    kinds, height, width = prototypes.shape[1:]
    for of_map in told:
        masks = torch.empty(images.shape[0], MASKS // len(told), kinds) + of_map.flatten(1, 3)[:, :1, -kinds:]
        for prototype, chosen in zip(prototypes, masks, strict=True):
            drawn = (chosen @ prototype.view(kinds, -1)).view(-1, height, width)
            loss = entropy(drawn, torch.empty(drawn.shape), reduction="none")
            inside = torch.empty(drawn.shape, dtype=torch.bool)
            total = total + (loss * inside).mean()
    return total


def _ultralytics() -> Iterator[Head]:
    files: list[tuple[str, int]] = [("yolov3u", 640), ("yolov3-sppu", 640), ("yolov3-tinyu", 640)]
    files += [(f"yolov5{scale}u", 640) for scale in "nsmlx"] + [(f"yolov5{scale}6u", 1280) for scale in "nsmlx"]
    files += [(f"yolov6{scale}", 640) for scale in "nsmlx"]
    files += [(f"yolov8{scale}{task}", 640) for scale in "nsmlx" for task in ("", "-seg")]
    files += [(f"yolov9{scale}", 640) for scale in ("t", "s", "m", "c", "e", "c-seg", "e-seg")]
    files += [(f"yolov10{scale}", 640) for scale in "nsmblx"]
    files += [(f"yolo{v}{scale}{task}", 640) for v in (11, 12) for scale in "nsmlx" for task in ("", "-seg")]
    files += [(f"yolo26{scale}", 640) for scale in "nsmlx"]  # what its segmenters match depends on values throughout
    for name, size in files:
        file = name.removesuffix("u").replace("6u", "-p6")
        file = f"{name[:7]}-p6" if name.endswith("6u") else file
        yield Head(
            name=name,
            library="ultralytics",
            task="segmentation" if name.endswith("-seg") else "detection",
            size=size,
            build=lambda file=file: _yolo(f"{file}.yaml"),
            loss=_yolo_loss,
            averaged=True,
        )
    for scale in "nsmlx":
        for file, name, size in (
            (f"yolov5{scale}", f"yolov5{scale}", 640),
            (f"yolov5{scale}-p6", f"yolov5{scale}6", 1280),
        ):
            yield Head(
                name=name,
                library="yolov5",
                task="detection",
                size=size,
                build=lambda file=file: _yolov5(f"{file}.yaml"),
                loss=_yolov5_loss,
                averaged=True,
            )
        yield Head(
            name=f"yolov5{scale}-seg",
            library="yolov5",
            task="segmentation",
            size=640,
            build=lambda scale=scale: _yolov5(f"yolov5{scale}.yaml", 32),
            loss=_yolov5_masks_loss,
            averaged=True,
        )


# --- Hugging Face -----------------------------------------------------------------------------------------------------

_DECODERS = {"b0": 256, "b1": 256, "b2": 768, "b3": 768, "b4": 768, "b5": 768}
_MIT = {
    "b0": ([2, 2, 2, 2], [32, 64, 160, 256]),
    "b1": ([2, 2, 2, 2], [64, 128, 320, 512]),
    "b2": ([3, 4, 6, 3], [64, 128, 320, 512]),
    "b3": ([3, 4, 18, 3], [64, 128, 320, 512]),
    "b4": ([3, 8, 27, 3], [64, 128, 320, 512]),
    "b5": ([3, 6, 40, 3], [64, 128, 320, 512]),
}


def _segformer(size: str, decoder: int, classes: int) -> Any:
    hf = importlib.import_module("transformers")
    depths, widths = _MIT[size]
    config = hf.SegformerConfig(depths=depths, hidden_sizes=widths, decoder_hidden_size=decoder, num_labels=classes)
    return hf.SegformerForSemanticSegmentation(config)


def _segmenting(model: Any, images: Any) -> Any:
    import torch

    labels = torch.empty(images.shape[0], *images.shape[2:], dtype=torch.long)
    return model(pixel_values=images, labels=labels).loss


def _matching(model: Any, images: Any) -> Any:
    import torch

    boxes = BOXES["coco"]
    targets = [
        {"boxes": torch.empty(boxes, 4), "class_labels": torch.empty(boxes, dtype=torch.long)}
        for _ in range(images.shape[0])
    ]
    return model(pixel_values=images, labels=targets).loss


def _of_transformers(model: str, config: str, **fields: Any) -> Callable[[], Any]:
    def build() -> Any:
        hf = importlib.import_module("transformers")
        return getattr(hf, model)(getattr(hf, config)(**fields))

    return build


def _resnet(depth: int, **fields: Any) -> Any:
    hf = importlib.import_module("transformers")
    depths = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3]}[depth]
    small = depth < 50
    return hf.RTDetrResNetConfig(
        depths=depths,
        layer_type="basic" if small else "bottleneck",
        hidden_sizes=[64, 128, 256, 512] if small else [256, 512, 1024, 2048],
        out_features=["stage2", "stage3", "stage4"],
        **fields,
    )


def _rtdetr(depth: int, version: str) -> Callable[[], Any]:
    def build() -> Any:
        small = depth < 50
        fields: dict[str, Any] = {
            "backbone_config": _resnet(depth),
            "num_labels": CLASSES,
            "encoder_in_channels": [128, 256, 512] if small else [512, 1024, 2048],
            "decoder_layers": {18: 3, 34: 4}.get(depth, 6),
            "hidden_expansion": 0.5 if small else 1.0,
        }
        if depth == 101:
            fields |= {"encoder_hidden_dim": 384, "encoder_ffn_dim": 2048, "decoder_in_channels": [384] * 3}
        return _of_transformers(f"RTDetr{version}ForObjectDetection", f"RTDetr{version}Config", **fields)()

    return build


def _upernet(kind: str, depths: list[int], widths: list[int], **fields: Any) -> Callable[[int], Any]:
    def build(classes: int) -> Any:
        hf = importlib.import_module("transformers")
        stages = ["stage1", "stage2", "stage3", "stage4"]
        if kind == "swin":
            fields.update(embed_dim=widths[0], image_size=512)
        else:
            fields.update(hidden_sizes=widths)
        backbone = getattr(hf, f"{kind.capitalize().replace('next', 'Next')}Config")(
            depths=depths, out_features=stages, **fields
        )
        config = hf.UperNetConfig(
            backbone_config=backbone, num_labels=classes, auxiliary_in_channels=widths[2], use_auxiliary_head=True
        )
        return hf.UperNetForSemanticSegmentation(config)

    return build


def _hugging_face() -> Iterator[Head]:
    for size in _MIT:
        hub = (f"nvidia/segformer-{size}-finetuned-ade-512-512", f"nvidia/mit-{size}")
        for name, library, names, decoder in (
            (f"segformer-{size}", "transformers", hub, _DECODERS[size]),
            (f"segformer_mit-{size}", "mmsegmentation", (), 256),
        ):
            yield _segmenter(name, library, 512, ADE, partial(_segformer, size, decoder), _segmenting, names)
    for size, width, heads_, layers in (("tiny", 192, 3, 12), ("small", 384, 6, 12), ("base", 768, 12, 12)):
        build = _of_transformers(
            "YolosForObjectDetection",
            "YolosConfig",
            hidden_size=width,
            num_attention_heads=heads_,
            num_hidden_layers=layers,
            intermediate_size=4 * width,
            image_size=[800, 800],
            num_labels=CLASSES,
        )
        yield Head(f"yolos-{size}", "transformers", "detection", 800, build, _matching, (f"hustvl/yolos-{size}",))
    for depth in (50, 101):
        build = _of_transformers(
            "DetrForObjectDetection",
            "DetrConfig",
            num_labels=CLASSES,
            backbone_config=None,
            backbone=f"resnet{depth}",
            use_timm_backbone=True,
            use_pretrained_backbone=False,
        )
        hub = (f"facebook/detr-resnet-{depth}",)
        yield Head(f"detr-resnet-{depth}", "transformers", "detection", 800, build, _matching, hub)
    for name, model, hub in (
        ("conditional-detr-resnet-50", "ConditionalDetr", "microsoft/conditional-detr-resnet-50"),
        ("deformable-detr", "DeformableDetr", "SenseTime/deformable-detr"),
    ):
        build = _of_transformers(f"{model}ForObjectDetection", f"{model}Config", num_labels=CLASSES)
        yield Head(name, "transformers", "detection", 800, build, _matching, (hub,))
    for version, prefix in (("", "rtdetr"), ("V2", "rtdetr_v2")):
        for depth in (18, 34, 50, 101):
            name = f"{prefix}_r{depth}vd"
            yield Head(name, "transformers", "detection", 640, _rtdetr(depth, version), _matching, (f"PekingU/{name}",))
    for size, depths, widths in (
        ("tiny", [3, 3, 9, 3], [96, 192, 384, 768]),
        ("small", [3, 3, 27, 3], [96, 192, 384, 768]),
        ("base", [3, 3, 27, 3], [128, 256, 512, 1024]),
        ("large", [3, 3, 27, 3], [192, 384, 768, 1536]),
    ):
        name = f"upernet-convnext-{size}"
        build = _upernet("convnext", depths, widths)
        yield _segmenter(name, "transformers", 512, ADE, build, _segmenting, (f"openmmlab/{name}",))
    for size, depths, width, head_counts in (
        ("tiny", [2, 2, 6, 2], 96, [3, 6, 12, 24]),
        ("small", [2, 2, 18, 2], 96, [3, 6, 12, 24]),
        ("base", [2, 2, 18, 2], 128, [4, 8, 16, 32]),
        ("large", [2, 2, 18, 2], 192, [6, 12, 24, 48]),
    ):
        name = f"upernet-swin-{size}"
        build = _upernet("swin", depths, [width << i for i in range(4)], num_heads=head_counts, window_size=7)
        yield _segmenter(name, "transformers", 512, ADE, build, _segmenting, (f"openmmlab/{name}",))


# --- torchvision ------------------------------------------------------------------------------------------------------

_BACKBONES = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x4d")
_BACKBONES += ("resnext101_32x8d", "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2")


def _detector(name: str, size: int, *, pretrained: bool) -> Callable[[], Any]:
    """The first stages and all batch norms of a backbone that comes with weights are frozen, else nothing is."""

    def build() -> Any:
        import torch
        import torchvision

        detection, sizes = torchvision.models.detection, {"min_size": size, "max_size": size}
        sizes = {} if name.startswith("ssd") else sizes
        if not pretrained:
            return _ready(getattr(detection, name)(weights=None, weights_backbone=None, **sizes))
        load = torch.nn.Module.load_state_dict
        download = torchvision.models.WeightsEnum.get_state_dict
        torch.nn.Module.load_state_dict = lambda *_, **__: None
        torchvision.models.WeightsEnum.get_state_dict = lambda *_, **__: {}
        try:
            return _ready(getattr(detection, name)(weights=None, **sizes))
        finally:
            torch.nn.Module.load_state_dict = load
            torchvision.models.WeightsEnum.get_state_dict = download

    return build


def _ready(model: Any) -> Any:
    """Images have their size already, and what is no buffer is moved to the meta device here."""
    model.transform._skip_resize = True
    generator = getattr(model, "anchor_generator", None)
    if hasattr(generator, "_wh_pairs"):
        generator._wh_pairs = [pairs.to("meta") for pairs in generator._wh_pairs]
    return model


def _faster_rcnn(backbone: str, size: int) -> Callable[[], Any]:
    """As MMDetection has it: stem and first stage are frozen, batch norms compute with the averages that they have.

    Unlike torchvision's frozen ones they keep their input, as those of most libraries do.
    """

    def build() -> Any:
        resnet = importlib.import_module("torchvision.models.resnet")
        detection = importlib.import_module("torchvision.models.detection")
        torch = importlib.import_module("torch")
        if backbone == "resnext101_32x4d":
            body = resnet.ResNet(resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4)
        else:
            body = getattr(resnet, backbone)(weights=None)
        pyramid = detection.backbone_utils._resnet_fpn_extractor(body, 3)
        model = _ready(detection.FasterRCNN(pyramid, 91, min_size=size, max_size=size))
        for module in body.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.train = lambda _=True, module=module: module  # stays as `eval` leaves it
                module.training = False
        return model

    return build


# Width, layers and heads of attention; every fourth of the layers attends to the whole image.
_VITDET = {"base": (768, 12, 12), "large": (1024, 24, 16), "huge": (1280, 32, 16)}
_PATCH, _WINDOW, _PYRAMID = 16, 14, 256


def _vitdet(width: int, layers: int, heads_: int, size: int) -> Callable[[], Any]:
    """Mask R-CNN on a plain ViT as Detectron2 configures it (Li et al. 2022), in one precision for all parts.

    Attention adds a position bias to its scores, so no fused kernel computes it. Of its layers a quarter sees the whole
    image, the others windows; nothing is frozen. RPN and heads have the convolutions and layer norms of its
    configuration.
    """

    def build() -> Any:
        return _ready(_mask_rcnn(width, layers, heads_, size))

    return build


def _mask_rcnn(width: int, layers: int, heads_: int, size: int) -> Any:
    import torch
    import torchvision
    from torch import nn

    side = size // _PATCH
    detection = torchvision.models.detection

    class Attention(nn.Module):
        def __init__(self, places: int) -> None:
            super().__init__()
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.rows, self.columns = (nn.Parameter(torch.zeros(2 * places - 1, width // heads_)) for _ in range(2))

        def forward(self, x: Any) -> Any:
            batch, high, wide, _ = x.shape
            query, key, value = self.qkv(x).reshape(batch, high * wide, 3, heads_, -1).permute(2, 0, 3, 1, 4).unbind(0)
            scores = (query * (width // heads_) ** -0.5) @ key.transpose(-2, -1)
            far = torch.arange(high)[:, None] - torch.arange(wide)[None, :] + high - 1
            places = query.reshape(batch, heads_, high, wide, -1)
            down = torch.einsum("nbhwc,hkc->nbhwk", places, self.rows[far])
            along = torch.einsum("nbhwc,wkc->nbhwk", places, self.columns[far])
            scores = scores.view(batch, heads_, high, wide, high, wide) + down[..., :, None] + along[..., None, :]
            scores = scores.view(batch, heads_, high * wide, high * wide).softmax(dim=-1)
            seen = (scores @ value).transpose(1, 2).reshape(batch, high, wide, width)
            return self.proj(seen)

    class Layer(nn.Module):
        def __init__(self, window: int) -> None:
            super().__init__()
            self.window = window
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention(window or side)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            seen = self.before(x)
            if self.window:
                batch, windows = len(x), -(-side // self.window)
                more = windows * self.window - side
                seen = nn.functional.pad(seen, (0, 0, 0, more, 0, more))
                seen = seen.view(batch, windows, self.window, windows, self.window, width).transpose(2, 3)
                seen = self.attention(seen.reshape(-1, self.window, self.window, width))
                seen = seen.view(batch, windows, windows, self.window, self.window, width).transpose(2, 3)
                seen = seen.reshape(batch, side + more, side + more, width)[:, :side, :side].contiguous()
            else:
                seen = self.attention(seen)
            x = x + seen
            return x + self.mlp(self.between(x))

    class Norm(nn.Module):
        """A layer norm over channels, in steps as Detectron2 has it."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

        def forward(self, x: Any) -> Any:
            mean = x.mean(1, keepdim=True)
            spread = (x - mean).pow(2).mean(1, keepdim=True)
            x = (x - mean) / torch.sqrt(spread + 1e-6)
            return self.weight[:, None, None] * x + self.bias[:, None, None]

    def up(channels: int) -> Any:
        return nn.ConvTranspose2d(channels, channels // 2, 2, stride=2)

    class Pyramid(nn.Module):
        out_channels = _PYRAMID

        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, _PATCH, stride=_PATCH)
            self.positions = nn.Parameter(torch.zeros(1, side, side, width))
            each = layers // 4
            self.layers = nn.ModuleList(Layer(_WINDOW if (at + 1) % each else 0) for at in range(layers))
            half = width // 2
            scales = [[up(width), Norm(half), nn.GELU(), up(half)], [up(width)], [], [nn.MaxPool2d(2)]]
            self.scales = nn.ModuleList(
                nn.Sequential(
                    *scale,
                    nn.Conv2d(channels, _PYRAMID, 1, bias=False),
                    Norm(_PYRAMID),
                    nn.Conv2d(_PYRAMID, _PYRAMID, 3, padding=1, bias=False),
                    Norm(_PYRAMID),
                )
                for scale, channels in zip(scales, (width // 4, half, width, width), strict=True)
            )

        def forward(self, images: Any) -> dict[str, Any]:
            x = self.patches(images).permute(0, 2, 3, 1) + self.positions
            for layer in self.layers:
                x = layer(x)
            x = x.permute(0, 3, 1, 2)
            maps = {str(at): scale(x) for at, scale in enumerate(self.scales)}
            return maps | {"pool": nn.functional.max_pool2d(maps["3"], 1, 2)}

    four = [_PYRAMID] * 4
    return detection.MaskRCNN(
        Pyramid(),
        min_size=size,
        max_size=size,
        rpn_anchor_generator=detection.rpn.AnchorGenerator(
            tuple((32 << at,) for at in range(5)), ((0.5, 1.0, 2.0),) * 5
        ),
        rpn_head=detection.rpn.RPNHead(_PYRAMID, 3, conv_depth=2),
        box_head=detection.faster_rcnn.FastRCNNConvFCHead((_PYRAMID, 7, 7), four, [1024], norm_layer=Norm),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(1024, CLASSES + 1),
        mask_head=detection.mask_rcnn.MaskRCNNHeads(_PYRAMID, four, 1, norm_layer=Norm),
        mask_predictor=detection.mask_rcnn.MaskRCNNPredictor(_PYRAMID, _PYRAMID, CLASSES + 1),
    )


def detecting(model: Any, images: Any) -> Any:
    """The loss of one of torchvision's detectors, with boxes, masks and key points."""
    import torch

    boxes, (height, width) = BOXES["coco"], images.shape[2:]
    targets = []
    for _ in range(images.shape[0]):
        target = {"boxes": torch.empty(boxes, 4), "labels": torch.empty(boxes, dtype=torch.long)}
        target["masks"] = torch.empty(boxes, height, width, dtype=torch.uint8)
        target["keypoints"] = torch.empty(boxes, 17, 3)
        targets.append(target)
    return sum(model(list(images), targets).values())


def _painting(model: Any, images: Any) -> Any:
    import torch

    labels = torch.empty(images.shape[0], *images.shape[2:], dtype=torch.long)
    out = model(images)
    loss = torch.nn.functional.cross_entropy(out["out"], labels)
    return loss + 0.5 * torch.nn.functional.cross_entropy(out["aux"], labels) if "aux" in out else loss


def _torchvision() -> Iterator[Head]:
    for name in (
        *("fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2", "fasterrcnn_mobilenet_v3_large_fpn"),
        *("maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2", "keypointrcnn_resnet50_fpn"),
        *("retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2", "fcos_resnet50_fpn"),
        "ssd300_vgg16",
    ):
        size = 300 if name.startswith("ssd") else 800
        tuned, scratch = (_detector(name, size, pretrained=yes) for yes in (True, False))
        yield Head(name, "torchvision", "detection", size, tuned, detecting)
        yield Head(f"{name}@scratch", "torchvision", "detection", size, scratch, detecting)
    for backbone in _BACKBONES:
        name = f"faster_rcnn_{backbone}"
        yield Head(name, "mmdetection", "detection", 800, _faster_rcnn(backbone, 800), detecting)
    for name, (width, layers, heads_) in _VITDET.items():
        backbone = f"vitdet_vit_{name}_patch{14 if name == 'huge' else 16}_224"
        build = _vitdet(width, layers, heads_, 1024)
        yield Head(f"vitdet_{name}", "detectron2", "detection", 1024, build, detecting, (backbone,))
    for name in ("deeplabv3_resnet50", "deeplabv3_resnet101", "deeplabv3_mobilenet_v3_large", "fcn_resnet50",
                 "fcn_resnet101", "lraspp_mobilenet_v3_large"):  # fmt: skip
        yield _segmenter(name, "torchvision", 520, VOC, partial(_of_torchvision, name), _painting)


def _of_torchvision(name: str, classes: int) -> Any:
    segmentation = importlib.import_module("torchvision.models.segmentation")
    aux = {} if name.startswith("lraspp") else {"aux_loss": True}
    return getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=classes, **aux)


def heads() -> Iterator[Head]:
    """All models of the table."""
    yield from _ultralytics()
    yield from _hugging_face()
    yield from _torchvision()
