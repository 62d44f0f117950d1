"""Trains a model for a few steps on random data, as one row of ``gpu.csv`` says, and tells its peaks of GPU memory.

Runs where there is torch and no Sagefit; started by `measure_gpu`. On a machine without a GPU everything trains on the
CPU, and the peaks are 0. Sharding over several GPUs is measured on one: the process is rank 0 of ``world_size``, and
collectives answer at once without moving data (torch's "fake" process group). What a rank allocates is the same; the
buffers of NCCL are not there.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from accuracy import gpu_models

Row = dict[str, Any]

GIB = 1024**3
_ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj", "to_q", "to_k", "to_v", "to_out.0"]
_TRAINER_OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adafactor": "adafactor",
    "sgd": "sgd",
    "adamw-8bit": "adamw_bnb_8bit",
    "paged-adamw-8bit": "paged_adamw_8bit",
    "lion": "lion_32bit",
}


class Meter:
    """Peaks of allocated memory by phase, of reserved memory, and of what the process holds beside the allocator."""

    def __init__(self, device: str, limit_gib: float) -> None:
        self.on = device != "cpu"
        self.limit = limit_gib
        self.phase = "load"
        self.peaks: dict[str, int] = {}
        self.reserved = self.outside = self.static = 0
        self.times: list[float] = []

    def enter(self, phase: str) -> None:
        """End the running phase and begin ``phase``."""
        if self.on:
            self.peaks[self.phase] = max(self.peaks.get(self.phase, 0), torch.cuda.max_memory_allocated())
            if self.phase != "load":
                self.reserved = max(self.reserved, torch.cuda.max_memory_reserved())
            torch.cuda.reset_peak_memory_stats()
        self.phase = phase

    def loaded(self) -> None:
        """The model is on the GPU: what its making left behind does not count, and from here on the limit holds."""
        if self.on:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            self.static = torch.cuda.memory_allocated()
            if self.limit:
                _, total = torch.cuda.mem_get_info()
                torch.cuda.set_per_process_memory_fraction(self.limit * GIB / total)
        self.enter("rest")

    def stepped(self) -> None:
        """An optimizer step is done."""
        if self.on:
            torch.cuda.synchronize()
            held = process_bytes()
            self.outside = max(self.outside, held - torch.cuda.memory_reserved()) if held else 0
        self.times.append(time.monotonic())
        self.enter("rest")

    def told(self) -> Row:
        """What was measured, in GiB; seconds of a step are the median after the first two."""
        between = sorted(after - before for before, after in zip(self.times[1:], self.times[2:], strict=False))
        return {
            "allocated_gib": round(
                max((size for name, size in self.peaks.items() if name != "load"), default=0) / GIB, 4
            ),
            "reserved_gib": round(self.reserved / GIB, 4),
            "outside_gib": round(self.outside / GIB, 4),
            "static_gib": round(self.static / GIB, 4),
            **{f"{name}_gib": round(self.peaks.get(name, 0) / GIB, 4) for name in ("forward", "backward", "optimizer")},
            "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0) if self.on else 0,
            "step_seconds": round(between[len(between) // 2], 4) if between else "",
        }


def process_bytes() -> int:
    """GPU memory of this process as the driver counts it; 0 where it does not say."""
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    running = nvml.nvmlDeviceGetComputeRunningProcesses(nvml.nvmlDeviceGetHandleByIndex(0))
    return next((process.usedGpuMemory or 0 for process in running if process.pid == os.getpid()), 0)


def train(row: Row) -> Row:
    """``row`` with what was measured, the number of parameters and the software."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    torch.set_num_threads(2)
    if device == "cuda" and row["allocator"] == "expandable":
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    if row["kind"] == "diffusion":  # with torch 2.11, runs of Flux and Chroma failed with cuDNN's attention
        torch.backends.cuda.enable_cudnn_sdp(False)
    meter = Meter(device, float(row["limit_gib"] or 0))
    with _process_group(row):
        model, params = _model(row, device)
        (_by_trainer if row["stack"] in ("hf-trainer", "hf-liger") else _by_loop)(row, model, device, meter)
    libraries = {"vision": "timm", "diffusion": "diffusers"}
    library = importlib.import_module(libraries.get(row["kind"], "transformers"))
    return meter.told() | {
        "params": params,
        "trained": sum(_full_size(each) for each in model.parameters() if each.requires_grad),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "library": f"{library.__name__} {library.__version__}",
    }


def _full_size(parameter: Any) -> int:
    shape: tuple[int, ...] = tuple(parameter.shape)
    return int(torch.Size(shape).numel())


@contextlib.contextmanager
def _process_group(row: Row) -> Iterator[None]:
    if row["world_size"] == 1:
        yield
        return
    fake = importlib.import_module("torch.testing._internal.distributed.fake_pg")
    size = str(row["world_size"])
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": size, "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    torch.distributed.init_process_group("fake", rank=0, world_size=row["world_size"], store=fake.FakeStore())
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def _model(row: Row, device: str) -> tuple[Any, int]:
    """The model, with adapters and sharding, on the device; and its parameters before adapters."""
    make: dict[str, Callable[[Row, str], Any]] = {
        "text": gpu_models.text_model,
        "vision": gpu_models.vision_model,
        "diffusion": gpu_models.diffusion_model,
        "vision-language": gpu_models.seeing_model,
    }
    on_meta = row["method"] == "qlora" or (row["sharding"].startswith("fsdp") and row["load"] == "meta")
    model = make[row["kind"]](row, "meta" if on_meta else device)
    params = sum(parameter.numel() for parameter in model.parameters())
    if row["method"] == "qlora":
        _quantize(model, device)
    by_hand = row["gradient_checkpointing"] == "yes" and row["stack"] == "plain-torch"
    if by_hand and row["kind"] in ("text", "vision-language"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if row["method"] != "full":
        model = _adapted(row, model)
    if row["stack"] == "plain-torch":
        model = _sharded(row, model, device)
    return model, params


def _quantize(model: Any, device: str) -> None:
    """4-bit weights in place of every linear layer but the head, as ``BitsAndBytesConfig`` of QLoRA's paper says."""
    bnb = importlib.import_module("bitsandbytes")
    for name, module in list(model.named_modules()):
        for child, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear) and "lm_head" not in f"{name}.{child}":
                new = bnb.nn.Linear4bit(
                    layer.in_features,
                    layer.out_features,
                    layer.bias is not None,
                    compute_dtype=torch.bfloat16,
                    compress_statistics=True,
                    quant_type="nf4",
                    device="meta",
                )
                setattr(module, child, new)
    for module in model.modules():
        if isinstance(module, bnb.nn.Linear4bit):
            shape = (module.out_features, module.in_features)
            drawn = torch.empty(shape, dtype=torch.bfloat16, device=device).normal_(std=0.02)
            module.weight = bnb.nn.Params4bit(
                drawn, requires_grad=False, compress_statistics=True, quant_type="nf4", module=module
            ).to(device)
            if module.bias is not None:
                module.bias = nn.Parameter(torch.zeros(module.out_features, dtype=torch.bfloat16, device=device))
        else:
            module.to_empty(device=device, recurse=False)
    model.tie_weights()
    model.is_loaded_in_4bit = True


def _adapted(row: Row, model: Any) -> Any:
    peft = importlib.import_module("peft")
    checkpointing = row["gradient_checkpointing"] == "yes"
    if row["method"] == "qlora":
        model = peft.prepare_model_for_kbit_training(
            model, checkpointing, gradient_checkpointing_kwargs={"use_reentrant": False} if checkpointing else None
        )
    elif checkpointing and hasattr(model, "enable_input_require_grads"):
        model.enable_input_require_grads()
    targets: Any = "all-linear"
    if row["lora_targets"] == "attention":
        present = {name.rpartition(".")[2] for name, _ in model.named_modules()} | {"to_out.0"}
        targets = [name for name in _ATTENTION if name in present]
    elif row["kind"] == "diffusion":  # peft's word for all of them is for models of transformers
        targets = sorted(name for name, each in model.named_modules() if isinstance(each, nn.Linear))
    config = peft.LoraConfig(r=row["lora_rank"], lora_alpha=row["lora_rank"], lora_dropout=0.05, target_modules=targets)
    return peft.get_peft_model(model, config)


def _layers(model: Any) -> list[Any]:
    """The blocks that FSDP wraps: those that transformers names as not to be split."""
    names = set(model._no_split_modules or [])
    return [module for module in model.modules() if type(module).__name__ in names]


def _sharded(row: Row, model: Any, device: str) -> Any:
    if row["sharding"] == "ddp":
        return _answering(nn.parallel.DistributedDataParallel(model))
    bf16 = torch.bfloat16
    mixed = row["precision"] == "bf16-mixed"
    if row["sharding"] == "fsdp2":
        fsdp = importlib.import_module("torch.distributed.fsdp")
        mesh = torch.distributed.device_mesh.init_device_mesh(device, (row["world_size"],))
        policy = fsdp.MixedPrecisionPolicy(param_dtype=bf16, reduce_dtype=torch.float32) if mixed else None
        options = {"mesh": mesh, "reshard_after_forward": row["reshard"] == "yes"} | (
            {"mp_policy": policy} if mixed else {}
        )
        for layer in _layers(model):
            fsdp.fully_shard(layer, **options)
        fsdp.fully_shard(model, **options)
        if row["load"] == "meta":
            model.to_empty(device=device)
    elif row["sharding"] == "fsdp1":
        fsdp = importlib.import_module("torch.distributed.fsdp")
        wrap = importlib.import_module("torch.distributed.fsdp.wrap")
        strategy = fsdp.ShardingStrategy
        model = fsdp.FullyShardedDataParallel(
            model,
            auto_wrap_policy=wrap.ModuleWrapPolicy({type(layer) for layer in _layers(model)}),
            mixed_precision=fsdp.MixedPrecision(bf16, bf16, bf16) if mixed else None,
            sharding_strategy=strategy.FULL_SHARD if row["reshard"] == "yes" else strategy.SHARD_GRAD_OP,
            device_id=torch.cuda.current_device() if device == "cuda" else None,
            param_init_fn=(lambda module: module.to_empty(device=device, recurse=False))
            if row["load"] == "meta"
            else None,
            use_orig_params=True,
        )
    return model


def _answering(model: Any) -> Any:
    """DDP whose buckets come back as they are: the fake process group gives no result that DDP would take."""
    hooks = importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks")
    model.register_comm_hook(None, hooks.noop_hook)
    return model


def _lengths(row: Row) -> list[int]:
    """Tokens of each micro-batch: all the same, or from a third to all of ``sequence_length``, once the longest."""
    count, longest = row["steps"] * row["accumulation"], row["sequence_length"]
    if row["lengths"] == "fixed":
        return [longest] * count
    draw = random.Random(11)
    lengths = [draw.randint(longest // 3, longest) for _ in range(count)]
    lengths[count * 2 // 3] = longest
    return lengths


def _optimizer(row: Row, trained: list[Any]) -> Any:
    """torch's optimizers as torch's default makes them (``foreach`` on a GPU), bitsandbytes' for those of 8 bits."""
    if row["optimizer"] in ("adamw-8bit", "paged-adamw-8bit"):
        bnb = importlib.import_module("bitsandbytes")
        return (bnb.optim.PagedAdamW8bit if row["optimizer"].startswith("paged") else bnb.optim.AdamW8bit)(
            trained, lr=1e-5
        )
    if row["optimizer"] == "adafactor":
        return torch.optim.Adafactor(trained)
    if row["optimizer"] == "adamw":
        return torch.optim.AdamW(trained, lr=1e-5)
    return torch.optim.SGD(trained, lr=1e-5, momentum=0.9 if row["optimizer"] == "sgd-momentum" else 0)


def _by_loop(row: Row, model: Any, device: str, meter: Meter) -> None:
    """The loop that people write by hand: autocast, accumulation, clipping, ``zero_grad`` after the step."""
    model.train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = _optimizer(row, trained)
    by_fsdp = row["sharding"].startswith("fsdp")  # it casts by itself
    dtype = {"bf16-mixed": torch.bfloat16, "fp16-mixed": torch.float16}.get(row["precision"])
    cast = torch.autocast(device, dtype) if dtype and not by_fsdp else contextlib.nullcontext()
    scaler = torch.amp.GradScaler(device, enabled=row["precision"] == "fp16-mixed")
    inputs = torch.bfloat16 if row["precision"] == "bf16" else torch.float32
    meter.loaded()
    made = gpu_models.batches(row, _lengths(row))
    for number, batch in enumerate(made, 1):
        here = _moved(batch, device, inputs)
        meter.enter("forward")
        with cast:
            if row["kind"] == "vision":
                loss = gpu_models.vision_loss(model, row, here)
            elif row["kind"] == "diffusion":
                loss = gpu_models.diffusion_loss(model, here)
            else:
                loss = model(**here).loss
        meter.enter("backward")
        scaler.scale(loss / row["accumulation"]).backward()
        del loss, here
        if number % row["accumulation"]:
            continue
        meter.enter("optimizer")
        if row["kind"] != "vision":
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        meter.stepped()


def _moved(value: Any, device: str, floats: torch.dtype) -> Any:
    if isinstance(value, dict):
        return {name: _moved(each, device, floats) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_moved(each, device, floats) for each in value)
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device, floats if value.is_floating_point() else None)


class _Data(torch.utils.data.Dataset):  # type: ignore[misc]
    """Batches that are drawn already, one an item."""

    def __init__(self, row: Row) -> None:
        self.batches = list(gpu_models.batches(row, _lengths(row)))

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Any:
        return self.batches[index]


def _by_trainer(row: Row, model: Any, device: str, meter: Meter) -> None:
    """``transformers.Trainer`` with what the row says and its defaults otherwise."""
    hf = importlib.import_module("transformers")

    class Phases(hf.TrainerCallback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            if row["sharding"] == "ddp":
                _answering(trainer.model_wrapped)
            meter.loaded()

        def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
            meter.enter("optimizer")

        def on_step_end(self, *_: Any, **__: Any) -> None:
            meter.stepped()

    def before(*_: Any) -> None:
        meter.enter("forward")

    def after(*_: Any) -> None:
        meter.enter("backward")

    model.register_forward_pre_hook(before)
    model.register_forward_hook(after)
    sharding: Row = {}
    if row["sharding"].startswith("fsdp"):
        version = int(row["sharding"][-1])
        sharding = {"fsdp": "full_shard auto_wrap", "fsdp_config": {"version": version}}
    arguments = hf.TrainingArguments(
        output_dir=f"{tempfile.gettempdir()}/measure-gpu",
        per_device_train_batch_size=1,
        gradient_accumulation_steps=row["accumulation"],
        max_steps=row["steps"],
        bf16=row["precision"] == "bf16-mixed",
        fp16=row["precision"] == "fp16-mixed",
        gradient_checkpointing=row["gradient_checkpointing"] == "yes",
        optim=_TRAINER_OPTIMIZERS[row["optimizer"]],
        use_liger_kernel=row["stack"] == "hf-liger",
        use_cpu=device == "cpu",
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=device != "cpu",
        remove_unused_columns=False,
        **sharding,
    )
    trainer = hf.Trainer(
        model=model,
        args=arguments,
        train_dataset=_Data(row),
        data_collator=lambda drawn: drawn[0],
        callbacks=[Phases],
    )
    trainer.train()
