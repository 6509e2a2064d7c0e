"""Reads that nobody asked for: each shape is run once before anybody waits for it."""

from __future__ import annotations

from engine.protocol import Branch, CanvasSlot, ReadRequest

# Ordinary tokens of any vocabulary.
FIRST_TOKEN_ID, TOKEN_IDS = 11, 13


def warm_up_request(
    number: int, prompt_tokens: int, canvas_tokens: int, *, branches: int = 1, is_constrained: bool = True
) -> ReadRequest:
    """A read of the given shape; different numbers share no prompt and have different labels."""
    first, labels = FIRST_TOKEN_ID + number, (FIRST_TOKEN_ID, FIRST_TOKEN_ID + 1 + number)
    slot = CanvasSlot(position=canvas_tokens - 1, label_token_ids=labels)
    return ReadRequest(
        request_id=f"warm-up-{number}-{prompt_tokens}-{canvas_tokens}",
        prompt_token_ids=(first, *(FIRST_TOKEN_ID + i % TOKEN_IDS for i in range(1, prompt_tokens))),
        branches=(Branch(canvas_token_ids=(FIRST_TOKEN_ID,) * canvas_tokens, canvas_slots=(slot,)),) * branches,
        is_constrained=is_constrained,
    )
