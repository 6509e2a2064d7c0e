"""The oracle itself: it writes where Triton would, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.engine.kernels.interpreter import InterpretedKernel, Language

tl: Any = Language()


def copy_doubled(target: Any, source: Any, count: int, BLOCK_SIZE: int) -> None:  # noqa: N803 (Triton's spelling)
    """A kernel: each program doubles `count` elements of its row of four."""
    block = tl.arange(0, BLOCK_SIZE)
    offsets = tl.program_id(0) * 4 + block
    values = tl.load(source + offsets, mask=block < count, other=0)
    tl.store(target + offsets, 2 * values, mask=block < count)


KERNEL = InterpretedKernel(copy_doubled, tl)


def test_programs_write_what_their_mask_lets_through() -> None:
    """Every program of the grid runs, over blocks that may reach past its row."""
    target, source = torch.full((8,), -1), torch.arange(8)
    KERNEL[(2,)](target, source, 3, BLOCK_SIZE=8, num_warps=1)
    assert target.tolist() == [0, 2, 4, -1, 8, 10, 12, -1]


@pytest.mark.parametrize("programs", [3, 9])
def test_leaving_a_tensor_is_refused(programs: int) -> None:
    """Where Triton would corrupt memory."""
    with pytest.raises(IndexError, match="left its tensor"):
        KERNEL[(programs,)](torch.zeros(8, dtype=torch.int64), torch.arange(100), 4, BLOCK_SIZE=4)


def test_a_view_begins_where_it_begins() -> None:
    """Offsets count from the first element of a view, over the memory behind it."""
    memory, source = torch.zeros(10, dtype=torch.int64), torch.arange(12).view(3, 4)
    KERNEL[(1,)](memory[6:7], source[1:], 4, BLOCK_SIZE=4)
    assert memory.tolist() == [0] * 6 + [8, 10, 12, 14]
