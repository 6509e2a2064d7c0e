"""What the engine's owner refuses before it starts a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest

from engine import vllm_engine
from engine.protocol import EngineStartFailed
from engine.settings import engine_arguments
from engine.vllm_engine import VllmEngine
from tests.engine.running import engine_settings

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


async def test_what_cannot_be_fused_is_refused(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the operator's words, not as a failure of a child process."""

    def arguments(*asked: Any) -> dict[str, Any]:
        return engine_arguments(*asked) | {"kv_offloading_size": 1.0}

    monkeypatch.setattr(vllm_engine, "engine_arguments", arguments)
    before = psutil.Process().children()  # other tests' engines may be alive
    with pytest.raises(
        EngineStartFailed, match=r"^fused reads do not work with .*KV cache offloading; .*FUSED_READS=0$"
    ):
        await VllmEngine(engine_settings(checkpoint)).start()
    assert set(psutil.Process().children()) <= set(before)


async def test_too_little_memory_is_refused(checkpoint: Path) -> None:
    """Before anything is loaded."""
    engine = VllmEngine(engine_settings(checkpoint, kv_cache_gib=1024))
    with pytest.raises(EngineStartFailed, match=r"1024\.0 GiB for the KV cache"):
        await engine.start()


async def test_another_vllm_is_refused(checkpoint: Path) -> None:
    """By the ledger, with both versions."""
    engine = VllmEngine(engine_settings(checkpoint))
    with (
        mock.patch("engine.compat.vllm_version", return_value="0.33.0"),
        pytest.raises(EngineStartFailed, match=r"vLLM 0\.33\.0 is installed, this plugin supports 0\.32\.0 only"),
    ):
        await engine.start()
