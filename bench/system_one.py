"""TypeSafe's protocol as vLLM serves it itself, beside ours: the same questions, checkpoint, machine and run.

vLLM 0.32 reads every question as an engine request of its own, in two steps; here all are one bundle in one step, or
one canvas. Latency is wall time at a client, over HTTP. Every state is new to whoever is asked about it. The turns of
all arms alternate, and vLLM is asked once more, about other states: what noise looks like.
"""

from __future__ import annotations

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import httpx

from bench.client import connect
from bench.command import Command, positive
from bench.engines import EngineOptions, add_engine_options
from bench.own_service import own_service
from bench.ratio import median, paired_ratio
from bench.table import Row, milliseconds, render_table
from bench.vllm_service import vllm_service

COUNTS, CLIENTS = (1, 4, 8, 16), (1, 4)
WARM_UP = 3
VLLM, ISOLATED, JOINT, AGAIN = "vLLM", "isolated", "joint", "vLLM again"
TITLE = (
    "System One, {dtype}, {turns} turns, states of some 150 words: ratios to vLLM's own route are medians over turns, "
    "with 95 % confidence intervals"
)
HEADER = ("questions", "clients", "arm", "ms", "answers/s", "latency / vLLM's", "answers/s / vLLM's")


@dataclass(slots=True, kw_only=True)
class Arm:
    """Somebody who is asked, and how it went.

    Attributes:
        layout: asked for; None of a service that knows of none.
        variation: of the states; one service is asked about each state once.
        latencies_seconds: the mean of each turn's requests.
        rates: answers per second of each turn.
    """

    name: str
    client: httpx.AsyncClient
    layout: str | None
    variation: int
    latencies_seconds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def body(self, count: int, number: int) -> dict[str, Any]:
        """Request `number` of so many questions."""
        policy = {"x_policy": {"layout": self.layout, "max_reads": 1}} if self.layout else {}
        state = f"Message {self.variation}-{count}-{number}. " + "I have a headache and the tablets do not help. " * 16
        questions = {f"q{n}": question(n) for n in range(count)}
        return {"model": "onestep-demo", "state": state, "questions": questions, **policy}

    async def take_turn(self, count: int, numbers: Sequence[int]) -> None:
        """Ask some requests at once."""
        started = time.perf_counter()
        latencies = await asyncio.gather(*(self._ask(self.body(count, number)) for number in numbers))
        self.rates.append(count * len(numbers) / (time.perf_counter() - started))
        self.latencies_seconds.append(fmean(latencies))

    async def _ask(self, body: dict[str, Any]) -> float:
        started = time.perf_counter()
        answers = (await self.client.post("/v1/systemone", json=body)).raise_for_status().json()["answers"]
        assert answers.keys() == body["questions"].keys(), "a question was not answered"
        return time.perf_counter() - started


def question(number: int) -> dict[str, Any]:
    """One of each type in turn, as short as they usually are."""
    texts = ("Does the member ask for a refill?", "Which team should answer?", "How strong is the pain?")
    asked = {"instructions": f"{texts[number % 3]} ({number})"}
    match number % 3:
        case 0:
            return {"type": "noul", **asked}
        case 1:
            return {"type": "choice", **asked, "criteria": {"billing": "invoices", "clinic": "pain", "pharmacy": None}}
        case _:
            return {"type": "score", **asked, "criteria": ["none", "some", "unbearable"]}


async def measure_system_one(arguments: Namespace) -> str:
    """The table."""
    options = EngineOptions.of(arguments)
    with vllm_service(options) as theirs, own_service(options) as ours:
        async with connect(theirs) as vllm, connect(ours) as onestep:
            rows = [
                row
                for run, (count, clients) in enumerate((count, clients) for count in COUNTS for clients in CLIENTS)
                for row in await system_one_rows(make_arms(vllm, onestep, run), count, clients, arguments.turns)
            ]
    return render_table(TITLE.format(dtype=options.dtype, turns=arguments.turns), HEADER, rows)


def make_arms(vllm: httpx.AsyncClient, onestep: httpx.AsyncClient, run: int) -> tuple[Arm, ...]:
    """All four, for one number of questions and clients."""
    return (
        Arm(name=VLLM, client=vllm, layout=None, variation=2 * run),
        Arm(name=ISOLATED, client=onestep, layout="isolated", variation=2 * run),
        Arm(name=JOINT, client=onestep, layout="joint", variation=2 * run),
        Arm(name=AGAIN, client=vllm, layout=None, variation=2 * run + 1),
    )


async def system_one_rows(arms: Sequence[Arm], count: int, clients: int, turns: int) -> list[Row]:
    """A row an arm."""
    for turn in range(WARM_UP + turns):
        # Nobody always comes first.
        for arm in (*arms[turn % len(arms) :], *arms[: turn % len(arms)]):
            await arm.take_turn(count, range(turn * clients, (turn + 1) * clients))
    return [_row(arm, arms[0], count, clients) for arm in arms]


def _row(arm: Arm, theirs: Arm, count: int, clients: int) -> Row:
    latencies, rates = arm.latencies_seconds[WARM_UP:], arm.rates[WARM_UP:]
    ratios = (
        paired_ratio(latencies, theirs.latencies_seconds[WARM_UP:], median),
        paired_ratio(rates, theirs.rates[WARM_UP:], median),
    )
    middle = sorted(latencies)[len(latencies) // 2]
    shown = ("", "") if arm is theirs else ratios
    return (count, clients, arm.name, milliseconds(middle), f"{fmean(rates):.1f}", *shown)


def _add_options(parser: ArgumentParser) -> None:
    add_engine_options(parser)
    parser.add_argument("--turns", type=positive, default=40, help="turns of each arm per row (default %(default)s)")


SYSTEM_ONE = Command(
    about="System One as vLLM serves it and as we do, 1 to 16 questions",
    add_options=_add_options,
    measure=measure_system_one,
)
