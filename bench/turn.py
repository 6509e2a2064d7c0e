"""Measuring side by side: arms take turns, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import fmean, median
from typing import TypeVar

from engine.protocol import Engine, ReadRequest, ReadResult
from engine.warm_up import warm_up_request

T = TypeVar("T")

# Too short for a KV block, so it leaves nothing in the prefix cache.
WAKE_UP = warm_up_request(0, prompt_tokens=8, canvas_tokens=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one client waits for: a read, a bundle, or several requests.

    Attributes:
        is_sent_together: all requests at once; else each when the one before is answered.
    """

    requests: tuple[ReadRequest, ...]
    is_sent_together: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One of the ways that are compared.

    Attributes:
        engine: what it asks.
        make_job: its job of a number; the jobs of one number are what the arms are compared on.
    """

    name: str
    engine: Engine
    make_job: Callable[[int], Job]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneJob:
    """A job that was answered: from its first request to its last answer, in seconds."""

    seconds: float
    results: tuple[ReadResult, ...]


@dataclass(slots=True)
class Series:
    """What one arm did: per turn, the jobs that ran at once."""

    turns: list[list[DoneJob]] = field(default_factory=list)

    @property
    def median_seconds(self) -> float:
        """Median over all jobs."""
        return median(job.seconds for turn in self.turns for job in turn)

    @property
    def turn_seconds(self) -> list[float]:
        """Per turn, the mean over its jobs: jobs that ran at once are one observation, not several."""
        return [fmean(job.seconds for job in turn) for turn in self.turns]

    @property
    def results(self) -> list[ReadResult]:
        """Every answer."""
        return [result for turn in self.turns for job in turn for result in job.results]

    @property
    def reads(self) -> int:
        """Canvases that were read."""
        return count_reads(self.results)

    @property
    def fused_reads(self) -> int:
        """Of these, those that took one engine step."""
        return sum(result.fused_reads for result in self.results)

    @property
    def engine_steps(self) -> int:
        """Engine steps that took part."""
        return count_engine_steps(self.results)


def count_reads(results: Iterable[ReadResult]) -> int:
    """Canvases that were read: a bundle counts its branches."""
    return sum(len(result.branch_logprobs) for result in results)


def count_engine_steps(results: Iterable[ReadResult]) -> int:
    """Distinct engine steps, of one engine: reads that share a step count it once."""
    return len({step.index for result in results for step in result.engine_steps})


def count_cached_tokens(series: Iterable[Series]) -> int:
    """Prompt tokens that the prefix cache spared."""
    return sum(result.cached_tokens for one in series for result in one.results)


def order_of_turn(turn: int, arms: Sequence[T]) -> tuple[T, ...]:
    """The order of the arms: all permutations, one a turn, so that each arm is equally often first, and behind each."""
    orders = list(permutations(arms))
    return orders[turn % len(orders)]


async def take_turns(arms: Sequence[Arm], *, turns: int, clients: int) -> dict[str, Series]:
    """Every arm does jobs 0 to `turns * clients` - 1, `clients` at once."""
    series = {arm.name: Series() for arm in arms}
    for turn in range(turns):
        numbers = range(turn * clients, (turn + 1) * clients)
        for arm in order_of_turn(turn, arms):
            series[arm.name].turns.append(await _take_turn(arm, numbers))
    return series


async def run_job(engine: Engine, job: Job) -> DoneJob:
    """Do one job and time it."""
    started = time.perf_counter()
    if job.is_sent_together:
        results = await asyncio.gather(*map(engine.read, job.requests))
    else:
        results = [await engine.read(request) for request in job.requests]
    return DoneJob(seconds=time.perf_counter() - started, results=tuple(results))


async def _take_turn(arm: Arm, numbers: Iterable[int]) -> list[DoneJob]:
    jobs = [arm.make_job(number) for number in numbers]  # before any clock runs
    # Engines that have just been idle are some 10 % slower: processes asleep, weights out of the CPU's caches. Without
    # this an arm that follows another arm of the same engine would be ahead.
    await arm.engine.read(WAKE_UP)
    return await asyncio.gather(*(run_job(arm.engine, job) for job in jobs))
