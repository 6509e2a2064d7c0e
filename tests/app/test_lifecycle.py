"""The life of the process."""

from __future__ import annotations

from itertools import product

import pytest

from app.errors import Draining, EngineDead, NotServing, Starting
from app.lifecycle import Lifecycle, Phase

STARTING, READY, DRAINING, FAILED, STOPPED = Phase
WAYS = {
    (STARTING, READY),
    (STARTING, DRAINING),
    (STARTING, FAILED),
    (READY, DRAINING),
    (READY, FAILED),
    (DRAINING, STOPPED),
    (DRAINING, FAILED),
    (FAILED, STOPPED),
}


def lifecycle_in(phase: Phase) -> Lifecycle:
    """A life that has come to this phase."""
    lifecycle = Lifecycle()
    lifecycle.phase = phase
    return lifecycle


def test_a_process_begins_starting() -> None:
    """R12: not ready before it says so."""
    assert Lifecycle().phase is STARTING
    assert not Lifecycle().is_ready


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_ways(before: Phase, after: Phase) -> None:
    """Nothing leads back: a dead engine never serves again. Staying changes nothing."""
    lifecycle = lifecycle_in(before)
    if before is after or (before, after) in WAYS:
        lifecycle.enter(after)
        assert lifecycle.phase is after
    else:
        with pytest.raises(RuntimeError, match=f"no way from {before} to {after}; this is a bug"):
            lifecycle.enter(after)
        assert lifecycle.phase is before


@pytest.mark.parametrize(
    ("phase", "refusal"),
    [(STARTING, Starting), (DRAINING, Draining), (FAILED, EngineDead), (STOPPED, Draining)],
)
def test_refusals(phase: Phase, refusal: type[NotServing]) -> None:
    """In any phase but READY a request is refused, with the reason."""
    lifecycle = lifecycle_in(phase)
    assert not lifecycle.is_ready
    with pytest.raises(refusal):
        lifecycle.require_ready()


def test_ready() -> None:
    """Nothing is refused."""
    lifecycle = lifecycle_in(READY)
    assert lifecycle.is_ready
    lifecycle.require_ready()
