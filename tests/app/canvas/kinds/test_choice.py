"""One of several values."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.canvas.kinds import KINDS
from app.canvas.kinds.choice import Choice
from tests.app.canvas.rubrics import (
    SHOWN_NULL,
    SHOWN_YES_NO,
    YES_NO,
    Schema,
    ShownOption,
    as_they_are,
    complaints_of,
    opened,
    question,
    questions_of,
    shown,
)

AB: Schema = {"enum": ["a", "b"]}


@dataclass(frozen=True)
class Claim:
    id: str
    schema: Schema
    kind: str


KIND_OF = (
    Claim("boolean", YES_NO, "Boolean"),
    Claim("enum", AB, "Choice"),
    Claim("enum of a type", {"type": "integer", "enum": [1, 2]}, "Choice"),
    Claim("enum of booleans", {"type": "boolean", "enum": [True, False]}, "Choice"),
    Claim("oneOf", {"oneOf": []}, "Choice"),
    Claim("oneOf of numbers", {"type": "number", "oneOf": []}, "Choice"),
    Claim("anyOf of integers", {"type": "integer", "anyOf": []}, "Choice"),
    Claim("const", {"type": "number", "const": 1}, "Choice"),
    Claim("several types", {"type": ["boolean", "null"]}, "Choice"),
    Claim("free string", {"type": "string"}, "Choice"),
    Claim("nothing", {}, "Choice"),
    Claim("integer", {"type": "integer"}, "Score"),
    Claim("grid", {"type": "number", "multipleOf": 1}, "Score"),
    Claim("number", {"type": "number"}, "Probability"),
    Claim("array", {"type": "array"}, "Selection"),
    Claim("array of an enum", {"type": "array", "enum": []}, "Selection"),
)


@pytest.mark.parametrize("case", KIND_OF, ids=lambda case: case.id)
def test_a_schema_has_one_kind(case: Claim) -> None:
    """The first kind that claims it; whatever no other claims is a choice, and refused there if it is none."""
    site, _ = opened(case.schema)
    claiming = [kind.__name__ for kind in KINDS if kind.claims(site)]
    assert claiming == [*([] if case.kind == "Choice" else [case.kind]), "Choice"]


@dataclass(frozen=True)
class Asked:
    id: str
    schema: Schema
    options: list[ShownOption]


ASKED = (
    Asked("enum", AB, as_they_are("a", "b")),
    Asked(
        "enum of several types", {"enum": ["b", 1, None, 2.5]}, [*as_they_are("b", 1), SHOWN_NULL, (2.5, "2.5", "2.5")]
    ),
    Asked("enum of booleans", {"type": "boolean", "enum": [False, True]}, SHOWN_YES_NO[::-1]),
    Asked(
        "explained",
        {"oneOf": [{"const": 1, "title": "calm", "description": "no\nworry"}, {"const": "x"}]},
        [(1, "1", "calm: no worry"), ("x", "x", "x")],
    ),
)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_a_choice_is_asked(case: Asked) -> None:
    """Options in the rubric's order."""
    assert questions_of(question(**case.schema)) == [("a", "choice", "Which one fits?", case.options)]
    assert questions_of(question(**case.schema, title="T.")) == [("a", "choice", "T", case.options)]


def test_the_likeliest_is_the_value() -> None:
    """The first of equals, with its own type."""
    site, reader = opened({"enum": ["x", 1, None]})
    asked = Choice.parse(site, reader, ("a",), "T")
    assert complaints_of(reader) == []
    assert shown(asked.options) == [*as_they_are("x", 1), SHOWN_NULL]
    assert [asked.answer([d]).value for d in ((0.5, 0.3, 0.2), (0.2, 0.4, 0.4), (0.1, 0.1, 0.8))] == ["x", 1, None]
