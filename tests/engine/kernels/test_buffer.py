"""Staged writes, through vLLM's own tensors and writer: every buffer as Triton's source leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.engine.kernels.batches import SEEDS
from tests.engine.kernels.comparison import SENTINEL, Sides, assert_same

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

ROWS = 6


@dataclass(frozen=True, slots=True)
class Write:
    """Contents for one row of one tensor."""

    tensor: int
    row: int
    start: int
    contents: list[int]


def random_writes(generator: np.random.Generator, widths: Sequence[int]) -> list[Write]:
    """At most two writes a row, in any order, that do not overlap: Triton's programs run in no order."""
    writes = []
    for tensor, width in enumerate(widths):
        for row in range(ROWS):
            first, second, third = sorted(generator.integers(0, width + 1, 3).tolist())
            for start, end in ((first, second), (second, third)):
                writes.append(Write(tensor, row, start, generator.integers(0, 1000, end - start).tolist()))
    return [writes[i] for i in generator.permutation(len(writes))]


def new_tensors(module: ModuleType, sizes: Sequence[Any], dtype: torch.dtype, is_uva: bool = False) -> list[Any]:
    """vLLM's tensors, full of sentinels."""
    device = torch.device("cpu")
    tensors = [module.StagedWriteTensor(size, dtype, device, uva_instead_of_gpu=is_uva) for size in sizes]
    for tensor in tensors:
        tensor.gpu.fill_(SENTINEL)
    return tensors


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("is_uva", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32], ids=str)
def test_rows(buffer_utils: Sides, dtype: torch.dtype, is_uva: bool, seed: int) -> None:
    """Each write reaches its row, from its start; a second round starts from nothing staged."""
    generator = np.random.default_rng(seed)
    rounds = [random_writes(generator, [9]) for _ in range(2)]

    def written(module: ModuleType) -> torch.Tensor:
        (tensor,) = new_tensors(module, [(ROWS, 9)], dtype, is_uva)
        for writes in rounds:
            for write in writes:
                tensor.stage_write(write.row, write.start, write.contents)
            tensor.apply_write()
        return tensor.gpu

    assert_same(written(buffer_utils.host), written(buffer_utils.oracle))


def test_single_values(buffer_utils: Sides) -> None:
    """In a tensor of one dimension a write is an element, or several from there on."""

    def written(module: ModuleType) -> torch.Tensor:
        (tensor,) = new_tensors(module, [ROWS], torch.int32)
        tensor.stage_write_elem(4, 11)
        tensor.stage_write_elem(0, 12)
        tensor.stage_write(1, 1, [13, 14])
        tensor.apply_write()
        return tensor.gpu

    assert_same(written(buffer_utils.host), written(buffer_utils.oracle))
    assert written(buffer_utils.host).tolist() == [12, SENTINEL, 13, 14, 11, SENTINEL]


@pytest.mark.parametrize("seed", SEEDS)
def test_several_tensors_at_once(buffer_utils: Sides, seed: int) -> None:
    """The fused writer finds each write's tensor by its address and row width."""
    generator = np.random.default_rng(seed)
    widths = generator.integers(1, 12, 3).tolist()
    # Nothing is staged for the last tensor.
    writes = random_writes(generator, widths[:2])

    def written(module: ModuleType) -> list[torch.Tensor]:
        tensors = new_tensors(module, [(ROWS, width) for width in widths], torch.int32)
        for write in writes:
            tensors[write.tensor].stage_write(write.row, write.start, write.contents)
        buffers = [tensor.gpu for tensor in tensors]
        # The oracle takes the tensors themselves for their addresses, so that it knows their bounds.
        addresses = torch.tensor([buffer.data_ptr() for buffer in buffers], dtype=torch.uint64)
        pointers = buffers if module is buffer_utils.oracle else addresses
        writer = module.FusedStagedWriter(torch.device("cpu"), len(widths) * ROWS)
        writer.apply(tensors, pointers, torch.tensor(widths))
        return buffers

    assert_same(written(buffer_utils.host), written(buffer_utils.oracle))
