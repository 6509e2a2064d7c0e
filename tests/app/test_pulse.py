"""Since when an engine owes an answer."""

from __future__ import annotations

import asyncio

import pytest

from app.pulse import WatchedEngine
from engine.fake import FakeEngine
from engine.protocol import Branch, CanvasSlot, ReadFailed, ReadRequest
from tests.app.service import until


class Clock:
    """Seconds that pass when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """At zero."""
    return Clock()


@pytest.fixture
async def watched(fake: FakeEngine, clock: Clock) -> WatchedEngine:
    """The fake, watched, and started."""
    watched = WatchedEngine(engine=fake, clock=clock)
    await watched.start()
    return watched


def request(number: int = 0) -> ReadRequest:
    """Any read."""
    branch = Branch(canvas_token_ids=(1, 2), canvas_slots=(CanvasSlot(position=0, label_token_ids=(3, 4)),))
    return ReadRequest(request_id=f"read-{number}", prompt_token_ids=(1,), branches=(branch,))


async def test_nothing_asked_nothing_owed(watched: WatchedEngine, clock: Clock) -> None:
    """An idle engine is not silent, whatever it answered before."""
    clock.now = 100.0
    assert watched.silent_seconds == 0
    assert (await watched.read(request())).branch_logprobs
    clock.now = 200.0
    assert watched.silent_seconds == 0


async def test_silence_begins_with_the_first_unanswered_read(
    watched: WatchedEngine, fake: FakeEngine, clock: Clock
) -> None:
    """More of them change nothing; one answer ends it for all."""
    fake.gate.clear()
    reads = [asyncio.create_task(watched.read(request(0)))]
    await until(lambda: len(fake.requests) == 1)
    clock.now = 5.0
    reads.append(asyncio.create_task(watched.read(request(1))))
    await until(lambda: len(fake.requests) == 2)
    assert watched.silent_seconds == 5
    fake.gate.set()
    await asyncio.gather(*reads)
    clock.now = 50.0
    assert watched.silent_seconds == 0


async def test_an_answer_while_others_wait(watched: WatchedEngine, fake: FakeEngine, clock: Clock) -> None:
    """From then on it owes the others."""
    fake.gate.clear()
    waiting = asyncio.create_task(watched.read(request(0)))
    await until(lambda: len(fake.requests) == 1)
    clock.now = 5.0
    watched._under_way += 1
    watched._answered()
    clock.now = 8.0
    assert watched.silent_seconds == 3
    fake.gate.set()
    await waiting


async def test_a_read_that_was_given_up_is_owed(watched: WatchedEngine, fake: FakeEngine, clock: Clock) -> None:
    """R15: deadlines end every read that hangs, and would hide that the engine does."""
    fake.gate.clear()
    waiting = asyncio.create_task(watched.read(request()))
    await until(lambda: len(fake.requests) == 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    clock.now = 7.0
    assert watched.silent_seconds == 7
    assert list(fake.aborted) == ["read-0"]
    fake.gate.set()
    await watched.read(request())
    assert watched.silent_seconds == 0


async def test_a_read_that_fails_is_an_answer(watched: WatchedEngine, fake: FakeEngine, clock: Clock) -> None:
    """It came from the engine."""
    fake.read_error = ReadFailed("no")
    with pytest.raises(ReadFailed):
        await watched.read(request())
    clock.now = 9.0
    assert watched.silent_seconds == 0


async def test_all_else_is_the_engines(watched: WatchedEngine, fake: FakeEngine) -> None:
    """Checks and the end."""
    await watched.check()
    await watched.close()
    assert fake.is_closed
