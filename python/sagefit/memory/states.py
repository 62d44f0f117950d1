"""Model states: weights, gradients and optimizer, what sharding leaves of them on one GPU, and what it adds.

Sources: Rajbhandari et al. 2020 (ZeRO); the DeepSpeed, PyTorch FSDP and Hugging Face PEFT documentation for buckets,
live parameters and data types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sagefit.memory.deepspeed import REDUCE_BUCKET
from sagefit.memory.stacks import StackProfile
from sagefit.memory.workload import Placement, Workload

NF4 = 0.5625  # 4 bits, and an fp32 constant for each block of 64 (Dettmers et al. 2023, no double quantization)
INT8 = 1.001  # 8 bits, and an fp32 constant for each row (Dettmers et al. 2022)
# Kahan summation keeps what rounding took of a weight: a third state (AdamWBF16, optimi).
MOMENTS = {"adamw": 2, "adamw-kahan": 3, "lion": 1, "sgd-momentum": 1, "sgd": 0}
EIGHT_BIT = 2.04  # two 8-bit moments, and an fp32 constant for each block of 256 (Dettmers et al. 2022)
FACTORED = 0.02  # Adafactor keeps a row and a column of each matrix (Shazeer and Stern 2018)


class Counts(Protocol):
    """Elements of a model's parameters: all embeddings, all linear layers, one layer, all adapters."""

    @property
    def embedding(self) -> float: ...  # noqa: D102
    @property
    def linear(self) -> float: ...  # noqa: D102
    @property
    def layer(self) -> float: ...  # noqa: D102
    @property
    def adapters(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class State:
    """Bytes on one GPU. ``gathered`` are full layers that a sharded model holds while it computes, ``buckets`` what
    gradients travel in, ``step`` the temporaries of the optimizer, ``load`` those of loading."""

    weights: float
    gradients: float
    optimizer: float
    cast_copies: float
    gathered: float
    buckets: float
    step: float
    load: float


def model_state(workload: Workload, placement: Placement, profile: StackProfile, counts: Counts) -> State:
    """The states of one rank of ``workload``, before anything is computed."""
    ranks, together = workload.shards(placement), workload.ranks(placement)
    stage = workload.stage
    if profile.fsdp and ranks == 1:
        stage = 0  # FSDP does not shard over one rank; ZeRO runs its engine all the same
    zero = stage > 0 and not profile.fsdp
    mixed = workload.precision.endswith("mixed")
    # DeepSpeed's bf16 mode keeps fp32 masters, so what a job calls pure bf16 is mixed precision there.
    engine = (profile.engine or zero) and workload.precision != "fp32"
    weight = 4 if workload.precision == "fp32" or (mixed and not engine) else 2
    total = counts.embedding + counts.linear
    if workload.method == "full":
        trained, size, frozen = total, weight, 0.0
    else:
        trained, size = counts.adapters, profile.adapter
        frozen = frozen_bytes(workload, profile, counts, weight)
    masters = 4 if engine and size == 2 else 0
    optimizer = trained * (masters + optimizer_bytes(workload, 4 if masters else size))
    weights = frozen + trained * size
    gradients = trained * (4 if profile.main_gradients and masters else size)
    owned = trained / ranks if stage else trained
    offloaded = workload.cpu_offload != "none"
    return State(
        weights=_kept(workload, weights, total, ranks, zero=zero),
        gradients=gradients / (ranks if stage >= 2 else 1),
        optimizer=0.0 if offloaded else optimizer / (ranks if stage else 1),
        cast_copies=2 * counts.linear if mixed and not engine and stage < 3 and frozen in (0.0, 4 * total) else 0.0,
        gathered=_gathered(workload, profile, counts, (frozen or weights) / total, ranks) if stage == 3 else 0.0,
        buckets=size * _bucket(workload, together, trained, counts),
        step=0.0 if offloaded else _step(workload, profile, owned, size, zero=zero),
        load=2 * counts.layer if quantized(workload) else 0.0,
    )


def quantized(workload: Workload) -> float:
    """Bytes of a quantized weight of the base model, 0 where it is not quantized."""
    if workload.method == "qlora":
        return NF4
    return INT8 if workload.method == "lora" and workload.base_dtype == "8-bit" else 0.0


def _gathered(workload: Workload, profile: StackProfile, counts: Counts, stored: float, ranks: int) -> float:
    """Bytes of whole layers beside a rank's own shard: two layers of FSDP, or what ZeRO-3 may keep alive."""
    size = min(4 if workload.precision == "fp32" else 2, stored)
    linear, embedding = size, size
    if few := quantized(workload):
        linear, embedding = few, _unquantized(workload, profile)
    live = 2 * counts.layer if profile.fsdp else workload.zero.live + counts.layer
    if workload.sharding == "fsdp-shard-grad-op" or not workload.wrapped:
        live = counts.linear  # weights stay gathered from the forward pass to the end of the backward pass
    whole = linear * counts.linear + embedding * counts.embedding
    others = whole * (1 - 1 / ranks) if ranks > 1 else whole
    return min(others, linear * min(live, counts.linear) + embedding * counts.embedding)


def _kept(workload: Workload, weights: float, total: float, ranks: int, *, zero: bool) -> float:
    """Bytes of weights that stay on a rank: all, or its shard, and a shard of the second copy that ZeRO++ makes."""
    if workload.stage < 3:
        return weights
    second = 2 * total / workload.zero.secondary if zero and workload.zero.secondary else 0.0
    return second if workload.cpu_offload == "parameters" else weights / ranks + second


def _bucket(workload: Workload, ranks: int, trained: float, counts: Counts) -> float:
    """Gradients in flight, elements. DistributedDataParallel's buckets hold a second copy of all of them.

    DeepSpeed makes its buffers in full, however little is trained.
    """
    stage, zero = workload.stage, workload.zero
    if ranks == 1 and stage == 0:
        return 0.0
    unit = counts.layer if workload.wrapped else trained
    moving = min(trained, {0: trained, 3: unit}.get(stage, REDUCE_BUCKET))
    if zero.bucket is None or stage == 0:
        return moving
    return max(moving, zero.bucket) if stage == 3 else zero.bucket * zero.buffers


def frozen_bytes(workload: Workload, profile: StackProfile, counts: Counts, weight: int) -> float:
    """Bytes of the base model under adapters."""
    if size := quantized(workload):
        return size * counts.linear + _unquantized(workload, profile) * counts.embedding
    if workload.base_dtype != "default":
        weight = {"fp32": 4, "16-bit": 2}[workload.base_dtype]
    elif profile.base_16_bit and workload.precision != "fp32":
        weight = 2
    return weight * (counts.embedding + counts.linear)


def _unquantized(workload: Workload, profile: StackProfile) -> int:
    """Bytes of a weight that quantization leaves as it is.

    FSDP flattens tensors of one dtype only, so quantized weights are stored as 16-bit numbers beside others of 16 bits
    (PEFT's guide of QLoRA with FSDP); TRL's trainers turn nothing into fp32 under FSDP and ZeRO-3.
    """
    return 4 if profile.float_embeddings and workload.stage < 3 else 2


def optimizer_bytes(workload: Workload, moment: int) -> float:
    """Bytes of the optimizer's state for each trained parameter, whose moments have ``moment`` bytes each.

    bitsandbytes keeps fp32 moments of weights of any dtype.
    """
    optimizer = workload.optimizer
    if optimizer.endswith("8bit"):
        return EIGHT_BIT
    if workload.step == "bitsandbytes":
        moment = 4
    return moment * MOMENTS[optimizer] if optimizer in MOMENTS else FACTORED * 4


def _step(workload: Workload, profile: StackProfile, owned: float, size: int, *, zero: bool) -> float:
    """Temporaries: ``foreach`` optimizers hold one more copy; ZeRO makes fp32 gradients of a sub-group besides.

    Fused kernels write in place, and bitsandbytes updates one parameter after the other.
    """
    if workload.optimizer not in MOMENTS or workload.optimizer == "sgd":
        return 0.0
    if zero and workload.method == "full":
        return (8 if size == 2 else 4) * min(owned, workload.zero.sub_group)
    return profile.step * size * owned if workload.step == "foreach" else 0.0
