"""Pools of one read each, from logprobs."""

from __future__ import annotations

from app.canvas.distribution import normalise
from app.canvas.plan import LineLogprobs
from app.canvas.pool import Pool

# Per question.
QuestionLogprobs = tuple[LineLogprobs, ...]


def pools_of(logprobs: QuestionLogprobs) -> list[Pool]:
    """A pool per question, of one read."""
    return [Pool(reads=(tuple(map(normalise, lines)),), orders=(0,)) for lines in logprobs]
