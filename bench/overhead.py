"""What a decision costs beyond its engine steps: HTTP, JSON, tokenising, vLLM's front end, its messages."""

from __future__ import annotations

from typing import Any

from bench.client import ask, connect, quantiles

WARM_UP = 20
REQUESTS = 300

RUBRIC = {
    "type": "object",
    "properties": {
        "topic": {"title": "Topic", "enum": ["billing", "symptoms", "scheduling"]},
        "urgency": {"title": "Urgency", "enum": ["routine", "soon", "urgent"]},
    },
}


def body(number: int) -> dict[str, Any]:
    """A new state under one rubric, as an agent would ask."""
    return {"state": f"Message {number}. I have had a headache for three days.", "rubric": RUBRIC}


async def measure_overhead(url: str) -> str:
    """The table of one client asking one request after another."""
    async with connect(url) as client:
        timed = [await ask(client, body(number)) for number in range(WARM_UP + REQUESTS)][WARM_UP:]
    return "\n".join(
        (
            quantiles("wall time at the client", [one.wall_ms for one in timed]),
            quantiles("engine steps", [one.engine_ms for one in timed]),
            quantiles("outside engine steps", [one.overhead_ms for one in timed]),
            quantiles("outside engine steps, in service", [one.service_overhead_ms for one in timed]),
        )
    )
