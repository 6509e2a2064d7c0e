"""The contract's invariants: what cannot be asked, and the order in which labels travel."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from engine.protocol import (
    MAX_LABELS_PER_READ,
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


def read(**changed: Any) -> ReadRequest:
    """A read that is as it should be, but for what is changed."""
    fields = {
        "request_id": "r",
        "prompt_token_ids": (1, 2),
        "canvas_token_ids": (3, 4, 5),
        "canvas_slots": (slot(),),
    }
    return ReadRequest(**{**fields, **changed})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a bug upstream could ask for."""

    id: str
    changed: dict[str, Any]
    message: str


CASES = [
    Case(id="no prompt", changed={"prompt_token_ids": ()}, message="needs a prompt"),
    Case(id="no slot", changed={"canvas_slots": ()}, message="at least one slot"),
    Case(id="no canvas", changed={"canvas_token_ids": ()}, message="outside its canvas"),
    Case(id="slot behind the canvas", changed={"canvas_slots": (slot(3),)}, message="outside its canvas"),
    Case(id="slot before the canvas", changed={"canvas_slots": (slot(), slot(-1))}, message="outside its canvas"),
    Case(
        id="too many labels over all slots",
        changed={"canvas_slots": (slot(0, tuple(range(128))), slot(1, (128,)))},
        message="at most 128 labels",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_impossible_reads(case: Case) -> None:
    """A read that no engine could run is refused where it is made."""
    with pytest.raises(ValueError, match=case.message):
        read(**case.changed)


@pytest.mark.parametrize("labels", [(), (7, 7)], ids=["none", "twice the same"])
def test_impossible_slots(labels: tuple[int, ...]) -> None:
    """A slot has labels, all of them different."""
    with pytest.raises(ValueError, match="distinct label token ids"):
        slot(labels=labels)


def test_the_widest_read() -> None:
    """The last position of the canvas is a slot like any other, and the cap on labels counts shared ones once."""
    labels = tuple(range(MAX_LABELS_PER_READ))
    request = read(canvas_slots=(slot(0, labels), slot(2, labels[::-1])))
    assert request.label_token_ids == labels


def test_labels_are_ascending() -> None:
    """vLLM computes only the labels where all reads of a step have the same ones: order must not make them differ."""
    request = read(canvas_slots=(slot(0, (9, 2)), slot(1, (5, 2))))
    assert request.label_token_ids == (2, 5, 9)


def test_reads_do_not_change() -> None:
    """What was checked stays true."""
    with pytest.raises(FrozenInstanceError):
        read().prompt_token_ids = ()  # type: ignore[misc]


@pytest.mark.parametrize("error", [EngineStartFailed, EngineDied, ReadFailed])
def test_one_error_tree(error: type[Exception]) -> None:
    """Everything an engine raises on purpose can be caught at once, and is told apart."""
    assert error.__mro__[1] is EngineError
