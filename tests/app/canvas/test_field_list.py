"""Fields while a rubric is being understood."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.canvas.condition import Condition, ConditionSchema
from app.canvas.field import Constant, Group
from app.canvas.field_list import FieldList
from app.canvas.site import Reader
from tests.app.canvas.rubrics import LIMITS, complaints_of

Names = tuple[str, ...]
CONTENT = Constant(value=1)


def about(*mentions: Names) -> Condition:
    """A condition that looks at these properties."""
    place = ("rubric", "if", *("-".join(names) for names in mentions))
    return ConditionSchema(schema=True, mentions=frozenset(mentions)).condition(place)


@dataclass(frozen=True)
class Said:
    """A declaration or a requirement."""

    names: Names
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Case:
    """What is said, and under what each property is asked: always if under nothing."""

    id: str
    declared: list[Said]
    required: list[Said]
    asked: dict[Names, list[tuple[Condition, ...]]]
    closed: tuple[Names, ...] = ()


A, B, X, Y = ("a",), ("b",), ("x",), ("y",)
IF_A, IF_B, IF_A_TOO = about(A), about(B), about(A)
CASES = (
    Case("declared", [Said(A), Said(B)], [], {A: [], B: []}),
    Case("required", [Said(A)], [Said(A), Said(A)], {A: []}),
    Case("declared under a condition", [Said(A), Said(X, (IF_A,))], [], {A: [], X: [(IF_A,)]}),
    Case("declared and required under it", [Said(A), Said(X, (IF_A,))], [Said(X, (IF_A,))], {A: [], X: [(IF_A,)]}),
    Case("required under a condition only", [Said(A), Said(X)], [Said(X, (IF_A,))], {A: [], X: [(IF_A,)]}),
    Case(
        "required under either of two",
        [Said(A), Said(B), Said(X)],
        [Said(X, (IF_A,)), Said(X, (IF_B,))],
        {A: [], B: [], X: [(IF_A,), (IF_B,)]},
    ),
    Case(
        "required under both of two",
        [Said(A), Said(B), Said(X)],
        [Said(X, (IF_A, IF_B))],
        {A: [], B: [], X: [(IF_A, IF_B)]},
    ),
    Case(
        "required twice under the same", [Said(A), Said(X)], [Said(X, (IF_A,)), Said(X, (IF_A,))], {A: [], X: [(IF_A,)]}
    ),
    Case(
        "two conditions that say the same are two",
        [Said(A), Said(X)],
        [Said(X, (IF_A,)), Said(X, (IF_A_TOO,))],
        {A: [], X: [(IF_A,), (IF_A_TOO,)]},
    ),
    Case("required always and under a condition", [Said(A), Said(X)], [Said(X, (IF_A,)), Said(X)], {A: [], X: []}),
    Case(
        "required always, with a condition on what comes later",
        [Said(X), Said(A)],
        [Said(X, (IF_A,)), Said(X)],
        {X: [], A: []},
    ),
    Case(
        "declared under one, required under another",
        [Said(A), Said(B), Said(X, (IF_A,))],
        [Said(X, (IF_B,))],
        {A: [], B: [], X: [(IF_A,), (IF_B,)]},
    ),
    Case(
        "required under more than declared",
        [Said(A), Said(B), Said(X, (IF_A,))],
        [Said(X, (IF_A, IF_B))],
        {A: [], B: [], X: [(IF_A,), (IF_A, IF_B)]},
        closed=((),),
    ),
    Case("closed, declared always", [Said(A), Said(X)], [Said(X, (IF_A,))], {A: [], X: [(IF_A,)]}, closed=((),)),
    Case(
        "closed elsewhere",
        [Said(A), Said(B), Said(X, (IF_A,)), Said(("x", "y"))],
        [Said(X, (IF_B,))],
        {A: [], B: [], X: [(IF_A,), (IF_B,)], ("x", "y"): []},
        closed=(X,),
    ),
    Case(
        "a condition in a nested object",
        [Said(A), Said(X), Said(("x", "a")), Said(("x", "y"), (IF_A,))],
        [],
        {A: [], X: [], ("x", "a"): [], ("x", "y"): [(IF_A,)]},
    ),
)


def filled(declared: list[Said], required: list[Said], closed: tuple[Names, ...]) -> tuple[FieldList, Reader]:
    """A list that was told all this."""
    reader = Reader({}, LIMITS)
    fields = FieldList(reader)
    for names in closed:
        fields.close(names)
    for said in declared:
        fields.declare(said.names, CONTENT, ("rubric", "declared", *said.names), said.conditions)
    for said in required:
        fields.require(said.names, ("rubric", "required", *said.names), said.conditions)
    return fields, reader


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_when_a_property_is_asked(case: Case) -> None:
    """Always, unless it is only declared, or only required, under a condition."""
    fields, reader = filled(case.declared, case.required, case.closed)
    finished = fields.finish()
    assert complaints_of(reader) == []
    assert [one.path for one in finished] == list(case.asked)
    for one in finished:
        identities = [[id(condition) for condition in every] for every in one.conditions]
        assert identities == [[id(condition) for condition in every] for every in case.asked[one.path]]
        assert one.content is CONTENT


@dataclass(frozen=True)
class Refused:
    id: str
    declared: list[Said]
    required: list[Said]
    complaints: list[tuple[str, str]]
    closed: tuple[Names, ...] = ()


REFUSED = (
    Refused("declared twice", [Said(A), Said(A)], [], [("/declared/a", "asked_twice")]),
    Refused(
        "declared twice, once under a condition",
        [Said(A), Said(X), Said(X, (IF_A,))],
        [],
        [("/declared/x", "asked_twice")],
    ),
    Refused("required and not declared", [Said(A)], [Said(X)], [("/required/x", "bad_required")]),
    Refused(
        "required and not declared, under a condition", [Said(A)], [Said(X, (IF_A,))], [("/required/x", "bad_required")]
    ),
    Refused("declared in another object", [Said(("b", "x"))], [Said(X)], [("/required/x", "bad_required")]),
    Refused(
        "required always, declared sometimes", [Said(A), Said(X, (IF_A,))], [Said(X)], [("/required/x", "bad_required")]
    ),
    Refused(
        "closed, and admitted only under another condition",
        [Said(A), Said(B), Said(X, (IF_A,))],
        [Said(X, (IF_B,))],
        [("/required/x", "bad_required")],
        closed=((),),
    ),
    Refused(
        "closed, and admitted only under one condition more",
        [Said(A), Said(B), Said(X, (IF_A, IF_B))],
        [Said(X, (IF_A,))],
        [("/required/x", "bad_required")],
        closed=((),),
    ),
    Refused("a condition on what comes later", [Said(X, (IF_A,)), Said(A)], [], [("/if/a", "bad_condition")]),
    Refused("a condition on itself", [Said(A), Said(X, (about(X),))], [], [("/if/x", "bad_condition")]),
    Refused("a condition on nothing", [Said(A), Said(X, (about(("z",)),))], [], [("/if/z", "bad_condition")]),
    Refused(
        "a condition on another object's",
        [Said(A), Said(("g",)), Said(("g", "x"), (IF_A,))],
        [],
        [("/if/a", "bad_condition")],
    ),
    Refused(
        "a condition on what is in what comes later",
        [Said(X, (about(A, ("b", "y")),)), Said(A), Said(B), Said(("b", "y"))],
        [],
        [("/if/a/b-y", "bad_condition")],
    ),
    Refused(
        "a requirement ahead of its condition", [Said(X), Said(A)], [Said(X, (IF_A,))], [("/if/a", "bad_condition")]
    ),
    Refused(
        "one bad condition of several, complained about once",
        [Said(A), Said(X, (IF_A, IF_B)), Said(Y, (IF_B,)), Said(B)],
        [],
        [("/if/b", "bad_condition")],
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_does_not_fit_together(case: Refused) -> None:
    """Everything in its place."""
    fields, reader = filled(case.declared, case.required, case.closed)
    fields.finish()
    assert complaints_of(reader) == case.complaints


def test_messages_tell_unknown_from_late() -> None:
    """For the two are mended differently."""
    messages = []
    for names in (("z",), ("b",)):
        fields, reader = filled([Said(X, (about(names),)), Said(B)], [], ())
        fields.finish()
        messages.append(reader.problems[0].message)
    assert len(set(messages)) == 2


def test_any_content_can_be_declared() -> None:
    """Groups as well."""
    reader = Reader({}, LIMITS)
    fields = FieldList(reader)
    fields.declare(("g",), Group(), ("rubric",), ())
    assert [one.content for one in fields.finish()] == [Group()]
