"""What a rubric asks, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.condition import make_validator
from app.canvas.distribution import Distribution, normalise
from app.canvas.json import JsonScalar
from app.canvas.kinds.choice import Choice
from app.canvas.label import Label
from app.canvas.option import make_option
from app.canvas.question import Kind
from tests.app.canvas import rubrics


def choice(*values: JsonScalar, path: tuple[str, ...] = ("a",)) -> Choice:
    """A choice of these values."""
    return Choice(path=path, text="Which?", options=tuple(map(make_option, values)))


@dataclass(frozen=True)
class Place:
    path: tuple[str, ...]
    id: str


PLACES = (
    Place(("topic",), "topic"),
    Place(("",), ""),
    Place(("contact", "urgency"), "contact/urgency"),
    Place(("contact/urgency",), "contact~1urgency"),
    Place(("a~1b",), "a~01b"),
    Place(("", ""), "/"),
)


@pytest.mark.parametrize("case", PLACES, ids=lambda case: repr(case.path))
def test_id_is_a_pointer_without_its_slash(case: Place) -> None:
    """Two places never share an id: a slash in a name is escaped, so it does not read as nesting."""
    assert choice(1, 2, path=case.path).id == case.id


def test_kinds_are_named_as_operators_know_them() -> None:
    """The names are labels of `decide_entropy{kind}`."""
    assert sorted(Kind) == ["boolean", "choice", "probability", "score", "selection"]


def test_the_prompt_has_a_line_per_option() -> None:
    """Behind the question and its number, each with its label."""
    labels = (Label(text="X", token_id=1), Label(text="Y", token_id=2))
    assert choice("a", None).prompt(12, labels) == "12. Which?\n- X = a\n- Y = none of these\n"


@dataclass(frozen=True)
class Answered:
    id: str
    values: tuple[JsonScalar, ...]
    probabilities: Distribution
    value: JsonScalar
    confidence: float


ANSWERED = (
    Answered("the likeliest", ("x", "y", "z"), (0.2, 0.7, 0.1), "y", 0.55),
    Answered("the first of equals", ("x", "y", "z"), (0.2, 0.4, 0.4), "y", 0.1),
    Answered("all equal", ("x", "y"), (0.5, 0.5), "x", 0.0),
    Answered("a boolean", (True, False), (0.25, 0.75), False, 0.5),
    Answered("null", ("x", None), (0.25, 0.75), None, 0.5),
    Answered("a number has no mean", (1, 2), (0.25, 0.75), 2, 0.5),
)


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_an_answer(case: Answered) -> None:
    """The likeliest option, and what is said about the distribution."""
    made = choice(*case.values).answer([case.probabilities])
    assert made.value == case.value
    assert type(made.value) is type(case.value)
    assert (made.probability, made.probabilities) == (max(case.probabilities), case.probabilities)
    assert made.confidence == pytest.approx(case.confidence, abs=1e-12)
    first, second = sorted(case.probabilities)[-1:-3:-1]
    assert made.margin == pytest.approx(first - second)
    assert made.expected is None
    assert choice(*case.values).decided(made.value) is made.value


@given(rubrics.option_values(), st.data())
def test_an_answer_is_one_of_the_options(values: list[JsonScalar], data: st.DataObject) -> None:
    """Whatever is read; and of nothing else does the question's schema say that it may stand in a decision."""
    asked = choice(*values)
    logprobs = data.draw(st.lists(st.floats(-1000, 0), min_size=len(values), max_size=len(values)))
    assert asked.answer([normalise(logprobs)]).value in values
    validator = make_validator(asked.schema)
    assert all(map(validator.is_valid, values))
    assert not validator.is_valid([])
    assert asked.slot_options == asked.options
    assert asked.lines == 1
