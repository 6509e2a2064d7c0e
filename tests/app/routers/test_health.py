"""GET /health."""

from __future__ import annotations

import httpx
from fastapi import FastAPI

from app.canvas.prompt import PROMPT_LAYOUT_VERSION
from app.fingerprint import fingerprint
from engine.fake import FakeEngine
from tests.app.service import serving, until

LIMITS = {
    "max_inflight": 4,
    "tenant_inflight": None,
    "inflight_tokens": 65_536,
    "receiving_bytes": 64 << 20,
    "max_reads": 1,
    "deadline_seconds": 2.0,
    "body_limit_bytes": 65_536,
    "body_seconds": 10.0,
    "max_num_seqs": 16,
    "max_batched_tokens": 8192,
}


async def test_ready(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """What is served, by which versions, within which limits, as which decision function. The digest of the
    checkpoint stays inside."""
    response = await client.get("/health")
    assert response.status_code == 200
    assert response.json() == {
        "phase": "ready",
        "model": "onestep-demo",
        "revision": "",
        "dtype": "float32",
        "fused_reads": True,
        "canvas_length": 64,
        "bundle_tokens": 2048,
        "max_model_len": 4096,
        "vllm_version": "none",
        "torch_version": "none",
        "plugin_version": "fake",
        "cpu_features": [],
        "threads": 1,
        "prompt_layout_version": PROMPT_LAYOUT_VERSION,
        "temperatures": dict.fromkeys(("boolean", "choice", "score", "probability", "selection"), 1.0),
        "fingerprint": fingerprint(await fake.start(), {}),
        "limits": LIMITS,
    }


async def test_before_the_engine_is_up(app: FastAPI, fake: FakeEngine) -> None:
    """503 with the phase, and what is known."""
    fake.start_seconds = 60.0
    async with serving(app) as client:
        response = await client.get("/health")
        assert (response.status_code, response.json()) == (503, {"phase": "starting", "limits": LIMITS})


async def test_before_the_first_decision(app: FastAPI, fake: FakeEngine) -> None:
    """R12: 503 although the engine is up."""
    fake.gate.clear()
    async with serving(app) as client:
        await until(lambda: bool(fake.requests))
        response = await client.get("/health")
        assert (response.status_code, response.json()["phase"]) == (503, "starting")
