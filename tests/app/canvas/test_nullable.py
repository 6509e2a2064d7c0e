"""Schemas that also admit null."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.canvas.nullable import with_plain_type, without_null
from app.canvas.rubric import compile_rubric
from tests.app.canvas.rubrics import (
    LIMITS,
    SHOWN_NULL,
    SHOWN_YES_NO,
    YES_NO,
    Schema,
    ShownQuestion,
    as_they_are,
    complaints_of,
    opened,
    problems_of,
    question,
    questions_of,
)

A = "/rubric/properties/a"
NULL: Schema = {"type": "null"}
GROUP: Schema = {"type": "object", "properties": {"b": YES_NO}}
LEVELS: Schema = {"type": "integer", "minimum": 0, "maximum": 2}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
LIST: Schema = {"type": "array", "items": {"enum": ["x", "y"]}}


@dataclass(frozen=True)
class Case:
    id: str
    schema: Schema
    questions: list[ShownQuestion]


YES_NO_NULL = [*SHOWN_YES_NO, SHOWN_NULL]
NO_NULL = ("a", "probability", "Yes or no?", SHOWN_YES_NO)
WHICH = ("a", "selection", "Which of these apply?", as_they_are("x", "y"))
PRESENCE: list[ShownQuestion] = [
    ("a", "boolean", "Is there one?", SHOWN_YES_NO),
    ("a/b", "boolean", "Yes or no?", SHOWN_YES_NO),
]
CASES = (
    Case("boolean", {"anyOf": [YES_NO, NULL]}, [("a", "choice", "Which one fits?", YES_NO_NULL)]),
    Case("boolean by types", {"type": ["boolean", "null"]}, [("a", "choice", "Which one fits?", YES_NO_NULL)]),
    Case("null ahead", {"oneOf": [NULL, YES_NO]}, [("a", "choice", "Which one fits?", [SHOWN_NULL, *SHOWN_YES_NO])]),
    Case(
        "enum",
        {"anyOf": [{"enum": ["x", "y"]}, NULL]},
        [("a", "choice", "Which one fits?", [*as_they_are("x", "y"), SHOWN_NULL])],
    ),
    Case(
        "enum by types",
        {"type": ["string", "null"], "enum": ["x", None]},
        [("a", "choice", "Which one fits?", [*as_they_are("x"), SHOWN_NULL])],
    ),
    Case(
        "enum that leaves null out",
        {"type": ["string", "null"], "enum": ["x", "y"]},
        [("a", "choice", "Which one fits?", as_they_are("x", "y"))],
    ),
    Case(
        "const",
        {"anyOf": [{"const": "x"}, NULL]},
        [("a", "choice", "Which one fits?", [*as_they_are("x"), SHOWN_NULL])],
    ),
    Case(
        "levels", {"anyOf": [LEVELS, NULL]}, [("a", "choice", "Which one fits?", [*as_they_are(0, 1, 2), SHOWN_NULL])]
    ),
    Case(
        "levels by types",
        {**LEVELS, "type": ["integer", "null"]},
        [("a", "choice", "Which one fits?", [*as_they_are(0, 1, 2), SHOWN_NULL])],
    ),
    Case(
        "a grid by types",
        {"type": ["null", "number"], "minimum": 0, "maximum": 1, "multipleOf": 0.5},
        [("a", "choice", "Which one fits?", [SHOWN_NULL, *as_they_are(0, 0.5, 1)])],
    ),
    Case("probability: never null", {"anyOf": [SHARE, NULL]}, [NO_NULL]),
    Case("probability by types", {**SHARE, "type": ["number", "null"]}, [NO_NULL]),
    Case("array: never null", {"anyOf": [NULL, LIST]}, [WHICH]),
    Case("array by types", {**LIST, "type": ["array", "null"]}, [WHICH]),
    Case("object: whether it is there", {"anyOf": [GROUP, NULL]}, PRESENCE),
    Case("object by types", {**GROUP, "type": ["object", "null"]}, PRESENCE),
    Case("object by oneOf", {"oneOf": [NULL, GROUP]}, PRESENCE),
    Case("an object in a list of types is no more than an object", {**GROUP, "type": ["object"]}, PRESENCE[1:]),
    Case(
        "a score in a list of types",
        {**LEVELS, "type": ["integer"]},
        [("a", "score", "Which level fits?", as_they_are(0, 1, 2))],
    ),
    Case("an array in a list of types", {**LIST, "type": ["array"]}, [WHICH]),
    Case(
        "texts beside it",
        {"anyOf": [{**SHARE, "title": "inner", "description": "d"}, NULL], "title": "outer"},
        [("a", "probability", "outer. d", SHOWN_YES_NO)],
    ),
    Case(
        "texts within",
        {"anyOf": [{**YES_NO, "title": "inner", "default": None}, NULL]},
        [("a", "choice", "inner. If it is not stated: none of these", YES_NO_NULL)],
    ),
    Case(
        "descriptions of options",
        {"anyOf": [YES_NO, NULL], "x-option-descriptions": {"null": "not said"}},
        [("a", "choice", "Which one fits?", [*SHOWN_YES_NO, (None, "null", "none of these: not said")])],
    ),
    Case(
        "descriptions of a probability's options",
        {"anyOf": [SHARE, NULL], "x-option-descriptions": {"true": "Y"}},
        [("a", "probability", "Yes or no?", [(True, "true", "yes: Y"), SHOWN_YES_NO[1]])],
    ),
    Case(
        "texts of an object",
        {"anyOf": [{**GROUP, "title": "inner"}, NULL], "description": "outer."},
        [
            ("a", "boolean", "inner. outer. Is there one?", SHOWN_YES_NO),
            ("a/b", "boolean", "inner. outer: Yes or no?", SHOWN_YES_NO),
        ],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_asked_of_something_or_null(case: Case) -> None:
    """Null is one more option; of a probability and of an array it is never the answer; an object may be missing."""
    assert questions_of(question(**case.schema)) == case.questions


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    problems: list[tuple[str, str]]


REFUSED = (
    Refused("a free string", {"anyOf": [{"type": "string"}, NULL]}, [(f"{A}/anyOf/0", "unsupported_question")]),
    Refused("a free string by types", {"type": ["string", "null"]}, [(A, "unsupported_question")]),
    Refused("an unbounded integer", {"type": ["integer", "null"]}, [(A, "bad_bound"), (A, "bad_bound")]),
    Refused(
        "null that is more",
        {"anyOf": [YES_NO, {**NULL, "pattern": "("}]},
        [(f"{A}/anyOf/1/pattern", "unsupported_keyword")],
    ),
    Refused(
        "an object beside more",
        {"anyOf": [GROUP, NULL], "minProperties": 1},
        [(f"{A}/minProperties", "unsupported_keyword"), (f"{A}/anyOf/0", "unsupported_question")],
    ),
    Refused("an object or an option", {"anyOf": [GROUP, {"const": 1}]}, [(f"{A}/anyOf/0", "unsupported_question")]),
    Refused(
        "two objects and null",
        {"anyOf": [GROUP, GROUP, NULL]},
        [(f"{A}/anyOf/0", "unsupported_question"), (f"{A}/anyOf/1", "unsupported_question")],
    ),
    Refused("an object alone", {"anyOf": [GROUP]}, [(f"{A}/anyOf/0", "unsupported_question")]),
    Refused("an object and a type that is none", {**GROUP, "type": ["object", 5]}, [(A, "unsupported_question")]),
    Refused("null or null", {"anyOf": [NULL, NULL]}, [(A, "duplicate_option")]),
    Refused("something that is no schema", {"anyOf": [1, NULL]}, [(f"{A}/anyOf/0", "not_a_schema")]),
    Refused(
        "an object with a list of its values",
        {**GROUP, "type": ["object", "null"], "enum": [None, {}]},
        [(f"{A}/enum", "unsupported_keyword")],
    ),
    Refused("a broken object", {"anyOf": [{"type": "object"}, NULL]}, [(f"{A}/anyOf/0", "bad_properties")]),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_not_something_or_null(case: Refused) -> None:
    """Everything in its place."""
    assert problems_of(question(**case.schema)) == case.problems


@dataclass(frozen=True)
class Remarked:
    id: str
    schema: Schema
    places: list[str]


REMARKED = (
    Remarked("a probability or null", {"anyOf": [SHARE, NULL]}, [A]),
    Remarked("a probability or null by types", {**SHARE, "type": ["number", "null"]}, [A]),
    Remarked("an array or null", {"anyOf": [LIST, NULL]}, [A]),
    Remarked("a probability", SHARE, []),
    Remarked("an array", {**LIST, "type": ["array"]}, []),
    Remarked("a boolean or null", {"anyOf": [YES_NO, NULL]}, []),
    Remarked("an object or null", {"anyOf": [GROUP, NULL]}, []),
)


@pytest.mark.parametrize("case", REMARKED, ids=lambda case: case.id)
def test_that_null_is_not_asked_is_remarked_on(case: Remarked) -> None:
    """Only where the rubric admits it, and it is never the answer."""
    remarks = compile_rubric(question(**case.schema), LIMITS).remarks
    assert [one.pointer for one in remarks if one.code == "null_not_asked"] == case.places


def test_annotations_keep_their_places() -> None:
    """A complaint about a text says where the text stands."""
    schema = {"anyOf": [{**SHARE, "title": "t", "description": "d"}, NULL], "title": "outer"}
    site, reader = opened(schema)
    core = without_null(site, reader)
    assert core.schema == {**SHARE, "title": "outer", "description": "d"}
    assert core.at("title") == ("rubric", "title")
    assert core.at("description") == ("rubric", "anyOf", 0, "description")
    assert core.at("minimum") == ("rubric", "anyOf", 0, "minimum")
    assert complaints_of(reader) == []


@pytest.mark.parametrize(
    "schema", [{}, YES_NO, {"type": ["boolean", "null", "integer"]}, {"anyOf": [YES_NO, GROUP]}, {"anyOf": 1}], ids=str
)
def test_other_forms_are_left_alone(schema: Schema) -> None:
    """They are looked at where options are."""
    site, reader = opened(schema)
    assert without_null(site, reader) is site
    assert with_plain_type(site).schema == schema
