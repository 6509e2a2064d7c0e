"""Planners with limits of a test's own, and strategies: questions that make plans of every shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from app.canvas.plan import Layout, Order, Plan, Planner
from app.canvas.question import Question
from app.canvas.site import RubricLimits
from app.canvas.tokenizer import Tokenizer
from tests.app.canvas.toy_tokenizer import ToyTokenizer, pairs_are_tokens

LIMITS = RubricLimits(
    max_questions=64, max_options=255, max_text_chars=200, max_chars=65_536, max_depth=24, max_nodes=4096
)

Schema = dict[str, Any]


def planner_for(
    tokenizer: Tokenizer, *, max_model_len: int = 4096, canvas_length: int = 64, max_branch_tokens: int = 1_000_000
) -> Planner:
    """A planner with other limits than the session's."""
    return Planner(
        tokenizer=tokenizer,
        max_model_len=max_model_len,
        canvas_length=canvas_length,
        max_branch_tokens=max_branch_tokens,
        rubric_limits=LIMITS,
    )


def toy_planner(*, canvas_length: int = 40, max_model_len: int = 1_000_000) -> Planner:
    """A planner that lays any rubric out at once: 255 labels, and room for everything."""
    tokenizer = ToyTokenizer(spell=pairs_are_tokens)
    return planner_for(tokenizer, canvas_length=canvas_length, max_model_len=max_model_len)


def layouts() -> st.SearchStrategy[Layout]:
    """Every layout."""
    return st.sampled_from(Layout)


def orders() -> st.SearchStrategy[Order]:
    """Every order."""
    return st.sampled_from(Order)


def titles() -> st.SearchStrategy[str]:
    """Short text on one line, so that no two of these are shown alike by accident alone."""
    return st.text("abcXYZ 0189.:=-?é", max_size=10)


def option_counts(most: int) -> st.SearchStrategy[int]:
    """Few most of the time."""
    return st.integers(2, 6) | st.integers(2, most)


def question_schemas(most_options: int = 255) -> st.SearchStrategy[Schema]:
    """A property of any kind, with any number of options."""
    choices = st.builds(lambda count: {"enum": [f"o{n}" for n in range(count)]}, option_counts(most_options))
    selections = st.builds(
        lambda count: {"type": "array", "items": {"enum": list(range(count))}}, st.integers(1, 4) | st.integers(1, 30)
    )
    scores = st.builds(lambda high: {"type": "integer", "minimum": 0, "maximum": high}, st.integers(1, 9))
    others: list[Schema] = [{"type": "boolean"}, {"type": "number", "minimum": 0, "maximum": 1}]
    kinds = st.one_of(choices, selections, scores, st.sampled_from(others))
    return st.builds(lambda title, schema: {"title": title, **schema}, titles(), kinds)


def questions(most: int = 6, most_options: int = 255) -> st.SearchStrategy[list[Schema]]:
    """Questions of a rubric, in order."""
    return st.lists(question_schemas(most_options), min_size=1, max_size=most)


def rubric_of(asked: Sequence[Schema] | Mapping[str, Schema]) -> Schema:
    """A rubric of these questions, under the names given or under numbers."""
    named = asked if isinstance(asked, Mapping) else {str(number): schema for number, schema in enumerate(asked)}
    return {"type": "object", "properties": dict(named)}


def first_line_numbers(asked: Sequence[Question]) -> list[int]:
    """The number of each question's first line where all are numbered in one go."""
    numbers = [1]
    for question in asked:
        numbers.append(numbers[-1] + question.lines)
    return numbers[:-1]


def line_owners(plan: Plan) -> dict[int, tuple[int, int]]:
    """Question and line of it, by the number of a canvas's line where all are numbered in one go."""
    return {
        first + line: (index, line)
        for index, first in enumerate(first_line_numbers(plan.questions))
        for line in range(plan.questions[index].lines)
    }
