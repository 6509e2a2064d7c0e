"""Rounds of a decision, over the fake engine."""

from __future__ import annotations

from bench.arms import EnginePair
from bench.rereads import HEADER, ROUNDS, WARM_UP, rereads_rows
from engine.fake import FakeEngine


async def test_rows(engines: EnginePair) -> None:
    """A round of any size is one step; all rounds of a decision share a prompt, and no two decisions do."""
    fake = engines.fused
    assert isinstance(fake, FakeEngine)
    fake.read_seconds = 0.001
    rows = await rereads_rows(fake, 188, turns=3)
    assert [row[:3] for row in rows] == [
        *(("188 tokens", str(number), reads) for number, reads in enumerate(ROUNDS, start=1)),
        ("188 tokens", "another first", 1),
    ]
    assert {row[5] for row in rows} == {"1.00"}
    assert {len(row) for row in rows} == {len(HEADER)}
    prompts = [request.prompt_token_ids for request in fake.requests]
    assert len(prompts) == 5 * (WARM_UP + 3)
    assert len(set(prompts)) == 2 * (WARM_UP + 3)
    assert len(set(prompts[:4])) == 1
    assert len({request.request_id for request in fake.requests}) == len(prompts)
