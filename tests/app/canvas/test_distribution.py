"""From logprobs to probabilities, and what is said about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.distribution import (
    Distribution,
    choice_confidence,
    entropy,
    entropy_nats,
    margin,
    normalise,
    score_confidence,
)
from app.canvas.errors import NonFiniteLogprobs

LOGPROBS = st.lists(st.floats(-1000, 0), min_size=2, max_size=40)


def exact_shares(logprobs: Sequence[float]) -> list[float]:
    """`exp(x) / sum(exp(x))` in 60 decimal digits."""
    with localcontext() as context:
        context.prec = 60
        weights = [Decimal(value).exp() for value in logprobs]
        return [float(weight / sum(weights)) for weight in weights]


@given(LOGPROBS)
def test_probabilities_are_exact(logprobs: list[float]) -> None:
    """Whatever the logprobs, however small: the shares of their exponentials, which sum to 1 within 1e-9."""
    probabilities = normalise(logprobs)
    assert probabilities == pytest.approx(exact_shares(logprobs), rel=1e-9, abs=1e-300)
    assert math.fsum(probabilities) == pytest.approx(1.0, abs=1e-9)


@given(LOGPROBS, st.floats(-1000, 1000))
def test_only_differences_count(logprobs: list[float], shift: float) -> None:
    """Logprobs normalised over more labels than the slot's own give the same probabilities."""
    shifted = [value + shift for value in logprobs]
    assert normalise(shifted) == pytest.approx(normalise(logprobs), rel=1e-9, abs=1e-12)


def test_probabilities_keep_the_order() -> None:
    """One probability a label, in the labels' order."""
    assert normalise([math.log(0.2), math.log(0.5), math.log(0.3)]) == pytest.approx((0.2, 0.5, 0.3))


def test_logprobs_far_below_zero() -> None:
    """Logprobs that all underflow on their own still have shares."""
    assert normalise([-1000.0, -1000.0]) == (0.5, 0.5)
    assert normalise([0.0, -1000.0]) == (1.0, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_logprob_that_is_no_number(bad: float, place: int) -> None:
    """R18: never a probability, wherever it stands."""
    logprobs = [-1.0, -1.0, -1.0]
    logprobs[place] = bad
    with pytest.raises(NonFiniteLogprobs):
        normalise(logprobs)


@dataclass(frozen=True)
class Described:
    """A distribution and what is said about it, worked by hand."""

    id: str
    probabilities: Distribution
    entropy: float
    margin: float
    choice: float
    score: float


# The spread of a uniform distribution around the middle is 1/2, 2/3 and 1 for 2, 3 and 4 levels.
DESCRIBED = (
    Described("certain", (0.0, 1.0, 0.0), 0.0, 1.0, 1.0, 1.0),
    Described("uniform over two", (0.5, 0.5), 1.0, 0.0, 0.0, 1 - 0.5 / 0.5),
    Described("uniform over four", (0.25, 0.25, 0.25, 0.25), 1.0, 0.0, 0.0, 0.0),
    Described(
        "the design's example",
        (0.01, 0.97, 0.02),
        -(0.01 * math.log(0.01) + 0.97 * math.log(0.97) + 0.02 * math.log(0.02)) / math.log(3),
        0.95,
        0.955,
        1 - 0.03 / (2 / 3),
    ),
    Described(
        "TypeSafe's choice",
        (0.88, 0.12),
        -(0.88 * math.log(0.88) + 0.12 * math.log(0.12)) / math.log(2),
        0.76,
        0.76,
        1 - 0.12 / 0.5,
    ),
    Described(
        "TypeSafe's score",
        (0.0, 0.95, 0.05),
        -(0.95 * math.log(0.95) + 0.05 * math.log(0.05)) / math.log(3),
        0.90,
        0.925,
        0.925,
    ),
    Described("half and half of four, far apart", (0.5, 0.0, 0.0, 0.5), 0.5, 0.0, 1 / 3, 0.0),
    Described("half and half of four, close", (0.0, 0.5, 0.5, 0.0), 0.5, 0.0, 1 / 3, 0.5),
    Described(
        "the first of equals is the mode",
        (0.0, 0.4, 0.4, 0.2),
        -(2 * 0.4 * math.log(0.4) + 0.2 * math.log(0.2)) / math.log(4),
        0.0,
        0.2,
        1 - (0.4 * 1 + 0.2 * 2) / 1,
    ),
)


@pytest.mark.parametrize("case", DESCRIBED, ids=lambda case: case.id)
def test_descriptions(case: Described) -> None:
    """Normalised entropy, the lead of the first, and TypeSafe's two formulas of confidence."""
    described = (
        entropy(case.probabilities),
        margin(case.probabilities),
        choice_confidence(case.probabilities),
        score_confidence(case.probabilities),
    )
    assert described == pytest.approx((case.entropy, case.margin, case.choice, case.score), abs=1e-12)


def test_entropy_in_nats() -> None:
    """Natural logarithm; an impossible option adds nothing."""
    assert entropy_nats((0.5, 0.5, 0.0)) == pytest.approx(math.log(2))


def test_certainty_is_zero() -> None:
    """Not minus zero, which would read `-0.0` in an answer."""
    assert str(entropy((1.0, 0.0))) == "0.0"


@given(LOGPROBS)
def test_descriptions_stay_in_their_range(logprobs: list[float]) -> None:
    """0 to 1 whatever the number of options; a choice's confidence may round to just below."""
    probabilities = normalise(logprobs)
    for value in (entropy(probabilities), margin(probabilities), score_confidence(probabilities)):
        assert 0.0 <= value <= 1.0
    assert -1e-12 <= choice_confidence(probabilities) <= 1.0


@given(st.integers(2, 255))
def test_a_uniform_distribution_is_wholly_uncertain(options: int) -> None:
    """Entropy 1, however many options there are."""
    uniform = (1.0 / options,) * options
    assert entropy(uniform) == pytest.approx(1.0, abs=1e-12)
    assert entropy(uniform) <= 1.0
    assert choice_confidence(uniform) == pytest.approx(0.0, abs=1e-12)
