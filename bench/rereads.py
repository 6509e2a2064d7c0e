"""What it costs to read again: the engine time of a decision's later rounds against its first read.

Every decision has a new prompt: its first read finds nothing in the prefix cache, and its later ones find the prompt.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace

from bench.command import Command, positive
from bench.engines import EngineOptions, add_engine_options, running_engine
from bench.ratio import median, paired_ratio
from bench.synthetic_reads import SyntheticReads
from bench.table import Row, milliseconds, render_table
from engine.protocol import Engine, ReadRequest, ReadResult

PROMPT_TOKENS = (188, 1250)
# Reads of a decision's rounds; the first once more, of another prompt, is what noise looks like.
ROUNDS = (1, 1, 2, 4)
WARM_UP = 4
TITLE = "Rounds of a decision, {dtype}, {turns} decisions; ratios are medians over them"
HEADER = ("prompt", "round", "reads", "engine ms", "of the first", "engine steps", "cached tokens")


async def measure_rereads(arguments: Namespace) -> str:
    """The table."""
    options = EngineOptions.of(arguments)
    async with running_engine(options, fused=True) as engine:
        rows = [row for tokens in PROMPT_TOKENS for row in await rereads_rows(engine, tokens, arguments.turns)]
    return render_table(TITLE.format(dtype=options.dtype, turns=arguments.turns), HEADER, rows)


async def rereads_rows(engine: Engine, prompt_tokens: int, turns: int) -> list[Row]:
    """A row per round, and one of another first read."""
    made = [await _decide(engine, prompt_tokens, number) for number in range(WARM_UP + turns)][WARM_UP:]
    rounds = list(zip(*made, strict=True))
    first = [_seconds(result) for result in rounds[0]]
    names = (*(str(number) for number in range(1, len(ROUNDS) + 1)), "another first")
    return [
        _row(prompt_tokens, name, reads, results, first)
        for name, reads, results in zip(names, (*ROUNDS, 1), rounds, strict=True)
    ]


async def _decide(engine: Engine, prompt_tokens: int, number: int) -> list[ReadResult]:
    """The rounds of one decision, then a first read of another."""
    widest = SyntheticReads(prompt_tokens=prompt_tokens, branches=sum(ROUNDS)).read(number, 0)
    results, done = [], 0
    for reads in ROUNDS:
        results.append(await engine.read(_some(widest, done, reads)))
        done += reads
    other = SyntheticReads(prompt_tokens=prompt_tokens, branches=1, seed=1).read(number, 0)
    return [*results, await engine.read(other)]


def _some(request: ReadRequest, first: int, count: int) -> ReadRequest:
    branches = request.branches[first : first + count]
    return replace(request, request_id=f"{request.request_id}-{first}", branches=branches)


def _row(
    prompt_tokens: int, name: str, reads: int, results: Sequence[ReadResult], first_seconds: Sequence[float]
) -> Row:
    seconds = [_seconds(result) for result in results]
    steps = sum(len(result.engine_steps) for result in results) / len(results)
    cached = round(sum(result.cached_tokens for result in results) / len(results))
    middle = sorted(seconds)[len(seconds) // 2]
    ratio = paired_ratio(seconds, first_seconds, median)
    return f"{prompt_tokens:,} tokens", name, reads, milliseconds(middle), ratio, f"{steps:.2f}", cached


def _seconds(result: ReadResult) -> float:
    return sum(step.seconds for step in result.engine_steps)


def _add_options(parser: ArgumentParser) -> None:
    add_engine_options(parser)
    parser.add_argument("--turns", type=positive, default=60, help="decisions per prompt length (default %(default)s)")


REREADS = Command(about="what later rounds of a decision cost", add_options=_add_options, measure=measure_rereads)
