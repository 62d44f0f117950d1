"""What the ``zero_optimization`` of a DeepSpeed configuration says of memory besides its stage.

Sources: ``deepspeed.runtime.zero`` 0.18 (``config``, ``offload_config``, ``stage_1_and_2``, ``stage3``,
``partition_parameters``); Wang et al. 2023 (ZeRO++); ``transformers.integrations.deepspeed`` for what "auto" becomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sagefit.memory.values import flag, share, text, whole

REDUCE_BUCKET = 5e8
"""DeepSpeed's ``reduce_bucket_size``, elements."""
LIVE_PARAMETERS = 1e9
"""DeepSpeed's ``stage3_max_live_parameters``, elements."""
SUB_GROUP = 1e9
"""DeepSpeed's ``sub_group_size``: elements that one step of the sharded optimizer takes at a time."""


@dataclass(frozen=True)
class Zero:
    """Numbers of a DeepSpeed configuration.

    bucket: elements of a buffer in which gradients travel; None where nothing is known of it.
    by_width: ``bucket`` is "auto": Hugging Face's Trainer takes the square of the hidden size.
    buffers: how many of them there are at stages 1 and 2. With ``overlap_comm`` one is filled while one is sent.
    live: elements of gathered weights that a rank keeps at stage 3.
    sub_group: elements that one step of the optimizer takes at a time.
    secondary: ranks that share a second copy of the weights at stage 3 (ZeRO++'s hpZ); 0 where there is none.
    """

    bucket: float | None = None
    by_width: bool = False
    buffers: int = 1
    live: float = LIVE_PARAMETERS
    sub_group: float = SUB_GROUP
    secondary: int = 0

    def of(self, hidden: int) -> Zero:
        """These numbers for a model of a hidden size: what "auto" is."""
        return replace(self, bucket=float(hidden * hidden), by_width=False) if self.by_width else self


DEFAULTS = Zero()
"""Where nothing is known of the configuration."""


def zero_of(settings: Mapping[str, object]) -> Zero:
    """The numbers of ``zero_optimization``; what is absent or no number is DeepSpeed's default."""
    flat = flag(settings.get("contiguous_gradients", True)) is not False
    secondary = _number(settings, "zero_hpz_partition_size", 0)
    return Zero(
        bucket=_number(settings, "reduce_bucket_size", REDUCE_BUCKET) if flat else None,
        by_width=flat and text(settings.get("reduce_bucket_size")) == "auto",
        buffers=2 if flag(settings.get("overlap_comm", "")) else 1,
        live=_number(settings, "stage3_max_live_parameters", LIVE_PARAMETERS),
        sub_group=_number(settings, "sub_group_size", SUB_GROUP),
        secondary=int(secondary) if secondary > 1 else 0,
    )


def offloaded(zero: Mapping[str, object]) -> list[str]:
    """What ``zero_optimization`` puts into the host's memory: "param", "optimizer"; also by their old switches."""
    away = []
    for name, old in (("param", "cpu_offload_param"), ("optimizer", "cpu_offload")):
        to = zero.get(f"offload_{name}")
        device = text(to.get("device", "none")) if isinstance(to, Mapping) else "none"
        if device != "none" or flag(zero.get(old, "")):
            away.append(name)
    return away


def not_considered(settings: Mapping[str, object]) -> Iterator[str]:
    """What a whole configuration says that changes memory and is not planned, each with what it does."""
    zero = settings.get("zero_optimization")
    zero = zero if isinstance(zero, Mapping) else {}
    if (whole(zero.get("mics_shard_size")) or 0) > 0:
        yield "mics_shard_size: weights are shared by fewer ranks, so each holds more of them"
    if flag(zero.get("zero_quantized_nontrainable_weights", "")):
        yield "zero_quantized_nontrainable_weights: frozen weights are kept in 8 bits"
    for name in ("offload_param", "offload_optimizer"):
        to = zero.get(name)
        to = to if isinstance(to, Mapping) else {}
        if text(to.get("device")) == "nvme":
            yield f"{name} to nvme: what is put on the disk is counted in the host's memory"
        if share(to.get("ratio")):
            yield f"{name} with a ratio: what is not offloaded stays on the GPU"
    parallel = settings.get("tensor_parallel")
    if isinstance(parallel, Mapping) and (whole(parallel.get("autotp_size")) or 0) > 1:
        yield "tensor_parallel: each layer is parted over GPUs"
    types = settings.get("data_types")
    if isinstance(types, Mapping) and text(types.get("grad_accum_dtype")) == "fp32":
        yield "grad_accum_dtype fp32: gradients have 4 bytes"


def _number(settings: Mapping[str, object], name: str, default: float) -> float:
    given = whole(settings.get(name))
    return default if given is None or given < 0 else float(given)
