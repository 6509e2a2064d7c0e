"""Any number of several values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.condition import make_validator
from app.canvas.kinds.selection import Selection
from app.canvas.label import Label
from app.canvas.option import make_option
from tests.app.canvas.rubrics import (
    SHOWN_NULL,
    SHOWN_YES_NO,
    YES_NO,
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
ABC: Schema = {"enum": ["a", "b", "c"]}


@dataclass(frozen=True)
class Asked:
    id: str
    items: Schema
    options: list[ShownOption]


ASKED = (
    Asked("enum", ABC, as_they_are("a", "b", "c")),
    Asked("a single option", {"enum": ["a"]}, as_they_are("a")),
    Asked("a constant", {"const": 1, "title": "one"}, [(1, "1", "one")]),
    Asked("constants", {"oneOf": [{"const": 1}, {"const": 2, "description": "d"}]}, [(1, "1", "1"), (2, "2", "2: d")]),
    Asked("levels", {"type": "integer", "minimum": 1, "maximum": 3}, as_they_are(1, 2, 3)),
    Asked("booleans", YES_NO, SHOWN_YES_NO),
    Asked("null", {"enum": ["a", None]}, [*as_they_are("a"), SHOWN_NULL]),
    Asked(
        "described",
        {**ABC, "x-option-descriptions": {"b": "B"}},
        [("a", "a", "a"), ("b", "b", "b: B"), ("c", "c", "c")],
    ),
)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_a_selection_is_asked(case: Asked) -> None:
    """A line for each option that `items` lists."""
    schema = question(type="array", items=case.items, title="Which?")
    assert questions_of(schema) == [("a", "selection", "Which?", case.options)]


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ({"title": "Colours.", "description": "of the wall"}, "Which? Colours. of the wall"),
        ({"title": ""}, "Which?"),
        ({"x-note": "n", "default": "a"}, "Which?"),
    ],
    ids=str,
)
def test_what_is_said_of_the_items_is_asked_too(items: Schema, text: str) -> None:
    """Behind the question's own text; the texts of a constant are its option's."""
    schema = question(type="array", title="Which?", items={**ABC, **items})
    assert questions_of(schema) == [("a", "selection", text, as_they_are("a", "b", "c"))]
    constant = question(type="array", title="Which?", items={"const": "a", "title": "A", "description": "d"})
    assert questions_of(constant) == [("a", "selection", "Which?", [("a", "a", "A: d")])]


def test_options_may_be_described_beside_the_items() -> None:
    """Behind what the items say of them."""
    schema = question(
        type="array",
        items={**ABC, "x-option-descriptions": {"a": "A"}},
        **{"x-option-descriptions": {"a": "first", "c": "last"}},
    )
    options = [("a", "a", "a: A: first"), ("b", "b", "b"), ("c", "c", "c: last")]
    assert questions_of(schema) == [("a", "selection", "Which of these apply?", options)]


@dataclass(frozen=True)
class Bounds:
    id: str
    keywords: Schema
    least: int
    most: int


BOUNDS = (
    Bounds("none", {}, 0, 3),
    Bounds("a minimum", {"minItems": 2}, 2, 3),
    Bounds("a maximum", {"maxItems": 1}, 0, 1),
    Bounds("nothing at all", {"maxItems": 0}, 0, 0),
    Bounds("exactly", {"minItems": 2, "maxItems": 2}, 2, 2),
    Bounds("all", {"minItems": 3, "uniqueItems": True}, 3, 3),
    Bounds("more than there are", {"maxItems": 10**50}, 0, 3),
    Bounds("whole floats", {"minItems": 1.0, "maxItems": 2.0}, 1, 2),
    Bounds("the same twice would be fine", {"uniqueItems": False}, 0, 3),
)


@pytest.mark.parametrize("case", BOUNDS, ids=lambda case: case.id)
def test_how_many_may_be_selected(case: Bounds) -> None:
    """Within the bounds, and no more than there are; never one twice, whether or not the rubric minds."""
    site, reader = opened({"type": "array", "items": ABC, **case.keywords})
    asked = Selection.parse(site, reader, ("a",), "T")
    assert (complaints_of(reader), asked.least, asked.most) == ([], case.least, case.most)
    validator = make_validator(asked.schema)
    for count in range(4):
        for chosen in combinations(("a", "b", "c"), count):
            assert validator.is_valid(list(chosen)) is (case.least <= count <= case.most)
    assert not validator.is_valid(["d"] * max(1, case.least))
    assert not validator.is_valid("a")


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    problems: list[tuple[str, str]]


REFUSED = (
    Refused("no items", {}, [(A, "unsupported_question")]),
    Refused("any items", {"items": True}, [(f"{A}/items", "not_a_schema")]),
    Refused("a list of items", {"items": [ABC]}, [(f"{A}/items", "not_a_schema")]),
    Refused(
        "free items, too few of them to count",
        {"items": {"type": "string"}, "minItems": 2},
        [(f"{A}/items", "unsupported_question")],
    ),
    Refused("free items", {"items": {"type": "string"}}, [(f"{A}/items", "unsupported_question")]),
    Refused("objects", {"items": {"type": "object", "properties": {}}}, [(f"{A}/items", "unsupported_question")]),
    Refused("arrays", {"items": {"type": "array", "items": ABC}}, [(f"{A}/items", "unsupported_question")]),
    Refused("an option twice", {"items": {"enum": ["a", "a"]}}, [(f"{A}/items", "duplicate_option")]),
    Refused("an option that nests", {"items": {"enum": ["a", []]}}, [(f"{A}/items/enum/1", "bad_option")]),
    Refused(
        "uniqueItems of another type", {"items": ABC, "uniqueItems": 1}, [(f"{A}/uniqueItems", "bad_unique_items")]
    ),
    Refused("a negative minimum", {"items": ABC, "minItems": -1}, [(f"{A}/minItems", "bad_bound")]),
    Refused("a half", {"items": ABC, "maxItems": 0.5}, [(f"{A}/maxItems", "bad_bound")]),
    Refused("a text", {"items": ABC, "maxItems": "2"}, [(f"{A}/maxItems", "bad_bound")]),
    Refused("true", {"items": ABC, "minItems": True}, [(f"{A}/minItems", "bad_bound")]),
    Refused("more than there are", {"items": ABC, "minItems": 4}, [(f"{A}/minItems", "bad_bound")]),
    Refused("a huge number", {"items": ABC, "minItems": 10**5000}, [(f"{A}/minItems", "bad_bound")]),
    Refused("upside down", {"items": ABC, "minItems": 2, "maxItems": 1}, [(f"{A}/minItems", "bad_bound")]),
    Refused(
        "keywords of other arrays",
        {"items": ABC, "contains": ABC, "prefixItems": [], "minContains": 1, "unevaluatedItems": False},
        [
            (f"{A}/contains", "unsupported_keyword"),
            (f"{A}/prefixItems", "unsupported_keyword"),
            (f"{A}/minContains", "unsupported_keyword"),
            (f"{A}/unevaluatedItems", "unsupported_keyword"),
        ],
    ),
    Refused("a list of arrays", {"items": ABC, "enum": [["a"], ["b"]]}, [(f"{A}/enum", "unsupported_keyword")]),
    Refused(
        "a description of no option",
        {"items": ABC, "x-option-descriptions": {"d": "D"}},
        [(f"{A}/x-option-descriptions", "bad_descriptions")],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_a_selection_may_not_be(case: Refused) -> None:
    """Everything in its place."""
    assert problems_of(question(type="array", **case.schema)) == case.problems


def selection(options: int, least: int = 0, most: int | None = None) -> Selection:
    """A selection from so many options, which are numbers."""
    made = tuple(map(make_option, range(options)))
    return Selection(path=("a",), text="T", options=made, least=least, most=options if most is None else most)


@dataclass(frozen=True)
class Answered:
    id: str
    yes: tuple[float, ...]
    value: list[int]
    probability: float
    least: int = 0
    most: int = 3


ANSWERED = (
    Answered("what is likely", (0.9, 0.2, 0.6), [0, 2], 0.6),
    Answered("nothing", (0.1, 0.2, 0.3), [], 0.7),
    Answered("everything", (0.9, 0.8, 0.7), [0, 1, 2], 0.7),
    Answered("an even chance is none", (0.5, 0.5, 0.5), [], 0.5),
    Answered("at least one", (0.1, 0.3, 0.2), [1], 0.3, least=1),
    Answered("at least two, in the rubric's order", (0.1, 0.2, 0.9), [1, 2], 0.2, least=2),
    Answered("at most one", (0.8, 0.9, 0.7), [1], 0.2, most=1),
    Answered("none at all", (0.8, 0.9, 0.7), [], 0.1, most=0),
    Answered("the first of equals", (0.2, 0.2, 0.2), [0], 0.2, least=1, most=1),
)


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_an_answer_is_a_list(case: Answered) -> None:
    """As sure as its least sure option."""
    asked = selection(3, case.least, case.most)
    made = asked.answer([(yes, 1 - yes) for yes in case.yes])
    assert (made.value, made.probabilities) == (case.value, case.yes)
    assert made.probability == pytest.approx(case.probability)
    assert (made.margin, made.confidence) == pytest.approx((min(abs(2 * yes - 1) for yes in case.yes),) * 2)
    assert made.expected is None


def test_an_answer_is_as_uncertain_as_its_worst_option() -> None:
    """However sure the others are."""
    made = selection(2).answer([(1.0, 0.0), (0.5, 0.5)])
    assert (made.entropy, made.margin, made.confidence) == (1.0, 0.0, 0.0)
    assert selection(2).answer([(1.0, 0.0), (0.0, 1.0)]).entropy == 0.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.data())
def test_no_list_within_the_bounds_is_likelier(yes: list[float], data: st.DataObject) -> None:
    """Options are independent: the probability of a list is the product of theirs."""
    least = data.draw(st.integers(0, len(yes)))
    most = data.draw(st.integers(least, len(yes)))

    def probability(chosen: tuple[int, ...] | list[int]) -> float:
        return prod(p if i in chosen else 1 - p for i, p in enumerate(yes))

    asked = selection(len(yes), least, most)
    made = asked.answer([(p, 1 - p) for p in yes])
    assert make_validator(asked.schema).is_valid(made.value)
    chosen = [i for i in range(len(yes)) if isinstance(made.value, list) and i in made.value]
    every = (one for count in range(least, most + 1) for one in combinations(range(len(yes)), count))
    assert probability(chosen) == pytest.approx(max(map(probability, every)), rel=1e-9)


def test_the_prompt_has_a_numbered_line_per_option() -> None:
    """The labels of yes and no once, for all lines share them."""
    labels = (Label(text="A", token_id=1), Label(text="B", token_id=2))
    asked = selection(2)
    assert (asked.lines, shown(asked.slot_options)) == (2, SHOWN_YES_NO)
    assert asked.prompt(7, labels) == "T. Answer each of the lines below.\n- A = yes\n- B = no\n7. 0\n8. 1\n"
