"""How host kernels are launched, and the memory they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from engine.kernels.launch import host_kernel, int32_at, spans


def test_a_kernel_is_launched_as_tritons() -> None:
    """`kernel[grid](*arguments, **meta)` runs the function once, for the whole grid."""
    launches: list[Any] = []

    @host_kernel
    def record(grid: tuple[int, ...], *arguments: object, **meta: object) -> None:
        launches.append((grid, arguments, meta))

    record[(2, 3)](1, None, BLOCK_SIZE=4)
    assert launches == [((2, 3), (1, None), {"BLOCK_SIZE": 4})]


def test_a_kernel_says_what_it_is() -> None:
    """vLLM's logs and tracebacks name the function."""

    @host_kernel
    def record(grid: tuple[int, ...]) -> None:
        raise NotImplementedError

    assert repr(record).startswith("HostKernel(")
    assert repr(record).endswith(".record)")


def test_int32_at_is_a_view() -> None:
    """Writes reach the tensor behind the address, and nothing beside the view."""
    tensor = torch.arange(6, dtype=torch.int32)
    view = int32_at(tensor.data_ptr(), 2, 3)
    assert view.tolist() == [2, 3, 4]
    view[:] = 9
    assert tensor.tolist() == [0, 1, 9, 9, 9, 5]


@pytest.mark.parametrize("count", [0, -4])
def test_int32_at_touches_nothing_for_nothing(count: int) -> None:
    """No element: no look at the address, which may be past the end of its tensor."""
    assert int32_at(0, 0, count).tolist() == []


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table of starts, and the spans it describes."""

    id: str
    starts: list[int]
    count: int
    expected: list[tuple[int, int]]


@pytest.mark.parametrize(
    "case",
    [
        Case(id="none", starts=[0], count=0, expected=[]),
        Case(id="some, one empty", starts=[0, 3, 3, 7], count=3, expected=[(0, 3), (3, 3), (3, 7)]),
        Case(id="padded", starts=[0, 3, 7, 7, 7], count=2, expected=[(0, 3), (3, 7)]),
    ],
    ids=lambda case: case.id,
)
def test_spans(case: Case) -> None:
    """As many spans as asked for; padding behind them is not looked at."""
    assert spans(torch.tensor(case.starts), case.count) == case.expected
