"""The rubric language: what is understood, what is refused, and how the refusal reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.canvas.errors import RubricRejected
from app.canvas.question import Kind
from app.canvas.rubric import Rubric, RubricLimits, compile_rubric
from tests.app.canary import CANARY
from tests.app.canvas import rubrics
from tests.app.canvas.rubrics import compile_or_reject, problems_of

Schema = dict[str, Any]

LIMITS = RubricLimits(max_questions=3, max_options=4, max_text_chars=20)
YES_NO: Schema = {"type": "boolean"}
AB: Schema = {"enum": ["a", "b"]}


def rubric(*, properties: Mapping[str, Any] | None = None, **keywords: Any) -> Schema:
    """A rubric of these questions, of one yes-or-no question unless told."""
    return {"type": "object", "properties": {"a": YES_NO} if properties is None else properties, **keywords}


def question(**keywords: Any) -> Schema:
    """A rubric of one question, called `a`."""
    return rubric(properties={"a": keywords})


@dataclass(frozen=True)
class Accepted:
    id: str
    schema: Schema


ACCEPTED = (
    Accepted("boolean", question(type="boolean")),
    Accepted("enum", question(enum=["a", 1, None, True])),
    Accepted("enum of a type", question(type="string", enum=["a", "b"])),
    Accepted("enum of several types", question(type=["string", "null"], enum=["a", None])),
    Accepted("whole floats are integers", question(type="integer", enum=[1.0, 2])),
    Accepted("integers are numbers", question(type="number", enum=[1, 2.5])),
    Accepted("oneOf", question(oneOf=[{"const": "a", "title": "A"}, {"const": "b", "description": "B"}])),
    Accepted("score", question(type="integer", minimum=0, maximum=9)),
    Accepted("as many options as fit", question(enum=[1, 2, 3, 4])),
    Accepted("as many questions as fit", rubric(properties={"a": YES_NO, "b": AB, "c": YES_NO})),
    Accepted("the longest texts", question(type="boolean", title="t" * 9, description="d" * 9)),
    Accepted(
        "the longest option",
        question(oneOf=[{"const": 1, "title": "t" * 18 + "u", "description": ""}, *[{"const": 2}]]),
    ),
    Accepted("required", rubric(required=["a"])),
    Accepted("nothing required", rubric(required=[])),
    Accepted("open", rubric(additionalProperties=True)),
    Accepted("closed", rubric(additionalProperties=False)),
    Accepted(
        "annotations",
        rubric(
            properties={"a": {**AB, "default": "z", "examples": [1], "x-note": {"enum": 1}, "deprecated": True}},
            title="T",
            description="D",
            **{"$schema": "https://json-schema.org/draft/2020-12/schema", "$comment": "c", "x-anything": [{}]},
        ),
    ),
    Accepted("definitions nobody refers to", rubric(**{"$defs": {"A": {"pattern": "("}}})),
    Accepted("annotations of an option", question(oneOf=[{"const": 1, "deprecated": True}, {"const": 2, "x-n": 1}])),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_accepted(case: Accepted) -> None:
    """What is in the language is understood, annotations make no difference."""
    assert problems_of(case.schema, LIMITS) == []


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Any
    problems: list[tuple[str, str]]


A = "/rubric/properties/a"
NAMESAKES = [{"const": 1, "title": "number"}, {"const": "1", "title": "text"}]
TWINS = [{"const": 1, "title": "t"}, {"const": 2, "title": "t"}]
REFUSED = (
    Refused("null", None, [("/rubric", "not_a_schema")]),
    Refused("a list", [], [("/rubric", "not_a_schema")]),
    Refused("a text", "{}", [("/rubric", "not_a_schema")]),
    Refused("true, a schema elsewhere", True, [("/rubric", "not_a_schema")]),
    Refused("nothing", {}, [("/rubric", "not_an_object"), ("/rubric", "bad_properties")]),
    Refused("no type", {"properties": {"a": YES_NO}}, [("/rubric", "not_an_object")]),
    Refused("another type", rubric() | {"type": "array"}, [("/rubric/type", "not_an_object")]),
    Refused("a list of types", rubric() | {"type": ["object"]}, [("/rubric/type", "not_an_object")]),
    Refused("no properties", {"type": "object"}, [("/rubric", "bad_properties")]),
    Refused("no question", rubric(properties={}), [("/rubric/properties", "bad_properties")]),
    Refused("questions in a list", {"type": "object", "properties": [AB]}, [("/rubric/properties", "bad_properties")]),
    Refused(
        "a question too many",
        rubric(properties=dict.fromkeys("abcd", YES_NO)),
        [("/rubric/properties", "bad_properties")],
    ),
    Refused("a question that is none", rubric(properties={"a": True}), [(A, "not_a_schema")]),
    Refused("a free string", question(type="string"), [(A, "unsupported_question")]),
    Refused("a number", question(type="number", minimum=0, maximum=1), [(A, "unsupported_question")]),
    Refused("an array", question(type="array", items=AB), [(A, "unsupported_question")]),
    Refused("a nested object", rubric(properties={"a": rubric()}), [(A, "unsupported_question")]),
    Refused("a lone const", question(const=1), [(A, "unsupported_question")]),
    Refused("anyOf", question(anyOf=[{"const": 1}, {"const": 2}]), [(A, "unsupported_question")]),
    Refused("a reference", rubric(properties={"a": {"$ref": "#/$defs/A"}}), [(A, "unsupported_question")]),
    Refused(
        "options of two kinds",
        question(enum=[1, 2], oneOf=[{"const": 3}, {"const": 4}]),
        [(f"{A}/enum", "unsupported_keyword")],
    ),
    Refused("an option too many", question(enum=[1, 2, 3, 4, 5]), [(f"{A}/enum", "bad_options")]),
    Refused("an option that nests", question(enum=["a", {}]), [(f"{A}/enum/1", "bad_option")]),
    Refused("an option without const", question(oneOf=[{"const": 1}, {}]), [(f"{A}/oneOf/1", "bad_option")]),
    Refused("a missing bound", question(type="integer", minimum=1), [(A, "bad_bound")]),
    Refused(
        "a bound of another type", question(type="integer", minimum=1, maximum=2.0), [(f"{A}/maximum", "bad_bound")]
    ),
    Refused("too many levels", question(type="integer", minimum=0, maximum=10), [(A, "bad_levels")]),
    Refused("an option twice", question(enum=["a", "b", "a"]), [(A, "duplicate_option")]),
    Refused("options that read the same", question(enum=["1", 1]), [(A, "duplicate_option")]),
    Refused("a number twice", question(enum=[1, 1.0]), [(A, "duplicate_option")]),
    Refused("options that look the same", question(enum=["a b", " a  b"]), [(A, "duplicate_option")]),
    Refused("titles that are the same", question(oneOf=TWINS), [(A, "duplicate_option")]),
    Refused("a number and its text", question(oneOf=NAMESAKES), [(A, "duplicate_option")]),
    Refused("a const twice", question(oneOf=[{"const": 1}, {"const": 1, "title": "one"}]), [(A, "duplicate_option")]),
    Refused("an option of another type", question(type="string", enum=["a", 1]), [(A, "option_of_other_type")]),
    Refused("true is no integer", question(type="integer", enum=[0, True]), [(A, "option_of_other_type")]),
    Refused("a half is no integer", question(type="integer", enum=[0, 0.5]), [(A, "option_of_other_type")]),
    Refused("null of no type", question(type=["string"], enum=["a", None]), [(A, "option_of_other_type")]),
    Refused("an unknown type", question(type="text", enum=["a", "b"]), [(f"{A}/type", "bad_type")]),
    Refused("a type that is none", question(type={"a": 1}, enum=["a", "b"]), [(f"{A}/type", "bad_type")]),
    Refused("a list of no type", question(type=[], enum=["a", "b"]), [(f"{A}/type", "bad_type")]),
    Refused("a list with an unknown type", question(type=["string", []], enum=["a", "b"]), [(f"{A}/type", "bad_type")]),
    Refused("a title that is none", question(type="boolean", title=1), [(f"{A}/title", "bad_text")]),
    Refused(
        "a description that is none", question(type="boolean", description=None), [(f"{A}/description", "bad_text")]
    ),
    Refused("texts too long", question(type="boolean", title="t" * 10, description="d" * 9), [(A, "text_too_long")]),
    Refused("an option too long", question(enum=["a", "b" * 21]), [(A, "text_too_long")]),
    Refused(
        "an explanation too long",
        question(oneOf=[{"const": 1, "title": "t" * 21}, {"const": 2}]),
        [(A, "text_too_long")],
    ),
    Refused(
        "a name too long", rubric(properties={"n" * 21: YES_NO}), [("/rubric/properties/" + "n" * 21, "name_too_long")]
    ),
    Refused("a required list that is none", rubric(required="a"), [("/rubric/required", "bad_required")]),
    Refused("required as in draft 3", rubric(required=True), [("/rubric/required", "bad_required")]),
    Refused("required names that are none", rubric(required=["a", 1]), [("/rubric/required", "bad_required")]),
    Refused("required but not asked", rubric(required=["a", "b"]), [("/rubric/required", "bad_required")]),
    Refused(
        "a schema for the rest",
        rubric(additionalProperties={}),
        [("/rubric/additionalProperties", "bad_additional_properties")],
    ),
    Refused(
        "a name that needs escaping",
        rubric(properties={"a/b~": {"enum": ["x", []]}}),
        [("/rubric/properties/a~1b~0/enum/1", "bad_option")],
    ),
    Refused(
        "a long name is cut",
        {"type": "object", "properties": {"n" * 300: None}},
        [("/rubric/properties/" + "n" * 256 + "…", "not_a_schema")],
    ),
    Refused(
        "everything at once",
        {
            "type": "array",
            "$ref": "#",
            "required": ["z"],
            "additionalProperties": 1,
            "properties": {
                "a": {"type": "text", "enum": ["x", [], "x"], "title": 1, "$ref": "#"},
                "b": {"type": "integer", "maximum": None},
                "c": None,
            },
        },
        [
            ("/rubric/type", "not_an_object"),
            ("/rubric/$ref", "unsupported_keyword"),
            ("/rubric/additionalProperties", "bad_additional_properties"),
            ("/rubric/required", "bad_required"),
            (f"{A}/$ref", "unsupported_keyword"),
            (f"{A}/title", "bad_text"),
            (f"{A}/enum/1", "bad_option"),
            (A, "duplicate_option"),
            (f"{A}/type", "bad_type"),
            ("/rubric/properties/b", "bad_bound"),
            ("/rubric/properties/b/maximum", "bad_bound"),
            ("/rubric/properties/c", "not_a_schema"),
        ],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: Refused) -> None:
    """S7: what is outside the language is refused: every problem at once, each with its exact place."""
    assert problems_of(case.schema, LIMITS) == case.problems


def test_what_is_understood() -> None:
    """Questions in the order of the properties, with kind, text and options; a schema of just these options."""
    compiled = compile_rubric(
        {
            "title": "Triage",
            "type": "object",
            "properties": {
                "b": {"type": "boolean", "title": "Is it\nurgent?", "default": True},
                "a": {"type": "integer", "minimum": 1, "maximum": 2, "title": "Pain.", "description": "1 is mild"},
            },
            "required": ["a"],
        },
        LIMITS,
    )
    asked = [(q.name, q.kind, q.text, [option.value for option in q.options]) for q in compiled.questions]
    assert asked == [
        ("b", Kind.BOOLEAN, "Is it urgent?", [True, False]),
        ("a", Kind.SCORE, "Pain. 1 is mild", [1, 2]),
    ]
    assert compiled.schema == {
        "type": "object",
        "properties": {"b": {"enum": [True, False]}, "a": {"enum": [1, 2]}},
        "required": ["a"],
    }


class Endless(list[Any]):
    """An array that says it is huge and must not be walked."""

    def __len__(self) -> int:
        return 10**9

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("walked")


class EndlessObject(Mapping[str, Any]):
    """An object that says it is huge and must not be walked."""

    def __len__(self) -> int:
        return 10**9

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("walked")

    def __getitem__(self, key: str) -> Any:
        raise AssertionError("walked")


def test_huge_rubrics_are_cheap_to_refuse() -> None:
    """S11: options and questions over the limit are counted, not walked."""
    assert problems_of(question(enum=Endless())) == [(f"{A}/enum", "bad_options")]
    assert problems_of(question(oneOf=Endless())) == [(f"{A}/oneOf", "bad_options")]
    assert problems_of(rubric(properties=EndlessObject())) == [("/rubric/properties", "bad_properties")]


def resolves(document: Any, pointer: str) -> bool:
    """Whether a JSON Pointer (RFC 6901) leads somewhere in a document."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return False
    return True


def anything(leaves: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """JSON of any shape, most of it nearly a rubric."""
    return rubrics.damaged_rubrics(leaves) | rubrics.json_values(leaves)


@given(anything())
def test_any_json_is_a_rubric_or_rejected(schema: Any) -> None:
    """S6, S7: never another exception, and every problem is about a place that exists."""
    result = compile_or_reject(schema)
    if isinstance(result, Rubric):
        assert list(schema["properties"]) == [asked.name for asked in result.questions]
        assert all(len(asked.options) >= 2 for asked in result.questions)
    else:
        assert result.problems
        assert all(resolves({"rubric": schema}, problem.pointer) for problem in result.problems)


@given(anything(leaves=rubrics.canaries()))
def test_messages_never_hold_a_value(schema: Any) -> None:
    """P1: code and message of a problem, and the exception's own text, are ours alone."""
    result = compile_or_reject(schema)
    if isinstance(result, RubricRejected):
        said = "".join(problem.code + problem.message for problem in result.problems) + str(result)
        assert CANARY not in said


@given(rubrics.accepted_rubrics())
def test_accepted_rubrics_are_accepted(schema: Schema) -> None:
    """The strategy that other tests build on makes rubrics of this language."""
    assert problems_of(schema, rubrics.LIMITS) == []


@given(rubrics.accepted_rubrics(), st.data())
def test_what_is_understood_is_what_was_said(schema: Schema, data: st.DataObject) -> None:
    """The schema decisions are checked against accepts exactly what the caller's schema accepts."""
    understood = compile_rubric(schema, rubrics.LIMITS)
    options = [option.value for asked in understood.questions for option in asked.options]
    names = st.sampled_from(list(schema["properties"])) | rubrics.texts()
    instance = data.draw(st.dictionaries(names, st.sampled_from(options) | rubrics.scalars()))
    valid = Draft202012Validator(schema).is_valid(instance)
    assert Draft202012Validator(understood.schema).is_valid(instance) == valid
