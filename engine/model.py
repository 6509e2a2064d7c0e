"""DiffusionGemma as a text model: vLLM's class without its vision tower.

The checkpoint of DiffusionGemma carries a vision tower. A decision reads text only, so the tower is neither built nor
loaded, and its image processor is never needed.
"""

from __future__ import annotations

import torch
from vllm.config import VllmConfig
from vllm.model_executor.models.diffusion_gemma import (
    DiffusionGemmaForConditionalGeneration,
    DiffusionGemmaModelState,
)
from vllm.model_executor.models.utils import WeightsMapper

from engine.model_state import FusedModelState
from engine.settings import FUSED_READS
from engine.whole_vocabulary import WholeVocabulary

# As Hugging Face saves them: modeling_diffusion_gemma.py, `DiffusionGemmaEncoderModel`.
VISION_PREFIXES = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")


class TextDiffusionGemma(DiffusionGemmaForConditionalGeneration):
    """`DiffusionGemmaForBlockDiffusion` checkpoints, text only."""

    supports_multimodal = False
    supports_multimodal_raw_input_only = False
    # A name mapped to None is passed over. The loader is lazy: such a tensor never becomes resident. The right operand
    # wins, so the order matters.
    hf_to_vllm_mapper = DiffusionGemmaForConditionalGeneration.hf_to_vllm_mapper | WeightsMapper(
        orig_to_new_prefix=dict.fromkeys(VISION_PREFIXES)
    )

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        # The parent builds a tower exactly when the configuration has one.
        vllm_config.model_config.hf_config.vision_config = None
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        self.whole_vocabulary = WholeVocabulary()
        self._fuses_reads = bool(vllm_config.additional_config.get(FUSED_READS))

    def get_model_state_cls(self) -> type[DiffusionGemmaModelState]:
        """Ours where reads are fused, else vLLM's. Asked of the loaded model (vllm/v1/worker/gpu/model_states)."""
        return FusedModelState if self._fuses_reads else DiffusionGemmaModelState

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Logits [rows, vocabulary or allowed ids]. A step that only runs prompts has no rows.

        vLLM calls the head all the same, and its packed GEMM for small weights on BF16 CPUs (vllm/model_executor/
        layers/utils.py, `check_cpu_sgl_kernel`) divides by the number of rows: the worker dies of SIGFPE.
        """
        if hidden_states.shape[0] == 0:
            return hidden_states.new_empty((0, self.config.get_text_config().vocab_size), dtype=torch.float32)
        if len(self.whole_vocabulary.rows):
            self.whole_vocabulary.measure(hidden_states, self._vocabulary_logits)
        return super().compute_logits(hidden_states)

    def _vocabulary_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Logits [rows, vocabulary], in a step whose other logits are those of labels."""
        states = self.diffusion_states
        labels, states.step_allowed = states.step_allowed, None
        try:
            return super().compute_logits(hidden_states)
        finally:
            states.step_allowed = labels

    def is_unused_checkpoint_weight(self, name: str) -> bool:
        """Lets the loader leave files of nothing but vision weights unopened."""
        return name.startswith(VISION_PREFIXES)
