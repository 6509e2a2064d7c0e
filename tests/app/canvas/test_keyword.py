"""Keywords that cannot be skipped: each is understood in its place or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from app.canvas import keyword
from tests.app.canvas.rubrics import YES_NO, Schema, problems_of, question, rubric

# Written down here too, so that the code cannot forget one and take the test along.
IDENTIFYING = ("$ref", "$dynamicRef", "$recursiveRef", "extends")
GENERAL = ("type", "enum", "const", "disallow", "allOf", "anyOf", "oneOf", "not", "if", "then", "else")
OF_STRINGS = ("pattern", "minLength", "maxLength")
OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy")
OF_ARRAYS = (
    *("items", "additionalItems", "prefixItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems"),
    *("contains", "minContains", "maxContains"),
)
OF_OBJECTS = (
    *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("minProperties", "maxProperties", "required", "dependencies", "dependentRequired", "dependentSchemas"),
)
CONSTRAINING = frozenset((*IDENTIFYING, *GENERAL, *OF_STRINGS, *OF_NUMBERS, *OF_ARRAYS, *OF_OBJECTS))

DRAFTS = (
    jsonschema.Draft3Validator,
    jsonschema.Draft4Validator,
    jsonschema.Draft6Validator,
    jsonschema.Draft7Validator,
    jsonschema.Draft201909Validator,
    jsonschema.Draft202012Validator,
)


def test_the_list_above_is_complete() -> None:
    """It holds every keyword that `jsonschema` has a rule for, in any draft.

    All but `format`, which is an annotation since draft 2019-09, and checked by nobody here.
    """
    assert {word for draft in DRAFTS for word in draft.VALIDATORS} - {"format"} <= CONSTRAINING


def test_every_keyword_of_json_schema_is_known() -> None:
    """Each draft's own description of itself names none that would be remarked on as unheard of, or that is both."""
    described = {word for uri in REGISTRY for word in REGISTRY.contents(uri).get("properties", {})}
    assert {"title", "$defs", "contentEncoding", "propertyNames"} <= described
    assert described - keyword.CONSTRAINING - keyword.ANNOTATIONS == {"id"}  # which drafts 3 and 4 called `$id`
    assert not keyword.CONSTRAINING & keyword.ANNOTATIONS
    assert keyword.CONSTRAINING == CONSTRAINING


@dataclass(frozen=True)
class Place:
    """Where a keyword may stand.

    Attributes:
        understood: what has a meaning there, or makes another question of it.
    """

    id: str
    schema: Callable[[Schema], Schema]
    pointer: str
    understood: frozenset[str]


def in_question(**known: Any) -> Callable[[Schema], Schema]:
    return lambda more: rubric({"a": {**known, **more}, "b": YES_NO})


def in_option(more: Schema) -> Schema:
    return question(oneOf=[{"const": 1}, {"const": 2, **more}])


def in_items(more: Schema) -> Schema:
    return question(type="array", items={"enum": ["a", "b"], **more})


def in_group(more: Schema) -> Schema:
    return rubric({"a": YES_NO, "g": {"type": "object", "properties": {"b": YES_NO}, **more}})


def in_part(more: Schema) -> Schema:
    return rubric(allOf=[{"properties": {"b": YES_NO}, **more}, {}])


def in_then(more: Schema) -> Schema:
    return rubric(**{"if": True, "then": {"properties": {"b": YES_NO}, **more}})


def in_if(more: Schema) -> Schema:
    return rubric(**{"if": {"properties": {"a": {"const": True}}, **more}, "then": {"properties": {"b": YES_NO}}})


def beside_a_reference(more: Schema) -> Schema:
    return {**question(**{"$ref": "#/$defs/B", **more}), "$defs": {"B": YES_NO}}


def beside_null(more: Schema) -> Schema:
    return question(**{"anyOf": [{"type": "object", "properties": {}}, {"type": "null"}], **more})


A = "/rubric/properties/a"
PARTS = frozenset(
    {"type", "properties", "required", "allOf", "if", "then", "else", "dependentRequired", "dependentSchemas", "$ref"}
)
OBJECT = PARTS | {"additionalProperties", "unevaluatedProperties"}
LISTS = frozenset({"enum", "const", "oneOf", "anyOf"})
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
CONDITION = frozenset({"type", "enum", "const", "required", "properties", "not", "contains", "allOf", "anyOf", "oneOf"})
COUNTS = frozenset({"minItems", "maxItems", "minContains", "maxContains"})
REFERENCE = frozenset({"$ref"})
PLACES = (
    Place("root", lambda more: rubric(**more), "/rubric", OBJECT),
    Place("group", in_group, "/rubric/properties/g", OBJECT | LISTS),
    Place("part of an object", in_part, "/rubric/allOf/0", PARTS),
    Place("branch", in_then, "/rubric/then", PARTS),
    Place("condition", in_if, "/rubric/if", CONDITION | COUNTS | BOUNDS - {"multipleOf"} | REFERENCE),
    Place("boolean", in_question(**YES_NO), A, LISTS | {"type"} | REFERENCE),
    Place("enum", in_question(enum=["a", "b"]), A, LISTS | {"type"} | REFERENCE),
    Place("oneOf", in_question(oneOf=[{"const": 1}, {"const": 2}]), A, LISTS | {"type"} | REFERENCE),
    Place("anyOf", in_question(anyOf=[{"const": 1}, {"const": 2}]), A, LISTS | {"type"} | REFERENCE),
    Place("const", in_question(const=1), A, LISTS | {"type"} | REFERENCE),
    Place("score", in_question(type="integer", minimum=0, maximum=2), A, LISTS | BOUNDS | {"type"} | REFERENCE),
    Place(
        "probability",
        in_question(type="number", minimum=0, maximum=1),
        A,
        LISTS | BOUNDS | {"type"} | REFERENCE,
    ),
    Place(
        "array",
        in_question(type="array", items={"enum": ["a"]}),
        A,
        LISTS | {"type", "items", "uniqueItems", "minItems", "maxItems"} | REFERENCE,
    ),
    Place("items", in_items, f"{A}/items", LISTS | {"type"} | REFERENCE),
    Place("option", in_option, f"{A}/oneOf/1", LISTS | {"type"} | REFERENCE),
    Place("something or null", beside_null, A, LISTS | {"type"} | REFERENCE),
    Place("beside a reference", beside_a_reference, A, REFERENCE),
)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.id)
def test_a_keyword_that_constrains_is_never_skipped(place: Place) -> None:
    """S7: a keyword that could make a decision invalid is refused in its place, whatever stands there."""
    assert problems_of(place.schema({})) == []
    skipped = [
        word
        for word in sorted(CONSTRAINING - place.understood)
        if (f"{place.pointer}/{word}", "unsupported_keyword") not in problems_of(place.schema({word: {}}))
    ]
    assert skipped == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.id)
def test_what_is_understood_is_not_skipped_either(place: Place) -> None:
    """What cannot stand at a keyword that is understood is complained about."""
    for word in sorted(place.understood):
        nonsense = [] if word == "const" else "nonsense"
        assert problems_of(place.schema({word: nonsense})) != [], word


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.id)
def test_an_annotation_is_ignored(place: Place) -> None:
    """What constrains nothing makes no difference."""
    annotations = (
        "$comment",
        "$defs",
        "format",
        "default",
        "deprecated",
        "examples",
        "readOnly",
        "x-order",
        "unheard-of",
    )
    assert problems_of(place.schema({word: {} for word in annotations})) == []
