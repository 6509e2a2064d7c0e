"""Memory is counted before it is taken, and the count is that of the buffers vLLM really makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.memory import GIB, MemoryNeed, ModelSizes, draft_bytes, free_memory_bytes, memory_need
from engine.protocol import EngineStartFailed
from tests.engine.running import RunningEngine, engine_settings

# google/diffusiongemma-26B-A4B-it
REAL = ModelSizes(hidden_size=2816, vocabulary_size=262_144)
NEED = MemoryNeed(weight_bytes=48 * GIB, kv_cache_bytes=8 * GIB, draft_bytes=GIB // 2, logits_bytes=GIB // 2)


def test_sizes_of_a_checkpoint(checkpoint: Path) -> None:
    """From its configuration."""
    assert ModelSizes.from_checkpoint(checkpoint) == ModelSizes(hidden_size=128, vocabulary_size=12_288)


def test_what_fits_exactly_is_accepted() -> None:
    """To the byte."""
    NEED.require(57 * GIB)


def test_what_does_not_fit_is_refused() -> None:
    """With every part and the setting that lowers it."""
    with pytest.raises(EngineStartFailed) as refused:
        NEED.require(57 * GIB - 1)
    for part in (
        "needs 57.0 GiB",
        "57.0 are free",
        "48.0 GiB for weights",
        "8.0 GiB",
        "0.5 GiB",
        "DECIDE_KV_CACHE_GIB",
    ):
        assert part in str(refused.value)


def test_the_served_width_is_affordable(checkpoint: Path) -> None:
    """The default bundle costs the real model 16 MB, not the 369 MB that soft embeddings as wide would take."""
    settings = engine_settings(checkpoint, bundle_tokens=2048)
    assert draft_bytes(settings, REAL.hidden_size) < 16 << 20
    assert settings.max_num_seqs * settings.draft_tokens * REAL.hidden_size * 4 == 369_098_752


def test_a_wider_bundle_needs_more(checkpoint: Path) -> None:
    """And without fused reads no bundle is counted, but logits over the whole vocabulary are."""
    narrow, wide, two_step = (
        memory_need(engine_settings(checkpoint, **changed), REAL, weight_bytes=GIB, kv_cache_gib=1)
        for changed in ({"bundle_tokens": 1024}, {"bundle_tokens": 2048}, {"fused_reads": False})
    )
    assert wide.draft_bytes - narrow.draft_bytes == 16 * 1024 * 53
    assert two_step.draft_bytes < narrow.draft_bytes
    assert two_step.logits_bytes == 16 * 64 * 262_144 * 36


def test_a_full_step_of_logits(checkpoint: Path) -> None:
    """Every token of a step may be a draft's; labels are narrow, the vocabulary is not."""
    need = memory_need(engine_settings(checkpoint), REAL, weight_bytes=0, kv_cache_gib=0)
    assert need.logits_bytes == 4096 * 16 * 128 * 36


@pytest.mark.parametrize(
    ("stored_as", "dtype", "expected"),
    [
        ("bfloat16", "bfloat16", 100),
        ("bfloat16", "float32", 200),
        ("float32", "float32", 100),
        ("float32", "bfloat16", 50),
    ],
)
def test_weights_in_memory(tmp_path: Path, stored_as: str, dtype: str, expected: int) -> None:
    """In the format the engine computes in, whatever they are stored as."""
    config = {"text_config": {"hidden_size": 1, "vocab_size": 1}, "dtype": stored_as}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert ModelSizes.from_checkpoint(tmp_path).weight_bytes(100, dtype) == expected


@pytest.mark.parametrize(("limit", "expected"), [("3000\n", 1000), ("max\n", None), (None, None)])
def test_a_container_may_have_less(tmp_path: Path, limit: str | None, expected: int | None) -> None:
    """Its limit less what it uses, where there is one; else what the machine has free."""
    (tmp_path / "memory.current").write_text("2000\n")
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    free = free_memory_bytes(tmp_path)
    assert free == expected if expected is not None else free > 1 << 20


def measure_buffers(worker: Any) -> int:
    """Called in the worker: the bytes of every tensor whose size follows from the served width."""
    runner = worker.model_runner
    state, sampler = runner.model_state.diffusion_states, runner.sampler._sampler
    tensors = [state.canvas, state.argmax_canvas, state.seed_canvas, state.accepted_canvas_history, state.pin_mask]
    tensors += [state.self_conditioning_embeds, runner.req_states.draft_tokens, sampler._sampled]
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_the_count_is_that_of_the_buffers(fused_engine: RunningEngine) -> None:
    """In the worker of a real engine, to the byte."""
    settings = fused_engine.engine.settings
    assert fused_engine.in_worker(measure_buffers) == draft_bytes(settings, 128)
