"""Reads of exact lengths: random ordinary tokens, the same for the same seed, every prompt new."""

from __future__ import annotations

import random
from dataclasses import dataclass

from engine.protocol import Branch, CanvasSlot, ReadRequest

# Ordinary tokens in the demo's vocabulary and in Gemma's: control tokens lie below, media tokens far above.
TOKEN_IDS = range(1000, 2000)
CANVAS_TOKENS = 16
# In the canvas: two slots, and three labels for each.
SLOT_POSITIONS = (5, 11)
SLOT_LABELS = ((1000, 1001, 1002), (1003, 1004, 1005))
SLOTS = tuple(
    CanvasSlot(position=position, label_token_ids=labels)
    for position, labels in zip(SLOT_POSITIONS, SLOT_LABELS, strict=True)
)


@dataclass(frozen=True, kw_only=True)
class SyntheticReads:
    """Reads of one shape. Implements `bench.read_set.ReadSet`.

    Attributes:
        prompt_tokens: length of the shared prompt.
        branches: 1 for a single read, more for bundles.
        suffix_tokens: causal tokens of a branch before its canvas.
        seed: reads of other seeds have other prompts.
    """

    prompt_tokens: int
    branches: int = 1
    suffix_tokens: int = 0
    seed: int = 0

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.prompt_tokens:,} tokens"

    @property
    def size(self) -> None:
        """There are any number."""
        return None

    def read(self, number: int, variation: int) -> ReadRequest:
        """One variation of one read."""
        key = f"{self.prompt_tokens}x{self.branches}x{self.suffix_tokens}-{self.seed}-{number}-{variation}"
        draw = random.Random(key)  # noqa: S311 - reproducible, not secret
        return ReadRequest(
            request_id=f"synthetic-{key}",
            prompt_token_ids=_tokens(draw, self.prompt_tokens),
            branches=tuple(self._branch(draw) for _ in range(self.branches)),
        )

    def _branch(self, draw: random.Random) -> Branch:
        return Branch(
            suffix_token_ids=_tokens(draw, self.suffix_tokens),
            canvas_token_ids=_tokens(draw, CANVAS_TOKENS),
            canvas_slots=SLOTS,
        )


def _tokens(draw: random.Random, length: int) -> tuple[int, ...]:
    return tuple(draw.choices(TOKEN_IDS, k=length))
