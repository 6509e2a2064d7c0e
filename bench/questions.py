"""What more questions cost: decisions of 1 and of several questions about the same states, one after another.

A rubric's own tokens are in the prefix cache from its second request on, as they are for an agent that keeps asking it.
The single question is asked twice a turn, so the noise of the machine is shown beside the cost.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.client import Timed, ask, connect
from bench.ratio import median, paired_ratio
from bench.table import render_table

WARM_UP, TURNS = 5, 200
COUNTS = (1, 8, 14, 16, 40, 64)
HEADER = ("questions", "canvas tokens", "canvases", "engine steps", "median ms", "ratio to 1 question")
AGAIN = "1, again"


@dataclass(slots=True)
class Asked:
    """A rubric of so many questions, and what asking it took."""

    count: int
    canvas_tokens: int = 0
    canvases: int = 0
    timed: list[Timed] = field(default_factory=list)
    engine_steps: set[int] = field(default_factory=set)

    @property
    def wall_ms(self) -> list[float]:
        """Wall times, a turn each."""
        return [one.wall_ms for one in self.timed]


def rubric(count: int) -> dict[str, Any]:
    """So many questions of three options each."""
    options = ["routine", "soon", "urgent"]
    return {
        "type": "object",
        "properties": {f"q{n}": {"title": f"How urgent is matter {n}?", "enum": options} for n in range(count)},
    }


def state(number: int) -> str:
    """Some 150 words, new every time."""
    return f"Message {number}. " + "I have had a headache for three days and the tablets do not help. " * 11


def body(count: int, number: int) -> dict[str, Any]:
    """Request `number` of so many questions."""
    return {"state": state(number), "rubric": rubric(count)}


async def measure_questions(url: str) -> str:
    """The table of a running service."""
    async with connect(url) as client:
        asked = [await _prepare(client, count) for count in COUNTS]
        again = await _prepare(client, COUNTS[0])
        for number in range(WARM_UP + TURNS):
            for one in asked:
                await _ask(client, one, number)
            # About a state of its own: the first one's whole prompt is in the prefix cache by now.
            await _ask(client, again, number, first_state=WARM_UP + TURNS)
    rows = [*(_row(asked[0], one, str(one.count)) for one in asked), _row(asked[0], again, AGAIN)]
    return render_table("Decisions about the same states, one client", HEADER, rows)


async def _prepare(client: httpx.AsyncClient, count: int) -> Asked:
    response = await client.post("/rubrics/check", json={"rubric": rubric(count)})
    canvases = response.raise_for_status().json()["canvases"]
    widths: Sequence[int] = [canvas["width_tokens"] for canvas in canvases]
    return Asked(count=count, canvas_tokens=sum(widths), canvases=len(widths))


async def _ask(client: httpx.AsyncClient, asked: Asked, number: int, first_state: int = 0) -> None:
    timed = await ask(client, body(asked.count, first_state + number))
    if number >= WARM_UP:
        asked.timed.append(timed)
        asked.engine_steps.add(timed.engine_steps)


def _row(baseline: Asked, asked: Asked, name: str) -> tuple[object, ...]:
    steps = "/".join(map(str, sorted(asked.engine_steps)))
    ratio = paired_ratio(asked.wall_ms, baseline.wall_ms, median)
    return name, asked.canvas_tokens, asked.canvases, steps, f"{statistics.median(asked.wall_ms):.2f}", ratio
