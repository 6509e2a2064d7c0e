"""Objects of a rubric: nested ones, and properties under conditions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.canvas.condition import make_validator
from app.canvas.field import build_decision
from app.canvas.rubric import compile_rubric
from tests.app.canvas.rubrics import (
    LIMITS,
    SHOWN_YES_NO,
    YES_NO,
    Schema,
    ShownQuestion,
    as_they_are,
    conditional_paths,
    problems_of,
    questions_of,
    rubric,
)

Values = dict[str, Any]

AB: Schema = {"enum": ["a", "b"]}
SEVERAL: Schema = {"type": "array", "items": {"enum": ["p", "q"]}}
LEVELS: Schema = {"type": "integer", "minimum": 0, "maximum": 3}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
A_YES: Schema = {"properties": {"a": {"const": True}}, "required": ["a"]}
B_YES: Schema = {"properties": {"b": {"const": True}}, "required": ["b"]}
NULL: Schema = {"type": "null"}


def group(properties: Schema, **keywords: Any) -> Schema:
    """A nested object."""
    return {"type": "object", "properties": properties, **keywords}


# What is asked of nested objects


@dataclass(frozen=True)
class Asked:
    id: str
    schema: Schema
    questions: list[ShownQuestion]


def yes_no(path: str, text: str = "Yes or no?") -> ShownQuestion:
    """A yes-or-no question."""
    return (path, "boolean", text, SHOWN_YES_NO)


NESTED = (
    Asked(
        "nested",
        rubric({"g": group({"a": YES_NO}), "b": AB}),
        [yes_no("g/a"), ("b", "choice", "Which one fits?", as_they_are("a", "b"))],
    ),
    Asked(
        "names that need escaping",
        rubric({"a/b": group({"~": YES_NO, "": YES_NO})}),
        [yes_no("a~1b/~0"), yes_no("a~1b/")],
    ),
    Asked(
        "titles of groups stand ahead",
        rubric(
            {
                "g": group(
                    {"h": group({"a": YES_NO}, title="Inner?"), "b": {**YES_NO, "title": "B"}},
                    title="Outer",
                    description="d.",
                )
            }
        ),
        [yes_no("g/h/a", "Outer. d: Inner?: Yes or no?"), yes_no("g/b", "Outer. d: B")],
    ),
    Asked("the root's title stands nowhere", rubric({"a": {**YES_NO, "title": "A"}}, title="Root"), [yes_no("a", "A")]),
    Asked(
        "an object that may be null is asked for ahead of its properties",
        rubric({"g": {"anyOf": [group({"a": {**YES_NO, "title": "A"}}, title="G"), NULL]}}),
        [yes_no("g", "G. Is there one?"), yes_no("g/a", "G: A")],
    ),
    Asked(
        "in a group that says more",
        rubric({"o": group({"g": {"anyOf": [group({"a": YES_NO}), NULL]}}, title="O")}),
        [yes_no("o/g", "O. Is there one?"), yes_no("o/g/a", "O: Yes or no?")],
    ),
    Asked(
        "one model used twice",
        rubric(
            {"x": {"$ref": "#/$defs/G", "title": "X"}, "y": {"$ref": "#/$defs/G"}},
            **{"$defs": {"G": group({"a": YES_NO}, title="G")}},
        ),
        [yes_no("x/a", "X: Yes or no?"), yes_no("y/a", "G: Yes or no?")],
    ),
    Asked(
        "an allOf adds to what is there",
        rubric(
            {"a": YES_NO},
            allOf=[{"properties": {"b": YES_NO}}, {"$ref": "#/$defs/P"}],
            **{"$defs": {"P": group({"c": YES_NO})}},
        ),
        [yes_no("a"), yes_no("b"), yes_no("c")],
    ),
    Asked(
        "an allOf alone",
        {"type": "object", "allOf": [group({"a": YES_NO}), {"allOf": [group({"b": YES_NO}), {}]}]},
        [yes_no("a"), yes_no("b")],
    ),
    Asked("an object of one allOf", {"allOf": [rubric({"a": YES_NO})]}, [yes_no("a")]),
    Asked(
        "conditional properties come last",
        rubric(
            {"a": YES_NO},
            **{
                "then": {"properties": {"x": YES_NO}},
                "else": {"properties": {"y": YES_NO}},
                "if": A_YES,
                "dependentSchemas": {"a": {"properties": {"z": YES_NO}}},
                "allOf": [{"properties": {"b": YES_NO}}] * 1 + [{}],
            },
        ),
        [yes_no("a"), yes_no("b"), yes_no("x"), yes_no("y"), yes_no("z")],
    ),
)


@pytest.mark.parametrize("case", NESTED, ids=lambda case: case.id)
def test_what_objects_ask(case: Asked) -> None:
    """Every property that is a question, in order, as a pointer into the decision."""
    assert questions_of(case.schema) == case.questions


# What is decided under conditions


@dataclass(frozen=True)
class Decided:
    """A rubric, what it asks under a condition, and decisions by answers; what is not said gets the first option."""

    id: str
    schema: Schema
    conditional: list[tuple[str, ...]]
    decisions: list[tuple[Values, Any]]


DECIDED = (
    Decided(
        "optional properties are always asked",
        rubric({"a": YES_NO, "b": YES_NO}, required=["a"]),
        [],
        [({}, {"a": True, "b": True})],
    ),
    Decided(
        "constants are not asked",
        rubric({"a": YES_NO, "k": {"const": 3}, "n": NULL}),
        [],
        [({}, {"a": True, "k": 3, "n": None})],
    ),
    Decided(
        "an object that may be null",
        rubric({"g": {"anyOf": [group({"a": YES_NO}, required=["a"]), NULL]}}, required=["g"]),
        [],
        [({}, {"g": {"a": True}}), ({"g": False}, {"g": None})],
    ),
    Decided(
        "then",
        rubric({"a": YES_NO}, **{"if": A_YES, "then": {"properties": {"x": AB}, "required": ["x"]}}),
        [("x",)],
        [({}, {"a": True, "x": "a"}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "else",
        rubric({"a": YES_NO}, **{"if": A_YES, "else": {"properties": {"x": AB}}}),
        [("x",)],
        [({}, {"a": True}), ({"a": False}, {"a": False, "x": "a"})],
    ),
    Decided(
        "then and else",
        rubric({"a": YES_NO}, **{"if": A_YES, "then": {"properties": {"x": AB}}, "else": {"properties": {"y": AB}}}),
        [("x",), ("y",)],
        [({}, {"a": True, "x": "a"}), ({"a": False}, {"a": False, "y": "a"})],
    ),
    Decided(
        "a requirement on a declared property",
        rubric({"a": YES_NO, "x": AB}, required=["a"], **{"if": A_YES, "then": {"required": ["x"]}}),
        [("x",)],
        [({}, {"a": True, "x": "a"}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "a requirement on what is required anyway",
        rubric({"x": AB, "a": YES_NO}, required=["a", "x"], **{"if": A_YES, "then": {"required": ["x"]}}),
        [],
        [({"a": False}, {"a": False, "x": "a"})],
    ),
    Decided(
        "required by either of two",
        rubric(
            {"a": YES_NO, "b": YES_NO, "x": AB},
            allOf=[{"if": A_YES, "then": {"required": ["x"]}}, {"if": B_YES, "then": {"required": ["x"]}}],
        ),
        [("x",)],
        [
            ({}, {"a": True, "b": True, "x": "a"}),
            ({"a": False}, {"a": False, "b": True, "x": "a"}),
            ({"b": False}, {"a": True, "b": False, "x": "a"}),
            ({"a": False, "b": False}, {"a": False, "b": False}),
        ],
    ),
    Decided(
        "a condition within a condition",
        rubric(
            {"a": YES_NO, "b": YES_NO},
            **{
                "if": A_YES,
                "then": {
                    "properties": {"x": YES_NO},
                    "if": B_YES,
                    "then": {"properties": {"y": AB}},
                    "else": {"required": ["x"]},
                },
            },
        ),
        [("x",), ("y",)],
        [
            ({}, {"a": True, "b": True, "x": True, "y": "a"}),
            ({"b": False}, {"a": True, "b": False, "x": True}),
            ({"a": False}, {"a": False, "b": True}),
        ],
    ),
    Decided(
        "a condition on a conditional property",
        rubric(
            {"a": YES_NO},
            allOf=[
                {"if": A_YES, "then": {"properties": {"b": YES_NO}}},
                {"if": B_YES, "then": {"properties": {"x": AB}}},
            ],
        ),
        [("b",), ("x",)],
        [({}, {"a": True, "b": True, "x": "a"}), ({"b": False}, {"a": True, "b": False}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "dependentRequired",
        rubric(
            {"a": YES_NO},
            allOf=[{"if": A_YES, "then": {"properties": {"b": YES_NO}}}, {"properties": {"x": AB}}],
            dependentRequired={"b": ["x"]},
        ),
        [("b",), ("x",)],
        [({}, {"a": True, "b": True, "x": "a"}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "dependentSchemas",
        rubric(
            {"a": YES_NO},
            **{"if": A_YES, "then": {"properties": {"b": YES_NO}}},
            dependentSchemas={"b": {"properties": {"x": AB}, "required": ["x"]}},
        ),
        [("b",), ("x",)],
        [({}, {"a": True, "b": True, "x": "a"}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "what a selection contains",
        rubric(
            {"s": SEVERAL, "x": AB},
            **{"if": {"properties": {"s": {"contains": {"const": "q"}}}}, "then": {"required": ["x"]}},
        ),
        [("x",)],
        [({"s": ["p", "q"]}, {"s": ["p", "q"], "x": "a"}), ({"s": ["p"]}, {"s": ["p"]}), ({"s": []}, {"s": []})],
    ),
    Decided(
        "how many a selection holds",
        rubric({"s": SEVERAL, "x": AB}, **{"if": {"properties": {"s": {"minItems": 2}}}, "then": {"required": ["x"]}}),
        [("x",)],
        [({"s": ["p", "q"]}, {"s": ["p", "q"], "x": "a"}), ({"s": ["p"]}, {"s": ["p"]})],
    ),
    Decided(
        "the level of a score",
        rubric({"s": LEVELS, "x": AB}, **{"if": {"properties": {"s": {"minimum": 2}}}, "then": {"required": ["x"]}}),
        [("x",)],
        [({"s": 2}, {"s": 2, "x": "a"}), ({"s": 1}, {"s": 1})],
    ),
    Decided(
        "a probability",
        rubric(
            {"p": SHARE, "x": AB},
            **{"if": {"properties": {"p": {"exclusiveMinimum": 0.5}}}, "then": {"required": ["x"]}},
        ),
        [("x",)],
        [({"p": 0.5}, {"p": 0.5}), ({"p": 0.51}, {"p": 0.51, "x": "a"})],
    ),
    Decided(
        "a nested answer",
        rubric(
            {"g": group({"a": YES_NO}), "x": AB}, **{"if": {"properties": {"g": A_YES}}, "then": {"required": ["x"]}}
        ),
        [("x",)],
        [({}, {"g": {"a": True}, "x": "a"}), ({"g/a": False}, {"g": {"a": False}})],
    ),
    Decided(
        "whether an object is there",
        rubric(
            {"g": {"anyOf": [group({"a": YES_NO}), NULL]}, "x": AB},
            **{"if": {"properties": {"g": NULL}}, "then": {"required": ["x"]}},
        ),
        [("x",)],
        [({}, {"g": {"a": True}}), ({"g": False}, {"g": None, "x": "a"})],
    ),
    Decided(
        "in a nested object",
        rubric({"a": YES_NO, "g": group({"a": YES_NO, "x": AB}, **{"if": A_YES, "then": {"required": ["x"]}})}),
        [("g", "x")],
        [({"a": False}, {"a": False, "g": {"a": True, "x": "a"}}), ({"g/a": False}, {"a": True, "g": {"a": False}})],
    ),
    Decided(
        "a whole object",
        rubric(
            {"a": YES_NO},
            **{"if": A_YES, "then": {"properties": {"g": group({"b": YES_NO}, required=["b"])}, "required": ["g"]}},
        ),
        [("g",)],
        [({}, {"a": True, "g": {"b": True}}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "an object that may be null",
        rubric(
            {"a": YES_NO},
            **{"if": A_YES, "then": {"properties": {"g": {"anyOf": [group({"b": YES_NO}), NULL]}}, "required": ["g"]}},
        ),
        [("g",)],
        [({}, {"a": True, "g": {"b": True}}), ({"g": False}, {"a": True, "g": None}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "a constant under a condition",
        rubric({"a": YES_NO}, **{"if": A_YES, "then": {"properties": {"k": {"const": 7}}, "required": ["k"]}}),
        [("k",)],
        [({}, {"a": True, "k": 7}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "a condition on a constant",
        rubric(
            {"k": {"const": 7}, "a": YES_NO},
            **{"if": {"properties": {"k": {"const": 7}}}, "else": {"properties": {"x": AB}}},
        ),
        [("x",)],
        [({}, {"k": 7, "a": True})],
    ),
    Decided(
        "always and never",
        rubric(
            {"a": YES_NO},
            allOf=[{"if": True, "then": {"properties": {"x": AB}}}, {"if": False, "then": {"properties": {"y": AB}}}],
        ),
        [("x",), ("y",)],
        [({}, {"a": True, "x": "a"})],
    ),
    Decided(
        "closed, with what a condition requires declared",
        rubric({"a": YES_NO, "x": AB}, additionalProperties=False, **{"if": A_YES, "then": {"required": ["x"]}}),
        [("x",)],
        [({}, {"a": True, "x": "a"}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "closed to what no part declares",
        rubric(
            {"a": YES_NO},
            unevaluatedProperties=False,
            **{"if": A_YES, "then": {"properties": {"x": AB}, "required": ["x"]}},
        ),
        [("x",)],
        [({}, {"a": True, "x": "a"}), ({"a": False}, {"a": False})],
    ),
    Decided(
        "open, declared under one and required under another",
        rubric(
            {"a": YES_NO, "b": YES_NO},
            allOf=[{"if": A_YES, "then": {"properties": {"x": AB}}}, {"if": B_YES, "then": {"required": ["x"]}}],
        ),
        [("x",)],
        [({"a": False}, {"a": False, "b": True, "x": "a"}), ({"a": False, "b": False}, {"a": False, "b": False})],
    ),
)


@pytest.mark.parametrize("case", DECIDED, ids=lambda case: case.id)
def test_what_is_decided(case: Decided) -> None:
    """What is asked under a condition is there where it holds, and every decision satisfies the caller's own schema."""
    assert conditional_paths(case.schema) == case.conditional
    compiled = compile_rubric(case.schema, LIMITS)
    first: dict[tuple[str, ...], Any] = {one.path: one.options[0].value for one in compiled.questions}
    for said, decision in case.decisions:
        made = build_decision(compiled.fields, first | {tuple(id.split("/")): value for id, value in said.items()})
        assert made == decision
        assert Draft202012Validator(case.schema).is_valid(made)
        assert make_validator(compiled.schema).is_valid(made)


# What is refused


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Any
    problems: list[tuple[str, str]]


G = "/rubric/properties/g"
REFUSED = (
    Refused("an object without properties", rubric({"g": {"type": "object"}}), [(G, "bad_properties")]),
    Refused(
        "properties in a list",
        rubric({"g": {"type": "object", "properties": ["a"]}}),
        [(f"{G}/properties", "bad_properties")],
    ),
    Refused(
        "free properties",
        rubric({"g": {"type": "object", "additionalProperties": YES_NO}}),
        [(G, "bad_properties"), (f"{G}/additionalProperties", "bad_additional_properties")],
    ),
    Refused(
        "a schema for the rest",
        rubric(additionalProperties={}),
        [("/rubric/additionalProperties", "bad_additional_properties")],
    ),
    Refused(
        "a schema for what is left",
        rubric(unevaluatedProperties={"type": "string"}),
        [("/rubric/unevaluatedProperties", "bad_additional_properties")],
    ),
    Refused(
        "patterns",
        rubric(patternProperties={"^(a+)+$": YES_NO}),
        [("/rubric/patternProperties", "unsupported_keyword")],
    ),
    Refused(
        "objects by type",
        rubric({"g": group({"a": YES_NO}, minProperties=1)}),
        [(f"{G}/minProperties", "unsupported_keyword")],
    ),
    Refused(
        "alternatives of objects",
        rubric({"g": group({"a": YES_NO}, anyOf=[{}, {}])}),
        [(f"{G}/anyOf", "unsupported_keyword")],
    ),
    Refused(
        "a list of objects",
        rubric({"g": group({"a": YES_NO}, enum=[{}, {"a": True}])}),
        [(f"{G}/enum", "unsupported_keyword")],
    ),
    Refused(
        "draft 7's dependencies", rubric(dependencies={"a": ["b"]}), [("/rubric/dependencies", "unsupported_keyword")]
    ),
    Refused(
        "a part of another type", rubric(allOf=[{"type": "array"}, {}]), [("/rubric/allOf/0/type", "not_an_object")]
    ),
    Refused(
        "a part of several types", rubric(allOf=[{"type": ["object"]}, {}]), [("/rubric/allOf/0/type", "not_an_object")]
    ),
    Refused(
        "a part that refuses null, which the object may be",
        rubric(
            {
                "g": {**group({"a": YES_NO}), "type": ["object", "null"], "if": True, "then": {"type": "object"}},
                "b": YES_NO,
            }
        ),
        [(f"{G}/then/type", "refuses_null")],
    ),
    Refused("no parts", rubric(allOf=[]), [("/rubric/allOf", "bad_list")]),
    Refused("a part that is none", rubric(allOf=[{}, True]), [("/rubric/allOf/1", "not_a_schema")]),
    Refused(
        "a closed part",
        rubric(allOf=[{"additionalProperties": False}, {}]),
        [("/rubric/allOf/0/additionalProperties", "unsupported_keyword")],
    ),
    Refused(
        "a closed branch",
        rubric(**{"if": A_YES, "then": {"unevaluatedProperties": False}}),
        [("/rubric/then/unevaluatedProperties", "unsupported_keyword")],
    ),
    Refused("then without if", rubric(then={"required": ["a"]}), [("/rubric/then", "no_condition")]),
    Refused("else without if", rubric(allOf=[{"else": {}}, {}]), [("/rubric/allOf/0/else", "no_condition")]),
    Refused(
        "a branch that is none",
        rubric(**{"if": A_YES, "then": True, "else": False}),
        [("/rubric/then", "not_a_schema"), ("/rubric/else", "not_a_schema")],
    ),
    Refused("a condition that is none", rubric(**{"if": 1, "then": {}}), [("/rubric/if", "not_a_schema")]),
    Refused(
        "a pattern in a condition",
        rubric(**{"if": {"properties": {"a": {"pattern": "^(a+)+$"}}}, "then": {}}),
        [("/rubric/if/properties/a/pattern", "unsupported_keyword")],
    ),
    Refused("required that is none", rubric(required="a"), [("/rubric/required", "bad_required")]),
    Refused("required as in draft 3", rubric(required=True), [("/rubric/required", "bad_required")]),
    Refused("a required name that is none", rubric(required=["a", 1]), [("/rubric/required/1", "bad_required")]),
    Refused("required but not asked", rubric(required=["a", "z"]), [("/rubric/required/1", "bad_required")]),
    Refused(
        "required in an object, asked outside",
        rubric({"a": YES_NO, "g": group({"b": YES_NO}, required=["a"])}),
        [(f"{G}/required/0", "bad_required")],
    ),
    Refused(
        "required in a branch, asked nowhere",
        rubric(**{"if": A_YES, "then": {"required": ["z"]}}),
        [("/rubric/then/required/0", "bad_required")],
    ),
    Refused(
        "required always, asked under a condition",
        rubric(required=["x"], **{"if": A_YES, "then": {"properties": {"x": AB}}}),
        [("/rubric/required/0", "bad_required")],
    ),
    Refused(
        "dependent properties in a list",
        rubric(dependentRequired=["a"]),
        [("/rubric/dependentRequired", "bad_properties")],
    ),
    Refused(
        "a dependent name alone",
        rubric(dependentRequired={"a": "b"}),
        [("/rubric/dependentRequired/a", "bad_required")],
    ),
    Refused(
        "a dependent name that is none",
        rubric(dependentRequired={"a": [None]}),
        [("/rubric/dependentRequired/a/0", "bad_required")],
    ),
    Refused(
        "a dependent that is not asked",
        rubric(dependentRequired={"a": ["z"]}),
        [("/rubric/dependentRequired/a/0", "bad_required")],
    ),
    Refused(
        "dependents of what is not asked",
        rubric({"a": YES_NO, "x": AB}, dependentRequired={"z": ["x"]}),
        [("/rubric/dependentRequired/z", "bad_condition")],
    ),
    Refused(
        "each requires the other",
        rubric({"a": YES_NO, "b": AB}, dependentRequired={"a": ["b"], "b": ["a"]}),
        [("/rubric/dependentRequired/b", "bad_condition")],
    ),
    Refused(
        "dependent schemas in a list", rubric(dependentSchemas=[{}]), [("/rubric/dependentSchemas", "bad_properties")]
    ),
    Refused(
        "a dependent schema that is none",
        rubric(dependentSchemas={"a": True}),
        [("/rubric/dependentSchemas/a", "not_a_schema")],
    ),
    Refused(
        "a dependent schema of what is not asked",
        rubric(dependentSchemas={"z": {"properties": {"x": AB}}}),
        [("/rubric/dependentSchemas/z", "bad_condition")],
    ),
    Refused(
        "asked in both branches",
        rubric(**{"if": A_YES, "then": {"properties": {"x": AB}}, "else": {"properties": {"x": YES_NO}}}),
        [("/rubric/else/properties/x", "asked_twice")],
    ),
    Refused(
        "narrowed in a branch to what could not be asked: that is not what is wrong",
        rubric(**{"if": A_YES, "then": {"properties": {"a": {"type": "string", "pattern": "^x"}}}}),
        [("/rubric/then/properties/a", "asked_twice")],
    ),
    Refused(
        "narrowed in a branch",
        rubric(**{"if": A_YES, "then": {"properties": {"a": {"const": True}}}}),
        [("/rubric/then/properties/a", "asked_twice")],
    ),
    Refused(
        "asked in two parts",
        rubric(allOf=[{"properties": {"x": AB}}, {"properties": {"x": AB}}]),
        [("/rubric/allOf/1/properties/x", "asked_twice")],
    ),
    Refused(
        "a condition on what comes later",
        rubric({"x": AB, "a": YES_NO}, **{"if": A_YES, "then": {"required": ["x"]}}),
        [("/rubric/if", "bad_condition")],
    ),
    Refused(
        "a condition on what depends on it",
        rubric(**{"if": {"required": ["x"]}, "then": {"properties": {"x": AB}}}),
        [("/rubric/if", "bad_condition")],
    ),
    Refused(
        "a condition on what is not asked",
        rubric(**{"if": {"properties": {"z": {"const": 1}}}, "then": {"properties": {"x": AB}}}),
        [("/rubric/if", "bad_condition")],
    ),
    Refused(
        "a condition on what an answer has not",
        rubric(**{"if": {"properties": {"a": A_YES}}, "then": {"properties": {"x": AB}}}),
        [("/rubric/if", "bad_condition")],
    ),
    Refused(
        "a condition on what stands outside",
        rubric({"a": YES_NO, "g": group({"x": AB}, **{"if": A_YES, "then": {"required": ["x"]}})}),
        [(f"{G}/if", "bad_condition")],
    ),
    Refused(
        "a closed object that asks for more",
        rubric(
            additionalProperties=False,
            **{"if": A_YES, "then": {"properties": {"x": AB}}},
            allOf=[{"properties": {"y": AB}}, {}],
        ),
        [("/rubric/allOf/0/properties/y", "closed_object"), ("/rubric/then/properties/x", "closed_object")],
    ),
    Refused(
        "closed to what no part declares, and required where none does",
        rubric(
            {"a": YES_NO, "b": YES_NO},
            unevaluatedProperties=False,
            allOf=[{"if": A_YES, "then": {"properties": {"x": AB}}}, {"if": B_YES, "then": {"required": ["x"]}}],
        ),
        [("/rubric/allOf/1/then/required/0", "bad_required")],
    ),
    Refused(
        "a name too long",
        rubric({"n" * 401: YES_NO}),
        [("/rubric/properties/" + "n" * 256 + "…", "name_too_long")],
    ),
    Refused(
        "required, and refused where it stands: nothing more is said of it",
        rubric(
            {"a": {"$ref": "#/$defs/Z"}, "b": None, "c": YES_NO},
            required=["a", "b"],
            **{"if": {"required": ["b"]}, "then": {"required": ["c"]}},
        ),
        [("/rubric/properties/a/$ref", "unknown_reference"), ("/rubric/properties/b", "not_a_schema")],
    ),
    Refused(
        "a cycle through properties",
        rubric({"a": YES_NO, "g": {"$ref": "#/$defs/G"}}, **{"$defs": {"G": group({"h": {"$ref": "#/$defs/G"}})}}),
        [("/rubric/$defs/G/properties/h/$ref", "cyclic_reference")],
    ),
    Refused(
        "a cycle through null",
        rubric(
            {"a": YES_NO, "g": {"$ref": "#/$defs/G"}},
            **{"$defs": {"G": group({"h": {"anyOf": [{"$ref": "#/$defs/G"}, NULL]}})}},
        ),
        [("/rubric/$defs/G/properties/h/anyOf/0/$ref", "cyclic_reference")],
    ),
    Refused(
        "a cycle through allOf",
        rubric(allOf=[{"$ref": "#/$defs/P"}, {}], **{"$defs": {"P": {"allOf": [{}, {"$ref": "#/$defs/P"}]}}}),
        [("/rubric/$defs/P/allOf/1/$ref", "cyclic_reference")],
    ),
    Refused(
        "a cycle through then",
        rubric(
            **{"if": A_YES, "then": {"$ref": "#/$defs/P"}},
            **{"$defs": {"P": {"if": True, "then": {"$ref": "#/$defs/P"}}}},
        ),
        [("/rubric/$defs/P/then/$ref", "cyclic_reference")],
    ),
    Refused(
        "a cycle through items",
        rubric({"a": {"$ref": "#/$defs/L"}}, **{"$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}}),
        [("/rubric/$defs/L/items/$ref", "cyclic_reference")],
    ),
    Refused(
        "a cycle through dependentSchemas",
        rubric(
            dependentSchemas={"a": {"$ref": "#/$defs/P"}},
            **{"$defs": {"P": {"dependentSchemas": {"a": {"$ref": "#/$defs/P"}}}}},
        ),
        [("/rubric/$defs/P/dependentSchemas/a/$ref", "cyclic_reference")],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_refused(case: Refused) -> None:
    """S7: what could not be decided, or would break the caller's schema: everything, each in its place."""
    assert problems_of(case.schema) == case.problems


def test_texts_of_parts_are_remarked_on() -> None:
    """They are not shown: there is no question that they stand ahead of. Those of objects are."""
    parts = {"allOf": [{"title": "P", "properties": {"b": YES_NO}}, {}], "if": A_YES, "then": {"description": "d"}}
    schema = rubric({"a": YES_NO, "g": group({"c": YES_NO}, title="G")}, title="R", description="D", **parts)
    assert [(one.pointer, one.code) for one in compile_rubric(schema, LIMITS).remarks] == [
        ("/rubric/allOf/0/title", "text_not_shown"),
        ("/rubric/then/description", "text_not_shown"),
    ]


def test_how_to_close_an_object_with_parts_is_said() -> None:
    """The message names what to write instead."""
    schema = rubric(additionalProperties=False, **{"if": A_YES, "then": {"properties": {"x": AB}}})
    assert problems_of(schema) == [("/rubric/then/properties/x", "closed_object")]
    schema["unevaluatedProperties"] = schema.pop("additionalProperties")
    assert problems_of(schema) == []


def test_an_object_used_often_is_looked_at_each_time() -> None:
    """S11: ten of ten of ten of ten: the budget is spent, not the memory."""
    laughs = {str(i): group({str(k): {"$ref": f"#/$defs/{i + 1}"} for k in range(10)}) for i in range(9)}
    schema = rubric({"a": {"$ref": "#/$defs/0"}}, **{"$defs": {**laughs, "9": YES_NO}})
    codes = [code for _, code in problems_of(schema, replace(LIMITS, max_nodes=1000))]
    assert codes == ["too_many_nodes"]


def test_a_closed_object_takes_no_longer_to_check_for_its_depth() -> None:
    """S11: what a validator would have to find out anew at every level is not asked of it."""
    nested: Schema = {"type": "object", "properties": {"q": YES_NO}}
    for _ in range(7):
        within = {"allOf": [{"properties": {"n": nested}}, {}]}
        nested = {"type": "object", "unevaluatedProperties": False, "allOf": [within, {}]}
    compiled = compile_rubric(nested, LIMITS)
    assert "unevaluatedProperties" not in json.dumps(compiled.schema)
    (asked,) = compiled.questions
    decision = build_decision(compiled.fields, {asked.path: True})
    assert Draft202012Validator(compiled.schema).is_valid(decision)


def test_items_are_asked_for_by_value() -> None:
    """S11: a condition on the items of a list is checked on each, so it may say little of one."""
    asked = {"a": {"type": "array", "items": {"enum": ["x", "y"]}}, "b": YES_NO}
    schema = {**rubric(asked), "if": {"properties": {"a": {"contains": {"const": "x"}}}}, "then": {"required": ["b"]}}
    assert problems_of(schema) == []
    schema["if"] = {"properties": {"a": {"contains": {"anyOf": [{"const": "x"}] * 100}}}}
    assert problems_of(schema) == [("/rubric/if/properties/a/contains", "bad_condition")]
    schema["if"] = {"properties": {"a": {"allOf": [{"contains": {"const": "x"}}] * 200}}}
    assert [code for _, code in problems_of(schema)] == ["too_many_nodes"]
