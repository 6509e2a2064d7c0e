"""The probability of yes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.condition import make_validator
from app.canvas.distribution import normalise
from app.canvas.kinds.probability import Probability
from tests.app.canvas.rubrics import (
    SHOWN_YES_NO,
    Schema,
    complaints_of,
    opened,
    problems_of,
    question,
    questions_of,
    shown,
)

A = "/rubric/properties/a"
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}


@dataclass(frozen=True)
class Claim:
    id: str
    schema: Schema
    is_claimed: bool


CLAIMS = (
    Claim("number from 0 to 1", SHARE, True),
    Claim("any number, to be refused", {"type": "number"}, True),
    Claim("a grid", {**SHARE, "multipleOf": 0.5}, False),
    Claim("a list", {**SHARE, "enum": [0, 1]}, False),
    Claim("a constant", {**SHARE, "const": 0}, False),
    Claim("alternatives", {**SHARE, "anyOf": []}, False),
    Claim("other alternatives", {**SHARE, "oneOf": []}, False),
    Claim("integer", {**SHARE, "type": "integer"}, False),
    Claim("number or null", {**SHARE, "type": ["number", "null"]}, False),
)


@pytest.mark.parametrize("case", CLAIMS, ids=lambda case: case.id)
def test_what_is_a_probability(case: Claim) -> None:
    """A number that is neither listed nor on a grid."""
    site, _ = opened(case.schema)
    assert Probability.claims(site) is case.is_claimed


ASKED: tuple[Schema, ...] = (
    {},
    {"minimum": 0.0, "maximum": 1.0},
    {"minimum": -0.0},
    {"default": 0.5, "examples": [None]},
)


@pytest.mark.parametrize("more", ASKED, ids=str)
def test_a_probability_is_asked_as_yes_or_no(more: Schema) -> None:
    """However the bounds are written."""
    assert questions_of(question(**SHARE | more)) == [("a", "probability", "Yes or no?", SHOWN_YES_NO)]


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    problems: list[tuple[str, str]]


REFUSED = (
    Refused("no bounds", {"type": "number"}, [(A, "bad_bound"), (A, "bad_bound")]),
    Refused("no maximum", {"type": "number", "minimum": 0}, [(A, "bad_bound")]),
    Refused("another minimum", {**SHARE, "minimum": 0.5}, [(f"{A}/minimum", "bad_bound")]),
    Refused("another maximum", {**SHARE, "maximum": 100}, [(f"{A}/maximum", "bad_bound")]),
    Refused(
        "bounds that are none",
        {**SHARE, "minimum": False, "maximum": "1"},
        [(f"{A}/minimum", "bad_bound"), (f"{A}/maximum", "bad_bound")],
    ),
    Refused(
        "an exclusive bound, which certainty would break",
        {**SHARE, "exclusiveMinimum": 0},
        [(f"{A}/exclusiveMinimum", "bad_bound")],
    ),
    Refused(
        "descriptions of other options",
        {**SHARE, "x-option-descriptions": {"0": "never"}},
        [(f"{A}/x-option-descriptions", "bad_descriptions")],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_a_probability_may_not_be(case: Refused) -> None:
    """Only 0 to 1 are probabilities, and each of them may come out."""
    assert problems_of(question(**case.schema)) == case.problems


@given(st.lists(st.floats(-1000, 0), min_size=2, max_size=2))
def test_the_value_is_the_probability_of_yes(logprobs: list[float]) -> None:
    """Whichever is likelier; `probability` is that of the likelier, as for yes and no."""
    site, reader = opened(SHARE)
    asked = Probability.parse(site, reader, ("a",), "T")
    assert (complaints_of(reader), shown(asked.options)) == ([], SHOWN_YES_NO)
    distribution = normalise(logprobs)
    made = asked.answer([distribution])
    assert (made.value, made.probability, made.probabilities) == (distribution[0], max(distribution), distribution)
    assert make_validator(SHARE).is_valid(made.value)
    assert make_validator(asked.schema).is_valid(made.value)


def test_its_schema_admits_probabilities_only() -> None:
    """As the caller's does."""
    site, reader = opened(SHARE)
    validator = make_validator(Probability.parse(site, reader, ("a",), "T").schema)
    assert [validator.is_valid(value) for value in (0, 0.5, 1, -0.1, 1.1, None)] == [True] * 3 + [False] * 3
