"""What objectives other than plain supervised training need: pairs of texts, a second model, and sampling.

A step of preference training sends two answers of each example through the model, and most objectives compare with a
frozen model: a copy of the one that is trained (the reference), or a teacher. GRPO and GKD sample answers of the model
itself. Bytes of the losses were measured, to the byte, in the training steps of TRL's own trainers
(``tools/trace_objectives.py``: TRL 0.24, transformers 4.57, torch 2.13). TRL 1 computes them in tiles on a GPU, which
is ``loss: chunked``. Papers: Rafailov et al. 2023 (DPO), Hong et al. 2024 (ORPO), Xu et al. 2024 (CPO), Ethayarajh et
al. 2024 (KTO), Shao et al. 2024 (GRPO), Agarwal et al. 2024 (GKD).

Models of embeddings learn from texts that belong together (in-batch negatives, InfoNCE; a triplet names a negative,
too). Each text of an example goes through the model, and all their activations are there when the loss is computed. It
compares one vector of each text and needs no vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from sagefit.job.memory_model import Objective
from sagefit.memory.stacks import StackProfile
from sagefit.memory.workload import GIB, Placement, Transformer, Vision, Workload


@dataclass(frozen=True)
class Needs:
    """What one objective needs.

    sequences: how many go through the model for one example.
    mixed, half, whole: bytes for each of their tokens and entry of the vocabulary at the peak of the loss, in mixed
        precision, where the model is 16-bit throughout, and in fp32; 0 where the loss needs no logits.
    reference: whether it compares with a frozen copy of the model.
    samples: whether the model writes the answers that it is trained with.
    """

    sequences: int = 1
    mixed: float = 0.0
    half: float = 0.0
    whole: float = 0.0
    reference: bool = False
    samples: bool = False


NEEDS: dict[Objective, Needs] = {
    "supervised": Needs(),
    "dpo": Needs(sequences=2, mixed=10.1, half=4.9, whole=16.1, reference=True),
    "orpo": Needs(sequences=2, mixed=8.3, half=6.1, whole=18.0),
    "cpo": Needs(sequences=2, mixed=8.3, half=6.1, whole=18.0),
    "kto": Needs(mixed=14.0, half=8.0, whole=16.0, reference=True),
    "reward": Needs(sequences=2),
    "grpo": Needs(mixed=7.9, half=4.9, whole=16.1, reference=True, samples=True),
    "gkd": Needs(mixed=56.5, half=30.1, whole=60.1, samples=True),
    "contrastive": Needs(sequences=2),
    "triplet": Needs(sequences=3),
}
OF_EMBEDDINGS: tuple[Objective, ...] = ("contrastive", "triplet")
"""Objectives that encoders have, too."""
EMBEDDING_MODELS = (
    *("sentence-transformers/", "baai/bge-", "intfloat/e5", "intfloat/multilingual-e5", "thenlper/gte-"),
    *("alibaba-nlp/gte-", "nomic-ai/nomic-embed", "qwen/qwen3-embedding", "mixedbread-ai/mxbai-embed"),
)
"""How names of models begin that were trained to embed texts, and mostly are trained on with a contrastive loss."""
# Logits of the last token and what choosing the next makes of them, for each entry of the vocabulary of each sequence
# that is sampled: measured with the steps above, 31 bytes in mixed precision and 28 in 16 bits.
SAMPLED = 31.0
SHARE = 0.3
"""Of a GPU's memory: what vLLM takes inside of a trainer that does not say (TRL's ``vllm_gpu_memory_utilization``)."""


def loss_bytes(workload: Workload, profile: StackProfile) -> float:
    """Bytes for each token and entry of the vocabulary at the peak of the loss of an objective that compares.

    DeepSpeed's engine casts the model, so nothing is computed in mixed precision.
    """
    needs = NEEDS[workload.objective]
    if workload.precision == "fp32":
        return needs.whole
    autocast = workload.precision.endswith("mixed") and not _has_engine(workload, profile)
    return needs.mixed if autocast else needs.half


def frozen_model(model: Transformer, workload: Workload) -> Transformer | None:
    """The second model, which is only read: a teacher, or a copy of ``model``; None where there is none."""
    if workload.objective == "gkd":
        return workload.teacher or model
    return model if workload.reference else None


def frozen_bytes(model: Transformer, workload: Workload, placement: Placement, profile: StackProfile) -> float:
    """Bytes of the weights of the second model on one GPU.

    TRL loads a reference in the dtype of the model, and prepares it with the same engine: DeepSpeed casts it to the
    precision of the training, and shards it at stage 3 only; FSDP shards it as the model.
    """
    second = frozen_model(model, workload)
    if second is None:
        return 0.0
    ranks = workload.shards(placement)
    if workload.stage < 3 or (profile.fsdp and ranks == 1):
        return float(second.params * frozen_element(workload, profile))
    offloaded = workload.cpu_offload == "parameters"
    return 0.0 if offloaded else second.params * frozen_element(workload, profile) / ranks


def frozen_element(workload: Workload, profile: StackProfile) -> int:
    """Bytes of a weight of the second model."""
    if workload.precision == "fp32":
        return 4
    cast = _has_engine(workload, profile)
    teacher = workload.objective == "gkd" and profile.base_16_bit
    return 2 if cast or teacher or workload.precision == "bf16" else 4


def _has_engine(workload: Workload, profile: StackProfile) -> bool:
    """Whether an engine keeps the model in 16 bits, instead of autocast over fp32 weights."""
    return profile.engine or (workload.stage > 0 and not profile.fsdp)


def sampled(workload: Workload) -> int:
    """Sequences that the model writes at a time: those of all micro-batches of a step with GRPO."""
    return workload.micro_batch * (workload.accumulation if workload.objective == "grpo" else 1)


def sampling(model: Transformer, workload: Workload, profile: StackProfile) -> dict[str, float]:
    """Bytes of what sampling needs beside weights and optimizer: keys and values of all tokens, and the last logits.

    TRL gathers a sharded model for it (``ds3_gather_for_generation``, and FSDP's ``summon_full_params``).
    """
    sequences, element = sampled(workload), 4 if workload.precision == "fp32" else 2
    keys = 2 * model.kv_heads * model.head_dim * model.layers * element
    whole = 4 if workload.precision == "fp32" or (profile.fsdp and workload.precision != "bf16") else 2
    return {
        "activations": float(sequences * workload.sequence_length * keys),
        "logits": SAMPLED * sequences * model.vocab,
        "communication": float(whole * model.params) if workload.stage == 3 else 0.0,
    }


def sampler_bytes(workload: Workload, placement: Placement) -> float:
    """What vLLM holds of the memory of one GPU: a share that it is told."""
    if workload.sampler not in ("vllm", "vllm-sleeping"):
        return 0.0
    return workload.sampler_share * placement.gpu_gib * GIB


def depends_on_gpu(workload: Workload) -> bool:
    """Whether the model of GPU changes what ``workload`` needs there, and not only how many there are."""
    # Of vision models, memory without tensors was measured for each GPU; vLLM takes a share of what there is.
    return isinstance(workload.model, Vision) or workload.sampler.startswith("vllm")
