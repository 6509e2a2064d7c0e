"""From readings to a decision: an answer per question, and an instance of the rubric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from app.canvas.distribution import normalise
from app.canvas.field import build_decision, is_answered
from app.canvas.json import Json
from app.canvas.plan import QuestionLogprobs
from app.canvas.question import Question, Reading
from app.canvas.rubric import Rubric


class Outcome(StrEnum):
    """Whether an answer can be acted on."""

    DECIDED = "decided"
    UNCERTAIN = "uncertain"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one question.

    Attributes:
        reading: what was read at its slots, whether or not the decision holds it.
        outcome: SKIPPED if the question's condition does not hold: then the decision does not hold its value.
    """

    question: Question
    reading: Reading
    outcome: Outcome


def decide(
    rubric: Rubric, logprobs: QuestionLogprobs, entropy_threshold: float
) -> tuple[dict[str, Json], tuple[Answer, ...]]:
    """The decision and the answers it is made of, in the rubric's order.

    Raises:
        NonFiniteLogprobs: a logprob is NaN or infinite.
    """
    readings = [
        question.answer([normalise(line) for line in lines])
        for question, lines in zip(rubric.questions, logprobs, strict=True)
    ]
    values = {question.path: reading.value for question, reading in zip(rubric.questions, readings, strict=True)}
    decision = build_decision(rubric.fields, values)
    answers = zip(rubric.questions, readings, strict=True)
    return decision, tuple(
        Answer(question=question, reading=reading, outcome=_outcome(question, reading, decision, entropy_threshold))
        for question, reading in answers
    )


def overall(answers: Sequence[Answer]) -> Literal[Outcome.DECIDED, Outcome.UNCERTAIN]:
    """The outcome of a decision: it can be acted on if no answer is uncertain."""
    is_uncertain = any(answer.outcome is Outcome.UNCERTAIN for answer in answers)
    return Outcome.UNCERTAIN if is_uncertain else Outcome.DECIDED


def max_entropy(answers: Sequence[Answer]) -> float:
    """The entropy of the least sure answer that was not skipped; 0 if all were."""
    asked = (answer.reading.entropy for answer in answers if answer.outcome is not Outcome.SKIPPED)
    return max(asked, default=0.0)


def _outcome(question: Question, reading: Reading, decision: dict[str, Json], entropy_threshold: float) -> Outcome:
    if not is_answered(decision, question.path):
        return Outcome.SKIPPED
    return Outcome.DECIDED if reading.entropy <= entropy_threshold else Outcome.UNCERTAIN
