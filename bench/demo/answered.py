"""What a running service answers to requests whose answers are known."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from bench.decision_log import ask_all
from bench.demo.labelled import Labelled
from bench.meaning import meaning
from engine.demo.sample import Answer


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
        return self.meaning == meaning(self.expected)

    @property
    def meaning(self) -> Hashable:
        """The value; of several, whichever their order."""
        return meaning(self.value)


async def answer_all(client: httpx.AsyncClient, requests: Sequence[Labelled]) -> list[Answered]:
    """Ask everything, several requests at a time; answers in the order of the questions."""
    answers = await ask_all(client, [request.body for request in requests])
    return [one for asked in zip(requests, answers, strict=True) for one in _answered(*asked)]


def _answered(request: Labelled, answer: Mapping[str, Any]) -> Iterator[Answered]:
    for name, expected in request.expected.items():
        yield Answered(
            family=request.families[name],
            expected=expected,
            value=answer["decision"][name],
            probability=answer["answers"][name]["probability"],
            is_uncertain=answer["answers"][name]["outcome"] == "uncertain",
        )
