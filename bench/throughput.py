"""Clients in a closed loop: each asks the next read when the last is answered, for the length of a block."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from bench.turn import Arm, count_engine_steps, order_of_turn, run_job
from engine.protocol import ReadResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one arm answered in one block.

    Attributes:
        seconds: from the first request to the last answer.
    """

    seconds: float
    results: tuple[ReadResult, ...]

    @property
    def reads_per_second(self) -> float:
        """The rate."""
        return len(self.results) / self.seconds

    @property
    def engine_steps_per_read(self) -> float:
        """Less than the steps of a read where reads share steps."""
        return count_engine_steps(self.results) / len(self.results)


async def take_blocks(
    arms: Sequence[Arm], *, blocks: int, clients: int, block_seconds: float
) -> dict[str, list[Block]]:
    """`blocks` blocks of each arm, in turns. An arm's job numbers go on from block to block, so every read is new."""
    numbers = {arm.name: count() for arm in arms}
    done: dict[str, list[Block]] = {arm.name: [] for arm in arms}
    for turn in range(blocks):
        for arm in order_of_turn(turn, arms):
            done[arm.name].append(await _run_block(arm, numbers[arm.name], clients, block_seconds))
    return done


async def _run_block(arm: Arm, numbers: Iterator[int], clients: int, block_seconds: float) -> Block:
    started = time.perf_counter()
    asked = [_ask_until(arm, numbers, started + block_seconds) for _ in range(clients)]
    per_client = await asyncio.gather(*asked)
    seconds = time.perf_counter() - started
    return Block(seconds=seconds, results=tuple(result for results in per_client for result in results))


async def _ask_until(arm: Arm, numbers: Iterator[int], end: float) -> list[ReadResult]:
    results: list[ReadResult] = []
    while time.perf_counter() < end:
        results.extend((await run_job(arm.engine, arm.make_job(next(numbers)))).results)
    return results
