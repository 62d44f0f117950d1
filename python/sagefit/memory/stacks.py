"""What training software adds: the same model needs different memory under different stacks.

Every figure is a count of bytes with a structural reason, or comes from published runs of that stack, as its comment
says. A workload with an unknown stack is predicted with each stack, and the worst counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sagefit.job.memory_model import (
    DECODERS_ONLY,
    WITHOUT_FSDP,
    LoraTargets,
    Sharding,
    Stack,
)


@dataclass(frozen=True)
class StackProfile:
    """How one training stack uses memory.

    logits: bytes for each token and vocabulary entry at the peak of the loss (logits, their fp32 copy, log-softmax,
        gradients); ``logits_checkpointed`` the same when activations are checkpointed.
    norm: bytes that an RMS norm keeps for each hidden element beyond its output, in 16-bit training.
    repeat_kv: keys and values are repeated to all heads before attention (Hugging Face ``repeat_kv``).
    adapter: bytes of one LoRA weight, of its gradient and of each optimizer moment.
    float_embeddings: QLoRA turns what is not quantized into fp32 (PEFT ``prepare_model_for_kbit_training``).
    step: bytes of temporaries for each byte of trained weights in the optimizer step (``foreach`` has 1, fused 0).
    engine: mixed precision keeps 16-bit weights and fp32 masters, instead of fp32 weights under autocast.
    main_gradients: gradients are summed into fp32 buffers that are never freed (Megatron: 18 bytes a parameter).
    fsdp: what a job calls ZeRO is PyTorch's FSDP here, else DeepSpeed's.
    old_torch: releases before torch 2.0 are in use too, unless the job's image has a newer one: attention keeps the
        softmax's input (before 1.12), and ``zero_grad`` keeps gradients through the forward pass.
    selective: checkpointing recomputes only some operations of a layer.
    base_16_bit: LoRA's frozen weights are loaded in 16 bits even in mixed precision. Hugging Face's
        ``from_pretrained`` loads fp32 unless told otherwise.
    lora_targets: the layers that LoRA adapts when the job file does not say.
    fused_mlp: the MLP's activation function is one kernel, which saves its two inputs and computes the rest again.
    lora_dropout: adapters are trained with dropout, so each saves a copy of its input.
    unties: the head has weights of its own even where the model ties it to the embedding.
    expandable_segments: it starts with torch's allocator set so (torchtitan's ``run_train.sh``).
    gathers_at_load: a sharded model is gathered on each rank when the pretrained weights are loaded (Lightning Fabric's
        ``_load_raw_module_state``, which LitGPT calls).
    """

    logits: float = 14
    logits_checkpointed: float = 12
    norm: float = 6
    repeat_kv: bool = True
    adapter: int = 4
    float_embeddings: bool = False
    step: float = 1
    engine: bool = False
    main_gradients: bool = False
    fsdp: bool = False
    old_torch: bool = False
    selective: bool = False
    base_16_bit: bool = False
    lora_targets: LoraTargets = "all-linear"
    unties: bool = False
    fused_mlp: bool = False
    lora_dropout: bool = True
    expandable_segments: bool = False
    gathers_at_load: bool = False


# Logits. In HF Transformers with bf16: 2 logits + 4 upcast + 4 log-softmax + 4 gradient, 12 measured when
# checkpointing. ms-swift's
# runs grow by about 30 (it also computes accuracy from them). LitGPT and torchtune compute the loss in chunks,
# Liger in the kernel of the head; Megatron's is parallel over the vocabulary.
PROFILES: dict[Stack, StackProfile] = {
    "hf-trainer": StackProfile(float_embeddings=True, old_torch=True),
    "hf-liger": StackProfile(logits=0.5, logits_checkpointed=0.5, norm=2, float_embeddings=True, fused_mlp=True),
    "ms-swift": StackProfile(logits=30, logits_checkpointed=30, float_embeddings=True, base_16_bit=True),
    "torchtune": StackProfile(
        logits=4, logits_checkpointed=4, adapter=2, base_16_bit=True, step=0, fsdp=True, lora_dropout=False
    ),
    "litgpt": StackProfile(
        logits=6,
        logits_checkpointed=6,
        repeat_kv=False,
        adapter=2,
        fsdp=True,
        base_16_bit=False,
        lora_targets="attention",
        unties=True,
        gathers_at_load=True,
    ),
    "torchtitan": StackProfile(
        logits=16, logits_checkpointed=16, step=0, fsdp=True, selective=True, expandable_segments=True
    ),
    "deepspeed": StackProfile(step=0, engine=True, base_16_bit=True),
    "megatron": StackProfile(
        logits=4, logits_checkpointed=4, norm=2, repeat_kv=False, step=0, engine=True, main_gradients=True
    ),
    "plain-torch": StackProfile(fsdp=True),
    "tensorflow": StackProfile(logits=16, logits_checkpointed=16),
}


def profile_of(stack: Stack, sharding: Sharding) -> StackProfile:
    """The profile of ``stack``, with FSDP where ``sharding`` says so."""
    profile = PROFILES[stack]
    return replace(profile, fsdp=True) if sharding.startswith("fsdp") and not profile.fsdp else profile


def stacks_with(sharding: Sharding, architecture: str = "decoder") -> tuple[Stack, ...]:
    """The stacks that can shard so, and train a transformer of this ``architecture``.

    FSDP is PyTorch's, and an engine of its own shards in its own way. One without QLoRA stays where the method is
    QLoRA: measured runs of others needed more than all that have it would say.
    """
    unable = {
        *(WITHOUT_FSDP if sharding.startswith("fsdp") else ()),
        *(DECODERS_ONLY if architecture != "decoder" else ()),
    }
    return tuple(stack for stack in PROFILES if stack not in unable)
