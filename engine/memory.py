"""What an engine will take of this machine's memory, known before it is taken."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from pathlib import Path

import psutil

from engine.protocol import MAX_LABELS_PER_READ, EngineStartFailed
from engine.settings import EngineSettings

GIB = 1 << 30

# Bytes a draft token takes for each request a step may hold, in the buffers of DiffusionGemmaRequestStates,
# DiffusionSampler and RequestState (vLLM 0.32.0): five rows of token ids in int64 (canvas, argmax, seed, and a history
# of two) and the draft itself, sampled tokens in int32, and the mask of pinned positions.
BYTES_PER_DRAFT_TOKEN = 6 * 8 + 4 + 1
# Logits in float32, and what vLLM's sampler makes of them: masked and scaled copies, their noise, softmax, entropy
# (`sample_row_stats_reference`), about nine in all.
LOGITS_BYTES, LOGITS_COPIES = 4, 9
BFLOAT16_BYTES, FLOAT32_BYTES = 2, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSizes:
    """What of a model decides the size of buffers.

    Attributes:
        stored_bytes: of one weight on disk.
    """

    hidden_size: int
    vocabulary_size: int
    stored_bytes: int = BFLOAT16_BYTES

    @classmethod
    def from_checkpoint(cls, folder: Path) -> ModelSizes:
        """As the checkpoint's configuration has them."""
        config = json.loads((folder / "config.json").read_text())
        text = config["text_config"]
        stored_as = config.get("dtype") or config.get("torch_dtype")
        return cls(
            hidden_size=text["hidden_size"],
            vocabulary_size=text["vocab_size"],
            stored_bytes=FLOAT32_BYTES if stored_as == "float32" else BFLOAT16_BYTES,
        )

    def weight_bytes(self, disk_bytes: int, dtype: str) -> int:
        """What weights of that size on disk take in the format the engine computes in."""
        return disk_bytes // self.stored_bytes * (FLOAT32_BYTES if dtype == "float32" else BFLOAT16_BYTES)


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
    """The largest step: of every draft token over the labels of all, or on vLLM's own path over the vocabulary."""
    rows = min(settings.max_batched_tokens, settings.max_num_seqs * settings.draft_tokens)
    labels = min(vocabulary_size, settings.max_num_seqs * MAX_LABELS_PER_READ)
    return rows * (labels if settings.fused_reads else vocabulary_size) * LOGITS_BYTES * LOGITS_COPIES


def free_memory_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """What this process may still take: of the machine, and of its container if that is limited (cgroup v2)."""
    free = psutil.virtual_memory().available
    limit, used = cgroup / "memory.max", cgroup / "memory.current"
    if limit.exists() and (allowed := limit.read_text().strip()) != "max":
        free = min(free, int(allowed) - int(used.read_text()))
    return free
