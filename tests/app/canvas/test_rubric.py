"""The rubric language as a whole: what is understood, what is refused, and how the refusal reads.

What each part of a rubric may say is tested beside that part.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.canvas.condition import Condition
from app.canvas.decision import decide
from app.canvas.errors import RubricRejected
from app.canvas.field import Field
from app.canvas.rubric import Rubric, compile_rubric
from app.canvas.site import MAX_PROBLEMS, Path, Reader, RubricLimits
from tests.app.canary import CANARY
from tests.app.canvas import rubrics
from tests.app.canvas.pools import pools_of
from tests.app.canvas.rubrics import (
    LIMITS,
    SHOWN_NULL,
    SHOWN_YES_NO,
    YES_NO,
    Schema,
    ShownQuestion,
    as_they_are,
    compile_or_reject,
    problems_of,
    question,
    questions_of,
    random_logprobs,
    rubric,
    with_keywords_in_order,
    with_other_names,
)
from tests.app.json_pointer import follow

AB: Schema = {"enum": ["a", "b"]}
A = "/rubric/properties/a"


@dataclass(frozen=True)
class Accepted:
    id: str
    schema: Schema
    questions: list[ShownQuestion]


def yes_no(path: str = "a", text: str = "Yes or no?") -> ShownQuestion:
    """A yes-or-no question."""
    return (path, "boolean", text, SHOWN_YES_NO)


ACCEPTED = (
    Accepted("one question", rubric(), [yes_no()]),
    Accepted("questions in their order", rubric({"b": YES_NO, "a": YES_NO}), [yes_no("b"), yes_no("a")]),
    Accepted("required", rubric(required=["a"]), [yes_no()]),
    Accepted("nothing required", rubric(required=[]), [yes_no()]),
    Accepted("open", rubric(additionalProperties=True, unevaluatedProperties=True), [yes_no()]),
    Accepted("closed", rubric(additionalProperties=False), [yes_no()]),
    Accepted(
        "annotations",
        rubric(
            {"a": {**YES_NO, "examples": [[]], "x-note": {"enum": 1}, "deprecated": True, "format": "x"}},
            title="T",
            description="D",
            **{
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$id": "urn:x",
                "$comment": "c",
                "x-any": [{}],
            },
        ),
        [yes_no()],
    ),
    Accepted(
        "definitions nobody refers to",
        rubric(**{"$defs": {"A": {"pattern": "("}, "B": {"$ref": "#/$defs/B"}}}),
        [yes_no()],
    ),
    Accepted("a root that is referred to", {"$ref": "#/$defs/R", "$defs": {"R": rubric()}}, [yes_no()]),
    Accepted(
        "a root behind an allOf", {"allOf": [{"$ref": "#/definitions/R"}], "definitions": {"R": rubric()}}, [yes_no()]
    ),
    Accepted(
        "every kind",
        rubric(
            {
                "boolean": YES_NO,
                "choice": {"type": ["string", "null"], "enum": ["x", None]},
                "score": {"type": "number", "minimum": 0, "maximum": 0.2, "multipleOf": 0.1},
                "probability": {"type": "number", "minimum": 0, "maximum": 1},
                "selection": {"type": "array", "items": AB},
                "constant": {"const": 1},
            }
        ),
        [
            yes_no("boolean"),
            ("choice", "choice", "Which one fits?", [*as_they_are("x"), SHOWN_NULL]),
            ("score", "score", "Which level fits?", as_they_are(0, 0.1, 0.2)),
            ("probability", "probability", "Yes or no?", SHOWN_YES_NO),
            ("selection", "selection", "Which of these apply?", as_they_are("a", "b")),
        ],
    ),
    Accepted(
        "what pydantic prints of an optional enumeration",
        rubric(
            {
                "a": {
                    "anyOf": [{"$ref": "#/$defs/E"}, {"type": "null"}],
                    "default": None,
                    "description": "Which colour?",
                }
            },
            title="Model",
            **{"$defs": {"E": {"enum": ["red", "blue"], "title": "E", "type": "string"}}},
        ),
        [
            (
                "a",
                "choice",
                "E. Which colour? If it is not stated: none of these",
                [*as_they_are("red", "blue"), SHOWN_NULL],
            )
        ],
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_accepted(case: Accepted) -> None:
    """What is in the language is understood, annotations make no difference."""
    assert questions_of(case.schema) == case.questions


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Any
    problems: list[tuple[str, str]]


REFUSED = (
    Refused("null", None, [("/rubric", "not_a_schema")]),
    Refused("a list", [], [("/rubric", "not_a_schema")]),
    Refused("a text", "{}", [("/rubric", "not_a_schema")]),
    Refused("true, a schema elsewhere", True, [("/rubric", "not_a_schema")]),
    Refused("nothing", {}, [("/rubric", "not_an_object")]),
    Refused("no type", {"properties": {"a": YES_NO}}, [("/rubric", "not_an_object")]),
    Refused("another type", rubric() | {"type": "array"}, [("/rubric/type", "not_an_object")]),
    Refused("an object or null", rubric() | {"type": ["object", "null"]}, [("/rubric/type", "not_an_object")]),
    Refused("a boolean", YES_NO, [("/rubric/type", "not_an_object")]),
    Refused("no properties", {"type": "object"}, [("/rubric", "bad_properties")]),
    Refused("no question", rubric({}), [("/rubric", "bad_question_count")]),
    Refused("nothing but constants", rubric({"a": {"const": 1}}), [("/rubric", "bad_question_count")]),
    Refused("nothing but empty objects", rubric({"a": rubric({})}), [("/rubric", "bad_question_count")]),
    Refused("a question that is none", rubric({"a": True}), [(A, "not_a_schema")]),
    Refused("a free string", question(type="string"), [(A, "unsupported_question")]),
    Refused(
        "a root that refers to itself",
        {"$ref": "#/$defs/R", "$defs": {"R": {"$ref": "#/$defs/R"}}},
        [("/rubric/$defs/R/$ref", "cyclic_reference")],
    ),
    Refused("a reference to the whole", question(**{"$ref": "#"}), [(f"{A}/$ref", "unsupported_reference")]),
    Refused("an id below the root", question(**YES_NO, **{"$id": "urn:x"}), [(f"{A}/$id", "unsupported_keyword")]),
    Refused("a description that is none", rubric(description=1), [("/rubric/description", "bad_text")]),
    Refused(
        "a name that needs escaping",
        rubric({"a/b~": {"enum": ["x", []]}}),
        [("/rubric/properties/a~1b~0/enum/1", "bad_option")],
    ),
    Refused(
        "a long name is cut", rubric({"n" * 300: None}), [("/rubric/properties/" + "n" * 256 + "…", "not_a_schema")]
    ),
    Refused(
        "mistakes in a definition, wherever it is used",
        rubric(
            {"x": {"$ref": "#/$defs/E"}, "y": {"$ref": "#/$defs/E"}}, **{"$defs": {"E": {"enum": [[], "a"], "not": {}}}}
        ),
        [("/rubric/$defs/E/not", "unsupported_keyword"), ("/rubric/$defs/E/enum/0", "bad_option")],
    ),
    Refused(
        "everything at once",
        {
            "type": "object",
            "required": ["z", 1],
            "additionalProperties": 1,
            "propertyNames": {},
            "properties": {
                "a": {"type": "text", "enum": ["x", [], "x"], "title": 1, "pattern": "("},
                "b": {"type": "integer", "maximum": None},
                "c": None,
                "d": {"$ref": "#/$defs/D"},
                "e": {"type": "object", "properties": {"f": {}}},
            },
            "then": {},
        },
        [
            ("/rubric/additionalProperties", "bad_additional_properties"),
            ("/rubric/propertyNames", "unsupported_keyword"),
            ("/rubric/required/1", "bad_required"),
            ("/rubric/then", "no_condition"),
            (f"{A}/title", "bad_text"),
            (f"{A}/pattern", "unsupported_keyword"),
            (f"{A}/enum/1", "bad_option"),
            (f"{A}/type", "bad_type"),
            ("/rubric/properties/b", "bad_bound"),
            ("/rubric/properties/b/maximum", "bad_number"),
            ("/rubric/properties/c", "not_a_schema"),
            ("/rubric/properties/d/$ref", "unknown_reference"),
            ("/rubric/properties/e/properties/f", "unsupported_question"),
            ("/rubric/required/0", "bad_required"),
        ],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: Refused) -> None:
    """S7: what is outside the language is refused: every problem at once, each with its exact place."""
    assert problems_of(case.schema) == case.problems


def test_what_is_understood() -> None:
    """Fields in the order of the properties; a schema of just these options; the description is kept apart."""
    compiled = compile_rubric(
        {
            "title": "Triage",
            "description": " What the\nmember needs.",
            "type": "object",
            "properties": {
                "b": {"type": "boolean", "title": "Is it\nurgent?", "default": True},
                "g": {"type": ["object", "null"], "properties": {"p": {"type": "integer", "minimum": 1, "maximum": 2}}},
                "k": {"const": "x"},
            },
            "required": ["b"],
            "if": {"properties": {"b": {"const": True}}, "title": "t"},
            "then": {"properties": {"s": {"type": "array", "items": AB, "minItems": 1}}, "required": ["s"]},
            "additionalProperties": True,
        },
        LIMITS,
    )
    assert compiled.description == "What the member needs."
    assert [field.path for field in compiled.fields] == [("b",), ("g",), ("g", "p"), ("k",), ("s",)]
    assert [one.id for one in compiled.questions] == ["b", "g", "g/p", "s"]
    group = {"type": "object", "properties": {"p": {"enum": [1, 2]}}}
    several = {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 2}
    assert compiled.schema == {
        "type": "object",
        "additionalProperties": True,
        "required": ["b"],
        "properties": {
            "b": {"enum": [True, False]},
            "g": {"anyOf": [group, {"type": "null"}]},
            "k": {"const": "x"},
        },
        "allOf": [
            {
                "if": {"properties": {"b": {"const": True}}},
                "then": {"properties": {"s": several}, "required": ["s"]},
            }
        ],
    }


def test_limits_are_what_is_still_allowed() -> None:
    """S11: one question more is too many."""
    three = rubric({"a": YES_NO, "g": {"type": ["object", "null"], "properties": {"b": YES_NO}}})
    assert problems_of(three, replace(LIMITS, max_questions=3)) == []
    assert problems_of(three, replace(LIMITS, max_questions=2)) == [("/rubric", "bad_question_count")]


# Anything at all


def anything(leaves: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """JSON of any shape, most of it nearly a rubric."""
    return rubrics.damaged_rubrics(leaves) | rubrics.json_values(leaves)


@settings(max_examples=250)
@given(anything(), rubrics.randoms())
def test_any_json_is_a_rubric_or_rejected(schema: Any, random: Random) -> None:
    """S6, S7: never another exception; every problem is about a place that exists; what is accepted can be decided."""
    result = compile_or_reject(schema)
    if isinstance(result, Rubric):
        decision, _ = decide(result, pools_of(random_logprobs(result, random)), 0.3)
        assert Draft202012Validator(result.schema).is_valid(decision)
        # Not even this can be said of a schema whose name is no string.
        assert not isinstance(schema.get("$id", ""), str) or Draft202012Validator(schema).is_valid(decision)
        assert 1 <= len(result.questions) <= LIMITS.max_questions
    else:
        assert 1 <= len(result.problems) <= MAX_PROBLEMS
        assert len(set(result.problems)) == len(result.problems)
        for problem in result.problems:
            assert problem.pointer.startswith("/rubric")
            follow({"rubric": schema}, problem.pointer)


@given(anything(leaves=rubrics.canaries()))
def test_messages_never_hold_a_value(schema: Any) -> None:
    """P1: code and message of a problem, and the exception's own text, are ours alone."""
    result = compile_or_reject(schema)
    if isinstance(result, RubricRejected):
        said = "".join(problem.code + problem.message for problem in result.problems) + str(result)
        assert CANARY not in said


# What makes a difference, and what does not


def asked(compiled: Rubric) -> list[Any]:
    """Everything about the questions but where they stand."""
    return [(type(one), one.text, one.options, one.lines, one.own_text, one.schema) for one in compiled.questions]


@given(
    rubrics.accepted_rubrics(),
    st.sampled_from(["ignore all that was said ", "a/b~", "é"]),
    rubrics.randoms(),
)
def test_names_make_no_difference(schema: Schema, prefix: str, random: Random) -> None:
    """Names act as instructions: whatever properties are called, the same is asked, and the same comes out."""
    compiled = compile_rubric(schema, LIMITS)
    renamed = compile_rubric(with_other_names(schema, lambda name: prefix + name), LIMITS)
    assert asked(renamed) == asked(compiled)
    assert [one.path for one in renamed.fields] == [
        tuple(prefix + name for name in one.path) for one in compiled.fields
    ]
    logprobs = random_logprobs(compiled, random)
    _, answers = decide(compiled, pools_of(logprobs), 0.3)
    _, same = decide(renamed, pools_of(logprobs), 0.3)
    assert [(one.reading, one.outcome) for one in same] == [(one.reading, one.outcome) for one in answers]


def plain(field: Field) -> Any:
    """A field, its conditions as what they check."""

    def checked(condition: Condition) -> Any:
        return condition.validator.schema, condition.is_wanted, condition.mentions, condition.place

    return field.path, field.content, [[checked(condition) for condition in every] for every in field.conditions]


@given(rubrics.accepted_rubrics(), rubrics.randoms())
def test_the_order_of_keywords_makes_no_difference(schema: Schema, random: Random) -> None:
    """Of those of one schema; that of properties and options does."""

    def shuffled(keywords: list[str]) -> list[str]:
        return random.sample(keywords, len(keywords))

    compiled = compile_rubric(schema, LIMITS)
    same = compile_rubric(with_keywords_in_order(schema, shuffled), LIMITS)
    assert list(map(plain, same.fields)) == list(map(plain, compiled.fields))
    assert same.schema == compiled.schema


# What a decision cannot break, and a validator would be long to find out.
NOT_CHECKED = ("unevaluatedProperties", "uniqueItems")


@given(rubrics.accepted_rubrics(), st.data())
def test_what_is_understood_is_not_wider_than_what_was_said(schema: Schema, data: st.DataObject) -> None:
    """What the check ahead of the answer lets through satisfies the caller's schema, but for two keywords."""

    def checked(pairs: Schema) -> Schema:
        return {keyword: value for keyword, value in pairs.items() if keyword not in NOT_CHECKED}

    compiled = compile_rubric(schema, LIMITS)
    names = st.sampled_from([name for field in compiled.fields for name in field.path]) | rubrics.texts()
    values = st.sampled_from([option.value for one in compiled.questions for option in one.options])
    instances = st.recursive(
        values, lambda below: st.dictionaries(names, below) | st.lists(below, max_size=3), max_leaves=6
    )
    logprobs = random_logprobs(compiled, Random(0))
    decision, _ = decide(compiled, pools_of(logprobs), 0.3)
    name = data.draw(st.sampled_from(sorted(decision)))
    instance = {**decision, name: data.draw(instances), **data.draw(st.dictionaries(names, instances, max_size=2))}
    if Draft202012Validator(compiled.schema).is_valid(instance):
        said = json.loads(json.dumps(schema), object_hook=checked)
        assert Draft202012Validator(said).is_valid(instance)


# Hostile rubrics: S7, S11

DEFAULTS = RubricLimits(
    max_questions=64, max_options=255, max_text_chars=4096, max_chars=65_536, max_depth=24, max_nodes=8192
)
MANY = 100_000
EVIL = "^(a+)+$"
WORDS = "ab " * 3_500_000
MAX_PEAK_BYTES = 50_000_000


def nested(around: Callable[[Any], Any], innermost: Any) -> Any:
    """Something in something in something, a hundred thousand times."""
    value = innermost
    for _ in range(MANY):
        value = around(value)
    return value


def numbered(count: int, value: Any) -> Schema:
    """An object of so many names."""
    return {f"p{number}": value for number in range(count)}


def laughing(below: Callable[[Schema], Schema], innermost: Schema) -> Schema:
    """Definitions of which each refers ten times to the next."""
    laughs = {str(level): below({"$ref": f"#/$defs/{level + 1}"}) for level in range(9)}
    return {"$defs": {**laughs, "9": innermost}}


def of_a(condition: Any) -> Schema:
    """A rubric with a condition on `a`."""
    return rubric(**{"if": {"properties": {"a": condition}}, "then": {"properties": {"x": AB}}})


@dataclass(frozen=True)
class Hostile:
    """A rubric to refuse, and with what, or one that does no harm.

    Attributes:
        code: of a problem; None: it is accepted.
    """

    id: str
    schema: Callable[[], Any]
    code: str | None


GIVEN_YES: Schema = {"required": ["a"]}
HOSTILE = (
    Hostile("nested objects", lambda: nested(lambda below: rubric({"a": below}), YES_NO), "too_deep"),
    Hostile("nested lists", lambda: question(enum=nested(lambda below: [below], 1)), "bad_option"),
    Hostile("nested alternatives", lambda: question(**nested(lambda below: {"anyOf": [below]}, YES_NO)), "too_deep"),
    Hostile("nested parts", lambda: nested(lambda below: {"allOf": [below]}, YES_NO), "too_deep"),
    Hostile("nested pairs of parts", lambda: rubric(**nested(lambda below: {"allOf": [below, {}]}, {})), "too_deep"),
    Hostile("nested branches", lambda: rubric(**nested(lambda below: {"if": True, "then": below}, {})), "too_deep"),
    Hostile("nested conditions", lambda: rubric(**{"if": nested(lambda below: {"not": below}, {})}), "too_deep"),
    Hostile(
        "nested arrays",
        lambda: question(**nested(lambda below: {"type": "array", "items": below}, YES_NO)),
        "unsupported_question",
    ),
    Hostile(
        "nested null",
        lambda: question(**nested(lambda below: {"anyOf": [below, {"type": "null"}]}, rubric())),
        "too_deep",
    ),
    Hostile(
        "nested annotations",
        lambda: question(**YES_NO, default=nested(lambda below: [below], 1), x=nested(lambda below: {"a": below}, 1)),
        None,
    ),
    Hostile("the whole in itself", lambda: {"$ref": "#"}, "unsupported_reference"),
    Hostile(
        "a circle",
        lambda: {
            **question(**{"$ref": "#/$defs/a"}),
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        },
        "cyclic_reference",
    ),
    Hostile(
        "a billion laughs",
        lambda: rubric(
            {"a": {"$ref": "#/$defs/0"}}, **laughing(lambda one: rubric(dict.fromkeys("0123456789", one)), YES_NO)
        ),
        "too_many_nodes",
    ),
    Hostile(
        "a billion parts",
        lambda: rubric(allOf=[{"$ref": "#/$defs/0"}] * 2, **laughing(lambda one: {"allOf": [one] * 10}, {})),
        "too_many_nodes",
    ),
    Hostile(
        "a billion conditions",
        lambda: rubric(**{"if": {"$ref": "#/$defs/0"}}, **laughing(lambda one: {"anyOf": [one] * 10}, GIVEN_YES)),
        "too_many_nodes",
    ),
    Hostile(
        "a billion options",
        lambda: rubric({"a": {"$ref": "#/$defs/0"}}, **laughing(lambda one: {"anyOf": [one] * 10}, AB)),
        "too_many_nodes",
    ),
    Hostile("a pattern", lambda: question(type="string", pattern=EVIL), "unsupported_question"),
    Hostile("a pattern of an enum", lambda: question(enum=["a" * 30 + "!", "b"], pattern=EVIL), "unsupported_keyword"),
    Hostile("a pattern of names", lambda: rubric(patternProperties={EVIL: YES_NO}), "unsupported_keyword"),
    Hostile("a pattern in a condition", lambda: of_a({"pattern": EVIL}), "unsupported_keyword"),
    Hostile(
        "a pattern where nobody looks", lambda: rubric(**{"$defs": {"A": {"pattern": EVIL}}}, x={"pattern": EVIL}), None
    ),
    Hostile("a million options", lambda: question(enum=list(range(1_000_000))), "bad_options"),
    Hostile("an option of 10 MB", lambda: question(enum=[WORDS, "b"]), "too_much_text"),
    Hostile(
        "options of 10 MB",
        lambda: question(enum=[f"{number} " + WORDS[:40_000] for number in range(255)]),
        "too_much_text",
    ),
    Hostile(
        "the same options everywhere",
        lambda: rubric(
            numbered(2000, {"$ref": "#/$defs/E"}),
            **{"$defs": {"E": {"enum": [f"{number} " + WORDS[:900] for number in range(255)]}}},
        ),
        "too_much_text",
    ),
    Hostile("a constant of 10 MB", lambda: question(const=WORDS), "too_much_text"),
    Hostile(
        "the same constant everywhere",
        lambda: rubric(numbered(4000, {"$ref": "#/$defs/C"}), **{"$defs": {"C": {"const": "c" * 4096}}}),
        "too_much_text",
    ),
    Hostile("a title of 10 MB", lambda: question(**YES_NO, title=WORDS), "text_too_long"),
    Hostile(
        "a title of 10 MB of an option",
        lambda: question(oneOf=[{"const": 1, "title": WORDS}, {"const": 2}]),
        "text_too_long",
    ),
    Hostile(
        "an option described in 10 MB",
        lambda: question(**YES_NO, **{"x-option-descriptions": {"true": WORDS}}),
        "text_too_long",
    ),
    Hostile(
        "many descriptions",
        lambda: question(**YES_NO, **{"x-option-descriptions": numbered(MANY, "d")}),
        "bad_descriptions",
    ),
    Hostile("an example of 10 MB", lambda: question(**YES_NO, examples=[WORDS]), "text_too_long"),
    Hostile("a default of 10 MB", lambda: question(**YES_NO, default=WORDS), None),
    Hostile("a name of 10 MB", lambda: rubric({WORDS: YES_NO}), "too_much_text"),
    Hostile(
        "long names in a definition",
        lambda: rubric(
            {f"g{number}": {"$ref": "#/$defs/G"} for number in range(100)},
            **{"$defs": {"G": rubric({f"{number}" + "n" * 4000: {"const": 1} for number in range(20)})}},
        ),
        "too_much_text",
    ),
    Hostile(
        "a reference of 10 MB", lambda: question(**{"$ref": "#/$defs/" + "a/" * 5_000_000}), "unsupported_reference"
    ),
    Hostile("many types", lambda: question(type=["boolean"] * 1_000_000), "unsupported_question"),
    Hostile("many types of an enum", lambda: question(type=["string"] * 1_000_000, enum=["a", "b"]), "bad_type"),
    Hostile("many properties", lambda: rubric(numbered(MANY, YES_NO)), "too_many_nodes"),
    Hostile("as many properties as are looked at", lambda: rubric(numbered(4000, YES_NO)), "bad_question_count"),
    Hostile("as many constants as are looked at", lambda: rubric({"a": YES_NO, **numbered(4000, {"const": 1})}), None),
    Hostile("many required names", lambda: rubric(required=["a"] * MANY), "too_many_nodes"),
    Hostile(
        "the same required names everywhere",
        lambda: rubric(allOf=[{"$ref": "#/$defs/P"}] * 2000, **{"$defs": {"P": {"required": ["a"] * 1000}}}),
        "too_many_nodes",
    ),
    Hostile(
        "many wrong required names",
        lambda: rubric(required=[f"z{number}" for number in range(8000)]),
        "too_many_problems",
    ),
    Hostile(
        "many required names in a condition",
        lambda: rubric(**{"if": {"required": ["a"] * MANY}, "then": {}}),
        "too_many_nodes",
    ),
    Hostile("many parts", lambda: rubric(allOf=[{}] * MANY), "bad_list"),
    Hostile("many dependents", lambda: rubric(dependentRequired=numbered(MANY, ["a"])), "too_many_nodes"),
    Hostile("many dependents of nothing", lambda: rubric(dependentRequired=numbered(MANY, [])), "too_many_nodes"),
    Hostile("many dependent schemas", lambda: rubric(dependentSchemas=numbered(MANY, {})), "too_many_nodes"),
    Hostile(
        "many annotations",
        lambda: rubric(numbered(60, {"$ref": "#/$defs/A"}), **{"$defs": {"A": {**YES_NO, **numbered(MANY, 1)}}}),
        "too_many_nodes",
    ),
    Hostile(
        "many properties in a condition",
        lambda: rubric(**{"if": {"properties": numbered(MANY, True)}, "then": {}}),
        "too_many_nodes",
    ),
    Hostile("many values in a condition", lambda: of_a({"enum": list(range(MANY))}), "too_many_nodes"),
    Hostile(
        "a long text in many conditions",
        lambda: rubric(allOf=[{"if": {"$ref": "#/$defs/C"}}] * 1000, **{"$defs": {"C": {"required": ["r" * 100_000]}}}),
        "too_much_text",
    ),
    Hostile(
        "a long description referred to from everywhere",
        lambda: rubric(
            allOf=[{"$ref": "#/$defs/D", "description": "x"}] * 2000,
            **{"$defs": {"D": {"description": "y " * 450_000}}},
        ),
        None,
    ),
    Hostile(
        "many conditions on one property",
        lambda: rubric({"a": YES_NO, "x": AB}, allOf=[{"if": True, "then": {"required": ["x"]}}] * 1500),
        None,
    ),
    Hostile(
        "many properties under one long condition",
        lambda: rubric(
            {"a": YES_NO, **numbered(1200, {"const": 1})},
            **{
                "if": {"properties": numbered(1200, True)},
                "then": {"properties": {f"x{number}": {"const": 1} for number in range(1200)}},
            },
        ),
        None,
    ),
    Hostile(
        "the same mistakes everywhere",
        lambda: rubric(
            numbered(2000, {"$ref": "#/$defs/A"}),
            **{"$defs": {"A": dict.fromkeys(("type", "not", "items", "pattern", "enum", "contains", "if", "then"), 1)}},
        ),
        "too_many_problems",
    ),
    Hostile("an option of 4000 digits", lambda: question(enum=[10**4000, 1]), "bad_option"),
    Hostile("an option of 5000 digits", lambda: question(const=10**5000), "bad_option"),
    Hostile(
        "bounds of 4000 digits", lambda: question(type="integer", minimum=-(10**4000), maximum=10**4000), "bad_number"
    ),
    Hostile("a condition of 5000 digits", lambda: of_a({"minimum": 10**5000}), "bad_condition"),
    Hostile("lengths of 5000 digits", lambda: question(type="array", items=AB, maxItems=10**5000), None),
    Hostile("a default of 5000 digits", lambda: question(**YES_NO, default=10**5000, examples=[10**5000]), None),
    Hostile(
        "a step of no size",
        lambda: question(type="number", minimum=-1e99, maximum=1e99, multipleOf=5e-324),
        "bad_levels",
    ),
    Hostile("half characters", lambda: rubric({"\ud800": {"enum": ["\udfff", "a"], "title": "\ud800"}}), None),
    Hostile(
        "half characters in what is wrong",
        lambda: rubric({"\ud800": {"$ref": "#/$defs/\udfff%ff"}}),
        "unknown_reference",
    ),
)


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.id)
def test_hostile_rubrics_are_cheap(case: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """S7, S11: refused or harmless, without much looking, memory or many words, and without deep recursion."""
    schema, visited, visit = case.schema(), 0, Reader.visit

    def count(reader: Reader, path: Path, count: int = 1) -> None:
        nonlocal visited
        visited += count > 0
        visit(reader, path, count)

    monkeypatch.setattr(Reader, "visit", count)
    tracemalloc.start()
    try:
        result = compile_or_reject(schema, DEFAULTS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_PEAK_BYTES
    assert visited <= DEFAULTS.max_nodes + 1
    if isinstance(result, Rubric):
        assert case.code is None
    else:
        assert case.code in {problem.code for problem in result.problems}
        assert len(result.problems) <= MAX_PROBLEMS
        assert sum(len(problem.pointer) for problem in result.problems) < 100_000
