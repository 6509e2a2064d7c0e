"""What becomes of a rubric, and strategies: any JSON value, rubrics that are accepted, rubrics that may not be."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from app.canvas.errors import RubricRejected
from app.canvas.json import JsonScalar, identity, to_text
from app.canvas.kinds import make_option
from app.canvas.rubric import Rubric, RubricLimits, compile_rubric
from tests.app.canary import CANARY

LIMITS = RubricLimits(max_questions=8, max_options=12, max_text_chars=200)

KEYWORDS = (
    "type",
    "properties",
    "required",
    "additionalProperties",
    "enum",
    "oneOf",
    "const",
    "minimum",
    "maximum",
    "title",
    "description",
    "$ref",
    "x-note",
)

Schema = dict[str, Any]


def compile_or_reject(schema: Any, limits: RubricLimits = LIMITS) -> Rubric | RubricRejected:
    """What becomes of a rubric."""
    try:
        return compile_rubric(schema, limits)
    except RubricRejected as rejected:
        return rejected


def problems_of(schema: Any, limits: RubricLimits = LIMITS) -> list[tuple[str, str]]:
    """Pointer and code of everything wrong with a rubric; nothing if it is accepted."""
    result = compile_or_reject(schema, limits)
    return [] if isinstance(result, Rubric) else [(problem.pointer, problem.code) for problem in result.problems]


def texts() -> st.SearchStrategy[str]:
    """Short text of any characters but lone surrogates."""
    return st.text(max_size=12)


def scalars() -> st.SearchStrategy[JsonScalar]:
    """What may be an option."""
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    return st.none() | st.booleans() | st.integers(-(2**70), 2**70) | numbers | texts()


def json_values(leaves: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """Any JSON value; keys are often keywords of JSON Schema."""
    keys = st.sampled_from(KEYWORDS) | texts()
    return st.recursive(
        scalars() if leaves is None else leaves,
        lambda below: st.lists(below, max_size=4) | st.dictionaries(keys, below, max_size=5),
        max_leaves=12,
    )


def option_values() -> st.SearchStrategy[list[JsonScalar]]:
    """Options that differ as JSON values, in their text and in the prompt."""
    return st.lists(
        scalars(), min_size=2, max_size=8, unique_by=(identity, to_text, lambda value: make_option(value).text)
    )


def question_schemas() -> st.SearchStrategy[Schema]:
    """A property that is accepted, of any kind."""
    booleans = st.just({"type": "boolean"})
    enums = st.builds(lambda values: {"enum": values}, option_values())
    one_ofs = st.builds(lambda values: {"oneOf": [{"const": value} for value in values]}, option_values())
    scores = st.builds(
        lambda low, span: {"type": "integer", "minimum": low, "maximum": low + span},
        st.integers(-(2**63), 2**63),
        st.integers(1, 9),
    )
    annotations = st.fixed_dictionaries(
        {}, optional={"title": texts(), "description": texts(), "x-note": json_values(), "default": json_values()}
    )
    return st.builds(lambda known, notes: {**notes, **known}, st.one_of(booleans, enums, one_ofs, scores), annotations)


def accepted_rubrics() -> st.SearchStrategy[Schema]:
    """A rubric inside the language and inside `LIMITS`."""
    properties = st.dictionaries(texts(), question_schemas(), min_size=1, max_size=5)
    return properties.flatmap(
        lambda asked: st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.just(asked)},
            optional={
                "required": st.lists(st.sampled_from(sorted(asked)), unique=True),
                "additionalProperties": st.booleans(),
                "title": texts(),
            },
        )
    )


def damaged_rubrics(leaves: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Schema]:
    """An accepted rubric with any JSON put in at a keyword or a property, which may or may not be wrong."""
    values = json_values(leaves)
    keywords = st.sampled_from(KEYWORDS)

    def damage(rubric: Schema, at_root: Schema, at_question: Schema, questions: Schema) -> Schema:
        properties = {name: {**schema, **at_question} for name, schema in rubric["properties"].items()}
        return {**rubric, "properties": {**properties, **questions}, **at_root}

    return st.builds(
        damage,
        accepted_rubrics(),
        st.dictionaries(keywords, values, max_size=2),
        st.dictionaries(keywords, values, max_size=2),
        st.dictionaries(texts(), values, max_size=2),
    )


def canaries() -> st.SearchStrategy[str]:
    """Text that no message of ours can hold by accident."""
    return texts().map(lambda text: CANARY + text)
