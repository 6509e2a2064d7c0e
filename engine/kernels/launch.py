"""How vLLM's Model Runner V2 launches a kernel, without Triton.

Triton kernels are launched as `kernel[grid](*arguments, **meta)`. A `HostKernel` is launched the same way and runs one
Python function for the whole grid, so it can stand where vLLM's module-level kernel object stood.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

Grid = tuple[int, ...]


class HostKernel:
    """A kernel object whose grid is run by one function on the host."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        return partial(self.function, grid)

    def __repr__(self) -> str:
        return f"HostKernel({self.function.__module__}.{self.function.__name__})"


def host_kernel(function: Callable[..., None]) -> HostKernel:
    """Decorate a function `(grid, *arguments, **meta) -> None` into a launchable kernel."""
    return HostKernel(function)


def int32_at(address: int, offset: int, count: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """A writable view of `count` int32 values, `offset` values past a raw data pointer.

    vLLM hands some kernels tables of `Tensor.data_ptr()`; the tensors outlive the launch.
    """
    if count <= 0:
        return np.empty(0, dtype=np.int32)
    return np.ctypeslib.as_array((ctypes.c_int32 * count).from_address(address + 4 * offset))


def spans(starts: torch.Tensor, count: int) -> list[tuple[int, int]]:
    """The `count` half-open spans that a cumulative start table of `count + 1` entries describes."""
    edges = starts[: count + 1].tolist()
    return list(pairwise(edges))
