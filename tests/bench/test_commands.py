"""The commands: their options, and their tables from the fake engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.canvas.plan import Planner
from bench.__main__ import COMMANDS, make_parser
from bench.arms import EnginePair, read_sets
from bench.bundles import DRAWS_HEADER, QUESTIONS_HEADER, draws_row, questions_rows, uncached
from bench.engines import EngineOptions
from bench.latency import LATENCY_HEADER, RATIO_HEADER, THROUGHPUT_HEADER, latency_runs, throughput_rows
from bench.public_cases import load_public_cases
from bench.public_reads import PublicReads
from bench.steps import HEADER, steps_rows
from bench.synthetic_reads import SyntheticReads
from engine.packing import alone


def test_every_command_has_options_that_parse() -> None:
    for name, command in COMMANDS.items():
        assert make_parser().parse_args([name]).command == name
        assert command.about


def test_commands_of_a_running_service_take_its_url() -> None:
    assert make_parser().parse_args(["overhead", "--url", "http://there"]).url == "http://there"


def test_commands_of_own_engines_take_a_model_and_a_dtype() -> None:
    arguments = make_parser().parse_args(["latency", "--model", "folder", "--dtype", "bfloat16", "--reads", "8"])
    assert EngineOptions.of(arguments) == EngineOptions(model="folder", dtype="bfloat16")
    assert arguments.reads == 8


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_counts_are_positive(count: str) -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["bundles", "--turns", count])


async def test_steps(engines: EnginePair, planner: Planner) -> None:
    """One step a fused read, two without; all of a set that has fewer reads than are wanted."""
    rows = await steps_rows(engines, read_sets(PublicReads(planner, load_public_cases()[:12]))[:1], wanted=240)
    assert rows == [
        ("public", 1, 12, 12, 24, 12, "none"),
        ("public", 4, 12, 12, 24, 12, "none"),  # the fake shares no steps
    ]
    assert len(rows[0]) == len(HEADER)


async def test_latency(engines: EnginePair, planner: Planner) -> None:
    sets = read_sets(PublicReads(planner, load_public_cases()))
    runs = [run async for run in latency_runs(engines, sets, wanted=8)]
    rows = [run.latency_row() for run in runs]
    assert [row[:3] for row in rows] == [
        (name, clients, 8) for name in ("public", "188 tokens", "1,250 tokens") for clients in (1, 4)
    ]
    assert {row[-3:] for row in rows} == {("2.00", "1.00", 0)}
    assert {len(row) for row in rows} == {len(LATENCY_HEADER)}
    assert [row[2] for row in (run.ratio_row() for run in runs)] == [8, 2] * 3
    assert {len(run.ratio_row()) for run in runs} == {len(RATIO_HEADER)}


async def test_throughput(engines: EnginePair) -> None:
    rows = await throughput_rows(engines, blocks=2, block_seconds=0.005)
    assert [row[0] for row in rows] == [1, 2, 5, 10, 20]
    assert {len(row) for row in rows} == {len(THROUGHPUT_HEADER)}


async def test_bundles(engines: EnginePair) -> None:
    draws = await draws_row(engines.fused, prompt_tokens=32, turns=4)
    questions = await questions_rows(engines.fused, clients=2, turns=4)
    assert (draws[0], len(draws)) == ("32 tokens", len(DRAWS_HEADER))
    assert [row[1] for row in questions] == [
        "bundle",
        "bundle again",
        "singles in turn",
        "singles together",
        "singles in turn, uncached",
        "singles together, uncached",
    ]
    assert [row[4] for row in questions] == ["1.00", "1.00", "16.00", "16.00", "16.00", "16.00"]
    assert {len(row) for row in questions} == {len(QUESTIONS_HEADER)}


def test_uncached_requests_share_nothing() -> None:
    """Each has a salt of its own, and is otherwise what it was."""
    requests = alone(SyntheticReads(prompt_tokens=64, branches=3, suffix_tokens=4).read(0, 0))
    salted = uncached(requests)
    assert len({request.cache_salt for request in salted}) == 3
    assert tuple(replace(request, cache_salt=None) for request in salted) == requests
