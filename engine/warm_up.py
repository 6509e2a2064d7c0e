"""Reads that nobody asked for: each shape is run once before anybody waits for it."""

from __future__ import annotations

from engine.protocol import Branch, CanvasSlot, ReadRequest

# Ordinary tokens of any vocabulary.
FIRST_TOKEN_ID, TOKEN_IDS = 11, 13


def warm_up_request(number: int, prompt_tokens: int, canvas_tokens: int, *, branches: int = 1) -> ReadRequest:
    """A read of the given shape; different numbers share no prompt."""
    slot = CanvasSlot(position=canvas_tokens - 1, label_token_ids=(FIRST_TOKEN_ID, FIRST_TOKEN_ID + 1))
    return ReadRequest(
        request_id=f"warm-up-{number}-{prompt_tokens}-{canvas_tokens}",
        prompt_token_ids=tuple(FIRST_TOKEN_ID + (i + number) % TOKEN_IDS for i in range(prompt_tokens)),
        branches=(Branch(canvas_token_ids=(FIRST_TOKEN_ID,) * canvas_tokens, canvas_slots=(slot,)),) * branches,
    )
