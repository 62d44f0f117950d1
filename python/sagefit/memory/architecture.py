"""How many parameters a transformer has, from its numbers.

Counts follow the layers of Hugging Face's implementations: four projections of attention, two or three matrices of
the MLP, two norms a layer. What differs between families by less than a percent (norms of queries and keys, biases
of gated MLPs, latent projections) is left out.
"""

from __future__ import annotations

from dataclasses import replace

from sagefit.job.memory_model import LoraTargets
from sagefit.memory.workload import Transformer, VisionTower


def count_params(model: Transformer) -> int:
    """Parameters of ``model`` but for learned positions and what is no transformer (towers, convolutions).

    An encoder is counted with the dense layer that its heads start with: the pooler of BERT and what stands for it
    in other families.
    """
    stacks = 2 if model.architecture == "encoder-decoder" else 1
    layers = (model.layers + model.encoder_layers) * _block(model) + stacks * _norm(model)  # a last norm each
    if model.dense_layers:
        dense = replace(model, ffn=model.dense_ffn, experts=1, shared_ffn=0)
        layers += model.dense_layers * (_block(dense) - _block(model))
    if model.architecture == "encoder-decoder":
        layers += model.layers * (attention_params(model) + _biases(model, attention=True))
    head = model.hidden * model.hidden if model.architecture == "encoder" else 0
    return layers + embedding_params(model) + head


def embedding_params(model: Transformer) -> int:
    """Parameters of the token embedding, and of the language-model head where it is a matrix of its own."""
    return model.vocab * model.hidden * (1 if model.tied or model.architecture == "encoder" else 2)


def attention_params(model: Transformer) -> int:
    """Weights of one attention: queries, keys, values and output."""
    return 2 * model.hidden * (model.heads + model.kv_heads) * model.head_dim


def mlp_params(model: Transformer) -> int:
    """Weights of the MLP of one layer, those of all experts and of their router included."""
    matrices = 3 if model.gated else 2
    router = model.hidden * model.experts if model.experts > 1 else 0
    return matrices * model.hidden * (model.ffn * model.experts + model.shared_ffn) + router


def adapter_params(model: Transformer, rank: int, targets: LoraTargets) -> int:
    """Parameters of LoRA adapters: rank x (inputs + outputs) of each adapted matrix (Hu et al. 2021)."""
    q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    attention = 2 * (model.hidden + q) + 2 * (model.hidden + kv)
    matrices = 3 if model.gated else 2
    mlp = matrices * (model.experts * (model.hidden + model.ffn) + (model.hidden + model.shared_ffn))
    if not model.shared_ffn:
        mlp -= matrices * model.hidden
    cross = model.layers * attention if model.architecture == "encoder-decoder" else 0
    each = attention + (mlp if targets == "all-linear" else 0)
    return rank * ((model.layers + model.encoder_layers) * each + cross)


def tower_adapters(tower: VisionTower, rank: int) -> int:
    """Parameters of LoRA adapters on all linear layers of a vision tower, whose queries, keys and values are one."""
    matrices = 3 if tower.gated else 2
    return rank * tower.layers * (6 * tower.hidden + matrices * (tower.hidden + tower.ffn))


def _block(model: Transformer) -> int:
    return (
        attention_params(model) + mlp_params(model) + _biases(model, attention=True) + _biases(model, attention=False)
    )


def _biases(model: Transformer, *, attention: bool) -> int:
    """Norms, and the biases that come with plain MLPs and LayerNorm (GPT-2, BERT) and hardly ever with others."""
    biased = model.norm == "layer" and not model.gated
    if attention:
        linear = (model.heads + 2 * model.kv_heads) * model.head_dim + model.hidden
    else:
        linear = model.ffn + model.hidden
    return _norm(model) + (linear if biased else 0)


def _norm(model: Transformer) -> int:
    return model.hidden * (2 if model.norm == "layer" else 1)
