"""What a transformer saves for backward, in bytes for each token of a micro-batch.

After Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer Models"), whose 34 h + 5 a s
bytes are a GPT layer in 16 bits with dropout, and the copies that Hugging Face's implementations add.
Symbols: h hidden size, a heads, s sequence length, F width of the MLP, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from sagefit.memory.objectives import loss_bytes
from sagefit.memory.software import older_than
from sagefit.memory.stacks import PROFILES, StackProfile
from sagefit.memory.states import INT8, quantized
from sagefit.memory.workload import Transformer, VisionTower, Workload

STANDARD = StackProfile()


def element_size(workload: Workload) -> int:
    """Bytes of an activation: autocast and pure 16-bit training have 2."""
    return 4 if workload.precision == "fp32" else 2


@dataclass(frozen=True)
class Tower:
    """Layers that see sequences of one length: a decoder, or an encoder. ``other`` is the length that it attends to.

    ``model`` has the numbers of these layers.
    """

    layers: int
    length: int
    model: Transformer
    other: int = 0


def towers(model: Transformer, workload: Workload) -> list[Tower]:
    """The decoder (or the encoder of an encoder), what an encoder-decoder has besides, and a tower that sees."""
    if model.architecture != "encoder-decoder":
        seeing = [_seeing(model.tower, workload)] if model.tower and _is_kept(workload) else []
        return [Tower(model.layers, workload.sequence_length, model), *seeing]
    length = workload.encoder_length or workload.sequence_length
    return [Tower(model.layers, workload.sequence_length, model, length), Tower(model.encoder_layers, length, model)]


def _is_kept(workload: Workload) -> bool:
    """Whether a vision tower keeps anything for backward.

    With adapters and checkpointing PEFT makes the input of the tower require a gradient, as that of the language model
    (``enable_input_require_grads``), so a frozen tower keeps the input of each of its layers too.
    """
    if not workload.image_tokens:
        return False
    return workload.vision_tower == "trained" or (workload.method != "full" and workload.gradient_checkpointing)


def _seeing(tower: VisionTower, workload: Workload) -> Tower:
    """A vision tower as layers of a transformer."""
    shape = Transformer(
        params=tower.params,
        layers=tower.layers,
        hidden=tower.hidden,
        heads=tower.heads,
        kv_heads=tower.heads,
        head_dim=tower.hidden // tower.heads,
        ffn=tower.ffn,
        vocab=1,
        gated=tower.gated,
        norm=tower.norm,
    )
    return Tower(tower.layers, workload.image_tokens * tower.patches, shape)


def layer(model: Transformer, workload: Workload, profile: StackProfile, tower: Tower) -> float:
    """What one layer saves without checkpointing."""
    h, element = model.hidden, element_size(workload)
    q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    norms = _norms(model, workload, profile)
    adapted = _adapter_input(workload, profile)
    keys = 2 * (q if profile.repeat_kv and workload.attention != "flash" else kv)
    score = model.heads * _softmax(model, workload, profile) if is_eager(model, workload) else 0.0
    # q, k, v, the output (which the next linear layer needs too), and the log-sum-exp of the softmax.
    attention = element * (2 * q + keys) + 4.0 * model.heads + score * tower.length
    if adapted > element:
        attention += adapted * q  # a copy of the attention's output
    mlp = _mlp(model, workload, profile)
    masks = 2 * h if model.dropout else 0
    cross = 0.0
    if tower.other:
        # A decoder layer attends to the encoder too: a norm, q and output, and keys and values of the encoder's tokens.
        cross = norms / 2 + element * (2 * q + keys * tower.other / tower.length) + score * tower.other
    return norms + attention + mlp + masks + cross + _of_8_bits(model, workload, profile)


def _of_8_bits(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """What linear layers with 8-bit weights save besides: their input, and that in 8 bits.

    bitsandbytes' ``MatMul8bitLt`` keeps both, as it was given and as it was quantized, though nothing is computed from
    them where only adapters are trained. The input of the attention's last layer is kept anyway.
    """
    if quantized(workload) != INT8:
        return 0.0
    own = 4 if is_prepared(workload, profile) else element_size(workload)
    readers = 3 + (2 if model.gated else 1)
    small = float(readers * model.hidden + model.heads * model.head_dim + width(model))
    return small + float(own * (2 * model.hidden + width(model)))


def width(model: Transformer) -> int:
    """Width of the MLP that a token sees."""
    return model.ffn * model.experts_per_token + model.shared_ffn


def _mlp(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """What activation function, product and the last linear layer save.

    A fused kernel keeps the outputs of the first layers only, and computes the activation again. A 4-bit layer of
    bitsandbytes returns the dtype of its input, so outputs are fp32 where the stream is.
    """
    element = element_size(workload)
    outputs = (2 if profile.fused_mlp else 3) if model.gated else 1
    own = 4 if is_prepared(workload, profile) else element
    saved = element if workload.method == "full" else _adapter_input(workload, profile)
    if adapts_attention_only(workload, profile):
        saved = 0.0  # the product feeds a frozen layer, which needs no input for its gradient
    return float(own * outputs + saved) * width(model)


def _adapter_input(workload: Workload, profile: StackProfile) -> float:
    """Bytes that a LoRA adapter saves of each element of its input: with dropout a copy, and the mask."""
    own = 4 if workload.precision == "bf16" and is_prepared(workload, profile) else element_size(workload)
    return own + 1.0 if workload.method != "full" and profile.lora_dropout else float(own)


def is_prepared(workload: Workload, profile: StackProfile) -> bool:
    """Whether what flows between quantized layers is fp32 (PEFT ``prepare_model_for_kbit_training``).

    Sharded weights are not prepared. Yet QLoRA under Accelerate's FSDP was measured to have an fp32 stream, as LoRA has
    there (see `wide_stream`): fms-acceleration's runs, whose own code leaves the preparation out.
    """
    if workload.stage == 3 and not (profile.fsdp and workload.precision.endswith("mixed")):
        return False
    return quantized(workload) > 0 and profile.float_embeddings


def wide_stream(workload: Workload, profile: StackProfile) -> bool:
    """Whether the residual stream is fp32 although layers compute in 16 bits: autocast over fp32 weights.

    An embedding of fp32 begins it, and an RMS norm returns the dtype of its input. FSDP casts the embedding too. Yet
    LoRA under Accelerate's FSDP has an fp32 stream: fms-acceleration's runs of Mistral-7B grow by 2 h more for each
    token and layer than on one GPU (those of PowerLM-3b do not; the larger counts).
    """
    if workload.precision == "fp32" or is_prepared(workload, profile):
        return True
    by_fsdp = profile.fsdp and workload.sharding != "none"
    if not workload.precision.endswith("mixed") or profile.engine or workload.stage == 3 or by_fsdp:
        accelerate = by_fsdp and profile.float_embeddings
        return accelerate and workload.method == "lora" and workload.precision.endswith("mixed")
    if workload.method == "full":
        return True
    return workload.base_dtype == "fp32" or (workload.base_dtype == "default" and not profile.base_16_bit)


def _norms(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """Two norms: what each saves of its input, and what the linear layers behind it save of its output.

    A frozen layer needs no input for its gradient, so under LoRA an RMS norm saves only the fp32 copy of its input,
    and its output is saved for adapters alone. Where the stream is fp32, each layer saves a 16-bit copy of its own.
    """
    element, h = element_size(workload), model.hidden
    wide = wide_stream(workload, profile) and element == 2
    readers = 3 if adapts_attention_only(workload, profile) else 3 + (2 if model.gated else 1)
    adapted = _adapter_input(workload, profile)
    if workload.method != "full" and adapted > element:
        outputs = adapted * readers
    elif wide:
        outputs = float(element * readers)
    else:
        outputs = float(element * (1 if adapts_attention_only(workload, profile) else 2))
    if model.norm == "layer":
        # Saves its input. Under autocast it runs in fp32, in and out, and linear layers save a 16-bit copy each.
        if workload.precision.endswith("mixed") and not profile.engine:
            return (2.0 * 4 + outputs) * h + 8
        return (2 * element + outputs) * h + 8
    if element == 4:
        own = 2.0 * element
    elif wide:
        own = profile.norm + 2
    else:
        own = profile.norm
    return (2.0 * (own if workload.method == "full" else min(own, 4.0)) + outputs) * h


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
    before = 4 if profile.old_torch and older_than(workload.torch, (1, 12)) and model.norm == "layer" else 0
    return 4.0 + after + before


def score_gradients(model: Transformer, workload: Workload, tower: Tower) -> float:
    """Gradients of one layer's attention scores, into and out of the softmax, in fp32 and cast."""
    if not is_eager(model, workload):
        return 0.0
    element = element_size(workload)
    return 2.0 * (4 + (element if element == 2 else 0)) * model.heads * max(tower.length, tower.other)


def mlp_gradients(model: Transformer, workload: Workload) -> float:
    """Gradients of the MLP's width that live at once in backward: of the product, into and out of both factors."""
    return float((5 if model.gated else 3) * element_size(workload) * width(model))


def layer_input(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """The input of a layer, all that full checkpointing keeps of it."""
    by_norm = model.norm == "layer" and workload.precision.endswith("mixed")
    return (4.0 if by_norm or wide_stream(workload, profile) else 2.0) * model.hidden


def selective(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """What selective checkpointing keeps of a layer: its input, attention and every second matrix product."""
    q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    products = q + 2 * kv + 2 * model.hidden + (2 if model.gated else 1) * model.ffn
    return element_size(workload) * (products / 2 + q) + layer_input(model, workload, profile)


def logits(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """Logits and what the loss makes of them, at their peak."""
    return _logit_copies(model, workload, profile) * model.vocab


def _logit_copies(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    if model.head != "lm":
        return 0.0
    if workload.objective != "supervised":
        return _compared(loss_bytes(workload, profile), workload)
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


def _compared(copies: float, workload: Workload) -> float:
    """Bytes of an objective's own loss, which a stack's usual loss does not replace."""
    if workload.loss not in ("fused", "chunked"):
        return copies
    return min(copies, PROFILES["hf-liger" if workload.loss == "fused" else "torchtune"].logits)
