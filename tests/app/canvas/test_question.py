"""What a rubric asks."""

from __future__ import annotations

import pytest

from app.canvas.question import Kind, Question


@pytest.mark.parametrize(("name", "expected"), [("topic", "topic"), ("", ""), ("a/b", "a~1b"), ("a~1b", "a~01b")])
def test_id_is_a_pointer_without_its_slash(name: str, expected: str) -> None:
    """Two names never share an id: a slash in a name is escaped, so it does not read as nesting."""
    assert Question(name=name, kind=Kind.BOOLEAN, text="", options=()).id == expected


def test_kinds_are_named_as_operators_know_them() -> None:
    """The names are labels of `decide_entropy{kind}`."""
    assert sorted(Kind) == ["boolean", "choice", "score"]
