"""The boundary around every request, fed with hand-made messages."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.authentication import Authentication
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from app.middleware import RequestBoundary
from tests.app.canary import CANARY


@pytest.fixture
def metrics() -> Metrics:
    """Collectors that have counted nothing."""
    return Metrics()


@dataclass(frozen=True)
class Exchange:
    """What a boundary made of one request."""

    sent: list[Message]
    scope: Scope

    @property
    def status(self) -> int:
        """Status of the answer."""
        status: int = self.sent[0]["status"]
        return status

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        """Body of the answer."""
        return b"".join(message["body"] for message in self.sent[1:])


async def exchange(app: ASGIApp, metrics: Metrics, *, phase: Phase = Phase.READY, **scope: Any) -> Exchange:
    """Send one request through the boundary."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("read")

    whole: Scope = {"type": "http", "method": "POST", "path": f"/{CANARY}", "headers": [], **scope}
    lifecycle = Lifecycle()
    lifecycle.phase = phase
    await RequestBoundary(app, metrics=metrics, lifecycle=lifecycle)(whole, receive, send)
    return Exchange(sent, whole)


def start(status: int) -> Message:
    """The first message of an answer."""
    return {"type": "http.response.start", "status": status, "headers": [(b"x-own", b"1")]}


async def answering(scope: Scope, _: Receive, send: Send) -> None:
    """An application that answers on a known route."""
    scope["route"] = SimpleNamespace(path="/decide")
    await send(start(201))
    await send({"type": "http.response.body", "body": b"fine"})


async def failing(*_: object) -> None:
    """An application with a bug, whose message quotes the request."""
    raise ValueError(CANARY)


async def failing_halfway(_: Scope, __: Receive, send: Send) -> None:
    """An application with a bug behind the start of its answer."""
    await send(start(200))
    raise ValueError(CANARY)


async def silent(*_: object) -> None:
    """An application that answers nothing."""


def requests(metrics: Metrics, route: str, status: str) -> float | None:
    """How many requests were counted."""
    return metrics.registry.get_sample_value("decide_requests_total", {"route": route, "status": status})


async def test_an_answer_passes_with_the_requests_id(metrics: Metrics) -> None:
    """Status, headers and body as the application sent them; the id is ours and new every time."""
    first, second = [await exchange(answering, metrics) for _ in range(2)]
    assert (first.status, first.body, first.headers["x-own"]) == (201, b"fine", "1")
    assert re.fullmatch("req_[0-9a-f]{24}", first.headers["x-request-id"])
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


async def test_a_callers_request_id_changes_nothing(metrics: Metrics) -> None:
    """S5: nothing of it comes back."""
    sent = await exchange(answering, metrics, headers=[(b"x-request-id", CANARY.encode())])
    assert CANARY not in str(sent.headers)


async def test_a_bug_is_answered_and_not_raised_again(metrics: Metrics, lines: list[dict[str, Any]]) -> None:
    """P1: a server would print the exception's message. Here it is in no answer and in no line."""
    sent = await exchange(failing, metrics)
    document = json.loads(sent.body)
    assert (sent.status, sent.headers["content-type"]) == (500, "application/problem+json")
    assert document["type"] == "urn:onestep:problem:internal"
    assert document["instance"] == f"urn:onestep:request:{sent.headers['x-request-id']}"
    assert requests(metrics, "unmatched", "500") == 1
    assert [(line["event"], line.get("error")) for line in lines] == [
        ("unhandled error", "ValueError"),
        ("request", None),
    ]
    assert lines[0]["at"].startswith("test_middleware.py:")
    assert CANARY not in str(sent.sent) + str(lines)


async def test_a_bug_behind_the_start_of_an_answer(metrics: Metrics, lines: list[dict[str, Any]]) -> None:
    """A second answer cannot be sent; the error is logged all the same, and not raised."""
    sent = await exchange(failing_halfway, metrics)
    assert [message["type"] for message in sent.sent] == ["http.response.start"]
    assert [line["event"] for line in lines] == ["unhandled error", "request"]


async def test_a_client_that_left(metrics: Metrics, lines: list[dict[str, Any]]) -> None:
    """R4: counted as 499, not as an error of ours, and not answered."""

    async def app(*_: object) -> None:
        raise ClientDisconnect

    assert (await exchange(app, metrics)).sent == []
    assert requests(metrics, "unmatched", "499") == 1
    assert [(line["event"], line["level"]) for line in lines] == [("request", "INFO")]


async def test_a_request_is_counted_and_logged_once(metrics: Metrics, lines: list[dict[str, Any]]) -> None:
    """By its route and status, with its time."""
    sent = await exchange(answering, metrics)
    assert requests(metrics, "/decide", "201") == 1
    assert metrics.registry.get_sample_value("decide_request_seconds_count", {"route": "/decide"}) == 1
    (line,) = lines
    assert 0 <= line.pop("seconds") < 60
    del line["time"]
    assert line == {
        "level": "INFO",
        "event": "request",
        "request_id": sent.headers["x-request-id"],
        "route": "/decide",
        "status": 201,
    }


@pytest.mark.parametrize(("route", "level"), [("/health", "DEBUG"), ("/metrics", "DEBUG"), ("/decide", "INFO")])
async def test_probes_are_logged_at_debug_only(
    route: str, level: str, metrics: Metrics, lines: list[dict[str, Any]]
) -> None:
    """They come every second."""
    await exchange(silent, metrics, route=SimpleNamespace(path=route))
    assert [line["level"] for line in lines] == [level]


async def test_a_path_is_no_label(metrics: Metrics, lines: list[dict[str, Any]]) -> None:
    """P4: without a route a request counts as `unmatched`, whatever its path; an answer never sent as 499."""
    await exchange(silent, metrics)
    assert requests(metrics, "unmatched", "499") == 1
    assert CANARY not in metrics.exposition().decode() + str(lines)


async def test_other_scopes_pass(metrics: Metrics) -> None:
    """The lifespan is no request."""
    seen: list[str] = []

    async def app(scope: Scope, *_: object) -> None:
        seen.append(scope["type"])

    sent = await exchange(app, metrics, type="lifespan")
    assert seen == ["lifespan"]
    assert "onestep.request_id" not in sent.scope
    assert "decide_requests_total{" not in metrics.exposition().decode()


async def test_a_request_that_the_end_of_the_process_cuts_off(metrics: Metrics, lines: list[dict[str, Any]]) -> None:
    """R8: it is answered, as every request that comes then, and not by the server's plain 500."""

    async def app(*_: object) -> None:
        raise asyncio.CancelledError

    for phase, code in ((Phase.READY, "draining"), (Phase.DRAINING, "draining"), (Phase.FAILED, "engine_dead")):
        sent = await exchange(app, metrics, phase=phase)
        assert (sent.status, json.loads(sent.body)["type"]) == (503, f"urn:onestep:problem:{code}")
    assert [line["status"] for line in lines] == [503] * 3


async def test_leaving_is_not_answered(metrics: Metrics) -> None:
    """What ends the process is not an application's bug: it passes, counted."""

    async def app(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await exchange(app, metrics)
    assert requests(metrics, "unmatched", "499") == 1


def test_no_base_http_middleware(app: FastAPI) -> None:
    """R5: behind one, a client's disconnect is never seen. The boundary is outermost."""
    ours: list[object] = [middleware.cls for middleware in app.user_middleware]
    assert ours == [RequestBoundary, Authentication]
    layer: Any = app.build_middleware_stack()
    layers = []
    while layer is not None:
        layers.append(layer)
        layer = getattr(layer, "app", None) or getattr(layer, "_app", None)
    assert any(isinstance(layer, RequestBoundary) for layer in layers)
    assert not any(isinstance(layer, BaseHTTPMiddleware) for layer in layers)
