"""Arms take turns: fair orders, the same jobs, and counts that add up."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from bench.arms import FUSED, TWO_STEP, TWO_STEP_AGAIN, EnginePair
from bench.synthetic_reads import SyntheticReads
from bench.turn import WAKE_UP, DoneJob, Job, Series, count_cached_tokens, order_of_turn, run_job, take_turns
from engine.fake import FakeEngine
from engine.packing import alone


@pytest.mark.parametrize("arms", ["ab", "abc", "abcd"])
def test_every_arm_is_equally_often_at_every_place_and_behind_every_other(arms: str) -> None:
    orders = [order_of_turn(turn, arms) for turn in range(48)]
    places = Counter((place, arm) for order in orders for place, arm in enumerate(order))
    followers = Counter(pair for order in orders for pair in pairwise(order))
    assert len(set(places.values())) == len(set(followers.values())) == 1
    assert len(followers) == len(arms) * (len(arms) - 1)


async def test_arms_do_the_same_jobs_and_repeat_none(engines: EnginePair) -> None:
    series = await take_turns(engines.arms(SyntheticReads(prompt_tokens=40), 0), turns=6, clients=4)
    assert isinstance(engines.fused, FakeEngine)
    assert isinstance(engines.two_step, FakeEngine)
    fused, two_step = (
        [asked.prompt_token_ids for asked in engine.requests if asked is not WAKE_UP]
        for engine in (engines.fused, engines.two_step)
    )
    assert set(fused) < set(two_step)
    assert (len(set(fused)), len(set(two_step))) == (len(fused), len(two_step)) == (24, 48)
    assert [len(series[name].turn_seconds) for name in (TWO_STEP, FUSED, TWO_STEP_AGAIN)] == [6, 6, 6]


async def test_a_further_round_has_further_prompts(engines: EnginePair) -> None:
    for round_number in (0, 1):
        await take_turns(engines.arms(SyntheticReads(prompt_tokens=40), round_number), turns=5, clients=1)
    assert isinstance(engines.two_step, FakeEngine)
    prompts = [asked.prompt_token_ids for asked in engines.two_step.requests if asked is not WAKE_UP]
    assert len(set(prompts)) == len(prompts) == 20


async def test_counts_leave_out_the_reads_that_wake_the_engine(engines: EnginePair) -> None:
    series = await take_turns(engines.arms(SyntheticReads(prompt_tokens=40), 0), turns=3, clients=2)
    assert [(one.reads, one.engine_steps, one.fused_reads) for one in series.values()] == [
        (6, 12, 0),
        (6, 6, 6),
        (6, 12, 0),
    ]
    assert count_cached_tokens(series.values()) == 0


@pytest.mark.parametrize(("is_sent_together", "expected"), [(False, 1), (True, 3)])
async def test_requests_of_a_job_go_in_turn_or_together(
    engines: EnginePair, *, is_sent_together: bool, expected: int
) -> None:
    engine = engines.fused
    assert isinstance(engine, FakeEngine)
    engine.gate.clear()
    requests = alone(SyntheticReads(prompt_tokens=40, branches=3).read(0, 0))
    job = asyncio.create_task(run_job(engine, Job(requests=requests, is_sent_together=is_sent_together)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(engine.requests) == expected
    engine.gate.set()
    assert len((await job).results) == len(engine.requests) == 3


def test_jobs_that_ran_at_once_are_one_observation() -> None:
    series = Series([[DoneJob(seconds=seconds, results=()) for seconds in turn] for turn in ((1, 3), (2, 6))])
    assert series.turn_seconds == [2, 4]
    assert series.median_seconds == 2.5
