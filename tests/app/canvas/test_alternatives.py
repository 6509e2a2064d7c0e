"""Alternatives: the options that a schema admits, however it lists them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.canvas.alternatives import declared_types, described, options_of
from app.canvas.option import make_option
from tests.app.canvas.rubrics import (
    LIMITS,
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
    shown,
)

AB: Schema = {"enum": ["a", "b"]}
A1: Schema = {"const": "a"}
B1: Schema = {"const": "b"}
NULL: Schema = {"type": "null"}
ZERO_TO_TWO: Schema = {"type": "integer", "minimum": 0, "maximum": 2}


@dataclass(frozen=True)
class Case:
    id: str
    schema: Schema
    options: list[ShownOption]


CASES = (
    Case("enum", AB, as_they_are("a", "b")),
    Case("enum of a type", {"type": "string", **AB}, as_they_are("a", "b")),
    Case("enum of several types", {"type": ["null", "string"], "enum": ["a", None]}, [*as_they_are("a"), SHOWN_NULL]),
    Case("whole floats are integers", {"type": "integer", "enum": [1.0, 2]}, [(1.0, "1.0", "1.0"), (2, "2", "2")]),
    Case("integers are numbers", {"type": "number", "enum": [1, 2.5]}, as_they_are(1, 2.5)),
    Case("booleans are listed as they stand", {"type": "boolean", "enum": [False, True]}, SHOWN_YES_NO[::-1]),
    Case("an enum of one of its types", {"type": ["string", "integer"], **AB}, as_they_are("a", "b")),
    Case(
        "described enum",
        {"enum": ["a", 1, None], "x-option-descriptions": {"1": "one", "null": "no\nnumber"}},
        [*as_they_are("a"), (1, "1", "1: one"), (None, "null", "none of these: no number")],
    ),
    Case("oneOf of constants", {"oneOf": [A1, B1]}, as_they_are("a", "b")),
    Case("anyOf of constants", {"anyOf": [A1, B1]}, as_they_are("a", "b")),
    Case("constants of a type", {"type": "string", "oneOf": [A1, {"type": "string", **B1}]}, as_they_are("a", "b")),
    Case(
        "explained constants",
        {"oneOf": [{**A1, "title": "A"}, {**B1, "description": "d"}, {"const": 1, "title": "T", "description": "d"}]},
        [("a", "a", "A"), ("b", "b", "b: d"), (1, "1", "T: d")],
    ),
    Case("enums", {"anyOf": [AB, {"enum": [1, 2]}]}, as_they_are("a", "b", 1, 2)),
    Case("booleans", {"anyOf": [YES_NO, A1]}, [*SHOWN_YES_NO, *as_they_are("a")]),
    Case("null", {"anyOf": [AB, NULL]}, [*as_they_are("a", "b"), SHOWN_NULL]),
    Case("null ahead", {"oneOf": [NULL, AB]}, [SHOWN_NULL, *as_they_are("a", "b")]),
    Case(
        "explained null",
        {"oneOf": [A1, {**NULL, "title": "Neither", "description": "d"}]},
        [*as_they_are("a"), (None, "null", "Neither: d")],
    ),
    Case(
        "described null",
        {"oneOf": [A1, {**NULL, "title": "Neither", "x-option-descriptions": {"null": "x"}}]},
        [*as_they_are("a"), (None, "null", "Neither: x")],
    ),
    Case("levels", {"oneOf": [ZERO_TO_TWO, NULL]}, [*as_they_are(0, 1, 2), SHOWN_NULL]),
    Case(
        "two grids",
        {"anyOf": [ZERO_TO_TWO, {"type": "number", "minimum": 10, "maximum": 11, "multipleOf": 0.5}]},
        as_they_are(0, 1, 2, 10, 10.5, 11),
    ),
    Case("types", {"type": ["boolean", "null"]}, [*SHOWN_YES_NO, SHOWN_NULL]),
    Case("types in their order", {"type": ["null", "boolean"]}, [SHOWN_NULL, *SHOWN_YES_NO]),
    Case("types with levels", {**ZERO_TO_TWO, "type": ["integer", "null"]}, [*as_they_are(0, 1, 2), SHOWN_NULL]),
    Case(
        "types with titles of the question",
        {"type": ["boolean", "null"], "title": "T", "description": "d"},
        [*SHOWN_YES_NO, SHOWN_NULL],
    ),
    Case(
        "lists in lists",
        {"anyOf": [{"oneOf": [A1, {"anyOf": [B1, NULL]}]}, YES_NO]},
        [*as_they_are("a", "b"), SHOWN_NULL, *SHOWN_YES_NO],
    ),
    Case(
        "descriptions beside a list",
        {
            "anyOf": [{**A1, "title": "A"}, {"enum": ["b", 1], "x-option-descriptions": {"1": "one"}}, NULL],
            "x-option-descriptions": {"a": "x", "1": "y"},
        },
        [("a", "a", "A: x"), *as_they_are("b"), (1, "1", "1: one: y"), SHOWN_NULL],
    ),
    Case(
        "texts of an alternative that is one option",
        {"anyOf": [{"enum": ["a"], "title": "A", "description": "d"}, {"enum": ["b"]}]},
        [("a", "a", "A: d"), *as_they_are("b")],
    ),
    Case(
        "texts of an alternative that is several",
        {"anyOf": [{**AB, "title": "A", "description": "d"}, {"const": "c"}]},
        as_they_are("a", "b", "c"),
    ),
    Case(
        "true is not one",
        {"enum": [True, 1, "true!"]},
        [(True, "true", "yes"), (1, "1", "1"), ("true!", "true!", "true!")],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_options_are_found(case: Case) -> None:
    """In the order of the schema, none left out, none twice."""
    site, reader = opened(case.schema)
    options = options_of(site, reader)
    assert (shown(options), complaints_of(reader)) == (case.options, [])


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    complaints: list[tuple[str, str]]


NAMESAKES: list[Schema] = [{"const": 1, "title": "number"}, {"const": "1", "title": "text"}]
TWINS: list[Schema] = [{"const": 1, "title": "t"}, {"const": 2, "title": "t"}]
REFUSED = (
    Refused("nothing", {}, [("", "unsupported_question")]),
    Refused("a free string", {"type": "string"}, [("", "unsupported_question")]),
    Refused(
        "a number without a grid",
        {"anyOf": [A1, {"type": "number", "minimum": 0, "maximum": 1}]},
        [("/anyOf/1", "unsupported_question")],
    ),
    Refused("an object", {"anyOf": [A1, {"type": "object"}]}, [("/anyOf/1", "unsupported_question")]),
    Refused(
        "a free string beside options", {"anyOf": [AB, {"type": "string"}]}, [("/anyOf/1", "unsupported_question")]
    ),
    Refused("free strings or null", {"type": ["string", "null"]}, [("", "unsupported_question")]),
    Refused("a type twice", {"type": ["boolean", "boolean"]}, [("", "unsupported_question")]),
    Refused("a type that is none", {"type": ["boolean", 5]}, [("", "unsupported_question")]),
    Refused("too many types", {"type": ["boolean", *["null"] * 7]}, [("", "unsupported_question")]),
    Refused("no alternative", {"anyOf": []}, [("/anyOf", "bad_list")]),
    Refused("alternatives in an object", {"oneOf": {"a": A1}}, [("/oneOf", "bad_list")]),
    Refused("too many alternatives", {"oneOf": [{"const": i} for i in range(17)]}, [("/oneOf", "bad_list")]),
    Refused("an alternative that is none", {"oneOf": [A1, "b"]}, [("/oneOf/1", "not_a_schema")]),
    Refused("an alternative of anything", {"oneOf": [A1, {}]}, [("/oneOf/1", "unsupported_question")]),
    Refused("both lists", {"oneOf": [A1, B1], "anyOf": [A1, B1]}, [("/anyOf", "unsupported_keyword")]),
    Refused("a list and an enum", {"oneOf": [A1, B1], **AB}, [("/enum", "unsupported_keyword")]),
    Refused("a const and an enum", {**A1, **AB}, [("/enum", "unsupported_keyword")]),
    Refused(
        "a list with bounds",
        {"oneOf": [{"const": 1}, {"const": 2}], "minimum": 2},
        [("/minimum", "unsupported_keyword")],
    ),
    Refused("an enum with bounds", {"enum": [1, 2], "maximum": 1}, [("/maximum", "unsupported_keyword")]),
    Refused("booleans with bounds", {"type": ["boolean", "null"], "minimum": 1}, [("/minimum", "unsupported_keyword")]),
    Refused(
        "a type on a list in a list",
        {"anyOf": [{"type": "string", "oneOf": [A1, B1]}, NULL]},
        [("/anyOf/0/type", "unsupported_keyword")],
    ),
    Refused("an empty enum", {"enum": []}, [("/enum", "bad_options")]),
    Refused("an enum that is none", {"enum": "ab"}, [("/enum", "bad_options")]),
    Refused("an enum that is an object", {"enum": {"a": 1, "b": 2}}, [("/enum", "bad_options")]),
    Refused("one option", {"enum": ["a"]}, [("", "bad_options")]),
    Refused("one alternative", {"anyOf": [A1]}, [("", "bad_options")]),
    Refused("too many options", {"enum": list(range(17))}, [("/enum", "bad_options")]),
    Refused("too many options together", {"anyOf": [{"enum": list(range(16))}, A1]}, [("", "bad_options")]),
    Refused("structures", {"enum": [[], "a", {}]}, [("/enum/0", "bad_option"), ("/enum/2", "bad_option")]),
    Refused("a constant that nests", {"oneOf": [A1, {"const": ["b"]}]}, [("/oneOf/1/const", "bad_option")]),
    Refused("an integer of any length", {"enum": [1, 10**5000]}, [("/enum/1", "bad_option")]),
    Refused(
        "no number", {"enum": [1, float("nan"), float("inf")]}, [("/enum/1", "bad_option"), ("/enum/2", "bad_option")]
    ),
    Refused("a string twice", {"enum": ["a", "b", "a"]}, [("", "duplicate_option")]),
    Refused("a number twice", {"enum": [1, 1.0]}, [("", "duplicate_option")]),
    Refused("options of the same key", {"enum": ["1", 1]}, [("", "duplicate_option")]),
    Refused("options that look the same", {"enum": ["a b", " a  b"]}, [("", "duplicate_option")]),
    Refused("yes and true", {"enum": ["yes", True]}, [("", "duplicate_option")]),
    Refused("titles that are the same", {"oneOf": TWINS}, [("", "duplicate_option")]),
    Refused("a number and its text", {"oneOf": NAMESAKES}, [("", "duplicate_option")]),
    Refused("an option of two alternatives", {"oneOf": [AB, {"enum": ["b", "c"]}]}, [("", "duplicate_option")]),
    Refused("null twice", {"anyOf": [{"type": ["boolean", "null"]}, NULL]}, [("", "duplicate_option")]),
    Refused("an option of another type", {"type": "string", "enum": ["a", 1]}, [("", "option_of_other_type")]),
    Refused(
        "a constant of another type",
        {"oneOf": [{"type": "string", "const": 1}, B1]},
        [("/oneOf/0", "option_of_other_type")],
    ),
    Refused("an alternative of another type", {"type": "string", "oneOf": [A1, NULL]}, [("", "option_of_other_type")]),
    Refused("true is no integer", {"type": "integer", "enum": [0, True]}, [("", "option_of_other_type")]),
    Refused("true is no number", {"type": "number", "enum": [0, True]}, [("", "option_of_other_type")]),
    Refused("one is no boolean", {"type": "boolean", "enum": [False, 1]}, [("", "option_of_other_type")]),
    Refused("a half is no integer", {"type": "integer", "enum": [0, 0.5]}, [("", "option_of_other_type")]),
    Refused("null of no type", {"type": ["string"], "enum": ["a", None]}, [("", "option_of_other_type")]),
    Refused("an unknown type", {"type": "text", **AB}, [("/type", "bad_type")]),
    Refused("a type that is an object", {"type": {"a": 1}, **AB}, [("/type", "bad_type")]),
    Refused("a list of no type", {"type": [], **AB}, [("/type", "bad_type")]),
    Refused("a list with an unknown type", {"type": ["string", []], **AB}, [("/type", "bad_type")]),
    Refused("strings in an array", {"type": "array", "anyOf": [A1, B1]}, [("/type", "bad_type")]),
    Refused("a title that is none", {"oneOf": [{**A1, "title": 1}, B1]}, [("/oneOf/0/title", "bad_text")]),
    Refused(
        "a description that is none",
        {"oneOf": [A1, {**NULL, "description": []}]},
        [("/oneOf/1/description", "bad_text")],
    ),
    Refused("a text too long", {"oneOf": [{**A1, "title": "t" * 401}, B1]}, [("/oneOf/0/title", "text_too_long")]),
    Refused("an option too long", {"enum": ["a", "b" * 401]}, [("", "text_too_long")]),
    Refused(
        "texts too long together",
        {"oneOf": [{**A1, "title": "t" * 200, "description": "d" * 199}, B1]},
        [("", "text_too_long")],
    ),
    Refused(
        "too few levels", {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1}, A1]}, [("/anyOf/0", "bad_levels")]
    ),
    Refused(
        "a description of no option",
        {"anyOf": [A1, B1], "x-option-descriptions": {"c": "C"}},
        [("/x-option-descriptions", "bad_descriptions")],
    ),
    Refused(
        "everything at once",
        {"anyOf": [{"enum": ["x", []], "title": 1, "pattern": "("}, {"type": "integer"}, {"const": {}}]},
        [
            ("/anyOf/0/pattern", "unsupported_keyword"),
            ("/anyOf/0/enum/1", "bad_option"),
            ("/anyOf/0/title", "bad_text"),
            ("/anyOf/1", "bad_bound"),
            ("/anyOf/2/const", "bad_option"),
        ],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_lists_no_options(case: Refused) -> None:
    """Everything wrong is complained about, in its place."""
    site, reader = opened(case.schema)
    options_of(site, reader)
    assert list(dict.fromkeys(complaints_of(reader))) == case.complaints


def test_one_option_where_one_is_enough() -> None:
    """For constants and selections; none at all is never enough."""
    site, reader = opened({"enum": ["a"]})
    assert (shown(options_of(site, reader, least=1)), complaints_of(reader)) == (as_they_are("a"), [])
    site, reader = opened({"enum": []})
    options_of(site, reader, least=1)
    assert complaints_of(reader) == [("/enum", "bad_options")]


def test_options_of_a_slot_are_as_many_as_there_are_labels() -> None:
    """Where they share none, as those of a selection do not, that is no bound."""
    limits = replace(LIMITS, max_labels=2)
    for count, complaints in ((2, []), (3, [("", "bad_options")])):
        site, reader = opened({"enum": list(range(count))}, limits)
        options_of(site, reader)
        assert complaints_of(reader) == complaints
    site, reader = opened({"enum": [1, 2, 3]}, limits)
    assert (len(options_of(site, reader, share_a_slot=False)), complaints_of(reader)) == (3, [])
    selection: dict[str, Any] = {"type": "array", "items": {"enum": [1, 2, 3]}}
    assert problems_of(question(**selection), limits) == []
    assert problems_of(question(**selection["items"]), limits) == [("/rubric/properties/a", "bad_options")]


def test_the_longest_option() -> None:
    """A limit is what is still allowed."""
    limits = replace(LIMITS, max_text_chars=20, max_options=2)
    site, reader = opened({"oneOf": [{"const": 1, "title": "t" * 18 + "u"}, {"const": 2, "title": "v" * 20}]}, limits)
    assert [len(option.text) for option in options_of(site, reader)] == [19, 20]
    assert complaints_of(reader) == []


def test_texts_of_several_options_are_remarked_on() -> None:
    """There is nothing they could stand beside; those of one option are shown with it."""
    one = {"enum": ["c"], "title": "C"}
    site, reader = opened(
        {"anyOf": [{**AB, "title": "A", "description": "d"}, one, {**NULL, "title": "N"}], "title": "T"}
    )
    options_of(site, reader)
    assert [(problem.pointer, problem.code) for problem in reader.remarks] == [
        ("/rubric/anyOf/0/title", "text_not_shown"),
        ("/rubric/anyOf/0/description", "text_not_shown"),
    ]


@dataclass(frozen=True)
class Mistake:
    id: str
    schema: Schema
    said: str


MISTAKES = (
    Mistake("free text", {"type": "string"}, "free text"),
    Mistake("free text or null", {"type": ["string", "null"]}, "free text"),
    Mistake("objects", {"anyOf": [A1, {"type": "object", "properties": {}}]}, "objects and arrays"),
    Mistake("arrays", {"anyOf": [A1, {"type": "array", "items": AB}]}, "objects and arrays"),
    Mistake("a number", {"anyOf": [A1, {"type": "number", "minimum": 0, "maximum": 1}]}, "multipleOf"),
    Mistake("nothing", {}, "must say what it may be"),
    Mistake("an unknown type", {"type": "text"}, "no type that can be asked"),
    Mistake("twins", {"enum": ["a", 1, "b", "1"]}, "options 2 and 4"),
    Mistake("twins by value", {"enum": [1, "x", 1.0]}, "options 1 and 3"),
    Mistake("too few", {"enum": ["a"]}, "has 1 options, and may have 2 to 16"),
)


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_what_to_do_is_said(case: Mistake) -> None:
    """The message is about this mistake, and none other."""
    site, reader = opened(case.schema)
    options_of(site, reader)
    (problem,) = reader.problems
    assert case.said in problem.message


def test_too_few_labels_are_told_from_too_many_options() -> None:
    """What a tokenizer lacks, an array can do without."""
    said = []
    for limits in (replace(LIMITS, max_labels=2), replace(LIMITS, max_options=2)):
        site, reader = opened({"anyOf": [A1, B1, NULL]} if limits.max_labels == 2 else {"anyOf": [AB, NULL]}, limits)
        options_of(site, reader)
        said.append("labels" in reader.problems[0].message)
    assert said == [True, False]


@dataclass(frozen=True)
class Types:
    id: str
    type: Any
    declared: tuple[str, ...]


TYPES = (
    Types("a type", "string", ("string",)),
    Types("types", ["string", "null"], ("string", "null")),
    Types("one in a list", ["string"], ("string",)),
    Types("none", [], ()),
    Types("an unknown one", "text", ("text",)),
    Types("null", None, ()),
    Types("a number", 1, ()),
    Types("a list with a number", ["string", 1], ()),
    Types("a list in a list", [["string"]], ()),
    Types("an object", {"string": 1}, ()),
    Types("every type there is", ["a"] * 7, ("a",) * 7),
    Types("more types than there are", ["a"] * 8, ()),
)


@pytest.mark.parametrize("case", TYPES, ids=lambda case: case.id)
def test_declared_types(case: Types) -> None:
    """What `type` says as a tuple; a list that says anything else says nothing."""
    site, _ = opened({"type": case.type})
    assert declared_types(site) == case.declared
    assert declared_types(opened({})[0]) == ()


def test_descriptions_keep_what_an_option_says_of_itself() -> None:
    """They come behind it; options without one stay as they are."""
    site, reader = opened({"x-option-descriptions": {"a": "A"}})
    options = described([make_option("a", "T", "d"), make_option("b", "U")], site, reader)
    assert [option.text for option in options] == ["T: d: A", "U"]
    site, reader = opened({})
    assert described(options, site, reader) == options
    assert complaints_of(reader) == []
