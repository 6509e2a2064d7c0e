"""From readings to a decision: an answer per question, and an instance of the rubric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from app.canvas.field import build_decision, is_answered
from app.canvas.json import Json
from app.canvas.pool import Pool
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
        reading: what was read at its slots, all reads together, whether or not the decision holds it.
        pool: the reads.
        value: what the decision holds; None if it is skipped.
        outcome: SKIPPED if the question's condition does not hold: then the decision does not hold its value.
    """

    question: Question
    reading: Reading
    pool: Pool
    value: Json
    outcome: Outcome

    @property
    def std_error(self) -> float | None:
        """The standard error of the probability over reads; None with one."""
        return self.pool.std_error(*self.reading.cell)

    @property
    def agreement(self) -> float:
        """The share of reads that say the same as all together."""
        chosen = self.question.choose(self.pool.distributions)
        return sum(self.question.choose(read) == chosen for read in self.pool.reads) / len(self.pool.reads)


def decide(
    rubric: Rubric, pools: Sequence[Pool], entropy_threshold: float
) -> tuple[dict[str, Json], tuple[Answer, ...]]:
    """The decision and the answers it is made of, in the rubric's order.

    An answer that does not meet its demands is uncertain; what its property names for that case stands in the decision
    then, and conditions go by it.
    """
    readings = [question.answer(pool.distributions) for question, pool in zip(rubric.questions, pools, strict=True)]
    is_sure = [
        question.demands.are_met(reading.entropy, reading.probability, entropy_threshold)
        for question, reading in zip(rubric.questions, readings, strict=True)
    ]
    values = {
        question.path: reading.value if sure or not question.demands.stand_in else question.demands.stand_in[0]
        for question, reading, sure in zip(rubric.questions, readings, is_sure, strict=True)
    }
    decision = build_decision(rubric.fields, values)

    def answer(question: Question, reading: Reading, pool: Pool, sure: bool) -> Answer:
        held = is_answered(decision, question.path)
        outcome = (Outcome.DECIDED if sure else Outcome.UNCERTAIN) if held else Outcome.SKIPPED
        value = values[question.path] if held else None
        return Answer(question=question, reading=reading, pool=pool, value=value, outcome=outcome)

    return decision, tuple(map(answer, rubric.questions, readings, pools, is_sure))


def overall(answers: Sequence[Answer]) -> Literal[Outcome.DECIDED, Outcome.UNCERTAIN]:
    """The outcome of a decision: it can be acted on if no answer is uncertain."""
    is_uncertain = any(answer.outcome is Outcome.UNCERTAIN for answer in answers)
    return Outcome.UNCERTAIN if is_uncertain else Outcome.DECIDED


def max_entropy(answers: Sequence[Answer]) -> float:
    """The entropy of the least sure answer that was not skipped; 0 if all were."""
    asked = (answer.reading.entropy for answer in answers if answer.outcome is not Outcome.SKIPPED)
    return max(asked, default=0.0)
