"""Closed loops."""

from __future__ import annotations

from bench.arms import FUSED, TWO_STEP, EnginePair
from bench.synthetic_reads import SyntheticReads
from bench.throughput import take_blocks
from engine.fake import FakeEngine


async def test_clients_ask_new_reads_until_the_block_ends(engines: EnginePair) -> None:
    assert isinstance(engines.fused, FakeEngine)
    assert isinstance(engines.two_step, FakeEngine)
    engines.fused.read_seconds = engines.two_step.read_seconds = 0.001
    arms = engines.arms(SyntheticReads(prompt_tokens=40), 0)[:2]
    done = await take_blocks(arms, blocks=3, clients=5, block_seconds=0.02)
    assert [len(done[name]) for name in (TWO_STEP, FUSED)] == [3, 3]
    assert all(block.seconds >= 0.02 and block.reads_per_second > 0 for blocks in done.values() for block in blocks)
    assert [done[name][0].engine_steps_per_read for name in (TWO_STEP, FUSED)] == [2, 1]
    answered = sum(len(block.results) for block in done[FUSED])
    assert len({asked.prompt_token_ids for asked in engines.fused.requests}) == answered
