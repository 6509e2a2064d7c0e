"""Every way not to get a 2xx: the same document."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from asgi_lifespan import LifespanManager
from backports import zstd
from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.access import ApiKey
from app.envelopes import OPENAI_PATHS, SYSTEM_ONE_PATHS
from app.main import create_app
from app.problems import HTTP_ROWS, TABLE
from app.settings import Settings
from engine.fake import FakeEngine
from engine.protocol import EngineDied
from tests.app.service import request_body, serving, until, until_phase

JSON = {"content-type": "application/json"}
ZSTD = {**JSON, "content-encoding": "zstd"}
KEY = "k" * 32
POSTED = ("/decide", "/rubrics/check")
FIELDS = {"type", "title", "status", "detail", "instance", "errors"}

Ask = Callable[[httpx.AsyncClient, FakeEngine], Awaitable[httpx.Response]]


@dataclass(frozen=True)
class Way:
    """A way to be refused, from a service that is ready."""

    code: str
    status: int
    ask: Ask


def sending(path: str = "/decide", **options: Any) -> Ask:
    """POST this."""
    return lambda client, _: client.post(path, **options)


def requesting(method: str, path: str) -> Ask:
    """Send a request without a body."""
    return lambda client, _: client.request(method, path)


async def too_many(client: httpx.AsyncClient, fake: FakeEngine) -> httpx.Response:
    """One request more than there are permits."""
    fake.gate.clear()
    before = len(fake.requests)
    admitted = [asyncio.create_task(client.post("/decide", json=request_body())) for _ in range(4)]
    await until(lambda: len(fake.requests) == before + 4)
    refused = await client.post("/decide", json=request_body())
    fake.gate.set()
    await asyncio.gather(*admitted)
    return refused


async def too_late(client: httpx.AsyncClient, fake: FakeEngine) -> httpx.Response:
    """A request that waits for ever."""
    fake.gate.clear()
    return await client.post("/decide", json=request_body(policy={"deadline_ms": 1}))


async def no_number(client: httpx.AsyncClient, fake: FakeEngine) -> httpx.Response:
    """A read that makes no sense."""
    fake.logprobs = lambda *_: (float("nan"), 0.0)
    return await client.post("/decide", json=request_body())


async def dead(client: httpx.AsyncClient, fake: FakeEngine) -> httpx.Response:
    """A read from an engine that is gone."""
    fake.read_error = EngineDied("gone")
    return await client.post("/decide", json=request_body())


BODIES = tuple(
    way
    for path in POSTED
    for way in (
        Way("malformed_body", 400, sending(path, content=b"{", headers=JSON)),
        Way("malformed_body", 400, sending(path, content=b"{}", headers=ZSTD)),
        Way("body_too_large", 413, sending(path, content=b" " * 70_000, headers=JSON)),
        Way("body_too_large", 413, sending(path, content=zstd.compress(b" " * 70_000), headers=ZSTD)),
        Way("unsupported_media_type", 415, sending(path, content=b"{}")),
        Way("unsupported_media_type", 415, sending(path, content=b"{}", headers={**JSON, "content-encoding": "gzip"})),
        Way("unsupported_media_type", 415, sending(path, data={"state": "s"})),
        Way("unsupported_media_type", 415, sending(path, files={"state": b"s"})),
        Way("schema_rejected", 422, sending(path, json=[])),
        Way("schema_rejected", 422, sending(path, json={})),
        Way("schema_rejected", 422, sending(path, json=request_body(policy={"layout": "wide"}))),
    )
)
# 64 selections, whose canvases each repeat their question.
WIDE = {
    "type": "object",
    "$defs": {"list": {"type": "array", "items": {"enum": [f"option {n}" for n in range(40)]}}},
    "properties": {f"q{n}": {"$ref": "#/$defs/list"} for n in range(64)},
}

WAYS = (
    *BODIES,
    Way("rubric_rejected", 422, sending(json=request_body(rubric={}))),
    Way("prompt_too_long", 422, sending(json=request_body(state="word " * 5000))),
    Way("plan_too_large", 422, sending(json=request_body(rubric=WIDE, policy={"layout": "isolated"}))),
    Way("not_found", 404, requesting("GET", "/")),
    Way("not_found", 404, requesting("POST", "/decide/")),
    Way("not_found", 404, requesting("POST", "/rubrics")),
    Way("not_found", 404, requesting("GET", "/docs")),
    Way("not_found", 404, requesting("GET", "/health/%2e%2e/%00")),
    Way("method_not_allowed", 405, requesting("GET", "/decide")),
    Way("method_not_allowed", 405, requesting("OPTIONS", "/decide")),
    Way("method_not_allowed", 405, requesting("BREW", "/decide")),
    Way("method_not_allowed", 405, requesting("GET", "/rubrics/check")),
    Way("method_not_allowed", 405, requesting("POST", "/health")),
    Way("method_not_allowed", 405, requesting("DELETE", "/metrics")),
)
FAILURES = (
    Way("overloaded", 429, too_many),
    Way("internal", 500, no_number),
    Way("engine_dead", 503, dead),
    Way("deadline_exceeded", 504, too_late),
)
MAY_RETRY = {"overloaded", "quota_exceeded", "starting", "draining", "engine_dead"}


def assert_problem(response: httpx.Response, status: int, code: str) -> None:
    """RFC 9457's fields and `errors`, nothing else, each of its type; `instance` names the request."""
    document = response.json()
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    assert document.keys() == FIELDS
    assert document["type"] == f"urn:onestep:problem:{code}"
    assert document["status"] == status
    assert document["instance"] == f"urn:onestep:request:{response.headers['x-request-id']}"
    assert all(isinstance(document[name], str) and document[name] for name in ("title", "detail"))
    for problem in document["errors"]:
        assert problem.keys() == {"pointer", "code", "message"}
        assert re.fullmatch(r"(/.*)?", problem["pointer"])
        assert re.fullmatch("[a-z_]+", problem["code"])
        assert problem["message"]
    assert bool(document["errors"]) is (status in (400, 413, 415, 422))
    assert ("retry-after" in response.headers) is (code in MAY_RETRY)
    assert ("allow" in response.headers) is (status == 405)


async def test_every_refusal_of_a_request_has_one_shape(
    client: httpx.AsyncClient, fake: FakeEngine, subtests: pytest.Subtests
) -> None:
    """C1: what is wrong with a request, wherever it is found."""
    for number, way in enumerate(WAYS):
        with subtests.test(f"{number}: {way.code}"):
            assert_problem(await way.ask(client, fake), way.status, way.code)


@pytest.mark.parametrize("way", FAILURES, ids=lambda way: way.code)
async def test_every_failure_has_one_shape(way: Way, client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """C1: what goes wrong with a good request."""
    assert_problem(await way.ask(client, fake), way.status, way.code)


@pytest.fixture
async def starting(app: FastAPI, fake: FakeEngine) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service whose engine is not up yet."""
    fake.start_seconds = 60.0
    async with serving(app) as client:
        yield client


@pytest.mark.parametrize("path", POSTED)
async def test_a_refusal_before_ready(starting: httpx.AsyncClient, path: str) -> None:
    """C1: the same."""
    assert_problem(await starting.post(path, json=request_body()), 503, "starting")


class SlowToClose(FakeEngine):
    """An engine that takes until `gate` is set to stop."""

    async def close(self) -> None:
        await self.gate.wait()
        await super().close()


async def test_a_refusal_while_stopping(settings: Settings, fake: FakeEngine) -> None:
    """C1, R8: `draining` for a request that comes after the service was told to stop, and `/health` agrees."""
    engine = SlowToClose(settings=fake.settings)
    manager = LifespanManager(create_app(settings, lambda _: engine))
    await manager.__aenter__()
    transport = httpx.ASGITransport(app=manager.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://onestep") as client:
        await until_phase(client, "ready")
        engine.gate.clear()
        stopping = asyncio.create_task(manager.__aexit__(None, None, None))
        await until_phase(client, "draining")
        assert_problem(await client.post("/decide", json=request_body()), 503, "draining")
        engine.gate.set()
        await stopping
        assert_problem(await client.post("/decide", json=request_body()), 503, "draining")


@pytest.mark.parametrize("path", [*POSTED, "/openapi.json", "/nowhere"])
async def test_a_refusal_without_a_key(settings: Settings, fake: FakeEngine, path: str) -> None:
    """C1, S1: unknown paths too, and with what to send."""
    keyed = replace(settings, api_keys=(ApiKey.parse(f"a:{KEY}"),))
    async with serving(create_app(keyed, lambda _: fake)) as client:
        await until_phase(client, "ready")
        refused = await client.post(path, json=request_body())
        assert_problem(refused, 401, "unauthenticated")
        assert refused.headers["www-authenticate"] == "Bearer"


async def test_a_refusal_of_a_tenant_that_has_its_share(settings: Settings, fake: FakeEngine) -> None:
    """C1, R1: another tenant is served meanwhile."""
    keys = tuple(ApiKey.parse(f"{name}:{name}{KEY}") for name in "ab")
    shared = replace(settings, api_keys=keys, tenant_inflight=1)
    async with serving(create_app(shared, lambda _: fake)) as client:
        await until_phase(client, "ready")
        fake.gate.clear()
        headers = {name: {"authorization": f"Bearer {name}{KEY}"} for name in "ab"}
        before = len(fake.requests)
        asks = [asyncio.create_task(client.post("/decide", json=request_body(), headers=headers["a"]))]
        await until(lambda: len(fake.requests) == before + 1)
        assert_problem(await client.post("/decide", json={}, headers=headers["a"]), 429, "quota_exceeded")
        asks.append(asyncio.create_task(client.post("/decide", json=request_body(), headers=headers["b"])))
        await until(lambda: len(fake.requests) == before + 2)
        fake.gate.set()
        assert [answer.status_code for answer in await asyncio.gather(*asks)] == [200, 200]


async def test_a_refusal_of_a_body_that_does_not_come(settings: Settings, fake: FakeEngine) -> None:
    """C1, S10: it holds no permit while it is waited for."""
    permits = replace(settings, max_inflight=1, body_seconds=0.2)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(3600)

    async with serving(create_app(permits, lambda _: fake)) as client:
        await until_phase(client, "ready")
        slow = asyncio.create_task(client.post("/decide", content=never(), headers=JSON))
        await asyncio.sleep(0.01)
        assert (await client.post("/decide", json=request_body())).status_code == 200
        assert_problem(await slow, 408, "body_too_slow")


def test_every_code_is_reached() -> None:
    """The ways above, and those that need a service of their own, are all there are."""
    codes = {row.code for row in (*TABLE.values(), *HTTP_ROWS.values())}
    own = {"starting", "draining", "unauthenticated", "body_too_slow", "quota_exceeded"}
    own |= {"not_offered"}  # by protocols that name a model: tests.contract.test_protocols
    assert {way.code for way in (*WAYS, *FAILURES)} | own == codes


async def test_every_route_documents_its_refusals(app: FastAPI, client: httpx.AsyncClient) -> None:
    """C1: each status a route can answer is in the API's description, with the document's schema, and no other.

    A check reads nothing, so it has no deadline to miss.
    """
    paths = (await client.get("/openapi.json")).json()["paths"]
    statuses = {str(way.status) for way in (*WAYS, *FAILURES)} - {"404", "405"} | {"401", "408"}
    for path, expected in {"/decide": statuses, "/rubrics/check": statuses - {"504"}}.items():
        described = paths[path]["post"]["responses"]
        assert described.keys() == {"200"} | expected
        for status in expected:
            assert set(described[status]["content"]["application/problem+json"]["schema"]["properties"]) == FIELDS
    spoken = [*SYSTEM_ONE_PATHS, *OPENAI_PATHS]
    routes = [route.path for route in app.routes if isinstance(route, APIRoute)]
    assert routes == [*POSTED, *spoken, "/health", "/metrics"]
