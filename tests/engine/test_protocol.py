"""The contract's invariants: what cannot be asked, and what a branch says of itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from engine.protocol import (
    MAX_LABELS_PER_READ,
    Branch,
    CanvasSlot,
    EngineDied,
    EngineError,
    EngineStartFailed,
    ReadFailed,
    ReadRequest,
)


def slot(position: int = 0, labels: tuple[int, ...] = (7, 8)) -> CanvasSlot:
    """A slot."""
    return CanvasSlot(position=position, label_token_ids=labels)


def branch(**changed: Any) -> Branch:
    """A branch that is as it should be, but for what is changed."""
    fields = {"canvas_token_ids": (3, 4, 5), "canvas_slots": (slot(),)}
    return Branch(**{**fields, **changed})


def read(**changed: Any) -> ReadRequest:
    """A read that is as it should be, but for what is changed."""
    fields = {"request_id": "r", "prompt_token_ids": (1, 2), "branches": (branch(),)}
    return ReadRequest(**{**fields, **changed})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a bug upstream could ask for."""

    id: str
    changed: dict[str, Any]
    message: str


BRANCHES = [
    Case(id="no slot", changed={"canvas_slots": ()}, message="at least one slot"),
    Case(id="no canvas", changed={"canvas_token_ids": ()}, message="outside its canvas"),
    Case(id="slot behind the canvas", changed={"canvas_slots": (slot(3),)}, message="outside its canvas"),
    Case(id="slot before the canvas", changed={"canvas_slots": (slot(-1), slot())}, message="outside its canvas"),
    Case(id="slots in another order", changed={"canvas_slots": (slot(2), slot(0))}, message="not in canvas order"),
    Case(
        id="the last two slots in another order",
        changed={"canvas_slots": (slot(0), slot(2), slot(1))},
        message="not in canvas order",
    ),
    Case(id="a slot twice", changed={"canvas_slots": (slot(1), slot(1, (9,)))}, message="not in canvas order"),
    Case(
        id="too many labels over all slots",
        changed={"canvas_slots": (slot(0, tuple(range(128))), slot(1, (128,)))},
        message="at most 128 labels",
    ),
]


@pytest.mark.parametrize("case", BRANCHES, ids=lambda case: case.id)
def test_impossible_branches(case: Case) -> None:
    """A branch that no engine could read is refused where it is made."""
    with pytest.raises(ValueError, match=case.message):
        branch(**case.changed)


READS = [
    Case(id="no prompt", changed={"prompt_token_ids": ()}, message="needs a prompt"),
    Case(
        id="no prompt but a suffix",
        changed={"prompt_token_ids": (), "branches": (branch(suffix_token_ids=(6,)),)},
        message="needs a prompt",
    ),
    Case(id="no branch", changed={"branches": ()}, message="at least one branch"),
]


@pytest.mark.parametrize("case", READS, ids=lambda case: case.id)
def test_impossible_reads(case: Case) -> None:
    """There is something to share, and something to read."""
    with pytest.raises(ValueError, match=case.message):
        read(**case.changed)


@pytest.mark.parametrize("labels", [(), (7, 7)], ids=["none", "twice the same"])
def test_impossible_slots(labels: tuple[int, ...]) -> None:
    """A slot has labels, all of them different."""
    with pytest.raises(ValueError, match="distinct label token ids"):
        slot(labels=labels)


def test_the_widest_branch() -> None:
    """The last position of the canvas is a slot like any other, and the cap on labels counts shared ones once."""
    labels = tuple(range(MAX_LABELS_PER_READ))
    made = branch(canvas_slots=(slot(0, labels), slot(2, labels[::-1])))
    assert made.label_token_ids == frozenset(labels)


def test_labels_are_those_of_all_slots() -> None:
    """Each once, whichever slot has it."""
    assert branch(canvas_slots=(slot(0, (9, 2)), slot(1, (5, 2)))).label_token_ids == {2, 5, 9}


def test_the_cap_on_labels_is_a_branchs() -> None:
    """A request may have more: branches that cannot travel together travel apart."""
    branches = tuple(branch(canvas_slots=(slot(0, tuple(range(first, first + 128))),)) for first in (0, 128))
    assert read(branches=branches).branches == branches


def test_a_branch_has_no_suffix_unless_told() -> None:
    """Its canvas stands right behind the prompt."""
    assert branch().suffix_token_ids == ()


def test_a_read_is_constrained_and_unsalted_unless_told() -> None:
    """Logprobs over the labels, and a prefix that whoever asks the same shares."""
    assert (read().is_constrained, read().cache_salt) == (True, None)


def test_without_suffix() -> None:
    """The same canvas and slots; the branch itself stays as it is."""
    made = branch(suffix_token_ids=(6, 7))
    assert made.without_suffix() == branch()
    assert made.suffix_token_ids == (6, 7)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(read(), "prompt_token_ids"), (branch(), "canvas_slots"), (slot(), "label_token_ids")],
    ids=["read", "branch", "slot"],
)
def test_requests_do_not_change(owner: object, name: str) -> None:
    """What was checked stays true."""
    with pytest.raises(FrozenInstanceError):
        setattr(owner, name, ())


@pytest.mark.parametrize("error", [EngineStartFailed, EngineDied, ReadFailed])
def test_one_error_tree(error: type[Exception]) -> None:
    """Everything an engine raises on purpose can be caught at once, and is told apart."""
    assert error.__mro__[1] is EngineError
