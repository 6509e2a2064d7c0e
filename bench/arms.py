"""The arms of fused against two-step reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bench.engines import EngineOptions, running_engine
from bench.public_reads import PublicReads
from bench.read_set import ReadSet
from bench.synthetic_reads import SyntheticReads
from bench.turn import Arm, Job
from engine.protocol import Engine

FUSED, TWO_STEP, TWO_STEP_AGAIN = "fused", "two_step", "two_step_again"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePair:
    """The same model with fused reads and with vLLM's own two steps."""

    fused: Engine
    two_step: Engine

    def arms(self, reads: ReadSet, round_number: int) -> tuple[Arm, ...]:
        """Three arms: two-step, fused, and two-step once more, whose ratio to the first is what noise looks like.

        The first two read the same prompts, each on its own engine. The third has another variation of them, for its
        engine has seen the first; a further round has further ones.
        """
        first, second = 2 * round_number, 2 * round_number + 1
        return (
            make_arm(TWO_STEP, self.two_step, reads, first),
            make_arm(FUSED, self.fused, reads, first),
            make_arm(TWO_STEP_AGAIN, self.two_step, reads, second),
        )


def read_sets(public: PublicReads) -> tuple[ReadSet, ...]:
    """What both are measured on: real rubrics, a prompt of ordinary length, and a long one."""
    return public, SyntheticReads(prompt_tokens=188), SyntheticReads(prompt_tokens=1250)


def make_arm(name: str, engine: Engine, reads: ReadSet, variation: int) -> Arm:
    """An arm whose jobs are the single requests of a set."""
    return Arm(name=name, engine=engine, make_job=lambda number: Job(requests=(reads.read(number, variation),)))


@asynccontextmanager
async def running_pair(options: EngineOptions) -> AsyncIterator[EnginePair]:
    """Both engines, up and warm."""
    async with AsyncExitStack() as stack:
        fused = await stack.enter_async_context(running_engine(options, fused=True))
        two_step = await stack.enter_async_context(running_engine(options, fused=False))
        yield EnginePair(fused=fused, two_step=two_step)
