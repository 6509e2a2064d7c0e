"""Pure ASGI middleware around every request: its id, its metrics, its log line, and the last line of defence.

Not Starlette's `BaseHTTPMiddleware`, behind which a client's disconnect is never seen. And not Starlette's handler for
`Exception`: it stands outside every middleware and raises again, so the server prints the exception's message, which
can quote a request.
"""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.envelopes import envelope_of
from app.errors import Draining
from app.lifecycle import REFUSALS, Lifecycle
from app.logging import log
from app.metrics import Metrics
from app.problems import answer_problem
from app.request_id import new_request_id

UNMATCHED_ROUTE = "unmatched"
# No status was sent: nginx's number for a client that left.
CLIENT_LEFT = 499


class RequestBoundary:
    """Outermost: gives a request its id, answers what nobody handled, counts and logs every request once."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, lifecycle: Lifecycle) -> None:
        self._app = app
        self._metrics = metrics
        self._lifecycle = lifecycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["onestep.request_id"] = new_request_id()
        answer = _Answer(scope, send)
        started = time.perf_counter()
        try:
            await self._app(scope, receive, answer.send)
        except ClientDisconnect:
            return  # nobody is left to answer
        except asyncio.CancelledError:
            # The process could not wait for it any longer. Not raised again: the server would answer for us.
            if not answer.status:
                refusal = REFUSALS.get(self._lifecycle.phase, Draining)
                await answer_problem(Request(scope), refusal())(scope, receive, answer.send)
        except Exception as error:
            log(logging.ERROR, "unhandled error", error=error, request_id=scope["onestep.request_id"])
            if not answer.status:
                await answer_problem(Request(scope), error)(scope, receive, answer.send)
        finally:
            self._record(scope, answer.status or CLIENT_LEFT, time.perf_counter() - started)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED_ROUTE)
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        level = logging.DEBUG if route in ("/health", "/metrics") else logging.INFO
        log(
            level,
            "request",
            request_id=scope["onestep.request_id"],
            route=route,
            status=status,
            seconds=seconds,
        )


class _Answer:
    """Watches an answer being sent and adds the request's id to it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        request_id = scope["onestep.request_id"].encode()
        self._headers = [(name, request_id) for name in envelope_of(scope).request_id_headers]
        self._send = send
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message["headers"], *self._headers]}
        await self._send(message)
