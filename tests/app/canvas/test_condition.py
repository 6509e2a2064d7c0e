"""Conditions: what may be said of the decision so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from referencing.exceptions import Unresolvable

from app.canvas.condition import CONTAINS_NODES, ConditionParser, ConditionSchema, is_present, make_validator
from app.canvas.errors import RubricRejected
from app.canvas.site import Reader
from tests.app.canvas import rubrics
from tests.app.canvas.rubrics import LIMITS, Schema, complaints_of, opened

PLACE = ("rubric", "if")


def parse(condition: Any, **root: Any) -> tuple[ConditionSchema, Reader]:
    """What is understood of an `if`."""
    site, reader = opened({"if": condition, **root})
    return ConditionParser(reader).parse(condition, PLACE, site), reader


@dataclass(frozen=True)
class Case:
    """A condition, some objects that it holds for, and some that it does not."""

    id: str
    condition: Any
    mentions: set[tuple[str, ...]]
    holds: list[Any]
    fails: list[Any]


CASES = (
    Case("always", True, set(), [{}, {"a": 1}], []),
    Case("never", False, set(), [], [{}, {"a": 1}]),
    Case("nothing said", {}, set(), [{}], []),
    Case("a value", {"properties": {"a": {"const": 1}}}, {("a",)}, [{}, {"a": 1}, {"a": 1.0}], [{"a": 2}, {"a": True}]),
    Case("one of several", {"properties": {"a": {"enum": ["x", None]}}}, {("a",)}, [{"a": None}], [{"a": "y"}]),
    Case("presence", {"required": ["a"]}, {("a",)}, [{"a": None}], [{}, {"b": 1}]),
    Case("absence", {"not": {"required": ["a"]}}, {("a",)}, [{}], [{"a": None}]),
    Case("absence, said otherwise", {"properties": {"a": False}}, {("a",)}, [{}], [{"a": 1}]),
    Case("anything", {"properties": {"a": True}}, {("a",)}, [{}, {"a": 1}], []),
    Case("at least", {"properties": {"a": {"minimum": 2}}}, {("a",)}, [{"a": 2}, {"a": "x"}], [{"a": 1}]),
    Case("at most", {"properties": {"a": {"maximum": 0.5}}}, {("a",)}, [{"a": 0.5}], [{"a": 0.6}]),
    Case("more", {"properties": {"a": {"exclusiveMinimum": 2}}}, {("a",)}, [{"a": 3}], [{"a": 2}]),
    Case("less", {"properties": {"a": {"exclusiveMaximum": 2}}}, {("a",)}, [{"a": 1}], [{"a": 2}]),
    Case("a type", {"properties": {"a": {"type": "null"}}}, {("a",)}, [{"a": None}], [{"a": 1}]),
    Case("types", {"properties": {"a": {"type": ["object", "array"]}}}, {("a",)}, [{"a": {}}, {"a": []}], [{"a": 1}]),
    Case("an element", {"properties": {"a": {"contains": {"const": "x"}}}}, {("a",)}, [{"a": ["y", "x"]}], [{"a": []}]),
    Case(
        "an element in every way that it may be asked for",
        {"properties": {"a": {"contains": {"const": "x", "enum": ["x", "y"], "type": "string", "title": "t"}}}},
        {("a",)},
        [{"a": ["x"]}],
        [{"a": ["y"]}],
    ),
    Case(
        "so many elements",
        {"properties": {"a": {"contains": {"enum": ["x", "y"]}, "minContains": 1, "maxContains": 1}}},
        {("a",)},
        [{"a": ["x"]}, {"a": ["z", "y"]}],
        [{"a": ["x", "y"]}, {"a": []}],
    ),
    Case(
        "a count",
        {"properties": {"a": {"minItems": 1, "maxItems": 2}}},
        {("a",)},
        [{"a": ["x"]}],
        [{"a": []}, {"a": [1, 2, 3]}],
    ),
    Case(
        "of a nested object",
        {"properties": {"a": {"properties": {"b": {"const": 1}}, "required": ["c"]}}, "required": ["a"]},
        {("a",), ("a", "b"), ("a", "c")},
        [{"a": {"b": 1, "c": 0}}, {"a": {"c": 0}}, {"a": None}],
        [{"a": {"b": 2, "c": 0}}, {"a": {"b": 1}}, {}],
    ),
    Case(
        "all of",
        {"allOf": [{"required": ["a"]}, {"properties": {"b": {"const": 1}}}, True]},
        {("a",), ("b",)},
        [{"a": 1, "b": 1}],
        [{"a": 1, "b": 2}, {"b": 1}],
    ),
    Case(
        "any of",
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {("a",), ("b",)},
        [{"a": 1}, {"a": 1, "b": 1}],
        [{}],
    ),
    Case(
        "one of",
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {("a",), ("b",)},
        [{"b": 1}],
        [{"a": 1, "b": 1}, {}],
    ),
    Case(
        "annotations",
        {"title": 1, "format": "date", "x": ["y"], "properties": {"a": {"const": 1, "examples": [2]}}},
        {("a",)},
        [{"a": 1}],
        [{"a": 2}],
    ),
    Case(
        "names that need escaping",
        {"properties": {"a/b": {"const": 1}}, "required": ["~"]},
        {("a/b",), ("~",)},
        [{"~": 1}],
        [{"~": 1, "a/b": 2}],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_condition_is_understood(case: Case) -> None:
    """It holds exactly where the caller's own schema does, and what it looks at is known."""
    understood, reader = parse(case.condition)
    assert complaints_of(reader) == []
    assert set(understood.mentions) == case.mentions
    wanted, unwanted = (understood.condition(PLACE, is_wanted=is_wanted) for is_wanted in (True, False))
    for instances, does_hold in ((case.holds, True), (case.fails, False)):
        for known in instances:
            assert wanted.holds(known) is does_hold
            assert unwanted.holds(known) is not does_hold
            assert Draft202012Validator(case.condition).is_valid(known) is does_hold
    assert wanted.place == PLACE


@dataclass(frozen=True)
class Refused:
    id: str
    condition: Any
    complaints: list[tuple[str, str]]


def of_a(schema: Any) -> Schema:
    """A condition on `a`."""
    return {"properties": {"a": schema}}


A = "/if/properties/a"
EVIL = "^(a+)+$"
REFUSED = (
    Refused("null", None, [("/if", "not_a_schema")]),
    Refused("a list", [], [("/if", "not_a_schema")]),
    Refused("a pattern", of_a({"pattern": EVIL}), [(f"{A}/pattern", "unsupported_keyword")]),
    Refused(
        "a pattern within",
        {"not": {"anyOf": [of_a({"pattern": EVIL})]}},
        [("/if/not/anyOf/0/properties/a/pattern", "unsupported_keyword")],
    ),
    Refused(
        "names by pattern", {"patternProperties": {EVIL: True}}, [("/if/patternProperties", "unsupported_keyword")]
    ),
    Refused("every name", {"propertyNames": {"pattern": EVIL}}, [("/if/propertyNames", "unsupported_keyword")]),
    Refused(
        "the other properties", {"additionalProperties": False}, [("/if/additionalProperties", "unsupported_keyword")]
    ),
    Refused("the number of properties", {"minProperties": 1}, [("/if/minProperties", "unsupported_keyword")]),
    Refused("what depends", {"dependentRequired": {"a": ["b"]}}, [("/if/dependentRequired", "unsupported_keyword")]),
    Refused(
        "a condition",
        {"if": True, "then": False},
        [("/if/if", "unsupported_keyword"), ("/if/then", "unsupported_keyword")],
    ),
    Refused("all elements", of_a({"items": {"const": 1}}), [(f"{A}/items", "unsupported_keyword")]),
    Refused("distinct elements", of_a({"uniqueItems": True}), [(f"{A}/uniqueItems", "unsupported_keyword")]),
    Refused("any item", of_a({"contains": True}), [(f"{A}/contains", "bad_condition")]),
    Refused("an item by its size", of_a({"contains": {"minimum": 1}}), [(f"{A}/contains", "bad_condition")]),
    Refused("an item by what it is not", of_a({"contains": {"not": {}}}), [(f"{A}/contains", "bad_condition")]),
    Refused(
        "an item elsewhere",
        of_a({"contains": {"$ref": "#/$defs/A"}}),
        [(f"{A}/contains", "bad_condition"), (f"{A}/contains/$ref", "unknown_reference")],
    ),
    Refused("a grid", of_a({"multipleOf": 0}), [(f"{A}/multipleOf", "unsupported_keyword")]),
    Refused("a length", of_a({"minLength": 1}), [(f"{A}/minLength", "unsupported_keyword")]),
    Refused("a dynamic reference", {"$dynamicRef": "#a"}, [("/if/$dynamicRef", "unsupported_keyword")]),
    Refused("a remote reference", {"$ref": "https://example.org/"}, [("/if/$ref", "unsupported_reference")]),
    Refused("an object for a value", of_a({"const": {}}), [(f"{A}/const", "bad_condition")]),
    Refused("lists for values", of_a({"enum": [1, []]}), [(f"{A}/enum", "bad_condition")]),
    Refused("values in an object", of_a({"enum": {}}), [(f"{A}/enum", "bad_condition")]),
    Refused("a value that cannot be written", of_a({"const": 10**5000}), [(f"{A}/const", "bad_condition")]),
    Refused("a bound that is none", of_a({"minimum": "1"}), [(f"{A}/minimum", "bad_condition")]),
    Refused("a bound that is true", of_a({"exclusiveMaximum": True}), [(f"{A}/exclusiveMaximum", "bad_condition")]),
    Refused("a bound that cannot be written", of_a({"maximum": 10**5000}), [(f"{A}/maximum", "bad_condition")]),
    Refused("a bound that is no number", of_a({"minimum": float("nan")}), [(f"{A}/minimum", "bad_condition")]),
    Refused("a count below zero", of_a({"minItems": -1}), [(f"{A}/minItems", "bad_condition")]),
    Refused("half a count", of_a({"maxItems": 0.5}), [(f"{A}/maxItems", "bad_condition")]),
    Refused("a count that is true", of_a({"minContains": True}), [(f"{A}/minContains", "bad_condition")]),
    Refused("a count that cannot be written", of_a({"minItems": 10**5000}), [(f"{A}/minItems", "bad_condition")]),
    Refused("an unknown type", of_a({"type": "text"}), [(f"{A}/type", "bad_condition")]),
    Refused("no type", of_a({"type": []}), [(f"{A}/type", "bad_condition")]),
    Refused("a type that is none", of_a({"type": ["string", 1]}), [(f"{A}/type", "bad_condition")]),
    Refused("more types than there are", of_a({"type": ["string"] * 8}), [(f"{A}/type", "bad_condition")]),
    Refused("a name that is none", {"required": ["a", 1]}, [("/if/required", "bad_condition")]),
    Refused("names in a text", {"required": "a"}, [("/if/required", "bad_condition")]),
    Refused("properties in a list", {"properties": ["a"]}, [("/if/properties", "unsupported_keyword")]),
    Refused("a property that is none", of_a(1), [(A, "not_a_schema")]),
    Refused("no alternative", {"anyOf": []}, [("/if/anyOf", "unsupported_keyword")]),
    Refused("alternatives that are none", {"oneOf": {}}, [("/if/oneOf", "unsupported_keyword")]),
    Refused("an alternative that is none", {"allOf": [True, 1]}, [("/if/allOf/1", "not_a_schema")]),
    Refused("nothing to deny", {"not": None}, [("/if/not", "not_a_schema")]),
    Refused(
        "everything at once",
        {"properties": {"a": {"pattern": EVIL}, "b": 1}, "not": {"minimum": None}, "then": {}},
        [
            ("/if/then", "unsupported_keyword"),
            ("/if/not/minimum", "bad_condition"),
            ("/if/properties/b", "not_a_schema"),
            (f"{A}/pattern", "unsupported_keyword"),
        ],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_cannot_be_a_condition(case: Refused) -> None:
    """S7: what would be slow to check, or could not be, is refused; so is what is no schema."""
    _, reader = parse(case.condition)
    assert complaints_of(reader) == case.complaints


def test_conditions_may_be_referred_to() -> None:
    """What is understood holds no reference any more."""
    definitions = {"ill": {"properties": {"a": {"$ref": "#/$defs/yes"}}}, "yes": {"const": True}}
    understood, reader = parse({"allOf": [{"$ref": "#/$defs/ill"}], "title": "t"}, **{"$defs": definitions})
    assert complaints_of(reader) == []
    assert understood == ConditionSchema(schema={"properties": {"a": {"const": True}}}, mentions=frozenset({("a",)}))


def test_cycles_of_conditions_are_refused() -> None:
    """Wherever they go round."""
    _, reader = parse({"$ref": "#/$defs/c"}, **{"$defs": {"c": {"not": {"properties": {"a": {"$ref": "#/$defs/c"}}}}}})
    assert complaints_of(reader) == [("/$defs/c/not/properties/a/$ref", "cyclic_reference")]


def test_what_is_asked_of_every_item_counts_for_many() -> None:
    """S11: a list is as long as a selection has options."""
    condition = of_a({"contains": {"const": 1}})
    counts = []
    for schema in (condition, of_a({"const": 1})):
        _, reader = parse(schema)
        counts.append(reader.nodes)
    assert counts[0] - counts[1] > CONTAINS_NODES


NODES: tuple[Schema, ...] = (
    {"enum": list(range(5))},
    {"required": ["a"] * 5},
    {"properties": dict.fromkeys("abcde", True)},
    {"allOf": [True] * 5},
    {"not": {"not": {"not": {"not": {}}}}},
)


@pytest.mark.parametrize("condition", NODES, ids=str)
def test_everything_in_a_condition_counts(condition: Schema) -> None:
    """S11: values, names and schemas that are true as well."""
    site, reader = opened({"if": condition}, replace(LIMITS, max_nodes=5))
    with pytest.raises(RubricRejected) as rejected:
        ConditionParser(reader).parse(condition, PLACE, site)
    assert rejected.value.problems[-1].code == "too_many_nodes"


@pytest.mark.parametrize(
    "condition", [{"const": "x" * 10}, {"enum": ["x" * 9, "y"]}, {"required": ["x" * 10]}], ids=str
)
def test_every_text_in_a_condition_counts(condition: Schema) -> None:
    """S11: `jsonschema` writes it into a message whenever the condition does not hold."""
    site, reader = opened({"if": condition}, replace(LIMITS, max_chars=10))
    ConditionParser(reader).parse(condition, PLACE, site)
    assert complaints_of(reader) == []
    with pytest.raises(RubricRejected) as rejected:
        ConditionParser(reader).parse(condition, PLACE, site)
    assert rejected.value.problems[-1].code == "too_much_text"


def test_presence() -> None:
    """Whatever the value."""
    present = is_present("a").condition(PLACE)
    assert present.mentions == {("a",)}
    instances: list[Schema] = [{"a": None}, {"a": {}}, {}, {"b": 1}]
    assert [present.holds(known) for known in instances] == [True, True, False, False]


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


@given(rubrics.json_values())
def test_any_json_is_understood_or_refused(condition: Any) -> None:
    """S6, S7: never another exception, and what is understood says what was said."""
    understood, reader = parse(condition)
    if not reader.problems:
        validator, original = make_validator(understood.schema), Draft202012Validator(condition)
        instances: list[Schema] = [{}, {"type": 1, "": None}, {"properties": {"": True}, "items": ["x"]}]
        for known in instances:
            assert validator.is_valid(known) == original.is_valid(known)
