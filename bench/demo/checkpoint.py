"""A trained network as a checkpoint folder, as Hugging Face and vLLM load it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from bench.demo.network import Layer, Network, NetworkSizes

DECODER = "model.decoder"
ENCODER = "model.encoder.language_model"
SLIDING_WINDOW, CANVAS_TOKENS = 512, 64
# Twice what is served by default. Positions are rotations, so there are weights for all of them.
MAX_POSITIONS = 8192
# Of Hugging Face's layer, by ours.
LAYER_NAMES = {
    "self_attn.q_proj.weight": "query",
    "self_attn.k_proj.weight": "key",
    "self_attn.v_proj.weight": "value",
    "self_attn.o_proj.weight": "output",
    "self_attn.q_norm.weight": "query_norm",
    "self_attn.k_norm.weight": "key_norm",
    "mlp.gate_proj.weight": "gate",
    "mlp.up_proj.weight": "up",
    "mlp.down_proj.weight": "down",
    "experts.down_proj": "expert_down",
    "router.proj.weight": "router",
    "router.scale": "router_scale",
    "router.per_expert_scale": "expert_scale",
    "input_layernorm.weight": "input_norm",
    "post_attention_layernorm.weight": "attention_norm",
    "pre_feedforward_layernorm.weight": "mlp_norm",
    "post_feedforward_layernorm.weight": "output_norm",
    "post_feedforward_layernorm_1.weight": "after_mlp_norm",
    "post_feedforward_layernorm_2.weight": "after_expert_norm",
    "pre_feedforward_layernorm_2.weight": "expert_norm",
}


def write_weights(network: Network, folder: Path, dtype: torch.dtype = torch.bfloat16) -> None:
    """Write model.safetensors and config.json; the tokenizer's files are `bench.demo.vocabulary`'s."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().to(dtype).contiguous().clone() for name, tensor in _tensors(network)}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(network.sizes, dtype), indent=1) + "\n")


def config(sizes: NetworkSizes, dtype: torch.dtype) -> dict[str, Any]:
    """config.json: a text model without a vision tower."""
    from transformers import DiffusionGemmaConfig

    text = {
        "vocab_size": sizes.vocabulary,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.mlp,
        "num_hidden_layers": sizes.layers,
        "layer_types": ["sliding_attention"] * (sizes.layers - 1) + ["full_attention"],
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head,
        "global_head_dim": sizes.head,
        "num_global_key_value_heads": sizes.kv_heads,
        "num_experts": sizes.experts,
        "top_k_experts": sizes.chosen_experts,
        "moe_intermediate_size": sizes.expert_mlp,
        "max_position_embeddings": MAX_POSITIONS,
        "sliding_window": SLIDING_WINDOW,
    }
    # transformers cannot build a configuration without a tower, but vLLM and our reference read one.
    tower = {"model_type": "gemma4_vision", "hidden_size": 16, "num_attention_heads": 1, "num_key_value_heads": 1}
    made: dict[str, Any] = DiffusionGemmaConfig(
        text_config=text, vision_config=tower, canvas_length=CANVAS_TOKENS
    ).to_dict()
    name = str(dtype).removeprefix("torch.")
    return made | {"architectures": ["DiffusionGemmaForBlockDiffusion"], "vision_config": None, "dtype": name}


def _tensors(network: Network) -> Iterator[tuple[str, Tensor]]:
    sizes = network.sizes
    yield f"{DECODER}.embed_tokens.weight", network.embedding.weight
    yield f"{DECODER}.norm.weight", network.norm
    # Not used by a first denoising step, and zero, so that a further one would start from the same rows.
    for name, shape in (("gate", (sizes.mlp, sizes.hidden)), ("up", (sizes.mlp, sizes.hidden))):
        yield f"{DECODER}.self_conditioning.{name}_proj.weight", torch.zeros(shape)
    yield f"{DECODER}.self_conditioning.down_proj.weight", torch.zeros(sizes.hidden, sizes.mlp)
    yield f"{DECODER}.self_conditioning.pre_norm.weight", torch.ones(sizes.hidden)
    for number, layer in enumerate(network.layers):
        for name, tensor in _layer_tensors(layer):
            yield f"{DECODER}.layers.{number}.{name}", tensor
        # A buffer that is stored for both roles of the one text model.
        yield f"{ENCODER}.layers.{number}.layer_scalar", torch.ones(1)


def _layer_tensors(layer: Layer) -> Iterator[tuple[str, Tensor]]:
    for name, ours in LAYER_NAMES.items():
        tensor = getattr(layer, ours)
        if tensor is not None:
            yield name, tensor
    yield "experts.gate_up_proj", torch.cat((layer.expert_gate, layer.expert_up), dim=1)
    yield "layer_scalar", torch.ones(1)
