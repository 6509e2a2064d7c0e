"""Do the first requests after READY stall?

Run it once against a service that has just become ready. The same 200 requests are asked twice, each pass behind
instructions of its own. What the first pass pays and the second does not is a start-up cost that warm-up has missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from bench.client import ask_together, connect, quantiles

REQUESTS = 200
BATCH_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
MAX_QUESTIONS = 14


def body(number: int, instructions: str) -> dict[str, Any]:
    """Request `number`: 1 to 14 questions, a state of 10 to some 900 words. New instructions hit no cached prefix."""
    questions = {
        f"q{i}": {"title": f"Question {i}", "enum": [f"option {n}" for n in range(2 + (number + i) % 7)]}
        for i in range(1 + number % MAX_QUESTIONS)
    }
    words = 10 + (number * 37) % 900
    return {
        "state": f"Message {number}. " + "It hurts. " * (words // 2),
        "rubric": {"type": "object", "properties": questions},
        "instructions": instructions,
    }


def batches(instructions: str) -> Iterator[list[dict[str, Any]]]:
    """All requests, in batches of changing size."""
    numbers, sizes = iter(range(REQUESTS)), cycle(BATCH_SIZES)
    while batch := [body(number, instructions) for number in islice(numbers, next(sizes))]:
        yield batch


async def measure_first_requests(url: str) -> str:
    """The table of both passes, a request and a batch at a time."""
    lines = []
    async with connect(url) as client:
        for name in ("first pass", "second pass"):
            timed = [await ask_together(client, batch) for batch in batches(name)]
            lines.append(quantiles(f"{name}, a request", [one.wall_ms for batch in timed for one in batch]))
            lines.append(quantiles(f"{name}, a batch", [max(one.wall_ms for one in batch) for batch in timed]))
    return "\n".join(lines)
