"""Yes or no, and whether an object is there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.canvas.kinds.boolean import Boolean, Presence
from app.canvas.option import NO, YES
from tests.app.canvas.rubrics import (
    SHOWN_YES_NO,
    YES_NO,
    Schema,
    ShownOption,
    complaints_of,
    opened,
    problems_of,
    question,
    questions_of,
    shown,
)

A = "/rubric/properties/a"


@dataclass(frozen=True)
class Claim:
    id: str
    schema: Schema
    is_claimed: bool


CLAIMS = (
    Claim("boolean", YES_NO, True),
    Claim("boolean with annotations", {**YES_NO, "title": "T", "default": 1, "format": "x"}, True),
    Claim("boolean of a list", {**YES_NO, "enum": [True]}, False),
    Claim("boolean constant", {**YES_NO, "const": True}, False),
    Claim("boolean alternatives", {**YES_NO, "oneOf": []}, False),
    Claim("other boolean alternatives", {**YES_NO, "anyOf": []}, False),
    Claim("boolean or null", {"type": ["boolean", "null"]}, False),
    Claim("integer", {"type": "integer"}, False),
    Claim("nothing", {}, False),
)


@pytest.mark.parametrize("case", CLAIMS, ids=lambda case: case.id)
def test_what_is_yes_or_no(case: Claim) -> None:
    """A boolean that nothing else is said of."""
    site, _ = opened(case.schema)
    assert Boolean.claims(site) is case.is_claimed


@dataclass(frozen=True)
class Asked:
    id: str
    schema: Schema
    text: str
    options: list[ShownOption]


ASKED = (
    Asked("nothing said", question(**YES_NO), "Yes or no?", SHOWN_YES_NO),
    Asked("a list of one type", question(type=["boolean"]), "Yes or no?", SHOWN_YES_NO),
    Asked("a title", question(**YES_NO, title="Is it\nurgent?"), "Is it urgent?", SHOWN_YES_NO),
    Asked(
        "described options",
        question(**YES_NO, **{"x-option-descriptions": {"false": "it\ncan wait"}}),
        "Yes or no?",
        [(True, "true", "yes"), (False, "false", "no: it can wait")],
    ),
    Asked("a default", question(**YES_NO, default=False), "Yes or no? If it is not stated: no", SHOWN_YES_NO),
    Asked("a default of another type", question(**YES_NO, default=0), "Yes or no?", SHOWN_YES_NO),
)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_a_boolean_is_asked(case: Asked) -> None:
    """Yes first, whatever else is said."""
    assert questions_of(case.schema) == [("a", "boolean", case.text, case.options)]


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Schema
    problems: list[tuple[str, str]]


REFUSED = (
    Refused(
        "a keyword of other types", {**YES_NO, "minimum": 0, "format": "x"}, [(f"{A}/minimum", "unsupported_keyword")]
    ),
    Refused(
        "descriptions that are none",
        {**YES_NO, "x-option-descriptions": ["yes"]},
        [(f"{A}/x-option-descriptions", "bad_descriptions")],
    ),
    Refused(
        "a description that is none",
        {**YES_NO, "x-option-descriptions": {"true": "y", "false": 0}},
        [(f"{A}/x-option-descriptions/false", "bad_descriptions")],
    ),
    Refused(
        "a description of another option",
        {**YES_NO, "x-option-descriptions": {"yes": "y"}},
        [(f"{A}/x-option-descriptions", "bad_descriptions")],
    ),
    Refused(
        "a description too long",
        {**YES_NO, "x-option-descriptions": {"true": "y" * 401}},
        [(f"{A}/x-option-descriptions/true", "text_too_long")],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_a_boolean_may_not_be(case: Refused) -> None:
    """Everything in its place."""
    assert problems_of(question(**case.schema)) == case.problems


def test_the_likelier_is_the_value() -> None:
    """Yes of equals."""
    site, reader = opened(YES_NO)
    asked = Boolean.parse(site, reader, ("a",), "T")
    assert complaints_of(reader) == []
    assert (asked.path, asked.text, shown(asked.options), asked.lines) == (("a",), "T", SHOWN_YES_NO, 1)
    assert [asked.answer([(yes, 1 - yes)]).value for yes in (0.75, 0.5, 0.25)] == [True, True, False]
    assert [asked.decided(value) for value in (True, False)] == [True, False]


def test_presence_decides_an_object_or_null() -> None:
    """The answer is yes or no; the decision holds an object still to be filled, a new one each time, or null."""
    asked = Presence(path=("a",), text="T", options=(YES, NO))
    first, second = asked.decided(True), asked.decided(True)
    assert (first, asked.decided(False)) == ({}, None)
    assert first is not second
    assert asked.answer([(0.25, 0.75)]).value is False
    assert asked.kind.value == "boolean"
