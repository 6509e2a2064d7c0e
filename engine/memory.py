"""What an engine will take of this machine's memory, known before it is taken."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from pathlib import Path

from engine.protocol import MAX_LABELS_PER_READ, EngineStartFailed
from engine.settings import EngineSettings

GIB = 1 << 30

# Bytes a draft token takes for each request a step may hold, in the buffers of DiffusionGemmaRequestStates,
# DiffusionSampler and RequestState (vLLM 0.32.0): five rows of token ids in int64 (canvas, argmax, seed, and a history
# of two) and the draft itself, sampled tokens in int32, and the mask of pinned positions.
BYTES_PER_DRAFT_TOKEN = 6 * 8 + 4 + 1
# Logits in float32, masked and scaled copies beside them.
LOGITS_BYTES, LOGITS_COPIES = 4, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSizes:
    """What of a model's shape decides the size of buffers."""

    hidden_size: int
    vocabulary_size: int

    @classmethod
    def from_checkpoint(cls, folder: Path) -> ModelSizes:
        """As the checkpoint's configuration has them."""
        config = json.loads((folder / "config.json").read_text())["text_config"]
        return cls(hidden_size=config["hidden_size"], vocabulary_size=config["vocab_size"])


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """In bytes."""

    weight_bytes: int
    kv_cache_bytes: int
    draft_bytes: int
    logits_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return sum(astuple(self))

    def require(self, free_bytes: int) -> None:
        """Refuse to start what would be killed later, while somebody waits.

        Raises:
            EngineStartFailed: with each part, so that the operator sees which setting to lower.
        """
        if self.total_bytes <= free_bytes:
            return
        parts = {
            "weights": self.weight_bytes,
            "the KV cache (DECIDE_KV_CACHE_GIB)": self.kv_cache_bytes,
            "drafts (DECIDE_BUNDLE_TOKENS, DECIDE_MAX_NUM_SEQS)": self.draft_bytes,
            "logits (DECIDE_MAX_NUM_SEQS)": self.logits_bytes,
        }
        listed = ", ".join(f"{size / GIB:.1f} GiB for {name}" for name, size in parts.items())
        raise EngineStartFailed(
            f"the engine needs {self.total_bytes / GIB:.1f} GiB of memory and {free_bytes / GIB:.1f} are free: {listed}"
        )


def memory_need(settings: EngineSettings, sizes: ModelSizes, *, weight_bytes: int, kv_cache_gib: int) -> MemoryNeed:
    """What an engine with these settings takes, activations of the model apart.

    Args:
        weight_bytes: in the format it computes in.
        kv_cache_gib: as chosen.
    """
    return MemoryNeed(
        weight_bytes=weight_bytes,
        kv_cache_bytes=kv_cache_gib * GIB,
        draft_bytes=draft_bytes(settings, sizes.hidden_size),
        logits_bytes=_logits_bytes(settings, sizes.vocabulary_size),
    )


def draft_bytes(settings: EngineSettings, hidden_size: int) -> int:
    """The buffers that grow with the served width: a bundle's, where reads are fused.

    Soft embeddings are float32 and only as wide as one canvas: see `engine.model_state.FusedModelState`.
    """
    a_request = settings.draft_tokens * BYTES_PER_DRAFT_TOKEN + settings.canvas_length * hidden_size * 4
    return settings.max_num_seqs * a_request


def _logits_bytes(settings: EngineSettings, vocabulary_size: int) -> int:
    """A full step of reads with different labels: over those of all, on vLLM's own path over the vocabulary."""
    columns = min(vocabulary_size, settings.max_num_seqs * MAX_LABELS_PER_READ)
    rows = settings.max_num_seqs * settings.canvas_length
    return rows * (columns if settings.fused_reads else vocabulary_size) * LOGITS_BYTES * LOGITS_COPIES
