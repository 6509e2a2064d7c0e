"""Reads for the engine's tests: random prompts and canvases, and how far two answers are apart."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from itertools import count

from engine.protocol import Branch, CanvasSlot, ReadRequest, ReadResult, SlotLogprobs

# Ordinary tokens of the demo vocabulary: control tokens lie below.
FIRST_TOKEN_ID, LAST_TOKEN_ID = 11, 11_999


class ReadMaker:
    """Random reads, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._numbers = count()
        self._seed = seed

    def tokens(self, length: int) -> tuple[int, ...]:
        """Token ids."""
        return tuple(self.random.randint(FIRST_TOKEN_ID, LAST_TOKEN_ID) for _ in range(length))

    def branch(self, suffix_tokens: int, canvas_tokens: int) -> Branch:
        """A branch with 1 to 4 slots, of labels that few other branches have."""
        positions = self.random.sample(range(canvas_tokens), min(canvas_tokens, self.random.randint(1, 4)))
        labels = self.random.sample(range(FIRST_TOKEN_ID, 60), self.random.randint(2, 6))
        return Branch(
            suffix_token_ids=self.tokens(suffix_tokens),
            canvas_token_ids=self.tokens(canvas_tokens),
            canvas_slots=tuple(CanvasSlot(position=at, label_token_ids=tuple(labels)) for at in sorted(positions)),
        )

    def read(self, prompt_tokens: int, *shapes: tuple[int, int], prompt: Sequence[int] | None = None) -> ReadRequest:
        """A read of branches of the given suffix and canvas lengths, behind a new prompt or the one given."""
        return ReadRequest(
            request_id=f"read-{self._seed}-{next(self._numbers)}",
            prompt_token_ids=self.tokens(prompt_tokens) if prompt is None else tuple(prompt),
            branches=tuple(self.branch(*shape) for shape in shapes),
        )


def slot_distance(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest difference of two slots' logprobs, each normalised over its own labels."""
    return max(abs(a - b) for a, b in zip(normalised(one), normalised(other), strict=True))


def normalised(logprobs: Sequence[float]) -> list[float]:
    """Logprobs of one slot that sum to 1 as probabilities."""
    total = math.log(sum(map(math.exp, logprobs)))
    return [logprob - total for logprob in logprobs]


def branch_distance(one: SlotLogprobs, other: SlotLogprobs) -> float:
    """The largest difference over the slots of one branch."""
    return max(slot_distance(a, b) for a, b in zip(one, other, strict=True))


def distance(one: Iterable[ReadResult], other: Iterable[ReadResult]) -> float:
    """The largest difference of two series of results that answer the same branches in the same order."""
    ours = [branch for result in one for branch in result.branch_logprobs]
    theirs = [branch for result in other for branch in result.branch_logprobs]
    return max(branch_distance(a, b) for a, b in zip(ours, theirs, strict=True))
