"""When two values of decisions mean the same."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def meaning(value: Any) -> Hashable:
    """Equal for values that mean the same: lists whatever their order; true is not 1."""
    if isinstance(value, list):
        return frozenset(map(meaning, value))
    return isinstance(value, bool), value
