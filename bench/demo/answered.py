"""What a running service answers to requests whose answers are known."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from bench.demo.labelled import Labelled
from engine.demo.sample import Answer

CLIENTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question.

    Attributes:
        value: what the decision holds.
        probability: of the answer.
    """

    family: str
    expected: Answer | None
    value: Answer
    probability: float
    is_uncertain: bool

    @property
    def is_right(self) -> bool:
        """Whether it is what was expected; for several values, all of them and no other."""
        return self.meaning == as_meaning(self.expected)

    @property
    def meaning(self) -> object:
        """The value; of several, whichever their order."""
        return as_meaning(self.value)


def as_meaning(value: object) -> object:
    """What two values have in common that mean the same."""
    return frozenset(value) if isinstance(value, list) else value


async def ask_all(client: httpx.AsyncClient, requests: Sequence[Labelled]) -> list[Answered]:
    """Ask everything, several requests at a time; answers in the order of the questions."""
    turns = asyncio.Semaphore(CLIENTS)
    found = await asyncio.gather(*(_ask(client, turns, request) for request in requests))
    return [answered for answers in found for answered in answers]


async def _ask(client: httpx.AsyncClient, turns: asyncio.Semaphore, request: Labelled) -> list[Answered]:
    async with turns:
        response = await client.post("/decide", json=request.body)
    answer = response.raise_for_status().json()
    return [
        Answered(
            family=request.families[name],
            expected=expected,
            value=answer["decision"][name],
            probability=answer["answers"][name]["probability"],
            is_uncertain=answer["answers"][name]["outcome"] == "uncertain",
        )
        for name, expected in request.expected.items()
    ]
