"""Levels: the numbers that bounds and a step admit."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.canvas.levels import MAX_LEVELS, MIN_LEVELS, Number, levels_of
from tests.app.canvas.rubrics import Schema, complaints_of, opened


@dataclass(frozen=True)
class Case:
    id: str
    schema: Schema
    levels: tuple[Number, ...]


INTEGERS = (
    Case("inclusive", {"minimum": -1, "maximum": 1}, (-1, 0, 1)),
    Case("exclusive", {"exclusiveMinimum": 0, "exclusiveMaximum": 4}, (1, 2, 3)),
    Case("half open", {"exclusiveMinimum": 0, "maximum": 2}, (1, 2)),
    Case("half open above", {"minimum": 0, "exclusiveMaximum": 2}, (0, 1)),
    Case("bounds between integers", {"minimum": 0.5, "maximum": 3.5}, (1, 2, 3)),
    Case("exclusive bounds between integers", {"exclusiveMinimum": 0.5, "exclusiveMaximum": 3.5}, (1, 2, 3)),
    Case("whole floats", {"minimum": 1.0, "maximum": 2.0, "multipleOf": 1.0}, (1, 2)),
    Case("a step", {"minimum": 0, "maximum": 20, "multipleOf": 5}, (0, 5, 10, 15, 20)),
    Case("a step that the bounds are not on", {"minimum": -4, "maximum": 7, "multipleOf": 3}, (-3, 0, 3, 6)),
    Case("as few as may be", {"minimum": 5, "maximum": 6}, (5, 6)),
    Case("as many as may be", {"minimum": 1, "maximum": 10}, tuple(range(1, 11))),
    Case("as many within exclusive bounds", {"exclusiveMinimum": 0, "exclusiveMaximum": 11}, tuple(range(1, 11))),
    Case("large", {"minimum": 2**63, "maximum": 2**63 + 1}, (2**63, 2**63 + 1)),
    Case("the largest", {"minimum": 10**100 - 1, "maximum": 10**100}, (10**100 - 1, 10**100)),
)
NUMBERS = (
    Case("tenths", {"minimum": 0, "maximum": 0.5, "multipleOf": 0.1}, (0, 0.1, 0.2, 0.3, 0.4, 0.5)),
    Case("tenths below zero", {"minimum": -0.3, "exclusiveMaximum": 0, "multipleOf": 0.1}, (-0.3, -0.2, -0.1)),
    Case("tenths without the ends", {"exclusiveMinimum": 0, "exclusiveMaximum": 0.3, "multipleOf": 0.1}, (0.1, 0.2)),
    Case("halves", {"minimum": 0.5, "maximum": 2, "multipleOf": 0.5}, (0.5, 1, 1.5, 2)),
    Case("whole numbers", {"minimum": 0.2, "maximum": 2.9, "multipleOf": 1}, (1, 2)),
    Case("a wide step", {"minimum": -100, "maximum": 100, "multipleOf": 99.5}, (-99.5, 0, 99.5)),
    Case("a tiny step", {"minimum": 0, "maximum": 2e-300, "multipleOf": 1e-300}, (0, 1e-300, 2e-300)),
)


@pytest.mark.parametrize("case", INTEGERS, ids=lambda case: case.id)
def test_levels_of_integers(case: Case) -> None:
    """From the lowest to the highest, as integers."""
    site, reader = opened(case.schema)
    levels = levels_of(site, reader, is_integer=True)
    assert (levels, complaints_of(reader)) == (case.levels, [])
    assert all(type(level) is int for level in levels)


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case.id)
def test_levels_of_a_grid(case: Case) -> None:
    """Exactly the numbers that a person would write: 0.3, not the sum of three floats."""
    site, reader = opened(case.schema)
    levels = levels_of(site, reader, is_integer=False)
    assert (levels, complaints_of(reader)) == (case.levels, [])
    assert [repr(level) for level in levels] == [repr(level) for level in case.levels]


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    complaints: list[tuple[str, str]]
    is_integer: bool = True


REFUSED = (
    Refused("no bounds", {}, [("", "bad_bound"), ("", "bad_bound")]),
    Refused("no minimum", {"maximum": 3}, [("", "bad_bound")]),
    Refused("no maximum", {"exclusiveMinimum": 3}, [("", "bad_bound")]),
    Refused("a bound twice", {"minimum": 0, "exclusiveMinimum": 0, "maximum": 3}, [("/minimum", "bad_bound")]),
    Refused(
        "exclusive as in draft 4", {"minimum": 0, "maximum": 3, "exclusiveMaximum": True}, [("/maximum", "bad_bound")]
    ),
    Refused(
        "bounds that are no numbers",
        {"minimum": "0", "exclusiveMaximum": True},
        [("/minimum", "bad_number"), ("/exclusiveMaximum", "bad_number")],
    ),
    Refused("a bound that is null", {"minimum": None, "maximum": 3}, [("/minimum", "bad_number")]),
    Refused("a huge bound", {"minimum": 0, "maximum": 10**5000}, [("/maximum", "bad_number")]),
    Refused(
        "just too large",
        {"minimum": -(10**100) - 1, "maximum": 10**100 + 1},
        [("/minimum", "bad_number"), ("/maximum", "bad_number")],
    ),
    Refused("a huge float", {"minimum": -1e200, "maximum": 0}, [("/minimum", "bad_number")]),
    Refused(
        "no finite number",
        {"minimum": float("-inf"), "maximum": float("nan")},
        [("/minimum", "bad_number"), ("/maximum", "bad_number")],
    ),
    Refused("one level", {"minimum": 3, "maximum": 3}, [("", "bad_levels")]),
    Refused("one level between exclusive bounds", {"exclusiveMinimum": 0, "exclusiveMaximum": 2}, [("", "bad_levels")]),
    Refused("no level", {"minimum": 0.2, "maximum": 0.8}, [("", "bad_levels")]),
    Refused("no level at the ends", {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, [("", "bad_levels")]),
    Refused("upside down", {"minimum": 3, "maximum": 1}, [("", "bad_levels")]),
    Refused("eleven levels", {"minimum": 0, "maximum": 10}, [("", "bad_levels")]),
    Refused("eleven levels within", {"exclusiveMinimum": 0, "exclusiveMaximum": 12}, [("", "bad_levels")]),
    Refused("a sea of levels", {"minimum": -(10**60), "maximum": 0}, [("", "bad_levels")]),
    Refused(
        "a sea of tiny levels",
        {"minimum": -1e99, "maximum": 1e99, "multipleOf": 5e-324},
        [("", "bad_levels")],
        is_integer=False,
    ),
    Refused("no step at all", {"minimum": 0, "maximum": 3, "multipleOf": 0}, [("/multipleOf", "bad_step")]),
    Refused("a step down", {"minimum": 0, "maximum": 3, "multipleOf": -1}, [("/multipleOf", "bad_step")]),
    Refused("half a step", {"minimum": 0, "maximum": 3, "multipleOf": 0.5}, [("/multipleOf", "bad_step")]),
    Refused(
        "no step among numbers",
        {"minimum": 0, "maximum": 3, "multipleOf": 0.0},
        [("/multipleOf", "bad_step")],
        is_integer=False,
    ),
    Refused(
        "a step that is no number", {"minimum": 0, "maximum": 3, "multipleOf": "1"}, [("/multipleOf", "bad_number")]
    ),
    Refused("a step that is true", {"minimum": 0, "maximum": 3, "multipleOf": True}, [("/multipleOf", "bad_number")]),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_admits_no_levels(case: Refused) -> None:
    """Everything wrong at once, each in its place."""
    site, reader = opened(case.schema)
    assert levels_of(site, reader, is_integer=case.is_integer) == ()
    assert complaints_of(reader) == case.complaints


@given(
    low=st.decimals(-1000, 1000, places=3),
    span=st.decimals(0, 100, places=3),
    step=st.decimals("0.001", 50, places=3),
    is_low_excluded=st.booleans(),
    is_high_excluded=st.booleans(),
)
def test_levels_are_the_multiples_within_the_bounds(
    low: Decimal, span: Decimal, step: Decimal, is_low_excluded: bool, is_high_excluded: bool
) -> None:
    """All of them and no others, by exact fractions of what is written."""
    high = low + span
    assume(span / step < 30)
    site, reader = opened(
        {
            "exclusiveMinimum" if is_low_excluded else "minimum": float(low),
            "exclusiveMaximum" if is_high_excluded else "maximum": float(high),
            "multipleOf": float(step),
        }
    )
    exact_step, first = Fraction(step), int(Fraction(low) // Fraction(step)) - 1
    multiples = [(first + i) * exact_step for i in range(40)]
    expected = [
        multiple
        for multiple in multiples
        if (low < multiple or (low == multiple and not is_low_excluded))
        and (multiple < high or (multiple == high and not is_high_excluded))
    ]
    levels = levels_of(site, reader, is_integer=False)
    if MIN_LEVELS <= len(expected) <= MAX_LEVELS:
        assert [Fraction(repr(level)) for level in levels] == expected
        assert complaints_of(reader) == []
    else:
        assert (levels, complaints_of(reader)) == ((), [("", "bad_levels")])
