"""Whether it matters which labels stand for the options: the same held-out questions with labels in another order."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from random import Random

from bench.command import Command, positive
from bench.demo.labelled import held_out
from bench.demo.planned import PlannedRequest, relabelled
from bench.engines import EngineOptions, add_engine_options, running_engine
from bench.meaning import meaning
from bench.table import render_table
from engine.demo.family import Split, load_families
from engine.protocol import Engine

QUESTIONS = 6000


async def measure_relabelling(arguments: Namespace) -> str:
    """The table."""
    options = EngineOptions.of(arguments)
    planner, random = options.planner(), Random(0)  # noqa: S311 - to be repeatable, not secret
    labelled = list(held_out(load_families(), Split.HELD_OUT, arguments.questions))
    async with running_engine(options, fused=True) as engine:
        usual = [await _values(engine, PlannedRequest.of(planner, one)) for one in labelled]
        other = [await _values(engine, PlannedRequest.of(relabelled(planner, random), one)) for one in labelled]
    right = [meaning(value) for one in labelled for value in one.expected.values()]
    before, after = ([value for values in found for value in values] for found in (usual, other))
    row = (len(right), *(f"{share:.4f}" for share in (_agreement(before, right), _agreement(after, right))))
    header = ("questions", "accuracy", "accuracy, other labels", "flips")
    return render_table("Labels in another order", header, [(*row, f"{1 - _agreement(before, after):.4f}")])


async def _values(engine: Engine, planned: PlannedRequest) -> list[object]:
    return planned.values((await engine.read(planned.read)).branch_logprobs)


def _agreement(one: Sequence[object], other: Sequence[object]) -> float:
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def _add_options(parser: ArgumentParser) -> None:
    add_engine_options(parser)
    parser.add_argument("--questions", type=positive, default=QUESTIONS, help="at least so many (default %(default)s)")


RELABELLING = Command(
    about="does it matter which labels stand for options?", add_options=_add_options, measure=measure_relabelling
)
