"""A transformer from the numbers in a job file: what is not written follows from the parameter count."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from sagefit.job.memory_model import TransformerModel
from sagefit.memory.architecture import count_params
from sagefit.memory.workload import Transformer

_PLAUSIBLE = 0.20  # relative difference beyond which params and the other numbers contradict each other


def from_numbers(given: TransformerModel) -> tuple[Transformer, list[str]]:
    """The transformer that ``given`` describes, and what was inferred or does not fit together."""
    model = _as_written(given)
    free = model.architecture != "encoder"
    guessed = {"ffn_size": given.ffn_size is None}
    guessed["mlp"] = free and given.mlp is None
    guessed["tie_embeddings"] = free and given.tie_embeddings is None
    # A gated and a plain MLP of fitting widths explain the same count; the gated one keeps more activations.
    gates = (True, False) if guessed["mlp"] and not guessed["ffn_size"] else (model.gated,)
    ties = (False, True) if guessed["tie_embeddings"] else (model.tied,)
    best = min((_completed(model, given, gated, tied) for gated, tied in product(gates, ties)), key=_oddness)
    notes = []
    if any(guessed.values()):
        said = {
            "mlp": f"mlp: {'gated' if best.gated else 'plain'}",
            "tie_embeddings": f"tie_embeddings: {str(best.tied).lower()}",
            "ffn_size": f"ffn_size: {best.ffn}",
        }
        notes.append(f"memory.model: from params, {', '.join(said[name] for name in said if guessed[name])}")
    if given.kv_heads is None and best.architecture == "decoder":
        notes.append(f"memory.model.kv_heads is not given; as many as heads, {best.heads}")
    counted = count_params(best)
    if abs(counted / best.params - 1) > _PLAUSIBLE:
        notes.append(
            f"memory.model.params is {best.params:.4g}, but the other numbers of memory.model make {counted:.4g} "
            f"parameters ({counted / best.params - 1:+.0%}); params is used"
        )
    return best, notes


def _as_written(given: TransformerModel) -> Transformer:
    """``given`` with defaults for what the count does not tell: an encoder is like BERT, a decoder like Llama."""
    encoder = given.architecture == "encoder"
    return Transformer(
        params=round(given.params),
        layers=given.layers,
        encoder_layers=(given.encoder_layers or given.layers) if given.architecture == "encoder-decoder" else 0,
        hidden=given.hidden_size,
        heads=given.heads,
        kv_heads=given.kv_heads or given.heads,
        head_dim=given.head_dim or given.hidden_size // given.heads,
        ffn=given.ffn_size or 0,
        vocab=given.vocab_size,
        name="memory.model",
        architecture=given.architecture,
        gated=given.mlp == "gated" if given.mlp or encoder else True,
        norm=given.norm or ("layer" if encoder else "rms"),
        dropout=encoder if given.dropout is None else given.dropout,
        tied=encoder if given.tie_embeddings is None else given.tie_embeddings,
        experts=given.experts,
        experts_per_token=given.experts_per_token or 1,
        shared_ffn=given.shared_ffn_size or 0,
    )


def _completed(model: Transformer, given: TransformerModel, gated: bool, tied: bool) -> Transformer:
    """``model`` with one choice made; a width that is not given is the one that explains the parameters."""
    model = replace(model, gated=gated, tied=tied, norm=given.norm or ("rms" if gated else "layer"))
    if given.ffn_size is not None:
        return model
    without, one = count_params(replace(model, ffn=0)), count_params(replace(model, ffn=1))
    return replace(model, ffn=max(1, round((model.params - without) / (one - without))))


def _oddness(model: Transformer) -> float:
    """How badly a choice explains the parameters, and a little, how unusual its width is.

    Usual is 4 x hidden size for a plain MLP and 8/3 to 3.5 x for a gated one (Shazeer 2020; the Llama family).
    """
    unexplained = abs(count_params(model) / model.params - 1)
    least, most = (2.6, 3.6) if model.gated else (4.0, 4.0)
    ratio = model.ffn * model.experts_per_token / model.hidden
    return unexplained + 0.01 * max(least - ratio, ratio - most, 0.0)
