"""Everything the canvas refuses, as one tree.

    CanvasError
    ├── RubricRejected      the rubric is outside the language; lists every problem at once
    ├── PromptTooLong       rubric and state do not fit the context
    ├── PlanTooLarge        its questions take more reading than one request may
    ├── UnfitTokenizer      this tokenizer cannot spell a canvas; found at start-up
    └── NonFiniteLogprobs   the engine reported a NaN or an infinity; never becomes a decision

A message names the place and the rule, never a value: what a caller sends may be about a patient.
"""

from __future__ import annotations

from dataclasses import dataclass


class CanvasError(Exception):
    """Base of everything the canvas refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a request.

    Attributes:
        pointer: JSON Pointer (RFC 6901) to the place, from the root of the request.
        code: a stable name of the rule.
        message: the rule in words.
    """

    pointer: str
    code: str
    message: str


class RubricRejected(CanvasError):
    """The rubric is not in the language (design: closed subset of JSON Schema)."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(f"the rubric has {len(problems)} problem(s)")
        self.problems = problems


class PromptTooLong(CanvasError):
    """Prompt and canvas do not fit the context the engine serves."""

    def __init__(self, pointer: str, needed_tokens: int, limit_tokens: int) -> None:
        super().__init__(f"prompt and canvas need at least {needed_tokens} tokens, {limit_tokens} are served")
        self.problem = Problem(pointer=pointer, code="prompt_too_long", message=str(self))


class PlanTooLarge(CanvasError):
    """What is read behind the prompt is too much for one request."""

    def __init__(self, limit_tokens: int) -> None:
        super().__init__(f"suffixes and canvases of a request may have {limit_tokens} tokens together")
        self.problem = Problem(pointer="/rubric", code="plan_too_large", message=str(self))


class UnfitTokenizer(CanvasError):
    """The tokenizer or its chat template cannot be used; the message says why."""


class NonFiniteLogprobs(CanvasError):
    """A logprob at a slot is not a finite number."""
