"""Memory is counted before it is taken, and the count is that of the buffers vLLM really makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.memory import GIB, MemoryNeed, ModelSizes, draft_bytes, memory_need
from engine.protocol import EngineStartFailed
from tests.engine.running import RunningEngine, engine_settings

# google/diffusiongemma-26B-A4B-it
REAL = ModelSizes(hidden_size=2816, vocabulary_size=262_144)
NEED = MemoryNeed(weight_bytes=48 * GIB, kv_cache_bytes=8 * GIB, draft_bytes=GIB // 2, logits_bytes=GIB // 2)


def test_sizes_of_a_checkpoint(checkpoint: Path) -> None:
    """From its configuration."""
    assert ModelSizes.from_checkpoint(checkpoint) == ModelSizes(hidden_size=128, vocabulary_size=2048)


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
    """The default bundle costs the real model megabytes, not the gigabytes that soft embeddings as wide would take."""
    settings = engine_settings(checkpoint, bundle_tokens=2048)
    assert draft_bytes(settings, REAL.hidden_size) < 16 << 20
    assert settings.max_num_seqs * settings.draft_tokens * REAL.hidden_size * 4 > 300 << 20


def test_a_wider_bundle_needs_more(checkpoint: Path) -> None:
    """And without fused reads no bundle is counted, but logits over the whole vocabulary are."""
    narrow, wide, two_step = (
        memory_need(engine_settings(checkpoint, **changed), REAL, weight_bytes=GIB, kv_cache_gib=1)
        for changed in ({"bundle_tokens": 1024}, {"bundle_tokens": 2048}, {"fused_reads": False})
    )
    assert wide.draft_bytes - narrow.draft_bytes == 16 * 1024 * 53
    assert two_step.draft_bytes < narrow.draft_bytes
    assert two_step.logits_bytes == 16 * 64 * 262_144 * 12


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
