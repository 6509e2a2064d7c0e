"""One property: what is asked, and with which words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.canvas.field import Constant
from app.canvas.property import is_constant, parse_constant, parse_question, text_of, within
from tests.app.canvas.rubrics import (
    LIMITS,
    YES_NO,
    Schema,
    complaints_of,
    opened,
    problems_of,
    question,
    questions_of,
    rubric,
)

A = "/rubric/properties/a"
AB: Schema = {"enum": ["a", "b"]}


@dataclass(frozen=True)
class Text:
    id: str
    schema: Schema
    text: str
    own_text: str | None = None


TEXTS = (
    Text("nothing", YES_NO, "Yes or no?", own_text=""),
    Text("a title", {**YES_NO, "title": "Urgent"}, "Urgent"),
    Text("a title and a description", {**YES_NO, "title": "Pain.", "description": "1 is mild."}, "Pain. 1 is mild"),
    Text("a question and a description", {**YES_NO, "title": "Urgent?", "description": "now."}, "Urgent? now"),
    Text("a description on several lines", {**YES_NO, "description": " a\n\n- B = b\n"}, "a - B = b"),
    Text("texts of nothing", {**YES_NO, "title": "", "description": " \n"}, "Yes or no?", own_text=""),
    Text("examples", {**AB, "title": "T", "examples": ["x", 1, True]}, "T. For example: x; 1; true"),
    Text("examples of nothing asked", {**AB, "examples": ["x y"]}, "Which one fits? For example: x y", own_text=""),
    Text("examples on one line", {**AB, "title": "T", "examples": ["a\nb"]}, "T. For example: a b"),
    Text(
        "examples that are structures or nothing",
        {**AB, "title": "T", "examples": [[], None, "", " ", "x"]},
        "T. For example: x",
    ),
    Text("no example", {**AB, "title": "T", "examples": [None]}, "T"),
    Text("examples that are none", {**AB, "title": "T", "examples": "x"}, "T"),
    Text("the first examples", {**AB, "title": "T", "examples": list(range(9))}, "T. For example: 0; 1; 2; 3; 4"),
    Text("examples that are options", {**YES_NO, "title": "T", "examples": [True, 0]}, "T. For example: yes; 0"),
    Text(
        "examples that are explained options",
        {"oneOf": [{"const": 1, "title": "one", "description": "d"}, {"const": 2}], "title": "T", "examples": [1.0]},
        "T. For example: one",
    ),
    Text("a default", {**AB, "title": "T", "default": "b"}, "T. If it is not stated: b"),
    Text(
        "a default that is explained",
        {"oneOf": [{"const": 1, "title": "one"}, {"const": 2}], "title": "T", "default": 1.0},
        "T. If it is not stated: one",
    ),
    Text("a default that is no option", {**AB, "title": "T", "default": "z"}, "T"),
    Text(
        "null by default", {"enum": ["a", None], "title": "T", "default": None}, "T. If it is not stated: none of these"
    ),
    Text("null by default, which is no option", {**AB, "title": "T", "default": None}, "T"),
    Text("a default that nests", {**AB, "title": "T", "default": ["a"]}, "T"),
    Text(
        "everything",
        {**AB, "title": "T?", "description": "d.", "examples": ["x."], "default": "a"},
        "T? d. For example: x. If it is not stated: a",
    ),
)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.id)
def test_what_is_asked_in_words(case: Text) -> None:
    """Title, description, examples and default as sentences; where nothing is said, the kind's own question."""
    site, reader = opened(case.schema)
    asked = parse_question(site, site, reader, ("a",), "")
    own_text = re.split(r"\. (?:For|If) ", case.text)[0] if case.own_text is None else case.own_text
    assert (asked.text, asked.own_text, complaints_of(reader)) == (case.text, own_text, [])


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    problems: list[tuple[str, str]]


REFUSED = (
    Refused("a title that is none", {**YES_NO, "title": 1}, [(f"{A}/title", "bad_text")]),
    Refused("a description that is none", {**YES_NO, "description": None}, [(f"{A}/description", "bad_text")]),
    Refused("a title too long", {**YES_NO, "title": "t" * 401}, [(f"{A}/title", "text_too_long")]),
    Refused(
        "texts too long together", {**YES_NO, "title": "t" * 200, "description": "d" * 199}, [(A, "text_too_long")]
    ),
    Refused("an example too long", {**AB, "examples": ["x", "e" * 401]}, [(f"{A}/examples/1", "text_too_long")]),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_cannot_be_asked(case: Refused) -> None:
    """Annotations have to be what the model can be shown."""
    assert problems_of(question(**case.schema)) == case.problems


def test_the_longest_texts() -> None:
    """A limit is what is still allowed."""
    site, reader = opened({"title": "t" * 9, "description": "d" * 9}, replace(LIMITS, max_text_chars=20))
    assert (text_of(site, reader), complaints_of(reader)) == ("t" * 9 + ". " + "d" * 9, [])
    site, reader = opened({"title": "t" * 9, "description": "d" * 10}, replace(LIMITS, max_text_chars=20))
    text_of(site, reader)
    assert complaints_of(reader) == [("", "text_too_long")]


TOGETHER = (
    ({"title": "t" * 10}, 10),
    ({"examples": ["e" * 10]}, len("For example: ") + 10),
    ({"enum": ["a", "b" * 9]}, 10),
    ({"x-option-descriptions": {"a": "d" * 10}}, 10),
    ({"default": "a"}, len("If it is not stated: a")),
)


@pytest.mark.parametrize(("more", "chars"), TOGETHER, ids=str)
def test_everything_shown_is_counted(more: Schema, chars: int) -> None:
    """S11: names included, for decisions hold them."""
    schema = question(**{"enum": ["a", "b"], "title": "x", **more})
    least = sum(map(len, ("a", "a", "b", "x"))) + chars
    least -= {"title": 1, "enum": 2}.get(next(iter(more)), 0)
    assert problems_of(schema, replace(LIMITS, max_chars=least)) == []
    codes = [code for _, code in problems_of(schema, replace(LIMITS, max_chars=least - 1))]
    assert codes == ["too_much_text"]


def test_the_text_of_a_group_counts_with_each_question() -> None:
    """It is shown ahead of each."""
    inner: Schema = {"b": {**YES_NO, "title": "y"}, "c": {**YES_NO, "title": "z"}}
    schema = rubric({"a": {"type": "object", "title": "group", "properties": inner}})
    chars = len("agroupbgroupycgroupz")
    assert problems_of(schema, replace(LIMITS, max_chars=chars)) == []
    assert [code for _, code in problems_of(schema, replace(LIMITS, max_chars=chars - 1))] == ["too_much_text"]


def test_a_text_stands_behind_that_of_what_is_around_it() -> None:
    """If there is any."""
    assert (within("Contact", "Urgent?"), within("", "Urgent?"), within("Contact", "")) == (
        "Contact: Urgent?",
        "Urgent?",
        "Contact",
    )
    nested = {"type": "object", "title": "Contact.", "properties": {"b": {**AB, "title": "How?", "default": "a"}}}
    assert questions_of(rubric({"a": nested}))[0][2] == "Contact: How? If it is not stated: a"


@dataclass(frozen=True)
class One:
    id: str
    schema: Schema
    is_constant: bool
    value: Any = None


CONSTANTS = (
    One("const", {"const": "x"}, True, "x"),
    One("null", {"const": None}, True),
    One("false", {"const": False}, True, False),
    One("an enum of one", {"enum": [2.5]}, True, 2.5),
    One("the type of null", {"type": "null"}, True),
    One("a typed const", {"type": "string", "const": "x"}, True, "x"),
    One("a const of one of its types", {"type": ["string", "null"], "const": "x"}, True, "x"),
    One("an enum of two", AB, False),
    One("an empty enum", {"enum": []}, False),
    One("an enum that is none", {"enum": 1}, False),
    One("a boolean", YES_NO, False),
    One("nothing", {}, False),
)


@pytest.mark.parametrize("case", CONSTANTS, ids=lambda case: case.id)
def test_what_is_a_constant(case: One) -> None:
    """A schema that admits one value: nothing is asked, the decision holds it."""
    site, reader = opened(case.schema)
    assert is_constant(site) is case.is_constant
    if case.is_constant:
        assert (parse_constant(site, reader), complaints_of(reader)) == (Constant(value=case.value), [])


BAD_CONSTANTS = (
    Refused("a list", {"const": [1]}, [("/const", "bad_option")]),
    Refused("an enum of a structure", {"enum": [{}]}, [("/enum/0", "bad_option")]),
    Refused("of another type", {"type": "integer", "const": "x"}, [("", "option_of_other_type")]),
    Refused("with what could not hold", {"const": "x", "minLength": 2}, [("/minLength", "unsupported_keyword")]),
    Refused("null with what could not hold", {"type": "null", "not": {}}, [("/not", "unsupported_keyword")]),
    Refused("too long", {"const": "x" * 401}, [("", "text_too_long")]),
)


@pytest.mark.parametrize("case", BAD_CONSTANTS, ids=lambda case: case.id)
def test_what_is_no_constant(case: Refused) -> None:
    """It is held to the same rules as an option."""
    site, reader = opened(case.schema)
    assert is_constant(site)
    parse_constant(site, reader)
    assert complaints_of(reader) == case.problems
