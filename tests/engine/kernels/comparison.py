"""One call on both sides, and what it means that they agree: every element of every buffer, written or not."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

# What buffers are filled with, so that a write where none belongs shows.
SENTINEL = -7777


@dataclass(frozen=True, slots=True)
class Sides:
    """One of vLLM's modules with the host kernels, and the same with Triton's own source interpreted."""

    host: ModuleType
    oracle: ModuleType

    def assert_agree(self, function: str, *arguments: Any, tolerance: float = 0.0) -> None:
        """Call a function of vLLM on both sides: results and all memory behind the arguments must be equal."""
        copies = [deepcopy(arguments) for _ in range(2)]
        results = [getattr(side, function)(*copy) for side, copy in zip((self.host, self.oracle), copies, strict=True)]
        assert_same(*results, tolerance=tolerance)
        assert_same(*copies)


def assert_same(actual: Any, expected: Any, *, tolerance: float = 0.0) -> None:
    """Equal, down to the memory around a view. Tuples and lists: element by element."""
    actual, expected = _memory(actual), _memory(expected)
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def _memory(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.as_strided((value.untyped_storage().size() // value.element_size(),), (1,), 0)
    return [_memory(element) for element in value] if isinstance(value, tuple | list) else value


def filled(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """A buffer of sentinels."""
    return torch.full(shape, SENTINEL, dtype=dtype)


def numbered(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """A buffer in which no element is like another, so that a read from the wrong place shows."""
    return torch.arange(1000, 1000 + torch.Size(shape).numel(), dtype=dtype).view(shape)
