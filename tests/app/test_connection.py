"""Slow and broken callers, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from app.connection import HEADER_BYTES, Connection
from app.lifecycle import Phase
from engine.fake import FakeEngine
from tests.app.canary import CANARY
from tests.app.service import PATIENCE_SECONDS, request_body, until
from tests.contract.test_problem_shape import FIELDS

BODY = json.dumps(request_body()).encode()


class LoopServer(uvicorn.Server):
    """A server in this event loop, which leaves signals alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    @property
    def port(self) -> int:
        """It chose."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port


def soon(name: str) -> Any:
    """One of the waits, and only that, ends soon."""

    @pytest.fixture
    def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(f"app.connection.{name}", 0.3)

    return shorten


headers_end_soon, lingering_ends_soon, taking_ends_soon = map(
    soon, ("HEADER_SECONDS", "LINGER_SECONDS", "TAKING_SECONDS")
)


@pytest.fixture
async def server(app: FastAPI) -> AsyncIterator[LoopServer]:
    """The service over the fake engine, ready, on a port of its own."""
    config = uvicorn.Config(
        app, port=0, http=Connection, ws="none", log_config=None, access_log=False, timeout_keep_alive=60
    )
    server = LoopServer(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    await until(lambda: server.lifespan.state["lifecycle"].phase is Phase.READY)
    yield server
    server.should_exit = True
    await serving


class Caller:
    """A connection of which every byte is written by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *parts: bytes) -> None:
        """Write."""
        self.writer.write(b"".join(parts))

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), headers, await self.reader.readexactly(int(headers["content-length"]))

    async def is_closed(self) -> bool:
        """Wait for the end; whatever still comes is let go."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await self.reader.read(65_536):
                    pass
        except ConnectionError:
            pass  # it was reset, which is an end too
        return True


@pytest.fixture
async def caller(server: LoopServer) -> AsyncIterator[Caller]:
    """Somebody who has connected."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    yield Caller(reader, writer)
    writer.transport.abort()


def head(length: int, *, more: bytes = b"", path: str = "/decide") -> bytes:
    """Headers of a request with a body of this length."""
    start = b"POST %b HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n" % path.encode()
    return start + b"content-length: %d\r\n%b\r\n" % (length, more)


async def test_a_good_request(caller: Caller) -> None:
    """However it is cut into pieces, and another on the same connection."""
    whole = head(len(BODY)) + BODY
    for pieces in ([whole], [whole[i : i + 7] for i in range(0, len(whole), 7)]):
        for piece in pieces:
            caller.send(piece)
            await asyncio.sleep(0)
        status, _, body = await caller.answer()
        assert (status, json.loads(body)["decision"].keys()) == (200, {"refill"})


@pytest.mark.usefixtures("headers_end_soon")
@pytest.mark.parametrize("sent", [b"", b"POST /dec", b"POST /decide HTTP/1.1\r\nhost: a\r\nx-a: "])
async def test_headers_that_do_not_come(caller: Caller, sent: bytes) -> None:
    """S10: not one byte, a part of the path, a part of a header: the connection ends."""
    caller.send(sent)
    assert await caller.is_closed()


@pytest.mark.usefixtures("headers_end_soon")
async def test_headers_that_drip(caller: Caller) -> None:
    """S10: a byte now and then does not keep it open."""

    async def drip() -> None:
        caller.send(b"GET /health HTTP/1.1\r\nx-a: ")
        while True:
            caller.send(b"a")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip())
    assert await caller.is_closed()
    dripping.cancel()


@pytest.mark.usefixtures("headers_end_soon")
async def test_headers_of_a_second_request_that_do_not_come(caller: Caller) -> None:
    """S10: nor does a good request before."""
    caller.send(head(len(BODY)), BODY)
    assert (await caller.answer())[0] == 200
    caller.send(b"POST")
    assert await caller.is_closed()


async def test_headers_without_end(caller: Caller) -> None:
    """S10: refused at 64 KiB, with a problem document that has an id and nothing of the request."""
    caller.send(f"GET /{CANARY} HTTP/1.1\r\nx-a: {CANARY}".encode(), b"a" * (2 * HEADER_BYTES + 1))
    await assert_refused(caller, 431, "headers_too_long")


async def test_headers_that_are_whole_and_too_long(caller: Caller) -> None:
    """S10: in one piece, or of many small headers."""
    caller.send(b"GET /health HTTP/1.1\r\n", b"x-a: b\r\n" * (HEADER_BYTES // 4), b"\r\n")
    await assert_refused(caller, 431, "headers_too_long")


async def test_headers_of_common_length(caller: Caller) -> None:
    """Far below the limit."""
    caller.send(b"GET /health HTTP/1.1\r\nx-a: ", b"a" * 30_000, b"\r\n\r\n")
    assert (await caller.answer())[0] == 200


async def test_trailers_without_end(caller: Caller) -> None:
    """S10: what follows a body in parts is read, and neither kept nor read for ever."""
    caller.send(b"POST /decide HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n")
    caller.send(b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n")
    for _ in range(100):
        caller.send(b"a: b\r\n" * 1000)
        await asyncio.sleep(0)
    assert await caller.is_closed()


async def test_a_trailer_is_no_header(caller: Caller) -> None:
    """S1: what stands behind a body says nothing of it."""
    parts = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\ncontent-type: text/plain\r\n\r\n"
    caller.send(b"POST /decide HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n", parts % (len(BODY), BODY))
    assert (await caller.answer())[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n\x00\x01\x02\r\n\r\n",
        f"{CANARY}\r\n\r\n".encode(),
        f"GET / HTTP/9.9\r\nx: {CANARY}\r\n\r\n".encode(),
        b"POST /decide HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /decide HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /decide HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        f"GET /é HTTP/1.1\r\n {CANARY}\r\n\r\n".encode(),
    ],
    ids=["bytes", "a word", "version", "negative length", "two lengths", "two lengths of one kind", "path"],
)
async def test_what_is_not_http(caller: Caller, sent: bytes) -> None:
    """C1, P1: 400, in the one form of every refusal."""
    caller.send(sent)
    await assert_refused(caller, 400, "malformed_request")


async def assert_refused(caller: Caller, status: int, code: str) -> None:
    """The answer is this problem, and the connection ends with it."""
    got, headers, body = await caller.answer()
    document = json.loads(body)
    assert (got, headers["content-type"]) == (status, "application/problem+json")
    assert document.keys() == FIELDS
    assert document["type"] == f"urn:onestep:problem:{code}"
    assert document["instance"] == f"urn:onestep:request:{headers['x-request-id']}"
    assert CANARY not in body.decode()
    assert await caller.is_closed()


@pytest.mark.usefixtures("lingering_ends_soon")
async def test_the_rest_of_a_refused_body_is_not_waited_for(caller: Caller) -> None:
    """S8, S10: the sender sees the answer, and has the connection to itself no longer."""
    caller.send(head(1 << 30), b" " * 70_000)
    assert (await caller.answer())[0] == 413
    assert await caller.is_closed()


async def test_a_refused_body_that_is_sent_whole(caller: Caller) -> None:
    """The connection goes on."""
    caller.send(head(70_000), b" " * 70_000)
    assert (await caller.answer())[0] == 413
    caller.send(head(len(BODY)), BODY)
    assert (await caller.answer())[0] == 200


@pytest.mark.usefixtures("taking_ends_soon")
async def test_an_answer_that_is_not_taken(server: LoopServer) -> None:
    """S10: who asks and asks and reads nothing loses the connection."""
    connected = len(server.server_state.connections)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    many = b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n" * 2000
    writer.write(many)
    await until(lambda: len(server.server_state.connections) > connected)
    await until(lambda: len(server.server_state.connections) == connected)
    writer.transport.abort()
    del reader


PREDICATE = {"type": "predicate", "instructions": "It is so."}
ASKED = {
    "/decide": BODY,
    "/v1/systemone": json.dumps({"model": "jev-latest", "state": "a", "questions": {"q": {"type": "noul"}}}).encode(),
    "/v1/decisions": json.dumps({"model": "gpt-6-luna", "input": "a", "questions": [PREDICATE]}).encode(),
}


@pytest.mark.parametrize("path", ASKED)
async def test_a_caller_that_leaves(caller: Caller, server: LoopServer, fake: FakeEngine, path: str) -> None:
    """R4: its read is aborted, its permit is free, and it is counted."""
    fake.gate.clear()
    before, aborted = len(fake.requests), len(fake.aborted)
    caller.send(head(len(ASKED[path]), path=path), ASKED[path])
    await until(lambda: len(fake.requests) == before + 1)
    state = server.lifespan.state
    assert state["admission"].inflight == 1
    caller.writer.transport.abort()
    await until(lambda: state["admission"].inflight == 0)
    assert len(fake.aborted) == aborted + 1
    counted = {"route": path, "status": "499"}
    await until(lambda: state["metrics"].registry.get_sample_value("decide_requests_total", counted) == 1)


async def test_a_caller_that_leaves_behind_another_request(
    caller: Caller, server: LoopServer, fake: FakeEngine
) -> None:
    """R4: which it has sent already."""
    fake.gate.clear()
    before = len(fake.requests)
    caller.send(head(len(BODY)), BODY, b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
    await until(lambda: len(fake.requests) == before + 1)
    caller.writer.transport.abort()
    await until(lambda: server.lifespan.state["admission"].inflight == 0)


async def test_line_breaks_keep_no_connection(server: LoopServer) -> None:
    """S10: between requests only another request's beginning counts."""
    server.config.timeout_keep_alive = 1
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    caller = Caller(reader, writer)
    caller.send(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await caller.answer())[0] == 200

    async def drip() -> None:
        while True:
            caller.send(b"\r\n")
            await asyncio.sleep(0.1)

    dripping = asyncio.create_task(drip())
    assert await caller.is_closed()
    dripping.cancel()
    writer.transport.abort()


async def test_a_caller_that_leaves_with_its_body(caller: Caller, server: LoopServer) -> None:
    """R4: what it had sent is forgotten."""
    caller.send(head(1000), b'{"a')
    budget = server.lifespan.state["admission"].arriving_bytes()
    await until(lambda: budget.taken == 3)
    caller.writer.transport.abort()
    await until(lambda: budget.taken == 0)
