"""From distributions to a decision: an answer per question, and an instance of the rubric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jsonschema import Draft202012Validator
from referencing import Registry

from app.canvas.distribution import Distribution, choice_confidence, entropy, margin, score_confidence
from app.canvas.json import Json, JsonScalar
from app.canvas.question import Kind, Question


class Outcome(StrEnum):
    """Whether an answer can be acted on."""

    DECIDED = "decided"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one question.

    Attributes:
        value: the likeliest option; the first of equals.
        probability: its probability.
        probabilities: of every option, in the rubric's order.
        entropy: normalised, 0 to 1.
        confidence, margin: see `app.canvas.distribution`.
        expected: for scores the mean level, else None.
    """

    question: Question
    value: JsonScalar
    outcome: Outcome
    probability: float
    probabilities: Distribution
    entropy: float
    confidence: float
    margin: float
    expected: float | None


def answer(question: Question, probabilities: Distribution, entropy_threshold: float) -> Answer:
    """Answer a question from its distribution."""
    likeliest = probabilities.index(max(probabilities))
    uncertainty = entropy(probabilities)
    is_score = question.kind is Kind.SCORE
    return Answer(
        question=question,
        value=question.options[likeliest].value,
        outcome=Outcome.DECIDED if uncertainty <= entropy_threshold else Outcome.UNCERTAIN,
        probability=probabilities[likeliest],
        probabilities=probabilities,
        entropy=uncertainty,
        confidence=score_confidence(probabilities) if is_score else choice_confidence(probabilities),
        margin=margin(probabilities),
        expected=_expected(question, probabilities) if is_score else None,
    )


def _expected(question: Question, probabilities: Distribution) -> float:
    levels = (option.value for option in question.options)
    return math.fsum(p * level for p, level in zip(probabilities, levels, strict=True) if isinstance(level, int))


def decision_of(answers: Sequence[Answer]) -> dict[str, JsonScalar]:
    """The decision: an instance of the rubric."""
    return {answer.question.name: answer.value for answer in answers}


def make_validator(schema: Mapping[str, Json]) -> Draft202012Validator:
    """A validator that can look nothing up: its registry is empty, and formats are not checked."""
    return Draft202012Validator(schema, registry=Registry())
