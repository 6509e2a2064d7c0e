"""Ordered levels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.distribution import normalise
from app.canvas.kinds.score import Score
from tests.app.canvas.rubrics import (
    LIMITS,
    Schema,
    ShownOption,
    as_they_are,
    complaints_of,
    opened,
    problems_of,
    question,
    questions_of,
    shown,
)

A = "/rubric/properties/a"


@dataclass(frozen=True)
class Claim:
    id: str
    schema: Schema
    is_claimed: bool


CLAIMS = (
    Claim("integer", {"type": "integer"}, True),
    Claim("grid of numbers", {"type": "number", "multipleOf": 0.5}, True),
    Claim("grid of integers", {"type": "integer", "multipleOf": 5}, True),
    Claim("number", {"type": "number", "minimum": 0, "maximum": 1}, False),
    Claim("integer of a list", {"type": "integer", "enum": [1, 2]}, False),
    Claim("integer constant", {"type": "integer", "const": 1}, False),
    Claim("integer alternatives", {"type": "integer", "oneOf": []}, False),
    Claim("grid of a list", {"type": "number", "multipleOf": 1, "anyOf": []}, False),
    Claim("integer or null", {"type": ["integer", "null"], "minimum": 0, "maximum": 2}, False),
    Claim("no type", {"minimum": 0, "maximum": 2}, False),
)


@pytest.mark.parametrize("case", CLAIMS, ids=lambda case: case.id)
def test_what_is_a_score(case: Claim) -> None:
    """An integer, or a grid of numbers, that lists no values."""
    site, _ = opened(case.schema)
    assert Score.claims(site) is case.is_claimed


@dataclass(frozen=True)
class Asked:
    id: str
    schema: Schema
    options: list[ShownOption]


ASKED = (
    Asked("integers", {"type": "integer", "minimum": -1, "maximum": 1}, as_they_are(-1, 0, 1)),
    Asked("a grid", {"type": "number", "minimum": 0, "maximum": 0.3, "multipleOf": 0.1}, as_they_are(0, 0.1, 0.2, 0.3)),
    Asked(
        "described levels",
        {"type": "integer", "minimum": 1, "maximum": 2, "x-option-descriptions": {"1": "mild", "2": "bad"}},
        [(1, "1", "1: mild"), (2, "2", "2: bad")],
    ),
)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_a_score_is_asked(case: Asked) -> None:
    """Levels from the lowest to the highest."""
    assert questions_of(question(**case.schema)) == [("a", "score", "Which level fits?", case.options)]


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    problems: list[tuple[str, str]]


REFUSED = (
    Refused("no bounds", {"type": "integer"}, [(A, "bad_bound"), (A, "bad_bound")]),
    Refused(
        "a keyword of strings",
        {"type": "integer", "minimum": 0, "maximum": 2, "pattern": "("},
        [(f"{A}/pattern", "unsupported_keyword")],
    ),
    Refused(
        "a description of no level",
        {"type": "integer", "minimum": 0, "maximum": 2, "x-option-descriptions": {"3": "x"}},
        [(f"{A}/x-option-descriptions", "bad_descriptions")],
    ),
    Refused(
        "no levels to describe",
        {"type": "integer", "minimum": 0, "x-option-descriptions": {"0": "x"}},
        [(A, "bad_bound")],
    ),
    Refused(
        "a level too long with its description",
        {"type": "integer", "minimum": 1, "maximum": 2, "x-option-descriptions": {"1": "d" * 399}},
        [(A, "text_too_long")],
    ),
    Refused("too many levels", {"type": "integer", "minimum": 0, "maximum": 10}, [(A, "bad_levels")]),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_a_score_may_not_be(case: Refused) -> None:
    """Everything in its place."""
    assert problems_of(question(**case.schema)) == case.problems


def test_levels_are_as_many_as_there_are_labels() -> None:
    """A score is read at one slot."""
    schema = question(type="integer", minimum=0, maximum=2)
    assert problems_of(schema, replace(LIMITS, max_labels=3)) == []
    assert problems_of(schema, replace(LIMITS, max_labels=2)) == [(A, "bad_options")]


@dataclass(frozen=True)
class Answered:
    id: str
    levels: Schema
    probabilities: tuple[float, ...]
    value: float
    confidence: float
    expected: float


ANSWERED = (
    Answered("TypeSafe's example", {"minimum": 0, "maximum": 2}, (0.0, 0.95, 0.05), 1, 0.925, 1.05),
    Answered("below zero", {"minimum": -2, "maximum": -1}, (0.25, 0.75), -1, 0.5, -1.25),
    Answered("the lowest of equals", {"minimum": 3, "maximum": 4}, (0.5, 0.5), 3, 0.0, 3.5),
    Answered(
        "a grid", {"minimum": 0, "maximum": 1, "multipleOf": 0.5, "type": "number"}, (0.5, 0.25, 0.25), 0, 0.0, 0.375
    ),
)


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_an_answer_has_a_mean_level(case: Answered) -> None:
    """The likeliest level, how far from it the others are, and the mean."""
    site, reader = opened({"type": "integer", **case.levels})
    made = Score.parse(site, reader, ("a",), "T").answer([case.probabilities])
    assert complaints_of(reader) == []
    assert (made.value, made.probability) == (case.value, max(case.probabilities))
    assert (made.confidence, made.expected) == pytest.approx((case.confidence, case.expected))


@given(st.integers(-(2**40), 2**40), st.lists(st.floats(-1000, 0), min_size=2, max_size=10))
def test_the_mean_lies_within_the_levels(low: int, logprobs: list[float]) -> None:
    """Whatever is read: rounding apart."""
    site, reader = opened({"type": "integer", "minimum": low, "maximum": low + len(logprobs) - 1})
    asked = Score.parse(site, reader, ("a",), "T")
    assert shown(asked.options) == as_they_are(*range(low, low + len(logprobs)))
    expected = asked.answer([normalise(logprobs)]).expected
    assert expected is not None
    assert low - 0.001 <= expected <= low + len(logprobs) - 0.999
