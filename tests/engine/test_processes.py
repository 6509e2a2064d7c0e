"""A family of processes: all of it ends, and nothing else."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from engine.processes import ProcessFamily
from tests.engine.children import PATIENCE_SECONDS, Child, has_ended

GRACE_SECONDS = 0.5

Start = Callable[[str], Child]


def pids(family: ProcessFamily) -> set[int]:
    """Ids of the members."""
    return {process.pid for process in family.members()}


def test_polite_members_are_asked(start: Start) -> None:
    """Who ends when asked is not killed, and nobody waits longer than for that."""
    family = ProcessFamily()
    child = start("polite")
    assert pids(family) == {child.process.pid}
    began = time.monotonic()
    family.stop(grace_seconds=PATIENCE_SECONDS)
    assert time.monotonic() - began < PATIENCE_SECONDS
    assert child.hear() == "ended"
    assert pids(family) == set()


def test_stubborn_members_are_killed(start: Start) -> None:
    """Who does not end when asked is killed once the grace is over; R11."""
    family = ProcessFamily()
    child = start("stubborn")
    family.stop(grace_seconds=GRACE_SECONDS)
    with pytest.raises(EOFError):
        child.hear()
    assert pids(family) == set()


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A child that multiprocessing knows nothing of."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as other:
        yield other
        other.kill()


def test_strangers_are_left_alone(start: Start, other: subprocess.Popen[bytes]) -> None:
    """Not ours: what multiprocessing started before the family was made, and what something else starts."""
    earlier = start("polite")
    family = ProcessFamily()
    member = start("polite")
    assert pids(family) == {member.process.pid}
    family.stop(grace_seconds=PATIENCE_SECONDS)
    assert member.hear() == "ended"
    assert other.poll() is None
    assert earlier.process.is_alive()


@pytest.mark.parametrize("is_orphan", [False, True])
def test_grandchildren_are_stopped(start: Start, is_orphan: bool) -> None:
    """A child of a child is a member, even when the child between is gone before it; R13."""
    family = ProcessFamily()
    child = start("parent_of_stubborn")
    grandchild = child.hear()
    assert pids(family) == {child.process.pid, grandchild}
    if is_orphan:
        child.process.kill()
        child.process.join()
        assert pids(family) == {grandchild}
    family.stop(grace_seconds=GRACE_SECONDS)
    assert child.process.pid is not None
    assert has_ended(child.process.pid)
    assert has_ended(grandchild)


def test_what_has_ended_is_no_member(start: Start) -> None:
    """A process that nobody has taken notice of does not run, and nobody waits for it."""
    family = ProcessFamily()
    child = start("parent_of_stubborn")
    grandchild = child.hear()
    psutil.Process(grandchild).kill()
    while not has_ended(grandchild):
        time.sleep(0.01)
    assert pids(family) == {child.process.pid}


def test_multiprocessing_learns_of_the_end(start: Start) -> None:
    """Its list of children is where members come from: an id that stays there may be somebody else's one day."""
    family = ProcessFamily()
    child = start("polite")
    family.stop(grace_seconds=PATIENCE_SECONDS)
    assert child.process not in multiprocessing.active_children()


def test_nobody_to_stop() -> None:
    """A family without members stops at once."""
    began = time.monotonic()
    ProcessFamily().stop(grace_seconds=PATIENCE_SECONDS)
    assert time.monotonic() - began < PATIENCE_SECONDS
