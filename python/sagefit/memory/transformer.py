"""Peak GPU memory of training a transformer, by phase and part, in bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from sagefit.job.memory_model import Stack
from sagefit.memory import activations, objectives
from sagefit.memory.architecture import adapter_params, embedding_params, tower_adapters
from sagefit.memory.overhead import peak, with_overhead
from sagefit.memory.software import older_than
from sagefit.memory.stacks import StackProfile, profile_of, stacks_with
from sagefit.memory.states import State, model_state
from sagefit.memory.workload import Phases, Placement, Transformer, Workload


@dataclass(frozen=True)
class Sizes:
    """Elements of a transformer's parameters, by what quantization, adapters and sharding treat differently."""

    embedding: float
    linear: float
    layer: float
    adapters: float


def sizes(model: Transformer, workload: Workload, profile: StackProfile) -> Sizes:
    """Count elements. The stated parameter count is the truth; all that is no embedding counts as linear layers."""
    embedding: float = embedding_params(model)
    if embedding >= model.params:  # the numbers contradict each other, which reading them has noted
        embedding = 0.9 * model.params
    linear = model.params - embedding - frozen_tower(model, workload)
    seeing = model.tower.params if model.tower else 0
    layer = (model.params - seeing - embedding) / (model.layers + model.encoder_layers)
    if profile.unties and model.tied:
        embedding += model.vocab * model.hidden
    targets = workload.lora_targets or profile.lora_targets
    adapters = 0 if workload.method == "full" else adapter_params(model, workload.lora_rank, targets)
    if adapters and model.tower and workload.vision_tower == "trained" and targets == "all-linear":
        adapters += tower_adapters(model.tower, workload.lora_rank)
    return Sizes(embedding, linear, layer, float(adapters))


def frozen_tower(model: Transformer, workload: Workload) -> int:
    """Parameters of a vision tower that stay as they are while all others are trained; adapters train none at all."""
    return model.tower.params if model.tower and workload.method == "full" and workload.vision_tower == "frozen" else 0


def gpu_phases(model: Transformer, workload: Workload, placement: Placement) -> Phases:
    """Bytes of one GPU by phase and part. An unknown stack is predicted as the one that needs most."""
    stack = worst_stack(model, workload, placement) if workload.stack == "unknown" else workload.stack
    return _device_phases(model, workload, placement, stack)


@lru_cache(maxsize=4096)
def worst_stack(model: Transformer, workload: Workload, placement: Placement) -> Stack:
    """The known stack under which this workload needs most."""
    able = stacks_with(workload.sharding, model.architecture)
    return max(able, key=lambda stack: peak(_device_phases(model, workload, placement, stack)))


def _device_phases(model: Transformer, workload: Workload, placement: Placement, stack: Stack) -> Phases:
    profile, ranks = profile_of(stack, workload.sharding), workload.ranks(placement)
    phases, moments = _phases(model, workload, placement, profile)
    expandable = profile.expandable_segments or workload.expandable_segments
    frees = profile.old_torch and not expandable
    if not profile.fsdp or workload.stage < 3 or ranks == 1 or expandable:
        return with_overhead(phases, ranks, frees=frees)
    # Where weights are next to nothing, pools are no reason to call sharding dearer than whole weights on each rank.
    gathered = workload.sharding == "fsdp-shard-grad-op" or not workload.wrapped
    whole = tensor_phases(model, replace(workload, sharding="none" if gathered else "zero2"), placement, profile)
    del whole["load"]  # before there are pools
    within = peak(with_overhead(whole, ranks, frees=frees))
    return with_overhead(phases, ranks, moments=moments, pools_within=within)


def tensor_phases(
    model: Transformer, workload: Workload, placement: Placement, profile: StackProfile, *, gradients: bool = True
) -> Phases:
    """Bytes of tensors of one rank by phase and part, under the stack that ``profile`` describes.

    ``gradients`` says that gradients of activations count, of those that live at once.
    """
    return _phases(model, workload, placement, profile, gradients=gradients)[0]


def _phases(
    model: Transformer, workload: Workload, placement: Placement, profile: StackProfile, *, gradients: bool = True
) -> tuple[Phases, Phases]:
    """The phases as ``tensor_phases`` gives them, and the moments of training: backward has two, and is the larger."""
    counts = sizes(model, workload, profile)
    state = model_state(workload, placement, profile, counts)
    sequences = workload.micro_batch * objectives.NEEDS[workload.objective].sequences
    logits = activations.logits(model, workload, profile) * sequences * workload.sequence_length
    saved = _Saved.of(model, workload, profile, gradients=gradients)
    # What is kept of an earlier micro-batch, or by design, is there in the forward pass already.
    keeps = profile.old_torch and older_than(workload.torch, (2, 0))
    always = state.gradients if keeps or profile.main_gradients else 0.0
    old = state.gradients if workload.accumulation > 1 else always

    shards = workload.shards(placement) if workload.stage == 3 else 1
    gathers = profile.gathers_at_load and shards > 1 and workload.cpu_offload != "parameters"
    # DistributedDataParallel keeps its buckets; a sharded engine has them while gradients travel.
    kept, travelling = (state.buckets, 0.0) if workload.sharding == "none" else (0.0, state.buckets)
    sampler = objectives.sampler_bytes(workload, placement)
    base = {
        "weights": state.weights,
        "optimizer": state.optimizer,
        "communication": kept,
        "second model": objectives.frozen_bytes(model, workload, placement, profile),
        "vision tower": objectives.frozen_element(workload, profile)
        * frozen_tower(model, workload)
        / (workload.shards(placement) if workload.stage == 3 else 1),
        "sampler": 0.0 if workload.sampler == "vllm-sleeping" else sampler,
    }
    # Forward ends with all activations and the loss.
    forward = base | {
        "gradients": old,
        "activations": saved.kept,
        "logits": logits,
        "temporaries": state.cast_copies + _read_only(model, workload, profile),
        "communication": kept + state.gathered,
    }
    # Backward starts with all activations and old gradients, and ends with one layer's and all gradients.
    # Checkpointing casts again the layer that it recomputes.
    casts = state.cast_copies * (counts.layer / counts.linear if workload.gradient_checkpointing else 1.0)
    start = base | {"gradients": old, "activations": saved.most, "temporaries": casts + saved.live}
    end = base | {"gradients": state.gradients, "activations": saved.last, "temporaries": saved.live}
    # Meanwhile gradients travel.
    start, end = ({**parts, "communication": kept + state.gathered + travelling} for parts in (start, end))
    phases = {
        "load": {
            "weights": state.weights,
            "temporaries": state.load,
            "second model": base["second model"],
            "communication": state.weights * shards if gathers else 0.0,
        },
        "forward": forward,
        "backward": max(start, end, key=lambda parts: sum(parts.values())),
        "step": base | {"gradients": state.gradients, "temporaries": state.step},
        "checkpoint": base | {"communication": kept + state.gathered},
    }
    if workload.sampler == "transformers":
        # GRPO samples before the first of the micro-batches, GKD before each.
        present = always if workload.objective == "grpo" else old
        phases["sampling"] = base | {"gradients": present} | objectives.sampling(model, workload, profile)
    elif workload.sampler == "vllm-sleeping":
        phases["sampling"] = base | {"sampler": sampler}
    if workload.evaluation_batch is not None:
        phases["evaluation"] = base | _evaluation(model, workload, profile, state)
    return phases, {"forward": forward, "start": start, "end": end, "step": phases["step"]}


@dataclass(frozen=True)
class _Saved:
    """Bytes of activations: those kept after the forward pass, the most in backward, those of one layer, and of the
    gradients of its attention scores or its MLP."""

    kept: float
    most: float
    last: float
    live: float

    @staticmethod
    def of(model: Transformer, workload: Workload, profile: StackProfile, *, gradients: bool) -> _Saved:
        whole = kept = last = live = 0.0
        selective = workload.checkpointing == "selective" or (workload.checkpointing == "default" and profile.selective)
        each = activations.selective if selective else activations.layer_input
        towers = activations.towers(model, workload)
        for tower in towers:
            tokens = workload.micro_batch * objectives.NEEDS[workload.objective].sequences * tower.length
            layer = activations.layer(tower.model, workload, profile, tower) * tokens
            whole += layer * tower.layers
            kept += min(layer, each(tower.model, workload, profile) * tokens) * tower.layers
            last = max(last, layer)
            live = max(live, activations.score_gradients(tower.model, workload, tower) * tokens)
            if gradients:
                live = max(live, activations.mlp_gradients(tower.model, workload) * tokens)
        if not workload.gradient_checkpointing:
            return _Saved(whole, whole, last, live)
        # Backward recomputes one layer.
        return _Saved(kept, min(whole, kept + last), last, live)


def _read_only(model: Transformer, workload: Workload, profile: StackProfile) -> float:
    """Activations of the second model: one layer's at a time, as nothing is kept for backward."""
    second = objectives.frozen_model(model, workload)
    if second is None:
        return 0.0
    sequences = workload.micro_batch * objectives.NEEDS[workload.objective].sequences
    return max(
        activations.layer(tower.model, workload, profile, tower) * sequences * tower.length
        for tower in activations.towers(second, workload)
    )


def _evaluation(model: Transformer, workload: Workload, profile: StackProfile, state: State) -> dict[str, float]:
    """Without gradients one layer's activations live at a time; logits and their fp32 copy are kept."""
    batch = (workload.evaluation_batch or 0) * objectives.NEEDS[workload.objective].sequences
    tokens = batch * workload.sequence_length
    layers = [(activations.layer(t.model, workload, profile, t), t.length) for t in activations.towers(model, workload)]
    return {
        "activations": max(layer * batch * length for layer, length in layers),
        "logits": (6.0 if model.head == "lm" else 0.0) * tokens * model.vocab,
        "communication": state.gathered,
    }
