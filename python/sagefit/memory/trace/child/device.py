"""Makes torch on the CPU keep what it would keep on a GPU, and skips work that only fills memory with values."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.nn import functional, init

#: Operators that CUDA's autocast runs in fp32 and the CPU's does not (aten/src/ATen/autocast_mode.h, AT_FORALL_FP32).
_FP32 = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar "
    "pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm cosine_similarity "
    "cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss "
    "margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss "
    "binary_cross_entropy_with_logits dist cdist renorm logsumexp softmax.int log_softmax.int cumprod cumsum"
)
_KEPT: list[torch.library.Library] = []  # a library takes its operators away when it goes


def as_on_gpu() -> None:
    """Install all of it, for the rest of this process."""
    for name in dir(init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(init, name, _keep)
    functional.dropout = _dropout
    functional.scaled_dot_product_attention = _without_dropout(functional.scaled_dot_product_attention)
    torch.utils.swap_tensors = _swap
    torch.backends.mha.set_fastpath_enabled(False)  # evaluation would leave the traced operators
    _autocast_list()


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """The context of forward: autocast for mixed precision."""
    dtype = {"fp16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}.get(name)
    with torch.autocast("cpu", dtype=dtype) if dtype else contextlib.nullcontext():
        yield


def _keep(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Any initialiser: nobody reads the values."""
    return tensor


def _dropout(
    input: torch.Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,  # noqa: ARG001
) -> torch.Tensor:
    """The GPU keeps a mask of one byte for each element; the CPU one as large as the input."""
    return torch.native_dropout(input, p, True)[0] if training and p > 0 else input


def _without_dropout(attention: Callable[..., Any]) -> Callable[..., Any]:
    """With dropout the CPU leaves fused attention for a path that keeps the matrix of scores; GPUs do not."""

    def call(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,  # noqa: ARG001
        *rest: Any,
        **more: Any,
    ) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *rest, **more)

    return call


def _swap(one: torch.Tensor, other: torch.Tensor) -> None:
    """What Module.to does to a parameter. torch's own refuses tensors that something refers to weakly, as the fake
    mode does; for tensors without values there is no harm in it."""
    one.__dict__, other.__dict__ = other.__dict__, one.__dict__
    torch._C._swap_tensor_impl(one, other)


def _autocast_list() -> None:
    library = torch.library.Library("aten", "IMPL")
    _KEPT.append(library)
    warnings.filterwarnings("ignore", "Warning only once for all operators", UserWarning)
    for name in _FP32.split():
        operator, _, overload = name.partition(".")
        found = getattr(getattr(torch.ops.aten, operator, None), overload or "default", None)
        if found is not None:  # older releases lack some
            library.impl(name, _in_fp32(found), "AutocastCPU", allow_override=True)


def _in_fp32(operator: Callable[..., Any]) -> Callable[..., Any]:
    def cast(value: Any) -> Any:
        half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
        return value.float() if half else value

    def call(*arguments: Any, **keywords: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.AutocastCPU)):
            return operator(*map(cast, arguments), **{name: cast(value) for name, value in keywords.items()})

    return call
