"""The composition root."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from fastapi import FastAPI

from app.main import create_app, make_engine
from app.settings import Settings
from app.startup import engine_settings
from engine.checkpoint import Checkpoint
from engine.fake import FakeEngine
from engine.protocol import Engine
from engine.settings import EngineSettings
from tests.app.service import phase_of, request_body, serving, until_phase


def test_an_application_starts_nothing_by_itself(settings: Settings) -> None:
    """Making one has no effect before its lifespan is entered."""

    def refuse(_: EngineSettings) -> Engine:
        raise AssertionError("made")

    assert isinstance(create_app(settings, refuse), FastAPI)


def test_the_settings_choose_the_engine(monkeypatch: pytest.MonkeyPatch, checkpoint: Path) -> None:
    """`fake` or vLLM's; what is not chosen is not imported."""
    settings = Settings(engine="fake")
    engine = make_engine(settings)(engine_settings(settings, Checkpoint(folder=checkpoint, revision="")))
    assert isinstance(engine, FakeEngine)
    stand_in = SimpleNamespace(VllmEngine=object())
    monkeypatch.setitem(sys.modules, "engine.vllm_engine", stand_in)  # the real one imports vLLM
    assert make_engine(Settings()) is stand_in.VllmEngine


async def test_two_services_in_one_process(settings: Settings, fake: FakeEngine) -> None:
    """Nothing is shared: neither counters nor phases."""
    slow = FakeEngine(settings=fake.settings)
    slow.gate.clear()
    async with serving(create_app(settings, lambda _: fake)) as one:
        await until_phase(one, "ready")
        async with serving(create_app(settings, lambda _: slow)) as other:
            assert await phase_of(other) == "starting"
            await one.post("/decide", json=request_body())
            assert 'decide_requests_total{route="/decide"' in (await one.get("/metrics")).text
            assert 'decide_requests_total{route="/decide"' not in (await other.get("/metrics")).text
        assert await phase_of(one) == "ready"


async def test_many_starts_and_stops_leave_nothing(settings: Settings, fake: FakeEngine) -> None:
    """R16: after fifty of them no more files are open and no more threads run than after the first."""

    async def once() -> tuple[int, int]:
        async with serving(create_app(settings, lambda _: FakeEngine(settings=fake.settings))) as client:
            await until_phase(client, "ready")
            assert (await client.post("/decide", json=request_body())).status_code == 200
        return psutil.Process().num_fds(), psutil.Process().num_threads()

    files, threads = await once()
    for _ in range(49):
        now_files, now_threads = await once()
    assert now_files <= files + 2
    assert now_threads <= threads + 2
