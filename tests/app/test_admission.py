"""Permits."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from app.admission import Admission
from app.errors import Overloaded


def test_never_more_than_max_inflight() -> None:
    """R1: the next one is refused, and taken as soon as one has left."""
    admission = Admission(2)
    with admission.permit():
        with admission.permit():
            assert admission.inflight == 2
            with pytest.raises(Overloaded), admission.permit():
                pass
            assert admission.inflight == 2
        with admission.permit():
            assert admission.inflight == 2
    assert admission.inflight == 0


def test_a_request_that_fails_gives_its_permit_back() -> None:
    """R16: whatever ends it, cancellation included."""
    admission = Admission(1)
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), admission.permit():
            raise error
        assert admission.inflight == 0


def test_permits_may_be_given_back_in_any_order() -> None:
    """Requests end when they end."""
    admission = Admission(3)
    stacks = [ExitStack() for _ in range(3)]
    for stack in stacks:
        stack.enter_context(admission.permit())
    for left, stack in zip((2, 1, 0), (stacks[1], stacks[0], stacks[2]), strict=True):
        stack.close()
        assert admission.inflight == left
