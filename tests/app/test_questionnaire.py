"""Questions of other protocols as rubrics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from app.canvas.errors import PlanTooLarge, Problem, PromptTooLong, RubricRejected
from app.canvas.plan import Planner
from app.canvas.question import Kind
from app.canvas.rubric import compile_rubric
from app.errors import NotOffered, RequestRejected, SchemaRejected
from app.offload import INLINE_SIZE
from app.openai_wire import parse_decisions_request
from app.questionnaire import Questionnaire, name_of, size_of, text_of
from app.system_one_wire import parse_system_one_request
from tests.app.canary import CANARY
from tests.app.protocol_bodies import DECISIONS, SYSTEM_ONE, damaged

MODEL = "onestep-demo"


def asked() -> Questionnaire:
    """One question of every kind."""
    made = Questionnaire()
    made.ask_yes_no(("questions", "a/b"), "Is it?", yes="when it is")
    made.ask_choice(("questions", "team"), "", "criteria", ["x", "y"], [("X", ""), ("Y", "why")])
    made.ask_score(("questions", 2), "How much?", "levels", ["none", "", "much"])
    return made


def test_questions_become_properties(planner: Planner) -> None:
    """By number; what the caller did not say is not said."""
    rubric = compile_rubric(asked().rubric, planner.limits)
    assert [question.kind for question in rubric.questions] == [Kind.BOOLEAN, Kind.CHOICE, Kind.SCORE]
    assert [question.id for question in rubric.questions] == ["0", "1", "2"]
    assert [question.text for question in rubric.questions] == ["Is it?", "Which one fits?", "How much?"]
    assert [[option.text for option in question.options] for question in rubric.questions] == [
        ["yes: when it is", "no"],
        ["X", "Y: why"],
        ["0: none", "1", "2: much"],
    ]
    assert [[option.value for option in question.options] for question in rubric.questions[1:]] == [[0, 1], [0, 1, 2]]
    assert rubric.remarks == ()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("/rubric", "/questions"),
        ("/rubric/properties", "/questions"),
        ("/rubric/properties/0", "/questions/a~1b"),
        ("/rubric/properties/0/title", "/questions/a~1b/instructions"),
        ("/rubric/properties/0/x-option-descriptions/true", "/questions/a~1b/criteria/true"),
        ("/rubric/properties/0/x-option-descriptions/false", "/questions/a~1b/criteria/false"),
        ("/rubric/properties/1/oneOf", "/questions/team/criteria"),
        ("/rubric/properties/1/oneOf/1/description", "/questions/team/criteria/y"),
        ("/rubric/properties/2/x-option-descriptions/2", "/questions/2/levels/2"),
        ("/rubric/properties/2/x-option-descriptions", "/questions/2/levels"),
        ("/policy/max_reads", "/x_policy/max_reads"),
        ("/state", "/state"),
        ("", ""),
    ],
)
def test_problems_name_the_callers_places(ours: str, theirs: str) -> None:
    """Of the rubric that the caller never saw, and of the policy."""
    problem = Problem(pointer=ours, code="bad", message="must be good")
    for rejected in (RubricRejected((problem,)), SchemaRejected(problem)):
        with pytest.raises((RubricRejected, SchemaRejected)) as raised, asked().in_its_own_words():
            raise rejected
        refusal: Any = raised.value
        assert type(refusal) is type(rejected)
        assert refusal.problems == (Problem(pointer=theirs, code="bad", message="must be good"),)


def test_other_errors_come_through() -> None:
    """As they are."""
    with pytest.raises(ZeroDivisionError), asked().in_its_own_words():
        raise ZeroDivisionError


def test_texts() -> None:
    """As they are, or as JSON; not as Python writes them."""
    assert [text_of(value) for value in (None, "", "a", {"a": [True, None]}, ["ß"])] == [
        "",
        "",
        "a",
        '{"a": [true, null]}',
        '["ß"]',
    ]
    assert [name_of(value) for value in (True, False, "true", " a\n b ", "", " ")] == [
        "yes",
        "no",
        "true",
        "a b",
        '""',
        '""',
    ]


def test_large_bodies_are_not_understood_at_once() -> None:
    """R3: not on the event loop, where probes would wait; a single long text is no work."""
    assert size_of({"state": "x" * 1_000_000}) < 100
    assert size_of(SYSTEM_ONE) <= INLINE_SIZE
    bodies: tuple[Any, ...] = ([1] * 1000, {str(n): [] for n in range(1000)}, [[[n] for n in range(500)]])
    for large in bodies:
        assert size_of(large) > INLINE_SIZE


def take(body: Any, parse: Any, planner: Planner) -> None:
    """Parse a body and lay it out; whatever is wrong with it is one of our errors and quotes nothing."""
    try:
        inquiry = parse(body, MODEL)
        with inquiry.questionnaire.in_its_own_words():
            planner.plan(inquiry.questionnaire.rubric)
    except (SchemaRejected, NotOffered, RubricRejected) as rejected:
        problems = rejected.problems
        assert problems
        assert CANARY not in "".join(problem.message + problem.code for problem in problems)
        is_ours = isinstance(rejected, RequestRejected)
        assert is_ours or all(problem.pointer.startswith("/questions") for problem in problems)
    except (PromptTooLong, PlanTooLarge):
        pass  # drawn bodies may be long


@given(body=damaged(SYSTEM_ONE))
def test_any_body_of_system_one(planner: Planner, body: Any) -> None:
    """S6, P1: it is answered or refused, and never fails."""
    take(body, parse_system_one_request, planner)


@given(body=damaged(DECISIONS))
def test_any_body_of_openais_decisions(planner: Planner, body: Any) -> None:
    """S6, P1: the same."""
    take(body, parse_decisions_request, planner)


def test_the_bodies_are_good(planner: Planner) -> None:
    """As long as nothing is done to them."""
    for body, parse in ((SYSTEM_ONE, parse_system_one_request), (DECISIONS, parse_decisions_request)):
        inquiry: Any = parse(body, MODEL)
        assert len(planner.plan(inquiry.questionnaire.rubric).questions) == 3
