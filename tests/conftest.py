"""Fixtures: a clean environment, the demo tokenizer, the service over a fake engine, one real server for all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from asgi_lifespan import LifespanManager
from fastapi import FastAPI

from app.canvas.plan import Planner
from app.main import create_app
from app.settings import Settings, demo_checkpoint
from app.startup import engine_settings
from app.tokenizer import CheckpointTokenizer
from engine.checkpoint import Checkpoint
from engine.fake import FakeEngine
from tests.server import ServerProcess


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a setting of the shell it was started from."""
    for name in [name for name in os.environ if name.startswith("DECIDE_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    """The demo checkpoint's folder."""
    return Path(demo_checkpoint())


@pytest.fixture(scope="session")
def tokenizer(checkpoint: Path) -> CheckpointTokenizer:
    """The demo checkpoint's tokenizer."""
    return CheckpointTokenizer.from_checkpoint(checkpoint)


@pytest.fixture(scope="session")
def planner(tokenizer: CheckpointTokenizer) -> Planner:
    """A planner with the default limits."""
    settings = Settings()
    return Planner(
        tokenizer=tokenizer,
        max_model_len=settings.max_model_len,
        canvas_length=settings.canvas_length,
        max_text_chars=settings.rubric_text_chars,
    )


@pytest.fixture
def settings() -> Settings:
    """Settings of a service over the fake engine."""
    return Settings(engine="fake", max_inflight=4, deadline_seconds=2.0, body_limit_bytes=65_536)


@pytest.fixture
def fake(settings: Settings, checkpoint: Path) -> FakeEngine:
    """The engine behind `app`: script it before or between requests."""
    return FakeEngine(settings=engine_settings(settings, Checkpoint(folder=checkpoint, revision="")))


@pytest.fixture
def app(settings: Settings, fake: FakeEngine) -> FastAPI:
    """The service over `fake`."""
    return create_app(settings, lambda _: fake)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that is ready, without sockets.

    `ASGITransport(app=app)` would not carry the lifespan's state: it has to be given the manager's application.
    """
    async with LifespanManager(app) as manager:
        transport = httpx.ASGITransport(app=manager.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://onestep") as client:
            await until_ready(client)
            yield client


async def until_ready(client: httpx.AsyncClient) -> None:
    """Poll `/health` until it is 200. The transport never gives way to the task that starts the engine, so sleep."""
    for _ in range(3000):
        if (await client.get("/health")).status_code == 200:
            return
        await asyncio.sleep(0.01)
    pytest.fail("the service did not become ready")


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The whole service as its users run it: own process, real sockets, real vLLM engine, demo checkpoint, float32."""
    folder = tmp_path_factory.mktemp("real-server")
    with ServerProcess(folder / "log", DECIDE_DTYPE="float32") as server:
        server.wait_until_ready()
        yield server
