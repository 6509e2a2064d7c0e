"""Fixtures: a clean environment, the demo's tokenizer and Gemma's, the service over a fake engine, one real server."""

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
from app.startup import engine_settings, planner_of
from app.tokenizer import CheckpointTokenizer
from engine.checkpoint import Checkpoint
from engine.fake import FakeEngine
from tests.gemma import write_gemma_tokenizer
from tests.server import ServerProcess


def pytest_addoption(parser: pytest.Parser) -> None:
    """The short form of fuzzing runs with all tests, the long one on its own."""
    parser.addoption("--fuzz-requests", type=int, default=100, help="requests of each kind of fuzzing")


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
def gemma_tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer files of a checkpoint with a real Gemma tokenizer."""
    folder = tmp_path_factory.mktemp("gemma-tokenizer")
    write_gemma_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def gemma_tokenizer(gemma_tokenizer_folder: Path) -> CheckpointTokenizer:
    """A real Gemma tokenizer: 262,145 entries."""
    return CheckpointTokenizer.from_checkpoint(gemma_tokenizer_folder)


@pytest.fixture(scope="session")
def gemma_checkpoint(gemma_tokenizer_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint with the Gemma tokenizer's vocabulary; what it answers means nothing, but is the model's."""
    # Here, not above: it imports torch and transformers, which most tests do without.
    from tests.checkpoints import write_random_checkpoint

    folder = tmp_path_factory.mktemp("gemma-checkpoint")
    write_random_checkpoint(folder, tokenizer_folder=gemma_tokenizer_folder, with_vision=False)
    return folder


@pytest.fixture(scope="session")
def planner(tokenizer: CheckpointTokenizer) -> Planner:
    """A planner with the default limits."""
    return planner_of(Settings(), tokenizer)


@pytest.fixture(scope="session")
def gemma_planner(gemma_tokenizer: CheckpointTokenizer) -> Planner:
    """A planner with the default limits on the Gemma tokenizer."""
    return planner_of(Settings(), gemma_tokenizer)


@pytest.fixture
def settings() -> Settings:
    """Settings of a service over the fake engine."""
    return Settings(engine="fake", max_reads=1, max_inflight=4, deadline_seconds=2.0, body_limit_bytes=65_536)


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
