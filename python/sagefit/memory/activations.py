"""What a transformer saves for backward, in bytes for each token of a micro-batch.

After Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer Models"), whose 34 h + 5 a s
bytes are a GPT layer in 16 bits with dropout, and the copies that Hugging Face's implementations add.
Symbols: h hidden size, a heads, s sequence length, F width of the MLP, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from sagefit.memory.stacks import PROFILES, StackProfile
from sagefit.memory.workload import Transformer, Workload

STANDARD = StackProfile()


def element_size(workload: Workload) -> int:
    """Bytes of an activation: autocast and pure 16-bit training have 2."""
    return 4 if workload.precision == "fp32" else 2


@dataclass(frozen=True)
class Tower:
    """Layers that see sequences of one length: a decoder, or an encoder. ``other`` is the length that it attends to."""

    layers: int
    length: int
    other: int = 0


def towers(model: Transformer, workload: Workload) -> list[Tower]:
    """The decoder (or the encoder of an encoder), and what an encoder-decoder has besides."""
    if model.architecture != "encoder-decoder":
        return [Tower(model.layers, workload.sequence_length)]
    length = workload.encoder_length or workload.sequence_length
    return [Tower(model.layers, workload.sequence_length, length), Tower(model.encoder_layers, length)]


def layer(model: Transformer, workload: Workload, profile: StackProfile, tower: Tower) -> float:
    """What one layer saves without checkpointing."""
    h, element = model.hidden, element_size(workload)
    q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    norms = _norms(model, workload, profile)
    keys = 2 * (q if profile.repeat_kv and workload.attention != "flash" else kv)
    score = model.heads * _softmax(model, workload, profile) if is_eager(model, workload) else 0.0
    # q, k, v, the output (which the next linear layer needs too), and the log-sum-exp of the softmax.
    attention = element * (2 * q + keys) + 4.0 * model.heads + score * tower.length
    width = model.ffn * model.experts_per_token + model.shared_ffn
    mlp = element * (4 if model.gated else 2) * width
    if adapts_attention_only(workload, profile):
        mlp -= element * width  # the product feeds a frozen layer, which needs no input for its gradient
    masks = 2 * h if model.dropout else 0
    cross = 0.0
    if tower.other:
        # A decoder layer attends to the encoder too: a norm, q and output, and keys and values of the encoder's tokens.
        cross = norms / 2 + element * (2 * q + keys * tower.other / tower.length) + score * tower.other
    return norms + attention + mlp + masks + cross


def _norms(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """Two norms: what each saves of its input, and its output, which the next linear layer saves.

    A frozen layer needs no input for its gradient, so under LoRA an RMS norm saves only the fp32 copy of its input,
    and its output is saved for adapters alone.
    """
    element, h = element_size(workload), model.hidden
    outputs = 1 if adapts_attention_only(workload, profile) else 2
    if model.norm == "layer":
        # Saves its input. Under autocast it runs in fp32 (4 in, 4 out), and the linear layer saves a 16-bit copy.
        if workload.precision.endswith("mixed") and not profile.engine:
            return 2.0 * 8 * h + 2 * outputs * h + 8
        return float((2 + outputs) * element * h + 8)
    own = profile.norm if element == 2 else 2.0 * element
    return 2.0 * (own if workload.method == "full" else min(own, 4.0)) * h + outputs * element * h


def adapts_attention_only(workload: Workload, profile: StackProfile) -> bool:
    """Whether LoRA adapts the attention's projections only."""
    return workload.method != "full" and (workload.lora_targets or profile.lora_targets) == "attention"


def is_eager(model: Transformer, workload: Workload) -> bool:
    """Whether attention scores are computed in full, by choice or because the model's code always does."""
    return workload.attention == "eager" or model.position_bias


def _softmax(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """Bytes kept of each attention score: an fp32 softmax, its 16-bit copy, the dropout mask and what it leaves."""
    element = element_size(workload)
    after = 1 + element if model.dropout else (element if element == 2 else 0)
    before = 4 if profile.old_torch and model.norm == "layer" else 0
    return 4.0 + after + before


def score_gradients(model: Transformer, workload: Workload, tower: Tower) -> float:
    """Gradients of one layer's attention scores, into and out of the softmax, in fp32 and cast."""
    if not is_eager(model, workload):
        return 0.0
    element = element_size(workload)
    return 2.0 * (4 + (element if element == 2 else 0)) * model.heads * max(tower.length, tower.other)


def layer_input(model: Transformer, workload: Workload) -> float:
    """The input of a layer, all that full checkpointing keeps of it."""
    wide = workload.precision == "fp32" or (model.norm == "layer" and workload.precision.endswith("mixed"))
    return (4.0 if wide else 2.0) * model.hidden


def selective(model: Transformer, workload: Workload) -> float:
    """What selective checkpointing keeps of a layer: its input, attention and every second matrix product."""
    q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    products = q + 2 * kv + 2 * model.hidden + (2 if model.gated else 1) * model.ffn
    return element_size(workload) * (products / 2 + q) + layer_input(model, workload)


def logits(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """Logits and what the loss makes of them, at their peak."""
    return _logit_copies(model, workload, profile) * model.vocab


def _logit_copies(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    if model.head != "lm":
        return 0.0
    if workload.loss == "fused":
        return min(profile.logits, PROFILES["hf-liger"].logits)
    if workload.loss == "chunked":
        return min(profile.logits, PROFILES["torchtune"].logits)
    used = profile
    if workload.loss == "standard" and profile.logits < STANDARD.logits:
        used = STANDARD
    if workload.sharding != "none" and not profile.fsdp and used.logits > PROFILES["deepspeed"].logits:
        used = PROFILES["deepspeed"]  # its engine casts the model; nothing wraps the model to return fp32
    copies = used.logits_checkpointed if workload.gradient_checkpointing else used.logits
    # In fp32 nothing is smaller: logits, log-softmax, and the gradient of each.
    return max(copies, 16.0) if workload.precision == "fp32" and copies >= STANDARD.logits_checkpointed else copies
