"""Ten thousand reads in all shapes, some abandoned: every answer is the right request's, and nothing is left behind."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import Counter

import pytest

from engine.protocol import ReadRequest, ReadResult
from tests.engine.reads import ReadMaker, distance
from tests.engine.running import RunningEngine

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")]

READS = 10_000
CLIENTS = 24
ABORTED_SHARE = 0.1
TOLERANCE = 1e-4


def known_requests() -> list[ReadRequest]:
    """Sixty requests, all different: single reads of all widths, bundles, prompts on and off block boundaries."""
    maker = ReadMaker(21)
    singles = [maker.read(maker.random.choice((1, 5, 31, 32, 33, 64, 90)), (0, 1 + n)) for n in range(40)]
    bundles = [maker.read(5 * n + 1, *[(maker.random.randint(0, 9), 1 + n)] * (2 + n % 3)) for n in range(18)]
    return [*singles, *bundles, maker.read(700, (0, 64)), maker.read(1200, (3, 30), (0, 16))]


class Crowd:
    """Clients that ask known requests over and over, and now and then leave before the answer."""

    def __init__(self, running: RunningEngine, known: list[tuple[ReadRequest, ReadResult]]) -> None:
        self._engine = running.engine
        self._known = known
        self._random = random.Random(22)
        self.outcomes: Counter[str] = Counter()
        self.reads = 0

    async def ask(self) -> None:
        """Ask until there have been enough reads."""
        while self.reads < READS:
            request, expected = self._random.choice(self._known)
            self.reads += len(request.branches)
            asked = dataclasses.replace(request, request_id=f"{request.request_id}-{self.reads}")
            patience_seconds = self._random.uniform(0, 0.05) if self._random.random() < ABORTED_SHARE else None
            try:
                result = await asyncio.wait_for(self._engine.read(asked), patience_seconds)
            except TimeoutError:
                self.outcomes["aborted"] += 1
                continue
            self.outcomes["right" if distance([result], [expected]) <= TOLERANCE else "wrong"] += 1

    async def ask_all(self) -> None:
        """All clients at once."""
        await asyncio.gather(*(self.ask() for _ in range(CLIENTS)))


def test_ten_thousand_reads(fused_engine: RunningEngine) -> None:
    """Right or aborted, never wrong; no KV block is held afterwards, and no step is run for anybody who is gone."""
    requests = known_requests()
    crowd = Crowd(fused_engine, list(zip(requests, fused_engine.read_one_by_one(requests), strict=True)))
    fused_engine.wait(crowd.ask_all())
    assert crowd.reads >= READS
    assert crowd.outcomes["wrong"] == 0
    assert crowd.outcomes["aborted"] > 100
    first, second = (fused_engine.read(requests[0]).engine_steps[-1].index for _ in range(2))
    assert second == first + 1
    # vLLM empties its prefix cache only if every block is free.
    fused_engine.forget_prefixes()
