"""One connection to a caller: uvicorn's, with an end to everything a slow or broken caller could make last for ever.

uvicorn closes connections that are idle between requests, unless so much as a line break arrives, and waits as long as
it takes for anything else: for the first byte, for headers, for the rest of a body that was already refused, for an
answer to be taken. It lets headers be of any length, takes trailers for headers, does not see that a caller left whose
next request is there already, and answers what is not HTTP in plain text.
"""

from __future__ import annotations

from asyncio import BaseTransport, TimerHandle
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.metrics import EndReason, Metrics
from app.problems import HEADERS_TOO_LONG, NOT_HTTP, Row, raw_problem
from app.request_id import new_request_id

# Until a request's headers are there, from the connection's first moment or the request's first byte on.
HEADER_SECONDS = 10.0
# For the rest of a body that nobody reads any more, so that its sender gets to see the answer.
LINGER_SECONDS = 2.0
# For a caller to take something of its answer.
TAKING_SECONDS = 10.0
# Of headers and path together; as much again for what stands between the parts of a body.
HEADER_BYTES = 65_536
# Requests that may come before those ahead of them are answered; while more are there nothing is read.
MAX_PIPELINED = 8


class _Timer:
    """Something that happens later, unless it is stopped."""

    def __init__(self, make: Callable[[], TimerHandle]) -> None:
        self._make = make
        self._handle: TimerHandle | None = None

    @property
    def runs(self) -> bool:
        """Whether it will happen."""
        return self._handle is not None

    def start(self) -> None:
        """Begin to wait, from now on."""
        self.stop()
        self._handle = self._make()

    def stop(self) -> None:
        """Do not wait any longer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class Connection(HttpToolsProtocol):
    """A connection of which every wait has an end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        later = self.loop.call_later
        self._heading = _Timer(lambda: later(HEADER_SECONDS, self._headers_late))
        self._lingering = _Timer(lambda: later(LINGER_SECONDS, self._end, EndReason.BODY_UNREAD))
        self._giving = _Timer(lambda: later(TAKING_SECONDS, self._not_taken, self._untaken_bytes()))
        self._running: RequestResponseCycle | None = None
        self._idle: TimerHandle | None = None
        # Of the request that is arriving: what it has besides its body.
        self._header_bytes = 0
        self._has_progress = False

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._heading.start()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._heading, self._lingering, self._giving):
            timer.stop()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()

    def data_received(self, data: bytes) -> None:
        # Not any byte ends the wait for another request, but its beginning does: see `on_message_begin`.
        self._idle, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        self._has_progress = False
        super().data_received(data)
        if self._idle is not None:
            self.timeout_keep_alive_task, self._idle = self._idle, None
        if not self._has_progress:
            self._count(len(data))

    def on_message_begin(self) -> None:
        self._forget_idle()
        self._unset_keepalive_if_required()
        super().on_message_begin()
        self._header_bytes = 0
        if not self._heading.runs:
            self._heading.start()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._header_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._heading.runs:  # else it is a trailer, and no header of this request
            super().on_header(name, value)
            self._header_bytes += len(name) + len(value)

    def on_headers_complete(self) -> None:
        self._heading.stop()
        self._has_progress = True
        if self.transport.is_closing():
            return
        if self._header_bytes > HEADER_BYTES:
            self._refuse(HEADERS_TOO_LONG, EndReason.HEADERS_TOO_LONG)
            return
        self._header_bytes = 0
        super().on_headers_complete()
        if self.pipeline and len(self.pipeline) <= MAX_PIPELINED:
            self.flow.resume_reading()  # or nobody would see the caller leave

    def on_body(self, body: bytes) -> None:
        self._has_progress = True
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_progress = True
        if self.transport.is_closing():
            return
        super().on_message_complete()
        if self._lingering.runs:
            self._lingering.stop()
            self._await_another()

    def on_response_complete(self) -> None:
        # With requests in the pipeline the newest cycle is another request's.
        is_all_there = bool(self.pipeline) or not self.cycle.more_body
        super().on_response_complete()
        if self.transport.is_closing():
            self._giving.start()
        elif not is_all_there:
            self._lingering.start()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._giving.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._giving.stop()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._giving.start()

    def send_400_response(self, _: str) -> None:
        self._refuse(NOT_HTTP, EndReason.NOT_HTTP)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _count(self, more: int) -> None:
        """What arrived and was neither the end of headers nor any of a body."""
        is_open = self._heading.runs or (self.cycle is not None and self.cycle.more_body)
        if is_open and not self.transport.is_closing():
            self._header_bytes += more
            if self._header_bytes > 2 * HEADER_BYTES:
                self._refuse(HEADERS_TOO_LONG, EndReason.HEADERS_TOO_LONG)

    def _forget_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _await_another(self) -> None:
        self._forget_idle()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _headers_late(self) -> None:
        if self.flow.read_paused:  # it is we who do not read them
            self._heading.start()
        else:
            self._end(EndReason.HEADERS_LATE)

    def _not_taken(self, untaken_bytes: int) -> None:
        if self._untaken_bytes() < untaken_bytes:
            self._giving.start()
        else:
            self._end(EndReason.ANSWER_NOT_TAKEN)

    def _untaken_bytes(self) -> int:
        return self.transport.get_write_buffer_size()

    def _refuse(self, row: Row, reason: EndReason) -> None:
        """Answer what no application will see, and close. Beside an answer to an earlier request it would mislead."""
        if self.transport.is_closing():
            return
        if self._running is not None and not self._running.response_complete:
            self._end(reason)
            return
        self._metrics.connections_ended.labels(reason.value).inc()
        self.transport.write(raw_problem(row, new_request_id()))
        self.transport.close()
        self._giving.start()

    def _end(self, reason: EndReason) -> None:
        self._metrics.connections_ended.labels(reason.value).inc()
        self.transport.abort()

    @property
    def _metrics(self) -> Metrics:
        metrics: Metrics = self.app_state["metrics"]
        return metrics
