"""What fused reads save: the same reads on a fused and a two-step engine, side by side.

Latency is the wall time of `Engine.read`: the engine's front end, its queue and its steps, without HTTP or tokenising.
Every prompt is new to the engine that reads it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.arms import FUSED, TWO_STEP, TWO_STEP_AGAIN, EnginePair, read_sets, running_pair
from bench.command import Command, positive
from bench.engines import EngineOptions, add_engine_options
from bench.public_cases import load_public_cases
from bench.public_reads import PublicReads
from bench.ratio import geometric_mean, median, paired_ratio
from bench.read_set import ReadSet, count_reads
from bench.synthetic_reads import SyntheticReads
from bench.table import Row, milliseconds, render_table
from bench.throughput import Block, take_blocks
from bench.turn import Series, count_cached_tokens, take_turns

CLIENTS_OF_LATENCY = (1, 4)
CLIENTS_OF_THROUGHPUT = (1, 2, 5, 10, 20)
THROUGHPUT_PROMPT_TOKENS = 188
BLOCK_SECONDS = 1.5

LATENCY_TITLE = "Latency, {dtype}: medians of all reads. Public cases cut to fit the context: {cut} of {cases}"
LATENCY_HEADER = (
    "set",
    "at a time",
    "reads",
    "two-step ms",
    "fused ms",
    "steps a read, two-step",
    "steps a read, fused",
    "cached tokens",
)
# Two statistics: the mean counts stalls, whoever caused them; the median says what an ordinary read costs.
RATIO_TITLE = (
    "Latency, ratios over pairs of turns with 95 % confidence intervals; where reads go four at a time, the latency "
    "of a turn is the mean of the four"
)
RATIO_HEADER = (
    "set",
    "at a time",
    "pairs",
    "fused / two-step, geometric mean",
    "two-step again / two-step",
    "fused / two-step, median",
    "two-step again / two-step",
)
THROUGHPUT_TITLE = (
    "Throughput, {dtype}, {tokens} tokens, closed loop: reads per second; ratios are geometric means over {blocks} "
    "pairs of blocks of {seconds} s"
)
THROUGHPUT_HEADER = (
    "clients",
    "two-step reads/s",
    "fused reads/s",
    "fused / two-step",
    "two-step again / two-step",
    "steps a read, two-step",
    "steps a read, fused",
)


def add_options(parser: ArgumentParser) -> None:
    """Declare the options."""
    add_engine_options(parser)
    parser.add_argument("--reads", type=positive, default=240, help="reads of each set; the public one has 240")
    parser.add_argument("--blocks", type=positive, default=12, help="blocks of each arm and number of clients")


async def measure_latency(arguments: Namespace) -> str:
    """All three tables."""
    options = EngineOptions.of(arguments)
    public = PublicReads(options.planner(), load_public_cases())
    async with running_pair(options) as engines:
        runs = [run async for run in latency_runs(engines, read_sets(public), arguments.reads)]
        throughput = await throughput_rows(engines, arguments.blocks)
    latency_title = LATENCY_TITLE.format(dtype=options.dtype, cut=public.count_cut(), cases=public.size)
    throughput_title = THROUGHPUT_TITLE.format(
        dtype=options.dtype, tokens=THROUGHPUT_PROMPT_TOKENS, blocks=arguments.blocks, seconds=BLOCK_SECONDS
    )
    return "\n\n".join(
        (
            render_table(latency_title, LATENCY_HEADER, [run.latency_row() for run in runs]),
            render_table(RATIO_TITLE, RATIO_HEADER, [run.ratio_row() for run in runs]),
            render_table(throughput_title, THROUGHPUT_HEADER, throughput),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRun:
    """One set of reads, some at a time, through all arms."""

    name: str
    clients: int
    series: Mapping[str, Series]

    def latency_row(self) -> Row:
        """What was measured."""
        two_step, fused = self.series[TWO_STEP], self.series[FUSED]
        return (
            self.name,
            self.clients,
            fused.reads,
            milliseconds(two_step.median_seconds),
            milliseconds(fused.median_seconds),
            _steps_a_read(two_step),
            _steps_a_read(fused),
            count_cached_tokens(self.series.values()),
        )

    def ratio_row(self) -> Row:
        """What it says of fused reads, beside what the noise says."""
        theirs = self.series[TWO_STEP].turn_seconds
        ratios = (
            paired_ratio(self.series[name].turn_seconds, theirs, statistic)
            for statistic in (geometric_mean, median)
            for name in (FUSED, TWO_STEP_AGAIN)
        )
        return (self.name, self.clients, len(theirs), *ratios)


async def latency_runs(engines: EnginePair, sets: Sequence[ReadSet], wanted: int) -> AsyncIterator[LatencyRun]:
    """One run per set and number of reads at a time."""
    for reads in sets:
        for round_number, clients in enumerate(CLIENTS_OF_LATENCY):
            turns = count_reads(reads, wanted) // clients
            series = await take_turns(engines.arms(reads, round_number), turns=turns, clients=clients)
            yield LatencyRun(name=reads.name, clients=clients, series=series)


async def throughput_rows(engines: EnginePair, blocks: int, block_seconds: float = BLOCK_SECONDS) -> list[Row]:
    """One row per number of clients."""
    return [await _throughput_row(engines, blocks, clients, block_seconds) for clients in CLIENTS_OF_THROUGHPUT]


async def _throughput_row(engines: EnginePair, blocks: int, clients: int, block_seconds: float) -> Row:
    # A seed of its own: other rows, and the latencies of the same length, have had the prompts of other seeds.
    arms = engines.arms(SyntheticReads(prompt_tokens=THROUGHPUT_PROMPT_TOKENS, seed=clients), round_number=0)
    done = await take_blocks(arms, blocks=blocks, clients=clients, block_seconds=block_seconds)
    rates = {name: [block.reads_per_second for block in blocks] for name, blocks in done.items()}
    return (
        clients,
        f"{fmean(rates[TWO_STEP]):.1f}",
        f"{fmean(rates[FUSED]):.1f}",
        paired_ratio(rates[FUSED], rates[TWO_STEP]),
        paired_ratio(rates[TWO_STEP_AGAIN], rates[TWO_STEP]),
        _block_steps(done[TWO_STEP]),
        _block_steps(done[FUSED]),
    )


def _steps_a_read(series: Series) -> str:
    return f"{series.engine_steps / series.reads:.2f}"


def _block_steps(blocks: list[Block]) -> str:
    return f"{fmean(block.engine_steps_per_read for block in blocks):.2f}"


LATENCY = Command(
    about="latency and throughput of the same reads, fused and two-step",
    add_options=add_options,
    measure=measure_latency,
)
