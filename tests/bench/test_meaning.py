"""Values that mean the same."""

from __future__ import annotations

from bench.meaning import meaning


def test_order_of_lists_does_not_matter() -> None:
    assert meaning(["a", "b"]) == meaning(["b", "a"]) != meaning(["a"])


def test_true_is_not_1() -> None:
    assert meaning(True) != meaning(1)
    assert meaning(1) == meaning(1.0)
    assert meaning([True]) != meaning([1])
