"""The fields of a decision: what stands where, and when."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.canvas.condition import Condition, ConditionSchema, make_validator
from app.canvas.field import Constant, Field, Group, build_decision, is_answered
from app.canvas.json import Json
from app.canvas.kinds.boolean import Boolean, Presence
from app.canvas.kinds.selection import Selection
from app.canvas.option import NO, YES, make_option

Path = tuple[str, ...]


def asked(*path: str, conditions: tuple[tuple[Condition, ...], ...] = ()) -> Field:
    """A yes-or-no question."""
    return Field(path=path, content=Boolean(path=path, text="", options=(YES, NO)), conditions=conditions)


def maybe(*path: str) -> Field:
    """An object that may be null."""
    return Field(path=path, content=Presence(path=path, text="", options=(YES, NO)))


def yes(name: str, *, is_wanted: bool = True) -> Condition:
    """That a sibling is there, and yes; or that this is not so."""
    schema: Json = {"properties": {name: {"const": True}}, "required": [name]}
    return ConditionSchema(schema=schema, mentions=frozenset({(name,)})).condition((), is_wanted=is_wanted)


@dataclass(frozen=True)
class Case:
    id: str
    fields: tuple[Field, ...]
    values: dict[Path, Any]
    decision: dict[str, Any]


A_YES, B_YES = yes("a"), yes("b")
CASES = (
    Case("nothing", (), {}, {}),
    Case("an answer", (asked("a"),), {("a",): True}, {"a": True}),
    Case(
        "names are not escaped", (asked("a/b~"), asked("")), {("a/b~",): True, ("",): False}, {"a/b~": True, "": False}
    ),
    Case("a constant", (Field(path=("a",), content=Constant(value=None)),), {}, {"a": None}),
    Case(
        "a group",
        (Field(path=("g",), content=Group()), asked("g", "a"), asked("b")),
        {("g", "a"): True, ("b",): False},
        {"g": {"a": True}, "b": False},
    ),
    Case("an empty group", (Field(path=("g",), content=Group()),), {}, {"g": {}}),
    Case(
        "an object that is there", (maybe("g"), asked("g", "a")), {("g",): True, ("g", "a"): False}, {"g": {"a": False}}
    ),
    Case("an object that is not", (maybe("g"), asked("g", "a")), {("g",): False, ("g", "a"): True}, {"g": None}),
    Case(
        "an object in one that is not",
        (maybe("g"), maybe("g", "h"), asked("g", "h", "a")),
        {("g",): False, ("g", "h"): True, ("g", "h", "a"): True},
        {"g": None},
    ),
    Case(
        "a condition that holds",
        (asked("a"), asked("x", conditions=((A_YES,),))),
        {("a",): True, ("x",): False},
        {"a": True, "x": False},
    ),
    Case(
        "a condition that does not",
        (asked("a"), asked("x", conditions=((A_YES,),))),
        {("a",): False, ("x",): True},
        {"a": False},
    ),
    Case(
        "a condition that must not hold",
        (asked("a"), asked("x", conditions=((yes("a", is_wanted=False),),))),
        {("a",): False, ("x",): True},
        {"a": False, "x": True},
    ),
    Case(
        "both conditions",
        (asked("a"), asked("b"), asked("x", conditions=((A_YES, B_YES),))),
        {("a",): True, ("b",): False, ("x",): True},
        {"a": True, "b": False},
    ),
    Case(
        "either condition",
        (asked("a"), asked("b"), asked("x", conditions=((A_YES,), (B_YES,)))),
        {("a",): False, ("b",): True, ("x",): True},
        {"a": False, "b": True, "x": True},
    ),
    Case(
        "neither condition",
        (asked("a"), asked("b"), asked("x", conditions=((A_YES,), (B_YES,)))),
        {("a",): False, ("b",): False, ("x",): True},
        {"a": False, "b": False},
    ),
    Case(
        "a condition on what is not there",
        (asked("a"), asked("b", conditions=((A_YES,),)), asked("x", conditions=((B_YES,),))),
        {("a",): False, ("b",): True, ("x",): True},
        {"a": False},
    ),
    Case(
        "a condition looks at its own object",
        (asked("a"), Field(path=("g",), content=Group()), asked("g", "a"), asked("g", "x", conditions=((A_YES,),))),
        {("a",): True, ("g", "a"): False, ("g", "x"): True},
        {"a": True, "g": {"a": False}},
    ),
    Case(
        "a group under a condition",
        (asked("a"), Field(path=("g",), content=Group(), conditions=((A_YES,),)), asked("g", "b")),
        {("a",): False, ("g", "b"): True},
        {"a": False},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_decision_is_built(case: Case) -> None:
    """Of what is there: conditions look at what has been decided by then."""
    decision = build_decision(case.fields, case.values)
    assert decision == case.decision
    for one in case.fields:
        parent: Any = case.decision
        for name in one.path[:-1]:
            parent = parent.get(name) if isinstance(parent, dict) else None
        assert is_answered(decision, one.path) is (isinstance(parent, dict) and one.path[-1] in parent)


def test_properties_keep_the_order_of_the_fields() -> None:
    """So do decisions that are compared as text."""
    fields = [asked(name) for name in "cab"]
    assert list(build_decision(fields, {("a",): True, ("b",): True, ("c",): True})) == ["c", "a", "b"]


def test_decisions_share_nothing() -> None:
    """One plan serves many requests."""
    fields = (Field(path=("g",), content=Group()), asked("g", "a"))
    first, second = (build_decision(fields, {("g", "a"): value}) for value in (True, False))
    assert (first, second) == ({"g": {"a": True}}, {"g": {"a": False}})


@dataclass
class Counting:
    """A validator that counts how often it is asked."""

    asked: list[dict[str, Any]] = field(default_factory=list)

    def is_valid(self, instance: dict[str, Any]) -> bool:
        self.asked.append(dict(instance))
        return True


def test_a_condition_is_checked_once() -> None:
    """S11: however many properties depend on it, which may be thousands; when the first does."""
    counting: Any = Counting()
    condition = Condition(validator=counting, is_wanted=True, mentions=frozenset({("a",)}), place=())
    same = Condition(validator=make_validator(False), is_wanted=False, mentions=frozenset(), place=())
    dependents = [asked(str(number), conditions=((condition, same),)) for number in range(50)]
    values = {one.path: True for one in dependents} | {("a",): True}
    assert len(build_decision([asked("a"), *dependents], values)) == 51
    assert counting.asked == [{"a": True}]


def test_a_decision_does_not_spell_itself_out() -> None:
    """S11: `jsonschema` writes what it checks into messages: once for every condition that does not hold."""
    long = Constant(value="x" * 1000)
    several = Selection(path=("s",), text="", options=(make_option("y" * 1000),), least=0, most=1)
    fields = (
        *(Field(path=(name,), content=content) for name, content in (("g", Group()), ("k", long), ("s", several))),
        maybe("p"),
        Field(path=("g", "k"), content=long),
        Field(path=("p", "k"), content=long),
    )
    decision = build_decision(fields, {("s",): ["y" * 1000], ("p",): True})
    assert decision == {"g": {"k": "x" * 1000}, "k": "x" * 1000, "s": ["y" * 1000], "p": {"k": "x" * 1000}}
    assert max(len(repr(one)) for one in (decision, decision["g"], decision["s"], decision["p"])) < 20
    assert json.loads(json.dumps(decision)) == decision


@pytest.mark.parametrize("path", [("b",), ("a", "b"), ("a", "b", "c"), ("g", "b")], ids=str)
def test_what_is_not_there_is_not_answered(path: Path) -> None:
    """Whether its name, or the object around it, is missing."""
    assert not is_answered({"a": None, "g": {"a": 1}}, path)
