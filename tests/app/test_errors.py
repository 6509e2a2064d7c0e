"""What the service refuses or fails at."""

from __future__ import annotations

import pytest

import app.canvas.errors
import app.errors
import engine.protocol
from app.canvas.errors import CanvasError, Problem
from app.errors import RequestRejected, SchemaRejected, ServiceError
from engine.protocol import EngineError
from tests.app.problem_cases import subclasses

TREES = {
    ServiceError: app.errors.__doc__,
    CanvasError: app.canvas.errors.__doc__,
    EngineError: engine.protocol.__doc__,
}


@pytest.mark.parametrize("base", TREES, ids=lambda base: base.__name__)
def test_a_tree_is_drawn_as_it_is(base: type[Exception]) -> None:
    """The drawing at the top of the module names every error, deeper where it is more special."""
    by_name = {kind.__name__: kind for kind in (base, *subclasses(base))}
    lines = [line.replace("─", " ") for line in (TREES[base] or "").splitlines() if line.startswith("    ")]
    drawn = {name: line.index(name) for line in lines for name in line.split() if name in by_name}
    assert drawn.keys() == by_name.keys()
    for name in drawn.keys() - {base.__name__}:
        assert drawn[name] > drawn[by_name[name].__bases__[0].__name__]


def test_a_rejection_carries_its_problems_and_says_nothing_of_them() -> None:
    """P1: the exception's text, which a log might hold, is its name."""
    problem = Problem(pointer="/state", code="state_type", message="must be a string")
    rejected = SchemaRejected(problem, problem)
    assert isinstance(rejected, RequestRejected)
    assert rejected.problems == (problem, problem)
    assert str(rejected) == "SchemaRejected"
