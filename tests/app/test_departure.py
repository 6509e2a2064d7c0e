"""Callers that leave."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.departure import while_connected


class Caller:
    """Somebody who may leave."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.messages: list[Message] = []

    async def receive(self) -> Message:
        """What ASGI hands out: messages first, and then that the caller left."""
        if self.messages:
            return self.messages.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def test_a_caller_that_stays_gets_what_work_returns() -> None:
    """And nothing goes on behind it."""
    before = asyncio.all_tasks()
    assert await while_connected(Caller().receive, asyncio.sleep(0.01, "done")) == "done"
    assert asyncio.all_tasks() == before


async def test_an_error_comes_through() -> None:
    """As it was raised."""

    async def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await while_connected(Caller().receive, work())


async def test_a_caller_that_leaves_ends_the_work() -> None:
    """R4: it has ended when this returns, so that what it held is free."""
    caller, ended = Caller(), []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    caller.messages = [{"type": "http.request", "body": b"", "more_body": False}]
    asyncio.get_running_loop().call_later(0.01, caller.gone.set)
    with pytest.raises(ClientDisconnect):
        await while_connected(caller.receive, work())
    assert ended == [True]


async def test_work_that_is_done_is_returned_though_the_caller_left() -> None:
    """Both at once: it may be counted."""
    caller = Caller()
    caller.gone.set()

    async def work() -> str:
        return "done"

    assert await while_connected(caller.receive, work()) == "done"


async def test_cancelled_work_is_cancelled() -> None:
    """From outside, as at the end of the process."""
    ended: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    task = asyncio.create_task(while_connected(Caller().receive, work()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
