"""Vision models: hand-checked numbers, published runs, names, and what must never happen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy.runs import rows
from job_files import auto_job
from sagefit.errors import SagefitError
from sagefit.job.memory_model import Optimizer, Precision, Sharding, Stack
from sagefit.memory import GIB, Placement, Vision, Workload, bounds, predict, vision
from sagefit.memory.overhead import peak
from sagefit.memory.read import described
from sagefit.memory.vision_fit import fit
from sagefit.memory.vision_models import MIB, table

A100, L40S = Placement(1, 1, "A100"), Placement(1, 1, "L40S")
RESNET50 = Workload(model=Vision("resnet50", 224), optimizer="sgd-momentum", micro_batch=128, stack="plain-torch")
PARAMETERS = 25_557_032
SOME = ["resnet50", "vgg16", "vit_base_patch16_224", "cait_xxs24_224", "mobilenet_v2", "torchvision/swin_t"]
HEADS = ["yolov8n", "yolo11n-seg", "segformer-b0", "fasterrcnn_resnet50_fpn", "rtdetr_r18vd", "deeplabv3_resnet50"]


def total(workload: Workload, placement: Placement = A100) -> float:
    return peak(vision.gpu_phases(workload, placement))


def backward(workload: Workload, placement: Placement = A100) -> dict[str, float]:
    return vision.gpu_phases(workload, placement)["backward"]


def test_states_of_resnet50_by_hand() -> None:
    parts = vision.gpu_phases(RESNET50, A100)["step"]
    statistics = 53_120 * 4 + 53 * 8  # running mean and variance of 26,560 channels, and 53 counters
    assert parts["weights"] == pytest.approx(4 * PARAMETERS + statistics, abs=0.01 * MIB)
    assert parts["gradients"] == parts["optimizer"] == 4 * PARAMETERS
    assert vision.gpu_phases(replace(RESNET50, optimizer="adamw"), A100)["step"]["optimizer"] == 8 * PARAMETERS


def test_activations_of_vgg16_by_hand() -> None:
    """Thirteen convolutions keep their input, activated in place; five poolings keep 8-byte indices of their output."""
    side, channels, count = 224, 3, 0
    for width, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        count += 4 * side * side * (channels + width * convolutions)  # the last output is the input of the pooling
        side, channels = side // 2, width
        count += 8 * side * side * width
    model = table()["torchvision/vgg16"]
    assert model.saved == pytest.approx(count, rel=0.02)
    assert model.parameters == 138_357_544


def test_halves_of_precision() -> None:
    full, mixed, pure = (backward(replace(RESNET50, precision=p)) for p in ("fp32", "bf16-mixed", "bf16"))
    assert pure["activations"] == full["activations"] / 2
    assert mixed["activations"] == pytest.approx(full["activations"] / 2, rel=0.05)
    assert mixed["weights"] == full["weights"]
    assert pure["optimizer"] == full["optimizer"] / 2


@pytest.mark.parametrize(
    ("name", "batch", "size", "precision", "optimizer", "where", "measured"),
    [
        ("vit_base_patch16_224", 64, 224, "fp32", "sgd-momentum", A100, 9.958),
        ("mobilenetv2_100", 64, 224, "fp32", "sgd-momentum", A100, 7.128),
        ("beit_base_patch16_224", 32, 224, "fp32", "sgd-momentum", A100, 6.78),
        ("convnext_large", 128, 224, "fp16-mixed", "sgd", L40S, 26.235),
        ("convnext_large", 64, 224, "fp32", "sgd", L40S, 23.974),
        ("regnet_y_128gf", 64, 224, "fp16-mixed", "sgd", L40S, 26.858),
    ],
)
def test_published_runs(
    name: str, batch: int, size: int, precision: Precision, optimizer: Optimizer, where: Placement, measured: float
) -> None:
    """GPUMemNet's sheet of timm models and milabench's scaling file; GiB of device memory."""
    run = Workload(
        model=Vision(name, size), micro_batch=batch, precision=precision, optimizer=optimizer, stack="plain-torch"
    )
    assert total(run, where) / 1024**3 == pytest.approx(measured, rel=0.06)


@pytest.mark.parametrize(
    ("name", "model", "size"),
    [
        ("resnet50", "resnet50", 224),
        ("ResNet-50", "resnet50", 224),
        ("microsoft/resnet-50", "resnet50", 224),
        ("timm/resnet50.a1_in1k", "resnet50", 224),
        ("google/vit-base-patch16-224", "vit_base_patch16_224", 224),
        ("google/vit-base-patch16-224-in21k", "vit_base_patch16_224", 224),
        ("facebook/convnext-large-384", "convnext_large", 384),
        ("facebook/dinov2-base", "vit_base_patch14_dinov2", 518),
        ("google/mobilenet_v2_1.0_224", "mobilenet_v2", 224),
        ("regnety_040", "regnety_040", 224),
        ("facebook/regnet-y-040", "regnety_040", 224),
        ("mobilenetv2_050", "mobilenetv2_050", 224),
        ("yolov8n.pt", "yolov8n", 640),
        ("YOLO11x-seg.pt", "yolo11x-seg", 640),
        ("yolov5_s", "yolov5s", 640),
        ("yolov5m6", "yolov5m6", 1280),
        ("yolov5nu.pt", "yolov5nu", 640),
        ("yolov5s-seg.pt", "yolov5s-seg", 640),
        ("Ultralytics/YOLO26n", "yolo26n", 640),
        ("PekingU/rtdetr_v2_r50vd", "rtdetr_v2_r50vd", 640),
        ("facebook/detr-resnet-50", "detr-resnet-50", 1033),
        ("hustvl/yolos-small", "yolos-small", 1033),
        ("nvidia/segformer-b0-finetuned-ade-512-512", "segformer-b0", 512),
        ("nvidia/mit-b5", "segformer-b5", 512),
        ("openmmlab/upernet-swin-tiny", "upernet-swin-tiny", 512),
        ("torchvision/fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn", 1033),
    ],
)
def test_names(name: str, model: str, size: int) -> None:
    found = vision.find(name)
    assert found is not None
    assert (found.model.name, vision.default_image_size(name)) == (model, size)


@pytest.mark.parametrize(
    "name",
    [
        "yolov8",
        "yolov8q",
        "segformer",
        "fasterrcnn_resnet50_fpn@scratch",
        "resnet5",
        "resnet50_999",
        "",
        "/",
        "bert-base-uncased",
        "mobilenetv2_100_100",
    ],
)
def test_unknown_names(name: str) -> None:
    assert not vision.known(name)
    with pytest.raises(KeyError):
        vision.default_image_size(name)


def test_the_table_is_whole_and_sane() -> None:
    assert len(vision.names()) > 1300
    for model in table().values():
        assert model.parameters > 0 < model.saved, model.name
        assert model.attention <= model.saved, model.name
        for points in filter(None, (model.reserved, model.half_reserved, model.checkpointed)):
            assert list(points) == sorted(points), model.name
            assert points[0] > 0, model.name


def test_a_detector_that_was_not_traced_is_a_factor_on_its_backbone_and_says_so() -> None:
    backbone = replace(RESNET50, model=Vision("convnext_tiny", 224))
    detector = replace(RESNET50, model=Vision("convnext_tiny", 224, "detection"))
    assert total(detector) > total(backbone)
    assert any("detection has 1.25 x" in note for note in vision.notes(detector))
    assert bounds.gpu_ratio(detector) > 1.5 * bounds.MARGINS["detection"]
    assert vision.notes(RESNET50) == ()


def test_a_backbone_that_detects_is_faster_rcnn_where_that_was_traced() -> None:
    named = replace(RESNET50, model=Vision("faster_rcnn_resnet50", 0), micro_batch=2)
    detector = replace(named, model=Vision("resnet50", 0, "detection"))
    assert total(detector) == total(named)
    assert vision.resolve(Vision("resnet50", 0, "detection")).size == 1033  # a detector's images, not a classifier's
    assert bounds.gpu_ratio(detector) == bounds.load()["detection"]
    assert vision.resolve(Vision("resnet101", 0, "segmentation")).model.name == "deeplabv3_resnet101"
    plain = vision.resolve(Vision("vit_large_patch16_224", 0, "detection"))
    assert (plain.model.name, plain.size, plain.traced) == ("vitdet_large", 1024, True)
    # torchvision's frozen batch norms keep nothing of their input
    assert total(replace(named, model=Vision("fasterrcnn_resnet50_fpn", 0))) < total(named)
    painter = replace(named, model=Vision("yolov8n", 0, "segmentation"))
    assert vision.resolve(Vision("yolov8n", 0, "segmentation")).model.name == "yolov8n-seg"
    assert total(painter) > total(replace(named, model=Vision("yolov8n", 0)))


@pytest.mark.parametrize(
    ("name", "millions"),
    [  # as their authors publish them
        ("yolov5n", 1.9),
        ("yolov5x", 86.7),
        ("yolov5n-seg", 2.0),
        ("yolov5x-seg", 88.8),
        ("yolov8n", 3.2),
        ("yolov8x", 68.2),
        ("yolo11m", 20.1),
        ("yolov10s", 7.2),
        ("detr-resnet-50", 41),
        ("rtdetr_r50vd", 42),
        ("rtdetr_r101vd", 76),
        ("yolos-small", 30.7),
        ("segformer-b0", 3.8),
        ("segformer-b5", 84.7),
        ("fasterrcnn_resnet50_fpn", 41.8),
        ("maskrcnn_resnet50_fpn", 44.4),
        ("deeplabv3_resnet50", 42.0),
    ],
)
def test_parameters_of_detectors_and_segmenters(name: str, millions: float) -> None:
    """Ultralytics counts some of YOLOv10's twice in training, and position tables grow with the images."""
    assert table()[name].parameters / 1e6 == pytest.approx(millions, rel=0.13)


def test_yolo_keeps_an_average_of_its_weights() -> None:
    model = table()["yolov5n"]
    statistics = model.buffers - 4 * model.parameters
    assert 0 < statistics < 0.1 * model.parameters
    parts = backward(Workload(model=Vision("yolov5n", 640), optimizer="sgd-momentum", stack="plain-torch"))
    assert parts["weights"] == pytest.approx(8 * model.parameters + statistics)


def test_logits_of_segformer_by_hand() -> None:
    """For each class and pixel: the logits at full size, their log-softmax, and its gradient, all fp32."""
    model = table()["segformer-b0"]
    assert model.classes == 150
    assert model.more == (3 * 4 * 512 * 512,) * 2
    assert 0 < model.fewer[0] <= model.more[0]  # with few of them it peaks in its decoder
    fewest, few, many, most = (
        replace(RESNET50, model=Vision("segformer-b0", 512, classes=classes), micro_batch=4)
        for classes in (2, 21, 150, 200)
    )
    assert total(fewest) == total(few)
    assert total(many) - total(few) == pytest.approx(1.02 * 4 * 129 * model.fewer[0])
    assert total(most) - total(many) == pytest.approx(1.02 * 4 * 50 * model.more[0])
    assert total(many) == total(replace(many, model=Vision("segformer-b0", 512)))
    assert "memory.model.classes is not given; segformer-b0 is taken to have 150" in vision.notes(
        replace(many, model=Vision("segformer-b0", 512))
    )
    assert any(
        "change nothing" in note for note in vision.notes(replace(RESNET50, model=Vision("resnet50", 224, classes=9)))
    )


def test_the_bound_allows_for_the_most_that_a_process_without_tensors_holds() -> None:
    bound = bounds.gpu_ratio(RESNET50)
    for gpu, placement in (("A100", A100), ("L40S", L40S), ("T4", Placement(1, 1, "T4"))):
        found = predict(RESNET50, placement)
        assert found
        assert found.gpu
        beside = vision.CONSTANTS.most - found.gpu.parts["framework"] * GIB
        assert found.gpu.beside == pytest.approx(beside / GIB)
        assert found.gpu.upper == pytest.approx(found.gpu.point * bound + found.gpu.beside)
        assert (found.gpu.beside > 0) == (gpu != "A100")


def test_nobody_published_more_than_the_bound_allows_for() -> None:
    assert max(float(row["mib"]) for row in rows("contexts.csv")) * MIB <= vision.CONSTANTS.most
    assert max(vision.CONSTANTS.context.values()) == vision.CONSTANTS.most


def test_a_backbone_without_weights_has_no_frozen_part() -> None:
    tuned, scratch = (
        replace(RESNET50, model=Vision("retinanet_resnet50_fpn", 800, pretrained=yes), micro_batch=4)
        for yes in (True, False)
    )
    assert total(scratch) > 1.2 * total(tuned)
    assert any("pretrained: false" in note for note in vision.notes(tuned))
    assert not any("pretrained" in note for note in vision.notes(scratch))
    assert "retinanet_resnet50_fpn@scratch" not in vision.names()


def test_fit_finds_the_constants_that_made_the_measurements() -> None:
    truth = vision.Constants(
        context={"A100": 900.0 * MIB, "L40S": 500.0 * MIB}, other=700.0 * MIB, most=900.0 * MIB, factor=1.05
    )
    runs = [
        (workload, place, peak(vision.gpu_phases(workload, place, truth)))
        for workload in (replace(RESNET50, micro_batch=batch) for batch in (8, 16, 64, 256))
        for place in (A100, L40S)
    ]
    found = fit(runs)
    assert found.factor == truth.factor
    assert found.context == pytest.approx(truth.context)
    assert found.other == pytest.approx(truth.other)
    assert found.most == pytest.approx(truth.most)
    with pytest.raises(ValueError, match="no measurements"):
        fit([])


workloads = st.builds(
    Workload,
    model=st.builds(Vision, st.sampled_from(SOME + HEADS), st.integers(0, 40).map(lambda n: 16 * n)),
    precision=st.sampled_from(["fp32", "fp16-mixed", "bf16-mixed", "bf16"]),
    optimizer=st.sampled_from(["adamw", "sgd", "sgd-momentum", "lion", "adafactor", "adamw-8bit"]),
    micro_batch=st.integers(1, 600),
    accumulation=st.integers(1, 3),
    gradient_checkpointing=st.booleans(),
    sharding=st.sampled_from(["none", "zero1", "zero2", "zero3"]),
    stack=st.sampled_from(["plain-torch", "hf-trainer", "deepspeed", "tensorflow", "unknown"]),
    evaluation_batch=st.none() | st.integers(1, 600),
)
places = st.builds(Placement, st.integers(1, 2), st.sampled_from([1, 4, 8]), st.sampled_from(["A100", "T4"]))


@settings(max_examples=400)
@given(workloads, places, st.integers(0, 300), st.integers(0, 20))
def test_more_images_or_larger_images_never_need_less(
    workload: Workload, place: Placement, more: int, larger: int
) -> None:
    need = total(workload, place)
    assert total(replace(workload, micro_batch=workload.micro_batch + more), place) >= need
    model = workload.model
    assert isinstance(model, Vision)
    size = vision.resolve(model).size
    assert total(replace(workload, model=replace(model, image_size=size + 16 * larger)), place) >= need * (1 - 1e-12)
    assert total(replace(workload, model=replace(model, classes=1)), place) <= need


@settings(max_examples=400)
@given(workloads, places)
def test_what_saves_memory_never_needs_more(workload: Workload, place: Placement) -> None:
    need = total(workload, place)
    assert total(replace(workload, gradient_checkpointing=True), place) <= need
    assert total(replace(workload, accumulation=1), place) <= need
    if workload.optimizer == "adamw":
        assert total(replace(workload, optimizer="adamw-8bit"), place) <= need
    if workload.precision == "fp32" and workload.sharding == "none" and workload.stack == "plain-torch":
        assert total(replace(workload, precision="bf16"), place) <= need
    if workload.stack == "unknown":
        stacks: list[Stack] = ["plain-torch", "deepspeed", "tensorflow", "megatron"]
        for stack in stacks:
            assert total(replace(workload, stack=stack), place) <= need


@settings(max_examples=400)
@given(workloads, st.sampled_from(["none", "zero1", "zero2", "zero3"]), st.sampled_from([2, 4]))
def test_more_shards_never_need_more(workload: Workload, sharding: Sharding, ranks: int) -> None:
    sharded = replace(workload, sharding=sharding, world_size=ranks)
    assert total(replace(sharded, world_size=2 * ranks), Placement(1, 8)) <= total(sharded, Placement(1, 8))


@settings(max_examples=400)
@given(workloads, places)
def test_parts_are_not_negative(workload: Workload, place: Placement) -> None:
    assert all(size >= 0 for parts in vision.gpu_phases(workload, place).values() for size in parts.values())


def read_of(model: dict[str, Any]) -> Workload:
    """The workload of a vision model as a memory block has it."""
    return described(auto_job({"memory": {"model": {"family": "vision", **model}}, "hyperparameters": None}))


@pytest.mark.parametrize("name", ["fasterrcnn_resnet50_fpn", "detr-resnet-50", "faster_rcnn_resnet50"])
def test_detectors_are_given_photographs(name: str) -> None:
    """Their shorter side has 800 pixels and the longer 1,333, where a job does not say it."""
    plain, sides = read_of({"name": name}), read_of({"name": name, "height": 800, "width": 1333})
    assert total(plain) == pytest.approx(total(sides))
    assert any("images are taken as 800 x 1333" in note for note in vision.notes(plain))
    square = read_of({"name": name, "image_size": 800})
    assert total(replace(square, micro_batch=32)) < 0.65 * total(replace(plain, micro_batch=32))
    assert any("if that is the shorter side" in note for note in square.notes)
    assert not any("shorter side" in note for note in sides.notes)


def test_other_models_have_square_images_by_default() -> None:
    for name in ("resnet50", "yolo11m", "vitdet_base", "ssd300_vgg16"):
        found = read_of({"name": name})
        assert not any("1333" in note for note in (*found.notes, *vision.notes(found)))
    assert read_of({"name": "resnet50", "height": 100, "width": 400}).model == Vision("resnet50", 200)


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ({"image_size": 800, "height": 800}, "image_size stands for height and width"),
        ({"height": 800}, "height is given, and width is not"),
    ],
)
def test_sides_that_are_not_clear_are_refused(sides: dict[str, int], words: str) -> None:
    with pytest.raises(SagefitError, match=words):
        read_of({"name": "resnet50", **sides})
