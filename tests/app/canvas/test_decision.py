"""Answers, and the decision they make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing.exceptions import Unresolvable

from app.canvas.decision import Outcome, answer, decision_of, make_validator
from app.canvas.distribution import Distribution, normalise
from app.canvas.json import JsonScalar
from app.canvas.kinds import make_option
from app.canvas.question import Kind, Question
from app.canvas.rubric import compile_rubric
from tests.app.canvas import rubrics


def question(*values: JsonScalar, kind: Kind = Kind.CHOICE, name: str = "a") -> Question:
    """A question with these options."""
    return Question(name=name, kind=kind, text="", options=tuple(map(make_option, values)))


@dataclass(frozen=True)
class Case:
    id: str
    question: Question
    probabilities: Distribution
    value: JsonScalar
    confidence: float
    expected: float | None


CASES = (
    Case("the likeliest", question("x", "y", "z"), (0.2, 0.7, 0.1), "y", 0.55, None),
    Case("the first of equals", question("x", "y", "z"), (0.2, 0.4, 0.4), "y", 0.1, None),
    Case("all equal", question("x", "y"), (0.5, 0.5), "x", 0.0, None),
    Case("a boolean", question(True, False, kind=Kind.BOOLEAN), (0.25, 0.75), False, 0.5, None),
    Case("null", question("x", None), (0.25, 0.75), None, 0.5, None),
    Case("a choice of numbers has no mean", question(1, 2), (0.25, 0.75), 2, 0.5, None),
    Case("a score", question(0, 1, 2, kind=Kind.SCORE), (0.0, 0.95, 0.05), 1, 0.925, 1.05),
    Case("a score below zero", question(-2, -1, kind=Kind.SCORE), (0.25, 0.75), -1, 0.5, -1.25),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_answer(case: Case) -> None:
    """The likeliest option with what is said about it; a score also has its mean level."""
    made = answer(case.question, case.probabilities, 0.5)
    assert made.value == case.value
    assert type(made.value) is type(case.value)
    assert made.probability == max(case.probabilities)
    assert made.probabilities == case.probabilities
    assert made.confidence == pytest.approx(case.confidence, abs=1e-12)
    assert made.expected == pytest.approx(case.expected, abs=1e-12)
    first, second = sorted(case.probabilities)[-1:-3:-1]
    assert made.margin == pytest.approx(first - second)


def test_the_threshold_itself_is_decided() -> None:
    """An answer is uncertain only above the threshold."""
    uniform = (0.5, 0.5)
    at = answer(question("x", "y"), uniform, 1.0)
    assert (at.entropy, at.outcome) == (1.0, Outcome.DECIDED)
    assert answer(question("x", "y"), uniform, math.nextafter(1.0, 0.0)).outcome is Outcome.UNCERTAIN


def test_a_certain_answer_is_decided_at_threshold_zero() -> None:
    """Nothing is left to find out."""
    assert answer(question("x", "y"), (1.0, 0.0), 0.0).outcome is Outcome.DECIDED


def test_a_decision_holds_every_answer_under_its_name() -> None:
    """Names as the caller wrote them, not escaped."""
    answers = [
        answer(question("x", "y", name="a/b"), (0.9, 0.1), 0.5),
        answer(question(1, 2, name=""), (0.1, 0.9), 0.5),
    ]
    assert decision_of(answers) == {"a/b": "x", "": 2}


@given(rubrics.accepted_rubrics(), st.data())
def test_a_decision_always_satisfies_its_rubric(schema: dict[str, Any], data: st.DataObject) -> None:
    """The caller's own schema, with the annotations and all, whatever was read at the slots."""
    compiled = compile_rubric(schema, rubrics.LIMITS)
    answers = []
    for asked in compiled.questions:
        count = len(asked.options)
        logprobs = data.draw(st.lists(st.floats(-1000, 0), min_size=count, max_size=count))
        answers.append(answer(asked, normalise(logprobs), 0.3))
    decision = decision_of(answers)
    Draft202012Validator(schema).validate(decision)
    assert make_validator(compiled.schema).is_valid(decision)
    for made in answers:
        if made.expected is not None:
            levels = [option.value for option in made.question.options if isinstance(option.value, int)]
            assert levels[0] <= math.ceil(made.expected)
            assert levels[-1] >= math.floor(made.expected)


def test_a_validator_tells_instances_apart() -> None:
    """The check before a decision is sent can fail."""
    validator = make_validator({"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]})
    assert validator.is_valid({"a": "x"})
    assert not validator.is_valid({"a": "y"})
    assert not validator.is_valid({})


def test_a_validator_looks_nothing_up() -> None:
    """S7: a reference that got as far as this would not be followed."""
    with pytest.raises(Unresolvable):
        make_validator({"$ref": "http://127.0.0.1:9/schema"}).is_valid({})
