"""Keywords that cannot be skipped: each is understood in its place or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest

from tests.app.canvas.rubrics import problems_of

Schema = dict[str, Any]

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
    assert {keyword for draft in DRAFTS for keyword in draft.VALIDATORS} - {"format"} <= CONSTRAINING


@dataclass(frozen=True)
class Place:
    """Where a keyword may stand: what is understood there, or changes the kind of question, is left out."""

    id: str
    schema: Callable[[Schema], Schema]
    pointer: str
    understood: frozenset[str]


def at_root(more: Schema) -> Schema:
    return {"type": "object", "properties": {"a": {"type": "boolean"}}, **more}


def in_question(**known: Any) -> Callable[[Schema], Schema]:
    return lambda more: {"type": "object", "properties": {"a": {**known, **more}}}


def in_option(more: Schema) -> Schema:
    return in_question(oneOf=[{"const": 1}, {"const": 2, **more}])({})


PLACES = (
    Place("root", at_root, "/rubric", frozenset({"type", "properties", "required", "additionalProperties"})),
    Place("boolean", in_question(type="boolean"), "/rubric/properties/a", frozenset({"type", "enum", "oneOf"})),
    Place("enum", in_question(enum=["a", "b"]), "/rubric/properties/a", frozenset({"type", "enum", "oneOf"})),
    Place(
        "oneOf", in_question(oneOf=[{"const": 1}, {"const": 2}]), "/rubric/properties/a", frozenset({"type", "oneOf"})
    ),
    Place(
        "score",
        in_question(type="integer", minimum=0, maximum=2),
        "/rubric/properties/a",
        frozenset({"type", "minimum", "maximum", "enum", "oneOf"}),
    ),
    Place("option", in_option, "/rubric/properties/a/oneOf/1", frozenset({"const"})),
)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.id)
def test_a_keyword_that_constrains_is_never_skipped(place: Place) -> None:
    """S7: a keyword that could make a decision invalid is refused in its place, whatever stands there."""
    skipped = [
        keyword
        for keyword in sorted(CONSTRAINING - place.understood)
        if problems_of(place.schema({keyword: {}})) != [(f"{place.pointer}/{keyword}", "unsupported_keyword")]
    ]
    assert skipped == []


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
    assert problems_of(place.schema({keyword: {} for keyword in annotations})) == []
