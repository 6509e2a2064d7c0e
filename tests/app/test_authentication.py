"""Who is let in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.access import ApiKey
from app.authentication import PUBLIC_PATHS
from app.main import create_app
from app.settings import Settings
from engine.fake import FakeEngine
from tests.app.canary import CANARY
from tests.app.service import request_body, serving, until_phase

KEYS = {name: f"{CANARY}-{name}-{'k' * 32}" for name in ("clinic", "pharmacy")}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Two tenants with a key each."""
    return replace(settings, api_keys=tuple(ApiKey.parse(f"{name}:{key}") for name, key in KEYS.items()))


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that is ready, without a key."""
    async with serving(app) as client:
        await until_phase(client, "ready")
        yield client


def bearing(key: str) -> dict[str, str]:
    """Headers with a key."""
    return {"authorization": f"Bearer {key}"}


async def test_every_route_needs_a_key_but_those_listed(app: FastAPI, client: httpx.AsyncClient) -> None:
    """S1: a route that is added is closed until somebody lists it."""
    routes = {
        (method, route.path) for route in app.routes if isinstance(route, Route) for method in route.methods or ()
    }
    assert {path for _, path in routes} >= {"/decide", "/rubrics/check", "/openapi.json"} | PUBLIC_PATHS
    for method, path in routes:
        status = (await client.request(method, path)).status_code
        assert (status in (401, 403)) is (path not in PUBLIC_PATHS), path
    assert {"/health", "/metrics"} == PUBLIC_PATHS


@pytest.mark.parametrize(
    "headers",
    [bearing(KEYS["clinic"]), {"authorization": f"bearer  {KEYS['clinic']} "}, {"x-api-key": KEYS["pharmacy"]}],
    ids=["bearer", "lower case, spaces", "x-api-key"],
)
async def test_a_key_opens(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    """S2: in either header."""
    assert (await client.post("/decide", json=request_body(), headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearing(""),
        bearing("x" * 40),
        bearing(KEYS["clinic"][:-1]),
        {"authorization": f"Basic {KEYS['clinic']}"},
        {"authorization": KEYS["clinic"]},
        {"x-api-key": f"Bearer {KEYS['clinic']}"},
        {"authorization": "Bearer wrong", "x-api-key": KEYS["clinic"]},
        {"cookie": KEYS["clinic"]},
    ],
    ids=range(9),
)
async def test_anything_else_does_not(
    client: httpx.AsyncClient, fake: FakeEngine, lines: list[dict[str, Any]], headers: dict[str, str]
) -> None:
    """S2, P1: before the body is looked at, and neither the answer nor the log says what was sent."""
    before = len(fake.requests)
    refused = await client.post("/decide", content=b"{", headers=headers)
    assert (refused.status_code, refused.json()["type"]) == (401, "urn:onestep:problem:unauthenticated")
    assert CANARY not in refused.text + str(refused.headers) + str(lines)
    assert len(fake.requests) == before


async def test_tenants_share_nothing(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """S3, S4: the same request of two tenants reaches the engine with two salts, each the same every time."""
    for name in ("clinic", "pharmacy", "clinic"):
        answer = await client.post("/decide", json=request_body(), headers=bearing(KEYS[name]))
        assert answer.status_code == 200
    first, other, again = (request.cache_salt for request in list(fake.requests)[-3:])
    assert first == again != other
    assert first
    assert other


async def test_without_keys_nobody_is_asked(fake: FakeEngine, settings: Settings) -> None:
    """On loopback: all callers are one."""
    async with serving(create_app(replace(settings, api_keys=()), lambda _: fake)) as client:
        await until_phase(client, "ready")
        assert (await client.post("/decide", json=request_body())).status_code == 200
    assert fake.requests[-1].cache_salt is None
