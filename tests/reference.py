"""The independent reference: one DiffusionGemma denoising step in Hugging Face transformers, float32.

Engine tests compare what vLLM reads with what this module computes. It shares no code with vLLM or with
`engine`, and leaves loading, weight tying, attention and the logit softcap to transformers (5.19), unpatched.

One call of the model is the first denoising step of `generate`. In transformers/models/diffusion_gemma:

- generation_diffusion_gemma.py, `_prepare_denoiser_inputs`: a caller's `decoder_input_ids` is the first
  canvas, and `self_conditioning_logits` starts as None;
- the same file, `_denoising_step`: it calls `forward` with that canvas and applies temperature afterwards, in
  the logits processor, so the logits of `forward` are those at temperature 1;
- modeling_diffusion_gemma.py, `DiffusionGemmaDecoderModel.forward`: None means soft embeddings of zero ("This
  corresponds to the first denoising step"), which still normalises the canvas embeddings; the positions of
  the canvas default to those right after the prompt;
- the same file, `create_diffusion_decoder_attention_mask`: a prompt without padding gives no mask on both
  paths, so every canvas token sees the whole canvas and what the layer caches of the prompt: all of it in a
  full-attention layer, its last `sliding_window - 1` tokens in a sliding one;
- the same file, `DiffusionGemmaForBlockDiffusion.forward`: the softcap is applied to the float32 logits.

`tests/test_reference.py` checks that equality by running `generate` itself.

vLLM 0.32 windows each canvas row by itself, so its sliding layers lose prompt tokens that transformers keeps
(vllm-project/vllm#49202). Expect equality only where prompt and canvas together fit the sliding window.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, Gemma4VisionConfig

VISION_PREFIXES = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")


class CheckpointRefused(ValueError):
    """The checkpoint is not one whole DiffusionGemma text model; the message names the weights at fault."""


class HuggingFaceReference:
    """A DiffusionGemma checkpoint in transformers, on CPU, in float32 and evaluation mode."""

    def __init__(self, model: DiffusionGemmaForBlockDiffusion) -> None:
        self.model = model

    @classmethod
    def from_checkpoint(cls, path: Path) -> Self:
        """Load the checkpoint folder `path`, with or without vision weights, sharded or not.

        Raises `CheckpointRefused` if a text weight is missing, left over or of another shape, or if encoder
        and decoder, which are one text model in two roles, would not compute with the same weights.
        """
        # With `output_loading_info` it returns a pair, which its annotation leaves out.
        loaded: tuple[DiffusionGemmaForBlockDiffusion, dict[str, set[str]]] = (
            DiffusionGemmaForBlockDiffusion.from_pretrained(
                path, config=_buildable_config(path), dtype=torch.float32, output_loading_info=True
            )
        )
        model, loading = loaded
        for fault in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            _refuse_any(fault, _text_weights(loading[fault]))
        _refuse_any("untied weights", _untied_weights(model))
        model.train(False)
        return cls(model)

    def slot_logits(
        self,
        prompt_token_ids: Sequence[int],
        canvas_token_ids: Sequence[int],
        *,
        window_each_row: bool = False,
    ) -> NDArray[np.float32]:
        """Return the logits [canvas, vocabulary] of one first denoising step: softcap on, temperature 1.

        With `window_each_row`, sliding layers see what vLLM lets them see; see the module's docstring.
        """
        masks = self._masks_of_vllm(len(prompt_token_ids), len(canvas_token_ids)) if window_each_row else None
        with torch.inference_mode():
            output = self.model(
                input_ids=torch.tensor([list(prompt_token_ids)]),
                decoder_input_ids=torch.tensor([list(canvas_token_ids)]),
                decoder_attention_mask=masks,
            )
        logits: NDArray[np.float32] = output.logits[0].numpy()
        return logits

    def _masks_of_vllm(self, prompt_tokens: int, canvas_tokens: int) -> dict[str, torch.Tensor]:
        """Masks [1, 1, canvas, keys] under which each canvas row has a sliding window of its own, as in vLLM."""
        window = self.model.config.get_text_config().sliding_window
        total = prompt_tokens + canvas_tokens
        first_cached = max(0, prompt_tokens - (window - 1))
        rows, keys = torch.arange(prompt_tokens, total), torch.arange(first_cached, total)
        return {
            "sliding_attention": ((rows[:, None] - keys[None]).abs() < window)[None, None],
            "full_attention": torch.ones(1, 1, canvas_tokens, total, dtype=torch.bool),
        }

    def label_probabilities(
        self,
        prompt_token_ids: Sequence[int],
        canvas_token_ids: Sequence[int],
        canvas_position: int,
        label_token_ids: Sequence[int],
    ) -> NDArray[np.float64]:
        """Return float64 probabilities [labels] at `canvas_position` that sum to 1 over the labels alone."""
        slot = self.slot_logits(prompt_token_ids, canvas_token_ids)[canvas_position]
        labels = slot[list(label_token_ids)].astype(np.float64)
        weights = np.exp(labels - labels.max())
        probabilities: NDArray[np.float64] = weights / weights.sum()
        return probabilities


def _buildable_config(path: Path) -> DiffusionGemmaConfig:
    """Read the config; transformers cannot build `vision_config: null`, so that gets the smallest tower."""
    config = DiffusionGemmaConfig.from_pretrained(path)
    if config.vision_config is None:
        config.vision_config = Gemma4VisionConfig(
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
            head_dim=16,
            position_embedding_size=1,
        )
    return config


def _text_weights(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith(VISION_PREFIXES))


def _untied_weights(model: DiffusionGemmaForBlockDiffusion) -> Iterator[str]:
    """Yield the text tensors whose copy in the encoder or the output head is not the decoder's."""
    decoder = model.model.decoder
    encoder = model.model.encoder.language_model
    if model.lm_head.weight is not decoder.embed_tokens.weight:
        yield "lm_head.weight"
    parameters = dict(decoder.named_parameters())
    for name, parameter in encoder.named_parameters():
        if parameter is not parameters[name]:
            yield name
    # Buffers (layer_scalar) are stored twice and never tied, but vLLM keeps one of each: they must be equal.
    buffers = dict(decoder.named_buffers())
    for name, buffer in encoder.named_buffers():
        if not torch.equal(buffer, buffers[name]):
            yield name


def _refuse_any(fault: str, names: Iterable[str]) -> None:
    if found := list(names):
        raise CheckpointRefused(f"{fault}: {', '.join(found)}")
