"""The kinds of question, one schema at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from app.canvas.json import Json
from app.canvas.kinds import KINDS, QuestionKind, is_scalar, make_option
from app.canvas.question import Kind, Option

Schema = dict[str, Any]
Complaint = tuple[tuple[str | int, ...], str]


@dataclass
class Complained:
    """Collects complaints: path and code."""

    complaints: list[Complaint] = field(default_factory=list)

    def __call__(self, path: tuple[str | int, ...], code: str, message: str) -> None:
        assert message
        self.complaints.append((path, code))


def kind_of(schema: Schema) -> QuestionKind | None:
    """The kind that gets a property."""
    return next((kind for kind in KINDS if kind.claims(schema)), None)


@dataclass(frozen=True)
class ClaimCase:
    id: str
    schema: Schema
    kind: str | None


CLAIMS = (
    ClaimCase("boolean", {"type": "boolean"}, "BooleanKind"),
    ClaimCase("enum", {"enum": ["a", "b"]}, "EnumKind"),
    ClaimCase("enum of a type", {"type": "integer", "enum": [1, 2]}, "EnumKind"),
    ClaimCase("enum of booleans", {"type": "boolean", "enum": [True, False]}, "EnumKind"),
    ClaimCase("oneOf", {"oneOf": []}, "OneOfKind"),
    ClaimCase("oneOf of booleans", {"type": "boolean", "oneOf": []}, "OneOfKind"),
    ClaimCase("oneOf before enum", {"enum": [], "oneOf": []}, "OneOfKind"),
    ClaimCase("integer", {"type": "integer"}, "ScoreKind"),
    ClaimCase("free string", {"type": "string"}, None),
    ClaimCase("number", {"type": "number", "minimum": 0, "maximum": 1}, None),
    ClaimCase("array", {"type": "array", "items": {"enum": ["a", "b"]}}, None),
    ClaimCase("object", {"type": "object", "properties": {}}, None),
    ClaimCase("anyOf", {"anyOf": [{"const": 1}, {"const": 2}]}, None),
    ClaimCase("const", {"const": 1}, None),
    ClaimCase("list of types", {"type": ["boolean"]}, None),
    ClaimCase("nothing", {}, None),
)


@pytest.mark.parametrize("case", CLAIMS, ids=lambda case: case.id)
def test_a_schema_has_one_kind(case: ClaimCase) -> None:
    """The kind a property gets, and none outside this version's subset."""
    kind = kind_of(case.schema)
    assert (type(kind).__name__ if kind else None) == case.kind


@dataclass(frozen=True)
class OptionsCase:
    id: str
    schema: Schema
    kind: Kind
    shown: dict[str, str]


OPTIONS = (
    OptionsCase("boolean", {"type": "boolean"}, Kind.BOOLEAN, {"true": "yes", "false": "no"}),
    OptionsCase("enum", {"enum": ["b", 1, None]}, Kind.CHOICE, {"b": "b", "1": "1", "null": "none of these"}),
    OptionsCase(
        "oneOf",
        {"oneOf": [{"const": 1, "title": "calm", "description": "no\nworry"}, {"const": "x"}]},
        Kind.CHOICE,
        {"1": "calm: no worry", "x": "x"},
    ),
    OptionsCase(
        "score", {"type": "integer", "minimum": -1, "maximum": 1}, Kind.SCORE, {"-1": "-1", "0": "0", "1": "1"}
    ),
)


@pytest.mark.parametrize("case", OPTIONS, ids=lambda case: case.id)
def test_options_in_the_rubrics_order(case: OptionsCase) -> None:
    """Key in `probabilities` and text in the prompt, in order, without a complaint."""
    kind, complained = kind_of(case.schema), Complained()
    assert kind is not None
    options = kind.options(case.schema, 26, complained)
    assert (kind.kind, [(option.key, option.text) for option in options]) == (case.kind, list(case.shown.items()))
    assert complained.complaints == []
    assert case.schema.keys() <= kind.keywords


@dataclass(frozen=True)
class ComplaintCase:
    id: str
    schema: Schema
    complaints: list[Complaint]


COMPLAINTS = (
    ComplaintCase("enum not an array", {"enum": "ab"}, [(("enum",), "bad_options")]),
    ComplaintCase("enum an object", {"enum": {"a": 1, "b": 2}}, [(("enum",), "bad_options")]),
    ComplaintCase("enum of one", {"enum": ["a"]}, [(("enum",), "bad_options")]),
    ComplaintCase("enum of too many", {"enum": ["a", "b", "c", "d"]}, [(("enum",), "bad_options")]),
    ComplaintCase(
        "enum of structures", {"enum": [[], "a", {}]}, [(("enum", 0), "bad_option"), (("enum", 2), "bad_option")]
    ),
    ComplaintCase("oneOf not an array", {"oneOf": {"const": 1}}, [(("oneOf",), "bad_options")]),
    ComplaintCase("oneOf of one", {"oneOf": [{"const": 1}]}, [(("oneOf",), "bad_options")]),
    ComplaintCase("oneOf of too many", {"oneOf": [{"const": n} for n in range(4)]}, [(("oneOf",), "bad_options")]),
    ComplaintCase(
        "options without a const",
        {"oneOf": [{"title": "a"}, "b", {"const": []}]},
        [(("oneOf", 0), "bad_option"), (("oneOf", 1), "bad_option"), (("oneOf", 2), "bad_option")],
    ),
    ComplaintCase(
        "an option that is more than a const",
        {"oneOf": [{"const": 1, "$ref": "#"}, {"const": 2}]},
        [(("oneOf", 0, "$ref"), "unsupported_keyword")],
    ),
    ComplaintCase(
        "texts that are none",
        {"oneOf": [{"const": 1, "title": 1, "description": []}, {"const": 2, "title": None}]},
        [
            (("oneOf", 0, "title"), "bad_text"),
            (("oneOf", 0, "description"), "bad_text"),
            (("oneOf", 1, "title"), "bad_text"),
        ],
    ),
    ComplaintCase("score without bounds", {"type": "integer"}, [((), "bad_bound"), ((), "bad_bound")]),
    ComplaintCase(
        "score with a bound of another type",
        {"type": "integer", "minimum": 0.0, "maximum": True},
        [(("minimum",), "bad_bound"), (("maximum",), "bad_bound")],
    ),
    ComplaintCase("one level", {"type": "integer", "minimum": 3, "maximum": 3}, [((), "bad_levels")]),
    ComplaintCase("upside down", {"type": "integer", "minimum": 3, "maximum": 1}, [((), "bad_levels")]),
    ComplaintCase("eleven levels", {"type": "integer", "minimum": 0, "maximum": 10}, [((), "bad_levels")]),
    ComplaintCase("a sea of levels", {"type": "integer", "minimum": -(10**60), "maximum": 0}, [((), "bad_levels")]),
)


@pytest.mark.parametrize("case", COMPLAINTS, ids=lambda case: case.id)
def test_complaints(case: ComplaintCase) -> None:
    """Everything wrong with a property is complained about once, in its place."""
    kind, complained = kind_of(case.schema), Complained()
    assert kind is not None
    kind.options(case.schema, 3, complained)
    assert complained.complaints == case.complaints


@pytest.mark.parametrize("span", [2, 10])
def test_levels_at_the_bounds(span: int) -> None:
    """Two to ten levels are a score."""
    schema: Schema = {"type": "integer", "minimum": 5, "maximum": 4 + span}
    kind, complained = kind_of(schema), Complained()
    assert kind is not None
    assert [option.value for option in kind.options(schema, 3, complained)] == list(range(5, 5 + span))
    assert complained.complaints == []


@dataclass(frozen=True)
class OptionCase:
    id: str
    option: Option
    key: str
    text: str


MADE_OPTIONS = (
    OptionCase("a string", make_option("billing"), "billing", "billing"),
    OptionCase("with a title", make_option("b", title="Billing"), "b", "Billing"),
    OptionCase("with a description", make_option("b", description="money"), "b", "b: money"),
    OptionCase("with both", make_option("b", title="Billing", description="money"), "b", "Billing: money"),
    OptionCase("the empty string", make_option(""), "", '""'),
    OptionCase("white space", make_option(" \n"), " \n", '""'),
    OptionCase("a string of lines", make_option("a\n- B = b"), "a\n- B = b", "a - B = b"),
    OptionCase("null", make_option(None), "null", "none of these"),
    OptionCase("null with a title", make_option(None, title="Neither"), "null", "Neither"),
    OptionCase("a float", make_option(2.5), "2.5", "2.5"),
    OptionCase("true", make_option(True), "true", "true"),
)


@pytest.mark.parametrize("case", MADE_OPTIONS, ids=lambda case: case.id)
def test_an_option_is_shown_on_one_line(case: OptionCase) -> None:
    """The key is the value's text; what is shown is its title or the value, then the description, on one line."""
    assert (case.option.key, case.option.text) == (case.key, case.text)


def test_only_scalars_are_options() -> None:
    """A string, a number, a boolean or null; nothing that nests."""
    scalars: list[Json] = ["", 0, 0.5, True, None]
    structures: list[Json] = [[], {}, ["a"]]
    assert all(is_scalar(value) for value in scalars)
    assert not any(is_scalar(value) for value in structures)
