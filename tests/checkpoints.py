"""Small random DiffusionGemma checkpoints on disk, laid out as Hugging Face's `save_pretrained` does it.

The weights are drawn so that nothing is degenerate: activations keep unit scale, norms and scales differ from
1, attention looks at several tokens, and the probabilities of labels at a slot depend on the prompt without
being uniform or one-hot. A weight that is skipped or loaded in another's place changes the result visibly.
"""

import shutil
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
VISION_MODULES = (".vision_tower.", ".embed_vision.")
VISION_HEAD_DIM = 64


def write_random_checkpoint(
    folder: Path,
    *,
    tokenizer_folder: Path,
    with_vision: bool,
    seed: int = 0,
    hidden_size: int = 128,
    layers: int = 3,
    experts: int = 4,
    sliding_window: int = 512,
    sliding_kv_heads: int = 2,
    canvas_length: int = 64,
    vision_hidden_size: int = 64,
    vision_layers: int = 1,
    max_shard_size: str = "50GB",
) -> None:
    """Write a bfloat16 checkpoint into `folder`, with the tokenizer files of `tokenizer_folder`.

    The text weights depend on `seed` and the text sizes alone, so the same call with and without vision gives
    two checkpoints that read alike. Without vision, config.json says `"vision_config": null` and no vision
    tensor is stored. The default text model has 1.6 MB; `vision_hidden_size=768, vision_layers=12` (multiples
    of 64) is a tower of 260 MB. With 4 `sliding_kv_heads`, as in the real model, a token's keys take twice the
    room in sliding layers, so vLLM doubles the KV block of the others. `max_shard_size` is that of
    `save_pretrained`: "1MB" gives several shards.
    """
    config = DiffusionGemmaConfig(
        text_config=_text_config(
            vocab_size=Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json")).get_vocab_size(),
            hidden_size=hidden_size,
            num_hidden_layers=layers,
            num_experts=experts,
            sliding_window=sliding_window,
            num_key_value_heads=sliding_kv_heads,
        ),
        vision_config=_vision_config(hidden_size=vision_hidden_size, num_hidden_layers=vision_layers),
        canvas_length=canvas_length,
    )
    _save(_random_model(config, seed), folder, with_vision=with_vision, max_shard_size=max_shard_size)
    # After the model, which writes a generation_config.json of its own, without the sampler's settings.
    for name in TOKENIZER_FILES:
        shutil.copyfile(tokenizer_folder / name, folder / name)


def _text_config(*, hidden_size: int, num_hidden_layers: int, **sizes: int) -> dict[str, Any]:
    """Return DiffusionGemma's plan in small: sliding layers, then a full one with wider and fewer heads."""
    head_dim = hidden_size // 4
    return {
        **sizes,
        "hidden_size": hidden_size,
        "intermediate_size": hidden_size,
        "moe_intermediate_size": hidden_size // 4,
        "top_k_experts": 2,
        "num_hidden_layers": num_hidden_layers,
        "layer_types": ["sliding_attention"] * (num_hidden_layers - 1) + ["full_attention"],
        "num_attention_heads": 4,
        "head_dim": head_dim,
        "num_global_key_value_heads": 1,
        "global_head_dim": head_dim * 2,
        "max_position_embeddings": 4096,
    }


def _vision_config(*, hidden_size: int, num_hidden_layers: int) -> dict[str, Any]:
    heads = hidden_size // VISION_HEAD_DIM
    return {
        "model_type": "gemma4_vision",
        "hidden_size": hidden_size,
        "intermediate_size": hidden_size * 4,
        "num_hidden_layers": num_hidden_layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": VISION_HEAD_DIM,
        # Gives the tower buffers too (std_bias, std_scale), which a loader must also skip.
        "standardize": True,
    }


def _random_model(config: DiffusionGemmaConfig, seed: int) -> DiffusionGemmaForBlockDiffusion:
    # transformers draws from the global generator; its initial weights are good enough for the tower.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DiffusionGemmaForBlockDiffusion(config).bfloat16()
    _draw_text_weights(model, torch.Generator().manual_seed(seed))
    return model


@torch.no_grad()
def _draw_text_weights(model: DiffusionGemmaForBlockDiffusion, generator: torch.Generator) -> None:
    """Fill the text model in place; the encoder and the head share the decoder's weights."""
    decoder = model.model.decoder
    for name, tensor in sorted(decoder.state_dict().items()):
        tensor.copy_(_draw(name, tensor.shape, generator))
    # A buffer stored for both roles and not tied: a trained model has the same value in both.
    for encoder_layer, decoder_layer in zip(model.model.encoder.language_model.layers, decoder.layers, strict=True):
        encoder_layer.layer_scalar.copy_(decoder_layer.layer_scalar)


def _draw(name: str, shape: torch.Size, generator: torch.Generator) -> Tensor:
    """Draw matrices that keep the scale of what they multiply, and vectors in [0.5, 1.5)."""
    if len(shape) > 1:
        # The router's input carries a factor of hidden_size**-0.5 already.
        scale = 1.0 if name.endswith("router.proj.weight") else shape[-1] ** -0.5
        return torch.randn(shape, generator=generator).mul(scale)
    vector = torch.rand(shape, generator=generator).add(0.5)
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        # Attention has no scale of its own: weights of 1 make its scores deviate by sqrt(head_dim), which
        # looks at one token alone. These make them deviate by about 1.5.
        return vector.mul(1.2 * shape[0] ** -0.25)
    # The weight of the last norm is the deviation of the logits.
    return vector.mul(2) if name == "norm.weight" else vector


def _save(model: DiffusionGemmaForBlockDiffusion, folder: Path, *, with_vision: bool, max_shard_size: str) -> None:
    tensors: dict[str, Tensor] = model.state_dict()
    if not with_vision:
        model.config.vision_config = None
        tensors = {name: tensors[name] for name in tensors if not any(map(name.__contains__, VISION_MODULES))}
    model.save_pretrained(folder, state_dict=tensors, max_shard_size=max_shard_size)
