"""Every public case has a form in the rubric language."""

from __future__ import annotations

from collections import Counter

import pytest

from app.canvas.plan import Planner
from app.canvas.question import Kind
from bench.public_cases import PublicCase, load_public_cases, parse_cases, property_of


@pytest.fixture(scope="module")
def cases() -> tuple[PublicCase, ...]:
    """The data set."""
    return load_public_cases()


def test_noul_is_a_boolean() -> None:
    asked = {"type": "noul", "instructions": "Is it broken?"}
    assert property_of(asked) == {"title": "Is it broken?", "type": "boolean"}


def test_choice_is_a_one_of_with_descriptions() -> None:
    asked = {"type": "choice", "instructions": "Who?", "criteria": {"us": "Our team", "them": "Theirs"}}
    options = [{"const": "us", "description": "Our team"}, {"const": "them", "description": "Theirs"}]
    assert property_of(asked) == {"title": "Who?", "oneOf": options}


def test_score_is_an_integer_whose_levels_are_described() -> None:
    asked = {"type": "score", "instructions": "How bad?", "criteria": ["fine", "bad", "lost"]}
    levels = {"description": "0: fine; 1: bad; 2: lost", "minimum": 0, "maximum": 2}
    assert property_of(asked) == {"title": "How bad?", "type": "integer", **levels}


def test_an_unknown_type_is_not_skipped() -> None:
    with pytest.raises(ValueError, match="'essay'"):
        property_of({"type": "essay", "instructions": "Why?"})


def test_cases_are_read_line_by_line() -> None:
    lines = '{"id": "a", "state": "s", "questions": {"q": {"type": "noul", "instructions": "Is it?"}}}\n\n'
    properties = {"q": {"title": "Is it?", "type": "boolean"}}
    assert list(parse_cases(lines)) == [
        PublicCase(id="a", state="s", rubric={"type": "object", "properties": properties})
    ]


def test_all_cases_and_all_questions_compile(cases: tuple[PublicCase, ...], planner: Planner) -> None:
    """The counts are those of the data set's own manifest and of the mapping's docstring."""
    questions = [asked for case in cases for asked in planner.plan(case.rubric, None).questions]
    assert len({case.id for case in cases}) == len(cases) == 240
    assert Counter(asked.kind for asked in questions) == {Kind.BOOLEAN: 1341, Kind.CHOICE: 615, Kind.SCORE: 284}
