"""The service over a scripted engine, from its first moment on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from asgi_lifespan import LifespanManager
from fastapi import FastAPI

from engine.fake import FakeEngine
from tests.cases import REFILL, rubric

# What a test waits for takes milliseconds; this is for machines that are busy with something else.
PATIENCE_SECONDS = 30.0


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that may not be ready yet. (The `client` fixture is for one that is.)"""
    async with LifespanManager(app) as manager:
        transport = httpx.ASGITransport(app=manager.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://onestep") as client:
            yield client


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until it holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is waited for is not ours to signal
            await asyncio.sleep(0.001)


async def phase_of(client: httpx.AsyncClient) -> str:
    """The phase `/health` reports; its status has to fit."""
    response = await client.get("/health")
    phase: str = response.json()["phase"]
    assert (response.status_code == 200) is (phase == "ready")
    return phase


async def until_phase(client: httpx.AsyncClient, phase: str) -> None:
    """Poll `/health` until it reports this phase."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await phase_of(client) != phase:  # noqa: ASYNC110 - it is polled, as probes poll it
            await asyncio.sleep(0.001)


def request_body(**changed: Any) -> dict[str, Any]:
    """A good request of one yes-or-no question, with these fields over it."""
    return {"state": "Hello.", "rubric": rubric(refill=REFILL), **changed}


async def one_too_many(
    fake: FakeEngine, ask: Callable[[], Awaitable[httpx.Response]], *, admitted: int
) -> httpx.Response:
    """What comes of a request while so many others, as many as are let in, are under way; those are answered after."""
    fake.gate.clear()
    before = len(fake.requests)
    under_way = [asyncio.ensure_future(ask()) for _ in range(admitted)]
    await until(lambda: len(fake.requests) == before + admitted)
    refused = await ask()
    fake.gate.set()
    assert {answer.status_code for answer in await asyncio.gather(*under_way)} == {200}
    return refused
