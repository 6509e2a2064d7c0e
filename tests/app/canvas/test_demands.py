"""What a property demands of its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from app.canvas.demands import NO_DEMANDS, Demands
from app.canvas.rubric import compile_rubric
from tests.app.canvas.rubrics import LIMITS, YES_NO, Schema, problems_of, rubric

ABC: Schema = {"enum": ["a", "b", None]}
SCORE: Schema = {"type": "integer", "minimum": 0, "maximum": 3}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
SOME: Schema = {"type": "array", "items": {"enum": ["x", "y", "z"]}, "minItems": 1, "maxItems": 2}
OBJECT: Schema = {"anyOf": [{"type": "object", "properties": {"b": YES_NO}}, {"type": "null"}]}


def demands_of(schema: Schema) -> Demands:
    """The demands of a rubric's first question."""
    return compile_rubric(rubric({"q": schema}), LIMITS).questions[0].demands


@pytest.mark.parametrize("schema", [ABC, SCORE, SHARE, SOME, OBJECT, YES_NO])
def test_none(schema: Schema) -> None:
    """The policy's threshold, any probability, nothing that stands in."""
    assert demands_of(schema) == NO_DEMANDS
    assert NO_DEMANDS.threshold(0.25) == 0.25
    assert NO_DEMANDS.are_met(0.25, 0.0, 0.25)
    assert not NO_DEMANDS.are_met(0.26, 1.0, 0.25)


def test_its_own_threshold_holds() -> None:
    """Whether it asks for more than the policy or for less; the bounds themselves are met."""
    strict = Demands(entropy_threshold=0.0, min_probability=0.9)
    assert strict.are_met(0.0, 0.9, 1.0)
    assert not strict.are_met(0.01, 0.9, 1.0)
    assert not strict.are_met(0.0, 0.89, 1.0)
    assert Demands(entropy_threshold=1.0).are_met(0.99, 0.5, 0.1)


@pytest.mark.parametrize("schema", [ABC, SCORE, SHARE, SOME, OBJECT, YES_NO])
def test_numbers(schema: Schema) -> None:
    """On every kind of question, at the bounds too."""
    for value in (0, 0.5, 1):
        found = demands_of({**schema, "x-entropy-threshold": value, "x-min-probability": value})
        assert (found.entropy_threshold, found.min_probability) == (value, value)


@dataclass(frozen=True)
class StandIn:
    id: str
    schema: Schema
    value: Any
    taken: Any = None


TAKEN = (
    StandIn("an option", ABC, "b", "b"),
    StandIn("null", ABC, None, None),
    StandIn("a level", SCORE, 2.0, 2),
    StandIn("false", YES_NO, False, False),
    StandIn("a probability", SHARE, 0.5, 0.5),
    StandIn("a list, in the order of the options", SOME, ["z", "x"], ["x", "z"]),
    StandIn("no object", OBJECT, None, False),
)
REFUSED = (
    StandIn("no option", ABC, "c"),
    StandIn("an option in a list", ABC, ["a"]),
    StandIn("an object", ABC, {}),
    StandIn("no level", SCORE, 4),
    StandIn("true for 1", SCORE, True),
    StandIn("1 for true", YES_NO, 1),
    StandIn("null where there is none", YES_NO, None),
    StandIn("more than all", SHARE, 1.5),
    StandIn("true for a probability", SHARE, True),
    StandIn("too short a list", SOME, []),
    StandIn("too long a list", SOME, ["x", "y", "z"]),
    StandIn("twice the same", SOME, ["x", "x"]),
    StandIn("a list with no option", SOME, ["x", "w"]),
    StandIn("a list with a list", SOME, [["x"]]),
    StandIn("an option for a list", SOME, "x"),
    StandIn("an object that would have to be filled", OBJECT, {"b": True}),
)


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.id)
def test_what_may_stand_in(case: StandIn) -> None:
    """What the property may hold, as an answer would call it."""
    (found,) = demands_of({**case.schema, "x-on-uncertain": case.value}).stand_in
    assert (found, type(found)) == (case.taken, type(case.taken))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_may_not(case: StandIn) -> None:
    """Said with the place, never with the value."""
    found = problems_of(rubric({"q": {**case.schema, "x-on-uncertain": case.value}}))
    assert found == [("/rubric/properties/q/x-on-uncertain", "bad_demand")]


@pytest.mark.parametrize("keyword", ["x-entropy-threshold", "x-min-probability"])
@pytest.mark.parametrize("value", [-0.1, 1.1, "0.5", True, None, [], float("nan")])
def test_numbers_out_of_range(keyword: str, value: Any) -> None:
    """A share is a number from 0 to 1."""
    assert problems_of(rubric({"q": {**YES_NO, keyword: value}})) == [(f"/rubric/properties/q/{keyword}", "bad_demand")]


PLACES: dict[str, tuple[Schema, str]] = {
    "a constant": ({"const": 1, "x-min-probability": 1}, ""),
    "an object": ({"type": "object", "properties": {"q": YES_NO}, "x-min-probability": 1}, ""),
    "what a list holds": ({"type": "array", "items": {"enum": ["a", "b"], "x-min-probability": 1}}, "/items"),
    "an option": ({"oneOf": [{"const": "a", "x-min-probability": 1}, {"const": "b"}]}, "/oneOf/0"),
    "one of several lists": (
        {"anyOf": [{"enum": ["a", "b"], "x-min-probability": 1}, {"const": "c"}, {"type": "null"}]},
        "/anyOf/0",
    ),
    "a part of an object": (
        {"type": "object", "properties": {"q": YES_NO}, "allOf": [{"required": ["q"], "x-min-probability": 1}]},
        "/allOf/0",
    ),
}


@pytest.mark.parametrize(("schema", "below"), PLACES.values(), ids=PLACES)
def test_demands_where_nothing_is_asked(schema: Schema, below: str) -> None:
    """They would never be looked at: the author is told."""
    compiled = compile_rubric(rubric({"p": schema, "q": YES_NO}), LIMITS)
    assert [(one.pointer, one.code) for one in compiled.remarks if one.code == "demand_not_used"] == [
        (f"/rubric/properties/p{below}/x-min-probability", "demand_not_used")
    ]


def test_demands_of_a_whole_rubric() -> None:
    """It is no question."""
    compiled = compile_rubric(rubric({"q": YES_NO}, **{"x-on-uncertain": True}), LIMITS)
    assert [one.pointer for one in compiled.remarks] == ["/rubric/x-on-uncertain"]


@pytest.mark.parametrize("schema", [ABC, SCORE, SHARE, SOME, OBJECT, YES_NO])
def test_demands_that_are_used_are_not_remarked_on(schema: Schema) -> None:
    """Beside the question or, where it may be null, with what it may be instead."""
    schemas = [{**schema, "x-min-probability": 0.5}]
    if schema is not OBJECT and schema is not ABC:
        schemas.append({"anyOf": [{**schema, "x-min-probability": 0.5}, {"type": "null"}]})
    for demanding in schemas:
        compiled = compile_rubric(rubric({"q": demanding}), LIMITS)
        assert compiled.questions[0].demands.min_probability == 0.5
        assert "demand_not_used" not in {one.code for one in compiled.remarks}


def test_misspelt_demands_are_remarked_on() -> None:
    """What starts as ours do and is none."""
    odd = {"x-min-prob": 1, "x-entropy": 1, "x-on-doubt": 1, "x-minimal": 1}
    compiled = compile_rubric(rubric({"q": {**YES_NO, **odd}}), LIMITS)
    assert [one.pointer.rsplit("/", 1)[1] for one in compiled.remarks] == ["x-entropy", "x-min-prob", "x-on-doubt"]


def test_demands_beside_a_reference() -> None:
    """They stand with the annotations, nearer ones first."""
    schema = rubric({"q": {"$ref": "#/$defs/yes", "x-min-probability": 0.5}})
    schema["$defs"] = {"yes": {**YES_NO, "x-min-probability": 0.9, "x-on-uncertain": False}}
    (question,) = compile_rubric(schema, LIMITS).questions
    assert question.demands == Demands(min_probability=0.5, stand_in=(False,))
