"""From logprobs to answers, and the decision they make."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from app.canvas.condition import make_validator
from app.canvas.decision import Answer, Outcome, decide, max_entropy, overall
from app.canvas.errors import NonFiniteLogprobs
from app.canvas.rubric import Rubric, compile_rubric
from tests.app.canvas import rubrics
from tests.app.canvas.pools import QuestionLogprobs, pools_of
from tests.app.canvas.rubrics import LIMITS, YES_NO, Schema, random_logprobs, rubric

AB: Schema = {"enum": ["a", "b"]}
CERTAIN, EVEN = (0.0, -1000.0), (-1.0, -1.0)


def line(yes: float) -> tuple[float, float]:
    """Logprobs of two options, the first of that probability."""
    return (math.log(yes), math.log(1 - yes))


def answers_of(compiled: Rubric, *logprobs: tuple[tuple[float, ...], ...], threshold: float = 0.3) -> list[Answer]:
    """The answers to some questions."""
    _, answers = decide(compiled, pools_of(logprobs), threshold)
    return list(answers)


SEVERAL = compile_rubric(
    rubric(
        {
            "g": {"type": "object", "properties": {"a/b": AB}},
            "p": {"type": "number", "minimum": 0, "maximum": 1},
            "s": {"type": "array", "items": {"enum": ["x", "y"]}},
            "k": {"const": 1},
        }
    ),
    LIMITS,
)


def test_a_decision_holds_every_answer_in_its_place() -> None:
    """Names as the caller wrote them; answers in the rubric's order, each with what was read."""
    decision, answers = decide(SEVERAL, pools_of(((line(0.25),), (line(0.75),), (line(0.9), line(0.2)))), 0.3)
    assert decision == {"g": {"a/b": "b"}, "p": pytest.approx(0.75), "s": ["x"], "k": 1}
    assert [answer.question.id for answer in answers] == ["g/a~1b", "p", "s"]
    assert [answer.reading.probability for answer in answers] == pytest.approx([0.75, 0.75, 0.8])
    assert answers[2].reading.probabilities == pytest.approx((0.9, 0.2))


def test_the_threshold_itself_is_decided() -> None:
    """An answer is uncertain only above the threshold."""
    compiled = compile_rubric(rubric(), LIMITS)
    (at,) = answers_of(compiled, (EVEN,), threshold=1.0)
    assert (at.reading.entropy, at.outcome) == (1.0, Outcome.DECIDED)
    (below,) = answers_of(compiled, (EVEN,), threshold=math.nextafter(1.0, 0.0))
    assert below.outcome is Outcome.UNCERTAIN


def test_a_certain_answer_is_decided_at_threshold_zero() -> None:
    """Nothing is left to find out."""
    (answer,) = answers_of(compile_rubric(rubric(), LIMITS), (CERTAIN,), threshold=0.0)
    assert answer.outcome is Outcome.DECIDED


def test_a_selection_is_uncertain_with_its_worst_option() -> None:
    """However certain the others are."""
    *_, last = answers_of(SEVERAL, (CERTAIN,), (CERTAIN,), (CERTAIN, EVEN))
    assert (last.reading.entropy, last.outcome) == (1.0, Outcome.UNCERTAIN)


CONDITIONAL = compile_rubric(
    rubric(
        {"a": YES_NO, "g": {"anyOf": [{"type": "object", "properties": {"b": YES_NO}}, {"type": "null"}]}, "x": AB},
        **{"if": {"properties": {"a": {"const": True}}}, "then": {"required": ["x"]}},
    ),
    LIMITS,
)
YES, NO = ((0.0, -1000.0),), ((-1000.0, 0.0),)


def test_what_is_not_asked_is_skipped() -> None:
    """Whatever was read there: it counts neither for the outcome nor for the highest entropy."""
    decision, answers = decide(CONDITIONAL, pools_of((NO, NO, (EVEN,), (EVEN,))), 0.3)
    assert decision == {"a": False, "g": None}
    assert [answer.outcome for answer in answers] == [*[Outcome.DECIDED] * 2, *[Outcome.SKIPPED] * 2]
    assert [answer.reading.entropy for answer in answers] == [0.0, 0.0, 1.0, 1.0]
    assert overall(answers) is Outcome.DECIDED
    assert max_entropy(answers) == 0.0


def test_what_is_asked_counts() -> None:
    """One uncertain answer makes the decision uncertain."""
    decision, answers = decide(CONDITIONAL, pools_of((YES, YES, (EVEN,), YES)), 0.3)
    assert decision == {"a": True, "g": {"b": True}, "x": "a"}
    assert [answer.outcome for answer in answers].count(Outcome.UNCERTAIN) == 1
    assert overall(answers) is Outcome.UNCERTAIN
    assert max_entropy(answers) == 1.0


def test_an_answer_that_there_is_none_can_be_uncertain() -> None:
    """It is an answer all the same; what hangs on it is skipped."""
    _, answers = decide(CONDITIONAL, pools_of((NO, (line(0.49),), YES, YES)), 0.3)
    assert [answer.outcome for answer in answers][1:3] == [Outcome.UNCERTAIN, Outcome.SKIPPED]
    assert overall(answers) is Outcome.UNCERTAIN


def test_nothing_asked_is_certain() -> None:
    """Of no answers, and of skipped ones."""
    _, answers = decide(CONDITIONAL, pools_of((NO, NO, (EVEN,), (EVEN,))), 0.3)
    skipped = [replace(answer, outcome=Outcome.SKIPPED) for answer in answers]
    assert (max_entropy([]), max_entropy(skipped), overall(skipped)) == (0.0, 0.0, Outcome.DECIDED)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("question", range(4))
def test_a_logprob_that_is_no_number_is_no_decision(bad: float, question: int) -> None:
    """R18: wherever it stands, skipped or not."""
    logprobs: list[tuple[tuple[float, ...], ...]] = [NO, NO, NO, NO]
    logprobs[question] = ((-1.0, bad),)
    with pytest.raises(NonFiniteLogprobs):
        decide(CONDITIONAL, pools_of(tuple(logprobs)), 0.3)


def absent(decision: Any, path: tuple[str, ...]) -> bool:
    """Whether a decision holds nothing at a path."""
    for name in path:
        if not isinstance(decision, dict) or name not in decision:
            return True
        decision = decision[name]
    return False


@settings(max_examples=250)
@given(rubrics.accepted_rubrics(), rubrics.randoms())
def test_a_decision_always_satisfies_its_rubric(schema: Schema, random: Random) -> None:
    """The caller's own schema, by `jsonschema` alone, and what was understood of it, whatever was read at the slots."""
    compiled = compile_rubric(schema, LIMITS)
    for _ in range(4):
        logprobs: QuestionLogprobs = random_logprobs(compiled, random)
        decision, answers = decide(compiled, pools_of(logprobs), 0.3)
        assert [error.message for error in Draft202012Validator(schema).iter_errors(decision)] == []
        assert make_validator(compiled.schema).is_valid(decision)
        for answer in answers:
            assert (answer.outcome is Outcome.SKIPPED) is absent(decision, answer.question.path)
