"""Peak memory of one host, by phase and part, in bytes. The page cache is not counted: the kernel gives it back.

Phases: ``load`` (the model is read before it goes to the GPU), ``step`` (training), ``evaluation`` and
``checkpoint``. What GPUs hold is not here; a model that the CPU trains adds its tensors in `cpu`.
"""

from __future__ import annotations

import math

from sagefit.job.memory_model import Stack
from sagefit.memory import diffusion, objectives, tabular, vision
from sagefit.memory.architecture import adapter_params
from sagefit.memory.stacks import PROFILES, StackProfile, profile_of, stacks_with
from sagefit.memory.states import frozen_bytes, optimizer_bytes, quantized
from sagefit.memory.transformer import sizes
from sagefit.memory.workload import GIB, Diffusion, Phases, Placement, Tabular, Traced, Transformer, Vision, Workload

# Resident memory of Python with torch, 526 MiB, and with transformers and its Trainer, 756 MiB (measured: torch 2.15
# for CPU, transformers 5.23). Ranks share the pages of libraries, so the smaller figure stands for each.
PROCESS = 0.6 * GIB
# The same of a process that trains on the CPU, where no CUDA libraries are loaded, with the kernels that it comes to
# use: torch 2.13 has 0.21 GiB after import and 0.31 to 0.35 in training, transformers 5.23 and peft 0.12 more,
# tensorflow-cpu 2.21 has 0.50 after import and 0.68 to 0.75 once the graph of a training step is there (measured;
# tests/accuracy/cpu.csv, and the examples for TensorFlow).
CPU_PROCESS, CPU_TENSORFLOW = 0.35 * GIB, 0.7 * GIB
CPU_HUGGING_FACE = 0.12 * GIB
HUGGING_FACE: tuple[Stack, ...] = ("hf-trainer", "hf-liger", "ms-swift")
# A process with a CUDA context has 1.9 to 2.06 GB resident, 0.32 without (PyTorch issues 12873 and 113326).
CUDA = 1.5 * GIB
# A forked loader worker has 14 MiB of its own (measured); the rest is room for decoders, tokenizers and their caches.
WORKER = 0.2 * GIB
# Transformers writes and reads files of at most this size, and quantizes one after the other
# (`save_pretrained(max_shard_size="5GB")`, the default up to version 4).
SHARD = 5e9
# One patch of an image as the towers of Qwen-VL take it: 14 x 14 pixels of three colours, twice, in fp32.
PATCH = 2 * 3 * 14 * 14 * 4.0
# Batches in page-locked memory: the one in use and the one that is copied (torch DataLoader's pin_memory thread).
PINNED = 2
# DeepSpeed's estimators count 16 bytes a parameter for the optimizer's side of offload and 18 with the parameters,
# and half as much again for buffers (`estimate_zero2_model_states_mem_needs` and the one of ZeRO-3).
OFFLOAD = {"optimizer": 16.0, "parameters": 18.0}
OFFLOAD_BUFFERS = 1.5
# FSDP has each shard that it offloads twice in page-locked memory: the weights, and room for their gradients, which
# frozen weights get too (torch, `FlatParamHandle.init_flat_param_attributes`). torch rounds a page-locked block up to
# a power of two (`CachingHostAllocator`), so on average it is 1 / ln 2 times as large as what it holds. Published:
# 127 GB of host memory for QLoRA of Llama-3-70B on four GPUs (P. Schmid); 137 by these figures.
LOCKED_COPIES = 2
LOCKED_BLOCKS = 1 / math.log(2)
# Copies of the model that a rank holds while it loads. One: `from_pretrained` fills the model from memory-mapped
# files. Two: a model of random weights beside a state dict, the plain recipe of torch. torchtitan starts on the
# meta device, and each rank reads its own shard.
LOAD_COPIES: dict[Stack, int] = {"plain-torch": 2, "tensorflow": 2}
# With sharding, these load on the first rank of a host and hand out shards (Accelerate's
# fsdp_cpu_ram_efficient_loading, DeepSpeed's zero.Init in transformers).
LOADS_ONCE: tuple[Stack, ...] = ("hf-trainer", "hf-liger", "ms-swift", "deepspeed")


def phases(workload: Workload, placement: Placement) -> Phases:
    """Bytes of one host by phase and part; the host with rank 0 where hosts differ."""
    model = workload.model
    if isinstance(model, Tabular):
        return tabular.host_phases(workload, model)
    if workload.stack == "unknown":
        architecture = model.architecture if isinstance(model, Transformer) else "decoder"
        able = stacks_with(workload.sharding, architecture)
        return _worst([_phases(workload, placement, stack) for stack in able])
    return _phases(workload, placement, workload.stack)


def shared_memory_bytes(workload: Workload, placement: Placement) -> float:
    """What loader workers of one host keep in ``/dev/shm``: batches that are ready and wait for the GPU.

    torch's DataLoader has ``prefetch_factor`` batches of each worker on the way, in shared memory.
    """
    return _ranks(workload, placement) * workload.workers * max(1, workload.prefetch) * _batch(workload)


def _worst(candidates: list[Phases]) -> Phases:
    """Each phase of the stack that needs most in it."""
    return {
        phase: max((each[phase] for each in candidates), key=lambda parts: sum(parts.values()))
        for phase in candidates[0]
    }


def _phases(workload: Workload, placement: Placement, stack: Stack) -> Phases:
    ranks = _ranks(workload, placement)
    always = {"process": ranks * (PROCESS + CUDA if placement.gpus_per_host else _cpu_process(workload, stack))}
    # Each rank holds the dataset, and each worker comes to hold a copy: reading a Python object writes its
    # reference count, which copies the forked page (PyTorch issue 13246).
    held = workload.dataset_gib * GIB if workload.dataset_in_memory else 0.0
    always["dataset"] = ranks * held
    training = always | {
        "loader workers": ranks * workload.workers * (WORKER + held),
        "prefetched batches": shared_memory_bytes(workload, placement),
        "batches": ranks * (PINNED if placement.gpus_per_host else 1) * _batch(workload),
        "offload": _offloaded(workload, placement, stack),
    }
    result = {
        "load": always | {"model": _loaded(workload, placement, stack)},
        "step": training,
        "checkpoint": training | {"checkpoint": _saved(workload, placement, stack)},
    }
    if workload.evaluation_batch is not None:
        result["evaluation"] = training | _evaluation(workload, placement, held)
    return result


def _cpu_process(workload: Workload, stack: Stack) -> float:
    """A process that trains on the CPU, before it has a model."""
    if stack == "tensorflow":
        return CPU_TENSORFLOW
    return CPU_PROCESS + (CPU_HUGGING_FACE if workload.hugging_face or stack in HUGGING_FACE else 0.0)


def _evaluation(workload: Workload, placement: Placement, held: float) -> dict[str, float]:
    """A second loader with workers of its own, while those of training wait."""
    ranks = _ranks(workload, placement)
    batch = _sample(workload) * (workload.evaluation_batch or 0) * objectives.NEEDS[workload.objective].sequences
    ahead = workload.workers * max(1, workload.prefetch) + (PINNED if placement.gpus_per_host else 1)
    return {
        "evaluation workers": ranks * workload.workers * (WORKER + held),
        "evaluation batches": ranks * ahead * batch,
    }


def _ranks(workload: Workload, placement: Placement) -> int:
    """Processes of one host: one for each GPU in use, or one."""
    if workload.world_size is not None and placement.gpus_per_host:
        return min(placement.gpus_per_host, math.ceil(workload.world_size / placement.hosts))
    return max(1, placement.gpus_per_host)


def _batch(workload: Workload) -> float:
    return workload.micro_batch * objectives.NEEDS[workload.objective].sequences * _sample(workload)


def _sample(workload: Workload) -> float:
    """Bytes of one sample as a tensor: token ids, mask and labels in 64 bits, or the pixels of an image in fp32."""
    if workload.sample_bytes is not None:
        return float(workload.sample_bytes)
    if isinstance(workload.model, Vision):
        return 3.0 * 4 * vision.resolve(workload.model).size ** 2
    if isinstance(workload.model, Diffusion):
        return diffusion.sample_bytes(workload.model)
    if not isinstance(workload.model, Transformer):
        return 0.0
    seen = workload.image_tokens * workload.model.tower.patches if workload.model.tower else 0
    return 3.0 * 8 * workload.sequence_length + PATCH * seen


def _parameters(workload: Workload) -> tuple[float, float]:
    """All parameters, and those that are trained."""
    model = workload.model
    if isinstance(model, Transformer):
        if workload.method == "full":
            return model.params, model.params
        return model.params, adapter_params(model, workload.lora_rank, workload.lora_targets or "all-linear")
    if isinstance(model, Traced):
        return model.parameters, model.trained
    if isinstance(model, Diffusion):
        return diffusion.parameters(workload)
    count = vision.resolve(model).model.parameters if isinstance(model, Vision) else 0
    return count, count


def _weight_bytes(workload: Workload, stack: Stack) -> int:
    """Bytes of a parameter as it is loaded: fp32 for mixed precision, unless a stack or the job says otherwise."""
    if workload.base_dtype != "default" and workload.method != "full":
        return 4 if workload.base_dtype == "fp32" else 2
    if workload.precision == "bf16" or workload.method == "qlora":
        return 2
    if isinstance(workload.model, Diffusion):  # diffusers loads a denoiser in fp32 unless it is told a type
        return 4
    if workload.method == "lora" and workload.precision != "fp32" and PROFILES[stack].base_16_bit:
        return 2
    return 4


def _loaded(workload: Workload, placement: Placement, stack: Stack) -> float:
    """Copies of the model on the host before it is on the GPUs."""
    total, _ = _parameters(workload)
    one = total * _weight_bytes(workload, stack)
    if isinstance(workload.model, Diffusion):
        # As `from_pretrained` fills any model; text encoders come in fp32 too, and all wait for one another.
        return (one + 2 * diffusion.encoder_bytes(workload.model)) * _ranks(workload, placement)
    if stack == "torchtitan":
        return one / placement.hosts
    copies = LOAD_COPIES.get(stack, 1)
    if quantized(workload) and copies == 1:
        one = min(one, SHARD)
    once = workload.stage == 3 and stack in LOADS_ONCE
    if isinstance(workload.model, Transformer) and (second := objectives.frozen_model(workload.model, workload)):
        one += second.params * _weight_bytes(workload, stack)
    return copies * one * (1 if once else _ranks(workload, placement))


def _offloaded(workload: Workload, placement: Placement, stack: Stack) -> float:
    """Optimizer state, gradients and masters that live on the host instead of the GPUs."""
    if workload.cpu_offload == "none":
        return 0.0
    total, trained = _parameters(workload)
    if workload.sharding == "none":
        # torchao's CPUOffloadOptimizer: parameters, gradients and two moments in the parameters' type, each rank.
        return _ranks(workload, placement) * 4 * _weight_bytes(workload, stack) * trained
    profile = profile_of(stack, workload.sharding)
    frozen = _frozen(workload, profile, total - trained) if workload.cpu_offload == "parameters" else 0.0
    if not profile.fsdp:
        return OFFLOAD_BUFFERS * (OFFLOAD[workload.cpu_offload] * trained + frozen) / placement.hosts
    size = _weight_bytes(workload, stack) if workload.method == "full" else profile.adapter
    locked = LOCKED_COPIES * LOCKED_BLOCKS * (size * trained + frozen)
    whole = locked + optimizer_bytes(workload, size) * trained
    return whole / (1 if workload.sharding == "fsdp-hybrid-shard" else placement.hosts)


def _frozen(workload: Workload, profile: StackProfile, frozen: float) -> float:
    """Bytes of ``frozen`` weights as a sharded engine keeps them, and of a second model: DeepSpeed casts to 16 bits."""
    model = workload.model
    if not isinstance(model, Transformer):
        return 2.0 * max(0.0, frozen)
    second = objectives.frozen_model(model, workload)
    beside = objectives.frozen_element(workload, profile) * second.params if second else 0.0
    if workload.method == "full":
        return float(beside)
    wide = workload.precision == "fp32" or (profile.fsdp and workload.precision.endswith("mixed"))
    return beside + frozen_bytes(workload, profile, sizes(model, workload, profile), 4 if wide else 2)


def _saved(workload: Workload, placement: Placement, stack: Stack) -> float:
    """What rank 0 gathers or serialises.

    safetensors turns a file's tensors into bytes at once. FSDP with a full state dict gathers weights and both
    moments of Adam on rank 0 (PyTorch issue 118520); DeepSpeed gathers 16-bit weights
    (``stage3_gather_16bit_weights_on_model_save``), whoever calls it; torchtitan writes shards, and so does Accelerate
    where it is told to.
    """
    _, trained = _parameters(workload)
    size = _weight_bytes(workload, stack) if workload.method == "full" else 4
    fsdp = profile_of(stack, workload.sharding).fsdp
    if stack == "torchtitan" or (workload.saves_shards and fsdp and workload.stage == 3):
        return size * trained / placement.hosts
    if workload.stage == 3 and workload.method == "full":
        return (size + 8.0 if fsdp else 2.0) * trained
    return size * trained
