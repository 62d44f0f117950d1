"""Run one training step of a vision model on the meta device and note every allocation and release.

The meta device computes shapes only, so a step takes well under a second and no memory. What CUDA does differently is
emulated: autocast casts by the CUDA list of operations (https://docs.pytorch.org/docs/stable/amp.html), and attention
keeps query, key, value, output and log-sum-exp as the fused kernels do, whatever the sequence length.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the field's name for it
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_HALF = """
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d prelu addmm addmv addr matmul __matmul__
__rmatmul__ einsum mm mv multi_dot baddbmm bmm addbmm chain_matmul linear lstm gru lstm_cell
"""
_FULL = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow __pow__ __rpow__ softplus layer_norm
native_layer_norm group_norm norm linalg_norm linalg_vector_norm cosine_similarity nll_loss nll_loss_nd
cross_entropy_loss mse_loss l1_loss smooth_l1_loss kl_div binary_cross_entropy_with_logits cdist pdist dist renorm
softmax log_softmax cumprod cumsum prod sum
"""
HALF, FULL = set(_HALF.split()), set(_FULL.split())
CONVOLUTIONS = (torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default)

# torch.nn.functional and Tensor.backward would call the function mode with themselves and hide what they call.
for _module in (F, torch._tensor):
    for _name in [name for name in vars(_module) if name.startswith("has_torch_function")]:
        setattr(_module, _name, lambda *_: False)


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, mask: Any) -> Any:
        *batch, length, width = *query.shape[:-1], value.shape[-1]
        # The kernels write (batch, length, heads, width), so that the model's transpose back copies nothing.
        out = query.new_empty(*batch[:-1], length, batch[-1], width).transpose(-2, -3) if len(batch) > 1 else value
        out = query.new_empty(*batch, length, width) if out is value else out
        ctx.save_for_backward(query, key, value, mask, out, query.new_empty(query.shape[:-1], dtype=torch.float32))
        return out

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        inputs = zip(ctx.saved_tensors[:4], ctx.needs_input_grad, strict=True)
        return tuple(torch.empty_like(t) if t is not None and needed else None for t, needed in inputs)


class _Attention:
    """Stands in for scaled_dot_product_attention; dropout changes no byte of the fused kernels."""

    autocast = False

    def __call__(self, query: Any, key: Any, value: Any, attn_mask: Any = None, *_: Any, **__: Any) -> Any:
        tensors = (query, key, value, attn_mask)
        if self.autocast:
            tensors = tuple(t if t is None else t.to(torch.bfloat16) for t in tensors)
        return _FusedAttention.apply(*tensors)


attention = _Attention()
F.scaled_dot_product_attention = attention


class Autocast(TorchFunctionMode):
    """CUDA's autocast to bfloat16: trained parameters are cast once, and the copies live as long as the graph.

    With ``keeps`` false they are cast whenever they are used, as in the recomputation of a checkpoint.
    """

    def __init__(self, *, keeps: bool = True) -> None:
        super().__init__()
        self.keeps = keeps
        self.copies: dict[int, torch.Tensor] = {}

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.dtype == dtype:
            return value
        if not (self.keeps and isinstance(value, torch.nn.Parameter) and value.requires_grad):
            return value.to(dtype)
        if id(value) not in self.copies:
            self.copies[id(value)] = value.to(dtype)
        return self.copies[id(value)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        dtype = torch.bfloat16 if name in HALF else torch.float32 if name in FULL else None
        kwargs = kwargs or {}
        if dtype is not None:
            args, kwargs = tree_map(lambda value: self._cast(value, dtype), (args, kwargs))
        return func(*args, **kwargs)


@dataclass
class Convolution:
    """One call of a convolution: where in the events, and what of cuDNN's choice of kernel depends on."""

    at: int
    kernel: tuple[int, ...]
    groups: int
    elements: int
    element_bytes: int


@dataclass(eq=False)
class Timeline(TorchDispatchMode):
    """Every storage that a step makes (number, bytes) and lets go of (minus number, bytes), in order."""

    model: torch.nn.Module
    events: list[tuple[int, int]] = field(default_factory=list)
    convolutions: list[Convolution] = field(default_factory=list)
    live: dict[int, Any] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    scores: set[tuple[int, ...]] = field(default_factory=set)
    attention: int = 0
    peak: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.own = {t.untyped_storage()._cdata for t in (*self.model.parameters(), *self.model.buffers())}
        self.count = self.bytes = 0

    def see(self, tensor: Any) -> None:
        """Note ``tensor``'s storage unless it is known."""
        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.live or key in self.own:
            return
        self.count += 1
        number = self.count
        self.events.append((number, size))
        self.numbers[key] = number
        self.bytes += size
        self.peak = max(self.peak, self.bytes)

        def gone(_: object) -> None:
            self.events.append((-number, size))
            self.bytes -= size
            self.live.pop(key, None)

        self.live[key] = (weakref.ref(storage, gone), size, tuple(sorted(tensor.shape)))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        results = out if isinstance(out, tuple | list) else (out,)
        for tensor in results:
            self.see(tensor)
        if func in CONVOLUTIONS:
            first, second, *rest = args
            backward = func is CONVOLUTIONS[1]
            weight = rest[0] if backward else second
            ends = (first, second) if backward else (first, out)
            self.convolutions.append(
                Convolution(
                    at=len(self.events),
                    kernel=tuple(weight.shape),
                    groups=args[9] if backward else args[8],
                    elements=sum(t.numel() for t in ends),
                    element_bytes=first.element_size(),
                )
            )
        elif func is torch.ops.aten._softmax.default and out.dim() == 4:
            self.scores.add(tuple(out.shape))
        return out


def step(model: torch.nn.Module, size: tuple[int, int], batch: int, autocast: bool) -> Timeline:
    """Forward, loss and backward of ``batch`` images; gradients of parameters are alive at the end."""
    model.zero_grad(set_to_none=True)
    timeline = Timeline(model)
    images = torch.empty(batch, 3, *size, device="meta")
    labels = torch.empty(batch, dtype=torch.long, device="meta")
    attention.autocast = autocast
    with timeline, torch.device("meta"):
        timeline.see(images)
        if autocast:
            with Autocast():
                out = model(images)
        else:
            out = model(images)
        heads = out if isinstance(out, tuple | list) else (out,)
        loss: Any = sum(F.cross_entropy(head.flatten(1).float(), labels) for head in heads)
        del out, heads
        # Scores between all tokens grow with the square of their number; those within windows do not.
        whole = {tuple(sorted(shape)) for shape in timeline.scores if shape[0] == batch}
        timeline.attention = sum(size for _, size, shape in timeline.live.values() if shape in whole)
        loss.backward()
    return timeline


def evaluation(model: torch.nn.Module, size: tuple[int, int], batch: int) -> Timeline:
    """Forward of ``batch`` images without gradients, in fp32."""
    timeline = Timeline(model)
    attention.autocast = False
    images = torch.empty(batch, 3, *size, device="meta")
    with timeline, torch.device("meta"), torch.no_grad():
        timeline.see(images)
        model(images)
    return timeline
