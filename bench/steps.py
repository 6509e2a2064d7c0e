"""How many engine steps the same reads take with fused reads and without."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence

from bench.arms import FUSED, TWO_STEP, EnginePair, read_sets, running_pair
from bench.command import Command, positive
from bench.engines import EngineOptions, add_engine_options
from bench.public_cases import load_public_cases
from bench.public_reads import PublicReads
from bench.read_set import ReadSet, count_reads
from bench.table import Row, render_table
from bench.turn import Series, take_turns

CLIENTS = (1, 4)
HEADER = ("set", "at a time", "reads", "steps, fused", "steps, two-step", "fused reads", "fallbacks")


def add_options(parser: ArgumentParser) -> None:
    """Declare the options."""
    add_engine_options(parser)
    parser.add_argument("--reads", type=positive, default=240, help="reads of each set; the public one has 240")


async def measure_steps(arguments: Namespace) -> str:
    """The table of both engines over all sets."""
    options = EngineOptions.of(arguments)
    public = PublicReads(options.planner(), load_public_cases())
    async with running_pair(options) as engines:
        rows = await steps_rows(engines, read_sets(public), arguments.reads)
    title = f"Engine steps, {options.dtype}; public cases cut to fit the context: {public.count_cut()} of {public.size}"
    return render_table(title, HEADER, rows)


async def steps_rows(engines: EnginePair, sets: Sequence[ReadSet], wanted: int) -> list[Row]:
    """One row per set and number of reads at a time."""
    return [
        await _row(engines, reads, wanted, round_number, clients)
        for reads in sets
        for round_number, clients in enumerate(CLIENTS)
    ]


async def _row(engines: EnginePair, reads: ReadSet, wanted: int, round_number: int, clients: int) -> Row:
    turns = count_reads(reads, wanted) // clients
    arms = engines.arms(reads, round_number)[:2]
    series = await take_turns(arms, turns=turns, clients=clients)
    fused, two_step = series[FUSED], series[TWO_STEP]
    return (
        reads.name,
        clients,
        fused.reads,
        fused.engine_steps,
        two_step.engine_steps,
        fused.fused_reads,
        _fallbacks(fused),
    )


def _fallbacks(series: Series) -> str:
    """Why reads were not fused, with counts."""
    counts = Counter(reason for result in series.results for reason in result.fallbacks)
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items())) or "none"


STEPS = Command(
    about="engine steps of the same reads, fused and two-step", add_options=add_options, measure=measure_steps
)
